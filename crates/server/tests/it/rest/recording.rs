//! Agents, environments, and what happens in sessions: recorded, read back, followed.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use quipu_core::model::Role;
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::events::{follow, next, piece};
use super::{Server, server, server_with};

fn said(text: &str) -> Value {
    json!({"type": "user.message", "content": [{"type": "text", "text": text}]})
}

async fn session(server: &Server) -> String {
    let body = json!({"agent": "a", "environment_id": "e"});
    let session = server.post("/v1/sessions", body).await.ok();
    format!("/v1/sessions/{}", session["id"].as_str().expect("an id"))
}

async fn send(server: &Server, session: &str, texts: &[&str]) -> Vec<String> {
    let events: Vec<_> = texts.iter().map(|text| said(text)).collect();
    let sent = server.post(&format!("{session}/events"), json!({"events": events})).await.ok();
    sent["data"].as_array().expect("a list").iter().map(text_of).collect()
}

fn text_of(event: &Value) -> String {
    event["content"][0]["text"].as_str().unwrap_or("-").to_owned()
}

async fn texts(server: &Server, session: &str) -> Vec<String> {
    let listed = server.get(&format!("{session}/events?limit=1000")).await.ok();
    listed["data"].as_array().expect("a list").iter().map(text_of).collect()
}

async fn stream(server: &Server, uri: &str, key: &str) -> Body {
    let request = Request::get(uri).header("x-api-key", key).body(Body::empty());
    let request = request.expect("a request");
    let response = server.app.router().oneshot(request).await.expect("the router answers");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body()
}

/// Returns the events in a piece of a stream.
fn events_in(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// Reads a stream until it has delivered so many events.
async fn received(body: &mut Body, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        texts.extend(events_in(&next(body).await).iter().map(text_of));
    }
    texts
}

/// Reads a stream to its end, without comments.
async fn rest(body: &mut Body) -> String {
    let mut all = String::new();
    while let Some(text) = piece(body).await {
        all += text.trim_start_matches(": still here\n\n");
    }
    all
}

#[tokio::test]
async fn an_agent_is_kept_with_its_versions_and_a_session_keeps_the_one_that_it_started_with() {
    let server = server();
    let body = json!({"name": "Brewer", "model": "claude", "system": "You brew tea."});
    let agent = server.post("/v1/agents", body).await.ok();
    assert_eq!((&agent["version"], &agent["model"]["id"]), (&json!(1), &json!("claude")));
    let uri = format!("/v1/agents/{}", agent["id"].as_str().unwrap());
    let pinned = json!({"agent": agent["id"], "environment_id": "e"});
    let session = server.post("/v1/sessions", pinned).await.ok();
    let changed = server.post(&uri, json!({"version": 1, "system": null})).await.ok();
    assert_eq!((&changed["version"], &changed["system"]), (&json!(2), &Value::Null));
    let stale = server.post(&uri, json!({"version": 1, "name": "x"})).await;
    stale.error(409, "conflict_error");
    assert_eq!(server.get(&format!("{uri}?version=1")).await.ok()["system"], "You brew tea.");
    server.get(&format!("{uri}?version=3")).await.error(404, "not_found_error");
    assert_eq!(server.all(&format!("{uri}/versions?limit=1")).await.len(), 2);
    let session = format!("/v1/sessions/{}", session["id"].as_str().expect("an id"));
    let kept = server.get(&session).await.ok()["agent"].clone();
    assert_eq!((&kept["system"], &kept["name"]), (&json!("You brew tea."), &json!("Brewer")));
    let tools = json!({"agent": {"tools": [{"type": "custom", "name": "kettle"}]}});
    let overridden = server.post(&session, tools).await.ok();
    assert_eq!(overridden["agent"]["tools"][0]["name"], "kettle");
    assert_eq!(server.get(&uri).await.ok()["tools"], json!([]));
    server.post(&format!("{uri}/archive"), Value::Null).await.ok();
    let late = json!({"agent": agent["id"], "environment_id": "e"});
    assert!(server.post("/v1/sessions", late).await.invalid().contains("archived"));
    assert_eq!(server.all("/v1/agents").await.len(), 0);
    assert_eq!(server.all("/v1/agents?include_archived=true").await.len(), 1);
}

#[tokio::test]
async fn agents_of_another_workspace_are_unknown() {
    let server = server();
    let agent = server.post("/v1/agents", json!({"name": "a", "model": "m"})).await.ok();
    let elsewhere = server.engine.create_workspace(&quipu_core::model::Name::new("b").unwrap());
    let key = server.new_key_in(elsewhere.unwrap().id, Role::Admin, None);
    let id = agent["id"].as_str().unwrap();
    let body = json!({"agent": id, "environment_id": "e"});
    let session = server.call_as(&key, axum::http::Method::POST, "/v1/sessions", body).await.ok();
    assert_eq!(session["agent"]["name"], id, "it is only a name there");
    let uri = format!("/v1/agents/{id}");
    let reply = server.call_as(&key, axum::http::Method::GET, &uri, Value::Null).await;
    reply.error(404, "not_found_error");
}

