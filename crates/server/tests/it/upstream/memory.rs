//! Memory in messages, answered in one piece.

use std::sync::{Arc, OnceLock};

use quipu_core::engine::Precondition;
use quipu_core::model::{Content, KeyId, MemoryPath, Role, SessionId, StoreId, View};
use quipu_core::settings::Limits;
use quipu_knowledge::Knowledge;
use quipu_server::{HttpSettings, UpstreamSettings};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::scripted::{self, Seen, Step, Upstream};
use super::{ask, forwarding_to, messages, new_key, settings};
use crate::rest::{Server, server_with};

pub(super) const STORE: [(&str, &str); 1] = [("quipu-store", "notes")];

/// Returns a call of the memory tool.
pub(super) fn remember(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "memory", "input": input})
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn create(path: &str, content: &str) -> Value {
    json!({"command": "create", "path": format!("/memories{path}"), "file_text": content})
}

/// Returns an answer of the upstream.
fn message(id: &str, stop_reason: &str, content: &[Value]) -> Vec<u8> {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let body = json!({"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null, "usage": usage});
    scripted::json(200, "request-id: req_up\r\n", &body)
}

/// Makes a server with a store, and returns the id of the store.
pub(super) async fn with_store(upstream: UpstreamSettings) -> (Server, StoreId) {
    let server = forwarding_to(upstream);
    let store = server.store("notes").await;
    let id = store.rsplit('/').next().expect("it is there").parse().expect("it is there");
    (server, id)
}

pub(super) fn question() -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]})
}

/// Returns what is in a memory.
pub(super) fn content(server: &Server, store: StoreId, path: &str) -> Option<String> {
    let path = MemoryPath::parse(path).expect("it is there");
    let memory = server.engine.memory_at(store, &path, View::Full).ok()?;
    memory.content.map(|content| content.as_str().to_owned())
}

/// Returns the sessions that wrote, with their titles.
async fn sessions(server: &Server) -> Vec<(String, String)> {
    let field =
        |session: &Value, name: &str| session[name].as_str().expect("it is there").to_owned();
    let all = server.all("/v1/sessions").await;
    all.iter().map(|session| (field(session, "id"), field(session, "title"))).collect()
}

#[tokio::test]
async fn a_model_remembers_and_the_app_sees_one_message() {
    let upstream = Upstream::answering(vec![
        message(
            "msg_1",
            "tool_use",
            &[
                text("I note it."),
                remember("toolu_1", &create("/tea.md", "75 °C")),
                remember("toolu_2", &json!({"command": "view", "path": "/memories/tea.md"})),
            ],
        ),
        message("msg_2", "end_turn", &[text("Done.")]),
    ])
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let reply = ask(&server, &[STORE[0], ("quipu-app", "brewer")], &question()).await;
    assert_eq!(reply.headers["request-id"], "req_up");
    let expected = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [text("I note it."), text("Done.")], "stop_reason": "end_turn",
        "stop_sequence": null, "usage": {"input_tokens": 20, "output_tokens": 2}});
    assert_eq!(reply.ok(), expected);
    assert_eq!(content(&server, store, "/tea.md").as_deref(), Some("75 °C"));

    let seen = upstream.seen();
    let [first, second] = [&seen[0], &seen[1]].map(Seen::json);
    assert!(seen[0].headers["anthropic-beta"].contains("context-management-2025-06-27"));
    assert!(seen.iter().all(|seen| !seen.headers.contains_key("quipu-store")));
    assert_eq!(first["tools"], json!([{"type": "memory_20250818", "name": "memory"}]));
    let system = first["system"].as_str().unwrap();
    assert!(system.contains("`/memories`: notes (you may read and write)"), "{system}");
    assert_eq!(second["system"], first["system"]);
    let said = second["messages"].as_array().unwrap();
    assert_eq!(said.len(), 3);
    assert_eq!(said[1]["content"].as_array().unwrap().len(), 3);
    let results = said[2]["content"].as_array().unwrap();
    assert_eq!(results[0]["tool_use_id"], "toolu_1");
    assert!(results[0].get("is_error").is_none());
    assert!(results[1]["content"].as_str().unwrap().contains("75 °C"));

    // The version was made by a session of the app, which the key made.
    let [(id, title)] = <[_; 1]>::try_from(sessions(&server).await).unwrap();
    assert_eq!(title, "brewer");
    let session = server.engine.session(id.parse::<SessionId>().unwrap()).unwrap();
    assert!(session.key.is_some());
    let path = MemoryPath::parse("/tea.md").unwrap();
    let history = server.engine.history(store, &path, 9).unwrap();
    assert_eq!(history[0].actor.to_string(), id);
}

