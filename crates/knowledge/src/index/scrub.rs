//! Scrubbing: no word of what was redacted is left.
//!
//! A document that was edited or deleted stays in its segment until the next merge, which is no place
//! for text that was redacted. Writing a large segment again for one document would take long, so only
//! the blocks that hold a word of it are written again. The number of a scrubbed document is not used
//! again before its segment is merged.

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

/// Segments with fewer memories are written again as a whole.
const REWRITE_MAX: usize = 256;

/// Takes all words out of the index that dead documents of these memories hold. Nothing that was read
/// before the change `purged` may be added from now on.
pub(crate) fn scrub(
    connection: &Connection,
    store: &StoreRow,
    memories: &[MemoryId],
    purged: Sequence,
) -> Result<(), IndexError> {
    for row in rows::segments(connection, store.num)? {
        if row.state != SegmentState::Live {
            // Nobody knows which words these hold.
            while rows::remove_segment(connection, store.num, row.id, usize::MAX)? {}
            continue;
        }
        let doomed = dead_docs(connection, &row, memories)?;
        if doomed.is_empty() {
            continue;
        }
        if row.counts[0] <= REWRITE_MAX || row.dead * 2 > row.counts[0] {
            upkeep::merge_now(connection, store.num, &[row])?;
        } else {
            scrub_segment(connection, &row, doomed)?;
        }
    }
    store_rows::put_store(connection, &StoreRow { purged: purged.max(store.purged), ..*store })
}

/// Returns the dead documents of these memories that still have words in a segment.
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

/// The documents to take out, of each space.
struct Doomed([Bits; 3]);

impl Doomed {
    /// Returns the documents that are, or are in, one of these memories.
    fn new(connection: &Connection, row: &SegmentRow, memories: Bits) -> Result<Self, IndexError> {
        let facts = |space: Space| -> Result<Bits, IndexError> {
            let mut doomed = Bits::none(space.pick(row.counts));
            let column = rows::column(connection, row.id, rows::column_names(space).1)?;
            for (doc, row) in (0..).zip(column.as_chunks::<8>().0) {
                if memories.contains(FactRow::from_bytes(*row).memory) {
                    doomed.insert(doc)?;
                }
            }
            Ok(doomed)
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
    let doomed = Doomed::new(connection, row, memories)?;
    let mut chain = Chain { connection, segment: row.id, last: None };
    let mut after: Option<Block> = None;
    loop {
        let blocks = rows::blocks_after(connection, row.id, after.as_ref(), BLOCKS_MAX)?;
        let Some(last) = blocks.last() else { break };
        after = Some(last.clone());
        for block in blocks {
            if has_any(&block, &doomed)? {
                rows::remove_block(connection, row.id, &block.first)?;
                without(&block, &doomed)?.into_iter().try_for_each(|left| chain.add(left))?;
            } else {
                chain.keep(block)?;
            }
        }
    }
    chain.finish()?;
    let mut columns = rows::columns(connection, row.id)?;
    let mut paths = Vec::new();
    let [memories, ..] = &doomed.0;
    each_path(&columns.memories.paths, |doc, path| {
        put_bytes(&mut paths, if memories.contains(doc) { b"" } else { path.as_bytes() });
    })?;
    columns.memories.paths = paths;
    rows::put_columns(connection, row.id, &columns)
}

/// Writes blocks again whose next one is another now: the first term of a block may be one that must
/// go, and the block before it names it.
struct Chain<'c> {
    connection: &'c Connection,
    segment: i64,
    /// The block before, and whether it is in its row already.
    last: Option<(Block, Stored)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

impl Chain<'_> {
    /// Goes on with a block that stays as it is.
    fn keep(&mut self, block: Block) -> Result<(), IndexError> {
        self.end(&block.first)?;
        self.last = Some((block, Stored::Yes));
        Ok(())
    }

    /// Goes on with a block that has no row yet.
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

fn has_any(block: &Block, doomed: &Doomed) -> Result<bool, Damaged> {
    let mut terms = BlockReader::new(&block.first, &block.postings);
    while let Some((term, postings)) = terms.next()? {
        let doomed = doomed.of_term(term)?;
        for posting in Postings::new(postings) {
            if doomed.contains(posting?.doc) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn without(block: &Block, doomed: &Doomed) -> Result<Vec<Block>, IndexError> {
    let mut left = Vec::new();
    let mut writer = BlockWriter::new(|block| {
        left.push(block);
        Ok::<_, IndexError>(())
    });
    let mut terms = BlockReader::new(&block.first, &block.postings);
    let mut positions = BlockPositions::new(&block.positions);
    while let Some((term, postings)) = terms.next()? {
        let doomed = doomed.of_term(term)?;
        let mut positions = Positions::new(positions.next()?);
        let mut list = PostingList::default();
        for posting in Postings::new(postings) {
            let posting = posting?;
            let encoded = if positions.is_empty() { &[] } else { positions.take(&posting)? };
            if !doomed.contains(posting.doc) {
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
