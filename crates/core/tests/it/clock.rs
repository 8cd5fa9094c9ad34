//! Clocks that jump.

use std::time::Duration;

use quipu_core::engine::Precondition;
use quipu_core::settings::Limits;
use quipu_core::{Clock as _, ErrorKind};

use crate::support::{actor, bench, bench_with, content, kind, path};

const DAY: Duration = Duration::from_hours(24);

/// One start with a clock far ahead dated everything after it into the future.
#[test]
fn a_clock_far_ahead_is_refused_and_changes_nothing() {
    let bench = bench();
    let before = bench.put("/a", "x");
    let right = bench.clock.now();
    bench.clock.advance(3650 * DAY);
    let target = (&path("/a"), &content("dated into the future"));
    let refused = bench.engine.put(&actor(), bench.store, target, Precondition::None);
    assert_eq!(kind(refused), ErrorKind::StorageUnavailable);
    bench.clock.set(right);
    let after = bench.put("/a", "y");
    assert!(after.updated_at < before.updated_at.plus(DAY));
}

#[test]
fn a_year_without_a_change_is_plausible() {
    let bench = bench();
    bench.put("/a", "x");
    bench.clock.advance(365 * DAY);
    bench.put("/a", "y");
}

#[test]
fn a_longer_time_can_be_allowed() {
    let bench = bench_with(Limits { clock_ahead_max: 10_000 * DAY, ..Limits::default() });
    bench.put("/a", "x");
    bench.clock.advance(3650 * DAY);
    bench.put("/a", "y");
}

#[test]
fn a_gap_since_the_newest_change_is_known() {
    let bench = bench();
    bench.put("/a", "x");
    bench.clock.advance(DAY / 2);
    assert_eq!(bench.engine.clock_gap().unwrap(), None);
    bench.clock.advance(DAY);
    assert!(bench.engine.clock_gap().unwrap().is_some_and(|gap| gap > DAY));
    bench.put("/a", "y");
    assert_eq!(bench.engine.clock_gap().unwrap(), None);
}
