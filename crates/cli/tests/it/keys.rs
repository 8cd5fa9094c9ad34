//! Keys that are derived from other keys, as the command line shows them.

use std::time::Duration;

use quipu_core::engine::{Derivation, NewDerivedKey, Precondition};
use quipu_core::model::{Content, Key, KeyKind, KeySecret, MemoryPath, Name, Role};

use crate::support::Quipu;

/// Derives a key for `ada`.
fn derived(quipu: &Quipu, from: &str, kind: KeyKind) -> (Key, KeySecret) {
    let engine = quipu.engine(0);
    let new = NewDerivedKey {
        kind,
        name: Name::new("ada").expect("a name"),
        role: Role::ReadWrite,
        stores: None,
        expires_at: engine.now().plus(Duration::from_hours(1)),
        payload: None,
    };
    let from = Derivation::Key(from.parse().expect("the id of a key"));
    engine.derive_key(from, &new).expect("it is derived")
}

fn key(quipu: &Quipu, name: &str) -> String {
    let created = quipu.json(&["key", "create", "--role", "read_write", "--name", name]);
    let id = created.get("id").and_then(|id| id.as_str());
    id.expect("an id").to_owned()
}

#[test]
fn the_list_says_what_a_key_is_for_where_it_comes_from_and_when_it_was_used() {
    let quipu = Quipu::with_store();
    let root = key(&quipu, "ci");
    let (browser, cookie) = derived(&quipu, &root, KeyKind::Browser);
    let line = |id: &str| {
        let listed = quipu.ok(&["key", "list"]);
        listed.lines().find(|line| line.starts_with(id)).expect("it is listed").to_owned()
    };
    let id = browser.id.to_string();
    assert!(line(&root).contains("  ci  key  all stores  valid  never used"), "{}", line(&root));
    assert!(line(&id).contains("  ada  browser of ci  all stores  until "), "{}", line(&id));
    let engine = quipu.engine(0);
    assert!(engine.principal(cookie.reveal()).expect("it is read").is_some());
    engine.write_uses().expect("it is written");
    assert!(line(&id).contains("  used "), "{}", line(&id));
    let listed = quipu.json(&["key", "list"]);
    let body = listed["data"].as_array().expect("a list").iter().find(|it| it["id"] == id.as_str());
    let body = body.expect("it is listed");
    assert_eq!((&body["kind"], &body["parent_id"]), (&"browser".into(), &root.as_str().into()));
    assert!(body["last_used_at"].is_string(), "{body}");
}

#[test]
fn a_name_means_the_key_before_what_was_derived_from_it() {
    let quipu = Quipu::with_store();
    let root = key(&quipu, "ada");
    let (browser, cookie) = derived(&quipu, &root, KeyKind::Browser);
    let (other, _) = derived(&quipu, &root, KeyKind::Browser);
    quipu.ok(&["key", "revoke", &other.id.to_string()]);
    let is_valid = || quipu.engine(0).principal(cookie.reveal()).expect("it is read").is_some();
    assert!(is_valid());
    assert!(quipu.ok(&["key", "revoke", "ada"]).starts_with(&root));
    assert!(!is_valid());
    let line = format!("{}  read_write  ada  browser of ada", browser.id);
    assert!(quipu.ok(&["key", "list"]).contains(&line));
    // If no valid key has the name, it means one that was derived.
    let another = key(&quipu, "ci");
    derived(&quipu, &another, KeyKind::Browser);
    assert!(quipu.ok(&["key", "revoke", "ada"]).contains("browser of ci"));
}

#[test]
fn what_was_done_at_a_browser_is_found_by_the_key() {
    let quipu = Quipu::with_store();
    let root = key(&quipu, "ci");
    let (browser, _) = derived(&quipu, &root, KeyKind::Browser);
    let engine = quipu.engine(0);
    let store = engine.find_store(browser.workspace, "notes").expect("a store").id;
    let path = MemoryPath::parse("/a.md").expect("a path");
    let target = (&path, &Content::new("typed\n").expect("a text"));
    engine.put(&browser.actor(), store, target, Precondition::None).expect("it is written");
    quipu.put("/b.md", "by somebody else\n");
    let log = quipu.ok(&["log", "--key", "ci"]);
    let author = format!("Actor:  ada with ci (user_ada@{root})\n");
    assert!(log.contains(&author) && !log.contains("/b.md"), "{log}");
    quipu.ok(&["revert", "--key", "ci"]);
    assert_eq!(quipu.ok(&["ls"]), "/b.md\n");
}