#[tokio::test]
async fn what_the_app_has_cached_stays_in_front() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(message("msg_1", "end_turn", &[text("Hi")]))])
            .await;
    let (server, _) = with_store(settings(&upstream)).await;
    let own = json!({"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}});
    let tool = json!({"name": "weather", "input_schema": {}});
    for (system, tools) in [
        (json!("Be kind."), json!([tool])),
        (json!([own]), json!([tool, {"name": "memory", "type": "memory_20250818"}])),
    ] {
        let mut body = question();
        body["system"] = system.clone();
        body["tools"] = tools;
        ask(&server, &[STORE[0], ("anthropic-beta", "a-1, context-management-2025-06-27")], &body)
            .await
            .ok();
        let seen = upstream.seen().pop().unwrap();
        assert_eq!(seen.headers["anthropic-beta"], "a-1, context-management-2025-06-27");
        let seen = seen.json();
        assert_eq!(seen["tools"][0], tool);
        assert_eq!(seen["tools"].as_array().unwrap().len(), 2);
        match system.as_str() {
            Some(text) => {
                let start = format!("{text}\n\n# Memory");
                assert!(seen["system"].as_str().unwrap().starts_with(&start));
            }
            None => assert_eq!(seen["system"][0], own),
        }
    }
}

#[tokio::test]
async fn problems_of_the_store_are_answers_for_the_model() {
    let upstream = Upstream::answering(vec![
        message(
            "msg_1",
            "tool_use",
            &[
                remember("toolu_1", &json!({"command": "view", "path": "/memories/missing"})),
                remember("toolu_2", &json!({"command": "dance"})),
                remember("toolu_3", &json!("nonsense")),
                remember("toolu_4", &create("/../../etc/passwd", "x")),
            ],
        ),
        message("msg_2", "end_turn", &[text("Sorry.")]),
    ])
    .await;
    let (server, _) = with_store(settings(&upstream)).await;
    ask(&server, &STORE, &question()).await.ok();
    let said = upstream.seen()[1].json();
    let results = said["messages"][2]["content"].as_array().unwrap().clone();
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|result| result["is_error"] == true), "{results:?}");
}

#[tokio::test]
async fn a_key_that_only_reads_changes_nothing_and_leaves_no_session() {
    let upstream = Upstream::answering(vec![
        message("msg_1", "tool_use", &[remember("toolu_1", &create("/a", "x"))]),
        message("msg_2", "end_turn", &[text("I cannot.")]),
    ])
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let (_, reader) = new_key(&server, Role::ReadOnly, Some(vec![store]));
    server.send(messages(&reader, &STORE, &question())).await.ok();
    let seen = upstream.seen();
    assert!(seen[0].json()["system"].as_str().unwrap().contains("read only"));
    assert_eq!(seen[1].json()["messages"][2]["content"][0]["is_error"], true);
    assert_eq!(content(&server, store, "/a"), None);
    assert!(sessions(&server).await.is_empty());
}

