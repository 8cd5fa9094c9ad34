//! Search, context, recent activity and links over HTTP.

use axum::http::Method;
use quipu_core::model::{Role, StoreId};
use serde_json::{Value, json};

use super::{Server, server};

/// Makes a store and returns the uri of its own routes, and its id.
async fn store(server: &Server, name: &str) -> (String, StoreId) {
    let uri = server.store(name).await;
    let id = uri.rsplit('/').next().expect("an id").parse().expect("a store's id");
    (uri.replace("/v1/memory_stores", "/quipu/stores"), id)
}

async fn put(server: &Server, store: &str, path: &str, text: &str) {
    let uri = store.replace("/quipu/stores", "/v1/memory_stores");
    server.post(&format!("{uri}/memories"), json!({"path": path, "content": text})).await.ok();
}

fn paths(body: &Value) -> Vec<&str> {
    let results = body["results"].as_array().expect("a list").iter();
    results.map(|hit| hit["path"].as_str().expect("a path")).collect()
}

#[tokio::test]
async fn search_finds_and_filters() {
    let server = server();
    let (notes, _) = store(&server, "notes").await;
    let tea = "---\nstatus: open\ntags: hot\n---\n# Tea\n\n- [fact] needs a kettle";
    put(&server, &notes, "/tea.md", tea).await;
    put(&server, &notes, "/docs/kettle.md", "# Kettle").await;
    let find = async |query: &str| server.get(&format!("/quipu/search?{query}")).await.ok();
    let found = find("q=kettles").await;
    assert_eq!(paths(&found), ["/docs/kettle.md", "/tea.md"]);
    assert_eq!(found["results"][1]["created_by"]["type"], "api_actor");
    assert_eq!(found["results"][1]["metadata"], json!({"status": "open"}));
    assert_eq!(paths(&find("q=kettle&store=notes&tag=hot").await), ["/tea.md"]);
    assert_eq!(paths(&find("query=kettle&path_prefix=docs").await), ["/docs/kettle.md"]);
    assert_eq!(paths(&find("q=kettle&type=observation").await), ["/tea.md"]);
    assert_eq!(paths(&find("q=tea&search_type=title").await), ["/tea.md"]);
    let filter =
        "q=kettle&metadata_filters=%7B%22status%22%3A%7B%22%24in%22%3A%5B%22open%22%5D%7D%7D";
    assert_eq!(paths(&find(filter).await), ["/tea.md"]);
    assert_eq!(find("q=kettle&limit=1").await["has_more"], true);
    let explained = &find("q=kettle&explain=true").await["results"][1]["explanation"];
    assert_eq!((&explained[0]["reason"], &explained[0]["term"]), (&"word".into(), &"kettl".into()));
    assert_eq!(explained[0]["fields"][0]["field"], "body");
    assert_eq!(
        (&explained[1]["reason"], &explained[1]["share"]),
        (&"coverage".into(), &1.0.into())
    );
    assert_eq!(found["results"][1].get("explanation"), None);
    for wrong in [
        "explain=x",
        "type=x",
        "search_type=x",
        "after=soon",
        "metadata_filters=x",
        "limit=0",
        "offset=x",
    ] {
        server.get(&format!("/quipu/search?q=a&{wrong}")).await.invalid();
    }
    server.get("/quipu/search?q=a&store=unknown").await.error(404, "not_found_error");
}

