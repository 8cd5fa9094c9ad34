//! Versions: operations 12 to 14 of the contract.

use serde_json::{Value, json};

use super::{server, texts};

#[tokio::test]
async fn a_version_has_every_field_of_the_contract() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "hello").await;
    let id = memory["memory_version_id"].as_str().unwrap();
    let version = server.get(&format!("{store}/memory_versions/{id}")).await.ok();
    assert_eq!(version["created_by"]["type"], "api_actor");
    assert!(version["created_by"]["api_key_id"].as_str().unwrap().starts_with("apikey_01"));
    assert_eq!(
        version,
        json!({
            "id": id, "type": "memory_version", "memory_store_id": store.rsplit('/').next(),
            "memory_id": memory["id"], "operation": "created", "path": "/a", "content": "hello",
            "content_sha256": memory["content_sha256"], "content_size_bytes": 5,
            "created_at": memory["created_at"], "created_by": version["created_by"],
            "redacted_at": null, "redacted_by": null,
        })
    );
    let basic = server.get(&format!("{store}/memory_versions/{id}?view=basic")).await.ok();
    assert_eq!((&basic["content"], &basic["content_size_bytes"]), (&Value::Null, &json!(5)));
    let listed = &server.get(&format!("{store}/memory_versions")).await.ok()["data"][0];
    assert_eq!(*listed, basic);
}

#[tokio::test]
async fn a_deletion_keeps_its_path_and_has_no_text() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "hello").await;
    let id = memory["id"].as_str().unwrap();
    server.delete(&format!("{store}/memories/{id}")).await.ok();
    let versions = server.all(&format!("{store}/memory_versions?memory_id={id}&view=full")).await;
    assert_eq!(texts(&versions, "operation"), ["deleted", "created"]);
    let deletion = &versions[0];
    assert_eq!(deletion["path"], "/a");
    for field in ["content", "content_sha256", "content_size_bytes"] {
        assert!(deletion[field].is_null(), "{field}");
    }
}

#[tokio::test]
async fn versions_are_listed_newest_first_with_all_filters() {
    let server = server();
    let store = server.store("s").await;
    let first = server.memory(&store, "/a", "0").await;
    server.memory(&store, "/b", "0").await;
    let uri = format!("{store}/memories/{}", first["id"].as_str().unwrap());
    for number in 1..30 {
        server.clock.advance(std::time::Duration::from_secs(1));
        server.post(&uri, json!({"content": number.to_string()})).await.ok();
    }
    let count = |query: String| {
        let uri = format!("{store}/memory_versions?limit=100&{query}");
        let (server, uri) = (&server, uri);
        async move { server.all(&uri).await.len() }
    };
    let key = server.get(&format!("{store}/memory_versions?limit=1")).await.ok();
    let key = key["data"][0]["created_by"]["api_key_id"].as_str().unwrap().to_owned();
    let memory = first["id"].as_str().unwrap();
    assert_eq!(count(String::new()).await, 31);
    assert_eq!(count(format!("memory_id={memory}")).await, 30);
    assert_eq!(count("operation=created".to_owned()).await, 2);
    assert_eq!(count(format!("api_key_id={key}")).await, 31);
    assert_eq!(count(format!("api_key_id={key}&operation=modified&memory_id={memory}")).await, 29);
    assert_eq!(count(format!("session_id=sesn_01{}", "1".repeat(22))).await, 0);
    assert_eq!(count("service_account_id=svac_expiry".to_owned()).await, 0);
    assert_eq!(count("created_at[gte]=2026-01-01T00:00:20Z".to_owned()).await, 10);
    assert_eq!(count("created_at[lte]=2026-01-01T00:00:00.999Z".to_owned()).await, 2);
    for nothing in ["memory_id=x", "session_id=x", "api_key_id=mem_x", "service_account_id=x"] {
        assert_eq!(count(nothing.to_owned()).await, 0, "{nothing}");
    }
    for wrong in ["operation=renamed", "created_at[gte]=x", "limit=0", "page=page_x"] {
        server.get(&format!("{store}/memory_versions?{wrong}")).await.invalid();
    }
    let small = server.all(&format!("{store}/memory_versions?limit=4")).await;
    let mut sorted = texts(&small, "created_at");
    sorted.sort_by(|left, right| right.cmp(left));
    assert_eq!(texts(&small, "created_at"), sorted);
    let full = server.get(&format!("{store}/memory_versions?limit=100&view=full")).await.ok();
    assert_eq!(full["data"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn several_versions_are_redacted_together_or_not_at_all() {
    let server = server();
    let store = server.store("s").await;
    let id = store.rsplit('/').next().unwrap().to_owned();
    let (mut versions, mut memories) = (Vec::new(), Vec::new());
    for path in ["/a", "/b"] {
        let memory = server.memory(&store, path, "secret").await;
        versions.push(memory["memory_version_id"].clone());
        memories.push(format!("{store}/memories/{}", memory["id"].as_str().unwrap()));
    }
    server.post(&memories[0], json!({"content": "public"})).await.ok();
    let uri = format!("/quipu/stores/{id}/redact");
    let refused = server.post(&uri, json!({"memory_version_ids": versions})).await.invalid();
    assert!(refused.contains("`/b`") && !refused.contains("`/a`"), "{refused}");
    let first = format!("{store}/memory_versions/{}", versions[0].as_str().unwrap());
    assert_eq!(server.get(&first).await.ok()["content"], "secret");
    server.delete(&memories[1]).await.ok();
    let redacted = server.post(&uri, json!({"memory_version_ids": versions})).await.ok();
    assert_eq!(redacted["data"].as_array().unwrap().len(), 2);
    assert!(server.get(&first).await.ok()["content"].is_null());
    server.post(&uri, json!({"memory_version_ids": []})).await.invalid();
}

#[tokio::test]
async fn redaction_takes_the_text_and_keeps_the_record() {
    let server = server();
    let store = server.store("s").await;
    let memory = server.memory(&store, "/a", "secret").await;
    let version = memory["memory_version_id"].as_str().unwrap().to_owned();
    let uri = format!("{store}/memory_versions/{version}");
    let message = server.post(&format!("{uri}/redact"), Value::Null).await.invalid();
    assert!(message.contains("write a new version or delete the memory first"), "{message}");
    let id = memory["id"].as_str().unwrap();
    server.post(&format!("{store}/memories/{id}"), json!({"content": "public"})).await.ok();
    let redacted = server.post(&format!("{uri}/redact"), json!({})).await.ok();
    for field in ["path", "content", "content_sha256", "content_size_bytes"] {
        assert!(redacted[field].is_null(), "{field}");
    }
    assert_eq!(redacted["redacted_by"], redacted["created_by"]);
    assert!(redacted["redacted_at"].is_string());
    assert_eq!(
        (&redacted["operation"], &redacted["memory_id"]),
        (&json!("created"), &memory["id"])
    );
    assert_eq!(server.get(&uri).await.ok(), redacted);
    assert_eq!(server.post(&format!("{uri}/redact"), Value::Null).await.ok(), redacted);
    let absent = format!("{store}/memory_versions/memver_01{}/redact", "1".repeat(22));
    server.post(&absent, Value::Null).await.error(404, "not_found_error");
    server.get(&format!("{store}/memory_versions/x")).await.error(404, "not_found_error");
}
