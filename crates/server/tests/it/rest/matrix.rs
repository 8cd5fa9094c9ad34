//! Who may do what, for every route and every kind of caller.
//!
//! The rows are held against the table of routes: a route without a row fails the test.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use quipu_core::engine::{
    DefinitionContent, NewAttachment, NewKey, NewSession, NewStore, Precondition, SessionToken,
};
use quipu_core::model::{
    Access, Actor, Content, DefinitionId, DefinitionKind, Forwarding, Instructions, KeyId,
    MemoryPath, Metadata, Name, Role, SessionId, StoreId,
};
use quipu_core::settings::Limits;
use quipu_server::{BaseUrl, HttpSettings, UpstreamSettings, routes};
use tower::ServiceExt as _;

use super::{Server, server_with};

/// The statuses of a route for callers with a valid credential.
#[derive(Clone, Copy)]
struct Expected {
    /// For a thing of the caller's own store, in the order of [`VALID`].
    own: [u16; 8],
    /// For a thing of another store, for the callers of [`VALID`] that are limited to their own.
    other: [u16; 5],
    /// For an admin of another workspace.
    elsewhere: u16,
    /// Without a valid credential.
    invalid: u16,
}

/// The callers with a valid credential. From the fourth on they are limited to one store.
const VALID: [Caller; 8] = [
    Caller::Key(Role::ReadOnly, Reach::Everything),
    Caller::Key(Role::ReadWrite, Reach::Everything),
    Caller::Key(Role::Admin, Reach::Everything),
    Caller::Key(Role::ReadOnly, Reach::OneStore),
    Caller::Key(Role::ReadWrite, Reach::OneStore),
    Caller::Key(Role::Admin, Reach::OneStore),
    Caller::Token(Access::ReadWrite),
    Caller::Token(Access::ReadOnly),
];

/// The callers without one.
pub(crate) const INVALID: [Caller; 6] = [
    Caller::Nobody,
    Caller::WrongKey,
    Caller::RevokedKey,
    Caller::ExpiredKey,
    Caller::TokenOfRevokedKey,
    Caller::ExpiredToken,
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    Key(Role, Reach),
    Token(Access),
    AdminElsewhere,
    Nobody,
    WrongKey,
    RevokedKey,
    ExpiredKey,
    TokenOfRevokedKey,
    ExpiredToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Everything,
    OneStore,
}

const PUBLIC: Expected = Expected { own: [200; 8], other: [200; 5], elsewhere: 200, invalid: 200 };
/// Every caller may, for itself.
const ANYBODY: Expected = Expected { own: [200; 8], other: [200; 5], elsewhere: 200, invalid: 401 };
const READ: Expected = Expected { own: [200; 8], other: [403; 5], elsewhere: 404, invalid: 401 };
const WRITE: Expected = Expected {
    own: [403, 200, 200, 403, 200, 200, 200, 403],
    other: [403; 5],
    elsewhere: 404,
    invalid: 401,
};
const MANAGE: Expected = Expected {
    own: [403, 403, 200, 403, 403, 200, 403, 403],
    other: [403; 5],
    elsewhere: 404,
    invalid: 401,
};
const MANAGE_WORKSPACE: Expected = Expected {
    own: [403, 403, 200, 403, 403, 403, 403, 403],
    other: [403; 5],
    elsewhere: 200,
    invalid: 401,
};
const WHOLE_WORKSPACE: Expected = Expected {
    own: [200, 200, 200, 403, 403, 403, 403, 403],
    other: [403; 5],
    elsewhere: 200,
    invalid: 401,
};
const LIST_SESSIONS: Expected = Expected {
    own: [200, 200, 200, 200, 200, 200, 403, 403],
    other: [200, 200, 200, 403, 403],
    elsewhere: 200,
    invalid: 401,
};
const START_SESSION: Expected = Expected {
    own: [403, 200, 200, 403, 200, 200, 403, 403],
    other: [403; 5],
    elsewhere: 404,
    invalid: 401,
};
const READ_SESSION: Expected =
    Expected { own: [200; 8], other: [404; 5], elsewhere: 404, invalid: 401 };
