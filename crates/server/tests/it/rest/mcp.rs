//! `/mcp`: the MCP server over HTTP, with the keys and tokens of the REST API.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Actor, Instructions, Name, Role, View};
use quipu_core::settings::Limits;
use quipu_mcp::Hosts;
use quipu_server::HttpSettings;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{Reply, Server, server, server_at, server_with};

const PATIENCE: Duration = Duration::from_mins(1);

/// A client after its handshake.
pub(super) struct Client<'s> {
    server: &'s Server,
    key: String,
    session: String,
}

pub(super) fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(super) fn request(key: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "127.0.0.1:8420");
    }
    if !key.is_empty() {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_string())).expect("a request")
}

pub(super) fn greeting() -> Value {
    let about = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "web", "version": "3"},
    });
    message("initialize", &about)
}

/// Returns the message in a stream of events.
pub(super) fn event(reply: &Reply) -> Value {
    let text = reply.body.as_str().unwrap_or_default();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.filter_map(|data| serde_json::from_str(data).ok());
    let found = messages.rev().find(|it: &Value| it.get("id").is_some());
    found.unwrap_or_else(|| reply.body.clone())
}

impl<'s> Client<'s> {
    pub(super) async fn new(server: &'s Server, key: &str) -> Self {
        let reply = server.send(request(key, &[], &greeting())).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let session = reply.headers["mcp-session-id"].to_str().expect("a text").to_owned();
        let client = Self { server, key: key.to_owned(), session };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.send(&ready).await.status, 202);
        client
    }

    pub(super) async fn send(&self, body: &Value) -> Reply {
        let headers = [("mcp-session-id", self.session.as_str())];
        self.server.send(request(&self.key, &headers, body)).await
    }

    /// Returns a request without a body.
    pub(super) fn bare(&self, method: Method) -> Request<Body> {
        Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .header("authorization", format!("Bearer {}", self.key))
            .header("mcp-session-id", &self.session)
            .body(Body::empty())
            .expect("a request")
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let reply = self.send(&message("tools/call", &params)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        event(&reply)["result"].clone()
    }

    pub(super) async fn tools(&self) -> Vec<String> {
        let reply = self.send(&message("tools/list", &json!({}))).await;
        let tools = event(&reply)["result"]["tools"].clone();
        super::texts(tools.as_array().expect("a list"), "name")
    }
}

fn tea() -> Value {
    json!({"title": "Tea", "content": "green"})
}

#[tokio::test]
async fn a_client_with_a_key_writes_as_a_session_of_its_own() {
    let server = server();
    let client = Client::new(&server, &server.key).await;
    let written = client.call("write_note", tea()).await;
    assert_eq!(written["isError"], false, "{written}");
    let store = server.engine.find_store(server.workspace, "notes").expect("a store");
    let id = written["structuredContent"]["version_id"].as_str().expect("an id");
    let id = id.parse().expect("the id of a version");
    let version = server.engine.version(store.id, id, View::Basic).expect("a version");
    let Actor::Session(session) = version.actor else { panic!("{:?}", version.actor) };
    assert_eq!(server.engine.session(session).expect("a session").title, "web 3");
}

