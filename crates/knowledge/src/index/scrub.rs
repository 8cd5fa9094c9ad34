//! Scrubbing: erasing every term of redacted text.
//!
//! A tombstone hides a document from searches, but its terms and positions stay on the disk until
//! the next merge, and the text could be reconstructed from them. So redaction cannot wait for a
//! merge. Rewriting a large segment for one document would take long, so only the blocks with a
//! posting of it are rewritten, in place.
//!
//! This is the one exception to the immutability of segments. It is safe for readers that have
//! cached the segment, because only dead documents disappear and no other one is renumbered. The
//! number of a scrubbed document stays unused until its segment is merged.

use quipu_core::backend::Sequence;
use quipu_core::model::MemoryId;
use rusqlite::Connection;

use super::bits::Bits;
use super::block::{Block, BlockPositions, BlockReader, BlockWriter};
use super::codec::{Damaged, put_bytes};
use super::columns::{FactRow, each_path};
use super::error::IndexError;
use super::postings::{Positions, PostingList, Postings};
use super::rows::{self, SegmentRow, SegmentState};
use super::store_rows::{self, StoreRow};
use super::term::{self, Space};
use super::upkeep;

/// How many blocks are read at a time.
const BLOCKS_MAX: usize = 256;

/// Segments with at most this many memories are rewritten as a whole.
const REWRITE_MAX: usize = 256;

/// Erases all terms of the dead documents of these memories. From now on, no batch or merge may be
/// committed that was read before the change `purged`: it could bring the text back.
pub(crate) fn scrub(
    connection: &Connection,
    store: &StoreRow,
    memories: &[MemoryId],
    purged: Sequence,
) -> Result<(), IndexError> {
    for row in rows::segments(connection, store.num)? {
        if row.state != SegmentState::Live {
            // Unfinished and merged segments may hold copies of the text. They are not searched, so
            // removing them is simpler than scrubbing them.
            while rows::remove_segment(connection, store.num, row.id, usize::MAX)? {}
            continue;
        }
        let scrubbed = dead_docs(connection, &row, memories)?;
        if scrubbed.is_empty() {
            continue;
        }
        if row.counts[0] <= REWRITE_MAX || row.dead * 2 > row.counts[0] {
            upkeep::merge_now(connection, store.num, &[row])?;
        } else {
            scrub_segment(connection, &row, scrubbed)?;
        }
    }
    store_rows::put_store(connection, &StoreRow { purged: purged.max(store.purged), ..*store })
}

/// Returns the dead documents of these memories that still have postings in a segment.
fn dead_docs(
    connection: &Connection,
    row: &SegmentRow,
    memories: &[MemoryId],
) -> Result<Bits, IndexError> {
    let mut docs = Bits::none(row.counts[0]);
    if row.dead == 0 {
        return Ok(docs);
    }
    for &memory in memories {
        let term = term::memory(memory);
        rows::with_block(connection, row.id, &term, |first, postings| {
            if let Some((_, list)) = super::block::find_in_block(first, postings, &term)? {
                for posting in Postings::new(list) {
                    docs.insert(posting?.doc)?;
                }
            }
            Ok(())
        })?;
    }
    docs.intersect(&rows::dead(connection, row)?);
    Ok(docs)
}

/// The documents to erase, by space.
struct Scrubbed([Bits; 3]);

impl Scrubbed {
    /// Returns the documents that are one of these memories, or part of one.
    fn new(connection: &Connection, row: &SegmentRow, memories: Bits) -> Result<Self, IndexError> {
        let facts = |space: Space| -> Result<Bits, IndexError> {
            let mut scrubbed = Bits::none(space.pick(row.counts));
            let column = rows::column(connection, row.id, rows::column_names(space).1)?;
            for (doc, row) in (0..).zip(column.as_chunks::<8>().0) {
                if memories.contains(FactRow::from_bytes(*row).memory) {
                    scrubbed.insert(doc)?;
                }
            }
            Ok(scrubbed)
        };
        let (observations, relations) = (facts(Space::Observations)?, facts(Space::Relations)?);
        Ok(Self([memories, observations, relations]))
    }

