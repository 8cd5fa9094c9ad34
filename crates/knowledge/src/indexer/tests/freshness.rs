use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::model::Timestamp;

use super::super::freshness::{Feed, Goal, Relation};
use crate::fixture::{Fixture, new_store, put};
use crate::index::Cursor;

fn feed(fixture: &Fixture) -> Feed {
    fixture.knowledge.engine.read(|reader| Feed::read(reader)).unwrap()
}

fn relation(fixture: &Fixture, cursor: Cursor) -> Relation {
    let feed = feed(fixture);
    fixture.knowledge.engine.read(|reader| feed.relation(reader, cursor)).unwrap()
}

/// Returns the cursor of each change so far.
fn cursors(fixture: &Fixture) -> Vec<Cursor> {
    let changes = fixture.knowledge.engine.changes(Sequence(0), 1_000).unwrap();
    changes.items.iter().map(|it| Cursor { sequence: it.sequence, at: it.at }).collect()
}

/// Removes old changes from the feed.
fn prune(fixture: &Fixture) {
    fixture.clock.advance(Duration::from_hours(24 * 400));
    put(&fixture.knowledge, new_store(&fixture.knowledge, "later"), "/x.md", "x");
    fixture.knowledge.prune().unwrap();
}

#[test]
fn every_change_of_the_feed_is_a_known_place() {
    let fixture = Fixture::new();
    (0..5).for_each(|number| drop(fixture.put(&format!("/{number}.md"), "tea")));
    let all = cursors(&fixture);
    assert!(all.len() >= 5);
    for cursor in &all {
        assert_eq!(relation(&fixture, *cursor), Relation::Known, "{cursor:?}");
    }
    assert_eq!(feed(&fixture).newest(), *all.last().unwrap());
    assert_eq!(relation(&fixture, Cursor::START), Relation::Known, "nothing was pruned");
}

/// After a backup is restored, the same sequences are other changes.
#[test]
fn a_place_with_another_time_is_unknown() {
    let fixture = Fixture::new();
    (0..3).for_each(|number| drop(fixture.put(&format!("/{number}.md"), "tea")));
    for cursor in cursors(&fixture) {
        let other = Cursor { at: cursor.at.next(), ..cursor };
        assert_eq!(relation(&fixture, other), Relation::Unknown, "{cursor:?}");
    }
}

#[test]
fn a_place_that_is_yet_to_come_is_unknown() {
    let fixture = Fixture::new();
    let newest = feed(&fixture).newest();
    for ahead in [1, 2, 1_000, u64::MAX / 4] {
        let cursor = Cursor { sequence: Sequence(newest.sequence.0 + ahead), ..newest };
        assert_eq!(relation(&fixture, cursor), Relation::Unknown, "{ahead}");
    }
}

/// What followed a pruned change may have been pruned with it.
#[test]
fn a_place_before_the_oldest_change_is_unknown() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let before = cursors(&fixture);
    prune(&fixture);
    let left = cursors(&fixture);
    assert!(left[0].sequence > before[0].sequence, "something was pruned");
    for cursor in before.iter().filter(|it| it.sequence < left[0].sequence) {
        assert_eq!(relation(&fixture, *cursor), Relation::Unknown);
    }
    assert_eq!(relation(&fixture, Cursor::START), Relation::Unknown);
    for cursor in left {
        assert_eq!(relation(&fixture, cursor), Relation::Known);
    }
}

#[test]
fn a_goal_is_reached_at_the_time_of_the_last_change() {
    let at = |micros| Timestamp::from_micros(micros);
    let goal = Goal { changed_at: at(100) };
    let place = |micros| Cursor { sequence: Sequence(7), at: at(micros) };
    assert!(!goal.is_reached(place(99), Relation::Known));
    assert!(goal.is_reached(place(100), Relation::Known));
    assert!(goal.is_reached(place(101), Relation::Known));
    assert!(!goal.is_reached(place(101), Relation::Unknown), "it may be of another database");
}

/// Writing to one store leaves the index of another up to date.
#[test]
fn a_change_of_another_store_does_not_make_an_index_old() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    fixture.find("tea");
    let indexer = &fixture.knowledge.indexer;
    let cursor = indexer.cursor(fixture.store).unwrap();
    put(&fixture.knowledge, new_store(&fixture.knowledge, "other"), "/x.md", "x");
    assert!(indexer.is_reached(fixture.store).unwrap());
    fixture.find("tea");
    assert_eq!(indexer.cursor(fixture.store).unwrap(), cursor, "nothing was written for nothing");
    fixture.put("/b.md", "tea");
    assert!(!indexer.is_reached(fixture.store).unwrap());
}