#[tokio::test]
async fn requests_without_a_credential_are_rejected() {
    let server = server();
    for key in ["", "wrong"] {
        let reply = server.send(request(key, &[], &greeting())).await;
        reply.error(401, "authentication_error");
        assert!(reply.headers.contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn a_connection_of_one_key_is_not_found_by_another() {
    let server = server();
    let client = Client::new(&server, &server.key).await;
    let other = server.new_key(Role::Admin, None);
    let strangers = [
        Client { server: &server, key: other, session: client.session.clone() },
        Client { server: &server, key: server.key.clone(), session: "unknown".to_owned() },
    ];
    for stranger in &strangers {
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("logging/setLevel", json!({"level": "debug"})),
            ("resources/unsubscribe", json!({"uri": "memory://notes/a.md"})),
        ] {
            stranger.send(&message(method, &params)).await.error(404, "not_found_error");
        }
        for method in [Method::GET, Method::DELETE] {
            let reply = server.send(stranger.bare(method)).await;
            reply.error(404, "not_found_error");
        }
    }
    assert!(!client.tools().await.is_empty());
    assert_eq!(server.send(client.bare(Method::DELETE)).await.status, 204);
    assert_eq!(client.send(&message("tools/list", &json!({}))).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_expires() {
    let server = server();
    let pass = async |hours: u64| {
        server.clock.advance(Duration::from_hours(hours));
        tokio::time::sleep(Duration::from_hours(hours)).await;
    };
    let forgotten = Client::new(&server, &server.key).await;
    let listening = Client::new(&server, &server.key).await;
    let stream = server.app.router().oneshot(listening.bare(Method::GET)).await.expect("a stream");
    pass(3).await;
    let used = Client::new(&server, &server.key).await;
    pass(2).await;
    assert_eq!(forgotten.send(&message("tools/list", &json!({}))).await.status, 404);
    assert!(!used.tools().await.is_empty());
    pass(5).await;
    assert_eq!(used.send(&message("tools/list", &json!({}))).await.status, 404);
    // It has said nothing and heard nothing, but it listens.
    assert!(!listening.tools().await.is_empty());
    drop(stream);
    pass(5).await;
    assert_eq!(listening.send(&message("tools/list", &json!({}))).await.status, 404);
}

#[tokio::test]
async fn a_revoked_key_is_rejected_immediately() {
    let server = server();
    let key = server.new_key(Role::ReadWrite, None);
    let client = Client::new(&server, &key).await;
    let keys = server.engine.keys(server.workspace).expect("keys");
    let id = keys.iter().find(|key| key.role == Role::ReadWrite).expect("the key").id;
    server.engine.revoke_key(id).expect("it is revoked");
    let reply = client.send(&message("tools/list", &json!({}))).await;
    reply.error(401, "authentication_error");
}

/// Returns the next event of a stream that says something; `None` when the stream has ended.
pub(super) async fn next_event(stream: &mut Body) -> Option<Value> {
    loop {
        let frame = tokio::time::timeout(PATIENCE, stream.frame()).await.expect("in time");
        let bytes = frame?.expect("the stream is whole").into_data().expect("data");
        let text = String::from_utf8(bytes.to_vec()).expect("a text");
        let data = text.lines().find_map(|line| line.strip_prefix("data:"));
        if let Some(message) = data.and_then(|data| serde_json::from_str(data).ok()) {
            return Some(message);
        }
    }
}

#[tokio::test]
async fn the_stream_of_a_revoked_key_ends_at_once() {
    let server = server();
    let app = server.app.clone();
    std::thread::spawn(move || app.follow(|| false));
    let key = server.new_key(Role::ReadWrite, None);
    let client = Client::new(&server, &key).await;
    let listening = client.bare(Method::GET);
    let answer = server.app.router().oneshot(listening).await.expect("the router answers");
    assert_eq!(answer.status(), 200);
    let mut stream = answer.into_body();
    // Asked once more, so that it is certain that the client follows the changes already.
    client.tools().await;
    server.store("first").await;
    let notified = next_event(&mut stream).await.expect("an event");
    assert_eq!(notified["method"], "notifications/resources/list_changed");

    let keys = server.engine.keys(server.workspace).expect("keys");
    let id = keys.iter().find(|key| key.role == Role::ReadWrite).expect("the key").id;
    server.engine.revoke_key(id).expect("it is revoked");
    // Nothing else happens that could wake it.
    assert_eq!(next_event(&mut stream).await, None);
}

#[tokio::test]
async fn a_stream_of_a_client_that_never_finished_its_handshake_ends_too() {
    let server = server();
    let app = server.app.clone();
    std::thread::spawn(move || app.follow(|| false));
    let key = server.new_key(Role::ReadWrite, None);
    let reply = server.send(request(&key, &[], &greeting())).await;
    let session = reply.headers["mcp-session-id"].to_str().expect("a text").to_owned();
    let client = Client { server: &server, key, session };
    let answer = server.app.router().oneshot(client.bare(Method::GET)).await.expect("an answer");
    let mut stream = answer.into_body();
    let keys = server.engine.keys(server.workspace).expect("keys");
    let id = keys.iter().find(|key| key.role == Role::ReadWrite).expect("the key").id;
    server.engine.revoke_key(id).expect("it is revoked");
    assert_eq!(next_event(&mut stream).await, None);
}

#[tokio::test]
async fn a_read_only_key_is_offered_no_writing_tools() {
    let server = server();
    Client::new(&server, &server.key).await.call("write_note", tea()).await;
    let key = server.new_key(Role::ReadOnly, None);
    let client = Client::new(&server, &key).await;
    let tools = client.tools().await;
    assert!(
        tools.contains(&"search_notes".to_owned()) && !tools.contains(&"write_note".to_owned())
    );
    let denied = client.call("memory", json!({"command": "delete", "path": "/memories/x"})).await;
    assert_eq!(denied["isError"], true);
    let read = client.call("read_note", json!({"identifier": "Tea"})).await;
    assert_eq!(read["content"][0]["text"], "green");
}

#[tokio::test]
async fn the_first_use_creates_the_two_stores_and_no_others() {
    let server = server();
    let view = json!({"command": "view", "path": "/memories"});
    let elsewhere = server.new_key(Role::ReadWrite, Some(Vec::new()));
    for key in [server.new_key(Role::ReadOnly, None), elsewhere] {
        let client = Client::new(&server, &key).await;
        for (tool, arguments) in [("write_note", tea()), ("memory", view.clone())] {
            let refused = client.call(tool, arguments).await;
            assert_ne!(refused["isError"], false, "{refused}");
        }
    }
    assert!(server.engine.find_store(server.workspace, "notes").is_err());
    let key = server.new_key(Role::ReadWrite, None);
    let client = Client::new(&server, &key).await;
    for (tool, arguments) in [("write_note", tea()), ("memory", view)] {
        let done = client.call(tool, arguments).await;
        assert_eq!(done["isError"], false, "{done}");
    }
    let named = json!({"title": "Tea", "content": "green", "project": "others"});
    assert_eq!(client.call("write_note", named).await["isError"], true);
    let made = client.call("create_memory_project", json!({"project_name": "others"})).await;
    assert_ne!(made["isError"], false, "{made}");
}

#[tokio::test]
async fn a_limited_key_learns_nothing_of_other_stores() {
    let server = server();
    let admin = Client::new(&server, &server.key).await;
    admin.call("create_memory_project", json!({"project_name": "open"})).await;
    admin.call("create_memory_project", json!({"project_name": "closed"})).await;
    admin.call("write_note", json!({"title": "S", "content": "secret", "project": "closed"})).await;
    let open = server.engine.find_store(server.workspace, "open").expect("a store").id;
    let key = server.new_key(Role::ReadWrite, Some(vec![open]));
    let client = Client::new(&server, &key).await;
    let stores = client.call("list_memory_projects", json!({})).await;
    assert!(!stores.to_string().contains("closed"), "{stores}");
    for (tool, arguments) in [
        ("read_note", json!({"identifier": "S", "project": "closed"})),
        ("read_note", json!({"identifier": "memory://closed/S"})),
        ("search_notes", json!({"query": "secret", "projects": ["closed"]})),
    ] {
        let answer = client.call(tool, arguments).await;
        assert_eq!(answer["isError"], true, "{tool}: {answer}");
    }
    for tool in ["create_memory_project", "delete_project"] {
        assert!(!client.tools().await.contains(&tool.to_owned()), "{tool}");
        let params = json!({"name": tool, "arguments": {"project_name": "open"}});
        let reply = client.send(&message("tools/call", &params)).await;
        assert_eq!(event(&reply)["error"]["code"], -32602, "{}", reply.body);
    }
    let all = client.call("search_notes", json!({"query": "secret", "all": true})).await;
    assert_eq!(all["structuredContent"]["results"], json!([]));
}

#[tokio::test]
async fn a_token_opens_what_is_attached_to_its_session() {
    let server = server();
    let admin = Client::new(&server, &server.key).await;
    for name in ["own", "shared", "other"] {
        admin.call("create_memory_project", json!({"project_name": name})).await;
    }
    let attached = |name: &str, access| NewAttachment {
        store: server.engine.find_store(server.workspace, name).expect("a store").id,
        access,
        instructions: Instructions::new("Read it first.").expect("a text"),
    };
    let attachments =
        vec![attached("own", Access::ReadWrite), attached("shared", Access::ReadOnly)];
    let new = NewSession::titled("agent", attachments, SessionToken::Issue);
    let (session, token) = server.engine.create_session(server.workspace, &new).expect("a session");
    let token = token.expect("a token");
    let client = Client::new(&server, token.reveal()).await;
    let written = client.call("write_note", tea()).await;
    assert_eq!(written["structuredContent"]["project"], "own");
    let history = client.call("note_history", json!({"identifier": "Tea"})).await;
    let actor = &history["structuredContent"]["versions"][0]["actor"];
    assert_eq!(actor["id"], session.id.to_string());
    for project in ["shared", "other"] {
        let note = json!({"title": "X", "content": "x", "project": project});
        assert_eq!(client.call("write_note", note).await["isError"], true, "{project}");
    }
}

#[tokio::test]
async fn workspaces_stay_apart() {
    let server = server();
    let admin = Client::new(&server, &server.key).await;
    admin.call("write_note", tea()).await;
    let name = Name::new("other").expect("a name");
    let other = server.engine.create_workspace(&name).expect("a workspace").id;
    let key = server.new_key_in(other, Role::Admin, None);
    let client = Client::new(&server, &key).await;
    let missing = client.call("read_note", json!({"identifier": "Tea"})).await;
    assert_eq!(missing["isError"], true);
    let listed = client.send(&message("resources/list", &json!({}))).await;
    assert_eq!(event(&listed)["result"]["resources"], json!([]));
}

#[tokio::test]
async fn the_newest_revision_needs_no_connection() {
    let server = server();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "Newest", "version": "9"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (title, left_over) in [("One", ("x-none", "")), ("Two", ("mcp-session-id", "stale"))] {
        let arguments = json!({"title": title, "content": "x"});
        let params = json!({"name": "write_note", "arguments": arguments, "_meta": meta});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "write_note"),
            left_over,
        ];
        let body = message("tools/call", &params);
        let reply = server.send(request(&server.key, &headers, &body)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(event(&reply)["result"]["isError"], false, "{}", reply.body);
    }
    let sessions = server.get("/v1/sessions").await.ok();
    assert_eq!(super::texts(sessions["data"].as_array().expect("a list"), "title"), ["Newest 9"]);
}

#[tokio::test]
async fn the_messages_of_a_batch_are_answered_one_by_one() {
    let server = server();
    let client = Client::new(&server, &server.key).await;
    let reply = client
        .send(&json!([
            {"jsonrpc": "2.0", "id": 7, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "id": 8, "method": "tools/list"},
            {"jsonrpc": "1.0", "id": 9, "method": "tools/list"},
        ]))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let text = reply.body.as_str().expect("a stream of events");
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let answers: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(7), json!(8), json!(9)], "{text}");
    assert!(answers[1]["result"]["tools"].is_array() && answers[2]["error"].is_object(), "{text}");

    let ready = json!([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]);
    assert_eq!(client.send(&ready).await.status, 202);
    client.send(&json!([])).await.invalid();
    server.send(request(&server.key, &[], &json!([greeting()]))).await.invalid();
}

#[tokio::test]
async fn a_batch_runs_only_while_its_answers_are_read() {
    let server = server();
    let client = Client::new(&server, &server.key).await;
    let write = |title: &str| {
        let arguments = json!({"title": title, "content": "x"});
        message("tools/call", &json!({"name": "write_note", "arguments": arguments}))
    };
    let headers = [("mcp-session-id", client.session.as_str())];
    let list = request(&server.key, &headers, &json!([write("One"), write("Two")]));
    let answer = server.app.router().oneshot(list).await.expect("the router answers");
    assert_eq!(answer.status(), 200);
    let mut stream = answer.into_body();
    assert_eq!(next_event(&mut stream).await.expect("an answer")["result"]["isError"], false);
    drop(stream);
    assert_ne!(client.call("read_note", json!({"identifier": "One"})).await["isError"], true);
    assert_eq!(client.call("read_note", json!({"identifier": "Two"})).await["isError"], true);
}

#[tokio::test]
async fn a_batch_has_at_most_a_hundred_messages() {
    let server = server();
    let client = Client::new(&server, &server.key).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let full = vec![ping.clone(); 100];
    assert_eq!(client.send(&json!(full)).await.status, 200);
    let reason = client.send(&json!(vec![ping; 101])).await.invalid();
    assert!(reason.contains("at most 100 messages"), "{reason}");
}

#[tokio::test]
async fn a_batch_is_charged_as_a_whole_or_not_at_all() {
    let settings = HttpSettings { requests_per_minute_max: Some(5), ..HttpSettings::default() };
    let server = server_with(settings, Limits::default());
    let client = Client::new(&server, &server.key).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let reason = client.send(&json!(vec![ping.clone(); 6])).await.invalid();
    assert!(reason.contains("send fewer at once"), "{reason}");
    // The handshake took two of five, and each list that is refused takes one.
    client.send(&json!(vec![ping.clone(); 4])).await.error(429, "rate_limit_error");
    assert_eq!(client.send(&ping).await.status, 200);
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_rejected() {
    let refused = |reply: &Reply| (400..500).contains(&reply.status);
    let loopback = server();
    for header in [("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null")]
    {
        let reply = loopback.send(request(&loopback.key, &[header], &greeting())).await;
        assert!(refused(&reply), "{header:?}: {}", reply.body);
    }
    for header in [("host", "localhost:1"), ("origin", "http://localhost:3000")] {
        let reply = loopback.send(request(&loopback.key, &[header], &greeting())).await;
        assert_eq!(reply.status, 200, "{header:?}: {}", reply.body);
    }
    let client = Client::new(&loopback, &loopback.key).await;
    let headers = [("host", "evil.example"), ("mcp-session-id", client.session.as_str())];
    let list = json!([message("ping", &json!({})), message("ping", &json!({}))]);
    assert_eq!(loopback.send(request(&loopback.key, &headers, &list)).await.status, 403);
    let hosts = Hosts::Only(vec!["memory.example".to_owned()]);
    let public = server_at(&hosts, HttpSettings::default(), Limits::default());
    let named = [("host", "memory.example"), ("origin", "https://memory.example")];
    assert_eq!(public.send(request(&public.key, &named, &greeting())).await.status, 200);
    let strange = [("host", "evil.example")];
    assert!(refused(&public.send(request(&public.key, &strange, &greeting())).await));
}
