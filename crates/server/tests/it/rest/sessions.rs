//! Sessions: attaching stores, and what a session's token may do.

use axum::http::Method;
use serde_json::{Value, json};

use super::{Reply, Server, server, texts};

fn id(address: &str) -> &str {
    address.rsplit('/').next().expect("an address has an id")
}

async fn start(server: &Server, resources: Value) -> Reply {
    let body = json!({
        "agent": {"type": "agent", "id": "agent_1", "version": 3}, "environment_id": "env_1",
        "title": "a run", "metadata": {"team": "tea"}, "resources": resources,
    });
    server.post("/v1/sessions", body).await
}

fn attach(store: &str, access: &str) -> Value {
    json!({"type": "memory_store", "memory_store_id": id(store), "access": access, "instructions": "look"})
}

#[tokio::test]
async fn a_session_has_the_shape_that_the_sdks_expect() {
    let server = server();
    let store = server.store("Shopper Preferences").await;
    let session = start(&server, json!([attach(&store, "read_only")])).await.ok();
    assert_eq!(
        session["resources"],
        json!([{
            "type": "memory_store", "memory_store_id": id(&store), "access": "read_only",
            "instructions": "look", "name": "Shopper Preferences", "description": "",
            "mount_path": "/mnt/memory/shopper-preferences",
        }])
    );
    assert_eq!(
        (&session["agent"]["id"], &session["agent"]["version"]),
        (&json!("agent_1"), &json!(3))
    );
    assert_eq!((&session["environment_id"], &session["status"]), (&json!("env_1"), &json!("idle")));
    assert_eq!(
        (&session["title"], &session["metadata"]),
        (&json!("a run"), &json!({"team": "tea"}))
    );
    let uri = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(server.get(&uri).await.ok(), session);
    let updated = server.post(&uri, json!({"title": "new", "metadata": {"team": null}})).await.ok();
    assert_eq!((&updated["title"], &updated["metadata"]), (&json!("new"), &json!({})));
    let archived = server.post(&format!("{uri}/archive"), Value::Null).await.ok();
    assert_eq!(archived["status"], "terminated");
    let deleted = server.delete(&uri).await.ok();
    assert_eq!(deleted, json!({"id": session["id"], "type": "session_deleted"}));
    server.get(&uri).await.error(404, "not_found_error");
}

#[tokio::test]
async fn access_defaults_to_read_write() {
    let server = server();
    let store = server.store("s").await;
    for resource in [
        json!({"type": "memory_store", "memory_store_id": id(&store)}),
        json!({"type": "memory_store", "memory_store_id": id(&store), "access": null, "instructions": null}),
    ] {
        let session = start(&server, json!([resource])).await.ok();
        assert_eq!(session["resources"][0]["access"], "read_write");
    }
}

#[tokio::test]
async fn invalid_attachments_are_rejected() {
    let server = server();
    let store = server.store("s").await;
    let archived = server.store("old").await;
    server.post(&format!("{archived}/archive"), Value::Null).await.ok();
    let unknown = format!("memstore_01{}", "1".repeat(22));
    start(&server, json!([attach(&unknown, "read_only")])).await.error(404, "not_found_error");
    start(&server, json!([attach(&archived, "read_only")])).await.invalid();
    start(&server, json!([attach(&store, "read_only"), attach(&store, "read_only")]))
        .await
        .invalid();
    start(&server, json!([attach(&store, "admin")])).await.invalid();
    start(&server, json!([{"type": "disk", "disk_id": "x"}])).await.invalid();
    start(&server, json!([{"type": "file", "file_id": 1}])).await.invalid();
    let mount_path =
        json!({"type": "memory_store", "memory_store_id": id(&store), "mount_path": "/x"});
    start(&server, json!([mount_path])).await.invalid();
    let nine: Vec<_> = (0..9).map(|_| attach(&store, "read_only")).collect();
    let message = start(&server, json!(nine)).await.invalid();
    assert_eq!(message, "resources cannot contain more than 8 memory_store entries");
    let long = json!({"type": "memory_store", "memory_store_id": id(&store), "instructions": "x".repeat(4097)});
    start(&server, json!([long])).await.invalid();
}

