//! Verifying, rebuilding, erasing, counting, compacting.

use quipu_core::backend::{PendingErasure, Sequence, Usage};
use quipu_core::model::{Redaction, View};

use super::{Fixture, Rows};

/// "Looks for damage … and returns a sentence for each."
pub fn a_sound_backend_has_nothing_to_report(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    fixture.with_memories(1, &[&Rows::memory(&store, 1, "/a", "text")]);
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "Recomputes the `Usage` of every store."
pub fn rebuilding_keeps_the_usage_right(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    fixture.with_memories(1, &[&Rows::memory(&store, 1, "/a", "four")]);
    fixture.backend.rebuild().expect("it rebuilds");
    let usage = fixture.read(|reader| reader.usage(store.id));
    assert_eq!(usage, Usage { memories_count: 1, size_bytes: 4 });
}

/// Erasing touches nothing that a row holds. What files hold is each backend's own test.
pub fn erasing_can_be_repeated_and_keeps_what_is_there(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let first = Rows::memory(&store, 1, "/a", "secret");
    let second = Rows::changed(&first, 2, "/a", "public");
    fixture.with_memories(1, &[&first]);
    fixture.write(|writer| {
        writer.commit(&Rows::commit(2, Some(&first), Some(&second)))?;
        let redaction = Redaction { at: Rows::at(3), by: Rows::actor("ada") };
        writer.redact(store.id, &[(first.version, redaction.clone())])
    });
    for _ in 0..2 {
        fixture.backend.erase().expect("it erases");
        let versions = fixture.read(|reader| reader.versions(store.id, &Rows::all_versions()));
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0].content, second.content);
    }
}

/// "Returns the removals whose text may still be in a file", and "records that erasures are complete.
/// What was removed since stays pending".
pub fn an_erasure_is_pending_until_it_is_done(fixture: &Fixture) {
    let (first, second) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&first, &second]);
    let pending = || {
        let mut pending = fixture.read(|reader| reader.pending_erasures());
        pending.sort_by_key(|it| it.store);
        pending
    };
    let erase = |pending: &[PendingErasure]| {
        fixture.backend.erase().expect("it erases");
        fixture.backend.note_erased(pending).expect("it is noted");
    };
    let stores = || pending().iter().map(|it| it.store).collect::<Vec<_>>();
    assert_eq!(stores(), []);
    let memory = Rows::memory(&first, 1, "/a", "secret");
    let changed = Rows::changed(&memory, 2, "/a", "public");
    fixture.with_memories(1, &[&memory]);
    fixture.write(|writer| {
        writer.commit(&Rows::commit(2, Some(&memory), Some(&changed)))?;
        let redaction = Redaction { at: Rows::at(3), by: Rows::actor("ada") };
        writer.redact(first.id, &[(memory.version, redaction.clone())])
    });
    let before = pending();
    assert_eq!(stores(), [first.id]);
    assert_eq!(before[0].memory, Some(memory.id));
    fixture.write(|writer| writer.remove_store(second.id));
    erase(&before);
    assert_eq!(stores(), [second.id]);
    let (before, again) = (pending(), Redaction { at: Rows::at(5), by: Rows::actor("ada") });
    let third = Rows::changed(&changed, 4, "/a", "later");
    fixture.write(|writer| {
        writer.commit(&Rows::commit(4, Some(&changed), Some(&third)))?;
        writer.redact(first.id, &[(changed.version, again.clone())])
    });
    erase(&before);
    assert_eq!(stores(), [first.id], "what was removed since is still pending");
    erase(&pending());
    assert_eq!(stores(), []);
}

/// "Returns the health and the size of the storage": what is stored, in rows and bytes.
pub fn the_condition_counts_rows_and_bytes(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store, &Rows::store(2)]);
    let long = "text ".repeat(20_000);
    let first = Rows::memory(&store, 1, "/a", &long);
    let second = Rows::changed(&first, 2, "/a", "short");
    fixture.with_memories(1, &[&first]);
    fixture.write(|writer| writer.commit(&Rows::commit(2, Some(&first), Some(&second))));
    // The counts of a handle may be some seconds old, but not those of a new one.
    let condition = fixture.again().condition().expect("it is reported");
    let counts = (condition.stores_count, condition.memories_count, condition.versions_count);
    assert_eq!(counts, (2, 1, 2));
    let size_bytes = condition.database_size_bytes + condition.log_size_bytes;
    assert!(size_bytes >= first.size_bytes, "{size_bytes} bytes hold {}", first.size_bytes);
    assert_eq!(condition.lock, None);
    assert_eq!(condition.writers_waiting_count, 0);
}

/// "Returns the space of removed rows to the system and changes no row."
pub fn compacting_changes_no_row(fixture: &Fixture) {
    let (gone, stays) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&gone, &stays]);
    let memory = Rows::memory(&stays, 2, "/a", "stays");
    fixture.with_memories(1, &[&Rows::memory(&gone, 1, "/a", "goes"), &memory]);
    fixture.write(|writer| writer.remove_store(gone.id));
    let everything = || {
        fixture.read(|reader| {
            let memory = reader.memory(stays.id, memory.id, View::Full)?;
            let versions = reader.versions(stays.id, &Rows::all_versions())?;
            Ok((memory, versions, reader.changes(Sequence(0), 10)?, reader.usage(stays.id)?))
        })
    };
    let before = everything();
    fixture.backend.compact().expect("it compacts");
    assert_eq!(everything(), before);
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}