#[tokio::test]
async fn an_app_goes_on_in_its_session_until_that_is_archived() {
    let answers = (0..5).flat_map(|number| {
        [
            message(
                "msg_1",
                "tool_use",
                &[remember("toolu_1", &create(&format!("/{number}"), "x"))],
            ),
            message("msg_2", "end_turn", &[]),
        ]
    });
    let upstream = Upstream::answering(answers.collect()).await;
    let (server, _) = with_store(settings(&upstream)).await;
    for _ in 0..2 {
        ask(&server, &[STORE[0], ("quipu-app", "one")], &question()).await.ok();
    }
    ask(&server, &[STORE[0], ("quipu-app", "two")], &question()).await.ok();
    let titles = |all: Vec<(String, String)>| all.into_iter().map(|it| it.1).collect::<Vec<_>>();
    let mut begun = sessions(&server).await;
    begun.sort_by(|one, other| one.1.cmp(&other.1));
    let one = begun[0].0.clone();
    assert_eq!(titles(begun), ["one", "two"]);
    server.engine.archive_session(one.parse().unwrap()).unwrap();
    ask(&server, &[STORE[0], ("quipu-app", "one")], &question()).await.ok();
    let (_, other) = new_key(&server, Role::ReadWrite, None);
    server.send(messages(&other, &[STORE[0], ("quipu-app", "one")], &question())).await.ok();
    let all = server.all("/v1/sessions?include_archived=true").await;
    assert_eq!(all.len(), 4, "a session of its own for another key");
}

#[tokio::test]
async fn the_last_turn_is_for_the_conclusion() {
    // It never stops by itself.
    let upstream = Upstream::start(|_, number| {
        let view =
            remember(&format!("toolu_{number}"), &json!({"command": "view", "path": "/memories"}));
        vec![Step::Write(message("msg", "tool_use", &[text("More."), view]))]
    })
    .await;
    let (server, _) = with_store(UpstreamSettings { turns_max: 3, ..settings(&upstream) }).await;
    let mut body = question();
    body["tool_choice"] = json!({"type": "tool", "name": "memory"});
    let reply = ask(&server, &STORE, &body).await.ok();
    assert_eq!(reply["stop_reason"], "end_turn");
    assert_eq!(reply["content"].as_array().unwrap().len(), 3);
    let choices: Vec<_> =
        upstream.seen().iter().map(|seen| seen.json()["tool_choice"].clone()).collect();
    let expected = [
        json!({"type": "tool", "name": "memory"}),
        json!({"type": "auto"}),
        json!({"type": "none"}),
    ];
    assert_eq!(choices, expected);
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_carried_out() {
    let call = remember("toolu_1", &create("/a", "half"));
    let upstream =
        Upstream::answering(vec![message("msg_1", "max_tokens", &[text("So"), call])]).await;
    let (server, store) = with_store(settings(&upstream)).await;
    let reply = ask(&server, &STORE, &question()).await.ok();
    assert_eq!(
        (&reply["stop_reason"], &reply["content"]),
        (&json!("max_tokens"), &json!([text("So")]))
    );
    assert_eq!(content(&server, store, "/a"), None);
}

#[tokio::test]
async fn an_error_in_a_later_turn_arrives_as_it_is_and_what_was_written_stays() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let upstream = Upstream::answering(vec![
        message("msg_1", "tool_use", &[remember("toolu_1", &create("/a", "x"))]),
        scripted::json(529, "retry-after: 3\r\n", &error),
    ])
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let reply = ask(&server, &STORE, &question()).await;
    assert_eq!((reply.status, &reply.body), (529, &error));
    assert_eq!(reply.headers["retry-after"], "3");
    assert_eq!(content(&server, store, "/a").as_deref(), Some("x"));
}