#[tokio::test]
async fn files_and_repositories_are_kept_without_their_tokens() {
    let server = server();
    let repository = json!({"type": "github_repository", "url": "https://u:hunter2@example.org/a/b",
        "authorization_token": "hunter2"});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [repository]});
    let reply = server.post("/v1/sessions", body).await;
    assert!(!reply.body.to_string().contains("hunter2"), "{}", reply.body);
    let session = format!("/v1/sessions/{}/resources", reply.ok()["id"].as_str().unwrap());
    let added = server.post(&session, json!({"type": "file", "file_id": "file_1"})).await.ok();
    assert_eq!(added["mount_path"], "/mnt/session/uploads/file_1");
    let listed = server.get(&session).await.ok();
    let ids: Vec<_> =
        listed["data"].as_array().expect("a list").iter().map(|it| &it["id"]).collect();
    assert_eq!(ids.len(), 2);
    let repository = format!("{session}/{}", ids[0].as_str().unwrap());
    let token = json!({"authorization_token": "hunter3"});
    server.post(&repository, token.clone()).await.ok();
    assert!(!format!("{:?}", server.engine.backend()).contains("hunter"), "nowhere");
    let file = format!("{session}/{}", ids[1].as_str().unwrap());
    server.post(&file, token).await.invalid();
    assert_eq!(server.delete(&file).await.ok()["type"], "session_resource_deleted");
    server.get(&file).await.error(404, "not_found_error");
    let store = server.store("s").await;
    let store = store.rsplit('/').next().unwrap();
    let late = json!({"type": "memory_store", "memory_store_id": store});
    assert!(server.post(&session, late).await.invalid().contains("when a session is created"));
}

#[tokio::test]
async fn a_store_stays_attached() {
    let server = server();
    let store = server.store("s").await;
    let id = store.rsplit('/').next().unwrap();
    let attached = json!({"type": "memory_store", "memory_store_id": id});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [attached]});
    let session = server.post("/v1/sessions", body).await.ok();
    let uri = format!("/v1/sessions/{}/resources/{id}", session["id"].as_str().expect("an id"));
    assert_eq!(server.get(&uri).await.ok()["memory_store_id"], id);
    server.delete(&uri).await.invalid();
}

#[tokio::test]
async fn events_are_read_back_in_order_and_searched_when_asked() {
    let server = server();
    let session = session(&server).await;
    assert_eq!(send(&server, &session, &["one", "two", "Three"]).await, ["one", "two", "Three"]);
    let reported = session.replace("/v1/", "/quipu/") + "/events";
    let message = json!({"type": "agent.message", "content": [{"type": "text", "text": "four"}],
        "id": "sevt_own", "processed_at": "never"});
    let report = server.post(&reported, json!({"events": [message]})).await.ok();
    assert_eq!(report["data"][0]["number"], 4);
    assert_ne!(report["data"][0]["event"]["id"], "sevt_own");
    assert_eq!(texts(&server, &session).await, ["one", "two", "Three", "four"]);
    let page = server.get(&format!("{session}/events?order=desc&limit=3")).await.ok();
    assert_eq!(page["data"].as_array().unwrap().len(), 3);
    let cursor = page["next_page"].as_str().unwrap();
    let last = server.get(&format!("{session}/events?order=desc&limit=3&page={cursor}")).await.ok();
    assert_eq!((text_of(&last["data"][0]), &last["next_page"]), ("one".to_owned(), &Value::Null));
    let said = server.get(&format!("{session}/events?types=agent.message")).await.ok();
    assert_eq!(said["data"].as_array().unwrap().len(), 1);
    let found = server.get(&format!("{reported}?grep=THREE")).await.ok();
    assert_eq!(
        (found["data"].as_array().unwrap().len(), &found["data"][0]["number"]),
        (1, &json!(3))
    );
    let body =
        json!({"events": [{"type": "user.message", "content": []}, {"type": "agent.message"}]});
    let refused = server.post(&format!("{session}/events"), body).await.invalid();
    assert!(refused.contains("events.1.type"), "{refused}");
    assert_eq!(texts(&server, &session).await.len(), 4, "all of them or none");
}

