//! What is read of the change feed and of those who follow it.

use quipu_core::backend::{Change, Commit, Event, PruneRule, Sequence};
use quipu_core::model::Timestamp;

use super::{Fixture, Rows};

/// "Returns the cursor that was put under a name", the last one.
pub fn cursors_are_kept_under_their_names(fixture: &Fixture) {
    let cursor = |name: &str| fixture.read(|reader| reader.cursor(name));
    assert_eq!(cursor("a"), None);
    for number in [7, 3] {
        fixture.write(|writer| writer.put_cursor("a", Sequence(number)));
        assert_eq!((cursor("a"), cursor("b")), (Some(Sequence(number)), None));
    }
}

/// "Returns at most `limit` changes after a sequence, in order."
pub fn changes_come_in_order_after_a_sequence(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let memory = Rows::memory(&store, 2, "/a", "text");
    let events = [
        Event::StoreCreated,
        Event::Version(memory.version),
        Event::Redacted(memory.version),
        Event::StoreUpdated,
        Event::StoreArchived,
        Event::StoreDeleted,
        Event::Restarted,
    ];
    let changes: Vec<Change> =
        (1..).zip(events).map(|(number, event)| Rows::change(number, &store, event)).collect();
    fixture.write(|writer| changes.iter().try_for_each(|change| writer.record(change)));
    fixture.read(|reader| {
        assert_eq!(reader.changes(Sequence(0), 100)?, changes);
        assert_eq!(reader.changes(Sequence(2), 2)?, changes[2..4]);
        assert_eq!(reader.changes(Sequence(7), 2)?, []);
        assert_eq!(reader.newest_change()?, (Sequence(7), Rows::at(7)));
        // "Changes that have removed text, in order: redactions and deletions of stores."
        let removals = [changes[2].clone(), changes[5].clone()];
        assert_eq!(reader.removals(Sequence(0), 100)?, removals);
        assert_eq!(reader.removals(Sequence(0), 1)?, removals[..1]);
        assert_eq!(reader.removals(Sequence(3), 100)?, removals[1..]);
        Ok(())
    });
}

/// "The first change of its transaction: itself, or an earlier one from which on all belong together."
pub fn a_change_is_read_back_with_its_transaction(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let transaction = Sequence(2);
    let memory = Rows::memory(&store, 3, "/a", "text");
    fixture.write(|writer| {
        writer.record(&Rows::change(1, &store, Event::StoreCreated))?;
        writer.record(&Rows::change(2, &store, Event::StoreUpdated))?;
        let created = Rows::commit(3, None, Some(&memory));
        writer.commit(&Commit { transaction, ..created })?;
        let archived = Rows::change(4, &store, Event::StoreArchived);
        writer.record(&Change { transaction, ..archived })
    });
    fixture.read(|reader| {
        let changes = reader.changes(Sequence(0), 100)?;
        let transactions: Vec<_> = changes.iter().map(|change| change.transaction.0).collect();
        assert_eq!(transactions, [1, 2, 2, 2]);
        Ok(())
    });
}

/// "The sequence is the one after the newest change. The moment is `now`, or the next one after the
/// newest change if that is later".
pub fn stamps_follow_the_newest_change(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let stamp = |now| {
        let mut stamp = None;
        fixture.write(|writer| {
            stamp = Some(writer.next_stamp(now)?);
            Ok(())
        });
        stamp.expect("the write has run")
    };
    let first = stamp(Rows::at(3));
    assert_eq!((first.sequence, first.at, first.previous), (Sequence(1), Rows::at(3), None));
    fixture.with_memories(5, &[&Rows::memory(&store, 5, "/a", "text")]);
    let next = stamp(Rows::at(9));
    assert_eq!((next.sequence, next.at), (Sequence(6), Rows::at(9)));
    assert_eq!(next.previous, Some(Rows::at(5)));
    for early in [Rows::at(5), Rows::at(2)] {
        assert_eq!(stamp(early).at, Rows::at(5).next(), "moments never repeat and never go back");
    }
}

/// "Returns the sequence and the moment of the oldest change that is still in the feed", and "when a
/// memory of a store last changed".
pub fn the_oldest_change_and_the_last_of_a_store_are_known(fixture: &Fixture) {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    assert_eq!(fixture.read(|reader| reader.oldest_change()), None);
    let changed_at = |id| fixture.read(|reader| reader.changed_at(id));
    assert_eq!(changed_at(store.id), Timestamp::MIN);
    let memory = Rows::memory(&store, 1, "/a", "text");
    fixture.with_memories(1, &[&memory]);
    fixture.write(|writer| {
        let changed = Rows::changed(&memory, 2, "/a", "more");
        writer.commit(&Rows::commit(2, Some(&memory), Some(&changed)))
    });
    assert_eq!(fixture.read(|reader| reader.oldest_change()), Some((Sequence(1), Rows::at(1))));
    assert_eq!((changed_at(store.id), changed_at(other.id)), (Rows::at(2), Timestamp::MIN));
    let rule = PruneRule { before: Rows::at(2), keep_newest: 1 };
    fixture.prune(&rule, 10);
    assert_eq!(fixture.read(|reader| reader.oldest_change()), Some((Sequence(2), Rows::at(2))));
    assert_eq!(changed_at(store.id), Rows::at(2));
}
