//! Sessions and their tokens: who sees them, and when they end.

use std::time::Duration;

use axum::http::Method;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, KeyId, Name, Role, StoreId};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};

use super::{Reply, Server, server, server_with, texts};

fn id(address: &str) -> &str {
    address.rsplit('/').next().expect("an address has an id")
}

fn limited(server: &Server, role: Role, stores: &[&str]) -> String {
    let stores = stores.iter().map(|store| id(store).parse::<StoreId>().expect("an id"));
    server.new_key(role, Some(stores.collect()))
}

/// Starts a session with stores and their access.
async fn start(server: &Server, key: &str, stores: &[(&str, &str)]) -> Reply {
    let resource = |(store, access): &(&str, &str)| {
        json!({"type": "memory_store", "memory_store_id": id(store), "access": access,
            "instructions": "secret"})
    };
    let resources: Vec<_> = stores.iter().map(resource).collect();
    let body = json!({"agent": "a", "environment_id": "e", "resources": resources});
    server.call_as(key, Method::POST, "/v1/sessions", body).await
}

async fn started(server: &Server, key: &str, stores: &[(&str, &str)]) -> (String, String) {
    // Sessions of one millisecond come in no particular order.
    server.clock.advance(Duration::from_millis(1));
    let reply = start(server, key, stores).await;
    let token = reply.headers["quipu-session-token"].to_str().expect("a text").to_owned();
    (reply.ok()["id"].as_str().expect("an id").to_owned(), token)
}

async fn listed(server: &Server, key: &str, query: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut uri = format!("/v1/sessions?{query}");
    loop {
        let page = server.call_as(key, Method::GET, &uri, Value::Null).await.ok();
        let data = page["data"].as_array().expect("a list");
        ids.extend(texts(data, "id"));
        let Some(next) = page["next_page"].as_str() else { return ids };
        assert!(!data.is_empty(), "an empty page has a next page");
        uri = format!("/v1/sessions?{query}&page={next}");
    }
}

#[tokio::test]
async fn a_session_of_other_stores_is_not_found() {
    let server = server();
    let (alpha, beta) = (server.store("alpha").await, server.store("beta").await);
    let admin = server.key.clone();
    let key = limited(&server, Role::Admin, &[&alpha]);
    let (foreign, _) = started(&server, &admin, &[(&beta, "read_write")]).await;
    let (mixed, _) = started(&server, &admin, &[(&alpha, "read_only"), (&beta, "read_only")]).await;
    let absent = format!("sesn_01{}", "1".repeat(22));
    for session in [&foreign, &mixed] {
        for (method, uri) in [
            (Method::GET, format!("/v1/sessions/{session}")),
            (Method::POST, format!("/v1/sessions/{session}")),
            (Method::PATCH, format!("/v1/sessions/{session}")),
            (Method::POST, format!("/v1/sessions/{session}/archive")),
            (Method::DELETE, format!("/v1/sessions/{session}")),
            (Method::GET, format!("/quipu/sessions/{session}/prompt")),
            (Method::POST, format!("/quipu/sessions/{session}/token")),
        ] {
            let reply = server.call_as(&key, method.clone(), &uri, json!({})).await;
            let message = reply.error(404, "not_found_error");
            let other = uri.replace(session.as_str(), &absent);
            let reply = server.call_as(&key, method.clone(), &other, json!({})).await;
            let absent_message = reply.error(404, "not_found_error");
            assert_eq!(message.replace(session.as_str(), &absent), absent_message, "{uri}");
        }
        assert_eq!(server.get(&format!("/v1/sessions/{session}")).await.ok()["status"], "idle");
    }
}

