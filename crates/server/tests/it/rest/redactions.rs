//! Redactions by selection, and receipts.

use axum::http::Method;
use quipu_core::model::Role;
use serde_json::{Value, json};

use super::{Server, server};

const SECRET: &str = "sesame-4711";

/// Returns the address of a store with a leaked text in an old and in a live memory.
async fn leaked(server: &Server) -> String {
    let store = server.store("notes").await;
    let memories = format!("{store}/memories");
    let body = json!({"path": "/old.md", "content": format!("the key: {SECRET}")});
    let old = server.post(&memories, body).await.ok();
    let address = format!("{memories}/{}", old["id"].as_str().expect("an id"));
    server.post(&address, json!({"content": "elsewhere"})).await.ok();
    let body = json!({"path": "/live.md", "content": format!("again {SECRET}")});
    server.post(&memories, body).await.ok();
    format!("/quipu/stores/{}/redactions", store.rsplit('/').next().expect("an id"))
}

#[tokio::test]
async fn a_plan_is_carried_out_and_leaves_a_receipt() {
    let server = server();
    let uri = leaked(&server).await;
    let wanted = json!({"matching": SECRET, "and_heads": true, "dry_run": true});
    let plan = server.post(&uri, wanted).await.ok();
    assert_eq!((&plan["versions_count"], &plan["heads_count"]), (&json!(2), &json!(1)));
    let digest = plan["digest"].as_str().unwrap();
    let run = |expect: &str| json!({"matching": SECRET, "and_heads": true, "expect": expect, "reason": "a leak"});
    let stale = server.post(&uri, run("00000000")).await;
    assert_eq!(stale.status, 409);
    let receipt = server.post(&uri, run(digest.get(..12).unwrap())).await.ok();
    assert_eq!(receipt["memory_version_ids"].as_array().unwrap().len(), 2);
    assert_eq!(receipt["memories"][0]["change"], "edited");
    assert_eq!(receipt["proof"]["hits_left"], 0);
    assert_eq!(receipt["reason"], "a leak");
    assert!(!receipt.to_string().contains(SECRET));
    let receipts = server.get("/quipu/receipts").await.ok();
    assert_eq!(receipts["data"], json!([receipt]));
    let again = server.post(&uri, json!({"matching": SECRET, "dry_run": true})).await.ok();
    assert_eq!(again["versions_count"], 0);
}

#[tokio::test]
async fn live_memories_are_refused_and_nothing_is_changed() {
    let server = server();
    let uri = leaked(&server).await;
    let message = server.post(&uri, json!({"matching": SECRET})).await.invalid();
    assert!(message.contains("/live.md"), "{message}");
    let plan = server.post(&uri, json!({"matching": SECRET, "dry_run": true})).await.ok();
    assert_eq!(plan["versions_count"], 2);
}

#[tokio::test]
async fn bad_selections_are_refused() {
    let server = server();
    let uri = leaked(&server).await;
    let bad = [
        json!({}),
        json!({"since": "2026-11-18T00:00:00Z"}),
        json!({"matching": ""}),
        json!({"regex": "a*"}),
        json!({"regex": "("}),
        json!({"matching": "a", "regex": "b"}),
        json!({"matching": "a", "since": "yesterday-ish"}),
        json!({"matching": SECRET, "and_heads": true, "reason": format!("it was {SECRET}")}),
        json!({"matching": SECRET, "and_heads": true, "expect": "12"}),
        json!({"actor_id": "nobody"}),
        json!({"path": "no path"}),
        json!({"memory_version_ids": []}),
        json!({"matching": SECRET, "unknown": 1}),
    ];
    for body in bad {
        server.post(&uri, body).await.invalid();
    }
    assert_eq!(server.get("/quipu/receipts").await.ok()["data"], json!([]));
}

#[tokio::test]
async fn a_regular_expression_and_version_ids_select_too() {
    let server = server();
    let uri = leaked(&server).await;
    let plan = server.post(&uri, json!({"regex": "sesame-[0-9]+", "dry_run": true})).await.ok();
    let versions = plan["stores"][0]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    let ids: Vec<&Value> = versions.iter().map(|version| &version["memory_version_id"]).collect();
    let body = json!({"memory_version_ids": [ids[1]]});
    let receipt = server.post(&uri, body).await.ok();
    assert_eq!(receipt["memory_version_ids"], json!([ids[1]]));
    assert_eq!(receipt["proof"]["hits_left"], 0);
}

#[tokio::test]
async fn a_key_of_one_store_is_told_nothing_of_others() {
    let server = server();
    let uri = leaked(&server).await;
    let other = server.store("other").await;
    server.memory(&other, "/copy.md", SECRET).await;
    let dry = json!({"matching": SECRET, "dry_run": true});
    let plan = server.post(&uri, dry.clone()).await.ok();
    assert!(other.ends_with(plan["other_stores"][0]["memory_store_id"].as_str().unwrap()));
    let store = uri.split('/').nth(3).unwrap().parse().unwrap();
    let key = server.new_key(Role::Admin, Some(vec![store]));
    let plan = server.call_as(&key, Method::POST, &uri, dry).await.ok();
    assert_eq!(plan["other_stores"], json!([]));
    let receipts = server.call_as(&key, Method::GET, "/quipu/receipts", Value::Null).await;
    assert_eq!(receipts.status, 403);
}

#[tokio::test]
async fn a_text_that_comes_back_is_pointed_out_or_refused() {
    let server = server();
    let uri = leaked(&server).await;
    let store = uri.split('/').nth(3).unwrap();
    server.post(&uri, json!({"matching": SECRET, "and_heads": true})).await.ok();
    let memories = format!("/v1/memory_stores/{store}/memories");
    let body = json!({"path": "/new.md", "content": format!("\n{SECRET}")});
    let written = server.post(&memories, body).await;
    assert_eq!(written.headers["quipu-credentials-found"], "redacted-text;line=2");
    let policy = format!("/quipu/stores/{store}/policy");
    let changed = server.post(&policy, json!({"forgotten": "refuse"})).await.ok();
    assert_eq!(changed["forgotten"], "refuse");
    server.post(&policy, json!({"forgotten": "maybe"})).await.invalid();
    let body = json!({"path": "/newer.md", "content": SECRET});
    let message = server.post(&memories, body).await.invalid();
    assert!(message.contains("redacted from this store"), "{message}");
}
