//! Memories: operations 7 to 11 of the contract.

use axum::http::Method;
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};

use super::{Server, server, server_with, texts};

fn address(store: &str, memory: &Value) -> String {
    format!("{store}/memories/{}", memory["id"].as_str().expect("an id"))
}

#[tokio::test]
async fn an_empty_precondition_deletes_nothing() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "x").await;
    let uri = format!("{store}/memories/{}", memory["id"].as_str().unwrap());
    let reply = server.delete(&format!("{uri}?expected_content_sha256=")).await;
    assert!(reply.invalid().starts_with("expected_content_sha256: must not be empty"));
    // Of two preconditions, either may be the intended one.
    let hash = memory["content_sha256"].as_str().unwrap();
    let both =
        format!("{uri}?expected_content_sha256={}&expected_content_sha256={hash}", "0".repeat(64));
    server.delete(&both).await.invalid();
    assert_eq!(server.get(&uri).await.ok()["content"], "x");
}

#[tokio::test]
async fn a_memory_has_every_field_of_the_contract() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a/b.md", "hello").await;
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(
        memory,
        json!({
            "id": memory["id"], "type": "memory", "memory_store_id": store.rsplit('/').next(),
            "path": "/a/b.md", "content": null, "content_size_bytes": 5, "content_sha256": hash,
            "memory_version_id": memory["memory_version_id"],
            "created_at": memory["created_at"], "updated_at": memory["created_at"],
        })
    );
    let full = server.get(&address(&store, &memory)).await.ok();
    assert_eq!(full["content"], "hello");
    let basic = server.get(&format!("{}?view=basic", address(&store, &memory))).await.ok();
    assert_eq!(basic, memory);
    let body = json!({"path": "/c", "content": ""});
    let created = server.post(&format!("{store}/memories?view=full"), body).await.ok();
    assert_eq!(created["content"], "");
}

#[tokio::test]
async fn creating_never_overwrites_and_names_the_conflict() {
    let server = server();
    let store = server.store("s").await;
    let first = server.memory(&store, "/a/b", "x").await;
    for path in ["/a/b", "/a", "/a/b/c"] {
        let body = json!({"path": path, "content": "y"});
        let reply = server.post(&format!("{store}/memories"), body).await;
        reply.error(409, "memory_path_conflict_error");
        assert_eq!(reply.body["error"]["conflicting_memory_id"], first["id"]);
        assert_eq!(reply.body["error"]["conflicting_path"], "/a/b");
        assert_eq!(reply.headers["x-should-retry"], "false");
    }
}

#[tokio::test]
async fn creating_checks_every_rule() {
    let server = server();
    let store = server.store("s").await;
    let uri = format!("{store}/memories");
    let create = async |body: Value| server.post(&uri, body).await.invalid();
    for path in ["", "a", "/", "/a/", "/a//b", "/../a", "/a\u{200b}", "/e\u{301}", "/a\0"] {
        let message = create(json!({"path": path, "content": "x"})).await;
        assert!(message.starts_with("path: "), "{path:?}: {message}");
    }
    create(json!({"path": "/a".repeat(21), "content": "x"})).await;
    create(json!({"path": format!("/{}", "x".repeat(1024)), "content": "x"})).await;
    create(json!({"path": "/a", "content": "x".repeat(102_401)})).await;
    create(json!({"path": "/a", "content": "a\0b"})).await;
    create(json!({"path": "/a", "content": null})).await;
    create(json!({"path": "/a"})).await;
    create(json!({"content": "x"})).await;
    create(json!({"path": "/a", "content": "x", "mode": 7})).await;
    assert!(server.all(&format!("{store}/memories")).await.is_empty());
    let largest = json!({"path": "/a".repeat(20), "content": "x".repeat(102_400)});
    server.post(&format!("{store}/memories"), largest).await.ok();
}

