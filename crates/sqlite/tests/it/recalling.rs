//! What is answered without the database is what the database would answer.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::Engine;
use quipu_core::engine::{
    Derivation, NewDerivedKey, NewKey, NewSession, Precondition, SessionToken,
};
use quipu_core::model::{Forwarding, KeyKind, Name, Role, StoreId, View};

use crate::support::{actor, content, engine, fixture, new_store, path};

fn text(engine: &Engine, store: StoreId) -> String {
    let memory = engine.memory_at(store, &path("/a"), View::Full).expect("it is there");
    memory.content.expect("it was asked for").as_str().to_owned()
}

/// Reads twice, so that the second time is answered from what is known.
fn text_twice(engine: &Engine, store: StoreId) -> String {
    let first = text(engine, store);
    assert_eq!(text(engine, store), first);
    first
}

#[test]
fn a_write_through_another_connection_is_seen_at_once() {
    let fixture = fixture();
    let other = engine(fixture.directory.path());
    for number in 0..50 {
        let number = number.to_string();
        fixture.put("/a", &number);
        assert_eq!(text_twice(&other, fixture.store), number);
        assert_eq!(text_twice(&fixture.engine, fixture.store), number);
    }
    let id = fixture.put("/a", "last").memory.id;
    assert!(other.memory(fixture.store, id, View::Full).is_ok());
    fixture.engine.delete(&actor(), fixture.store, id, Precondition::None).expect("deleted");
    assert!(other.memory(fixture.store, id, View::Full).is_err());
    assert!(other.memory_at(fixture.store, &path("/a"), View::Full).is_err());
}

#[test]
fn what_was_missing_is_seen_when_it_appears() {
    let fixture = fixture();
    let other = engine(fixture.directory.path());
    for _ in 0..2 {
        assert!(other.memory_at(fixture.store, &path("/a"), View::Full).is_err());
    }
    fixture.put("/a", "here");
    assert_eq!(text_twice(&other, fixture.store), "here");
}

#[test]
fn keys_sessions_and_stores_end_at_once() {
    let fixture = fixture();
    let other = engine(fixture.directory.path());
    let workspace = fixture.engine.default_workspace().expect("a workspace").id;
    let name = Name::new("test").expect("a name");
    let new = NewKey {
        name,
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, secret) = fixture.engine.create_key(workspace, &new).expect("a key");
    let new = NewSession::titled("a run", Vec::new(), SessionToken::Issue);
    let (session, token) = fixture.engine.create_session(workspace, &new).expect("a session");
    let token = token.expect("it was wished for");
    let store = new_store(&fixture.engine, "more");
    let is_valid = |secret: &str| other.principal(secret).expect("it is read").is_some();
    for _ in 0..2 {
        assert!(is_valid(secret.reveal()) && is_valid(token.reveal()));
        assert!(other.store(store).expect("it is there").archived_at.is_none());
    }
    fixture.engine.revoke_key(key.id).expect("revoked");
    assert!(!is_valid(secret.reveal()));
    fixture.engine.archive_session(session.id).expect("archived");
    assert!(!is_valid(token.reveal()));
    fixture.engine.archive_store(store).expect("archived");
    assert!(other.store(store).expect("it is there").archived_at.is_some());
}

