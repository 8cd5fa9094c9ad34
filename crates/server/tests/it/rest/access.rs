//! Who may do what: keys, roles, workspaces, session tokens, headers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use futures_util::{StreamExt as _, stream};
use quipu_core::engine::{NewKey, NewStore};
use quipu_core::model::{Forwarding, Name, Role, StoreId};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use quipu_service::pool::PoolSettings;
use serde_json::{Value, json};

use super::{Server, server, server_with};

const STORES: &str = "/v1/memory_stores";

async fn with_headers(server: &Server, uri: &str, headers: &[(&str, &str)]) -> super::Reply {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn both_headers_for_a_key_are_accepted_and_no_others() {
    let server = server();
    let (key, bearer) = (server.key.clone(), format!("Bearer {}", server.key));
    for headers in [
        &[("x-api-key", key.as_str())][..],
        &[("authorization", bearer.as_str())],
        &[("x-api-key", key.as_str()), ("authorization", bearer.as_str())],
    ] {
        assert_eq!(with_headers(&server, STORES, headers).await.status, 200);
    }
    for headers in [
        &[][..],
        &[("x-api-key", "wrong")],
        &[("x-api-key", "")],
        &[("authorization", "Bearer ")],
        &[("authorization", key.as_str())],
        &[("authorization", "Basic x")],
        &[("x-api-key", key.as_str()), ("authorization", "Bearer other")],
    ] {
        let reply = with_headers(&server, STORES, headers).await;
        let message = reply.error(401, "authentication_error");
        assert!(!message.contains(&key));
    }
}

#[tokio::test]
async fn revoked_and_expired_keys_are_rejected_immediately() {
    let server = server();
    let name = Name::new("short").unwrap();
    let expires_at = Some("2026-01-01T01:00:00Z".parse().unwrap());
    let new = NewKey {
        name,
        role: Role::Admin,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, secret) = server.engine.create_key(server.workspace, &new).unwrap();
    let status =
        || async { server.call_as(secret.reveal(), Method::GET, STORES, Value::Null).await.status };
    assert_eq!(status().await, 200);
    server.clock.advance(Duration::from_hours(1));
    assert_eq!(status().await, 401);
    server.clock.set("2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(status().await, 200);
    server.engine.revoke_key(key.id).unwrap();
    assert_eq!(status().await, 401);
}

#[tokio::test]
async fn another_workspace_is_not_found() {
    let server = server();
    let store = server.store("mine").await;
    let memory = server.memory(&store, "/a", "x").await;
    let other = server.engine.create_workspace(&Name::new("other").unwrap()).unwrap();
    let foreign = server.new_key_in(other.id, Role::Admin, None);
    let memory = format!("{store}/memories/{}", memory["id"].as_str().unwrap());
    for uri in
        [store.clone(), memory, format!("{store}/memories"), format!("{store}/memory_versions")]
    {
        let reply = server.call_as(&foreign, Method::GET, &uri, Value::Null).await;
        reply.error(404, "not_found_error");
    }
    let listed = server.call_as(&foreign, Method::GET, STORES, Value::Null).await.ok();
    assert_eq!(listed["data"], json!([]));
    server
        .call_as(&foreign, Method::DELETE, &store, Value::Null)
        .await
        .error(404, "not_found_error");
}

#[tokio::test]
async fn the_workspace_header_must_be_that_of_the_key() {
    let server = server();
    let own = server.workspace.to_string();
    let key = server.key.clone();
    let ask = |workspace: String| {
        let (server, key) = (&server, key.clone());
        async move {
            let headers = [("x-api-key", key.as_str()), ("anthropic-workspace-id", &workspace)];
            with_headers(server, STORES, &headers).await.status
        }
    };
    assert_eq!(ask(own).await, 200);
    assert_eq!(ask(format!("wrkspc_01{}", "1".repeat(22))).await, 403);
}

#[tokio::test]
async fn every_answer_to_a_known_caller_names_its_workspace() {
    let server = server();
    let own = server.workspace.to_string();
    for uri in [STORES, "/v1/memory_stores/nothing", "/v1/memory_stores?limit=0"] {
        assert_eq!(server.get(uri).await.headers["anthropic-workspace-id"], own, "{uri}");
    }
    let unknown = with_headers(&server, STORES, &[("x-api-key", "sk-quipu-wrong")]).await;
    assert!(!unknown.headers.contains_key("anthropic-workspace-id"));
}

#[tokio::test]
async fn roles_allow_what_they_say() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "x").await;
    let id = memory["id"].as_str().unwrap().to_owned();
    let version = memory["memory_version_id"].as_str().unwrap().to_owned();
    let requests = [
        (Method::GET, store.clone(), Value::Null, Role::ReadOnly),
        (Method::GET, format!("{store}/memories/{id}"), Value::Null, Role::ReadOnly),
        (Method::GET, format!("{store}/memory_versions"), Value::Null, Role::ReadOnly),
        (
            Method::POST,
            format!("{store}/memories"),
            json!({"path": "/b", "content": ""}),
            Role::ReadWrite,
        ),
        (Method::POST, format!("{store}/memories/{id}"), json!({"content": "y"}), Role::ReadWrite),
        (Method::DELETE, format!("{store}/memories/{id}"), Value::Null, Role::ReadWrite),
        (Method::POST, STORES.to_owned(), json!({"name": "new"}), Role::Admin),
        (Method::POST, store.clone(), json!({"name": "new"}), Role::Admin),
        (
            Method::POST,
            format!("{store}/memory_versions/{version}/redact"),
            Value::Null,
            Role::Admin,
        ),
        (Method::POST, format!("{store}/archive"), Value::Null, Role::Admin),
        (Method::DELETE, store.clone(), Value::Null, Role::Admin),
    ];
    let keys =
        Role::ALL.iter().map(|role| (*role, server.new_key(*role, None))).collect::<Vec<_>>();
    for (method, uri, body, needed) in requests {
        // The weakest first, so that what a stronger one deletes is still there.
        for (role, key) in keys.iter().filter(|(role, _)| *role < needed) {
            let reply = server.call_as(key, method.clone(), &uri, body.clone()).await;
            assert_eq!(reply.status, 403, "{role} {method} {uri}: {}", reply.body);
            reply.error(403, "permission_error");
        }
        let (_, key) = keys.iter().find(|(role, _)| *role == needed).unwrap();
        let reply = server.call_as(key, method.clone(), &uri, body).await;
        assert_eq!(reply.status, 200, "{needed} {method} {uri}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_key_for_some_stores_sees_only_those() {
    let server = server();
    let stores: Vec<_> = (0..5)
        .map(|number| {
            let new = NewStore::named(Name::new(format!("s{number}")).unwrap());
            server.engine.create_store(server.workspace, &new).unwrap().id
        })
        .collect();
    let own: Vec<StoreId> = vec![stores[0], stores[3]];
    let key = server.new_key(Role::Admin, Some(own.clone()));
    let get = |uri: String| {
        let (server, key) = (&server, key.clone());
        async move { server.call_as(&key, Method::GET, &uri, Value::Null).await }
    };
    assert_eq!(get(format!("{STORES}/{}", stores[0])).await.status, 200);
    get(format!("{STORES}/{}", stores[1])).await.error(403, "permission_error");
    let first = get(format!("{STORES}?limit=1")).await.ok();
    assert_eq!(first["data"][0]["id"], stores[3].to_string());
    let page = first["next_page"].as_str().unwrap();
    let second = get(format!("{STORES}?limit=1&page={page}")).await.ok();
    assert_eq!(second["data"][0]["id"], stores[0].to_string());
    let create = server.call_as(&key, Method::POST, STORES, json!({"name": "x"})).await;
    create.error(403, "permission_error");
}

#[tokio::test]
async fn strict_headers_require_what_the_contract_requires() {
    let settings = HttpSettings { strict_headers: true, ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let key = server.key.clone();
    let ask = |uri: &'static str, version: &'static str, beta: &'static str| {
        let (server, key) = (&server, key.clone());
        async move {
            let mut headers = vec![("x-api-key", key.as_str())];
            if !version.is_empty() {
                headers.push(("anthropic-version", version));
            }
            if !beta.is_empty() {
                headers.push(("anthropic-beta", beta));
            }
            with_headers(server, uri, &headers).await
        }
    };
    let (memory, agents) = ("agent-memory-2026-07-22", "managed-agents-2026-04-01");
    assert_eq!(ask(STORES, "2023-06-01", memory).await.status, 200);
    assert_eq!(ask(STORES, "2026-10-21", agents).await.status, 200);
    assert_eq!(ask("/v1/sessions", "2026-10-21", agents).await.status, 200);
    let message = ask(STORES, "", memory).await.invalid();
    assert_eq!(message, "anthropic-version: header is required");
    ask(STORES, "2020-01-01", memory).await.invalid();
    ask(STORES, "2026-10-21", "").await.invalid();
    ask(STORES, "2026-10-21", "managed-agents-2026-04-01,agent-memory-2026-07-22").await.invalid();
    let message = ask(STORES, "2026-10-21", "agent-memory-2026-07-22, x-1").await.invalid();
    assert!(message.starts_with("Unexpected value(s) `x-1` for the `anthropic-beta` header."));
    assert_eq!(with_headers(&server, "/healthz", &[]).await.status, 200);
}

#[tokio::test]
async fn a_rate_limit_names_the_time_to_wait() {
    let settings = HttpSettings { requests_per_minute_max: Some(3), ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    for _ in 0..3 {
        assert_eq!(server.get(STORES).await.status, 200);
    }
    let reply = server.get(STORES).await;
    reply.error(429, "rate_limit_error");
    let seconds: u32 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=20).contains(&seconds));
    // Each key has its own.
    let other = server.new_key(Role::ReadOnly, None);
    assert_eq!(server.call_as(&other, Method::GET, STORES, Value::Null).await.status, 200);
}

#[tokio::test]
async fn sessions_share_the_rate_limit_of_their_key() {
    let settings = HttpSettings { requests_per_minute_max: Some(8), ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let store = server.store("s").await;
    let store = store.rsplit('/').next().unwrap();
    let resources = json!([{"type": "memory_store", "memory_store_id": store}]);
    let session = json!({
        "agent": "agent_1", "environment_id": "env_1", "resources": resources, "title": "a",
    });
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let reply = server.post("/v1/sessions", session.clone()).await;
        tokens.push(reply.headers["quipu-session-token"].to_str().unwrap().to_owned());
    }
    // Three requests were made with the key; with any number of sessions five are left.
    let uri = format!("/v1/memory_stores/{store}");
    for number in 0..5 {
        let reply = server.call_as(&tokens[number % 2], Method::GET, &uri, Value::Null).await;
        assert_eq!(reply.status, 200, "{number}");
    }
    for credential in [&tokens[0], &tokens[1], &server.key] {
        let reply = server.call_as(credential, Method::GET, &uri, Value::Null).await;
        reply.error(429, "rate_limit_error");
    }
}

#[tokio::test]
async fn bodies_over_the_limit_are_rejected() {
    let settings = HttpSettings { body_size_bytes_max: 1000, ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let body = json!({"name": "x", "description": "d".repeat(1000)});
    server.post(STORES, body).await.error(413, "request_too_large");
    server.post(STORES, json!({"name": "x"})).await.ok();
}

#[tokio::test]
async fn a_rejected_body_is_drained_so_that_the_client_sees_the_answer() {
    const CHUNKS: usize = 50;
    let settings = HttpSettings { body_size_bytes_max: 1000, ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    for (key, status) in [(server.key.as_str(), 413), ("sk-quipu-wrong", 401)] {
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        let chunks = stream::iter(0..CHUNKS).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(vec![b' '; 1000])
        });
        let request = Request::post(STORES)
            .header("x-api-key", key)
            .body(Body::from_stream(chunks))
            .expect("a request");
        assert_eq!(server.send(request).await.status, status);
        assert_eq!(sent.load(Ordering::Relaxed), CHUNKS, "{status}");
    }
}

#[tokio::test]
async fn too_many_concurrent_requests_are_rejected_with_retry_after() {
    let settings = HttpSettings { requests_max: 0, ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let reply = server.get(STORES).await;
    reply.error(529, "overloaded_error");
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn writers_without_a_thread_are_rejected_with_retry_after_and_readers_are_answered() {
    let queue_timeout = Duration::from_millis(10);
    let pool = PoolSettings { writers_max: 0, queue_timeout, ..PoolSettings::default() };
    let settings = HttpSettings { pool, ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let reply = server.post(STORES, json!({"name": "s"})).await;
    reply.error(529, "overloaded_error");
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(server.get(STORES).await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 200);
    let wrong = server.call_as("wrong", Method::POST, STORES, json!({"name": "s"})).await;
    wrong.error(401, "authentication_error");
}
