//! Merging: several segments become one, without their dead documents.
//!
//! This is a k-way merge over the sorted terms of all segments. It holds the columns and a page of
//! blocks of each segment in memory, never all posting lists. The next term is found by a linear
//! scan: there are usually eight inputs, too few for a heap to pay off.
//!
//! Documents are renumbered input by input, so the posting lists of a term are concatenated in
//! ascending order. Positions do not depend on document numbers, and are copied as encoded.

use super::bits::Bits;
use super::block::{Block, BlockPositions, BlockReader, BlockWriter};
use super::codec::Damaged;
use super::columns::{Columns, FactRow, MemoryRow, each_path, memory_id, moment};
use super::error::IndexError;
use super::postings::{Doc, Positions, PostingList, Postings};
use super::term::Space;

/// Yields the blocks of a segment in order.
pub(crate) trait Blocks {
    fn next_block(&mut self) -> Result<Option<Block>, IndexError>;
}

/// A segment to be merged.
pub(crate) struct MergeInput<B> {
    pub(crate) blocks: B,
    pub(crate) columns: Columns,
    /// The memories without a tombstone.
    pub(crate) live: Bits,
}

/// The new number of each document of a space; `None` if it is dead.
type Numbers = Vec<Option<Doc>>;

/// Merges segments, passes the blocks of the new one to `keep`, and returns its columns.
///
/// Documents keep their order: those of the first input come first.
pub(crate) fn merge<B: Blocks>(
    inputs: Vec<MergeInput<B>>,
    keep: impl FnMut(Block) -> Result<(), IndexError>,
) -> Result<Columns, IndexError> {
    let mut columns = Columns::default();
    let mut sources = Vec::new();
    for input in inputs {
        let numbers = renumber(&input.columns, &input.live, &mut columns)?;
        sources.push(Source { terms: Terms::new(input.blocks), numbers });
    }
    let mut writer = BlockWriter::new(keep);
    for source in &mut sources {
        source.terms.advance()?;
    }
    while let Some(term) = sources.iter().filter_map(|source| source.terms.term()).min() {
        let term = term.to_vec();
        let space = Space::of_term(&term).ok_or(Damaged)?;
        let mut list = PostingList::default();
        for source in sources.iter_mut().filter(|source| source.terms.term() == Some(&term)) {
            source.copy_to(&mut list, space)?;
            source.terms.advance()?;
        }
        if !list.postings.is_empty() {
            writer.add(&term, &list.postings, &list.positions)?;
        }
    }
    writer.finish()?;
    columns.memories.finish()?;
    Ok(columns)
}

/// Appends the live documents of a segment to the columns of the new one.
fn renumber(from: &Columns, live: &Bits, to: &mut Columns) -> Result<[Numbers; 3], Damaged> {
    let next = |count: usize| Doc::try_from(count).ok().ok_or(Damaged);
    let mut paths = Vec::new();
    each_path(&from.memories.paths, |_, path| paths.push(path.to_owned()))?;
    let mut memories: Numbers = Vec::new();
    for (place, path) in paths.into_iter().enumerate() {
        let doc = next(place)?;
        if !live.contains(doc) {
            memories.push(None);
            continue;
        }
        memories.push(Some(next(to.memories.lengths.len())?));
        let row = MemoryRow {
            id: memory_id(from.memories.ids.get(doc)?),
            updated_at: moment(from.memories.times.get(doc)?),
            path,
        };
        to.memories.push(from.memories.lengths.number(doc)?, &row);
    }
    let mut numbers = [memories, Vec::new(), Vec::new()];
    for space in [Space::Observations, Space::Relations] {
        let (Some(from), Some(to)) = (from.facts(space), to.facts_mut(space)) else { continue };
        let mut facts: Numbers = Vec::new();
        for (place, row) in from.rows.iter().enumerate() {
            let FactRow { memory, position } = FactRow::from_bytes(row);
            let memories = numbers.first().ok_or(Damaged)?;
            let memory = memories.get(usize::try_from(memory).ok().ok_or(Damaged)?);
            let Some(memory) = *memory.ok_or(Damaged)? else {
                facts.push(None);
                continue;
            };
            facts.push(Some(next(to.rows.len())?));
            to.push(from.lengths.number(next(place)?)?, FactRow { memory, position });
        }
        let [_, observations, relations] = &mut numbers;
        *(if space == Space::Relations { relations } else { observations }) = facts;
    }
    Ok(numbers)
}

struct Source<B> {
    terms: Terms<B>,
    numbers: [Numbers; 3],
}

impl<B: Blocks> Source<B> {
    /// Copies the postings of live documents from the list of the current term.
    fn copy_to(&self, list: &mut PostingList, space: Space) -> Result<(), Damaged> {
        let Some((_, postings, positions)) = self.terms.entry() else { return Ok(()) };
        let numbers = space.pick(self.numbers.each_ref());
        let mut positions = Positions::new(positions);
        for posting in Postings::new(postings) {
            let mut posting = posting?;
            let encoded = if positions.is_empty() { &[] } else { positions.take(&posting)? };
            let place = usize::try_from(posting.doc).ok().ok_or(Damaged)?;
            if let Some(doc) = *numbers.get(place).ok_or(Damaged)? {
                posting.doc = doc;
                list.push_encoded(posting, encoded);
            }
        }
        Ok(())
    }
}