#[tokio::test]
async fn a_key_that_is_revoked_in_the_middle_writes_nothing_more() {
    let revoking = Arc::new(OnceLock::<(Knowledge, KeyId)>::new());
    let known = Arc::clone(&revoking);
    let upstream = Upstream::start(move |_, number| {
        // Nobody tells the feed, so nothing but the check before the call can notice it.
        if number == 1 {
            let (engine, key) = known.get().unwrap();
            engine.revoke_key(*key).unwrap();
        }
        let call = remember("toolu_1", &create(&format!("/{number}"), "x"));
        vec![Step::Write(message("msg_1", "tool_use", &[call]))]
    })
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let (id, key) = new_key(&server, Role::ReadWrite, None);
    revoking.set((server.engine.clone(), id)).unwrap();
    let reply = server.send(messages(&key, &STORE, &question())).await;
    reply.error(401, "authentication_error");
    assert_eq!(content(&server, store, "/0").as_deref(), Some("x"));
    assert_eq!(content(&server, store, "/1"), None);
}

/// What a conversation looks like in which a turn calls both the memory and a tool of the app.
struct Mixed {
    server: Server,
    store: StoreId,
    upstream: Upstream,
    /// What the app sends next.
    next: Value,
}

async fn mixed() -> Mixed {
    let weather =
        json!({"type": "tool_use", "id": "toolu_w", "name": "weather", "input": {"at": "Rome"}});
    let upstream = Upstream::start(move |_, number| {
        vec![Step::Write(match number {
            0 => {
                let call = remember("toolu_1", &json!({"command": "view", "path": "/memories"}));
                message("msg_1", "tool_use", &[text("Let me look."), call])
            }
            1 => {
                let call =
                    remember("toolu_2", &json!({"command": "view", "path": "/memories/tea.md"}));
                message("msg_2", "tool_use", &[call, text("And the weather."), weather.clone()])
            }
            _ => message("msg_3", "end_turn", &[text("Fine.")]),
        })]
    })
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let path = MemoryPath::parse("/tea.md").expect("it is there");
    let secret = Content::new("the secret of the tea").expect("it is there");
    let actor = quipu_core::model::Actor::expiry();
    server.engine.put(&actor, store, (&path, &secret), Precondition::None).expect("it is there");
    let mut next = question();
    let reply = ask(&server, &STORE, &next).await.ok();
    assert_eq!(reply["stop_reason"], "tool_use");
    let kinds: Vec<_> = reply["content"]
        .as_array()
        .expect("it is there")
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(kinds, ["text", "text", "tool_use"]);
    let mut shown = reply["content"].clone();
    shown[2]["cache_control"] = json!({"type": "ephemeral"});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_w", "content": "sunny"});
    let said = next["messages"].as_array_mut().expect("it is there");
    said.push(json!({"role": "assistant", "content": shown}));
    said.push(json!({"role": "user", "content": [result]}));
    Mixed { server, store, upstream, next }
}

impl Mixed {
    /// Returns the roles and the types of everything that the upstream was sent last.
    fn sent(&self) -> Vec<(Value, Vec<Value>)> {
        let sent = self.upstream.seen().pop().expect("it is there").json();
        let types = |message: &Value| match message["content"].as_array() {
            Some(blocks) => blocks.iter().map(|block| block["type"].clone()).collect(),
            None => vec![json!("text")],
        };
        let all = sent["messages"].as_array().expect("it is there");
        all.iter().map(|message| (message["role"].clone(), types(message))).collect()
    }
}

/// What the upstream gets if nothing was kept.
fn forgotten() -> Vec<(Value, Vec<Value>)> {
    let entry =
        |role: &str, types: &[&str]| (json!(role), types.iter().map(|it| json!(it)).collect());
    vec![
        entry("user", &["text"]),
        entry("assistant", &["text", "text", "tool_use"]),
        entry("user", &["tool_result"]),
    ]
}

