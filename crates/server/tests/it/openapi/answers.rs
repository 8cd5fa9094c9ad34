//! What the document says is held against what the server answers.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use quipu_core::settings::Limits;
use quipu_server::HttpSettings;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::document::{Document, object};
use crate::rest::{Reply, Server, server, server_with};

/// Sends requests, checks each answer, and remembers which ones were seen.
struct Witness {
    document: Document,
    server: Server,
    /// The values of the parameters in the paths.
    ids: Vec<(&'static str, String)>,
    seen: BTreeSet<(String, String, bool)>,
}

impl Witness {
    fn new(server: Server) -> Self {
        Self { document: Document::load(), server, ids: Vec::new(), seen: BTreeSet::new() }
    }

    fn set(&mut self, name: &'static str, id: &Value) {
        self.ids.retain(|(known, _)| *known != name);
        self.ids.push((name, id.as_str().expect("an id").to_owned()));
    }

    fn address(&self, path: &str) -> String {
        let replaced =
            |path: String, (name, id): &(&str, String)| path.replace(&format!("{{{name}}}"), id);
        self.ids.iter().fold(path.to_owned(), replaced)
    }

    /// Sends a request to a path of the document, perhaps with a query after it.
    async fn call(&mut self, method: Method, path: &str, body: Value) -> Value {
        let uri = self.address(path);
        let reply = self.server.call_as(&self.server.key, method.clone(), &uri, body).await;
        self.check(&method, path, &reply);
        assert_eq!(reply.status, 200, "{method} {uri}: {}", reply.body);
        reply.body
    }

    async fn refused(&mut self, status: u16, method: Method, path: &str, body: Value) {
        let uri = self.address(path);
        let reply = self.server.call_as(&self.server.key, method.clone(), &uri, body).await;
        self.check(&method, path, &reply);
        assert_eq!(reply.status, status, "{method} {uri}: {}", reply.body);
    }

    /// Checks that an answer is one of those that the document has for it.
    fn check(&mut self, method: &Method, path: &str, reply: &Reply) {
        let path = path.split('?').next().unwrap_or_default();
        let place = format!("{method} {path} {}", reply.status);
        let document = &self.document;
        let operations = document.operations();
        let operation = operations
            .iter()
            .find(|operation| operation.method == method.as_str() && operation.path == path)
            .unwrap_or_else(|| panic!("{place} is not documented"));
        let responses = object(&operation.fields["responses"]);
        let response = responses
            .get(&reply.status.to_string())
            .unwrap_or_else(|| panic!("{place} is not documented: {}", reply.body));
        let response = document.resolve(response);
        let sent = reply.headers["content-type"].to_str().expect("a text");
        let media_type = sent.split(';').next().unwrap_or_default();
        let media = response["content"]
            .get(media_type)
            .unwrap_or_else(|| panic!("{place} has the undocumented type {media_type}"));
        let problems = document.problems(&media["schema"], &reply.body);
        assert!(problems.is_empty(), "{place}: {problems:#?}\n{}", reply.body);
        for (name, header) in object(&response["headers"]) {
            let header = document.resolve(header);
            match reply.headers.get(name) {
                Some(value) => {
                    let value = json!(value.to_str().expect("a text"));
                    let problems = document.problems(&header["schema"], &value);
                    assert!(problems.is_empty(), "{place} {name}: {problems:#?}");
                }
                None => assert_ne!(header["required"], true, "{place} has no {name}"),
            }
        }
        self.seen.insert((method.to_string(), path.to_owned(), reply.status < 400));
    }

    fn assert_seen(&self, is_success: IsSuccess) {
        for operation in self.document.operations() {
            let key =
                (operation.method.clone(), operation.path.to_owned(), is_success == IsSuccess::Yes);
            let never_fails = is_success == IsSuccess::No && UNLIMITED.contains(&operation.path);
            let is_seen = never_fails || self.seen.contains(&key);
            assert!(is_seen, "{} {}", operation.method, operation.path);
        }
    }
}

/// What is answered however many requests are worked on.
const UNLIMITED: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/openapi.json", "/quipu/docs"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsSuccess {
    Yes,
    No,
}

