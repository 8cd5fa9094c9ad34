//! Who may see and do what, for every page and every kind of caller.
//!
//! The callers are those of REST, with the same rights. The rows are held against the table of routes: a
//! page without a row fails the test.

use std::time::Duration;

use quipu_core::engine::{Derivation, NewDerivedKey, Principal};
use quipu_core::model::{Access, KeyKind, Name, Role};
use quipu_inspector::form_token;
use quipu_server::inspector_routes;

use super::{Browser, is_sign_in};
use crate::rest::matrix::{Caller, INVALID, Reach, Things, World};

/// What a page needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// To have signed in.
    Nothing,
    /// To read, change memories in, or manage the store that it names.
    Read,
    Write,
    Manage,
    /// To manage the whole workspace.
    Workspace,
    /// To manage the whole workspace, and a thing that does not exist here.
    WorkspaceThing,
    /// To manage any store.
    AnyStore,
    /// To manage any store, and a receipt that does not exist here.
    Receipt,
    /// To see the session that it names.
    Session,
    /// To read a store that the author has changed, or all of them.
    Author,
    /// To see the session that it names, with a key that may write.
    EndSession,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The page was shown, the change was made, or the form was found wanting.
    Done,
    /// The caller may not.
    Denied,
    /// To the caller it does not exist.
    Hidden,
}

impl Outcome {
    fn of(status: u16) -> Option<Self> {
        match status {
            200 | 303 | 400 | 409 => Some(Self::Done),
            403 => Some(Self::Denied),
            404 => Some(Self::Hidden),
            _ => None,
        }
    }
}

const ROWS: &[(&str, &str, Need)] = &[
    ("GET /ui", "", Need::Nothing),
    ("POST /ui/stores", "name=new", Need::Workspace),
    ("GET /ui/search", "", Need::Nothing),
    ("GET /ui/search/delete", "", Need::Nothing),
    ("POST /ui/search/delete", "", Need::Nothing),
    ("GET /ui/stores/{store}", "", Need::Read),
    ("GET /ui/stores/{store}/health", "", Need::Read),
    ("GET /ui/stores/{store}/graph", "", Need::Read),
    ("GET /ui/stores/{store}/note", "to=Tea", Need::Read),
    ("GET /ui/stores/{store}/past", "at=now", Need::Read),
    ("GET /ui/stores/{store}/past/memories/{memory}", "at=now", Need::Read),
    ("GET /ui/stores/{store}/past/changes", "at=now", Need::Read),
    ("GET /ui/stores/{store}/past/restore", "at=now", Need::Write),
    ("POST /ui/stores/{store}/past/restore", "at=now", Need::Write),
    ("GET /ui/stores/{store}/export", "", Need::Read),
    ("POST /ui/stores/{store}/export", "", Need::Read),
    ("GET /ui/stores/{store}/move", "", Need::Write),
    ("POST /ui/stores/{store}/move", "", Need::Write),
    ("GET /ui/stores/{store}/delete", "", Need::Write),
    ("POST /ui/stores/{store}/delete", "", Need::Write),
    ("GET /ui/stores/{store}/settings", "", Need::Manage),
    ("POST /ui/stores/{store}/settings", "name=new", Need::Manage),
    ("POST /ui/stores/{store}/archive", "", Need::Manage),
    ("POST /ui/stores/{store}/remove", "", Need::Manage),
    ("GET /ui/stores/{store}/new", "", Need::Write),
    ("POST /ui/stores/{store}/new", "path=/new.md&text=x", Need::Write),
    ("GET /ui/stores/{store}/memories/{memory}", "", Need::Read),
    ("GET /ui/stores/{store}/memories/{memory}/edit", "", Need::Write),
    ("POST /ui/stores/{store}/memories/{memory}/edit", "text=x", Need::Write),
    ("GET /ui/stores/{store}/memories/{memory}/rename", "", Need::Write),
    ("POST /ui/stores/{store}/memories/{memory}/rename", "path=/new.md", Need::Write),
    ("GET /ui/stores/{store}/memories/{memory}/delete", "", Need::Write),
    ("POST /ui/stores/{store}/memories/{memory}/delete", "", Need::Write),
    ("GET /ui/stores/{store}/memories/{memory}/history", "", Need::Read),
    ("GET /ui/stores/{store}/memories/{memory}/versions/{version}", "", Need::Read),
    ("POST /ui/stores/{store}/memories/{memory}/versions/{version}/restore", "", Need::Write),
    ("POST /ui/stores/{store}/memories/{memory}/versions/{version}/redact", "", Need::Manage),
    ("GET /ui/sessions", "", Need::Nothing),
    ("GET /ui/sessions/{session}", "", Need::Session),
    ("POST /ui/sessions/{session}/end", "", Need::EndSession),
    ("GET /ui/actors", "", Need::Nothing),
    ("GET /ui/actors/{actor}", "", Need::Author),
    ("GET /ui/revert", "store={store}&actor={actor}", Need::Write),
    ("POST /ui/revert", "store={store}&actor={actor}", Need::Write),
    ("GET /ui/redact", "", Need::AnyStore),
    ("POST /ui/redact", "store={store}&text=x", Need::Manage),
    ("POST /ui/redact/confirm", "store={store}&text=x", Need::Manage),
    ("GET /ui/receipts", "", Need::Workspace),
    ("GET /ui/receipts/{receipt}", "", Need::Receipt),
    ("GET /ui/receipts/{receipt}/receipt.json", "", Need::Receipt),
    ("GET /ui/admin", "", Need::Workspace),
    ("GET /ui/admin/keys", "", Need::Workspace),
    ("POST /ui/admin/keys", "name=new&role=read_only", Need::Workspace),
    ("GET /ui/admin/keys/{key}/revoke", "", Need::Workspace),
    ("POST /ui/admin/keys/{key}/revoke", "", Need::Workspace),
    ("GET /ui/admin/webhooks", "", Need::Workspace),
    ("POST /ui/admin/webhooks", "", Need::Workspace),
    ("GET /ui/admin/retention", "", Need::Workspace),
    ("GET /ui/admin/credentials", "", Need::Workspace),
    ("GET /ui/admin/upkeep", "", Need::Workspace),
    ("POST /ui/admin/upkeep/check", "", Need::Workspace),
    ("POST /ui/admin/upkeep/prune", "", Need::Workspace),
    ("POST /ui/admin/upkeep/backup", "", Need::Workspace),
    ("POST /ui/admin/upkeep/restore", "store={store}", Need::WorkspaceThing),
    ("GET /ui/authorize", "", Need::Nothing),
    ("POST /ui/authorize", "", Need::Nothing),
    ("POST /ui/sign-out", "", Need::Nothing),
];