#[tokio::test]
async fn a_page_ends_early_when_its_events_are_long() {
    let server = server();
    let session = session(&server).await;
    let long = "x".repeat(200_000);
    for _ in 0..3 {
        send(&server, &session, &[&long, &long, &long]).await;
    }
    let page = server.get(&format!("{session}/events?limit=1000")).await.ok();
    let count = page["data"].as_array().unwrap().len();
    assert!((6..9).contains(&count), "{count}");
    assert_eq!(server.all(&format!("{session}/events")).await.len(), 9);
}

#[tokio::test]
async fn a_session_with_too_many_events_explains_what_to_do() {
    let limits =
        Limits { events_per_session_max: 1, event_size_bytes_max: 100, ..Limits::default() };
    let server = server_with(HttpSettings::default(), limits);
    let session = session(&server).await;
    let uri = format!("{session}/events");
    let long = json!({"events": [said(&"x".repeat(100))]});
    assert!(server.post(&uri, long).await.invalid().contains("event_size_bytes_max"));
    send(&server, &session, &["one"]).await;
    let more = server.post(&uri, json!({"events": [said("two")]})).await.invalid();
    assert!(more.contains("events_per_session_max"), "{more}");
}

#[tokio::test]
async fn threads_are_those_that_were_reported() {
    let server = server();
    let session = session(&server).await;
    send(&server, &session, &["to the first"]).await;
    let reported = session.replace("/v1/", "/quipu/") + "/events";
    let thread =
        |kind: &str| json!({"type": kind, "session_thread_id": "sthr_2", "agent_name": "b"});
    let events = json!({"events": [thread("session.thread_created"), thread("agent.message"),
        thread("session.thread_status_running")]});
    server.post(&reported, events).await.ok();
    let threads = server.all(&format!("{session}/threads")).await;
    assert_eq!((threads.len(), &threads[1]["status"]), (2, &json!("running")));
    assert_eq!(threads[1]["agent"]["name"], "b");
    let primary = threads[0]["id"].as_str().unwrap();
    assert_eq!(threads[1]["parent_thread_id"], primary);
    let of = async |thread: &str| server.all(&format!("{session}/threads/{thread}/events")).await;
    assert_eq!((of(primary).await.len(), of("sthr_2").await.len()), (2, 2));
    let running = server.all(&format!("{session}/threads?statuses=running")).await;
    assert_eq!(running.len(), 1);
    server.get(&format!("{session}/threads/sthr_3")).await.error(404, "not_found_error");
}

