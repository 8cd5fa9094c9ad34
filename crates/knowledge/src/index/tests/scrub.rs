use proptest::prelude::*;

use super::super::block::BlockReader;
use super::super::rows::blocks_after;
use super::super::upkeep::step;
use super::{Fixture, Text, store_id};

/// A store of `count` notes with a word of its own each, in one segment.
fn large(count: u32) -> Fixture {
    let mut fixture = Fixture::new();
    let notes: Vec<_> = (0..count)
        .map(|number| {
            let fact = vec![vec![format!("fact{number}x"), "common".to_owned()]];
            let text = Text::of(&format!("all secret{number}x shared{}", number % 5));
            (number, Text { observations: fact.clone(), relations: fact, ..text })
        })
        .collect();
    fixture.apply(&notes, &[]);
    fixture
}

/// Overwrites bytes that belong to no row, as erasing does after scrubbing, and empties the log.
fn clear_unused(fixture: &Fixture) {
    let cleared = fixture.file.with_writable(|connection| {
        connection.execute_batch("VACUUM")?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    });
    cleared.unwrap();
}

/// Returns whether any term of the index, live or dead, contains a text. Terms share the beginning
/// of the previous one, so that the bytes of the file alone prove little.
fn has_term(fixture: &Fixture, text: &str) -> bool {
    let contains = |term: &[u8]| term.windows(text.len()).any(|it| it == text.as_bytes());
    fixture.segments().iter().any(|row| {
        let blocks = fixture.file.read(|it| blocks_after(it.connection, row.id, None, usize::MAX));
        blocks.unwrap().iter().any(|block| {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            let mut is_there = contains(&block.next);
            while let Some((term, _)) = terms.next().unwrap() {
                is_there |= contains(term);
            }
            is_there
        })
    })
}

fn assert_erased(fixture: &Fixture, number: u32) {
    for text in [format!("secret{number}x"), format!("fact{number}x")] {
        assert!(!has_term(fixture, &text), "`{text}` is a term");
        assert!(!fixture.has_on_disk(&text), "`{text}` is on the disk");
    }
    assert!(!fixture.has_on_disk(&super::path(number)), "its path is on the disk");
}

/// Around the number of memories up to which a segment is rewritten as a whole.
#[test]
fn no_word_of_an_erased_memory_is_on_the_disk() {
    for count in [1, 2, 255, 256, 257, 600] {
        let mut fixture = large(count);
        let last = count - 1;
        fixture.apply(&[], &[last]);
        fixture.scrub(&[last], 2);
        clear_unused(&fixture);
        assert_erased(&fixture, last);
        fixture.assert_holds_its_model();
        if count > 1 {
            assert!(has_term(&fixture, "secret0x"), "the others stay");
        }
    }
}

/// The first and the last terms of a segment have no block before or after them.
#[test]
fn every_memory_of_a_large_segment_can_be_erased() {
    let mut fixture = large(400);
    for number in [0, 199, 399] {
        fixture.apply(&[], &[number]);
        fixture.scrub(&[number], u64::from(number));
        fixture.assert_holds_its_model();
    }
    clear_unused(&fixture);
    for number in [0, 199, 399] {
        assert_erased(&fixture, number);
    }
    assert_eq!(fixture.segments().len(), 1);
    assert_eq!(fixture.segments()[0].counts[0], 400, "the numbers of erased memories stay unused");
}

/// Only what was redacted must go; a live memory keeps every word, even if it is named.
#[test]
fn live_memories_are_not_scrubbed() {
    let fixture = large(300);
    fixture.scrub(&[5, 6], 2);
    fixture.assert_holds_its_model();
    assert_eq!(fixture.with("secret5x"), [5]);
}

#[test]
fn scrubbing_leaves_the_dead_of_others_for_the_next_merge() {
    let mut fixture = large(300);
    fixture.apply(&[], &[10, 20]);
    fixture.scrub(&[10], 2);
    clear_unused(&fixture);
    assert_erased(&fixture, 10);
    assert!(has_term(&fixture, "secret20x"));
    fixture.scrub(&[20], 3);
    clear_unused(&fixture);
    assert_erased(&fixture, 20);
    fixture.assert_holds_its_model();
}

/// The record of the last redaction never goes back: an older batch could bring text back.
#[test]
fn the_record_of_redactions_never_goes_back() {
    let fixture = large(3);
    fixture.scrub(&[0], 50);
    assert_eq!(fixture.row().purged.0, 50);
    fixture.scrub(&[0], 20);
    assert_eq!(fixture.row().purged.0, 50);
    fixture.scrub(&[], 60);
    assert_eq!(fixture.row().purged.0, 60);
}

#[test]
fn scrubbing_one_store_leaves_the_other_as_it_is() {
    let mut fixture = large(300);
    let mut other = Fixture { store: store_id(2), ..large(0) };
    // Both stores are in one file.
    std::mem::swap(&mut other.file, &mut fixture.file);
    std::mem::swap(&mut other.directory, &mut fixture.directory);
    other.add(other.store);
    let same = Text::of("all secret7x shared2");
    other.apply(&[(7, same.clone()), (8, same)], &[]);
    let row = other.row();
    let mut first = Fixture { store: store_id(1), ..other };
    first.model = fixture.model.clone();
    first.apply(&[], &[7]);
    first.scrub(&[7], 9);
    first.assert_holds_its_model();
    let second = Fixture { store: store_id(2), ..first };
    assert_eq!(second.row(), row);
    assert_eq!(second.with("secret7x"), [7, 8]);
}

/// Unfinished and merged segments may hold copies of the text.
#[test]
fn segments_that_are_not_searched_are_removed() {
    let mut fixture = large(40);
    for number in 0..8 {
        fixture.put(number, "newer");
    }
    let num = fixture.row().num;
    let marked = fixture.file.write(|connection| {
        use super::super::rows::{SegmentRow, SegmentState, next_segment, put_segment};
        let id = next_segment(connection)?;
        put_segment(connection, num, &SegmentRow::new(id, SegmentState::Unfinished, [0; 3]))
    });
    marked.unwrap();
    assert_eq!(fixture.segments().len(), 10);
    fixture.scrub(&[0], 5);
    assert!(fixture.segments().iter().all(|row| row.counts[0] > 0));
    fixture.assert_holds_its_model();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever is written, removed, scrubbed and merged in whatever order: the index holds the
    /// model, and no word of what was scrubbed is left.
    #[test]
    fn scrubbing_and_merging_in_any_order_keeps_the_index_right(
        notes in 260_u32..420,
        steps in prop::collection::vec((0_u32..420, 0_u8..4), 1..14),
    ) {
        let mut fixture = large(notes);
        let mut erased = Vec::new();
        for (at, (number, action)) in (2..).zip(steps) {
            match action {
                0 => fixture.put(number, "rewritten"),
                1 => fixture.apply(&[], &[number]),
                2 => {
                    let had_it = fixture.model.contains_key(&number);
                    fixture.apply(&[], &[number]);
                    fixture.scrub(&[number], at);
                    erased.extend(had_it.then_some(number));
                }
                _ => while step(&fixture.file, fixture.row().num).unwrap() {},
            }
            prop_assert_eq!(fixture.with("all").len(), {
                let has = |text: &Text| text.words.first().is_some_and(|word| word == "all");
                fixture.model.values().filter(|text| has(text)).count()
            });
        }
        fixture.assert_holds_its_model();
        clear_unused(&fixture);
        for number in erased {
            let is_left = has_term(&fixture, &format!("secret{number}x"));
            prop_assert!(!is_left, "secret{}x", number);
        }
    }
}
