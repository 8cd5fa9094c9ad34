//! Storage that fails at any step leaves nothing half-done.

use std::cell::RefCell;
use std::sync::Arc;

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    Approval, ChangeSelection, Completeness, Derivation, Goal, NewAttachment, NewDerivedKey,
    NewSession, NewStore, Precondition, Restoration, SessionToken, StoreUpdate, Survivor,
};
use quipu_core::model::{
    Access, Actor, Instructions, KeyKind, Memory, PrincipalName, Reason, Role, StorePolicy, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Fixture, actor, content, fixture_over, name, path};

/// Runs an operation with the fault at its first step, its second, and so on, until it gets
/// through. Before that, each failure must be reported and must have changed nothing.
fn sweep<T>(operation: impl Fn(&Fixture, &Memory) -> Result<T, Error>) {
    sweep_after(|_| (), operation);
}

/// Like [`sweep`], with something that happens before the fault.
fn sweep_after<T>(
    prepare: impl Fn(&Fixture),
    operation: impl Fn(&Fixture, &Memory) -> Result<T, Error>,
) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let fixture = fixture_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = fixture.put("/a/1", "one");
        fixture.put("/a/2", "two");
        fixture.put("/a/2", "deux");
        fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
        prepare(&fixture);
        let before = fingerprint(&fixture);
        faulty.fail_at(step);
        let result = operation(&fixture, &memory);
        if faulty.disarm() {
            assert!(step > 1, "the operation takes no step");
            assert!(result.is_ok());
            assert_ne!(fingerprint(&fixture), before, "the operation does nothing");
            return;
        }
        let error = result.err().expect("a fault must not pass unnoticed");
        assert!(
            matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::EraseIncomplete),
            "{error:?}"
        );
        let has_only_erasing_left = *error.kind() == ErrorKind::EraseIncomplete;
        assert_eq!(fingerprint(&fixture) != before, has_only_erasing_left, "at step {step}");
        assert_eq!(fixture.engine.check().expect("the check runs").problems, []);
    }
}

/// Returns everything that an operation could change.
fn fingerprint(fixture: &Fixture) -> String {
    let changes =
        fixture.engine.changes(quipu_core::backend::Sequence(0), 1000).expect("it is read");
    let stores = fixture.engine.find_store(fixture.workspace, "tests").map(|store| store.name);
    let texts = ["/a/1", "/a/2", "/b/1", "/b/2", "/c"].map(|at| fixture.text(at));
    let keys = fixture.engine.keys(fixture.workspace).expect("they are read");
    let sessions = fixture.engine.sessions(&all_sessions(fixture)).expect("they are read").items;
    let history = stores.is_ok().then(|| fixture.history());
    format!("{changes:?} {stores:?} {texts:?} {keys:?} {sessions:?} {history:?}")
}

pub(crate) fn all_sessions(fixture: &Fixture) -> SessionQuery {
    SessionQuery {
        workspace: fixture.workspace,
        store: None,
        archived: Archived::Show,
        created: Span::default(),
        viewer: None,
        order: Order::NewestFirst,
        after: None,
        limit: 100,
    }
}

#[test]
fn creating() {
    sweep(|fixture, _| fixture.create("/c", "three"));
}

#[test]
fn changing() {
    sweep(|fixture, _| {
        let target = (&path("/a/1"), &content("uno"));
        fixture.engine.put(&actor(), fixture.store, target, Precondition::None)
    });
}

#[test]
fn editing() {
    sweep(|fixture, _| {
        let twice = |_: &_, text: &str| Ok::<_, Error>(text.repeat(2));
        fixture.engine.edit(&actor(), fixture.store, &path("/a/1"), twice)
    });
}

#[test]
fn moving_a_directory() {
    sweep(|fixture, _| fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")));
}

#[test]
fn deleting_a_directory() {
    sweep(|fixture, _| fixture.engine.delete_at(&actor(), fixture.store, &path("/a")));
}

#[test]
fn deleting_a_memory() {
    sweep(|fixture, memory| {
        fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None)
    });
}

#[test]
fn restoring() {
    sweep(|fixture, _| {
        let history = fixture.engine.history(fixture.store, &path("/a/2"), 10)?;
        fixture.engine.restore(&actor(), fixture.store, history[1].id, None)
    });
}

#[test]
fn redacting() {
    sweep(|fixture, _| {
        let history = fixture.engine.history(fixture.store, &path("/a/2"), 10)?;
        fixture.engine.redact(&actor(), fixture.store, &[history[1].id])
    });
}

#[test]
fn creating_a_store() {
    sweep(|fixture, _| {
        let new = NewStore::named(name("new"));
        fixture.engine.create_store(fixture.workspace, &new)
    });
}

#[test]
fn archiving_a_store() {
    sweep(|fixture, _| fixture.engine.archive_store(fixture.store));
}