const STORES: &str = "/v1/memory_stores";
const STORE: &str = "/v1/memory_stores/{store}";
const ARCHIVE: &str = "/v1/memory_stores/{store}/archive";
const MEMORIES: &str = "/v1/memory_stores/{store}/memories";
const MEMORY: &str = "/v1/memory_stores/{store}/memories/{memory}";
const VERSIONS: &str = "/v1/memory_stores/{store}/memory_versions";
const VERSION: &str = "/v1/memory_stores/{store}/memory_versions/{version}";
const REDACT: &str = "/v1/memory_stores/{store}/memory_versions/{version}/redact";
const SESSIONS: &str = "/v1/sessions";
const SESSION: &str = "/v1/sessions/{session}";
const TOOL: &str = "/quipu/stores/{store}/tool";
const TOOL_SESSION: &str = "/quipu/stores/{store}/tool/session";
const SUGGEST: &str = "/quipu/stores/{store}/suggest";
const CONTEXT: &str = "/quipu/stores/{store}/context";
const RECENT: &str = "/quipu/stores/{store}/recent";
const LINKS: &str = "/quipu/stores/{store}/links";
const POLICY: &str = "/quipu/stores/{store}/policy";
const REDACT_SEVERAL: &str = "/quipu/stores/{store}/redact";
const AT: &str = "/quipu/stores/{store}/at/{moment}";
const DIFF: &str = "/quipu/stores/{store}/diff";
const BLAME: &str = "/quipu/stores/{store}/blame";
const COPY: &str = "/quipu/stores/{store}/copy";
const REDACTIONS: &str = "/quipu/stores/{store}/redactions";
const RESTORE: &str = "/quipu/stores/{store}/restore";
const REVERT: &str = "/quipu/stores/{store}/revert";

#[tokio::test]
async fn every_operation_succeeds_as_documented() {
    let mut witness = Witness::new(server());
    use_stores(&mut witness).await;
    use_memories(&mut witness).await;
    use_knowledge(&mut witness).await;
    use_past(&mut witness).await;
    use_agents(&mut witness).await;
    use_sessions(&mut witness).await;
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/quipu/docs"] {
        witness.call(Method::GET, path, Value::Null).await;
    }
    follow_events(&mut witness).await;
    witness.call(Method::POST, ARCHIVE, Value::Null).await;
    witness.call(Method::GET, &format!("{STORES}?include_archived=true"), Value::Null).await;
    witness.call(Method::DELETE, STORE, Value::Null).await;
    witness.assert_seen(IsSuccess::Yes);
}

async fn use_stores(witness: &mut Witness) {
    let body = json!({"name": "notes", "description": "d", "metadata": {"team": "tea"}});
    let store = witness.call(Method::POST, STORES, body).await;
    witness.set("store", &store["id"]);
    witness.call(Method::POST, STORES, json!({"name": "other"})).await;
    witness.call(Method::GET, &format!("{STORES}?limit=1"), Value::Null).await;
    witness.call(Method::GET, STORE, Value::Null).await;
    witness.call(Method::POST, STORE, json!({"metadata": {"team": null}})).await;
    witness.call(Method::PATCH, STORE, json!({"name": "new", "description": ""})).await;
    witness.call(Method::GET, POLICY, Value::Null).await;
    witness.call(Method::POST, POLICY, json!({"secrets": "off", "expire_after_days": 9})).await;
}

