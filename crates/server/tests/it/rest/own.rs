//! Quipu's own routes.

use axum::http::Method;
use quipu_core::model::Role;
use serde_json::{Value, json};

use super::{Server, server};

async fn tool(server: &Server, key: &str, store: &str, input: Value) -> super::Reply {
    server.call_as(key, Method::POST, &format!("/quipu/stores/{store}/tool"), input).await
}

#[tokio::test]
async fn the_memory_tool_works_over_http() {
    let server = server();
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    let answer = tool(&server, &server.key, "memories", create.clone()).await.ok();
    assert_eq!(
        answer,
        json!({"content": "File created successfully at: /memories/a.md", "is_error": false})
    );
    let answer = tool(&server, &server.key, "memories", create.clone()).await.ok();
    assert_eq!(answer["is_error"], true);
    let view = json!({"command": "view", "path": "/memories"});
    let answer = tool(&server, &server.key, "memories", view.clone()).await.ok();
    assert!(answer["content"].as_str().unwrap().ends_with("1B\t/memories/a.md"));
    let python = tool(&server, &server.key, "memories?strings=python", view.clone()).await;
    assert_eq!(python.status, 404, "a query is not part of the name");
    let uri = "/quipu/stores/memories/tool?strings=python";
    let answer = server.post(uri, view.clone()).await.ok();
    assert!(answer["content"].as_str().unwrap().contains("4K\t/memories\n"));
    server.post("/quipu/stores/memories/tool?strings=x", view.clone()).await.invalid();

    let reader = server.new_key(Role::ReadOnly, None);
    assert_eq!(tool(&server, &reader, "memories", view.clone()).await.ok()["is_error"], false);
    let answer = tool(&server, &reader, "memories", create).await.ok();
    assert!(answer["content"].as_str().unwrap().contains("read-only"));
    tool(&server, &reader, "unknown", view.clone()).await.error(404, "not_found_error");
    tool(&server, "wrong", "memories", view).await.error(401, "authentication_error");
}

#[tokio::test]
async fn a_run_of_the_memory_tool_is_a_session_of_its_own() {
    let server = server();
    let uri = "/quipu/stores/memories/tool/session";
    let run = server.post(uri, json!({"title": "a run"})).await.ok();
    let session = run["session_id"].as_str().expect("a session");
    let token = run["token"].as_str().expect("a token");
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    let answer = tool(&server, token, "memories", create.clone()).await.ok();
    assert_eq!(answer["is_error"], false);
    let store = server.all("/v1/memory_stores").await.remove(0);
    let store = format!("/v1/memory_stores/{}", store["id"].as_str().unwrap());
    let version = server.all(&format!("{store}/memory_versions")).await.remove(0);
    assert_eq!(version["created_by"], json!({"type": "session_actor", "session_id": session}));
    let shown = server.get(&format!("/v1/sessions/{session}")).await.ok();
    assert_eq!(shown["title"], "a run");
    tool(&server, token, "other", create.clone()).await.error(403, "permission_error");

    let own = server.call_as(token, Method::POST, uri, json!({})).await.ok();
    let expires_at = &run["token_expires_at"];
    assert!(expires_at.is_string());
    assert_eq!(own, json!({"session_id": session, "token": null, "token_expires_at": expires_at}));
    let reader = server.new_key(Role::ReadOnly, None);
    let nothing = json!({"session_id": null, "token": null, "token_expires_at": null});
    assert_eq!(server.call_as(&reader, Method::POST, uri, json!({})).await.ok(), nothing);
    server.post(uri, json!({"color": "red"})).await.invalid();
    server.post(&format!("{store}/archive"), Value::Null).await.ok();
    assert_eq!(server.post(uri, json!({})).await.ok(), nothing);
}

#[tokio::test]
async fn the_memory_tool_can_be_restricted_to_reading() {
    let server = server();
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    let uri = "/quipu/stores/memories/tool?access=read_only";
    let answer = server.post(uri, create.clone()).await.ok();
    assert!(answer["content"].as_str().unwrap().contains("read-only"), "{answer}");
    server.post("/quipu/stores/memories/tool?access=none", create).await.invalid();
}

