//! Stores as they were: moments, listings, reads, searches, differences, blame and copies.

use std::time::Duration;

use quipu_core::model::{Actor, MemoryPath, Role};
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};

use super::{Server, server, server_with, texts};

/// A store with one address of each kind.
struct Store {
    server: Server,
    /// Of the vendor's routes.
    uri: String,
    /// Of Quipu's own routes.
    own: String,
}

impl Store {
    async fn new() -> Self {
        Self::of(server()).await
    }

    async fn of(server: Server) -> Self {
        let uri = server.store("notes").await;
        let own = uri.replace("/v1/memory_stores", "/quipu/stores");
        Self { server, uri, own }
    }

    /// Creates a memory.
    async fn create(&self, path: &str, text: &str) -> Value {
        self.server.memory(&self.uri, path, text).await
    }

    /// Changes a memory.
    async fn change(&self, memory: &Value, change: Value) -> Value {
        let id = memory["id"].as_str().expect("an id");
        self.server.post(&format!("{}/memories/{id}", self.uri), change).await.ok()
    }

    async fn delete(&self, memory: &Value) {
        let id = memory["id"].as_str().expect("an id");
        self.server.delete(&format!("{}/memories/{id}", self.uri)).await.ok();
    }

    async fn redact(&self, version: &str) {
        let body = json!({"memory_version_ids": [version]});
        self.server.post(&format!("{}/redact", self.own), body).await.ok();
    }

    async fn get(&self, rest: &str) -> super::Reply {
        self.server.get(&format!("{}/{rest}", self.own)).await
    }

    /// Returns the newest change, as it is written in an address.
    fn now(&self) -> String {
        let newest = self.server.engine.newest_sequence().expect("a sequence").0;
        format!("%23{newest}")
    }
}

fn version(memory: &Value) -> &str {
    memory["memory_version_id"].as_str().expect("a version")
}

#[tokio::test]
async fn a_moment_has_the_texts_and_paths_of_then() {
    let store = Store::new().await;
    let edited = store.create("/edited.md", "old words").await;
    let moved = store.create("/moved.md", "moved words").await;
    let gone = store.create("/gone.md", "gone words").await;
    let then = store.now();
    store.change(&edited, json!({"content": "new words"})).await;
    store.change(&moved, json!({"path": "/d/moved.md"})).await;
    store.delete(&gone).await;
    store.create("/later.md", "later words").await;

    let at = format!("at/{then}");
    let summary = store.get(&at).await.ok();
    assert_eq!((&summary["memories_count"], &summary["size_bytes"]), (&json!(3), &json!(30)));
    assert_eq!((&summary["complete"], &summary["complete_from"]), (&json!(true), &Value::Null));
    assert_eq!((&summary["redacted_count"], &summary["redacted"]), (&json!(0), &json!([])));
    let listed = store.get(&format!("{at}/memories?view=full")).await.ok();
    let data = listed["data"].as_array().expect("a list");
    assert_eq!(texts(data, "path"), ["/edited.md", "/gone.md", "/moved.md"]);
    assert_eq!(texts(data, "content"), ["old words", "gone words", "moved words"]);
    assert_eq!(listed["as_of"]["at"], summary["at"]);
    let read = store.get(&format!("{at}/memory?path=/moved.md")).await.ok();
    assert_eq!((&read["content"], &read["id"]), (&json!("moved words"), &moved["id"]));
    assert_eq!(read["type"], "memory");
    let missing = store.get(&format!("{at}/memory?path=/later.md")).await;
    assert!(missing.error(404, "not_found_error").contains("as of `"));
    let found = store.get(&format!("{at}/search?q=words")).await.ok();
    assert_eq!((&found["total"], &found["searched"]), (&json!(3), &json!("scan")));
    assert_eq!(found["is_behind"], false);
    assert_eq!(store.get(&format!("{at}/search?q=later")).await.ok()["total"], 0);
    // A name works in place of an id, and a time in place of a place in the feed.
    let time = summary["at"].as_str().expect("a time");
    let by_name = store.server.get(&format!("/quipu/stores/notes/at/{time}")).await.ok();
    assert_eq!(by_name, summary);
    store.get(&format!("{at}/memory")).await.invalid();
    store.get(&format!("{at}/memory?path=x")).await.invalid();
}