async fn use_memories(witness: &mut Witness) {
    let memory = witness.call(Method::POST, MEMORIES, json!({"path": "/a", "content": "x"})).await;
    witness.set("memory", &memory["id"]);
    witness.set("version", &memory["memory_version_id"]);
    let body = json!({"path": "/d/b", "content": ""});
    witness.call(Method::POST, &format!("{MEMORIES}?view=full"), body).await;
    for query in ["", "?depth=1&view=full", "?limit=1", "?path_prefix=/d/"] {
        witness.call(Method::GET, &format!("{MEMORIES}{query}"), Value::Null).await;
    }
    witness.call(Method::GET, MEMORY, Value::Null).await;
    witness.call(Method::POST, MEMORY, json!({"content": "y"})).await;
    witness.call(Method::PATCH, MEMORY, json!({"path": "/c"})).await;
    witness.refused(400, Method::POST, MEMORY, json!({})).await;
    witness.refused(409, Method::POST, MEMORY, json!({"path": "/d"})).await;
    let precondition = json!({"type": "content_sha256", "content_sha256": "0".repeat(64)});
    let body = json!({"content": "z", "precondition": precondition});
    witness.refused(409, Method::PATCH, MEMORY, body).await;
    witness.refused(409, Method::POST, MEMORIES, json!({"path": "/c/d", "content": "x"})).await;
    let stale = format!("{MEMORY}?expected_content_sha256={}", "0".repeat(64));
    witness.refused(409, Method::DELETE, &stale, Value::Null).await;
    let version = witness.address("{version}");
    witness.call(Method::POST, RESTORE, json!({"memory_version_id": version})).await;
    let tree = json!({"at": version, "dry_run": true});
    witness.call(Method::POST, RESTORE, tree).await;
    let body = json!({"actors": ["user_ada"], "expect": "00000000"});
    witness.refused(409, Method::POST, REVERT, body).await;
    witness.call(Method::GET, VERSION, Value::Null).await;
    witness.call(Method::POST, REDACT, Value::Null).await;
    witness.call(Method::POST, REDACT_SEVERAL, json!({"memory_version_ids": [version]})).await;
    witness.refused(400, Method::POST, RESTORE, json!({"memory_version_id": version})).await;
    let leaked = json!({"path": "/leaked", "content": "sesame-4711"});
    witness.call(Method::POST, MEMORIES, leaked).await;
    let wanted = json!({"matching": "sesame-4711", "and_heads": true});
    let mut dry = wanted.clone();
    dry["dry_run"] = json!(true);
    witness.call(Method::POST, REDACTIONS, dry).await;
    witness.refused(400, Method::POST, REDACTIONS, json!({"matching": "sesame-4711"})).await;
    let stale = json!({"matching": "sesame-4711", "expect": "00000000"});
    witness.refused(409, Method::POST, REDACTIONS, stale).await;
    witness.call(Method::POST, REDACTIONS, wanted).await;
    witness.call(Method::GET, "/quipu/receipts?limit=1", Value::Null).await;
    witness.call(Method::DELETE, MEMORY, Value::Null).await;
    for query in ["", "?view=full&limit=3", "?operation=deleted"] {
        witness.call(Method::GET, &format!("{VERSIONS}{query}"), Value::Null).await;
    }
    let create = json!({"command": "create", "path": "/memories/tool.md", "file_text": "x"});
    witness.call(Method::POST, TOOL, create.clone()).await;
    let actor = witness.call(Method::GET, &format!("{VERSIONS}?limit=1"), Value::Null).await;
    let actor = &actor["data"][0]["created_by"]["api_key_id"];
    for dry_run in [true, false] {
        let body = json!({"actors": [actor], "path": "/tool.md", "dry_run": dry_run});
        witness.call(Method::POST, REVERT, body).await;
    }
    witness.call(Method::POST, &format!("{TOOL}?strings=python"), create.clone()).await;
    witness.call(Method::POST, TOOL_SESSION, json!({"title": "a run"})).await;
    witness.call(Method::POST, STORES, json!({"name": "twice"})).await;
    witness.call(Method::POST, STORES, json!({"name": "twice"})).await;
    let store = witness.address("{store}");
    witness.set("store", &json!("twice"));
    witness.refused(409, Method::POST, TOOL, create).await;
    witness.refused(409, Method::POST, TOOL_SESSION, json!({})).await;
    witness.set("store", &json!(store));
}

async fn use_knowledge(witness: &mut Witness) {
    let text =
        "---\ntags: [hot]\nstatus: open\n---\n# Tea\n- [fact] green #tea (yes)\n- needs [[Cup]]";
    let body = json!({"path": "/tea.md", "content": text});
    witness.call(Method::POST, MEMORIES, body).await;
    witness.call(Method::POST, MEMORIES, json!({"path": "/k.md", "content": "[[Tea]]"})).await;
    witness.call(Method::POST, MEMORIES, json!({"path": "/alone.md", "content": "x"})).await;
    for query in ["?query=green", "?type=observation", "?type=relation&limit=1", "?tag=hot"] {
        witness.call(Method::GET, &format!("/quipu/search{query}"), Value::Null).await;
    }
    witness.refused(400, Method::GET, "/quipu/search?type=x", Value::Null).await;
    suggest(witness).await;
    witness.call(Method::GET, &format!("{CONTEXT}?url=Tea&depth=2"), Value::Null).await;
    witness.refused(400, Method::GET, CONTEXT, Value::Null).await;
    witness.call(Method::GET, RECENT, Value::Null).await;
    for query in ["?memory=Tea", "?memory=Tea&direction=incoming", "?direction=unresolved"] {
        witness.call(Method::GET, &format!("{LINKS}{query}"), Value::Null).await;
    }
    witness.call(Method::GET, &format!("{LINKS}?direction=none"), Value::Null).await;
}