#[tokio::test]
async fn lone_surrogates_and_malformed_json_are_rejected() {
    let server = server();
    let store = server.store("s").await;
    for body in
        [r#"{"path": "/a", "content": "\ud800"}"#, "{", "[]", "null", "\u{feff}{}", "{}x", ""]
    {
        let request = axum::http::Request::post(format!("{store}/memories"))
            .header("x-api-key", &server.key)
            .body(body.into())
            .unwrap();
        server.send(request).await.invalid();
    }
    let request = axum::http::Request::post(format!("{store}/memories"))
        .header("x-api-key", &server.key)
        .body(b"{\"path\": \"/a\", \"content\": \"\xff\"}".to_vec().into())
        .unwrap();
    server.send(request).await.invalid();
}

async fn listed(server: &Server, store: &str, query: &str) -> Vec<String> {
    texts(&server.all(&format!("{store}/memories?{query}")).await, "path")
}

#[tokio::test]
async fn lists_have_prefixes_depths_and_pages() {
    let server = server();
    let store = server.store("s").await;
    for path in ["/b", "/a/1", "/a/2", "/a.md", "/a/c/3", "/ab/4"] {
        server.memory(&store, path, "x").await;
    }
    let everything = ["/a.md", "/a/1", "/a/2", "/a/c/3", "/ab/4", "/b"];
    assert_eq!(listed(&server, &store, "").await, everything);
    assert_eq!(listed(&server, &store, "depth=0&limit=1&path_prefix=/").await, everything);
    assert_eq!(listed(&server, &store, "path_prefix=/a/").await, ["/a/1", "/a/2", "/a/c/3"]);
    let rolled = ["/a.md", "/a/", "/ab/", "/b"];
    for limit in 1..5 {
        assert_eq!(listed(&server, &store, &format!("depth=1&limit={limit}")).await, rolled);
    }
    assert_eq!(
        listed(&server, &store, "depth=1&path_prefix=%2Fa%2F").await,
        ["/a/1", "/a/2", "/a/c/"]
    );
    assert_eq!(listed(&server, &store, "path_prefix=/none/").await, Vec::<String>::new());
    // These were removed from the contract and are ignored.
    assert_eq!(listed(&server, &store, "order_by=path&order=desc").await, everything);
    let prefix = &server.get(&format!("{store}/memories?depth=1")).await.ok()["data"][1];
    assert_eq!(*prefix, json!({"type": "memory_prefix", "path": "/a/"}));
    for wrong in [
        "path_prefix=/a",
        "path_prefix=a/",
        "path_prefix=//",
        "depth=2",
        "depth=-1",
        "view=all",
        "limit=0",
    ] {
        server.get(&format!("{store}/memories?{wrong}")).await.invalid();
    }
}

#[tokio::test]
async fn a_full_page_has_at_most_20_items() {
    let server = server();
    let store = server.store("s").await;
    for number in 0..30 {
        server.memory(&store, &format!("/{number:02}"), "text").await;
    }
    let count = async |query: &str| {
        let page = server.get(&format!("{store}/memories{query}")).await.ok();
        page["data"].as_array().expect("a list").len()
    };
    assert_eq!(count("?view=full&limit=100").await, 20);
    assert_eq!(count("?limit=100").await, 30);
    assert_eq!(count("").await, 20);
    let all = server.all(&format!("{store}/memories?view=full&limit=100")).await;
    assert!(all.len() == 30 && all.iter().all(|memory| memory["content"] == "text"));
}

#[tokio::test]
async fn updates_are_conditional_and_make_no_version_without_effect() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    let uri = address(&store, &memory);
    let precondition = |hash: &Value| json!({"type": "content_sha256", "content_sha256": hash});
    let first = precondition(&memory["content_sha256"]);
    let updated = server.post(&uri, json!({"content": "two", "precondition": first})).await.ok();
    assert_ne!(updated["memory_version_id"], memory["memory_version_id"]);
    let stale = json!({"content": "three", "precondition": first});
    let reply = server.post(&uri, stale).await;
    reply.error(409, "memory_precondition_failed_error");
    assert_eq!(reply.headers["x-should-retry"], "false");
    // What is already so succeeds, whatever the precondition, and changes nothing.
    let again = json!({"content": "two", "precondition": first});
    assert_eq!(server.post(&uri, again).await.ok(), updated);
    assert_eq!(server.post(&uri, json!({"path": "/a"})).await.ok(), updated);
    let moved = json!({"path": "/b/c", "content": null});
    let moved = server.call_as(&server.key, Method::PATCH, &uri, moved).await.ok();
    assert_eq!((&moved["path"], &moved["id"]), (&json!("/b/c"), &memory["id"]));
    let versions = server.all(&format!("{store}/memory_versions")).await;
    assert_eq!(texts(&versions, "operation"), ["modified", "modified", "created"]);
}