/// The cursor keeps a time, which by itself would mean the state before the transaction.
#[tokio::test]
async fn a_moment_within_a_transaction_stays_the_same_from_page_to_page() {
    let store = Store::new().await;
    let id = store.own.rsplit('/').next().expect("an id").parse().expect("an id");
    store.create("/old/1", "text").await;
    store.create("/old/2", "text").await;
    let engine = &store.server.engine;
    let (old, new) = (MemoryPath::parse("/old").unwrap(), MemoryPath::parse("/new").unwrap());
    let moved = engine.rename(&Actor::expiry(), id, &old, &new).unwrap();
    let list = format!("at/{}/memories?limit=1", moved[0].memory.version);
    let first = store.get(&list).await.ok();
    let next = first["next_page"].as_str().expect("a next page");
    let second = store.get(&format!("{list}&page={next}")).await.ok();
    let paths = [&first, &second].map(|page| page["data"][0]["path"].clone());
    assert_eq!(paths, [json!("/new/1"), json!("/old/2")]);
    assert_eq!(first["as_of"], second["as_of"]);
}

#[tokio::test]
async fn writes_between_two_pages_do_not_show() {
    let store = Store::new().await;
    let mut memories = Vec::new();
    for name in ["/a", "/b", "/c", "/d"] {
        memories.push(store.create(name, name).await);
    }
    // A relative moment is another one when the second page is read.
    let list = "at/now/memories?view=full&limit=2";
    let first = store.get(list).await.ok();
    let next = first["next_page"].as_str().expect("a second page");
    store.server.clock.advance(Duration::from_mins(1));
    store.change(&memories[2], json!({"content": "changed"})).await;
    store.change(&memories[3], json!({"path": "/0"})).await;
    store.create("/bb", "new").await;
    let second = store.get(&format!("{list}&page={next}")).await.ok();
    let data = second["data"].as_array().expect("a list");
    assert_eq!(texts(data, "content"), ["/c", "/d"]);
    assert_eq!(texts(data, "path"), ["/c", "/d"]);
    assert_eq!((&second["as_of"], &second["next_page"]), (&first["as_of"], &Value::Null));
    // A cursor belongs to the moment that it was made for.
    store.get(&format!("at/today/memories?view=full&page={next}")).await.invalid();
}

#[tokio::test]
async fn a_redaction_between_two_pages_takes_the_text_out() {
    let store = Store::new().await;
    let (mut secret, mut last) = (Value::Null, Value::Null);
    for name in ["/a", "/b", "/c", "/d"] {
        let memory = store.create(name, &format!("secret {name}")).await;
        secret = std::mem::replace(&mut last, memory);
    }
    let then = store.now();
    store.change(&secret, json!({"content": "clean"})).await;
    let list = format!("at/{then}/memories?view=full&limit=2");
    let first = store.get(&list).await.ok();
    let next = first["next_page"].as_str().expect("a second page");
    store.redact(version(&secret)).await;
    let second = store.get(&format!("{list}&page={next}")).await.ok();
    assert_eq!(texts(second["data"].as_array().expect("a list"), "path"), ["/d"]);

    let summary = store.get(&format!("at/{then}")).await.ok();
    assert_eq!(summary["memories_count"], 3);
    let redacted = &summary["redacted"][0];
    assert_eq!(redacted["memory_version_id"], version(&secret));
    assert_eq!(redacted["memory_id"], secret["id"]);
    assert_eq!(redacted["redacted_by"]["type"], "api_actor");
    assert!(redacted["redacted_at"].is_string() && summary["redacted_count"] == 1);
    let missing = store.get(&format!("at/{then}/memory?path=/c")).await;
    assert!(missing.error(404, "not_found_error").contains("redacted since then: 1"));
    let found = store.get(&format!("at/{then}/search?q=secret")).await.ok();
    assert_eq!((&found["total"], &found["redacted_count"]), (&json!(3), &json!(1)));
    let all = serde_json::to_string(&[first, second, summary, found]).expect("JSON");
    assert!(!all.contains("secret /c"), "{all}");
}