#[tokio::test]
async fn context_recent_and_links_are_answered() {
    let server = server();
    let (notes, _) = store(&server, "notes").await;
    put(&server, &notes, "/tea.md", "# Tea\n\n- [fact] hot\n- needs [[Kettle]]\n- needs [[Cup]]")
        .await;
    put(&server, &notes, "/kettle.md", "# Kettle").await;
    let get = async |rest: &str| server.get(&format!("{notes}/{rest}")).await;
    let context = get("context?url=memory://tea&depth=2").await.ok();
    let item = &context["results"][0];
    assert_eq!(item["primary_result"]["path"], "/tea.md");
    assert_eq!(item["observations"][0]["category"], "fact");
    assert_eq!(item["related_results"][0]["note"]["title"], "Kettle");
    assert_eq!(item["related_results"][1]["note"], Value::Null);
    get("context").await.invalid();
    get("context?url=nothing").await.error(404, "not_found_error");
    let recent = get("recent?limit=1").await.ok();
    assert_eq!(recent["data"][0]["path"], "/kettle.md");
    let page = recent["next_page"].as_str().expect("there is more");
    assert_eq!(get(&format!("recent?page={page}")).await.ok()["data"][0]["title"], "Tea");
    let links = get("links?memory=Tea").await.ok();
    assert_eq!(links["data"][0]["to"]["path"], "/kettle.md");
    let back = get("links?memory=kettle&direction=incoming").await.ok();
    assert_eq!(back["data"][0]["from"]["path"], "/tea.md");
    assert_eq!(get("links?direction=unresolved").await.ok()["data"][0]["target"], "Cup");
    assert_eq!(get("links?direction=none").await.ok(), json!({"data": [], "total": 0}));
    get("links").await.invalid();
}

#[tokio::test]
async fn a_search_finds_only_what_the_caller_may_read() {
    let server = server();
    let (open, open_id) = store(&server, "open").await;
    let (closed, _) = store(&server, "closed").await;
    put(&server, &open, "/a.md", "kettle [[closed::b]]").await;
    put(&server, &closed, "/b.md", "kettle").await;
    let key = server.new_key(Role::ReadOnly, Some(vec![open_id]));
    let get = async |uri: &str| server.call_as(&key, Method::GET, uri, Value::Null).await;
    assert_eq!(paths(&get("/quipu/search?q=kettle").await.ok()), ["/a.md"]);
    get("/quipu/search?q=kettle&store=closed").await.error(403, "permission_error");
    get(&format!("{closed}/recent")).await.error(403, "permission_error");
    get(&format!("{closed}/context?url=b")).await.error(403, "permission_error");
    get(&format!("{closed}/links?memory=b")).await.error(403, "permission_error");
    let links = get(&format!("{open}/links?memory=a")).await.ok();
    assert_eq!(links["data"][0]["to"], Value::Null, "a link must not lead out of the key's stores");
    let all = server.get(&format!("{open}/links?memory=a")).await.ok();
    assert_eq!(all["data"][0]["to"]["path"], "/b.md");
    let uri = "/quipu/search?q=kettle";
    server.call_as("wrong", Method::GET, uri, Value::Null).await.error(401, "authentication_error");
}

const OLD: &str = "---\nsuperseded_by: '[[New plan]]'\n---\n# Old plan\n\nThe kettle is of enamel.";
const NEW: &str = "---\nstatus: draft\n---\n# New plan\n\nThe kettle is of copper, not enamel.";

#[tokio::test]
async fn a_hit_says_that_its_note_is_over() {
    let server = server();
    let (notes, _) = store(&server, "notes").await;
    put(&server, &notes, "/old.md", OLD).await;
    put(&server, &notes, "/new.md", NEW).await;
    put(&server, &notes, "/tea.md", "# Tea\n\nA kettle of enamel for the tea.").await;
    let found = server.get("/quipu/search?q=enamel%20kettle&explain=true").await.ok();
    assert_eq!(paths(&found), ["/tea.md", "/new.md", "/old.md"]);
    let over = json!({
        "state": "expired", "field": "superseded_by", "value": "New plan", "factor": 0.25,
    });
    assert_eq!(found["results"][2]["freshness"], over);
    assert_eq!(found["results"][1]["freshness"]["state"], "stale");
    assert_eq!(found["results"][0].get("freshness"), None);
    let parts = found["results"][2]["explanation"].as_array().expect("a list");
    let lowered = parts.iter().find(|part| part["reason"] == "freshness");
    assert_eq!(lowered.expect("it is lowered")["state"], "expired", "{parts:?}");
    let dated = server.get("/quipu/search?q=kettle%20since%20yesterday&explain=true").await.ok();
    let parts = dated["results"][0]["explanation"].as_array().expect("a list");
    let days = parts.iter().find(|part| part["reason"] == "date").expect("it is of these days");
    assert_eq!((&days["words"], &days["last_day"]), (&json!("since yesterday"), &Value::Null));
    assert!(
        days["first_day"].as_str().is_some_and(|day| day.len() == "2026-11-18".len()),
        "{days}"
    );
}

