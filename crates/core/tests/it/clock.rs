//! Clocks that jump.

use std::time::Duration;

use quipu_core::engine::Precondition;
use quipu_core::settings::Limits;
use quipu_core::{Clock as _, ErrorKind};

use crate::support::{actor, content, fixture, fixture_with, kind, path};

const DAY: Duration = Duration::from_hours(24);

/// One start with a clock far ahead dated everything after it into the future.
#[test]
fn a_clock_far_ahead_is_refused_and_changes_nothing() {
    let fixture = fixture();
    let before = fixture.put("/a", "x");
    let right = fixture.clock.now();
    fixture.clock.advance(3650 * DAY);
    let target = (&path("/a"), &content("dated into the future"));
    let refused = fixture.engine.put(&actor(), fixture.store, target, Precondition::None);
    assert_eq!(kind(refused), ErrorKind::StorageUnavailable);
    fixture.clock.set(right);
    let after = fixture.put("/a", "y");
    assert!(after.updated_at < before.updated_at.plus(DAY));
}

#[test]
fn a_year_without_a_change_is_plausible() {
    let fixture = fixture();
    fixture.put("/a", "x");
    fixture.clock.advance(365 * DAY);
    fixture.put("/a", "y");
}

#[test]
fn the_limit_of_the_clock_is_configurable() {
    let fixture = fixture_with(Limits { clock_ahead_max: 10_000 * DAY, ..Limits::default() });
    fixture.put("/a", "x");
    fixture.clock.advance(3650 * DAY);
    fixture.put("/a", "y");
}

#[test]
fn a_gap_since_the_newest_change_is_reported() {
    let fixture = fixture();
    fixture.put("/a", "x");
    fixture.clock.advance(DAY / 2);
    assert_eq!(fixture.engine.clock_gap().unwrap(), None);
    fixture.clock.advance(DAY);
    assert!(fixture.engine.clock_gap().unwrap().is_some_and(|gap| gap > DAY));
    fixture.put("/a", "y");
    assert_eq!(fixture.engine.clock_gap().unwrap(), None);
}
