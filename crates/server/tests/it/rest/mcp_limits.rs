//! How many MCP sessions a key may have, and which methods a revision has.

use axum::body::Body;
use axum::http::{Method, Request};
use quipu_core::model::Role;
use serde_json::json;
use tower::ServiceExt as _;

use super::mcp::{greeting, message, request};
use super::{Server, server};

/// As many as `docs/mcp.md` says.
const PER_KEY_MAX: usize = 64;

async fn begin(server: &Server, key: &str) -> (u16, String) {
    let reply = server.send(request(key, &[], &greeting())).await;
    let id = reply.headers.get("mcp-session-id").map(|id| id.to_str().expect("a text").to_owned());
    (reply.status, id.unwrap_or_default())
}

async fn ping(server: &Server, key: &str, session: &str) -> u16 {
    let headers = [("mcp-session-id", session)];
    server.send(request(key, &headers, &message("ping", &json!({})))).await.status
}

/// Opens the stream of a session, which is in use for as long as the answer lives.
async fn listen(server: &Server, session: &str) -> axum::response::Response {
    let request = Request::builder()
        .method(Method::GET)
        .uri("/mcp")
        .header("host", "127.0.0.1:8420")
        .header("accept", "text/event-stream")
        .header("x-api-key", &server.key)
        .header("mcp-session-id", session);
    let request = request.body(Body::empty()).expect("a request");
    server.app.router().oneshot(request).await.expect("an answer")
}

#[tokio::test]
async fn beyond_the_limit_the_least_recently_used_idle_connection_of_the_key_is_closed() {
    let server = server();
    let other = server.new_key(Role::ReadWrite, None);
    let (_, others) = begin(&server, &other).await;
    let mut sessions = Vec::new();
    for _ in 0..=PER_KEY_MAX {
        let (status, session) = begin(&server, &server.key).await;
        assert_eq!(status, 200);
        sessions.push(session);
        server.clock.advance(std::time::Duration::from_secs(1));
    }
    assert_eq!(ping(&server, &server.key, &sessions[0]).await, 404);
    assert_eq!(ping(&server, &server.key, &sessions[1]).await, 200);
    assert_eq!(ping(&server, &other, &others).await, 200);
}

#[tokio::test]
async fn connections_in_use_are_kept_and_the_next_one_is_rejected() {
    let server = server();
    let mut streams = Vec::new();
    for _ in 0..PER_KEY_MAX {
        let (_, session) = begin(&server, &server.key).await;
        streams.push(listen(&server, &session).await);
    }
    let refused = server.send(request(&server.key, &[], &greeting())).await;
    let message = refused.error(429, "rate_limit_error");
    assert!(message.contains("MCP sessions"), "{message}");
    streams.pop();
    assert_eq!(begin(&server, &server.key).await.0, 200);
}

#[tokio::test]
async fn methods_that_a_revision_removed_are_not_found() {
    let server = server();
    let headers = [("mcp-protocol-version", "2026-07-28")];
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    {
        let reply = server.send(request(&server.key, &headers, &message(method, &json!({})))).await;
        assert_eq!(reply.status, 404, "{method}: {}", reply.body);
        assert_eq!(reply.body["error"]["code"], -32601, "{method}: {}", reply.body);
        assert_eq!(reply.body["id"], 1);
    }
}
