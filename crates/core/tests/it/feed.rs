//! The change feed.

use std::time::Duration;

use quipu_core::backend::{Event, Sequence};

use crate::support::{actor, bench, path};

#[test]
fn every_change_is_in_the_feed_in_order_and_without_gaps() {
    let bench = bench();
    let first = bench.put("/a", "1");
    let second = bench.put("/a", "2");
    bench.put("/a", "2");
    bench.engine.redact(&actor(), bench.store, &[first.version]).unwrap();
    bench.engine.archive_store(bench.store).unwrap();
    let deleted = bench.engine.delete_at(&actor(), bench.store, &path("/a")).unwrap();
    bench.engine.delete_store(bench.store).unwrap();
    let changes = bench.engine.changes(Sequence(0), 100).unwrap();
    let events: Vec<_> = changes.iter().map(|change| change.event).collect();
    assert_eq!(
        events,
        [
            Event::StoreCreated,
            Event::Version(first.version),
            Event::Version(second.version),
            Event::Redacted(first.version),
            Event::StoreArchived,
            Event::Version(deleted.versions[0].id),
            Event::StoreDeleted,
        ]
    );
    let numbers: Vec<_> = changes.iter().map(|change| change.sequence.0).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
    assert!(changes.is_sorted_by(|left, right| left.at < right.at));
}

#[test]
fn a_refused_change_is_not_in_the_feed() {
    let bench = bench();
    bench.put("/a", "1");
    let before = bench.engine.newest_sequence().unwrap();
    bench.create("/a", "2").unwrap_err();
    bench.engine.rename(&actor(), bench.store, &path("/x"), &path("/y")).unwrap_err();
    assert_eq!(bench.engine.wait(before, Duration::ZERO).unwrap(), before);
}
