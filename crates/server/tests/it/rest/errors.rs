//! Storage that fails: the documented error, nothing changed, and the server lives.

use std::sync::Arc;

use axum::http::Method;
use quipu_core::clock::SystemClock;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, Name, Role};
use quipu_mcp::Hosts;
use quipu_server::HttpSettings;
use quipu_testkit::{FaultyBackend, InMemoryBackend, knowledge_over};
use serde_json::{Value, json};

use super::{Server, app};

#[tokio::test]
async fn a_fault_at_any_step_is_a_500_and_changes_nothing() {
    let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
    let engine = knowledge_over(Arc::clone(&faulty) as _, Arc::new(SystemClock));
    let workspace = engine.default_workspace().unwrap().id;
    let name = Name::new("admin").unwrap();
    let new = NewKey {
        name,
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (_, key) = engine.create_key(workspace, &new).unwrap();
    let server = Server {
        app: app(&engine, &Hosts::default(), HttpSettings::default()),
        engine,
        clock: Arc::default(),
        workspace,
        key: key.reveal().to_owned(),
    };
    let store = server.store("s").await;
    let uri = format!("{store}/memories");
    for step in 1.. {
        faulty.fail_at(step);
        let reply = server.post(&uri, json!({"path": "/a", "content": "x"})).await;
        if faulty.disarm() {
            reply.ok();
            assert!(step > 5, "the request takes only {step} steps");
            break;
        }
        let message = reply.error(500, "api_error");
        assert!(!message.contains("SELECT") && !message.contains("/tmp"), "{message}");
        assert!(server.all(&uri).await.is_empty(), "a failed create left something");
    }
    assert_eq!(server.call_as(&server.key, Method::GET, &store, Value::Null).await.status, 200);
}