#[test]
fn erasing_a_store() {
    sweep(|fixture, _| fixture.engine.erase_store(fixture.store));
}

#[test]
fn making_a_key() {
    sweep(|fixture, _| {
        let new = quipu_core::engine::NewKey {
            name: name("ci"),
            role: Role::Admin,
            stores: Some(vec![fixture.store]),
            expires_at: None,
            secret: None,
        };
        fixture.engine.create_key(fixture.workspace, &new)
    });
}

#[test]
fn exchanging_a_key() {
    let new = |fixture: &Fixture, kind| NewDerivedKey {
        kind,
        name: name("ada"),
        role: Role::Admin,
        stores: None,
        expires_at: fixture.engine.now().plus(std::time::Duration::from_mins(1)),
        payload: None,
    };
    let link = RefCell::new(String::new());
    let prepare = |fixture: &Fixture| {
        let owner = Derivation::Owner(fixture.workspace);
        let derived = fixture.engine.derive_key(owner, &new(fixture, KeyKind::Link));
        derived.expect("a link").1.reveal().clone_into(&mut link.borrow_mut());
    };
    sweep_after(prepare, |fixture, _| {
        let issue = |_: &_| Ok(vec![new(fixture, KeyKind::Browser)]);
        fixture.engine.exchange_key(&link.borrow(), KeyKind::Link, issue)
    });
}

#[test]
fn starting_a_session() {
    sweep(|fixture, _| {
        let attachment = NewAttachment {
            store: fixture.store,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let new = NewSession::titled("agent", vec![attachment], SessionToken::Issue);
        fixture.engine.create_session(fixture.workspace, &new)
    });
}

#[test]
fn replacing_a_memory() {
    sweep(|fixture, moved| {
        let target = fixture.engine.memory_at(fixture.store, &path("/a/2"), View::Basic)?;
        fixture.engine.replace(&actor(), fixture.store, (moved.id, target.id), Survivor::Moved)
    });
}

#[test]
fn undoing_a_change() {
    sweep(|fixture, _| {
        let memory = fixture.engine.memory_at(fixture.store, &path("/a/2"), View::Basic)?;
        fixture.engine.undo(&actor(), fixture.store, memory.id, None)
    });
}

#[test]
fn updating_a_store() {
    sweep(|fixture, _| {
        let update = StoreUpdate { name: Some(name("renamed")), ..StoreUpdate::default() };
        fixture.engine.update_store(fixture.store, &update)
    });
}

#[test]
fn deleting_a_store_for_a_while() {
    sweep(|fixture, _| fixture.engine.delete_store(fixture.store));
}

#[test]
fn restoring_a_store() {
    let delete = |fixture: &Fixture| drop(fixture.engine.delete_store(fixture.store).unwrap());
    sweep_after(delete, |fixture, _| {
        fixture.engine.restore_store(fixture.workspace, "tests", Some(&name("back")))
    });
}

#[test]
fn expiring_memories() {
    let expiring = |fixture: &Fixture, _: &Memory| {
        let update = StoreUpdate {
            policy: Some(StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() }),
            ..StoreUpdate::default()
        };
        fixture.engine.update_store(fixture.store, &update)
    };
    sweep(expiring);
    // Pruning is several transactions, so a later one may fail after an earlier one has succeeded;
    // a second run then finishes the work.
    for step in 1..40 {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let fixture = fixture_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = fixture.put("/a", "x");
        expiring(&fixture, &memory).unwrap();
        fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
        faulty.fail_at(step);
        let result = fixture.engine.prune();
        assert_eq!(result.is_ok(), faulty.disarm());
        fixture.engine.prune().unwrap();
        assert!(fixture.engine.memory(fixture.store, memory.id, View::Basic).is_err());
        assert_eq!(fixture.engine.check().unwrap().problems, []);
    }
}

#[test]
fn reverting_changes() {
    let others_move = |fixture: &Fixture| {
        let other = Actor::User(PrincipalName::from_host("bob"));
        let (from, to) = (path("/a/2"), path("/b/2"));
        fixture.engine.rename(&other, fixture.store, &from, &to).unwrap();
    };
    sweep_after(others_move, |fixture, _| {
        let goal =
            Goal::Revert(ChangeSelection { actors: vec![actor()], ..ChangeSelection::default() });
        fixture.engine.carry_out(&actor(), fixture.store, &goal, &approval())
    });
}

#[test]
fn restoring_a_tree() {
    sweep(|fixture, memory| {
        let (at, completeness) = (memory.updated_at, Completeness::Required);
        let goal = Goal::Restore(Restoration { at, path: None, completeness });
        fixture.engine.carry_out(&actor(), fixture.store, &goal, &approval())
    });
}

fn approval() -> Approval {
    Approval { expect: None, reason: Reason::new("a test").unwrap() }
}