#[tokio::test]
async fn a_turn_that_also_calls_the_app_is_whole_again_when_the_app_answers() {
    let mixed = mixed().await;
    ask(&mixed.server, &STORE, &mixed.next).await.ok();
    let entry =
        |role: &str, types: &[&str]| (json!(role), types.iter().map(|it| json!(it)).collect());
    let expected: Vec<(Value, Vec<Value>)> = vec![
        entry("user", &["text"]),
        entry("assistant", &["text", "tool_use"]),
        entry("user", &["tool_result"]),
        entry("assistant", &["tool_use", "text", "tool_use"]),
        entry("user", &["tool_result", "tool_result"]),
    ];
    assert_eq!(mixed.sent(), expected);
    let sent = mixed.upstream.seen().pop().unwrap().json();
    let results = &sent["messages"][4]["content"];
    assert_eq!(results[0]["tool_use_id"], "toolu_2");
    assert!(results[0]["content"].as_str().unwrap().contains("the secret of the tea"));
    assert_eq!(results[1]["content"], "sunny");
    assert_eq!(sent["messages"][3]["content"][2]["cache_control"], json!({"type": "ephemeral"}));
    // And again, as the conversation goes on.
    ask(&mixed.server, &STORE, &mixed.next).await.ok();
    assert_eq!(mixed.sent(), expected);
}

#[tokio::test]
async fn what_was_kept_for_one_key_or_store_is_kept_from_all_others() {
    let mixed = mixed().await;
    mixed.server.store("other").await;
    let (_, other) = new_key(&mixed.server, Role::Admin, None);
    mixed.server.send(messages(&other, &STORE, &mixed.next)).await.ok();
    assert_eq!(mixed.sent(), forgotten());
    ask(&mixed.server, &[("quipu-store", "other")], &mixed.next).await.ok();
    assert_eq!(mixed.sent(), forgotten());
    assert!(!mixed.upstream.seen().pop().unwrap().everything().contains("secret of the tea"));
}

#[tokio::test]
async fn what_was_redacted_since_does_not_come_back() {
    let mixed = mixed().await;
    let actor = quipu_core::model::Actor::expiry();
    let path = MemoryPath::parse("/tea.md").unwrap();
    let old = mixed.server.engine.history(mixed.store, &path, 1).unwrap().remove(0).id;
    let new = Content::new("plain tea").unwrap();
    let engine = &mixed.server.engine;
    engine.put(&actor, mixed.store, (&path, &new), Precondition::None).unwrap();
    engine.redact(&actor, mixed.store, &[old]).unwrap();
    ask(&mixed.server, &STORE, &mixed.next).await.ok();
    assert_eq!(mixed.sent(), forgotten());
    assert!(!mixed.upstream.seen().pop().unwrap().everything().contains("secret of the tea"));
}