/// A term with its postings and positions.
type Entry = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Iterates over the terms of a segment.
struct Terms<B> {
    blocks: B,
    /// The entries of the current block in reverse, so that the next one is popped.
    entries: Vec<Entry>,
}

impl<B: Blocks> Terms<B> {
    fn new(blocks: B) -> Self {
        Self { blocks, entries: Vec::new() }
    }

    fn entry(&self) -> Option<&Entry> {
        self.entries.last()
    }

    fn term(&self) -> Option<&[u8]> {
        self.entry().map(|(term, ..)| term.as_slice())
    }

    fn advance(&mut self) -> Result<(), IndexError> {
        self.entries.pop();
        if !self.entries.is_empty() {
            return Ok(());
        }
        let Some(block) = self.blocks.next_block()? else { return Ok(()) };
        let mut terms = BlockReader::new(&block.first, &block.postings);
        let mut positions = BlockPositions::new(&block.positions);
        while let Some((term, postings)) = terms.next()? {
            self.entries.push((term.to_vec(), postings.to_vec(), positions.next()?.to_vec()));
        }
        self.entries.reverse();
        if self.entries.is_empty() { Err(IndexError::Damaged) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_core::model::{Id as _, MemoryId, Timestamp};

    use super::super::postings::Field;
    use super::super::segment::{Document, Documents, Segment, SegmentBuilder};
    use super::super::term;
    use super::*;

    impl Blocks for std::vec::IntoIter<Block> {
        fn next_block(&mut self) -> Result<Option<Block>, IndexError> {
            Ok(self.next())
        }
    }

    fn document(space: Space) -> impl Strategy<Value = Document> {
        let place = (prop::sample::select(vec![Field::Title, Field::Body]), 0_u32..9);
        let words = prop::collection::btree_set(("[a-d]{1,2}", place), 0..12);
        let marks = prop::collection::btree_set("[x-z]", 0..3);
        (words, marks).prop_map(move |(words, marks)| Document {
            length: u32::try_from(words.len()).unwrap(),
            words: words
                .into_iter()
                .map(|(word, (field, at))| (term::word(space, &word), field, at))
                .collect(),
            marks: marks.iter().map(|tag| term::Mark::Tag(tag).term(space)).collect(),
        })
    }

    fn documents() -> impl Strategy<Value = Vec<Documents>> {
        let one = (
            document(Space::Memories),
            prop::collection::vec(document(Space::Observations), 0..3),
            prop::collection::vec(document(Space::Relations), 0..3),
        );
        prop::collection::vec(one, 0..12).prop_map(|all| {
            let numbered = all.into_iter().zip(1_u32..);
            numbered
                .map(|((memory, observations, relations), number)| Documents {
                    row: MemoryRow {
                        id: MemoryId::from_bits(u128::from(number)),
                        updated_at: Timestamp::from_micros(i64::from(number)),
                        path: format!("/{number}.md"),
                    },
                    memory,
                    observations,
                    relations,
                })
                .collect()
        })
    }

    fn built<'d>(documents: impl IntoIterator<Item = &'d Documents>) -> Segment {
        let mut builder = SegmentBuilder::default();
        for documents in documents {
            builder.add(documents.clone());
        }
        builder.finish()
    }

    fn input(segment: Segment, live: Bits) -> MergeInput<std::vec::IntoIter<Block>> {
        MergeInput { blocks: segment.blocks.into_iter(), columns: segment.columns, live }
    }

    proptest! {
        /// Merging gives the segment that building the live documents at once would give.
        #[test]
        fn merged_segments_are_as_if_built_at_once(
            all in documents(),
            cuts in prop::collection::vec(0_usize..12, 0..4),
            is_live in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
            cuts.extend([0, all.len()]);
            cuts.sort_unstable();
            let mut inputs = Vec::new();
            for ends in cuts.windows(2) {
                let mut live = Bits::none(ends[1] - ends[0]);
                for (doc, place) in (0..).zip(ends[0]..ends[1]) {
                    if is_live[place] {
                        live.insert(doc).unwrap();
                    }
                }
                inputs.push(input(built(&all[ends[0]..ends[1]]), live));
            }
            let mut blocks = Vec::new();
            let columns = merge(inputs, |block| {
                blocks.push(block);
                Ok(())
            }).unwrap();
            let merged = Segment { blocks, columns };
            let live = all.iter().zip(is_live).filter(|(_, is_live)| *is_live).map(|(it, _)| it);
            prop_assert_eq!(merged, built(live));
        }

        #[test]
        fn damaged_blocks_are_refused(
            all in documents(),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut segment = built(&all);
            let live = Bits::all(all.len());
            if let Some(block) = segment.blocks.last_mut() {
                let place = place.index(block.postings.len());
                block.postings[place] = byte;
            }
            // The damage may go unnoticed, but it must not cause a panic.
            drop(merge(vec![input(segment, live)], |_| Ok(())));
        }
    }
}
