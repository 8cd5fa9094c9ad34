//! What a store held at a moment, and how far back that is known.

use quipu_core::backend::PruneRule;
use quipu_core::model::{Redaction, Store, Timestamp, Version, View};

use super::{Fixture, Rows};

/// Two memories: one is written, moved and deleted, the other one is written twice. Moments count from 1.
fn with_history(fixture: &Fixture) -> Store {
    let (store, other) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store, &other]);
    let moved = Rows::memory(&store, 1, "/b", "one");
    let moved_then = Rows::changed(&moved, 3, "/c", "one");
    let kept = Rows::memory(&store, 2, "/a", "two");
    let kept_then = Rows::changed(&kept, 5, "/a", "three");
    fixture.write(|writer| {
        writer.commit(&Rows::commit(1, None, Some(&moved)))?;
        writer.commit(&Rows::commit(2, None, Some(&kept)))?;
        writer.commit(&Rows::commit(3, Some(&moved), Some(&moved_then)))?;
        writer.commit(&Rows::commit(4, Some(&moved_then), None))?;
        writer.commit(&Rows::commit(5, Some(&kept), Some(&kept_then)))?;
        writer.commit(&Rows::commit(6, None, Some(&Rows::memory(&other, 6, "/a", "other"))))
    });
    store
}

fn at(fixture: &Fixture, store: &Store, number: u64, view: View) -> Vec<Version> {
    fixture.read(|reader| reader.versions_at(store.id, Rows::moment(number), view))
}

/// "Returns what a store held at a moment: of each memory the newest version that was made by then,
/// unless that is a deletion. They come in byte order of their paths."
pub fn the_past_has_the_newest_version_of_each_memory(fixture: &Fixture) {
    let store = with_history(fixture);
    let held = |number| {
        let versions = at(fixture, &store, number, View::Full);
        let line = |version: &Version| {
            let path = version.path.as_ref().expect("it is not redacted");
            format!("{path} {}", version.content.as_ref().expect("it has a text").as_str())
        };
        versions.iter().map(line).collect::<Vec<_>>().join(", ")
    };
    let moments: Vec<_> = (0..8).map(held).collect();
    assert_eq!(
        moments,
        [
            "",
            "/b one",
            "/a two, /b one",
            "/a two, /c one",
            "/a two",
            "/a three",
            "/a three",
            "/a three"
        ]
    );
    let before = fixture.read(|reader| reader.versions_at(store.id, Timestamp::MIN, View::Full));
    assert_eq!(before, []);
    assert!(at(fixture, &store, 3, View::Basic).iter().all(|version| version.content.is_none()));
    let memories = Rows::memory(&store, 9, "/b", "back");
    let restored =
        quipu_core::model::Memory { id: at(fixture, &store, 1, View::Basic)[0].memory, ..memories };
    fixture.write(|writer| writer.commit(&Rows::commit(9, None, Some(&restored))));
    assert_eq!(held(3), "/a two, /c one");
    assert_eq!(held(8), "/a three");
    assert_eq!(held(9), "/a three, /b back");
}

/// "Redacted ones, which have no path, come first."
pub fn redacted_versions_are_part_of_the_past(fixture: &Fixture) {
    let store = with_history(fixture);
    let redacted = at(fixture, &store, 2, View::Basic)[1].id;
    fixture.write(|writer| {
        let redaction = Redaction { at: Rows::at(9), by: Rows::actor("ada") };
        writer.redact(store.id, &[(redacted, redaction.clone())])
    });
    let past = at(fixture, &store, 2, View::Full);
    assert_eq!(past.iter().map(|it| it.path.is_some()).collect::<Vec<_>>(), [false, true]);
    assert_eq!(past[0].id, redacted);
    assert!(past[0].redaction.is_some());
    assert_eq!(at(fixture, &store, 3, View::Full).len(), 2);
}

/// "Returns the moment from which on the history of a store is complete; `None` if no version of it was
/// ever pruned."
pub fn pruning_raises_the_horizon(fixture: &Fixture) {
    let store = with_history(fixture);
    let horizon = || fixture.read(|reader| reader.horizon(store.id));
    let prune = |before| {
        let rule = PruneRule { before: Rows::moment(before), keep_newest: 1 };
        fixture.prune(&rule, 100);
    };
    assert_eq!(horizon(), None);
    prune(1);
    assert_eq!(horizon(), None);
    // The first version of the moved memory is replaced at 3.
    prune(2);
    assert_eq!(horizon(), Some(Rows::moment(3)));
    assert_eq!(at(fixture, &store, 3, View::Basic).len(), 2);
    // Everything of the deleted memory, and the first version of the other one, which is replaced at 5.
    prune(9);
    assert_eq!(horizon(), Some(Rows::moment(5)));
    assert_eq!(at(fixture, &store, 5, View::Basic).len(), 1);
    let other = fixture.read(|reader| reader.horizon(Rows::store(2).id));
    assert_eq!(other, None);
    fixture.write(|writer| writer.remove_store(store.id));
    assert_eq!(horizon(), None);
}
