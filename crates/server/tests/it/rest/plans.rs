//! Reverting and restoring over HTTP, and what a session changed.

use std::time::Duration;

use axum::http::Method;
use quipu_core::engine::{NewSession, SessionToken};
use quipu_core::model::{Actor, Content, MemoryPath, Role, StoreId};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};

use super::{Server, server, server_with};

fn own(store: &str, route: &str) -> String {
    format!("{}/{route}", store.replace("/v1/memory_stores", "/quipu/stores"))
}

/// Starts a session with a store attached, and returns its id and its token.
async fn session(server: &Server, store: &str) -> (String, String) {
    let resource = json!({"type": "memory_store", "memory_store_id": store.rsplit('/').next()});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [resource]});
    let reply = server.post("/v1/sessions", body).await;
    let token = reply.headers["quipu-session-token"].to_str().expect("a text").to_owned();
    (reply.ok()["id"].as_str().expect("an id").to_owned(), token)
}

#[tokio::test]
async fn what_a_session_did_is_shown_planned_and_taken_back() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one\n").await;
    let id = memory["id"].as_str().unwrap();
    let (session, token) = session(&server, &store).await;
    let memory_uri = format!("{store}/memories/{id}");
    let memories_uri = format!("{store}/memories");
    for (uri, body) in [
        (&memory_uri, json!({"content": "two\n", "path": "/b"})),
        (&memories_uri, json!({"content": "three\n", "path": "/new"})),
    ] {
        server.call_as(&token, Method::POST, uri, body).await.ok();
    }

    let changes = server.get(&format!("/quipu/sessions/{session}/changes")).await.ok();
    let changed = &changes["data"][0];
    assert_eq!((&changed["old_path"], &changed["path"]), (&json!("/a"), &json!("/b")));
    assert_eq!(changed["diff"]["hunks"][0]["lines"], json!(["-one", "+two"]));
    assert_eq!(changes["data"][1]["old_path"], Value::Null);

    let revert = own(&store, "revert");
    let plan = server.post(&revert, json!({"actors": [session], "dry_run": true})).await.ok();
    assert_eq!((&plan["changed_count"], &plan["is_carried_out"]), (&json!(2), &json!(false)));
    assert_eq!(plan["steps"][0]["action"], "delete");
    assert_eq!(server.get(&memory_uri).await.ok()["path"], "/b");

    let body = json!({"actors": [session], "expect": plan["digest"], "reason": "rogue"});
    let done = server.post(&revert, body.clone()).await.ok();
    assert_eq!((&done["digest"], &done["is_carried_out"]), (&plan["digest"], &json!(true)));
    assert!(done["steps"][1]["memory_version_id"].is_string(), "{done}");
    let now = server.get(&memory_uri).await.ok();
    assert_eq!((&now["path"], &now["content"]), (&json!("/a"), &json!("one\n")));
    let stale = server.post(&revert, body).await;
    stale.error(409, "memory_precondition_failed_error");
}

#[tokio::test]
async fn a_tree_is_restored_as_it_was() {
    let server = server();
    let store = server.store("s").await;
    let then = server.memory(&store, "/dir/a", "one").await;
    server.memory(&store, "/dir/b", "two").await;
    let restore = own(&store, "restore");
    let body = json!({"at": then["memory_version_id"], "path": "/dir/"});
    let done = server.post(&restore, body).await.ok();
    assert_eq!((&done["type"], &done["changed_count"]), (&json!("plan"), &json!(1)));
    let list = server.get(&format!("{store}/memories")).await.ok();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn malformed_plans_are_refused() {
    let server = server();
    let store = server.store("s").await;
    server.memory(&store, "/a", "one").await;
    let (revert, restore) = (own(&store, "revert"), own(&store, "restore"));
    for body in [
        json!({}),
        json!({"actors": []}),
        json!({"actors": ["ada"]}),
        json!({"actors": ["user_ada"], "since": "soon"}),
        json!({"actors": ["user_ada"], "since": "2999-01-01"}),
        json!({"actors": ["user_ada"], "since": "2026-01-02", "until": "2026-01-01"}),
        json!({"actors": ["user_ada"], "path": "//"}),
        json!({"actors": ["user_ada"], "expect": "123"}),
        json!({"actors": ["user_ada"], "expect": "12345678", "dry_run": true}),
        json!({"actors": ["user_ada"], "reason": ""}),
        json!({"actors": ["user_ada"], "reason": "x".repeat(501), "dry_run": true}),
        json!({"actors": ["user_ada"], "color": "red"}),
    ] {
        server.post(&revert, body).await.invalid();
    }
    for body in [
        json!({}),
        json!({"at": "soon"}),
        json!({"at": "2999-01-01"}),
        json!({"at": "now", "memory_version_id": "x"}),
        json!({"at": "now", "reason": "", "dry_run": true}),
        json!({"memory_version_id": "x", "dry_run": true}),
    ] {
        server.post(&restore, body).await.invalid();
    }
    let nothing = server.post(&revert, json!({"actors": ["user_nobody"]})).await.ok();
    assert_eq!((&nothing["changed_count"], &nothing["created"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn changes_in_stores_that_the_caller_may_not_read_are_left_out() {
    let server = server();
    let (open, closed) = (server.store("open").await, server.store("closed").await);
    let [open, closed]: [StoreId; 2] =
        [open, closed].map(|uri| uri.rsplit('/').next().unwrap().parse().unwrap());
    let new = NewSession::titled("agent", Vec::new(), SessionToken::None);
    let session = server.engine.create_session(server.workspace, &new).unwrap().0.id;
    for store in [open, closed] {
        let (path, text) = (MemoryPath::parse("/a").unwrap(), Content::new("one").unwrap());
        server.engine.create(&Actor::Session(session), store, &path, &text).unwrap();
    }
    let uri = format!("/quipu/sessions/{session}/changes");
    assert_eq!(server.get(&uri).await.ok()["data"].as_array().unwrap().len(), 2);
    let limited = server.new_key(Role::Admin, Some(vec![open]));
    let seen = server.call_as(&limited, Method::GET, &uri, Value::Null).await.ok();
    assert_eq!(seen["data"].as_array().unwrap().len(), 1);
    assert_eq!(seen["data"][0]["memory_store_id"], open.to_string());
}

#[tokio::test]
async fn what_is_no_longer_known_is_not_deleted() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let store = server.store("notes").await;
    let second = || server.clock.advance(Duration::from_secs(1));
    second();
    server.memory(&store, "/other.md", "stays").await;
    second();
    let tea = server.memory(&store, "/tea.md", "green").await;
    second();
    let at = server.engine.now().to_string();
    second();
    let address = format!("{store}/memories/{}", tea["id"].as_str().unwrap());
    server.post(&address, json!({"content": "black"})).await.ok();
    server.clock.advance(Duration::from_mins(1));
    server.engine.prune().unwrap();
    let own = store.replace("/v1/memory_stores/", "/quipu/stores/");
    let plan = json!({"at": at, "incomplete": true, "dry_run": true});
    let plan = server.post(&format!("{own}/restore"), plan).await.ok();
    assert!(!plan.to_string().contains("\"delete"), "{plan}");
    assert!(plan.to_string().contains("no longer kept"), "{plan}");
}
