//! `/quipu/events`: changes as they happen.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use quipu_core::engine::{NewAttachment, NewSession, SessionToken, SessionUpdate};
use quipu_core::model::{Access, Forwarding, Instructions, Role, SessionId};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{Server, server};

const PATIENCE: Duration = Duration::from_secs(20);

/// Opens an event stream.
async fn events(server: &Server, uri: &str, headers: &[(&str, &str)]) -> Body {
    let mut request = Request::get(uri).header("x-api-key", &server.key);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = server.app.router().oneshot(request).await.expect("the router answers");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body()
}

/// Waits for the next piece of a stream.
pub(super) async fn next(body: &mut Body) -> String {
    piece(body).await.expect("the stream continues")
}

/// Waits for the next piece of a stream, or for its end.
pub(super) async fn piece(body: &mut Body) -> Option<String> {
    let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("something comes")?;
    let bytes = frame.expect("the stream is whole").into_data().expect("data");
    Some(String::from_utf8(bytes.to_vec()).expect("UTF-8"))
}

pub(crate) fn follow(server: &Server) {
    let app = server.app.clone();
    std::thread::spawn(move || app.follow(|| false));
}

/// Returns the sequences of the events in a text.
fn ids(text: &str) -> Vec<u64> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let number = |id: &str| id.split('-').next().and_then(|number| number.parse().ok());
    ids.map(|id| number(id).expect("a number")).collect()
}

