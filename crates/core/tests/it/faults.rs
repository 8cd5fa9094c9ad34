//! Storage that fails at any step leaves nothing half-done.

use std::sync::Arc;

use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Memory, StorePolicy, View};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Bench, actor, bench_over, content, name, path};

/// Runs an operation with the fault at its first step, its second, and so on, until it gets
/// through. Before that, each failure must be told and must have changed nothing.
fn sweep<T>(operation: impl Fn(&Bench, &Memory) -> Result<T, Error>) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let bench = bench_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = bench.put("/a/1", "one");
        bench.put("/a/2", "two");
        bench.put("/a/2", "deux");
        bench.clock.advance(std::time::Duration::from_hours(24 * 40));
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
    let history = stores.is_ok().then(|| bench.history());
    format!("{changes:?} {stores:?} {texts:?} {keys:?} {history:?}")
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
fn deleting_a_store() {
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
fn expiring_memories() {
    let expiring = |bench: &Bench, _: &Memory| {
        let update = quipu_core::engine::StoreUpdate {
            policy: Some(StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() }),
            ..quipu_core::engine::StoreUpdate::default()
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