    fn of_term(&self, term: &[u8]) -> Result<&Bits, Damaged> {
        Ok(Space::of_term(term).ok_or(Damaged)?.pick(self.0.each_ref()))
    }
}

fn scrub_segment(
    connection: &Connection,
    row: &SegmentRow,
    memories: Bits,
) -> Result<(), IndexError> {
    let scrubbed = Scrubbed::new(connection, row, memories)?;
    let mut chain = Chain { connection, segment: row.id, last: None };
    let mut after: Option<Block> = None;
    loop {
        let blocks = rows::blocks_after(connection, row.id, after.as_ref(), BLOCKS_MAX)?;
        let Some(last) = blocks.last() else { break };
        after = Some(last.clone());
        for block in blocks {
            if has_any(&block, &scrubbed)? {
                rows::remove_block(connection, row.id, &block.first)?;
                without(&block, &scrubbed)?.into_iter().try_for_each(|left| chain.add(left))?;
            } else {
                chain.keep(block)?;
            }
        }
    }
    chain.finish()?;
    let mut columns = rows::columns(connection, row.id)?;
    let mut paths = Vec::new();
    let [memories, ..] = &scrubbed.0;
    each_path(&columns.memories.paths, |doc, path| {
        put_bytes(&mut paths, if memories.contains(doc) { b"" } else { path.as_bytes() });
    })?;
    columns.memories.paths = paths;
    // The hash of a directory would otherwise outlive its name.
    columns.memories.finish()?;
    rows::put_columns(connection, row.id, &columns)
}

/// Rewrites blocks whose successor has changed. A block stores the first term of the next one, so
/// erasing that term from the next block alone would leave a copy of it here.
struct Chain<'c> {
    connection: &'c Connection,
    segment: i64,
    /// The previous block, and whether its row is already stored.
    last: Option<(Block, Stored)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

impl Chain<'_> {
    /// Continues with an unchanged block.
    fn keep(&mut self, block: Block) -> Result<(), IndexError> {
        self.end(&block.first)?;
        self.last = Some((block, Stored::Yes));
        Ok(())
    }

    /// Continues with a block that has no row yet.
    fn add(&mut self, block: Block) -> Result<(), IndexError> {
        self.end(&block.first)?;
        self.last = Some((block, Stored::No));
        Ok(())
    }

    fn finish(mut self) -> Result<(), IndexError> {
        self.end(&[])
    }

    fn end(&mut self, next: &[u8]) -> Result<(), IndexError> {
        let Some((mut block, stored)) = self.last.take() else { return Ok(()) };
        match stored {
            Stored::Yes if block.next == next => return Ok(()),
            Stored::Yes => rows::remove_block(self.connection, self.segment, &block.first)?,
            Stored::No => {}
        }
        block.next = next.to_vec();
        rows::put_block(self.connection, self.segment, &block)
    }
}

fn has_any(block: &Block, scrubbed: &Scrubbed) -> Result<bool, Damaged> {
    let mut terms = BlockReader::new(&block.first, &block.postings);
    while let Some((term, postings)) = terms.next()? {
        let scrubbed = scrubbed.of_term(term)?;
        for posting in Postings::new(postings) {
            if scrubbed.contains(posting?.doc) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn without(block: &Block, scrubbed: &Scrubbed) -> Result<Vec<Block>, IndexError> {
    let mut left = Vec::new();
    let mut writer = BlockWriter::new(|block| {
        left.push(block);
        Ok::<_, IndexError>(())
    });
    let mut terms = BlockReader::new(&block.first, &block.postings);
    let mut positions = BlockPositions::new(&block.positions);
    while let Some((term, postings)) = terms.next()? {
        let scrubbed = scrubbed.of_term(term)?;
        let mut positions = Positions::new(positions.next()?);
        let mut list = PostingList::default();
        for posting in Postings::new(postings) {
            let posting = posting?;
            let encoded = if positions.is_empty() { &[] } else { positions.take(&posting)? };
            if !scrubbed.contains(posting.doc) {
                list.push_encoded(posting, encoded);
            }
        }
        if !list.postings.is_empty() {
            writer.add(term, &list.postings, &list.positions)?;
        }
    }
    writer.finish()?;
    Ok(left)
}