/// Reads a stream until it has delivered a change.
async fn ids_until(body: &mut Body, last: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while all.last() != Some(&last) {
        all.extend(ids(&next(body).await));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_as_they_happen_and_can_be_resumed() {
    let server = server();
    follow(&server);
    let mut live = events(&server, "/quipu/events", &[]).await;
    let store = server.store("s").await;
    let event = next(&mut live).await;
    assert!(event.starts_with("id: 1-"), "{event}");
    assert!(event.contains("\nevent: memory_store.created\ndata: {"), "{event}");
    server.memory(&store, "/a", "secret text").await;
    let event = next(&mut live).await;
    let data = event.split("data: ").nth(1).expect("data").trim();
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!((&data["sequence"], &data["event"]), (&json!(2), &json!("memory_version.created")));
    assert_eq!(data["memory_version"]["path"], "/a");
    assert!(data["memory_version"]["content"].is_null());

    let mut resumed = events(&server, "/quipu/events", &[("last-event-id", "1")]).await;
    assert!(next(&mut resumed).await.starts_with("id: 2-"));
    let mut all = events(&server, "/quipu/events?after=0", &[]).await;
    let both = next(&mut all).await;
    assert!(both.contains("id: 1-") && both.contains("id: 2-"));
    server.get("/quipu/events?after=x").await.invalid();
}

/// After a failover that lost the newest changes, or a restored backup.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_seen_another_feed_is_told_to_start_over() {
    let server = server();
    follow(&server);
    let store = server.store("s").await;
    let mut live = events(&server, "/quipu/events?after=0", &[]).await;
    server.memory(&store, "/a", "x").await;
    let known = loop {
        let text = next(&mut live).await;
        let id = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
        if let Some(id) = id.filter(|id| id.starts_with("2-")) {
            break id.to_owned();
        }
    };
    server.memory(&store, "/b", "x").await;
    let mut resumed = events(&server, "/quipu/events", &[("last-event-id", &known)]).await;
    assert!(next(&mut resumed).await.starts_with("id: 3-"));
    // Another change has the number, or none has it yet.
    for (number, seen) in (3..).zip(["2-1", "3-1", "100-1", "100"]) {
        let mut lost = events(&server, "/quipu/events", &[("last-event-id", seen)]).await;
        let text = next(&mut lost).await;
        assert_eq!(ids(&text), [number], "{seen}: {text}");
        assert!(text.contains("event: gap\n") && !text.contains("memory_version"), "{text}");
        // What it reads now has everything until then; it goes on from there.
        let path = format!("/{seen}");
        server.memory(&store, &path, "x").await;
        let text = next(&mut lost).await;
        assert!(text.contains(&format!("\"path\":\"{path}\"")), "{seen}: {text}");
    }
    for invalid in ["2-", "-1", "2-x"] {
        server.get(&format!("/quipu/events?after={invalid}")).await.invalid();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_store_and_of_allowed_stores_only() {
    let server = server();
    let (first, second) = (server.store("one").await, server.store("two").await);
    server.memory(&first, "/a", "x").await;
    server.memory(&second, "/b", "x").await;
    let id = second.rsplit('/').next().unwrap();
    let mut of_second = events(&server, &format!("/quipu/events?after=0&store={id}"), &[]).await;
    let text = next(&mut of_second).await;
    assert!(text.contains("id: 2-") && text.contains("id: 4-") && !text.contains("id: 3-"));
    let key = server.new_key(Role::ReadOnly, Some(vec![id.parse().unwrap()]));
    let limited = Server { key, ..server };
    let mut allowed = events(&limited, "/quipu/events?after=0", &[]).await;
    assert_eq!(next(&mut allowed).await, text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumed_during_writes_has_no_gaps_and_no_duplicates() {
    const LAST: u64 = 301;
    let server = server();
    follow(&server);
    let store = server.store("s").await;
    let engine = server.engine.clone();
    let id = store.rsplit('/').next().unwrap().parse().unwrap();
    let writer = std::thread::spawn(move || {
        for number in 2..=LAST {
            let path = quipu_core::model::MemoryPath::parse(&format!("/{number}")).unwrap();
            let content = quipu_core::model::Content::new("x").unwrap();
            let actor = quipu_core::model::Actor::expiry();
            engine.create(&actor, id, &path, &content).unwrap();
        }
    });
    let mut streams = Vec::new();
    for after in (0..60).step_by(3) {
        let uri = format!("/quipu/events?after={after}");
        streams.push((after, events(&server, &uri, &[]).await));
        tokio::task::yield_now().await;
    }
    for (after, mut stream) in streams {
        let delivered = ids_until(&mut stream, LAST).await;
        assert_eq!(delivered, (after + 1..=LAST).collect::<Vec<_>>(), "after {after}");
    }
    writer.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_too_slowly_loses_nothing() {
    // More batches than are kept for the slow.
    const LAST: u64 = 101;
    let server = server();
    follow(&server);
    let mut slow = events(&server, "/quipu/events", &[]).await;
    let mut fast = events(&server, "/quipu/events", &[]).await;
    let store = server.store("s").await;
    assert_eq!(ids(&next(&mut slow).await), [1]);
    assert_eq!(ids(&next(&mut fast).await), [1]);
    for number in 2..=LAST {
        server.memory(&store, &format!("/{number}"), "x").await;
        assert_eq!(ids(&next(&mut fast).await), [number]);
    }
    assert_eq!(ids_until(&mut slow, LAST).await, (2..=LAST).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive_whatever_others_do() {
    let server = server();
    follow(&server);
    let store = server.store("other").await;
    let mine = server.store("mine").await;
    let uri = format!("/quipu/events?store={}", mine.rsplit('/').next().unwrap());
    let mut stream = events(&server, &uri, &[]).await;
    let comment = tokio::spawn(async move { next(&mut stream).await });
    for number in 0..30 {
        server.memory(&store, &format!("/{number}"), "x").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(comment.await.unwrap(), ": still here\n\n");
}

/// Opens a stream with a credential of its own.
pub(super) async fn opened_with(server: &Server, key: &str) -> Body {
    let request = Request::get("/quipu/events").header("x-api-key", key).body(Body::empty());
    let response = server.app.router().oneshot(request.expect("a request")).await;
    let response = response.expect("the router answers");
    assert_eq!(response.status(), 200);
    response.into_body()
}

fn started(server: &Server, store: &str) -> (SessionId, String) {
    let attachment = NewAttachment {
        store: store.rsplit('/').next().expect("an id").parse().expect("an id"),
        access: Access::ReadOnly,
        instructions: Instructions::default(),
    };
    let new = NewSession::titled("agent", vec![attachment], SessionToken::Issue);
    let made = server.engine.create_session(server.workspace, &new);
    let (session, token) = made.expect("a session");
    (session.id, token.expect("a token").reveal().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_as_soon_as_its_credential_is_invalid() {
    let server = server();
    follow(&server);
    let store = server.store("s").await;
    let key = server.new_key(Role::ReadOnly, None);
    let mut revoked = opened_with(&server, &key).await;
    let (archived_id, token) = started(&server, &store);
    let mut archived = opened_with(&server, &token).await;
    let (deleted_id, token) = started(&server, &store);
    let mut deleted = opened_with(&server, &token).await;
    let (renewed_id, token) = started(&server, &store);
    let mut renewed = opened_with(&server, &token).await;
    let mut other = opened_with(&server, &server.key).await;

    let keys = server.engine.keys(server.workspace).unwrap();
    let id = keys.iter().find(|key| key.role == Role::ReadOnly).unwrap().id;
    server.engine.revoke_key(id).unwrap();
    server.engine.archive_session(archived_id).unwrap();
    server.engine.delete_session(deleted_id).unwrap();
    server.engine.renew_token(renewed_id, None).unwrap();
    // Nothing else happens that could wake them.
    for stream in [&mut revoked, &mut archived, &mut deleted, &mut renewed] {
        assert_eq!(piece(stream).await, None);
    }
    server.memory(&store, "/a", "x").await;
    assert_eq!(ids(&next(&mut other).await), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_after_a_revocation_is_not_delivered() {
    let server = server();
    let store = server.store("s").await;
    let key = server.new_key(Role::ReadOnly, None);
    let mut stream = opened_with(&server, &key).await;
    let (session, token) = started(&server, &store);
    let mut of_session = opened_with(&server, &token).await;
    let keys = server.engine.keys(server.workspace).unwrap();
    let id = keys.iter().find(|key| key.role == Role::ReadOnly).unwrap().id;
    server.engine.revoke_key(id).unwrap();
    server.engine.archive_session(session).unwrap();
    server.memory(&store, "/a", "x").await;
    // The feed sees all of it at the same time.
    follow(&server);
    for stream in [&mut stream, &mut of_session] {
        assert_eq!(piece(stream).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_key_expires() {
    let server = server();
    let name = quipu_core::model::Name::new("short").unwrap();
    let expires_at = Some(server.engine.now().plus(Duration::from_mins(5)));
    let new = quipu_core::engine::NewKey {
        name,
        role: Role::ReadOnly,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (_, secret) = server.engine.create_key(server.workspace, &new).unwrap();
    let mut stream = opened_with(&server, secret.reveal()).await;
    server.clock.advance(Duration::from_mins(4));
    assert_eq!(next(&mut stream).await, ": still here\n\n");
    server.clock.advance(Duration::from_mins(1));
    while let Some(text) = piece(&mut stream).await {
        assert_eq!(text, ": still here\n\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_only_renamed_keeps_its_stream() {
    let server = server();
    follow(&server);
    let store = server.store("s").await;
    let (session, token) = started(&server, &store);
    let mut stream = opened_with(&server, &token).await;
    let update = SessionUpdate { title: Some("other".to_owned()), ..SessionUpdate::default() };
    server.engine.update_session(session, &update).unwrap();
    let body = json!({"path": "/a", "content": "x"});
    server.call_as(&server.key, Method::POST, &format!("{store}/memories"), body).await.ok();
    assert_eq!(ids(&next(&mut stream).await), [2]);
}

/// A page that follows changes after its sign-in has ended must not ask again and again: an
/// `EventSource` gives up at a status that is not 200, but follows a redirection.
#[tokio::test]
async fn a_page_without_a_sign_in_gets_no_stream_and_no_page() {
    let server = server();
    for cookie in ["", "quipu=", "quipu=sk-quipu-unknown-and-long-enough"] {
        let request = Request::get("/ui/events").header("cookie", cookie);
        let reply = server.send(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(reply.status, 401, "{cookie}");
        assert!(reply.headers.get("location").is_none(), "{cookie}");
    }
}