const WRITE_SESSION: Expected = Expected {
    own: [403, 200, 200, 403, 200, 200, 403, 403],
    other: [404; 5],
    elsewhere: 404,
    invalid: 401,
};
/// A session reports its own events, whatever its stores are attached for.
const RECORD: Expected = Expected {
    own: [403, 200, 200, 403, 200, 200, 200, 200],
    other: [404; 5],
    elsewhere: 404,
    invalid: 401,
};
/// Agents and environments belong to the workspace: every key of it reads them.
const LIST_DEFINITIONS: Expected = LIST_SESSIONS;
const READ_DEFINITION: Expected = Expected { elsewhere: 404, ..LIST_SESSIONS };
/// Sessions of everybody name them, so a key that is limited to some stores does not change them.
const CREATE_DEFINITION: Expected = Expected {
    own: [403, 200, 200, 403, 403, 403, 403, 403],
    other: [403; 5],
    elsewhere: 200,
    invalid: 401,
};
const WRITE_DEFINITION: Expected = Expected { elsewhere: 404, ..CREATE_DEFINITION };
/// The caller reads the source and creates a store.
const COPY: Expected = Expected {
    own: [403, 403, 200, 403, 403, 403, 403, 403],
    other: [403; 5],
    elsewhere: 404,
    invalid: 401,
};
/// None of the callers has made the session.
const RENEW_TOKEN: Expected = Expected {
    own: [403, 403, 200, 403, 403, 200, 403, 403],
    other: [404; 5],
    elsewhere: 404,
    invalid: 401,
};
/// Without an upstream, as without a route.
const UNSERVED: Expected =
    Expected { own: [404; 8], other: [404; 5], elsewhere: 404, invalid: 404 };
/// No role includes forwarding.
const FORWARDED: Expected =
    Expected { own: [403; 8], other: [403; 5], elsewhere: 403, invalid: 401 };
const NO_CONNECTION: Expected =
    Expected { own: [400; 8], other: [400; 5], elsewhere: 400, invalid: 401 };

/// A route, what to send to it, and what comes back.
struct Row {
    route: &'static str,
    query: &'static str,
    body: &'static str,
    expected: Expected,
}

const fn row(route: &'static str, body: &'static str, expected: Expected) -> Row {
    Row { route, query: "", body, expected }
}

const fn asked(route: &'static str, query: &'static str, expected: Expected) -> Row {
    Row { route, query, body: "", expected }
}

const TITLE: &str = r#"{"title": "new"}"#;
const INITIALIZE: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"}}}"#;
const CREATE_MEMORY: &str = r#"{"path": "/new", "content": "x"}"#;
const CREATE_SESSION: &str = r#"{"agent": "a", "environment_id": "e", "resources": [
    {"type": "memory_store", "memory_store_id": "{store}", "access": "read_write"}]}"#;

const CREATE_AGENT: &str = r#"{"name": "new", "model": "m"}"#;
const NAMED: &str = r#"{"name": "new"}"#;
const ADD_FILE: &str = r#"{"type": "file", "file_id": "file_2"}"#;
const NEW_TOKEN: &str = r#"{"authorization_token": "t"}"#;
const SEND: &str = r#"{"events": [{"type": "user.message", "content": []}]}"#;
const REPORT: &str = r#"{"events": [{"type": "agent.message", "content": []}]}"#;