/// Routes that are for people who have not signed in, and the stream of events, which REST's matrix has.
const OPEN: [&str; 6] = [
    "GET /",
    "GET /ui/sign-in",
    "POST /ui/sign-in",
    "GET /ui/enter",
    "GET /ui/events",
    "GET /ui/assets/{file}",
];

/// Whose thing a page names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    /// One of the caller's own store.
    Own,
    /// One of another store.
    Other,
}

fn expected(need: Need, (role, reach): (Role, Reach), thing: Thing) -> Outcome {
    let is_reached = thing == Thing::Own || reach == Reach::Everything;
    let with = |is_enough: bool| if is_enough { Outcome::Done } else { Outcome::Denied };
    match need {
        Need::Read => with(is_reached),
        Need::Write => with(is_reached && role >= Role::ReadWrite),
        Need::Manage => with(is_reached && role == Role::Admin),
        Need::Workspace => with(role == Role::Admin && reach == Reach::Everything),
        Need::WorkspaceThing if role == Role::Admin && reach == Reach::Everything => {
            Outcome::Hidden
        }
        Need::AnyStore => with(role == Role::Admin),
        Need::Receipt if role == Role::Admin => Outcome::Hidden,
        Need::WorkspaceThing | Need::Receipt => Outcome::Denied,
        Need::Session | Need::Author | Need::EndSession if !is_reached => Outcome::Hidden,
        Need::Nothing | Need::Session | Need::Author => Outcome::Done,
        Need::EndSession => with(role >= Role::ReadWrite),
    }
}

/// Returns a browser that is signed in with the caller's key. What is not a valid key is put into its cookie
/// as it is.
fn browser(world: &World) -> (Browser<'_>, String) {
    let engine = &world.server.engine;
    let presented = world.credential.clone().unwrap_or_default();
    let secret = match engine.principal(&presented).expect("an answer") {
        Some(Principal::Key(key)) => {
            let new = NewDerivedKey {
                kind: KeyKind::Browser,
                name: Name::new("ada").expect("a name"),
                role: key.role,
                stores: key.stores.clone(),
                expires_at: engine.now().plus(Duration::from_hours(1)),
                payload: None,
            };
            let derived = engine.derive_key(Derivation::Key(key.id), &new).expect("a sign-in");
            derived.1.reveal().to_owned()
        }
        Some(Principal::Session(_)) | None => presented,
    };
    let cookie = if secret.is_empty() { String::new() } else { format!("quipu={secret}") };
    (Browser { server: &world.server, cookie, site: "same-origin" }, secret)
}

struct Sent {
    status: u16,
    has_changed: bool,
    is_sign_in: bool,
}