#[test]
fn derived_keys_end_at_once_with_their_parent() {
    let fixture = fixture();
    let other = engine(fixture.directory.path());
    let workspace = fixture.engine.default_workspace().expect("a workspace").id;
    let name = Name::new("test").expect("a name");
    let (role, expires_at) = (Role::Admin, None);
    let new = NewKey {
        name: name.clone(),
        role,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (root, _) = fixture.engine.create_key(workspace, &new).expect("a key");
    let browser = NewDerivedKey {
        kind: KeyKind::Browser,
        name,
        role,
        stores: None,
        expires_at: fixture.engine.now().plus(Duration::from_hours(1)),
        payload: None,
    };
    let derive = || fixture.engine.derive_key(Derivation::Key(root.id), &browser);
    let (first, cookie) = derive().expect("a browser");
    let session = NewSession::titled("a run", Vec::new(), SessionToken::Issue);
    let session = NewSession { key: Some(derive().expect("a browser").0.id), ..session };
    let (_, token) = fixture.engine.create_session(workspace, &session).expect("a session");
    let token = token.expect("it was wished for");
    // Twice, so that the second time is answered from what is known.
    let is_valid = |secret: &str| {
        let admitted = [(); 2].map(|()| other.principal(secret).expect("it is read").is_some());
        assert_eq!(admitted[0], admitted[1]);
        admitted[0]
    };
    assert!(is_valid(cookie.reveal()) && is_valid(token.reveal()));
    let recalled = other.without_waiting(|engine| engine.principal(cookie.reveal()));
    assert!(recalled.is_some(), "it is known without the database");
    fixture.engine.revoke_key(first.id).expect("revoked");
    assert!(!is_valid(cookie.reveal()) && is_valid(token.reveal()));
    fixture.engine.revoke_key(root.id).expect("revoked");
    assert!(!is_valid(token.reveal()));
}

/// A writer that is killed after its commit and before it leaves has changed something, but
/// nobody counts its turn to the end.
#[test]
fn nothing_is_recalled_after_a_writer_died_inside() {
    let fixture = fixture();
    fixture.put("/a", "old");
    let reader = engine(fixture.directory.path());
    assert_eq!(text_twice(&reader, fixture.store), "old");
    let lock = fixture.directory.path().join("quipu.lock");
    let turns = fs::read(&lock).expect("the lock file");
    fixture.put("/a", "new");
    // As if the writer of "new" had entered and never left.
    let turns = turns.first_chunk().expect("a number");
    let inside = u64::from_le_bytes(*turns) + 1;
    fs::write(&lock, inside.to_le_bytes()).expect("the lock file");
    assert_eq!(text_twice(&reader, fixture.store), "new");
    fixture.put("/a", "newer");
    assert_eq!(text_twice(&reader, fixture.store), "newer");
}

/// Whoever reads sees at least what was acknowledged before the reading began.
#[test]
fn no_reading_is_older_than_what_was_acknowledged_before_it() {
    const WRITES: u64 = 300;
    let fixture = fixture();
    fixture.put("/a", "0");
    let other = engine(fixture.directory.path());
    let acknowledged = AtomicU64::new(0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for engine in [&other, &fixture.engine, &other] {
            let (store, acknowledged, is_done) = (fixture.store, &acknowledged, &is_done);
            scope.spawn(move || {
                let mut newest = 0;
                while !is_done.load(Ordering::SeqCst) {
                    let before = acknowledged.load(Ordering::SeqCst);
                    let read: u64 = text(engine, store).parse().expect("a number");
                    assert!(read >= before, "{read} was read after {before} was acknowledged");
                    assert!(read >= newest, "{read} was read after {newest}");
                    newest = read;
                }
            });
        }
        for number in 1..=WRITES {
            let writer = if number % 2 == 0 { &fixture.engine } else { &other };
            let target = (&path("/a"), &content(&number.to_string()));
            writer.put(&actor(), fixture.store, target, Precondition::None).expect("written");
            acknowledged.store(number, Ordering::SeqCst);
            if number % 10 == 0 {
                thread::yield_now();
            }
        }
        is_done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn credentials_that_are_wrong_are_not_kept_and_those_of_sessions_are() {
    let fixture = fixture();
    let workspace = fixture.engine.default_workspace().expect("a workspace").id;
    let name = Name::new("test").expect("a name");
    let new = NewKey {
        name,
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (_, secret) = fixture.engine.create_key(workspace, &new).expect("a key");
    let new = NewSession::titled("test", Vec::new(), SessionToken::Issue);
    let (_, token) = fixture.engine.create_session(workspace, &new).expect("a session");
    let token = token.expect("it was wished for");
    let recalled = |presented: &str| {
        drop(fixture.engine.principal(presented).expect("it is looked up"));
        fixture.engine.without_waiting(|engine| engine.principal(presented)).is_some()
    };
    assert!(recalled(secret.reveal()) && recalled(token.reveal()));
    assert!(!recalled("a wrong key"), "anybody could fill the memory with these");
    assert!(recalled(secret.reveal()) && recalled(token.reveal()));
}