#[tokio::test]
async fn a_limited_key_sees_the_sessions_that_reach_no_further_than_itself() {
    let server = server();
    let (alpha, beta) = (server.store("alpha").await, server.store("beta").await);
    let admin = server.key.clone();
    let writer = limited(&server, Role::ReadWrite, &[&alpha]);
    let reader = limited(&server, Role::ReadOnly, &[&alpha]);
    let manager = limited(&server, Role::Admin, &[&alpha]);
    let (read, _) = started(&server, &admin, &[(&alpha, "read_only")]).await;
    let (write, _) = started(&server, &admin, &[(&alpha, "read_write")]).await;
    let (foreign, _) = started(&server, &admin, &[(&beta, "read_only")]).await;
    let (bare, _) = started(&server, &admin, &[]).await;
    let (made, _) = started(&server, &writer, &[]).await;
    let all = [&made, &bare, &foreign, &write, &read];
    let seen_by = |key: String| {
        let server = &server;
        async move {
            let listed = listed(server, &key, "limit=2").await;
            for session in all {
                let uri = format!("/v1/sessions/{session}");
                let status = server.call_as(&key, Method::GET, &uri, Value::Null).await.status;
                assert_eq!(status == 200, listed.contains(session));
            }
            listed
        }
    };
    assert_eq!(seen_by(admin.clone()).await, all.map(String::as_str));
    let unlimited_reader = server.new_key(Role::ReadOnly, None);
    assert_eq!(seen_by(unlimited_reader).await, [made.as_str(), &bare, &foreign, &read]);
    assert_eq!(seen_by(writer.clone()).await, [made.as_str(), &write, &read]);
    assert_eq!(seen_by(reader).await, [read.as_str()]);
    assert_eq!(seen_by(manager).await, [made.as_str(), &bare, &write, &read]);
    // What it made stays its own when a store of it is gone.
    let both = limited(&server, Role::ReadWrite, &[&alpha, &beta]);
    let (own, _) = started(&server, &both, &[(&alpha, "read_write"), (&beta, "read_write")]).await;
    server.delete(&beta).await.ok();
    assert_eq!(seen_by(both).await, [own.as_str(), &write, &read]);
}

#[tokio::test]
async fn pages_of_a_limited_key_are_full_and_end_without_an_empty_one() {
    let server = server();
    let (alpha, beta) = (server.store("alpha").await, server.store("beta").await);
    let admin = server.key.clone();
    for number in 0..40 {
        let store = if number % 8 == 0 { &alpha } else { &beta };
        started(&server, &admin, &[(store, "read_only")]).await;
    }
    let key = limited(&server, Role::ReadOnly, &[&alpha]);
    for order in ["asc", "desc"] {
        let mut pages = Vec::new();
        let mut uri = format!("/v1/sessions?limit=2&order={order}");
        loop {
            let page = server.call_as(&key, Method::GET, &uri, Value::Null).await.ok();
            pages.push(page["data"].as_array().expect("a list").len());
            let Some(next) = page["next_page"].as_str() else { break };
            uri = format!("/v1/sessions?limit=2&order={order}&page={next}");
        }
        assert_eq!(pages, [2, 2, 1]);
    }
    assert_eq!(listed(&server, &key, "limit=5").await.len(), 5);
}

#[tokio::test]
async fn a_token_is_renewed_by_its_creator_or_an_admin() {
    let server = server();
    let alpha = server.store("alpha").await;
    let maker = limited(&server, Role::ReadWrite, &[&alpha]);
    let other = limited(&server, Role::ReadWrite, &[&alpha]);
    let unlimited = server.new_key(Role::ReadWrite, None);
    let manager = limited(&server, Role::Admin, &[&alpha]);
    let (session, token) = started(&server, &maker, &[(&alpha, "read_write")]).await;
    let uri = format!("/quipu/sessions/{session}/token");
    for key in [&other, &unlimited, &token] {
        let reply = server.call_as(key, Method::POST, &uri, Value::Null).await;
        reply.error(403, "permission_error");
    }
    let reply = server.call_as(&other, Method::POST, &uri, Value::Null).await;
    assert!(reply.error(403, "permission_error").contains("by the key that made the session"));
    for key in [&maker, &manager] {
        let renewed = server.call_as(key, Method::POST, &uri, Value::Null).await.ok();
        let token = renewed["token"].as_str().expect("a token");
        assert_eq!(server.call_as(token, Method::GET, &alpha, Value::Null).await.status, 200);
        assert!(renewed["token_expires_at"].as_str().expect("a moment").starts_with("2026-01-31"));
    }
    assert_eq!(server.call_as(&token, Method::GET, &alpha, Value::Null).await.status, 401);
}