#[tokio::test]
async fn memories_are_suggested_for_a_text() {
    let server = server();
    let (notes, _) = store(&server, "notes").await;
    put(&server, &notes, "/old.md", OLD).await;
    put(&server, &notes, "/new.md", NEW).await;
    put(&server, &notes, "/trip.md", "# Lisbon\n\nThe flight leaves on Monday.").await;
    let uri = format!("{notes}/suggest");
    let found = server.get(&format!("{uri}?text=Is%20the%20kettle%20of%20enamel%3F")).await.ok();
    let posted = json!({"text": "Is the kettle of enamel?", "budget": 1000, "exclude": null});
    assert_eq!(server.post(&uri, posted).await.ok(), found);
    let [item] = found["suggestions"].as_array().expect("a list").as_slice() else {
        panic!("{found}")
    };
    assert_eq!((&item["path"], &item["is_whole"]), (&"/new.md".into(), &true.into()));
    assert_eq!(item["reasons"]["replaces"], json!(["/old.md"]));
    assert_eq!(item["reasons"]["freshness"]["value"], "draft");
    assert_eq!(item["created_by"]["type"], "api_actor");
    assert_eq!(found["left_out"][0]["path"], "/old.md");
    let markdown = found["markdown"].as_str().expect("a text");
    assert!(markdown.contains("\n> The kettle is of copper, not enamel.\n"), "{markdown}");
    assert!(markdown.contains("· status draft · replaces /old.md ·"), "{markdown}");
    let known = json!({"text": "Is the kettle of enamel?", "exclude": [item["memory_id"]]});
    assert_eq!(server.post(&uri, known).await.ok()["suggestions"], json!([]));
    let none = server.get(&format!("{uri}?text=hello%2C%20how%20are%20you")).await.ok();
    assert_eq!((&none["suggestions"], &none["markdown"]), (&json!([]), &"".into()));
    assert_eq!(server.get(&format!("{uri}?text=")).await.ok()["tokens"], 0);
    for wrong in ["", "?text=a&budget=0", "?text=a&limit=51", "?text=a&limit=x", "?text=a&exclude="]
    {
        server.get(&format!("{uri}{wrong}")).await.invalid();
    }
    for wrong in [json!({}), json!({"text": 1}), json!({"text": "a", "x": 1}), json!([])] {
        server.post(&uri, wrong).await.invalid();
    }
    server.get(&format!("{uri}?text=a&exclude=x")).await.error(404, "not_found_error");
    let long = "kettle ".repeat(20_000);
    assert_eq!(server.post(&uri, json!({"text": long})).await.ok()["is_text_cut"], true);
}

#[tokio::test]
async fn suggestions_come_from_the_named_store_alone() {
    let server = server();
    let (open, open_id) = store(&server, "open").await;
    let (closed, _) = store(&server, "closed").await;
    put(&server, &open, "/a.md", "copper kettle").await;
    put(&server, &closed, "/b.md", "copper kettle of the others").await;
    let key = server.new_key(Role::ReadOnly, Some(vec![open_id]));
    let get = async |uri: &str| server.call_as(&key, Method::GET, uri, Value::Null).await;
    let found = get(&format!("{open}/suggest?text=copper%20kettle")).await.ok();
    assert_eq!(found["suggestions"].as_array().expect("a list").len(), 1);
    assert_eq!(found["suggestions"][0]["path"], "/a.md");
    get(&format!("{closed}/suggest?text=kettle")).await.error(403, "permission_error");
    let body = json!({"text": "kettle"});
    let uri = format!("{closed}/suggest");
    server.call_as(&key, Method::POST, &uri, body).await.error(403, "permission_error");
    let malformed = json!({"txt": 1});
    server.call_as(&key, Method::POST, &uri, malformed).await.error(403, "permission_error");
}
