//! Segments: immutable inverted indexes of some documents.
//!
//! Each batch is written as a new segment, and merging combines segments. A document that is edited
//! or deleted gets a tombstone outside of its segment, and is dropped by the next merge. Updating
//! posting lists in place would instead rewrite a block for every word of every edited memory, and
//! invalidate what readers have cached.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::block::{Block, BlockReader, BlockWriter};
use super::columns::{Columns, FactRow, MemoryRow};
use super::postings::{Doc, Field, Occurrence, PostingList};
use super::term::{self, Space};

/// The indexed form of a memory, an observation or a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// The number of words, for length normalization.
    pub(crate) length: u32,
    /// The terms of its words with fields and positions, unordered and distinct.
    pub(crate) words: Vec<(Vec<u8>, Field, u32)>,
    /// The terms that are either present or not, unordered and distinct.
    pub(crate) marks: Vec<Vec<u8>>,
}

/// The indexed form of one memory, with its observations and relations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Documents {
    pub(crate) row: MemoryRow,
    pub(crate) memory: Document,
    pub(crate) observations: Vec<Document>,
    pub(crate) relations: Vec<Document>,
}

/// The number of documents in each space, and their total length in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) counts: [u64; 3],
    pub(crate) lengths: [u64; 3],
}

impl Totals {
    pub(crate) fn count(&self, space: Space) -> u64 {
        space.pick(self.counts)
    }

    pub(crate) fn length(&self, space: Space) -> u64 {
        space.pick(self.lengths)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.combine(other, u64::saturating_sub);
    }

    fn combine(&mut self, other: &Self, operation: fn(u64, u64) -> u64) {
        let pairs = self.counts.iter_mut().zip(other.counts);
        for (mine, other) in pairs.chain(self.lengths.iter_mut().zip(other.lengths)) {
            *mine = operation(*mine, other);
        }
    }
}

impl Documents {
    pub(crate) fn totals(&self) -> Totals {
        let length = |documents: &[Document]| documents.iter().map(|it| u64::from(it.length)).sum();
        let count = |documents: &[Document]| u64::try_from(documents.len()).unwrap_or(u64::MAX);
        let lengths =
            [u64::from(self.memory.length), length(&self.observations), length(&self.relations)];
        Totals { counts: [1, count(&self.observations), count(&self.relations)], lengths }
    }
}

/// Builds a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuilder {
    /// The place of each term's list. The hash is keyed at random, because people choose the terms.
    places: HashMap<Vec<u8>, usize, RandomState>,
    lists: Vec<PostingList>,
    columns: Columns,
}

impl SegmentBuilder {
    /// Adds a memory with its observations and relations, and returns its number in the segment.
    pub(crate) fn add(&mut self, documents: Documents) -> Doc {
        let Documents { row, memory, observations, relations } = documents;
        let doc = number(self.columns.memories.lengths.len());
        self.columns.memories.push(memory.length, &row);
        self.add_mark(doc, term::memory(row.id));
        self.add_terms(doc, memory);
        for (space, facts) in [(Space::Observations, observations), (Space::Relations, relations)] {
            for (position, fact) in facts.into_iter().enumerate() {
                let Some(column) = self.columns.facts_mut(space) else { continue };
                let fact_doc = number(column.rows.len());
                column.push(fact.length, FactRow { memory: doc, position: number(position) });
                self.add_terms(fact_doc, fact);
            }
        }
        doc
    }

    fn add_terms(&mut self, doc: Doc, document: Document) {
        // Occurrences are grouped by the place of their list: sorting terms takes three times as long.
        let mut words: Vec<(usize, Occurrence)> = Vec::with_capacity(document.words.len());
        for (term, field, position) in document.words {
            words.push((self.place(term), (field, position)));
        }
        words.sort_unstable();
        let mut occurrences = Vec::new();
        for same in words.chunk_by(|left, right| left.0 == right.0) {
            occurrences.clear();
            occurrences.extend(same.iter().map(|(_, occurrence)| *occurrence));
            if let Some((place, _)) = same.first()
                && let Some(list) = self.lists.get_mut(*place)
            {
                list.push(doc, &occurrences);
            }
        }
        for mark in document.marks {
            self.add_mark(doc, mark);
        }
    }

    fn add_mark(&mut self, doc: Doc, mark: Vec<u8>) {
        let place = self.place(mark);
        if let Some(list) = self.lists.get_mut(place) {
            list.push_mark(doc);
        }
    }

    /// Returns the place of a term's list.
    fn place(&mut self, term: Vec<u8>) -> usize {
        let next = self.lists.len();
        let place = *self.places.entry(term).or_insert(next);
        if place == next {
            self.lists.push(PostingList::default());
        }
        place
    }

    pub(crate) fn finish(mut self) -> Segment {
        self.columns.memories.finish().expect("the paths were encoded by this builder");
        // Most comparisons are decided by the first bytes, as one number.
        let first = |term: &[u8]| {
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(term).for_each(|(to, from)| *to = *from);
            u128::from_be_bytes(bytes)
        };
        let terms = self.places.iter().map(|(term, place)| (first(term), term.as_slice(), *place));
        let mut terms: Vec<_> = terms.collect();
        terms.sort_unstable();
        let mut segment = SegmentWriter::default();
        let mut writer = BlockWriter::new(|block| segment.keep(block));
        for (_, term, place) in terms {
            let Some(list) = self.lists.get(place) else { continue };
            let Ok(()) = writer.add(term, &list.postings, &list.positions);
        }
        let Ok(()) = writer.finish();
        Segment { blocks: segment.0, columns: self.columns }
    }
}

/// Collects blocks in memory.
#[derive(Debug, Default)]
struct SegmentWriter(Vec<Block>);

impl SegmentWriter {
    #[expect(clippy::unnecessary_wraps, reason = "writers of blocks may fail, this one cannot")]
    fn keep(&mut self, block: Block) -> Result<(), std::convert::Infallible> {
        self.0.push(block);
        Ok(())
    }
}

fn number(count: usize) -> Doc {
    Doc::try_from(count).unwrap_or(Doc::MAX)
}

/// A segment in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) blocks: Vec<Block>,
    pub(crate) columns: Columns,
}

impl Segment {
    /// Returns whether any of its memories is in a language other than English.
    pub(crate) fn is_foreign(&self) -> bool {
        let prefix = term::language_prefix();
        let english = term::Mark::Language("en").term(Space::Memories);
        let mut is_foreign = false;
        for block in self.blocks_from(&prefix) {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            while let Ok(Some((term, _))) = terms.next() {
                is_foreign |= term.starts_with(&prefix) && term != english.as_slice();
                if term > prefix.as_slice() && !term.starts_with(&prefix) {
                    return is_foreign;
                }
            }
        }
        is_foreign
    }

    /// Returns its approximate size in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        let block = |block: &Block| 100 + block.postings.len() + block.positions.len();
        self.blocks.iter().map(block).sum::<usize>()
            + self.columns.memories.paths.len()
            + self.columns.memories.places.order.as_bytes().len()
    }

    /// Returns the only block that can hold a term.
    pub(crate) fn block_of(&self, term: &[u8]) -> Option<&Block> {
        let after = self.blocks.partition_point(|block| block.first.as_slice() <= term);
        self.blocks.get(after.checked_sub(1)?)
    }

    /// Returns the blocks beginning with the one that may hold the first term with a prefix.
    pub(crate) fn blocks_from(&self, prefix: &[u8]) -> impl Iterator<Item = &Block> {
        let after = self.blocks.partition_point(|block| block.first.as_slice() <= prefix);
        self.blocks.iter().skip(after.saturating_sub(1))
    }
}