fn new_key(server: &Server, expires_in: Option<Duration>) -> (KeyId, String) {
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
    let (key, secret) = server.engine.create_key(server.workspace, &new).expect("a key");
    (key.id, secret.reveal().to_owned())
}

#[tokio::test]
async fn a_token_ends_with_its_key_and_after_its_time() {
    let hour = Duration::from_hours(1);
    let limits = Limits { session_token_valid_for: 4 * hour, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let store = server.store("s").await;
    let status = |token: String| {
        let (server, store) = (&server, store.clone());
        async move { server.call_as(&token, Method::GET, &store, Value::Null).await.status }
    };
    let (revoked, secret) = new_key(&server, None);
    let (_, of_revoked) = started(&server, &secret, &[(&store, "read_only")]).await;
    let (_, secret) = new_key(&server, Some(hour));
    let reply = start(&server, &secret, &[(&store, "read_only")]).await;
    let expires_at = server.engine.now().plus(hour).to_string();
    assert_eq!(reply.headers["quipu-session-token-expires-at"], expires_at);
    let of_expiring = reply.headers["quipu-session-token"].to_str().unwrap().to_owned();
    let (_, own) = started(&server, &server.key, &[(&store, "read_only")]).await;
    for token in [&of_revoked, &of_expiring, &own] {
        assert_eq!(status(token.clone()).await, 200);
    }
    server.engine.revoke_key(revoked).unwrap();
    assert_eq!(status(of_revoked).await, 401);
    server.clock.advance(hour);
    assert_eq!(status(of_expiring).await, 401);
    assert_eq!(status(own.clone()).await, 200);
    server.clock.advance(3 * hour + Duration::from_secs(1));
    assert_eq!(status(own).await, 401);
}

#[tokio::test]
async fn invalid_session_fields_are_rejected_and_others_are_echoed() {
    let server = server();
    let with = |field: &str, value: Value| {
        let mut body = json!({"agent": "a", "environment_id": "e"});
        body[field] = value;
        body
    };
    let long = "x".repeat(257);
    for (field, value) in [
        ("title", json!("ü".repeat(501))),
        ("agent", json!(long)),
        ("agent", json!({"id": long})),
        ("agent", json!({"id": "a", "model": long})),
        ("environment_id", json!(long)),
        ("vault_ids", json!([long])),
        ("vault_ids", json!(vec!["v"; 51])),
        ("metadata", json!({"k": "x".repeat(513)})),
        ("initial_events", json!([{"type": "agent.message", "content": []}])),
        ("initial_events", json!(vec![json!({"type": "user.message", "content": []}); 51])),
        ("budget", json!({"max_list_cost": 1})),
        ("color", json!("red")),
    ] {
        let message = server.post("/v1/sessions", with(field, value)).await.invalid();
        assert!(message.contains(field), "{field}: {message}");
    }
    assert_eq!(server.all("/v1/sessions").await.len(), 0);
    for (field, value) in [
        ("title", json!("ü".repeat(500))),
        ("environment_id", json!("x".repeat(256))),
        ("vault_ids", json!(["vlt_1", "vlt_2"])),
    ] {
        let session = server.post("/v1/sessions", with(field, value.clone())).await.ok();
        assert_eq!(session[field], value);
        let uri = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        assert_eq!(server.get(&uri).await.ok()[field], value);
    }
    for (field, value) in [("initial_events", json!([])), ("budget", Value::Null)] {
        server.post("/v1/sessions", with(field, value)).await.ok();
    }
    let session = server.all("/v1/sessions").await.remove(0);
    let uri = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    for body in [
        json!({"title": "ü".repeat(501)}),
        json!({"vault_ids": ["v"]}),
        json!({"agent": {"system": "be kind"}}),
        json!({"budget": {}}),
        json!({"color": "red"}),
    ] {
        server.post(&uri, body).await.invalid();
    }
    server.store("memories").await;
    let run = json!({"title": "x".repeat(501)});
    server.post("/quipu/stores/memories/tool/session", run).await.invalid();
}

#[tokio::test]
async fn a_workspace_with_too_many_sessions_explains_what_to_do() {
    let limits = Limits { sessions_per_workspace_max: 1, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let admin = server.key.clone();
    let (session, _) = started(&server, &admin, &[]).await;
    let message = start(&server, &admin, &[]).await.invalid();
    assert!(message.contains("1 sessions") && message.contains("delete sessions"), "{message}");
    server.delete(&format!("/v1/sessions/{session}")).await.ok();
    start(&server, &admin, &[]).await.ok();
}

#[tokio::test]
async fn an_unknown_name_creates_no_store_and_reveals_nothing() {
    let server = server();
    let alpha = server.store("alpha").await;
    server.store("beta").await;
    let view = json!({"command": "view", "path": "/memories"});
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    for (uri, body) in [
        ("/quipu/stores/alhpa/tool", &view),
        ("/quipu/stores/alhpa/tool", &create),
        ("/quipu/stores/alhpa/tool/session", &json!({})),
    ] {
        let reply = server.post(uri, body.clone()).await;
        let message = reply.error(404, "not_found_error");
        assert!(message.contains("no store is named `alhpa`"), "{message}");
    }
    assert_eq!(server.all("/v1/memory_stores").await.len(), 2);
    // The names of others are nothing that a limited key could find out by guessing.
    let key = limited(&server, Role::ReadWrite, &[&alpha]);
    let mut messages = Vec::new();
    for name in ["beta", "bet", "nothing"] {
        let uri = format!("/quipu/stores/{name}/tool");
        let reply = server.call_as(&key, Method::POST, &uri, view.clone()).await;
        messages.push(reply.error(403, "permission_error"));
        let uri = format!("/quipu/search?store={name}&query=x");
        let reply = server.call_as(&key, Method::GET, &uri, Value::Null).await;
        messages.push(reply.error(403, "permission_error"));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[tokio::test]
async fn metrics_need_a_key_unless_they_are_open() {
    let server = server();
    let store = server.store("s").await;
    let ask = async |server: &Server, key: &str| {
        server.call_as(key, Method::GET, "/metrics", Value::Null).await.status
    };
    assert_eq!(ask(&server, "wrong").await, 401);
    for role in Role::ALL {
        assert_eq!(ask(&server, &server.new_key(*role, None)).await, 200);
        assert_eq!(ask(&server, &limited(&server, *role, &[&store])).await, 403);
    }
    let settings = HttpSettings { metrics_open: true, ..HttpSettings::default() };
    assert_eq!(ask(&server_with(settings, Limits::default()), "wrong").await, 200);
}

#[tokio::test]
async fn a_cursor_is_valid_for_its_own_list_only() {
    let server = server();
    let (alpha, beta) = (server.store("alpha").await, server.store("beta").await);
    for store in [&alpha, &beta] {
        for number in 0..5 {
            server.memory(store, &format!("/d/{number}"), "x").await;
        }
    }
    let admin = server.key.clone();
    for _ in 0..5 {
        started(&server, &admin, &[(&alpha, "read_only")]).await;
    }
    let lists = [
        ("/v1/memory_stores".to_owned(), "include_archived=true"),
        (format!("{alpha}/memories"), "path_prefix=/d/"),
        (format!("{beta}/memories"), "path_prefix=/d/"),
        (format!("{alpha}/memories"), "path_prefix=/d/&depth=1"),
        (format!("{alpha}/memory_versions"), "operation=created"),
        ("/v1/sessions".to_owned(), "order=asc"),
        ("/v1/sessions".to_owned(), "order=desc&agent_id=a"),
        (format!("/quipu/stores/{}/recent", id(&alpha)), "timeframe=7d"),
    ];
    let mut cursors = Vec::new();
    for (path, query) in &lists {
        let page = server.get(&format!("{path}?{query}&limit=1")).await.ok();
        cursors.push(page["next_page"].as_str().expect("a cursor").to_owned());
    }
    for (from, cursor) in cursors.iter().enumerate() {
        for (to, (path, query)) in lists.iter().enumerate() {
            let reply = server.get(&format!("{path}?{query}&limit=2&page={cursor}")).await;
            if from == to {
                assert!(!reply.ok()["data"].as_array().expect("a list").is_empty());
            } else {
                let message = reply.invalid();
                assert!(message.starts_with("page: not a cursor of this list"), "{message}");
            }
        }
        let (path, _) = &lists[from];
        server.get(&format!("{path}?page={cursor}")).await.invalid();
    }
}
