//! Stores: operations 1 to 6 of the contract.

use axum::http::Method;
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};

use super::{server, server_with, texts};

#[tokio::test]
async fn a_store_has_every_field_of_the_contract() {
    let server = server();
    let body = json!({"name": "Notes", "description": "d", "metadata": {"team": "tea"}});
    let store = server.post("/v1/memory_stores", body).await.ok();
    let uri = format!("/v1/memory_stores/{}", store["id"].as_str().unwrap());
    assert_eq!(
        store,
        json!({
            "id": store["id"], "type": "memory_store", "name": "Notes", "description": "d",
            "metadata": {"team": "tea"}, "created_at": store["created_at"],
            "updated_at": store["created_at"], "archived_at": null,
        })
    );
    let created_at = store["created_at"].as_str().unwrap();
    assert!(created_at.starts_with("2026-01-01T00:00:00.") && created_at.ends_with('Z'));
    assert_eq!(server.get(&uri).await.ok(), store);
    let bare = server.post("/v1/memory_stores", json!({"name": "x"})).await.ok();
    assert_eq!((&bare["description"], &bare["metadata"]), (&json!(""), &json!({})));
}

#[tokio::test]
async fn creating_checks_every_rule() {
    let server = server();
    let create = |body: Value| server.post("/v1/memory_stores", body);
    assert!(create(json!({})).await.invalid().contains("missing field `name`"));
    assert!(create(json!({"name": ""})).await.invalid().contains("must not be empty"));
    assert!(create(json!({"name": "x".repeat(256)})).await.invalid().contains("255"));
    assert!(create(json!({"name": "a\nb"})).await.invalid().contains("control"));
    assert!(create(json!({"name": 3})).await.invalid().contains("expected a string"));
    assert!(
        create(json!({"name": "x", "color": 1})).await.invalid().contains("unknown field `color`")
    );
    let long = json!({"name": "x", "description": "d".repeat(1025)});
    assert!(create(long).await.invalid().contains("1024"));
    let pairs: serde_json::Map<_, _> = (0..17).map(|n| (n.to_string(), json!(""))).collect();
    assert!(create(json!({"name": "x", "metadata": pairs})).await.invalid().contains("16 pairs"));
    assert!(create(json!({"name": "x", "metadata": {"a": 1}})).await.invalid().contains("string"));
    assert!(server.get("/v1/memory_stores").await.ok()["data"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn stores_are_listed_newest_first_with_filters() {
    let server = server();
    for number in 0..45 {
        server.clock.advance(std::time::Duration::from_secs(1));
        server.store(&format!("store {number}")).await;
    }
    let first = server.get("/v1/memory_stores").await.ok();
    assert_eq!(first["data"].as_array().unwrap().len(), 20);
    let all = server.all("/v1/memory_stores?limit=7").await;
    assert_eq!(all.len(), 45);
    assert_eq!(texts(&all, "name")[..2], ["store 44", "store 43"]);
    let span = "/v1/memory_stores?created_at%5Bgte%5D=2026-01-01T00:00:10Z&created_at[lte]=2026-01-01T00:00:12Z";
    assert_eq!(texts(&server.all(span).await, "name"), ["store 11", "store 10", "store 9"]);
    let naive = "/v1/memory_stores?created_at[gte]=2026-01-01T00:00:45";
    assert_eq!(server.all(naive).await.len(), 1);
    for wrong in
        ["limit=0", "limit=101", "limit=x", "page=x", "created_at[gte]=soon", "include_archived=1"]
    {
        server.get(&format!("/v1/memory_stores?{wrong}")).await.invalid();
    }
    assert_eq!(server.get("/v1/memory_stores?beta=true&unknown=1").await.status, 200);
}

#[tokio::test]
async fn an_update_changes_what_is_given_by_post_and_by_patch() {
    let server = server();
    let uri = server.store("before").await;
    server.clock.advance(std::time::Duration::from_secs(1));
    let body = json!({"description": "what for", "metadata": {"a": "1", "b": "2"}});
    let updated = server.post(&uri, body).await.ok();
    assert_eq!((&updated["name"], &updated["description"]), (&json!("before"), &json!("what for")));
    assert_ne!(updated["updated_at"], updated["created_at"]);
    let body = json!({"name": null, "metadata": {"a": null, "b": "3"}, "description": ""});
    let patched = server.call_as(&server.key, Method::PATCH, &uri, body).await.ok();
    assert_eq!(patched["metadata"], json!({"b": "3"}));
    assert_eq!((&patched["name"], &patched["description"]), (&json!("before"), &json!("")));
    assert_eq!(server.post(&uri, json!({})).await.ok(), patched);
    server.post(&uri, json!({"color": "red"})).await.invalid();
    server.post(&uri, Value::Null).await.invalid();
}

#[tokio::test]
async fn archiving_is_permanent_and_hides_the_store() {
    let server = server();
    let uri = server.store("old").await;
    let archived = server.post(&format!("{uri}/archive"), Value::Null).await.ok();
    assert!(archived["archived_at"].is_string());
    assert_eq!(archived["archived_at"], archived["updated_at"]);
    assert_eq!(server.post(&format!("{uri}/archive"), json!({})).await.ok(), archived);
    assert_eq!(server.get(&uri).await.ok(), archived);
    assert!(server.all("/v1/memory_stores").await.is_empty());
    assert_eq!(server.all("/v1/memory_stores?include_archived=true").await.len(), 1);
    server.post(&uri, json!({"name": "new"})).await.invalid();
}

#[tokio::test]
async fn a_deleted_store_is_gone() {
    let server = server();
    let uri = server.store("doomed").await;
    server.memory(&uri, "/a", "x").await;
    let id = uri.rsplit('/').next().unwrap();
    let deleted = server.delete(&uri).await.ok();
    assert_eq!(deleted, json!({"id": id, "type": "memory_store_deleted"}));
    server.get(&uri).await.error(404, "not_found_error");
    server.delete(&uri).await.error(404, "not_found_error");
    server.get(&format!("{uri}/memories")).await.error(404, "not_found_error");
}

#[tokio::test]
async fn malformed_ids_are_not_found() {
    let server = server();
    for id in ["x", "memstore_", "mem_01111111111111111111111", "memstore_01%00", "%2e%2e"] {
        server.get(&format!("/v1/memory_stores/{id}")).await.error(404, "not_found_error");
    }
}

#[tokio::test]
async fn a_full_workspace_names_its_limit() {
    let limits = Limits { stores_per_workspace_max: 1, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    server.store("one").await;
    let reply = server.post("/v1/memory_stores", json!({"name": "two"})).await;
    assert!(reply.invalid().contains("1 stores"));
}
