//! Streams end with the token that opened them, and deliver only what their reader may see.

use std::time::Duration;

use axum::http::Method;
use quipu_core::engine::{NewAttachment, NewKey, NewSession, SessionToken};
use quipu_core::model::{Access, Forwarding, Instructions, KeyId, Name, Role};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::events::{follow, next, opened_with, piece};
use super::mcp::{Client, event, message, next_event, request};
use super::{Server, server, server_with};

const MINUTE: Duration = Duration::from_mins(1);

fn key(server: &Server, expires_in: Option<Duration>) -> KeyId {
    let name = Name::new("maker").expect("a name");
    let expires_at = expires_in.map(|time| server.engine.now().plus(time));
    let new = NewKey {
        name,
        role: Role::ReadWrite,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    server.engine.create_key(server.workspace, &new).expect("a key").0.id
}

fn token(server: &Server, store: &str, key: KeyId) -> String {
    let store = store.rsplit('/').next().expect("an id").parse().expect("an id");
    let instructions = Instructions::default();
    let attachments = vec![NewAttachment { store, access: Access::ReadWrite, instructions }];
    let titled = NewSession::titled("agent", attachments, SessionToken::Issue);
    let new = NewSession { key: Some(key), ..titled };
    let (_, token) = server.engine.create_session(server.workspace, &new).expect("a session");
    token.expect("a token").reveal().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_streams_of_a_token_end_when_its_key_is_revoked() {
    let server = server();
    follow(&server);
    let store = server.store("s").await;
    let (revoked, other) = (key(&server, None), key(&server, None));
    let (of_revoked, of_other) = (token(&server, &store, revoked), token(&server, &store, other));
    let mut ending = opened_with(&server, &of_revoked).await;
    let mut going_on = opened_with(&server, &of_other).await;
    let client = Client::new(&server, &of_revoked).await;
    let listening = server.app.router().oneshot(client.bare(Method::GET)).await;
    let mut of_mcp = listening.expect("an answer").into_body();
    client.tools().await;
    server.engine.revoke_key(revoked).expect("a key");
    // Nothing else happens that could wake them.
    assert_eq!(piece(&mut ending).await, None);
    assert_eq!(next_event(&mut of_mcp).await, None);
    client.send(&message("tools/list", &json!({}))).await.error(401, "authentication_error");
    server.memory(&store, "/a", "x").await;
    assert!(next(&mut going_on).await.starts_with("id: 2-"));
}

/// Reads a stream that nothing happens on to its end.
async fn ends(stream: &mut axum::body::Body) {
    while let Some(text) = piece(stream).await {
        assert_eq!(text, ": still here\n\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_or_the_key_of_it_expires() {
    let limits = Limits { session_token_valid_for: 5 * MINUTE, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let store = server.store("s").await;
    let of_key = token(&server, &store, key(&server, Some(2 * MINUTE)));
    let own = token(&server, &store, key(&server, None));
    let mut of_key = opened_with(&server, &of_key).await;
    let mut own = opened_with(&server, &own).await;
    server.clock.advance(2 * MINUTE);
    ends(&mut of_key).await;
    assert_eq!(next(&mut own).await, ": still here\n\n");
    server.clock.advance(3 * MINUTE + Duration::from_secs(1));
    ends(&mut own).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_a_store_is_delivered_to_those_who_could_see_it() {
    let server = server();
    follow(&server);
    let (gone, stays) = (server.store("gone").await, server.store("stays").await);
    let workspace = server.engine.create_workspace(&Name::new("other").expect("a name"));
    let elsewhere = workspace.expect("a workspace").id;
    let id = |store: &str| store.rsplit('/').next().expect("an id").parse().expect("an id");
    let keys = [
        server.new_key(Role::ReadOnly, None),
        server.new_key(Role::ReadOnly, Some(vec![id(&gone)])),
        server.new_key(Role::ReadOnly, Some(vec![id(&stays)])),
        server.new_key_in(elsewhere, Role::Admin, None),
    ];
    let mut streams = Vec::new();
    for key in &keys {
        streams.push(opened_with(&server, key).await);
    }
    server.delete(&gone).await.ok();
    // So that every stream has something to deliver.
    server.memory(&stays, "/a", "x").await;
    let foreign = Server { key: keys[3].clone(), ..server };
    foreign.store("foreign").await;
    let mut deletions = Vec::new();
    for stream in &mut streams {
        deletions.push(next(stream).await.contains("memory_store.deleted"));
        if deletions.len() == 2 {
            // The key that was limited to the store has nothing else.
            assert_eq!(deletions, [true, true]);
        }
    }
    assert_eq!(deletions, [true, true, false, false]);
    // The same holds for those who come back later.
    let uri = "/quipu/events?after=0";
    let later = |key: &str| {
        let request = axum::http::Request::get(uri).header("x-api-key", key);
        let request = request.body(axum::body::Body::empty()).expect("a request");
        foreign.app.router().oneshot(request)
    };
    for (key, is_told) in [(&keys[0], true), (&keys[2], false), (&keys[3], false)] {
        let mut stream = later(key).await.expect("an answer").into_body();
        assert_eq!(next(&mut stream).await.contains("memory_store.deleted"), is_told);
    }
}

#[tokio::test]
async fn an_mcp_client_with_a_long_name_is_rejected_with_an_explanation() {
    let server = server();
    for field in ["name", "version", "title"] {
        let mut about = json!({"name": "web", "version": "3"});
        about[field] = json!("x".repeat(257));
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about,
        });
        let reply = server.send(request(&server.key, &[], &message("initialize", &params))).await;
        let text = event(&reply).to_string() + &reply.body.to_string();
        assert!(text.contains("must have at most 256 characters"), "{field}: {text}");
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": about,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let arguments = json!({"title": "Tea", "content": "x"});
        let params = json!({"name": "write_note", "arguments": arguments, "_meta": meta});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "write_note"),
        ];
        let body = message("tools/call", &params);
        let reply = server.send(request(&server.key, &headers, &body)).await;
        let text = event(&reply).to_string() + &reply.body.to_string();
        assert!(text.contains("must have at most 256 characters"), "{field}: {text}");
    }
    assert_eq!(server.all("/v1/sessions").await, Vec::<Value>::new());
}
