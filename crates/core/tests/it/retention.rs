//! Retention.

use std::time::Duration;

use quipu_core::model::{Actor, StoreId, StorePolicy, View};
use quipu_core::settings::Limits;

use crate::support::{Fixture, actor, content, fixture, fixture_with, path};

const DAY: Duration = Duration::from_hours(24);

#[test]
fn versions_are_kept_for_30_days_and_the_newest_10_forever() {
    let fixture = fixture();
    for number in 0..15 {
        fixture.put("/a", &number.to_string());
    }
    fixture.clock.advance(DAY * 30);
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 0);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 5);
    assert_eq!(fixture.history().len(), 10);
    assert_eq!(fixture.text("/a").as_deref(), Some("14"));
}

#[test]
fn versions_of_a_deleted_memory_all_go() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.engine.delete_at(&actor(), fixture.store, &path("/a")).unwrap();
    fixture.clock.advance(DAY * 31);
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 2);
    assert_eq!(fixture.history(), Vec::<String>::new());
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn the_current_version_is_kept_whatever_the_settings() {
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 0, ..Limits::default() };
    let fixture = fixture_with(limits);
    fixture.put("/a", "old");
    fixture.put("/a", "new");
    fixture.clock.advance(DAY);
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 1);
    assert_eq!(fixture.text("/a").as_deref(), Some("new"));
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn the_deletion_of_an_old_memory_can_be_undone_for_30_days() {
    let fixture = fixture();
    fixture.put("/a", "old");
    fixture.clock.advance(DAY * 90);
    fixture.engine.delete_at(&actor(), fixture.store, &path("/a")).unwrap();
    fixture.clock.advance(DAY * 30);
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 0);
    let history = fixture.engine.history(fixture.store, &path("/a"), 10).unwrap();
    fixture.engine.restore(&actor(), fixture.store, history[1].id, None).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("old"));
}

#[test]
fn an_expiry_after_a_long_time_can_be_undone() {
    let fixture = fixture();
    let policy = StorePolicy { expire_after_days: Some(60), ..StorePolicy::default() };
    let store = fixture.new_store("patient", policy).id;
    fixture.engine.create(&actor(), store, &path("/a"), &content("1")).unwrap();
    fixture.clock.advance(DAY * 61);
    let pruned = fixture.engine.prune().unwrap();
    assert_eq!((pruned.versions_count, pruned.memories_count), (0, 1));
    let history = fixture.engine.history(store, &path("/a"), 10).unwrap();
    fixture.engine.restore(&actor(), store, history[1].id, None).unwrap();
}

#[test]
fn more_than_one_batch_is_pruned() {
    let fixture = fixture();
    for number in 0..520 {
        fixture.put("/a", &number.to_string());
    }
    fixture.clock.advance(DAY * 31);
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 510);
}

fn expiring(fixture: &Fixture) -> StoreId {
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let store = fixture.new_store("expiring", policy);
    for at in ["/read", "/written", "/unused"] {
        fixture.engine.create(&actor(), store.id, &path(at), &content("1")).unwrap();
    }
    store.id
}

#[test]
fn an_unused_memory_expires_and_can_be_restored() {
    let fixture = fixture();
    let store = expiring(&fixture);
    fixture.put("/elsewhere", "never expires");
    fixture.clock.advance(DAY * 6);
    fixture.engine.memory_at(store, &path("/read"), View::Full).unwrap();
    let target = (&path("/written"), &content("2"));
    let none = quipu_core::engine::Precondition::None;
    fixture.engine.put(&actor(), store, target, none).unwrap();
    fixture.clock.advance(DAY + Duration::from_secs(1));
    let pruned = fixture.engine.prune().unwrap();
    assert_eq!((pruned.versions_count, pruned.memories_count), (0, 1));

    let history = fixture.engine.history(store, &path("/unused"), 10).unwrap();
    assert_eq!(history[0].actor, Actor::expiry());
    fixture.engine.restore(&actor(), store, history[1].id, None).unwrap();
    assert!(fixture.engine.memory_at(store, &path("/unused"), View::Full).is_ok());
    assert_eq!(fixture.text("/elsewhere").as_deref(), Some("never expires"));
}

#[test]
fn reading_makes_no_version() {
    let fixture = fixture();
    let store = expiring(&fixture);
    let before = fixture.engine.newest_sequence().unwrap();
    fixture.clock.advance(DAY * 2);
    fixture.engine.memory_at(store, &path("/read"), View::Full).unwrap();
    assert_eq!(fixture.engine.newest_sequence().unwrap(), before);
}

#[test]
fn memories_of_an_archived_store_expire_too() {
    let fixture = fixture();
    let store = expiring(&fixture);
    fixture.engine.archive_store(store).unwrap();
    fixture.clock.advance(DAY * 8);
    assert_eq!(fixture.engine.prune().unwrap().memories_count, 3);
}
