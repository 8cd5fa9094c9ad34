//! A store that is reserved for people: every way to change it over HTTP, with every kind of credential.

use std::time::Duration;

use axum::http::Method;
use quipu_core::engine::{
    Derivation, NewAttachment, NewDerivedKey, NewSession, NewStore, Precondition, SessionToken,
};
use quipu_core::model::{
    Access, Actor, Content, Instructions, KeyKind, MemoryPath, Name, PrincipalName, Role, StoreId,
    StorePolicy, View, Writers,
};
use quipu_inspector::form_token;
use serde_json::{Value, json};

use super::mcp::Client;
use super::{Server, server};
use crate::inspector::{Browser, text};

/// A server whose store `rules` is reserved and has one rule with two versions.
struct World {
    server: Server,
    store: StoreId,
    memory: String,
    /// The version that is not the newest one.
    version: String,
}

impl World {
    fn new() -> Self {
        let server = server();
        let policy = StorePolicy { writers: Writers::People, ..StorePolicy::default() };
        let new = NewStore { policy, ..NewStore::named(Name::new("rules").expect("it works")) };
        let store = server.engine.create_store(server.workspace, &new).expect("it works").id;
        let ada = Actor::User(PrincipalName::from_host("ada"));
        let path = MemoryPath::parse("/r.md").expect("it works");
        let content = |text: &str| Content::new(text).expect("it works");
        let first =
            server.engine.create(&ada, store, &path, &content("the first rule")).expect("it works");
        server.clock.advance(Duration::from_secs(1));
        let target = (&path, &content("the rule"));
        server.engine.put(&ada, store, target, Precondition::None).expect("it works");
        let (memory, version) = (first.memory.id.to_string(), first.memory.version.to_string());
        Self { server, store, memory, version }
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{store}", &self.store.to_string())
            .replace("{memory}", &self.memory)
            .replace("{version}", &self.version)
    }

    /// Returns everything that can be read of the store.
    fn seen(&self) -> String {
        let query = quipu_core::backend::VersionQuery {
            filter: quipu_core::backend::VersionFilter::default(),
            before: None,
            limit: 100,
            view: View::Full,
        };
        let engine = &self.server.engine;
        // A store that is deleted has no versions to show.
        let versions = engine.versions(self.store, &query).map(|page| page.items).ok();
        let store = engine.store(self.store).ok();
        format!("{versions:?} {store:?}")
    }

    fn derived(&self, from: Derivation, kind: KeyKind, role: Role) -> String {
        let new = NewDerivedKey {
            kind,
            name: Name::new("ada").expect("it works"),
            role,
            stores: None,
            expires_at: self.server.engine.now().plus(Duration::from_hours(1)),
            payload: None,
        };
        self.server.engine.derive_key(from, &new).expect("it works").1.reveal().to_owned()
    }

    /// Returns what a credential is derived from.
    fn from(&self, secret: &str) -> Derivation {
        let principal = self.server.engine.principal(secret).expect("it works");
        let Some(quipu_core::engine::Principal::Key(key)) = principal else { panic!("no key") };
        Derivation::Key(key.id)
    }

    fn browser_of(&self, secret: &str, role: Role) -> String {
        self.derived(self.from(secret), KeyKind::Browser, role)
    }
}