#[tokio::test]
async fn bad_moments_are_explained() {
    let store = Store::new().await;
    let memory = store.create("/a", "x").await;
    for (moment, status, words) in [
        ("soon", 400, "yesterday 14:00"),
        ("%23", 400, "is not a moment"),
        ("2999-01-01", 400, "is in the future"),
        ("%23999", 400, "the newest change is `#"),
        ("1969-01-01", 404, "did not exist"),
        ("memver_011111111111111111111111", 404, "version"),
    ] {
        for rest in ["", "/memories", "/memory?path=/a", "/search?q=x"] {
            let reply = store.get(&format!("at/{moment}{rest}")).await;
            let kind = if status == 400 { "invalid_request_error" } else { "not_found_error" };
            let message = reply.error(status, kind);
            assert!(message.contains(words), "{moment}{rest}: {message}");
        }
        for uri in [format!("diff?from={moment}"), format!("blame?path=/a&at={moment}")] {
            assert_eq!(store.get(&uri).await.status, status, "{uri}");
        }
    }
    store.get("diff").await.invalid();
    store.get(&format!("diff?from={}&context=101", version(&memory))).await.invalid();
    store.get("blame").await.invalid();
    store.get("blame?path=/a&limit=1001").await.invalid();
    let both = store.get("blame?path=/a&memory_id=mem_x").await.invalid();
    assert!(both.contains("memory_id"), "{both}");
}

#[tokio::test]
async fn an_incomplete_moment_says_so() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    let store = Store::of(server_with(HttpSettings::default(), limits)).await;
    let memory = store.create("/a", "one").await;
    let other = store.create("/b", "b").await;
    let changed = store.change(&memory, json!({"content": "two"})).await;
    store.server.clock.advance(Duration::from_secs(1));
    store.server.engine.prune().expect("it is pruned");
    let time = other["created_at"].as_str().expect("a time");
    let from = &changed["updated_at"];
    for rest in ["/memories", "/memory?path=/b", "/search?q=b"] {
        let body = store.get(&format!("at/{time}{rest}")).await.ok();
        let as_of = &body["as_of"];
        assert_eq!((&as_of["complete"], &as_of["complete_from"]), (&json!(false), from), "{rest}");
    }
    let summary = store.get(&format!("at/{time}")).await.ok();
    assert_eq!((&summary["complete"], &summary["memories_count"]), (&json!(false), &json!(1)));
    let missing = store.get(&format!("at/{time}/memory?path=/a")).await;
    assert!(missing.error(404, "not_found_error").contains("the past is complete from"));
    let diff = store.get(&format!("diff?from={time}")).await.ok();
    assert_eq!((&diff["from"]["complete_from"], &diff["to"]["complete"]), (from, &json!(true)));
    let body = json!({"name": "copy", "at": time});
    let copy = store.server.post(&format!("{}/copy", store.own), body).await.ok();
    assert_eq!(copy["source"]["complete"], false);
    let blame = store.get("blame?path=/a").await.ok();
    assert_eq!(
        (&blame["as_of"]["complete"], &blame["data"][0]["precise"]),
        (&json!(true), &json!(false))
    );
}

