//! Verifying, rebuilding, erasing.

use quipu_core::backend::Usage;
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