const ROWS: [Row; 88] = [
    row("GET /v1/agents", "", LIST_DEFINITIONS),
    row("POST /v1/agents", CREATE_AGENT, CREATE_DEFINITION),
    row("GET /v1/agents/{agent}", "", READ_DEFINITION),
    row("POST /v1/agents/{agent}", NAMED, WRITE_DEFINITION),
    row("POST /v1/agents/{agent}/archive", "", WRITE_DEFINITION),
    row("GET /v1/agents/{agent}/versions", "", READ_DEFINITION),
    row("GET /v1/environments", "", LIST_DEFINITIONS),
    row("POST /v1/environments", NAMED, CREATE_DEFINITION),
    row("GET /v1/environments/{environment}", "", READ_DEFINITION),
    row("POST /v1/environments/{environment}", NAMED, WRITE_DEFINITION),
    row("DELETE /v1/environments/{environment}", "", WRITE_DEFINITION),
    row("POST /v1/environments/{environment}/archive", "", WRITE_DEFINITION),
    row("GET /v1/sessions/{session}/resources", "", READ_SESSION),
    row("POST /v1/sessions/{session}/resources", ADD_FILE, WRITE_SESSION),
    row("GET /v1/sessions/{session}/resources/{resource}", "", READ_SESSION),
    row("POST /v1/sessions/{session}/resources/{resource}", NEW_TOKEN, WRITE_SESSION),
    row("DELETE /v1/sessions/{session}/resources/{resource}", "", WRITE_SESSION),
    row("GET /v1/sessions/{session}/events", "", READ_SESSION),
    row("POST /v1/sessions/{session}/events", SEND, RECORD),
    row("GET /v1/sessions/{session}/events/stream", "", READ_SESSION),
    row("GET /v1/sessions/{session}/threads", "", READ_SESSION),
    row("GET /v1/sessions/{session}/threads/{thread}", "", READ_SESSION),
    row("GET /v1/sessions/{session}/threads/{thread}/events", "", READ_SESSION),
    row("GET /v1/sessions/{session}/threads/{thread}/stream", "", READ_SESSION),
    asked("GET /quipu/sessions/{session}/events", "?grep=x", READ_SESSION),
    row("POST /quipu/sessions/{session}/events", REPORT, RECORD),
    row("GET /v1/memory_stores", "", ANYBODY),
    row("POST /v1/memory_stores", r#"{"name": "new"}"#, MANAGE_WORKSPACE),
    row("GET /v1/memory_stores/{store}", "", READ),
    row("POST /v1/memory_stores/{store}", r#"{"name": "new"}"#, MANAGE),
    row("PATCH /v1/memory_stores/{store}", r#"{"name": "new"}"#, MANAGE),
    row("DELETE /v1/memory_stores/{store}", "", MANAGE),
    row("POST /v1/memory_stores/{store}/archive", "", MANAGE),
    row("GET /v1/memory_stores/{store}/memories", "", READ),
    row("POST /v1/memory_stores/{store}/memories", CREATE_MEMORY, WRITE),
    row("GET /v1/memory_stores/{store}/memories/{memory}", "", READ),
    row("POST /v1/memory_stores/{store}/memories/{memory}", r#"{"content": "new"}"#, WRITE),
    row("PATCH /v1/memory_stores/{store}/memories/{memory}", r#"{"content": "new"}"#, WRITE),
    row("DELETE /v1/memory_stores/{store}/memories/{memory}", "", WRITE),
    row("GET /v1/memory_stores/{store}/memory_versions", "", READ),
    row("GET /v1/memory_stores/{store}/memory_versions/{version}", "", READ),
    row("POST /v1/memory_stores/{store}/memory_versions/{version}/redact", "", MANAGE),
    row("GET /v1/sessions", "", LIST_SESSIONS),
    row("POST /v1/sessions", CREATE_SESSION, START_SESSION),
    row("GET /v1/sessions/{session}", "", READ_SESSION),
    row("POST /v1/sessions/{session}", TITLE, WRITE_SESSION),
    row("PATCH /v1/sessions/{session}", TITLE, WRITE_SESSION),
    row("DELETE /v1/sessions/{session}", "", WRITE_SESSION),
    row("POST /v1/sessions/{session}/archive", "", WRITE_SESSION),
    // A command that the caller may not carry out is an answer of the tool.
    row("POST /quipu/stores/{store}/tool", r#"{"command": "view", "path": "/memories"}"#, READ),
    // A caller that may not write gets no session, and keeps its credential.
    row("POST /quipu/stores/{store}/tool/session", "{}", READ),
    row("GET /quipu/stores/{store}/policy", "", READ),
    row("POST /quipu/stores/{store}/policy", r#"{"secrets": "off"}"#, MANAGE),
    row("POST /quipu/stores/{store}/redact", r#"{"memory_version_ids": ["{version}"]}"#, MANAGE),
    row("POST /quipu/stores/{store}/redactions", r#"{"matching": "nowhere"}"#, MANAGE),
    row("GET /quipu/receipts", "", MANAGE_WORKSPACE),
    row("POST /quipu/stores/{store}/restore", r#"{"memory_version_id": "{version}"}"#, WRITE),
    row("GET /quipu/stores/{store}/at/{moment}", "", READ),
    row("GET /quipu/stores/{store}/at/{moment}/memories", "", READ),
    asked("GET /quipu/stores/{store}/at/{moment}/memory", "?path=/a", READ),
    asked("GET /quipu/stores/{store}/at/{moment}/search", "?q=x", READ),
    asked("GET /quipu/stores/{store}/diff", "?from={version}", READ),
    asked("GET /quipu/stores/{store}/blame", "?path=/a", READ),
    row("POST /quipu/stores/{store}/copy", r#"{"name": "new", "at": "{version}"}"#, COPY),
    row("POST /quipu/stores/{store}/restore", r#"{"at": "{version}"}"#, WRITE),
    row("POST /quipu/stores/{store}/restore", r#"{"at": "{version}", "dry_run": true}"#, WRITE),
    row("POST /quipu/stores/{store}/revert", r#"{"actors": ["user_ada"]}"#, WRITE),
    row("POST /quipu/stores/{store}/revert", r#"{"actors": ["user_ada"], "dry_run": true}"#, WRITE),
    asked("GET /quipu/search", "?store={store}&query=x", READ),
    asked("GET /quipu/stores/{store}/suggest", "?text=x", READ),
    row("POST /quipu/stores/{store}/suggest", r#"{"text": "x"}"#, READ),
    asked("GET /quipu/stores/{store}/context", "?url=a", READ),
    row("GET /quipu/stores/{store}/recent", "", READ),
    asked("GET /quipu/stores/{store}/links", "?direction=none", READ),
    row("GET /quipu/sessions/{session}/changes", "", READ_SESSION),
    row("GET /quipu/sessions/{session}/prompt", "", READ_SESSION),
    row("POST /quipu/sessions/{session}/token", "", RENEW_TOKEN),
    asked("GET /quipu/events", "?store={store}", READ),
    row("GET /quipu/docs", "", PUBLIC),
    row("GET /healthz", "", PUBLIC),
    row("GET /readyz", "", PUBLIC),
    row("GET /metrics", "", WHOLE_WORKSPACE),
    row("GET /openapi.json", "", PUBLIC),
    // These are not in the table of routes: the MCP server has its own.
    row("POST /mcp", INITIALIZE, ANYBODY),
    row("GET /mcp", "", NO_CONNECTION),
    row("DELETE /mcp", "", NO_CONNECTION),
    // Nor are these: whatever has no route is forwarded, if there is an upstream.
    row("POST /v1/messages", "{}", UNSERVED),
    row("GET /v1/models", "", UNSERVED),
];

/// What the same requests get when there is an upstream.
const WITH_UPSTREAM: [Row; 4] = [
    row("POST /v1/messages", "{}", FORWARDED),
    row("GET /v1/models", "", FORWARDED),
    row("GET /v1/memory_stores/{store}", "", READ),
    row("POST /v1/sessions", CREATE_SESSION, START_SESSION),
];

/// A store with what can be asked for in it.
pub(crate) struct Things {
    pub(crate) store: StoreId,
    pub(crate) memory: String,
    pub(crate) version: String,
    pub(crate) session: SessionId,
    agent: DefinitionId,
    environment: DefinitionId,
}

/// A repository that every session names.
const DETAILS: &str = r#"{"resources": [{"id": "sesrsc_1", "type": "github_repository",
    "url": "https://example.org/a", "mount_path": "/workspace/a", "checkout": null,
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}]}"#;

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) own: Things,
    pub(crate) other: Things,
    pub(crate) credential: Option<String>,
}

impl World {
    /// Makes a server with two stores and the credential of a caller.
    pub(crate) fn new(caller: Caller) -> Self {
        Self::with(caller, HttpSettings::default())
    }

    /// Makes the same with an upstream. No key of these callers was made to forward.
    pub(crate) fn forwarding(caller: Caller, upstream: UpstreamSettings) -> Self {
        Self::with(caller, HttpSettings { upstream: Some(upstream), ..HttpSettings::default() })
    }

    fn with(caller: Caller, settings: HttpSettings) -> Self {
        let hour = Duration::from_hours(1);
        let limits = Limits { session_token_valid_for: hour, ..Limits::default() };
        let server = server_with(settings, limits);
        let mut own = things(&server, "alpha");
        let other = things(&server, "beta");
        let credential = match caller {
            Caller::Nobody => None,
            Caller::WrongKey => Some("sk-quipu-wrong".to_owned()),
            Caller::Key(role, reach) => {
                let stores = (reach == Reach::OneStore).then(|| vec![own.store]);
                Some(server.new_key(role, stores))
            }
            Caller::AdminElsewhere => {
                let name = Name::new("elsewhere").expect("a name");
                let workspace = server.engine.create_workspace(&name).expect("a workspace").id;
                Some(server.new_key_in(workspace, Role::Admin, None))
            }
            Caller::RevokedKey => {
                let (id, secret) = key(&server);
                server.engine.revoke_key(id).expect("a key");
                Some(secret)
            }
            Caller::ExpiredKey => {
                let now = server.engine.now();
                let name = Name::new("expired").expect("a name");
                let expires_at = Some(now);
                let (role, stores) = (Role::Admin, None);
                let new = NewKey {
                    name,
                    role,
                    stores,
                    expires_at,
                    secret: None,
                    forwarding: Forwarding::Denied,
                };
                let (_, secret) = server.engine.create_key(server.workspace, &new).expect("a key");
                Some(secret.reveal().to_owned())
            }
            Caller::Token(access) => {
                let (id, token) = session(&server, own.store, access, None);
                own.session = id;
                Some(token)
            }
            Caller::TokenOfRevokedKey => {
                let (id, _) = key(&server);
                let token = session(&server, own.store, Access::ReadWrite, Some(id)).1;
                server.engine.revoke_key(id).expect("a key");
                Some(token)
            }
            Caller::ExpiredToken => {
                let token = session(&server, own.store, Access::ReadWrite, None).1;
                server.clock.advance(hour + hour);
                Some(token)
            }
        };
        Self { server, own, other, credential }
    }

    async fn status(&self, row: &Row, things: &Things) -> u16 {
        let fill = |text: &str| {
            text.replace("{store}", &things.store.to_string())
                .replace("{memory}", &things.memory)
                .replace("{version}", &things.version)
                .replace("{moment}", &things.version)
                .replace("{session}", &things.session.to_string())
                .replace("{agent}", &things.agent.to_string())
                .replace("{environment}", &things.environment.to_string())
                .replace("{resource}", "sesrsc_1")
                .replace("{thread}", &things.session.to_string().replace("sesn_", "sthr_"))
        };
        let (method, path) = row.route.split_once(' ').expect("a method and a path");
        let mut request = Request::builder()
            .method(method)
            .uri(fill(path) + &fill(row.query))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(credential) = &self.credential {
            request = request.header("x-api-key", credential);
        }
        let request = request.body(Body::from(fill(row.body))).expect("a request");
        // The body is not read: that of a stream has no end.
        let response = self.server.app.router().oneshot(request).await.expect("an answer");
        response.status().as_u16()
    }
}

fn key(server: &Server) -> (KeyId, String) {
    let name = Name::new("key").expect("a name");
    let new = NewKey {
        name,
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, secret) = server.engine.create_key(server.workspace, &new).expect("a key");
    (key.id, secret.reveal().to_owned())
}

fn session(
    server: &Server,
    store: StoreId,
    access: Access,
    key: Option<KeyId>,
) -> (SessionId, String) {
    let instructions = Instructions::new("secret instructions").expect("short");
    let attachments = vec![NewAttachment { store, access, instructions }];
    let new = NewSession {
        key,
        details: DETAILS.to_owned(),
        ..NewSession::titled("run", attachments, SessionToken::Issue)
    };
    let made = server.engine.create_session(server.workspace, &new).expect("a session");
    (made.0.id, made.1.expect("a token").reveal().to_owned())
}

fn things(server: &Server, name: &str) -> Things {
    let engine = &server.engine;
    let new = NewStore::named(Name::new(name).expect("a name"));
    let store = engine.create_store(server.workspace, &new).expect("a store").id;
    let path = MemoryPath::parse("/a").expect("a path");
    let content = |text: &str| Content::new(text).expect("a text");
    let actor = Actor::expiry();
    let first = engine.create(&actor, store, &path, &content("one")).expect("a memory").memory;
    engine.put(&actor, store, (&path, &content("two")), Precondition::None).expect("a version");
    Things {
        store,
        memory: first.id.to_string(),
        version: first.version.to_string(),
        session: session(server, store, Access::ReadOnly, None).0,
        agent: definition(server, DefinitionKind::Agent),
        environment: definition(server, DefinitionKind::Environment),
    }
}

fn definition(server: &Server, kind: DefinitionKind) -> DefinitionId {
    let content = DefinitionContent {
        name: Name::new("old").expect("a name"),
        metadata: Metadata::default(),
        body: Content::new("{}").expect("a text"),
    };
    server.engine.create_definition(server.workspace, kind, &content).expect("a definition").id
}

#[test]
fn every_route_has_a_row() {
    for (method, path) in routes() {
        let route = format!("{method} {path}");
        assert!(
            ROWS.iter().any(|row| row.route == route),
            "`{route}` has no row in `ROWS` of this file: add one that says which status each \
             kind of caller gets, for a thing of its own store and for one of another store"
        );
    }
}

#[tokio::test]
async fn every_caller_gets_what_its_rights_allow_on_every_route() {
    let mut wrong = Vec::new();
    let mut check = |row: &Row, caller: Caller, which: &str, expected: u16, status: u16| {
        if status != expected {
            wrong.push(format!("{}, {caller:?}, {which}: {status}, not {expected}", row.route));
        }
    };
    let url = BaseUrl::parse("http://nowhere.invalid").expect("an address");
    let upstream = || UpstreamSettings::new(url.clone(), None);
    let plain = ROWS.iter().map(|row| (row, None));
    let with_upstream = WITH_UPSTREAM.iter().map(|row| (row, Some(upstream())));
    for (row, upstream) in plain.chain(with_upstream) {
        let world = |caller| match &upstream {
            None => World::new(caller),
            Some(upstream) => World::forwarding(caller, upstream.clone()),
        };
        for (caller, expected) in VALID.into_iter().zip(row.expected.own) {
            let world = world(caller);
            check(row, caller, "own store", expected, world.status(row, &world.own).await);
        }
        for (caller, expected) in VALID.into_iter().skip(3).zip(row.expected.other) {
            let world = world(caller);
            check(row, caller, "other store", expected, world.status(row, &world.other).await);
        }
        let caller = Caller::AdminElsewhere;
        let elsewhere = world(caller);
        let status = elsewhere.status(row, &elsewhere.own).await;
        check(row, caller, "other workspace", row.expected.elsewhere, status);
        for caller in INVALID {
            let world = world(caller);
            let status = world.status(row, &world.own).await;
            check(row, caller, "own store", row.expected.invalid, status);
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn without_a_valid_credential_nothing_else_is_revealed() {
    let settings = HttpSettings { strict_headers: true, ..HttpSettings::default() };
    let mut world = World::new(Caller::Nobody);
    world.server = server_with(settings, Limits::default());
    for row in ROWS.iter().filter(|row| row.expected.invalid == 401) {
        let (method, path) = row.route.split_once(' ').expect("a method and a path");
        let malformed = [format!("{path}?limit=x&page=&view="), path.replace("{store}", "%ff")];
        let malformed = malformed.map(|uri| uri.replace(['{', '}'], ""));
        for uri in malformed {
            let method: Method = method.parse().expect("a method");
            let request = Request::builder()
                .method(method)
                .uri(&uri)
                .header("content-type", "text/nonsense")
                .header("anthropic-version", "1")
                .header("anthropic-beta", "x,y")
                .body(Body::from("nonsense"))
                .expect("a request");
            let reply = world.server.send(request).await;
            reply.error(401, "authentication_error");
        }
    }
}