async fn suggest(witness: &mut Witness) {
    let old =
        "---\nsuperseded_by: '[[Kettle]]'\nstatus: obsolete\n---\n# Old kettle\n\ncopper kettle";
    witness.call(Method::POST, MEMORIES, json!({"path": "/old.md", "content": old})).await;
    let draft = "---\nstatus: draft\n---\n# Kettle\n\nA copper kettle, see [[Tea]].";
    witness.call(Method::POST, MEMORIES, json!({"path": "/kettle.md", "content": draft})).await;
    witness.call(Method::GET, "/quipu/search?query=kettle&explain=true", Value::Null).await;
    let prompt = format!("{SUGGEST}?text=the%20copper%20kettle");
    let found = witness.call(Method::GET, &prompt, Value::Null).await;
    assert_eq!(found["suggestions"][0]["reasons"]["replaces"], json!(["/old.md"]));
    assert_eq!(found["left_out"][0]["freshness"]["field"], "superseded_by");
    let known = &found["suggestions"][0]["memory_id"];
    let body = json!({"text": "copper kettle", "budget": 500, "limit": 3, "exclude": [known]});
    witness.call(Method::POST, SUGGEST, body).await;
    witness.refused(400, Method::GET, SUGGEST, Value::Null).await;
    witness.refused(400, Method::POST, SUGGEST, json!({"text": "x", "limit": 0})).await;
}

async fn use_past(witness: &mut Witness) {
    let body = json!({"path": "/then.md", "content": "one\ntwo\n"});
    let then = witness.call(Method::POST, MEMORIES, body).await;
    let id = then["id"].as_str().expect("an id");
    witness.set("moment", &then["memory_version_id"]);
    let memory = format!("{MEMORIES}/{{then}}");
    witness.set("then", &json!(id));
    let uri = witness.address(&memory);
    witness.server.post(&uri, json!({"content": "one\n2\n", "path": "/now.md"})).await.ok();
    witness.call(Method::GET, AT, Value::Null).await;
    for query in ["", "?depth=1&view=full", "?limit=1"] {
        witness.call(Method::GET, &format!("{AT}/memories{query}"), Value::Null).await;
    }
    witness.call(Method::GET, &format!("{AT}/memory?path=/then.md"), Value::Null).await;
    witness.refused(404, Method::GET, &format!("{AT}/memory?path=/now.md"), Value::Null).await;
    witness.call(Method::GET, &format!("{AT}/search?query=two"), Value::Null).await;
    let moment = witness.address("{moment}");
    for query in ["", "&view=basic&limit=1", "&to=now"] {
        witness.call(Method::GET, &format!("{DIFF}?from={moment}{query}"), Value::Null).await;
    }
    witness.refused(400, Method::GET, DIFF, Value::Null).await;
    witness.call(Method::GET, &format!("{BLAME}?path=/now.md&limit=1"), Value::Null).await;
    witness.refused(400, Method::GET, BLAME, Value::Null).await;
    witness.call(Method::POST, COPY, json!({"name": "then", "at": moment})).await;
    witness.refused(400, Method::POST, COPY, json!({"name": "then"})).await;
    // A version that was redacted: it is named by what it was part of.
    let redact = json!({"memory_version_ids": [moment]});
    witness.call(Method::POST, REDACT_SEVERAL, redact).await;
    let past = witness.call(Method::GET, AT, Value::Null).await;
    assert_eq!(past["redacted_count"], 1);
    let store = witness.address("{store}");
    witness.set("store", &json!("twice"));
    for (method, path) in [(Method::GET, AT), (Method::GET, DIFF), (Method::GET, BLAME)] {
        witness.refused(409, method, path, Value::Null).await;
    }
    witness.refused(409, Method::POST, COPY, json!({"name": "x"})).await;
    witness.set("store", &json!(store));
}

