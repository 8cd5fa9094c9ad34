//! What is given up with time.

use std::time::Duration;

use quipu_core::model::{Actor, StoreId, StorePolicy, View};
use quipu_core::settings::Limits;

use crate::support::{Bench, actor, bench, bench_with, content, path};

const DAY: Duration = Duration::from_hours(24);

#[test]
fn versions_are_kept_for_30_days_and_the_newest_10_for_ever() {
    let bench = bench();
    for number in 0..15 {
        bench.put("/a", &number.to_string());
    }
    bench.clock.advance(DAY * 30);
    assert_eq!(bench.engine.prune().unwrap().versions_count, 0);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.engine.prune().unwrap().versions_count, 5);
    assert_eq!(bench.history().len(), 10);
    assert_eq!(bench.text("/a").as_deref(), Some("14"));
}

#[test]
fn versions_of_a_deleted_memory_all_go() {
    let bench = bench();
    bench.put("/a", "1");
    bench.engine.delete_at(&actor(), bench.store, &path("/a")).unwrap();
    bench.clock.advance(DAY * 31);
    assert_eq!(bench.engine.prune().unwrap().versions_count, 2);
    assert_eq!(bench.history(), Vec::<String>::new());
    assert_eq!(bench.engine.check().unwrap().problems, []);
}

#[test]
fn what_a_memory_holds_is_kept_whatever_the_settings_say() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 0, ..Limits::default() };
    let bench = bench_with(limits);
    bench.put("/a", "old");
    bench.put("/a", "new");
    bench.clock.advance(DAY);
    assert_eq!(bench.engine.prune().unwrap().versions_count, 1);
    assert_eq!(bench.text("/a").as_deref(), Some("new"));
    assert_eq!(bench.engine.check().unwrap().problems, []);
}

#[test]
fn the_deletion_of_an_old_memory_can_be_undone_for_30_days() {
    let bench = bench();
    bench.put("/a", "old");
    bench.clock.advance(DAY * 90);
    bench.engine.delete_at(&actor(), bench.store, &path("/a")).unwrap();
    bench.clock.advance(DAY * 30);
    assert_eq!(bench.engine.prune().unwrap().versions_count, 0);
    let history = bench.engine.history(bench.store, &path("/a"), 10).unwrap();
    bench.engine.restore(&actor(), bench.store, history[1].id, None).unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("old"));
}

#[test]
fn an_expiry_after_a_long_time_can_be_undone() {
    let bench = bench();
    let policy = StorePolicy { expire_after_days: Some(60), ..StorePolicy::default() };
    let store = bench.new_store("patient", policy).id;
    bench.engine.create(&actor(), store, &path("/a"), &content("1")).unwrap();
    bench.clock.advance(DAY * 61);
    let pruned = bench.engine.prune().unwrap();
    assert_eq!((pruned.versions_count, pruned.memories_count), (0, 1));
    let history = bench.engine.history(store, &path("/a"), 10).unwrap();
    bench.engine.restore(&actor(), store, history[1].id, None).unwrap();
}

#[test]
fn more_than_one_batch_is_pruned() {
    let bench = bench();
    for number in 0..520 {
        bench.put("/a", &number.to_string());
    }
    bench.clock.advance(DAY * 31);
    assert_eq!(bench.engine.prune().unwrap().versions_count, 510);
}

fn expiring(bench: &Bench) -> StoreId {
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let store = bench.new_store("expiring", policy);
    for at in ["/read", "/written", "/unused"] {
        bench.engine.create(&actor(), store.id, &path(at), &content("1")).unwrap();
    }
    store.id
}

#[test]
fn a_memory_that_nobody_uses_expires_and_can_be_brought_back() {
    let bench = bench();
    let store = expiring(&bench);
    bench.put("/elsewhere", "never expires");
    bench.clock.advance(DAY * 6);
    bench.engine.memory_at(store, &path("/read"), View::Full).unwrap();
    let target = (&path("/written"), &content("2"));
    let none = quipu_core::engine::Precondition::None;
    bench.engine.put(&actor(), store, target, none).unwrap();
    bench.clock.advance(DAY + Duration::from_secs(1));
    let pruned = bench.engine.prune().unwrap();
    assert_eq!((pruned.versions_count, pruned.memories_count), (0, 1));

    let history = bench.engine.history(store, &path("/unused"), 10).unwrap();
    assert_eq!(history[0].actor, Actor::expiry());
    bench.engine.restore(&actor(), store, history[1].id, None).unwrap();
    assert!(bench.engine.memory_at(store, &path("/unused"), View::Full).is_ok());
    assert_eq!(bench.text("/elsewhere").as_deref(), Some("never expires"));
}

#[test]
fn reading_makes_no_version() {
    let bench = bench();
    let store = expiring(&bench);
    let before = bench.engine.newest_sequence().unwrap();
    bench.clock.advance(DAY * 2);
    bench.engine.memory_at(store, &path("/read"), View::Full).unwrap();
    assert_eq!(bench.engine.newest_sequence().unwrap(), before);
}

#[test]
fn memories_of_an_archived_store_expire_too() {
    let bench = bench();
    let store = expiring(&bench);
    bench.engine.archive_store(store).unwrap();
    bench.clock.advance(DAY * 8);
    assert_eq!(bench.engine.prune().unwrap().memories_count, 3);
}