/// A kind of credential, and how to get one.
type Who = (&'static str, fn(&World) -> String);

const PEOPLE: [Who; 4] = [
    ("an administrator's key", |it| it.server.key.clone()),
    ("… that is limited to the store", |it| it.server.new_key(Role::Admin, Some(vec![it.store]))),
    ("the cookie of an administrator", |it| it.browser_of(&it.server.key, Role::Admin)),
    ("the cookie of the owner", |it| {
        it.derived(Derivation::Owner(it.server.workspace), KeyKind::Browser, Role::Admin)
    }),
];

const OTHERS: [Who; 7] = [
    ("a key that reads", |it| it.server.new_key(Role::ReadOnly, None)),
    ("a key that writes", |it| it.server.new_key(Role::ReadWrite, None)),
    ("… that is limited to the store", |it| {
        it.server.new_key(Role::ReadWrite, Some(vec![it.store]))
    }),
    ("the cookie of a key that writes", |it| {
        let key = it.server.new_key(Role::ReadWrite, None);
        it.browser_of(&key, Role::ReadWrite)
    }),
    ("the cookie of an owner with fewer rights", |it| {
        it.derived(Derivation::Owner(it.server.workspace), KeyKind::Browser, Role::ReadWrite)
    }),
    ("a token that an administrator has consented to", |it| {
        let browser = it.browser_of(&it.server.key, Role::Admin);
        it.derived(it.from(&browser), KeyKind::Key, Role::ReadWrite)
    }),
    ("the token of a session", |it| {
        let attachment = NewAttachment {
            store: it.store,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let new = NewSession::titled("an agent", vec![attachment], SessionToken::Issue);
        let made = it.server.engine.create_session(it.server.workspace, &new).expect("it works");
        made.1.expect("it works").reveal().to_owned()
    }),
];

/// Requests that change the store, with their bodies.
const REQUESTS: [(&str, &str); 21] = [
    ("POST /v1/memory_stores/{store}/memories", r#"{"path": "/new.md", "content": "x"}"#),
    ("POST /v1/memory_stores/{store}/memories/{memory}", r#"{"content": "x"}"#),
    ("POST /v1/memory_stores/{store}/memories/{memory}", r#"{"path": "/s.md"}"#),
    ("PATCH /v1/memory_stores/{store}/memories/{memory}", r#"{"content": "x"}"#),
    ("DELETE /v1/memory_stores/{store}/memories/{memory}", ""),
    ("POST /v1/memory_stores/{store}/memory_versions/{version}/redact", ""),
    ("POST /quipu/stores/{store}/redact", r#"{"memory_version_ids": ["{version}"]}"#),
    ("POST /quipu/stores/{store}/redactions", r#"{"matching": "first"}"#),
    ("POST /quipu/stores/{store}/redactions", r#"{"matching": "the", "and_heads": true}"#),
    ("POST /quipu/stores/{store}/restore", r#"{"memory_version_id": "{version}"}"#),
    ("POST /quipu/stores/{store}/restore", r#"{"at": "{version}"}"#),
    ("POST /quipu/stores/{store}/revert", r#"{"actors": ["user_ada"]}"#),
    ("POST /quipu/stores/{store}/policy", r#"{"writers": "everyone"}"#),
    ("POST /v1/memory_stores/{store}", r#"{"name": "harmless"}"#),
    ("POST /v1/memory_stores/{store}/archive", ""),
    ("DELETE /v1/memory_stores/{store}", ""),
    (
        "POST /quipu/stores/{store}/tool",
        r#"{"command": "create", "path": "/memories/new.md", "file_text": "x"}"#,
    ),
    (
        "POST /quipu/stores/{store}/tool",
        r#"{"command": "str_replace", "path": "/memories/r.md", "old_str": "the", "new_str": "my"}"#,
    ),
    (
        "POST /quipu/stores/{store}/tool",
        r#"{"command": "insert", "path": "/memories/r.md", "insert_line": 0, "insert_text": "x"}"#,
    ),
    (
        "POST /quipu/stores/{store}/tool",
        r#"{"command": "rename", "old_path": "/memories/r.md", "new_path": "/memories/s.md"}"#,
    ),
    ("POST /quipu/stores/{store}/tool", r#"{"command": "delete", "path": "/memories/r.md"}"#),
];

async fn sent(world: &World, secret: &str, (route, body): (&str, &str)) -> super::Reply {
    let (method, path) = route.split_once(' ').expect("a method and a path");
    let body = match body {
        "" => Value::Null,
        body => serde_json::from_str(&world.fill(body)).expect("a document"),
    };
    let method: Method = method.parse().expect("a method");
    world.server.call_as(secret, method, &world.fill(path), body).await
}

#[tokio::test]
async fn every_request_of_people_changes_it() {
    for (who, secret) in PEOPLE {
        for request in REQUESTS {
            let world = World::new();
            let before = world.seen();
            let reply = sent(&world, &secret(&world), request).await;
            assert_eq!(reply.status, 200, "{who}, {request:?}: {}", reply.body);
            assert_ne!(world.seen(), before, "{who}, {request:?}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn no_request_of_anybody_else_changes_it() {
    for (who, secret) in OTHERS {
        for request in REQUESTS {
            let world = World::new();
            let before = world.seen();
            let reply = sent(&world, &secret(&world), request).await;
            let is_refused = reply.status == 403
                || (reply.status == 200 && reply.body["is_error"] == json!(true));
            assert!(is_refused, "{who}, {request:?}: {} {}", reply.status, reply.body);
            assert_eq!(world.seen(), before, "{who}, {request:?}");
        }
    }
}

#[tokio::test]
async fn no_client_of_mcp_changes_it_whatever_its_key() {
    let edited = json!({"identifier": "r", "operation": "append", "content": "x"});
    let moved = json!({"identifier": "r", "destination_path": "s.md"});
    let view = json!({"command": "delete", "path": "/memories/r.md"});
    let calls = [
        ("write_note", json!({"title": "new", "directory": "/", "content": "x"})),
        ("edit_note", edited),
        ("move_note", moved),
        ("delete_note", json!({"identifier": "r"})),
        ("memory", view),
        ("delete_memory_project", json!({"project_name": "rules"})),
    ];
    for (who, secret) in PEOPLE.into_iter().chain(OTHERS) {
        let world = World::new();
        let (before, secret) = (world.seen(), secret(&world));
        let client = Client::new(&world.server, &secret).await;
        for (tool, arguments) in &calls {
            let mut arguments = arguments.clone();
            if *tool != "memory" {
                arguments["project"] = json!("rules");
            }
            let answer = client.call(tool, arguments).await;
            assert_ne!(answer["isError"], json!(false), "{who}, {tool}: {answer}");
        }
        assert_eq!(world.seen(), before, "{who}");
    }
}

#[tokio::test]
async fn a_sign_in_makes_no_person_of_a_key() {
    for (role, is_person) in [(Role::Admin, true), (Role::ReadWrite, false)] {
        let world = World::new();
        let key = world.server.new_key(role, None);
        let browser = Browser::signed_in(&world.server, &key).await;
        let cookie = browser.cookie.trim_start_matches("quipu=").to_owned();
        let before = world.seen();
        let token = form_token(&cookie);
        let fields = [("token", token.as_str()), ("path", "/new.md"), ("text", "mine")];
        let reply = browser.post(&world.fill("/ui/stores/{store}/new"), &fields).await;
        assert_eq!(world.seen() != before, is_person);
        assert_eq!(reply.status == 303, is_person, "{}", reply.body);
        let is_explained = text(&reply).contains("can only be changed by people");
        assert_eq!(is_explained, !is_person, "{}", reply.body);
    }
}