async fn use_agents(witness: &mut Witness) {
    let body = json!({"name": "brewer", "model": "m", "tools": [{"type": "agent_toolset_20260401"}],
        "metadata": {"team": "tea"}});
    let agent = witness.call(Method::POST, "/v1/agents", body).await;
    witness.set("agent", &agent["id"]);
    witness.call(Method::GET, "/v1/agents?limit=1", Value::Null).await;
    let body = json!({"version": 1, "system": "You brew tea.", "metadata": {"team": null}});
    witness.call(Method::POST, "/v1/agents/{agent}", body.clone()).await;
    witness.refused(409, Method::POST, "/v1/agents/{agent}", body).await;
    witness.call(Method::GET, "/v1/agents/{agent}?version=1", Value::Null).await;
    witness.call(Method::GET, "/v1/agents/{agent}/versions?limit=1", Value::Null).await;
    let body = json!({"name": "kitchen", "config": {"type": "cloud"}});
    let environment = witness.call(Method::POST, "/v1/environments", body).await;
    witness.set("environment", &environment["id"]);
    witness.call(Method::GET, "/v1/environments", Value::Null).await;
    witness.call(Method::GET, "/v1/environments/{environment}", Value::Null).await;
    let body = json!({"description": "warm"});
    witness.call(Method::POST, "/v1/environments/{environment}", body).await;
    record(witness).await;
    witness.call(Method::POST, "/v1/environments/{environment}/archive", Value::Null).await;
    witness.call(Method::DELETE, "/v1/environments/{environment}", Value::Null).await;
    witness.call(Method::POST, "/v1/agents/{agent}/archive", Value::Null).await;
}

async fn record(witness: &mut Witness) {
    let (agent, environment) = (witness.address("{agent}"), witness.address("{environment}"));
    let repository = json!({"type": "github_repository", "url": "https://example.org/a/b",
        "authorization_token": "secret"});
    let message = json!({"type": "user.message", "content": [{"type": "text", "text": "hi"}]});
    let body = json!({"agent": agent, "environment_id": environment, "resources": [repository],
        "initial_events": [message]});
    let session = witness.call(Method::POST, SESSIONS, body).await;
    witness.set("session", &session["id"]);
    witness.set("resource", &session["resources"][0]["id"]);
    let resources = "/v1/sessions/{session}/resources";
    let resource = "/v1/sessions/{session}/resources/{resource}";
    witness.call(Method::POST, resources, json!({"type": "file", "file_id": "file_1"})).await;
    witness.call(Method::GET, resources, Value::Null).await;
    witness.call(Method::GET, resource, Value::Null).await;
    witness.call(Method::POST, resource, json!({"authorization_token": "new"})).await;
    witness.call(Method::DELETE, resource, Value::Null).await;
    let events = "/v1/sessions/{session}/events";
    witness.call(Method::POST, events, json!({"events": [message]})).await;
    witness.call(Method::GET, &format!("{events}?limit=1&types=user.message"), Value::Null).await;
    let reported = "/quipu/sessions/{session}/events";
    let created = json!({"type": "session.thread_created", "session_thread_id": "sthr_2",
        "agent_name": "second"});
    witness.call(Method::POST, reported, json!({"events": [created]})).await;
    witness.call(Method::GET, &format!("{reported}?grep=HI"), Value::Null).await;
    witness.set("thread", &json!("sthr_2"));
    let threads = "/v1/sessions/{session}/threads";
    for path in [threads, &format!("{threads}/{{thread}}"), &format!("{threads}/{{thread}}/events")]
    {
        witness.call(Method::GET, path, Value::Null).await;
    }
    let said = json!({"type": "agent.message", "content": [], "session_thread_id": "sthr_2"});
    witness.call(Method::POST, reported, json!({"events": [said]})).await;
    follow_stream(witness, "/v1/sessions/{session}/events/stream", ("Event", 4)).await;
    let of_thread = "/v1/sessions/{session}/threads/{thread}/stream";
    follow_stream(witness, of_thread, ("Event", 1)).await;
}

