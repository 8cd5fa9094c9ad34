//! What is read through any door does not expire.

use std::time::Duration;

use axum::http::Method;
use quipu_core::model::Actor;
use quipu_service::tool::{MemoryTool, ToolSettings, stdio};
use serde_json::{Value, json};

use super::mcp::Client;
use super::{Server, server};

const DAY: Duration = Duration::from_hours(24);

/// A store that deletes what nobody has used for a week, with two memories of six days ago.
struct Aged {
    server: Server,
    store: String,
    read: Value,
}

async fn aged() -> Aged {
    let server = server();
    let store = server.store("memories").await;
    let policy = store.replace("/v1/memory_stores", "/quipu/stores") + "/policy";
    server.post(&policy, json!({"expire_after_days": 7})).await.ok();
    let read = server.memory(&store, "/read.md", "green").await;
    server.memory(&store, "/unused.md", "green").await;
    server.clock.advance(DAY * 6);
    Aged { server, store, read }
}

impl Aged {
    async fn assert_kept(self) {
        self.server.clock.advance(DAY * 2);
        self.server.engine.prune().expect("it prunes");
        let left = self.server.all(&format!("{}/memories", self.store)).await;
        assert_eq!(super::texts(&left, "path"), ["/read.md"]);
    }
}

#[tokio::test]
async fn a_memory_that_is_retrieved_does_not_expire() {
    let aged = aged().await;
    let id = aged.read["id"].as_str().expect("an id");
    aged.server.get(&format!("{}/memories/{id}", aged.store)).await.ok();
    aged.assert_kept().await;
}

#[tokio::test]
async fn a_memory_that_the_memory_tool_views_over_http_does_not_expire() {
    let aged = aged().await;
    let view = json!({"command": "view", "path": "/memories/read.md"});
    let key = aged.server.key.clone();
    let uri = "/quipu/stores/memories/tool";
    aged.server.call_as(&key, Method::POST, uri, view).await.ok();
    aged.assert_kept().await;
}

#[tokio::test]
async fn a_memory_that_the_memory_tool_views_over_stdio_does_not_expire() {
    let aged = aged().await;
    let store = aged.store.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
    let (engine, settings) = (aged.server.engine.clone(), ToolSettings::default());
    let tool = MemoryTool::new(engine, store, Actor::expiry(), settings);
    let view = json!({"command": "view", "path": "/memories/read.md"}).to_string();
    stdio::serve(&tool, view.as_bytes(), Vec::new()).expect("it serves");
    aged.assert_kept().await;
}

#[tokio::test]
async fn what_an_mcp_client_reads_does_not_expire() {
    let view = json!({"command": "view", "path": "/memories/read.md"});
    for (tool, arguments) in [
        ("read_note", json!({"identifier": "read"})),
        ("read_note", json!({"identifier": "/read.md"})),
        ("build_context", json!({"url": "memory://memories/read"})),
        ("memory", view),
    ] {
        let aged = aged().await;
        let key = aged.server.key.clone();
        let answer = Client::new(&aged.server, &key).await.call(tool, arguments).await;
        assert_eq!(answer["isError"], false, "{tool}: {answer}");
        aged.assert_kept().await;
    }
}

#[tokio::test]
async fn a_resource_that_is_read_does_not_expire() {
    let aged = aged().await;
    let key = aged.server.key.clone();
    let params = json!({"uri": "memory://memories/read.md"});
    let client = Client::new(&aged.server, &key).await;
    client.send(&super::mcp::message("resources/read", &params)).await;
    aged.assert_kept().await;
}
