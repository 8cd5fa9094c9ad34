//! Storage that fails at any step leaves nothing half-done.

use std::sync::Arc;

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::{
    NewAttachment, NewSession, NewStore, Precondition, StoreUpdate, Survivor, TokenWish,
};
use quipu_core::model::{Access, Instructions, Memory, StorePolicy, View};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Bench, actor, bench_over, content, name, path};

/// Runs an operation with the fault at its first step, its second, and so on, until it gets
/// through. Before that, each failure must be reported and must have changed nothing.
fn sweep<T>(operation: impl Fn(&Bench, &Memory) -> Result<T, Error>) {
    sweep_after(|_| (), operation);
}

/// Like [`sweep`], with something that happens before the fault.
fn sweep_after<T>(
    prepare: impl Fn(&Bench),
    operation: impl Fn(&Bench, &Memory) -> Result<T, Error>,
) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let bench = bench_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = bench.put("/a/1", "one");
        bench.put("/a/2", "two");
        bench.put("/a/2", "deux");
        bench.clock.advance(std::time::Duration::from_hours(24 * 40));
        prepare(&bench);
        let before = fingerprint(&bench);
        faulty.fail_at(step);
        let result = operation(&bench, &memory);
        if faulty.disarm() {
            assert!(step > 1, "the operation takes no step");
            assert!(result.is_ok());
            assert_ne!(fingerprint(&bench), before, "the operation does nothing");
            return;
        }
        let error = result.err().expect("a fault must not pass unnoticed");
        assert!(
            matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::EraseIncomplete),
            "{error:?}"
        );
        let has_only_erasing_left = *error.kind() == ErrorKind::EraseIncomplete;
        assert_eq!(fingerprint(&bench) != before, has_only_erasing_left, "at step {step}");
        assert_eq!(bench.engine.check().expect("the check runs").problems, []);
    }
}

/// Returns everything that an operation could change.
fn fingerprint(bench: &Bench) -> String {
    let changes = bench.engine.changes(quipu_core::backend::Sequence(0), 1000).expect("it is read");
    let stores = bench.engine.find_store(bench.workspace, "tests").map(|store| store.name);
    let texts = ["/a/1", "/a/2", "/b/1", "/b/2", "/c"].map(|at| bench.text(at));
    let keys = bench.engine.keys(bench.workspace).expect("they are read");
    let sessions = bench.engine.sessions(&all_sessions(bench)).expect("they are read").items;
    let history = stores.is_ok().then(|| bench.history());
    format!("{changes:?} {stores:?} {texts:?} {keys:?} {sessions:?} {history:?}")
}

fn all_sessions(bench: &Bench) -> SessionQuery {
    SessionQuery {
        workspace: bench.workspace,
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
    sweep(|bench, _| bench.create("/c", "three"));
}

#[test]
fn changing() {
    sweep(|bench, _| {
        let target = (&path("/a/1"), &content("uno"));
        bench.engine.put(&actor(), bench.store, target, Precondition::None)
    });
}

#[test]
fn editing() {
    sweep(|bench, _| {
        let twice = |_: &_, text: &str| Ok::<_, Error>(text.repeat(2));
        bench.engine.edit(&actor(), bench.store, &path("/a/1"), twice)
    });
}

#[test]
fn moving_a_directory() {
    sweep(|bench, _| bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")));
}

#[test]
fn deleting_a_directory() {
    sweep(|bench, _| bench.engine.delete_at(&actor(), bench.store, &path("/a")));
}

#[test]
fn deleting_a_memory() {
    sweep(|bench, memory| {
        bench.engine.delete(&actor(), bench.store, memory.id, Precondition::None)
    });
}

#[test]
fn restoring() {
    sweep(|bench, _| {
        let history = bench.engine.history(bench.store, &path("/a/2"), 10)?;
        bench.engine.restore(&actor(), bench.store, history[1].id, None)
    });
}

#[test]
fn redacting() {
    sweep(|bench, _| {
        let history = bench.engine.history(bench.store, &path("/a/2"), 10)?;
        bench.engine.redact(&actor(), bench.store, &[history[1].id])
    });
}

#[test]
fn creating_a_store() {
    sweep(|bench, _| {
        let new = NewStore::named(name("new"));
        bench.engine.create_store(bench.workspace, &new)
    });
}

#[test]
fn archiving_a_store() {
    sweep(|bench, _| bench.engine.archive_store(bench.store));
}

#[test]
fn erasing_a_store() {
    sweep(|bench, _| bench.engine.erase_store(bench.store));
}

#[test]
fn making_a_key() {
    sweep(|bench, _| {
        let new = quipu_core::engine::NewKey {
            name: name("ci"),
            role: quipu_core::model::Role::Admin,
            stores: Some(vec![bench.store]),
            expires_at: None,
            secret: None,
        };
        bench.engine.create_key(bench.workspace, &new)
    });
}

#[test]
fn starting_a_session() {
    sweep(|bench, _| {
        let attachment = NewAttachment {
            store: bench.store,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let new = NewSession::titled("agent", vec![attachment], TokenWish::Issue);
        bench.engine.create_session(bench.workspace, &new)
    });
}

#[test]
fn replacing_a_memory() {
    sweep(|bench, moved| {
        let target = bench.engine.memory_at(bench.store, &path("/a/2"), View::Basic)?;
        bench.engine.replace(&actor(), bench.store, (moved.id, target.id), Survivor::Moved)
    });
}

#[test]
fn undoing_a_change() {
    sweep(|bench, _| {
        let memory = bench.engine.memory_at(bench.store, &path("/a/2"), View::Basic)?;
        bench.engine.undo(&actor(), bench.store, memory.id, None)
    });
}

#[test]
fn updating_a_store() {
    sweep(|bench, _| {
        let update = StoreUpdate { name: Some(name("renamed")), ..StoreUpdate::default() };
        bench.engine.update_store(bench.store, &update)
    });
}

#[test]
fn deleting_a_store_for_a_while() {
    sweep(|bench, _| bench.engine.delete_store(bench.store));
}

#[test]
fn restoring_a_store() {
    let delete = |bench: &Bench| drop(bench.engine.delete_store(bench.store).unwrap());
    sweep_after(delete, |bench, _| {
        bench.engine.restore_store(bench.workspace, "tests", Some(&name("back")))
    });
}

#[test]
fn expiring_memories() {
    let expiring = |bench: &Bench, _: &Memory| {
        let update = StoreUpdate {
            policy: Some(StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() }),
            ..StoreUpdate::default()
        };
        bench.engine.update_store(bench.store, &update)
    };
    sweep(expiring);
    // Pruning is several transactions, so a later one may fail after an earlier one has succeeded;
    // a second run then finishes the work.
    for step in 1..40 {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let bench = bench_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = bench.put("/a", "x");
        expiring(&bench, &memory).unwrap();
        bench.clock.advance(std::time::Duration::from_hours(24 * 40));
        faulty.fail_at(step);
        let result = bench.engine.prune();
        assert_eq!(result.is_ok(), faulty.disarm());
        bench.engine.prune().unwrap();
        assert!(bench.engine.memory(bench.store, memory.id, View::Basic).is_err());
        assert_eq!(bench.engine.check().unwrap().problems, []);
    }
}