#[tokio::test]
async fn a_diff_has_the_lines_and_goes_on_after_a_page() {
    let store = Store::new().await;
    let edited = store.create("/edited.md", "one\ntwo\nthree\n").await;
    let moved = store.create("/moved.md", "same\n").await;
    let gone = store.create("/gone.md", "gone\n").await;
    store.create("/same.md", "same\n").await;
    let then = store.now();
    store.change(&edited, json!({"content": "one\n2\nthree\n"})).await;
    store.delete(&gone).await;
    store.change(&moved, json!({"path": "/gone.md"})).await;
    store.create("/d/new.md", "new\n").await;

    let diff = store.get(&format!("diff?from={then}&context=0")).await.ok();
    let data = diff["data"].as_array().expect("a list");
    let shown: Vec<_> =
        data.iter().map(|it| [&it["kind"], &it["old_path"], &it["new_path"]]).collect();
    let (none, path) = (Value::Null, |path: &str| json!(path));
    assert_eq!(
        shown,
        [
            [&path("added"), &none, &path("/d/new.md")],
            [&path("changed"), &path("/edited.md"), &path("/edited.md")],
            [&path("moved"), &path("/moved.md"), &path("/gone.md")],
            [&path("removed"), &path("/gone.md"), &none],
        ]
    );
    let hunk = json!([{"header": "@@ -2 +2 @@", "lines": ["-two", "+2"]}]);
    assert_eq!((&data[1]["diff"]["hunks"], &data[1]["memory_id"]), (&hunk, &edited["id"]));
    assert_eq!(data[1]["old_version_id"], version(&edited));
    assert_eq!(data[2]["diff"], json!({"added_count": 0, "removed_count": 0, "hunks": []}));
    for count in ["added_count", "removed_count", "changed_count", "moved_count"] {
        assert_eq!(diff[count], 1, "{count}");
    }

    // Page by page, while somebody writes; the second side was "now".
    let uri = format!("diff?from={then}&context=0&limit=1");
    let (mut paged, mut page) = (Vec::new(), String::new());
    loop {
        let body = store.get(&format!("{uri}{page}")).await.ok();
        paged.extend(body["data"].as_array().expect("a list").clone());
        assert_eq!(body["added_count"], 1);
        let Some(next) = body["next_page"].as_str() else { break };
        page = format!("&page={next}");
        store.create(&format!("/x{}", paged.len()), "later").await;
    }
    assert_eq!(&paged, data);
    let inside = store.get(&format!("diff?from={then}&path_prefix=/d/&view=basic")).await.ok();
    assert_eq!((&inside["data"][0]["diff"], &inside["removed_count"]), (&none, &json!(0)));
    let none = store.get(&format!("diff?from={then}&to={then}")).await.ok();
    assert_eq!(none["data"], json!([]));
}