#[tokio::test]
async fn updates_check_every_rule() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    server.memory(&store, "/b", "two").await;
    let uri = address(&store, &memory);
    let hash = memory["content_sha256"].as_str().unwrap();
    for body in [
        json!({}),
        json!({"content": null, "path": null}),
        json!({"precondition": {"type": "content_sha256", "content_sha256": hash}}),
        json!({"content": "x", "precondition": {"type": "content_sha256"}}),
        json!({"content": "x", "precondition": {"type": "content_sha256", "content_sha256": null}}),
        json!({"content": "x", "precondition": {"type": "content_sha256", "content_sha256": "abc"}}),
        json!({"content": "x", "precondition": {"type": "content_sha256", "content_sha256": hash.to_uppercase()}}),
        json!({"content": "x", "precondition": {"type": "not_exists"}}),
        json!({"content": "x", "precondition": {"content_sha256": hash}}),
        json!({"path": "b"}),
        json!({"content": "x".repeat(102_401)}),
        json!({"content": 7}),
        json!({"content": "x", "title": "y"}),
    ] {
        server.post(&uri, body).await.invalid();
    }
    server.post(&uri, json!({"path": "/b"})).await.error(409, "memory_path_conflict_error");
    server.post(&uri, json!({"path": "/b/c"})).await.error(409, "memory_path_conflict_error");
    let absent = format!("{store}/memories/mem_01{}", "1".repeat(22));
    server.post(&absent, json!({"content": "x"})).await.error(404, "not_found_error");
    assert_eq!(server.get(&uri).await.ok()["content"], "one");
}

#[tokio::test]
async fn deleting_can_be_conditional() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    let uri = address(&store, &memory);
    let stale = format!("{uri}?expected_content_sha256={}", "0".repeat(64));
    server.delete(&stale).await.error(409, "memory_precondition_failed_error");
    server.delete(&format!("{uri}?expected_content_sha256=abc")).await.invalid();
    let current = memory["content_sha256"].as_str().unwrap();
    let deleted = server.delete(&format!("{uri}?expected_content_sha256={current}")).await.ok();
    assert_eq!(deleted, json!({"id": memory["id"], "type": "memory_deleted"}));
    server.delete(&uri).await.error(404, "not_found_error");
    server.get(&uri).await.error(404, "not_found_error");
    let again = server.memory(&store, "/a", "one").await;
    assert_ne!(again["id"], memory["id"]);
}

#[tokio::test]
async fn an_archived_store_rejects_writes_but_not_deletions() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    let uri = address(&store, &memory);
    server.post(&format!("{store}/archive"), Value::Null).await.ok();
    let create = json!({"path": "/b", "content": "x"});
    server.post(&format!("{store}/memories"), create).await.invalid();
    server.post(&uri, json!({"content": "x"})).await.invalid();
    server.post(&format!("{store}/memories/x"), json!({"content": "x"})).await.invalid();
    assert_eq!(server.get(&uri).await.ok()["content"], "one");
    server.delete(&uri).await.ok();
}

#[tokio::test]
async fn a_full_store_names_its_limit() {
    let limits =
        Limits { memories_per_store_max: 1, store_size_bytes_max: 10, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "one").await;
    let second = json!({"path": "/b", "content": "x"});
    let message = server.post(&format!("{store}/memories"), second).await.invalid();
    assert!(message.contains("1 memories, which is its limit"), "{message}");
    let longer = json!({"content": "x".repeat(11)});
    let message = server.post(&address(&store, &memory), longer).await.invalid();
    assert!(message.contains("its limit is 10"), "{message}");
}

#[tokio::test]
async fn credentials_in_a_text_are_named_in_a_header() {
    let server = server();
    let store = server.store("notes").await;
    let token = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let uri = format!("{store}/memories");
    let body = json!({"path": "/a", "content": format!("first\ntoken: {token}\n")});
    let created = server.post(&uri, body).await;
    let found = created.headers["quipu-credentials-found"].to_str().unwrap().to_owned();
    assert!(found.ends_with(";line=2") && !found.contains(&token), "{found}");
    let id = created.ok()["id"].as_str().unwrap().to_owned();
    let updated = server.post(&format!("{uri}/{id}"), json!({"content": "nothing"})).await;
    assert!(!updated.headers.contains_key("quipu-credentials-found"));
    let updated = server.post(&format!("{uri}/{id}"), json!({"content": token})).await;
    assert!(updated.headers["quipu-credentials-found"].to_str().unwrap().ends_with(";line=1"));
}
