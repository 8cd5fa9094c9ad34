use proptest::prelude::*;
use quipu_core::backend::Sequence;
use quipu_core::model::Timestamp;

use super::super::batch::{Applied, Batch, BatchBuilder};
use super::super::store_rows::{self, Cursor, StoreRow};
use super::super::view::StoreView;
use super::{Fixture, Model, Text, assert_holds, documents, memory, text};

fn batch(put: &[(u32, Text)], removed: &[u32]) -> Batch {
    let mut batch = BatchBuilder::default();
    for (number, text) in put.iter().cloned().collect::<Model>() {
        batch.add(documents(number, &text), number.to_be_bytes().to_vec());
    }
    for number in removed {
        batch.remove(memory(*number));
    }
    batch.finish()
}

fn cursor(sequence: u64) -> Cursor {
    let at = i64::try_from(sequence).unwrap();
    Cursor { sequence: Sequence(sequence), at: Timestamp::from_micros(at) }
}

fn apply(fixture: &Fixture, batch: &Batch, cursors: (Cursor, Cursor), read_at: u64) -> Applied {
    let store = fixture.store;
    let applied =
        fixture.file.write(|connection| batch.apply(connection, store, cursors, Sequence(read_at)));
    applied.unwrap()
}

fn set_row(fixture: &Fixture, change: impl Fn(StoreRow) -> StoreRow) {
    let row = change(fixture.row());
    fixture.file.write(|connection| store_rows::put_store(connection, &row)).unwrap();
}

#[test]
fn a_batch_advances_the_cursor_with_its_memories() {
    let fixture = Fixture::new();
    let tea = batch(&[(1, Text::of("tea"))], &[]);
    assert_eq!(apply(&fixture, &tea, (Cursor::START, cursor(5)), 5), Applied::Done);
    assert_eq!(fixture.row().cursor, cursor(5));
    assert_eq!(fixture.with("tea"), [1]);
    // A batch without changes advances it too, and adds no segment.
    let nothing = batch(&[], &[]);
    assert_eq!(apply(&fixture, &nothing, (cursor(5), cursor(9)), 9), Applied::Done);
    assert_eq!((fixture.row().cursor, fixture.segments().len()), (cursor(9), 1));
}

#[test]
fn a_batch_of_another_place_in_the_feed_is_outdated() {
    let fixture = Fixture::new();
    let tea = batch(&[(1, Text::of("tea"))], &[]);
    for from in [cursor(1), Cursor { at: Timestamp::from_micros(1), ..Cursor::START }] {
        assert_eq!(apply(&fixture, &tea, (from, cursor(5)), 5), Applied::Outdated);
    }
    assert_eq!(fixture.row().cursor, Cursor::START);
    assert_eq!(fixture.segments().len(), 0);
}

/// What was read before a redaction may contain the text; what was read at it or later does not.
#[test]
fn a_batch_read_before_a_redaction_is_outdated() {
    let fixture = Fixture::new();
    set_row(&fixture, |row| StoreRow { purged: Sequence(50), ..row });
    let tea = batch(&[(1, Text::of("tea"))], &[]);
    let cursors = (Cursor::START, cursor(60));
    assert_eq!(apply(&fixture, &tea, cursors, 49), Applied::Outdated);
    assert_eq!(apply(&fixture, &tea, cursors, 50), Applied::Done);
}

#[test]
fn a_batch_of_a_removed_store_is_outdated() {
    let fixture = Fixture::new();
    set_row(&fixture, |row| row.removed());
    let tea = batch(&[(1, Text::of("tea"))], &[]);
    let far = u64::try_from(i64::MAX).unwrap() - 1;
    assert_eq!(apply(&fixture, &tea, (Cursor::START, cursor(5)), far), Applied::Outdated);
    let gone = Fixture { store: super::store_id(9), ..fixture };
    assert_eq!(apply(&gone, &tea, (Cursor::START, cursor(5)), 5), Applied::Outdated);
}

#[test]
fn removing_what_was_never_indexed_is_harmless() {
    let mut fixture = Fixture::new();
    fixture.put(1, "tea");
    fixture.apply(&[], &[1, 2, 3]);
    fixture.apply(&[], &[1]);
    fixture.assert_holds_its_model();
    assert_eq!(fixture.row().totals, super::Totals::default());
}

/// The same memory written over and over: its old documents are dead, in whatever segment they are.
#[test]
fn totals_follow_the_current_text_of_a_memory() {
    let mut fixture = Fixture::new();
    for words in ["a", "a b c d", "", "b b b"] {
        fixture.put(1, words);
        fixture.put(2, "other words here");
        fixture.assert_holds_its_model();
    }
    let dead: usize = fixture.segments().iter().map(|row| row.dead).sum();
    assert_eq!(dead, 6);
}

/// What is written, and what is removed.
type Step = (Vec<(u32, Text)>, Vec<u32>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = prop::collection::vec((0_u32..12, text()), 0..5);
    prop::collection::vec((put, prop::collection::vec(0_u32..12, 0..3)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever was written, the index holds the last state of each memory.
    #[test]
    fn an_index_holds_the_last_state_of_each_memory(steps in steps()) {
        let mut fixture = Fixture::new();
        for (put, removed) in &steps {
            fixture.apply(put, removed);
        }
        fixture.assert_holds_its_model();
    }

    /// A batch that cannot be written is searched as an overlay, and shows the same as if it had
    /// been.
    #[test]
    fn an_overlay_shows_what_applying_would(steps in steps()) {
        let mut fixture = Fixture::new();
        let (last, before) = steps.split_last().unwrap();
        for (put, removed) in before {
            fixture.apply(put, removed);
        }
        let put: Model = last.0.iter().cloned().collect();
        let removed: Vec<_> = last.1.iter().copied().filter(|it| !put.contains_key(it)).collect();
        let mut model = fixture.model.clone();
        for number in &removed {
            drop(model.remove(number));
        }
        model.extend(put);
        let overlay = batch(&last.0, &removed).overlay(Timestamp::from_micros(77));
        let shown = fixture.file.read(|snapshot| {
            let row = store_rows::store(snapshot.connection, fixture.store)?;
            let view = StoreView::new(snapshot, fixture.store, row.as_ref(), Some(&overlay))?;
            assert_eq!(view.reached, Timestamp::from_micros(77));
            assert_holds(&view, &model);
            // Without a file there is nothing below the overlay.
            let alone = StoreView::new(snapshot, fixture.store, None, Some(&overlay))?;
            let only: Model = last.0.iter().cloned().collect();
            assert_holds(&alone, &only);
            Ok(())
        });
        shown.unwrap();
        // The file is untouched.
        fixture.assert_holds_its_model();
        fixture.apply(&last.0, &removed);
        prop_assert_eq!(&fixture.model, &model);
        fixture.assert_holds_its_model();
    }
}