#[tokio::test]
async fn a_redaction_between_two_pages_of_a_diff_skips_nothing_else() {
    let store = Store::new().await;
    let then = store.now();
    let mut memories = Vec::new();
    for name in ["/a", "/b", "/c"] {
        memories.push(store.create(name, "secret").await);
    }
    let to = store.now();
    store.change(&memories[0], json!({"content": "clean"})).await;
    let uri = format!("diff?from={then}&to={to}&limit=1");
    let first = store.get(&uri).await.ok();
    assert_eq!(first["data"][0]["new_path"], "/a");
    store.redact(version(&memories[0])).await;
    let next = first["next_page"].as_str().expect("a second page");
    let second = store.get(&format!("{uri}&page={next}")).await.ok();
    assert_eq!(second["data"][0]["new_path"], "/b");
    assert_eq!((&second["to"]["redacted_count"], &second["added_count"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn blame_names_the_author_of_each_line() {
    let store = Store::new().await;
    let memory = store.create("/a.md", "one\ntwo\n").await;
    let writer = store.server.new_key(Role::ReadWrite, None);
    let uri = format!("{}/memories/{}", store.uri, memory["id"].as_str().expect("an id"));
    let change = json!({"content": "one\n2\n", "path": "/b.md"});
    let post = axum::http::Method::POST;
    let changed = store.server.call_as(&writer, post, &uri, change).await.ok();
    let blame = store.get("blame?path=/b.md").await.ok();
    let lines = blame["data"].as_array().expect("a list");
    assert_eq!(texts(lines, "text"), ["one", "2"]);
    assert_eq!(texts(lines, "memory_version_id"), [version(&memory), version(&changed)]);
    assert_eq!(lines[1]["created_at"], changed["updated_at"]);
    assert_ne!(lines[0]["created_by"], lines[1]["created_by"]);
    assert!(lines.iter().all(|line| line["precise"] == true));
    assert_eq!(blame["memory_version_id"], version(&changed));
    let id = memory["id"].as_str().expect("an id");
    let then = format!("blame?memory_id={id}&at={}", version(&memory));
    let then = store.get(&then).await.ok();
    assert_eq!(texts(then["data"].as_array().expect("a list"), "text"), ["one", "two"]);
    assert_eq!(then["path"], "/a.md");

    // The second page is of the version of the first.
    let first = store.get("blame?path=/b.md&limit=1").await.ok();
    let next = first["next_page"].as_str().expect("a second page");
    store.change(&memory, json!({"content": "all new\n", "path": "/c.md"})).await;
    let second = store.get(&format!("blame?path=/b.md&limit=1&page={next}")).await.ok();
    assert_eq!((&second["data"], &second["next_page"]), (&json!([lines[1]]), &Value::Null));
    store.get("blame?path=/b.md").await.error(404, "not_found_error");
}

#[tokio::test]
async fn a_copy_is_a_store_of_its_own() {
    let store = Store::new().await;
    let memory = store.create("/a.md", "one").await;
    store.change(&memory, json!({"content": "two"})).await;
    let copy = async |body: Value| store.server.post(&format!("{}/copy", store.own), body).await;
    let then = copy(json!({"name": "then", "at": version(&memory)})).await.ok();
    let now = copy(json!({"name": "now"})).await.ok();
    for (copied, text) in [(&then, "one"), (&now, "two")] {
        assert_eq!(
            (&copied["type"], &copied["memories_count"]),
            (&json!("memory_store"), &json!(1))
        );
        let origin = copied["metadata"]["copied_from"].as_str().expect("a label");
        assert!(store.uri.ends_with(origin.split('@').next().expect("an id")), "{origin}");
        let uri = format!("/v1/memory_stores/{}", copied["id"].as_str().expect("an id"));
        let read = store.server.all(&format!("{uri}/memories?view=full")).await;
        assert_eq!(texts(&read, "content"), [text]);
        assert_ne!(read[0]["id"], memory["id"]);
    }
    assert!(copy(json!({"name": "then"})).await.invalid().contains("already"));
    copy(json!({"name": "x", "at": "soon"})).await.invalid();
    copy(json!({"name": "x", "color": "red"})).await.invalid();
    copy(json!({})).await.invalid();
    assert_eq!(store.server.all("/v1/memory_stores").await.len(), 3);
}

#[tokio::test]
async fn a_session_reads_the_past_of_its_stores_alone() {
    let store = Store::new().await;
    store.create("/a.md", "one").await;
    store.server.store("other").await;
    let id = store.uri.rsplit('/').next();
    let resource = json!({"type": "memory_store", "memory_store_id": id, "access": "read_only"});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [resource]});
    let session = store.server.post("/v1/sessions", body).await;
    let token = session.headers["quipu-session-token"].to_str().expect("a token").to_owned();
    let get = async |uri: &str| {
        store.server.call_as(&token, axum::http::Method::GET, uri, Value::Null).await
    };
    assert_eq!(get("/quipu/stores/notes/at/now").await.ok()["memories_count"], 1);
    for rest in ["at/now", "at/now/memories", "diff?from=now", "blame?path=/a.md"] {
        get(&format!("/quipu/stores/other/{rest}")).await.error(403, "permission_error");
        get(&format!("/quipu/stores/nothing/{rest}")).await.error(403, "permission_error");
    }
}