async fn sent(world: &World, things: &Things, (route, fields, _): &(&str, &str, Need)) -> Sent {
    let keys = world.server.engine.keys(world.server.workspace).expect("keys");
    let key = keys.first().expect("a key").id.to_string();
    let fill = |text: &str| {
        text.replace("{store}", &things.store.to_string())
            .replace("{memory}", &things.memory)
            .replace("{version}", &things.version)
            .replace("{session}", &things.session.to_string())
            .replace("{actor}", &format!("{}", things.session))
            .replace("{key}", &key)
            .replace("{receipt}", "rcpt_none")
    };
    let (method, path) = route.split_once(' ').expect("a method and a path");
    let (browser, secret) = browser(world);
    let before = world.server.engine.newest_sequence().expect("a sequence");
    let fields = fill(fields);
    let reply = if method == "GET" {
        let query = if fields.is_empty() { String::new() } else { format!("?{fields}") };
        browser.get(&format!("{}{query}", fill(path))).await
    } else {
        let token = form_token(&secret);
        let mut pairs = vec![("token", token.as_str())];
        pairs.extend(fields.split('&').filter_map(|pair| pair.split_once('=')));
        browser.post(&fill(path), &pairs).await
    };
    let has_changed = world.server.engine.newest_sequence().expect("a sequence") != before;
    let leads_to_form = reply.status == 303 && super::location(&reply).starts_with("/ui/sign-in?");
    Sent { status: reply.status, has_changed, is_sign_in: leads_to_form || reply.status == 401 }
}

#[test]
fn every_page_has_a_row() {
    let mut rows: Vec<_> = ROWS.iter().map(|(route, ..)| *route).chain(OPEN).collect();
    let mut routes: Vec<_> =
        inspector_routes().iter().map(|(method, path)| format!("{method} {path}")).collect();
    rows.sort_unstable();
    routes.sort_unstable();
    assert_eq!(rows, routes);
}

/// Returns all kinds of keys, each with a thing of its own store and one of another.
fn cells() -> impl Iterator<Item = ((Role, Reach), Thing)> {
    let roles = Role::ALL.iter().copied();
    let keys = roles.flat_map(|role| [(role, Reach::Everything), (role, Reach::OneStore)]);
    keys.flat_map(|key| [(key, Thing::Own), (key, Thing::Other)])
}

#[tokio::test]
async fn every_caller_gets_exactly_what_its_rights_allow() {
    let mut wrong = Vec::new();
    for row in ROWS {
        for ((role, reach), thing) in cells() {
            let caller = Caller::Key(role, reach);
            let world = World::new(caller);
            let things = match thing {
                Thing::Own => &world.own,
                Thing::Other => &world.other,
            };
            let sent = sent(&world, things, row).await;
            let expected = expected(row.2, (role, reach), thing);
            let is_right = Outcome::of(sent.status) == Some(expected);
            if !is_right || (sent.has_changed && expected != Outcome::Done) {
                let (route, status, changed) = (row.0, sent.status, sent.has_changed);
                wrong.push(format!(
                    "{route} as {caller:?}, {thing:?}: {status} instead of {expected:?}, \
                     changed: {changed}"
                ));
            }
        }
        // The token of a session is for an agent: it opens no page.
        let tokens = [Access::ReadOnly, Access::ReadWrite].map(Caller::Token);
        for caller in INVALID.into_iter().chain(tokens) {
            let world = World::new(caller);
            let sent = sent(&world, &world.own, row).await;
            if !sent.is_sign_in || sent.has_changed {
                wrong.push(format!("{} as {caller:?}: {}", row.0, sent.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn things_of_another_workspace_do_not_exist() {
    let mut wrong = Vec::new();
    for row in ROWS.iter().filter(|row| {
        !matches!(
            row.2,
            Need::Nothing | Need::Author | Need::Workspace | Need::AnyStore | Need::WorkspaceThing
        )
    }) {
        let world = World::new(Caller::AdminElsewhere);
        let sent = sent(&world, &world.own, row).await;
        if sent.status != 404 || sent.has_changed {
            wrong.push(format!("{}: {}", row.0, sent.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn forms_without_a_token_or_of_another_site_are_refused() {
    for (route, ..) in ROWS.iter().filter(|(route, ..)| route.starts_with("POST")) {
        let Some((_, path)) = route.split_once(' ') else { continue };
        // It reads: its form holds what must not be in an address.
        if path == "/ui/redact" {
            continue;
        }
        let world = World::new(Caller::Key(Role::Admin, Reach::Everything));
        let (mut browser, secret) = browser(&world);
        let path = path
            .replace("{store}", &world.own.store.to_string())
            .replace("{memory}", &world.own.memory);
        assert_eq!(browser.post(&path, &[]).await.status, 403, "{path}");
        browser.site = "cross-site";
        let token = form_token(&secret);
        assert_eq!(browser.post(&path, &[("token", &token)]).await.status, 403, "{path}");
    }
    let world = World::new(Caller::Nobody);
    is_sign_in(&Browser::new(&world.server).get("/ui/stores/x").await);
}