async fn use_sessions(witness: &mut Witness) {
    let store = witness.address("{store}");
    let resource =
        json!({"type": "memory_store", "memory_store_id": store, "instructions": "look"});
    let model = json!({"id": "agent_1", "version": 3, "model": {"id": "m"}});
    let body = json!({"agent": model, "environment_id": "env_1", "resources": [resource]});
    witness.call(Method::POST, SESSIONS, body).await;
    let body = json!({"agent": "agent_1", "environment_id": "env_1", "title": "a run"});
    let session = witness.call(Method::POST, SESSIONS, body).await;
    witness.set("session", &session["id"]);
    witness.call(Method::GET, &format!("{SESSIONS}?limit=1&statuses=idle"), Value::Null).await;
    witness.call(Method::GET, SESSION, Value::Null).await;
    witness.call(Method::POST, SESSION, json!({"title": "new"})).await;
    witness.call(Method::PATCH, SESSION, json!({"metadata": {"a": "b"}})).await;
    witness.call(Method::GET, "/quipu/sessions/{session}/changes", Value::Null).await;
    witness.call(Method::GET, "/quipu/sessions/{session}/prompt", Value::Null).await;
    witness.call(Method::POST, "/quipu/sessions/{session}/token", Value::Null).await;
    witness.call(Method::POST, "/v1/sessions/{session}/archive", Value::Null).await;
    witness.call(Method::DELETE, SESSION, Value::Null).await;
}

/// Takes the first piece of the stream, which has no end.
async fn follow_events(witness: &mut Witness) {
    follow_stream(witness, "/quipu/events", ("Change", 6)).await;
}

/// Checks the first piece of a stream, which has at least so many events of this schema.
async fn follow_stream(witness: &mut Witness, path: &str, (schema, count): (&str, usize)) {
    let uri = witness.address(path);
    let request = Request::get(format!("{uri}?after=0")).header("x-api-key", &witness.server.key);
    let request = request.body(Body::empty()).expect("a request");
    let response = witness.server.app.router().oneshot(request).await.expect("the router answers");
    let (parts, mut body) = response.into_parts();
    let frame = body.frame().await.expect("a piece").expect("a whole piece");
    let text = String::from_utf8(frame.into_data().expect("data").to_vec()).expect("UTF-8");
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    let events: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(events.len() >= count, "{text}");
    for event in events {
        let event: Value = serde_json::from_str(event).expect("JSON");
        assert_eq!(witness.document.problems(&schema, &event), [""; 0], "{event}");
    }
    let reply = Reply { status: parts.status.as_u16(), headers: parts.headers, body: json!(text) };
    witness.check(&Method::GET, path, &reply);
}

#[tokio::test]
async fn every_operation_fails_as_documented() {
    let none = "1".repeat(22);
    let ids = [
        ("store", "memstore"),
        ("memory", "mem"),
        ("version", "memver"),
        ("session", "sesn"),
        ("agent", "agent"),
        ("environment", "env"),
        ("resource", "sesrsc"),
        ("thread", "sthr"),
    ];
    let everything = |witness: &Witness| -> Vec<(Method, String, bool)> {
        let operations = witness.document.operations();
        let is_open = |fields: &Value| fields.get("security").is_some();
        operations
            .iter()
            .map(|operation| {
                let method = operation.method.parse().expect("a method");
                (method, operation.path.to_owned(), is_open(operation.fields))
            })
            .collect()
    };
    let settings = HttpSettings { requests_max: 0, ..HttpSettings::default() };
    for (server, wanted) in
        [(server_with(settings, Limits::default()), 529), (server(), 401), (server(), 404)]
    {
        let mut witness = Witness::new(server);
        witness.set("moment", &json!("yesterday"));
        for (name, prefix) in ids {
            witness.set(name, &json!(format!("{prefix}_01{none}")));
        }
        if wanted == 401 {
            witness.server.key = "wrong".to_owned();
        }
        for (method, path, is_open) in everything(&witness) {
            let needs_id = path.contains('{');
            match wanted {
                401 if is_open => {}
                529 if UNLIMITED.contains(&path.as_str()) => {}
                404 if !needs_id => {}
                _ => witness.refused(wanted, method, &path, body_for(&path)).await,
            }
        }
        if wanted == 529 {
            witness.assert_seen(IsSuccess::No);
        }
    }
}

/// Returns a body that is right for a path as far as its shape is concerned.
fn body_for(path: &str) -> Value {
    match path {
        TOOL => json!({"command": "view", "path": "/memories"}),
        RESTORE => json!({"memory_version_id": "x"}),
        COPY => json!({"name": "x"}),
        REDACT_SEVERAL => json!({"memory_version_ids": ["x"]}),
        REDACTIONS => json!({"matching": "x"}),
        _ => json!({}),
    }
}
