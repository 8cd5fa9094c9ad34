//! Verifying, rebuilding, erasing.

use quipu_core::backend::{PendingErasure, Usage};
use quipu_core::model::Redaction;

use super::{Fixture, Rows};

/// "Looks for damage … and returns a sentence for each."
pub fn a_sound_backend_has_nothing_to_report(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    fixture.with_memories(1, &[&Rows::memory(&store, 1, "/a", "text")]);
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "Computes every derived row again."
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
        writer.redact(store.id, first.version, &redaction)
    });
    for _ in 0..2 {
        fixture.backend.erase().expect("it erases");
        let versions = fixture.read(|reader| reader.versions(store.id, &Rows::all_versions()));
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0].content, second.content);
    }
}

/// "Returns of what text was removed that may still be in a file", and "notes that erasures are done.
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
        writer.redact(first.id, memory.version, &redaction)
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
        writer.redact(first.id, changed.version, &again)
    });
    erase(&before);
    assert_eq!(stores(), [first.id], "what was removed since is still pending");
    erase(&pending());
    assert_eq!(stores(), []);
}