#[tokio::test]
async fn of_many_reports_about_a_thread_the_last_one_is_its_status() {
    let server = server();
    let session = session(&server).await;
    let reported = session.replace("/v1/", "/quipu/") + "/events";
    let report = |kind: &str, thread: &str| {
        json!({"type": format!("session.thread_{kind}"), "session_thread_id": thread,
            "agent_name": "b", "note": "x".repeat(1000)})
    };
    let mut events = vec![report("created", "sthr_2"), report("created", "sthr_3")];
    for number in 0..301 {
        let kind = if number % 2 == 0 { "status_running" } else { "status_idle" };
        events.push(report(kind, "sthr_3"));
    }
    events.push(report("status_terminated", "sthr_2"));
    server.post(&reported, json!({"events": events})).await.ok();
    let threads = server.all(&format!("{session}/threads")).await;
    let ids: Vec<_> = threads.iter().skip(1).map(|thread| &thread["id"]).collect();
    assert_eq!(ids, ["sthr_2", "sthr_3"], "as they were created");
    assert_eq!(threads[1]["status"], "terminated");
    assert_eq!(threads[2]["status"], "running");
    assert_eq!(threads[2]["agent"]["name"], "b");
    assert!(threads[2]["created_at"].as_str() < threads[2]["updated_at"].as_str());
    assert!(!threads[2].to_string().contains("xxx"), "what else was reported is not part of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_opened_first_delivers_what_is_sent_then() {
    let server = server();
    follow(&server);
    let session = session(&server).await;
    send(&server, &session, &["before"]).await;
    let mut live = stream(&server, &format!("{session}/events/stream"), &server.key).await;
    send(&server, &session, &["one", "two"]).await;
    assert_eq!(received(&mut live, 2).await, ["one", "two"]);
    let uri = format!("{session}/events/stream?after=1");
    let mut resumed = stream(&server, &uri, &server.key).await;
    let text = next(&mut resumed).await;
    assert!(text.starts_with("id: 2\nevent: message\ndata: {"), "{text}");
    send(&server, &session, &["three"]).await;
    assert_eq!(received(&mut live, 1).await, ["three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_senders_at_once_leave_no_gap_and_every_follower_sees_the_same_order() {
    let server = server();
    follow(&server);
    let session = session(&server).await;
    let uri = format!("{session}/events/stream");
    let mut live = stream(&server, &uri, &server.key).await;
    let sender = async |name: &str| {
        for number in 0..10 {
            send(&server, &session, &[&format!("{name}{number}")]).await;
        }
    };
    tokio::join!(sender("a"), sender("b"));
    let live = received(&mut live, 20).await;
    assert_eq!(live, texts(&server, &session).await);
    let recorded = server.all(&(session.replace("/v1/", "/quipu/") + "/events")).await;
    let numbers: Vec<_> = recorded.iter().map(|event| event["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_session() {
    let server = server();
    follow(&server);
    for is_deleted in [false, true] {
        let session = session(&server).await;
        let uri = format!("{session}/events/stream");
        let mut live = stream(&server, &uri, &server.key).await;
        send(&server, &session, &["last"]).await;
        if is_deleted {
            assert_eq!(received(&mut live, 1).await, ["last"]);
            server.delete(&session).await.ok();
            let events = events_in(&rest(&mut live).await);
            assert_eq!((events.len(), &events[0]["type"]), (1, &json!("session.deleted")));
        } else {
            server.post(&format!("{session}/archive"), Value::Null).await.ok();
            assert_eq!(events_in(&rest(&mut live).await).len(), 1);
            let late = json!({"events": [said("x")]});
            let refused = server.post(&format!("{session}/events"), late).await;
            assert!(refused.invalid().contains("archived"));
            let mut late = stream(&server, &format!("{uri}?after=0"), &server.key).await;
            assert_eq!(events_in(&rest(&mut late).await).len(), 1, "what there was, and the end");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_key_before_anything_that_comes_later() {
    let server = server();
    follow(&server);
    let key = server.new_key(Role::ReadWrite, None);
    let session = session(&server).await;
    let mut live = stream(&server, &format!("{session}/events/stream"), &key).await;
    let keys = server.engine.keys(server.workspace).unwrap();
    let key = keys.iter().find(|key| key.role == Role::ReadWrite).unwrap();
    server.engine.revoke_key(key.id).unwrap();
    send(&server, &session, &["secret"]).await;
    assert_eq!(rest(&mut live).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_session_follows_and_reports_its_own_session_only() {
    let server = server();
    follow(&server);
    let body = json!({"agent": "a", "environment_id": "e"});
    let reply = server.post("/v1/sessions", body).await;
    let token = reply.headers["quipu-session-token"].to_str().unwrap().to_owned();
    let own = format!("/v1/sessions/{}", reply.ok()["id"].as_str().unwrap());
    let other = session(&server).await;
    let post = axum::http::Method::POST;
    let events = json!({"events": [said("mine")]});
    let uri = own.replace("/v1/", "/quipu/") + "/events";
    let reported = server.call_as(&token, post.clone(), &uri, events.clone()).await.ok();
    assert_eq!(reported["data"][0]["recorded_by"]["type"], "session_actor");
    let uri = other.replace("/v1/", "/quipu/") + "/events";
    server.call_as(&token, post, &uri, events).await.error(404, "not_found_error");
    let mut live = stream(&server, &format!("{own}/events/stream"), &token).await;
    send(&server, &own, &["one"]).await;
    assert_eq!(received(&mut live, 1).await, ["one"]);
    server.delete(&own).await.ok();
    assert_eq!(rest(&mut live).await, "", "the token has ended with the session");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_redacted_while_somebody_follows_is_delivered_without_its_text() {
    let server = server();
    follow(&server);
    let session = session(&server).await;
    send(&server, &session, &["sesame 4711", "harmless"]).await;
    // It has not been polled, so it has read nothing yet.
    let uri = format!("{session}/events/stream?after=0");
    let mut slow = stream(&server, &uri, &server.key).await;
    let pattern = quipu_core::engine::Pattern::text("sesame 4711").unwrap();
    let selection = quipu_core::engine::Selection { pattern: Some(pattern), ..Default::default() };
    let scope = quipu_core::engine::Scope::all(server.workspace);
    let actor = quipu_core::model::Actor::expiry();
    let receipt = server
        .engine
        .redact_selected(&actor, &scope, &selection, &quipu_core::engine::Terms::default())
        .unwrap();
    assert_eq!(receipt.events_count, 1);
    let events = events_in(&next(&mut slow).await);
    assert_eq!(events[0]["content"], json!([{"type": "redacted"}]));
    assert_eq!(text_of(&events[1]), "harmless");
    assert_eq!(texts(&server, &session).await, ["-", "harmless"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_says_that_it_is_still_there() {
    let server = server();
    let session = session(&server).await;
    let mut live = stream(&server, &format!("{session}/events/stream"), &server.key).await;
    assert_eq!(next(&mut live).await, ": still here\n\n");
    tokio::time::advance(Duration::from_secs(1)).await;
}
