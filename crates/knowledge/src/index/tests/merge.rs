use proptest::prelude::*;

use super::super::bits::Bits;
use super::super::block::Block;
use super::super::columns::FactRow;
use super::super::error::IndexError;
use super::super::merge::{MergeInput, merge};
use super::super::segment::{Segment, SegmentBuilder};
use super::super::term::{self, Space};
use super::{Text, documents, text};

fn built(texts: &[(u32, Text)]) -> Segment {
    let mut builder = SegmentBuilder::default();
    for (number, text) in texts {
        builder.add(documents(*number, text));
    }
    builder.finish()
}

fn input(segment: &Segment, live: Bits) -> MergeInput<std::vec::IntoIter<Block>> {
    let Segment { blocks, columns } = segment.clone();
    MergeInput { blocks: blocks.into_iter(), columns, live }
}

fn merged(segments: &[(&Segment, Bits)]) -> Result<Segment, IndexError> {
    let inputs = segments.iter().map(|(segment, live)| input(segment, live.clone())).collect();
    let mut blocks = Vec::new();
    let columns = merge(inputs, |block| {
        blocks.push(block);
        Ok(())
    })?;
    Ok(Segment { blocks, columns })
}

fn all(segment: &Segment) -> Bits {
    Bits::all(segment.columns.counts()[0])
}

fn numbered(texts: Vec<Text>) -> Vec<(u32, Text)> {
    (1..).zip(texts).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Tiers merge what was merged before, so the order of merging must not matter.
    #[test]
    fn merging_in_steps_is_merging_at_once(
        first in prop::collection::vec(text(), 0..6),
        second in prop::collection::vec(text(), 0..6),
        third in prop::collection::vec(text(), 0..6),
    ) {
        let parts = [first, second, third].map(|texts| built(&numbered(texts)));
        let [first, second, third] = &parts;
        let early = merged(&[(first, all(first)), (second, all(second))]).unwrap();
        let left = merged(&[(&early, all(&early)), (third, all(third))]).unwrap();
        let late = merged(&[(second, all(second)), (third, all(third))]).unwrap();
        let right = merged(&[(first, all(first)), (&late, all(&late))]).unwrap();
        prop_assert_eq!(&left, &right);
        let at_once: Vec<_> = parts.iter().map(|part| (part, all(part))).collect();
        prop_assert_eq!(&merged(&at_once).unwrap(), &left);
    }

    /// A segment that is rewritten alone and has no dead documents stays as it is.
    #[test]
    fn merging_one_segment_without_dead_documents_changes_nothing(
        texts in prop::collection::vec(text(), 0..12),
    ) {
        let segment = built(&numbered(texts));
        prop_assert_eq!(merged(&[(&segment, all(&segment))]).unwrap(), segment);
    }

    /// Nothing of a dead document is left: no term of its own, no row.
    #[test]
    fn the_terms_of_dead_documents_are_gone(
        texts in prop::collection::vec(text(), 1..12),
        dead in any::<prop::sample::Index>(),
    ) {
        let mut texts = numbered(texts);
        let place = dead.index(texts.len());
        texts[place].1.words.push("unmistakable".to_owned());
        let segment = built(&texts);
        let mut live = all(&segment);
        live.remove(u32::try_from(place).unwrap());
        let merged = merged(&[(&segment, live)]).unwrap();
        let bytes: Vec<u8> = merged
            .blocks
            .iter()
            .flat_map(|block| [&block.first[..], &block.next, &block.postings].concat())
            .collect();
        let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|it| it == wanted);
        prop_assert!(!has(b"unmistakable"));
        prop_assert!(!has(&term::memory(super::memory(texts[place].0))));
        let gone = super::path(texts[place].0);
        let paths = &merged.columns.memories.paths;
        prop_assert!(!paths.windows(gone.len()).any(|it| it == gone.as_bytes()));
        texts.remove(place);
        prop_assert_eq!(merged, built(&texts));
    }
}

#[test]
fn merging_nothing_makes_nothing() {
    assert_eq!(merged(&[]).unwrap(), Segment::default());
    let segment = built(&numbered(vec![Text::of("tea"), Text::of("cup")]));
    let none = Bits::none(2);
    assert_eq!(merged(&[(&segment, none.clone()), (&segment, none)]).unwrap(), Segment::default());
}

fn is_damaged(merged: &Result<Segment, IndexError>) -> bool {
    matches!(merged, Err(IndexError::Damaged))
}

#[test]
fn a_fact_of_a_memory_that_is_not_there_is_damage() {
    let mut segment = built(&numbered(vec![Text::of("tea")]));
    let row = FactRow { memory: 1, position: 0 };
    segment.columns.observations.push(1, row);
    assert!(is_damaged(&merged(&[(&segment, all(&segment))])));
}

#[test]
fn columns_of_different_lengths_are_damage() {
    let damage: [fn(&mut Segment); 3] = [
        |segment| segment.columns.memories.lengths = super::super::columns::Fixed::default(),
        |segment| segment.columns.memories.ids = super::super::columns::Fixed::default(),
        |segment| segment.columns.memories.times = super::super::columns::Fixed::default(),
    ];
    for damage in damage {
        let mut segment = built(&numbered(vec![Text::of("tea")]));
        damage(&mut segment);
        assert!(is_damaged(&merged(&[(&segment, Bits::all(1))])));
    }
}

/// A posting of a document that the columns do not have.
#[test]
fn a_posting_beyond_the_columns_is_damage() {
    let (one, two) = (numbered(vec![Text::of("a")]), numbered(vec![Text::of("a"), Text::of("a")]));
    let mixed = Segment { blocks: built(&two).blocks, columns: built(&one).columns };
    assert!(is_damaged(&merged(&[(&mixed, Bits::all(1))])));
}

#[test]
fn terms_without_a_space_are_damage() {
    let mut segment = built(&numbered(vec![Text::of("tea")]));
    segment.blocks[0].first = b"?".to_vec();
    assert!(is_damaged(&merged(&[(&segment, Bits::all(1))])));
    let mut empty = built(&numbered(vec![Text::of("tea")]));
    empty.blocks[0].postings.clear();
    assert!(is_damaged(&merged(&[(&empty, Bits::all(1))])));
}

#[test]
fn positions_that_end_early_are_damage() {
    let mut segment = built(&numbered(vec![Text::of("tea tea tea"), Text::of("tea")]));
    let positions = &mut segment.blocks[0].positions;
    positions.pop();
    assert!(is_damaged(&merged(&[(&segment, Bits::all(2))])));
}

#[test]
fn an_error_of_the_writer_ends_the_merge() {
    let segment = built(&numbered(vec![Text::of("tea")]));
    let ended = merge(vec![input(&segment, Bits::all(1))], |_| Err(IndexError::Outdated));
    assert!(matches!(ended, Err(IndexError::Outdated)));
    assert_eq!(segment.block_of(&term::word(Space::Memories, "tea")), segment.blocks.first());
}