#[tokio::test]
async fn sessions_are_listed_and_filtered() {
    let server = server();
    let store = server.store("s").await;
    for number in 0..25 {
        server.clock.advance(std::time::Duration::from_secs(1));
        let resources =
            if number % 5 == 0 { json!([attach(&store, "read_only")]) } else { json!([]) };
        start(&server, resources).await.ok();
    }
    assert_eq!(server.all("/v1/sessions?limit=4").await.len(), 25);
    let attached = format!("/v1/sessions?limit=2&memory_store_id={}", id(&store));
    assert_eq!(server.all(&attached).await.len(), 5);
    assert_eq!(server.all("/v1/sessions?agent_id=agent_1&limit=9").await.len(), 25);
    assert_eq!(server.all("/v1/sessions?agent_id=other").await.len(), 0);
    assert_eq!(server.all("/v1/sessions?agent_id=agent_1&agent_version=9").await.len(), 0);
    assert_eq!(server.all("/v1/sessions?agent_version=9").await.len(), 25);
    assert_eq!(server.all("/v1/sessions?statuses[]=running&statuses[]=idle").await.len(), 25);
    assert_eq!(server.all("/v1/sessions?statuses=running").await.len(), 0);
    assert_eq!(server.all("/v1/sessions?memory_store_id=x").await.len(), 0);
    let oldest = texts(&server.all("/v1/sessions?order=asc&limit=3").await, "created_at");
    assert!(oldest.is_sorted());
    let late = "/v1/sessions?created_at[gt]=2026-01-01T00:00:24Z";
    assert_eq!(server.all(late).await.len(), 1);
    server.get("/v1/sessions?order=up").await.invalid();
}

#[tokio::test]
async fn a_token_acts_as_its_session_within_its_stores() {
    let server = server();
    let (writable, readable, other) =
        (server.store("rw").await, server.store("ro").await, server.store("other").await);
    let reply =
        start(&server, json!([attach(&writable, "read_write"), attach(&readable, "read_only")]))
            .await;
    let token = reply.headers["quipu-session-token"].to_str().unwrap().to_owned();
    let session = reply.ok()["id"].as_str().unwrap().to_owned();
    let call = |method: Method, uri: String, body: Value| {
        let (server, token) = (&server, token.clone());
        async move { server.call_as(&token, method, &uri, body).await }
    };
    let memory = json!({"path": "/a", "content": "x"});
    let created = call(Method::POST, format!("{writable}/memories"), memory.clone()).await.ok();
    let version = created["memory_version_id"].as_str().unwrap();
    let version = server.get(&format!("{writable}/memory_versions/{version}")).await.ok();
    assert_eq!(version["created_by"], json!({"type": "session_actor", "session_id": session}));

    assert_eq!(call(Method::GET, format!("{readable}/memories"), Value::Null).await.status, 200);
    let refused = [
        (Method::POST, format!("{readable}/memories"), memory.clone()),
        (Method::GET, format!("{other}/memories"), Value::Null),
        (Method::GET, other, Value::Null),
        (Method::POST, format!("{writable}/archive"), Value::Null),
        (Method::DELETE, writable.clone(), Value::Null),
        (Method::POST, "/v1/memory_stores".to_owned(), json!({"name": "x"})),
        (Method::POST, "/v1/sessions".to_owned(), json!({"agent": "a", "environment_id": "e"})),
        (Method::GET, "/v1/sessions".to_owned(), Value::Null),
        (Method::DELETE, format!("/v1/sessions/{session}"), Value::Null),
    ];
    for (method, uri, body) in refused {
        let reply = call(method.clone(), uri.clone(), body).await;
        assert_eq!(reply.status, 403, "{method} {uri}: {}", reply.body);
    }
    let listed = call(Method::GET, "/v1/memory_stores".to_owned(), Value::Null).await.ok();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert_eq!(call(Method::GET, format!("/v1/sessions/{session}"), Value::Null).await.status, 200);

    let renewed = server.post(&format!("/quipu/sessions/{session}/token"), Value::Null).await.ok();
    assert_eq!(call(Method::GET, writable.clone(), Value::Null).await.status, 401);
    let renewed = renewed["token"].as_str().unwrap();
    assert_eq!(server.call_as(renewed, Method::GET, &writable, Value::Null).await.status, 200);
    server.post(&format!("/v1/sessions/{session}/archive"), Value::Null).await.ok();
    assert_eq!(server.call_as(renewed, Method::GET, &writable, Value::Null).await.status, 401);
}