#[tokio::test]
async fn a_policy_can_be_read_and_set() {
    let server = server();
    let store = server.store("s").await.replace("/v1/memory_stores", "/quipu/stores");
    let uri = format!("{store}/policy");
    assert_eq!(
        server.get(&uri).await.ok(),
        json!({"secrets": "warn", "forgotten": "warn", "writers": "everyone", "expire_after_days": null})
    );
    let set = json!({"secrets": "reject", "forgotten": "refuse", "writers": "people", "expire_after_days": 30});
    assert_eq!(server.post(&uri, set.clone()).await.ok(), set);
    let forever = server.post(&uri, json!({"expire_after_days": 0})).await.ok();
    let expected = json!({"secrets": "reject", "forgotten": "refuse", "writers": "people", "expire_after_days": null});
    assert_eq!(forever, expected);
    server.post(&uri, json!({"secrets": "maybe"})).await.invalid();
    server.post(&uri, json!({"color": "red"})).await.invalid();
}

#[tokio::test]
async fn old_versions_can_be_restored() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    let id = memory["id"].as_str().unwrap();
    server.post(&format!("{store}/memories/{id}"), json!({"content": "two"})).await.ok();
    let uri = store.replace("/v1/memory_stores", "/quipu/stores") + "/restore";
    let body = json!({"memory_version_id": memory["memory_version_id"]});
    let restored = server.post(&uri, body).await.ok();
    assert_eq!((&restored["content"], &restored["id"]), (&json!("one"), &memory["id"]));
    server.post(&uri, json!({"memory_version_id": "x"})).await.error(404, "not_found_error");
}

#[tokio::test]
async fn the_prompt_of_a_session_is_one_call_away() {
    let server = server();
    let store = server.store("Team notes").await;
    let resource = json!({"type": "memory_store", "memory_store_id": store.rsplit('/').next(), "access": "read_only"});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [resource]});
    let session = server.post("/v1/sessions", body).await.ok();
    let id = session["id"].as_str().unwrap();
    let prompt = server.get(&format!("/quipu/sessions/{id}/prompt?topic=tea")).await.ok();
    let prompt = prompt["prompt"].as_str().unwrap();
    assert!(prompt.contains("Remember only what concerns this: tea"));
    assert!(prompt.contains("`/mnt/memory/team-notes`: Team notes (read only"), "{prompt}");
}

#[tokio::test]
async fn every_family_of_metrics_is_there() {
    let server = server();
    server.call_as("a wrong key", Method::GET, "/v1/memory_stores", Value::Null).await;
    let metrics = server.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    for line in [
        "quipu_authentication_failures_total 1",
        "quipu_request_failures_total{type=\"authentication_error\"} 1",
        "quipu_webhook_deliveries_total{result=\"failed\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    for name in [
        "stores",
        "memories",
        "versions",
        "database_bytes",
        "index_bytes",
        "log_bytes",
        "index_lag",
        "feed_lag",
        "writers_waiting",
        "group_size_sum",
        "group_size_count",
        "mcp_connections",
        "log_lines_dropped_total",
    ] {
        let start = format!("quipu_{name} ");
        assert!(text.lines().any(|line| line.starts_with(&start)), "{start}: {text}");
    }
}

#[tokio::test]
async fn metrics_count_requests_by_route() {
    let server = server();
    server.store("s").await;
    server.get("/v1/memory_stores/x").await;
    let metrics = server.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    assert!(text.contains(
        "quipu_requests_total{method=\"POST\",route=\"/v1/memory_stores\",status=\"200\"} 1\n"
    ));
    assert!(text.contains("route=\"/v1/memory_stores/{store}\",status=\"404\"} 1\n"));
    assert!(text.contains("\nquipu_sequence 1\n"));
}