#[tokio::test]
async fn tokens_are_counted_with_what_memory_adds() {
    let count = json!({"input_tokens": 5});
    let upstream = Upstream::answering(vec![scripted::json(200, "", &count)]).await;
    let (server, _) = with_store(settings(&upstream)).await;
    let request = axum::http::Request::post("/v1/messages/count_tokens")
        .header("x-api-key", &server.key)
        .header("quipu-store", "notes")
        .body(axum::body::Body::from(question().to_string()));
    assert_eq!(server.send(request.unwrap()).await.ok(), count);
    let seen = upstream.seen().pop().unwrap();
    assert!(seen.line.starts_with("POST /v1/messages/count_tokens "));
    assert_eq!(seen.json()["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn calls_of_the_memory_are_counted_by_what_became_of_them() {
    let calls = [
        remember("toolu_1", &create("/tea.md", "75 °C")),
        remember("toolu_2", &json!({"command": "view", "path": "/memories/nowhere.md"})),
        remember("toolu_3", &json!({"command": "view", "path": "/memories"})),
    ];
    let upstream = Upstream::answering(vec![
        message("msg_1", "tool_use", &calls),
        message("msg_2", "end_turn", &[text("Done.")]),
    ])
    .await;
    let (server, _) = with_store(settings(&upstream)).await;
    ask(&server, &STORE, &question()).await.ok();
    let page = server.get("/metrics").await.body;
    let page = page.as_str().expect("text");
    for (outcome, count) in [("answered", 2), ("failed", 1)] {
        let line = format!("quipu_upstream_memory_calls_total{{result=\"{outcome}\"}} {count}");
        assert!(page.contains(&line), "{line}: {page}");
    }
}

#[tokio::test]
async fn a_request_of_many_turns_counts_once_for_the_limit_of_its_key() {
    let upstream = Upstream::start(|_, number| {
        let call = remember("toolu_1", &json!({"command": "view", "path": "/memories"}));
        vec![Step::Write(if number % 3 == 2 {
            message("msg", "end_turn", &[text("Done.")])
        } else {
            message("msg", "tool_use", &[call])
        })]
    })
    .await;
    let settings = HttpSettings {
        upstream: Some(settings(&upstream)),
        requests_per_minute_max: Some(4),
        ..HttpSettings::default()
    };
    let mut server = server_with(settings, Limits::default());
    server.key = new_key(&server, Role::Admin, None).1;
    server.store("notes").await;
    for _ in 0..3 {
        ask(&server, &STORE, &question()).await.ok();
    }
    assert_eq!(upstream.seen().len(), 9);
    ask(&server, &STORE, &question()).await.error(429, "rate_limit_error");
    assert_eq!(upstream.seen().len(), 9);
}

#[tokio::test]
async fn requests_with_memory_hold_no_more_than_the_settings_say() {
    let gate = Arc::new(Semaphore::new(0));
    let opening = Arc::clone(&gate);
    let upstream = Upstream::start(move |_, _| {
        let answer = message("msg", "end_turn", &[text("Done.")]);
        vec![Step::Wait(Arc::clone(&opening)), Step::Write(answer)]
    })
    .await;
    let limited = UpstreamSettings { memory_size_bytes_max: 100_000, ..settings(&upstream) };
    let (server, _) = with_store(limited).await;
    let long = |bytes: usize| json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x".repeat(bytes)}]});
    // One key gets half of it.
    ask(&server, &STORE, &long(60_000)).await.error(529, "overloaded_error");
    let other = new_key(&server, Role::ReadWrite, None).1;
    let (large, small, whole) = (long(40_000), long(20_000), long(90_000));
    let (first, ()) = tokio::join!(ask(&server, &STORE, &large), async {
        upstream.arrived.acquire().await.expect("it arrives").forget();
        ask(&server, &STORE, &small).await.error(529, "overloaded_error");
        // Others have the other half, and what is only forwarded needs nothing of it.
        gate.add_permits(9);
        server.send(messages(&other, &STORE, &large)).await.ok();
        ask(&server, &[], &whole).await.ok();
    });
    first.ok();
    // What is over holds nothing.
    for _ in 0..3 {
        ask(&server, &STORE, &long(40_000)).await.ok();
    }
}

#[tokio::test]
async fn whoever_names_many_apps_starts_no_sessions_of_others_again() {
    let upstream = Upstream::start(|_, number| {
        vec![Step::Write(if number % 2 == 0 {
            let path = format!("/{number}.md");
            message("msg", "tool_use", &[remember("toolu_1", &create(&path, "x"))])
        } else {
            message("msg", "end_turn", &[text("Done.")])
        })]
    })
    .await;
    let (server, _) = with_store(settings(&upstream)).await;
    let other = new_key(&server, Role::ReadWrite, None).1;
    let innocent =
        || server.send(messages(&other, &[STORE[0], ("quipu-app", "innocent")], &question()));
    innocent().await.ok();
    for number in 0..300 {
        let app = format!("app-{number}");
        ask(&server, &[STORE[0], ("quipu-app", &app)], &question()).await.ok();
    }
    innocent().await.ok();
    let count = |title: &str, sessions: &[(String, String)]| {
        sessions.iter().filter(|(_, found)| found == title).count()
    };
    let all = sessions(&server).await;
    assert_eq!((count("innocent", &all), count("app-299", &all)), (1, 1));
    // Its own first app was forgotten, and goes on in another session.
    ask(&server, &[STORE[0], ("quipu-app", "app-0")], &question()).await.ok();
    assert_eq!(count("app-0", &sessions(&server).await), 2);
}
