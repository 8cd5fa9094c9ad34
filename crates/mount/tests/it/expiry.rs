//! What is read through a mount does not expire.

use std::time::Duration;

use quipu_core::engine::StoreUpdate;
use quipu_core::model::StorePolicy;

use crate::support::{Fixture, ME, READ, fixture};

const DAY: Duration = Duration::from_hours(24);

/// Returns a store that deletes what nobody has used for a week, with two files that are known already.
fn expiring() -> Fixture {
    let fixture = fixture();
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    for at in ["/read.md", "/unused.md"] {
        fixture.put(at, "green");
        fixture.follow();
        assert_eq!(fixture.text(at).as_deref(), Some("green"));
    }
    fixture.clock.advance(DAY * 6);
    fixture
}

fn assert_kept(fixture: &Fixture) {
    fixture.clock.advance(DAY * 2);
    fixture.engine.prune().unwrap();
    fixture.follow();
    assert_eq!(fixture.list("/"), ["read.md"]);
}

#[test]
fn reading_a_file_keeps_it_from_expiring() {
    let fixture = expiring();
    assert_eq!(fixture.text("/read.md").as_deref(), Some("green"));
    assert_kept(&fixture);
}

#[test]
fn opening_a_cached_file_keeps_it_from_expiring() {
    let fixture = expiring();
    let found = fixture.lookup("/read.md").unwrap();
    let opened = fixture.tree.open(found.ino, READ, ME).unwrap();
    assert!(opened.is_unchanged, "the kernel reads its own copy");
    fixture.tree.release(opened.handle);
    assert_kept(&fixture);
}
