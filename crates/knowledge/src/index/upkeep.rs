//! Upkeep: merging segments, and removing unused ones.
//!
//! Every batch adds a segment, so without merging, a search would have to visit ever more of them.
//! Segments are merged in tiers: eight of about the same size become one of the next tier. So a
//! document is rewritten once per tier, which is logarithmic in the size of the store, and as long
//! as merging keeps up, a search visits at most seven segments per tier. Merging everything into
//! one segment every time would give the fastest searches, but each edit would rewrite the whole
//! index. A segment of which more than half is dead is rewritten alone.
//!
//! Small merges happen in the transaction that makes them due. Large ones take long, and SQLite has
//! a single writer, so they run in the background, in one process at a time, in many short
//! transactions: the new segment is not searched until the last of them, which also carries over
//! the tombstones that were added in the meantime. If the process dies, the next one removes the
//! unfinished segment. Merging everything in the commit that makes it due would need none of this,
//! but cost a search 11 to 15 ms at the 99th percentile instead of 2.

use quipu_core::backend::Sequence;
use quipu_core::model::StoreId;
use rusqlite::Connection;

use super::batch;
use super::bits::Bits;
use super::block::Block;
use super::columns::{Columns, memory_id};
use super::error::IndexError;
use super::file::{IndexFile, Snapshot};
use super::merge::{Blocks, MergeInput, merge};
use super::note_rows;
use super::postings::Doc;
use super::rows::{self, SegmentRow, SegmentState};
use super::segment::Segment;
use super::store_rows::{self, StoreRow};
use super::term::{self, Space};
use super::vector_rows;
use super::view::SegmentView;

/// How many segments of one tier are merged into one of the next.
const FACTOR: usize = 8;

/// The maximum number of memories to merge in a transaction that has another purpose. It bounds
/// what a search pays for the merge that it makes due.
const SMALL_MERGE_MAX: usize = 64;

/// How many blocks one transaction writes or removes.
const BLOCKS_MAX: usize = 512;

/// Returns the segments to merge next, if any are due with at most `max` memories in total.
fn due(segments: &[SegmentRow], max: usize) -> Option<Vec<SegmentRow>> {
    let live = |row: &&SegmentRow| row.state == SegmentState::Live;
    let mostly_dead = |row: &&SegmentRow| row.dead * 2 > row.counts[0];
    let fits = |rows: &[SegmentRow]| rows.iter().map(|row| row.counts[0]).sum::<usize>() <= max;
    let mut candidates = segments.iter().filter(live).filter(mostly_dead).map(|row| vec![*row]);
    if let Some(row) = candidates.find(|row| fits(row)) {
        return Some(row);
    }
    let tier = |row: &SegmentRow| row.counts[0].max(1).ilog(FACTOR);
    let mut tiers: Vec<_> = segments.iter().filter(live).map(tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    tiers.into_iter().find_map(|wanted| {
        let same: Vec<_> =
            segments.iter().filter(live).filter(|row| tier(row) == wanted).copied().collect();
        (same.len() >= FACTOR && fits(&same)).then_some(same)
    })
}

/// Runs the merges of a store that are due and small enough for this transaction.
pub(crate) fn merge_small(connection: &Connection, store: StoreId) -> Result<(), IndexError> {
    let Some(StoreRow { num: store, .. }) = store_rows::store(connection, store)? else {
        return Ok(());
    };
    // `due` skips larger merges instead of stopping at them: they may wait for long, and every
    // batch adds another small segment.
    while let Some(sources) = due(&rows::segments(connection, store)?, SMALL_MERGE_MAX) {
        merge_now(connection, store, &sources)?;
    }
    Ok(())
}

/// Merges segments in the current transaction.
pub(crate) fn merge_now(
    connection: &Connection,
    store: i64,
    sources: &[SegmentRow],
) -> Result<(), IndexError> {
    let mut blocks = Vec::new();
    let columns = merge(inputs(connection, sources)?, |block| {
        blocks.push(block);
        Ok(())
    })?;
    let counts = columns.counts();
    if counts[0] > 0 {
        let id = rows::next_segment(connection)?;
        batch::put_segment(connection, store, id, &Segment { blocks, columns })?;
    }
    for source in sources {
        while rows::remove_segment(connection, store, source.id, usize::MAX)? {}
    }
    Ok(())
}

fn inputs<'c>(
    connection: &'c Connection,
    sources: &[SegmentRow],
) -> Result<Vec<MergeInput<StoredBlocks<'c>>>, IndexError> {
    let input = |row: &SegmentRow| {
        let mut live = Bits::all(row.counts[0]);
        live.subtract(&rows::dead(connection, row)?);
        let blocks = StoredBlocks::new(connection, row.id);
        Ok(MergeInput { blocks, columns: rows::columns(connection, row.id)?, live })
    };
    sources.iter().map(input).collect()
}

/// Reads the blocks of a segment, page by page.
struct StoredBlocks<'c> {
    connection: &'c Connection,
    segment: i64,
    /// The blocks that were read ahead, in reverse.
    ahead: Vec<Block>,
    /// The last block that was read.
    after: Option<Block>,
}

impl<'c> StoredBlocks<'c> {
    fn new(connection: &'c Connection, segment: i64) -> Self {
        Self { connection, segment, ahead: Vec::new(), after: None }
    }
}

impl Blocks for StoredBlocks<'_> {
    fn next_block(&mut self) -> Result<Option<Block>, IndexError> {
        if self.ahead.is_empty() {
            let after = self.after.as_ref();
            self.ahead = rows::blocks_after(self.connection, self.segment, after, 64)?;
            if let Some(last) = self.ahead.last() {
                self.after = Some(last.clone());
            }
            self.ahead.reverse();
        }
        Ok(self.ahead.pop())
    }
}

/// Does one step of the work that is due in a store; returns whether there was any. Only one
/// process may do so at a time.
pub(crate) fn step(file: &IndexFile, store: i64) -> Result<bool, IndexError> {
    let segments = file.read(|snapshot| rows::segments(snapshot.connection, store))?;
    if let Some(garbage) = segments.iter().find(|row| row.state != SegmentState::Live) {
        remove(file, store, garbage.id)?;
        return Ok(true);
    }
    match due(&segments, usize::MAX) {
        Some(sources) => merge_in_background(file, store, &sources).map(|()| true),
        None => Ok(false),
    }
}

/// Returns whether a store has work for [`step`].
pub(crate) fn is_due(connection: &Connection, store: i64) -> Result<bool, IndexError> {
    let segments = rows::segments(connection, store)?;
    let is_garbage = |row: &SegmentRow| row.state != SegmentState::Live;
    Ok(segments.iter().any(is_garbage) || due(&segments, usize::MAX).is_some())
}

/// Removes the index of a store.
///
/// The row of the store is removed last, and is marked as removed until then. So a process that
/// dies in between leaves no orphaned rows.
pub(crate) fn remove_store(file: &IndexFile, store: StoreId) -> Result<(), IndexError> {
    let row = file.write(|connection| {
        let row = store_rows::store(connection, store)?;
        if let Some(row) = &row {
            store_rows::put_store(connection, &row.removed())?;
        }
        Ok(row)
    })?;
    let Some(StoreRow { num, .. }) = row else { return Ok(()) };
    for segment in file.read(|snapshot| rows::segments(snapshot.connection, num))? {
        remove(file, num, segment.id)?;
    }
    while file.write(|connection| note_rows::remove_notes(connection, num, BLOCKS_MAX))? {}
    while file.write(|connection| vector_rows::remove_vectors_of(connection, num, BLOCKS_MAX))? {}
    file.write(|connection| store_rows::remove_store(connection, num))
}

fn remove(file: &IndexFile, store: i64, segment: i64) -> Result<(), IndexError> {
    while file.write(|connection| rows::remove_segment(connection, store, segment, BLOCKS_MAX))? {}
    Ok(())
}

/// Merges segments in the background, in many transactions.
fn merge_in_background(
    file: &IndexFile,
    store: i64,
    sources: &[SegmentRow],
) -> Result<(), IndexError> {
    let target = match file.write(|connection| Target::new(connection, store)) {
        Err(IndexError::Outdated) => return Ok(()),
        target => target?,
    };
    let write =
        |blocks: &mut Vec<Block>| file.write(|connection| target.add(connection, blocks.drain(..)));
    let merged = file.read(|snapshot| {
        let inputs = inputs(snapshot.connection, sources)?;
        let live = inputs.iter().map(|input| input.live.clone()).collect::<Vec<_>>();
        let mut blocks = Vec::new();
        let columns = merge(inputs, |block| {
            blocks.push(block);
            if blocks.len() >= BLOCKS_MAX { write(&mut blocks) } else { Ok(()) }
        })?;
        write(&mut blocks)?;
        Ok((columns, live))
    });
    let done = merged.and_then(|(columns, live)| {
        file.write(|connection| target.replace(connection, sources, &live, &columns))
    });
    match done {
        Ok(()) => Ok(()),
        Err(error) => {
            remove(file, store, target.id)?;
            if matches!(error, IndexError::Outdated) { Ok(()) } else { Err(error) }
        }
    }
}

/// A segment that is written in many transactions, interleaved with those of other writers.
struct Target {
    store: i64,
    id: i64,
    /// The `purged` sequence of the store when the merge began.
    purged: Sequence,
}

impl Target {
    fn new(connection: &Connection, store: i64) -> Result<Self, IndexError> {
        let purged = store_rows::purged(connection, store)?;
        // The process that removes the store has already listed its segments, and would miss this
        // one.
        if purged == StoreRow::REMOVED {
            return Err(IndexError::Outdated);
        }
        let id = rows::next_segment(connection)?;
        let row = SegmentRow::new(id, SegmentState::Unfinished, [0; 3]);
        rows::put_segment(connection, store, &row)?;
        Ok(Self { store, id, purged })
    }

    /// Fails if the segment must not be finished.
    ///
    /// The merge reads an old snapshot, so it must not bring back text that was redacted since; the
    /// store's `purged` sequence shows that. But a repeated erasure leaves the sequence unchanged,
    /// and still removes every unfinished segment. So the row of the segment must exist too:
    /// otherwise the merge would go on and publish a segment without its first blocks, and nothing
    /// would detect what is missing.
    fn check(&self, connection: &Connection) -> Result<(), IndexError> {
        let row = rows::segment(connection, self.store, self.id)?;
        let is_there = row.is_some_and(|row| row.state == SegmentState::Unfinished);
        let is_allowed = store_rows::purged(connection, self.store)? == self.purged;
        if is_there && is_allowed { Ok(()) } else { Err(IndexError::Outdated) }
    }

    fn add(
        &self,
        connection: &Connection,
        mut blocks: impl Iterator<Item = Block>,
    ) -> Result<(), IndexError> {
        self.check(connection)?;
        blocks.try_for_each(|block| rows::put_block(connection, self.id, &block))
    }

    /// Replaces the sources with the finished segment.
    fn replace(
        &self,
        connection: &Connection,
        sources: &[SegmentRow],
        live: &[Bits],
        columns: &Columns,
    ) -> Result<(), IndexError> {
        self.check(connection)?;
        replace(connection, self.store, sources, live, (self.id, columns))
    }
}

/// Replaces segments with the one that they were merged into.
fn replace(
    connection: &Connection,
    store: i64,
    sources: &[SegmentRow],
    live: &[Bits],
    (id, columns): (i64, &Columns),
) -> Result<(), IndexError> {
    let now = rows::segments(connection, store)?;
    let is_live = |id: i64| now.iter().any(|row| row.id == id && row.state == SegmentState::Live);
    if !sources.iter().all(|source| is_live(source.id)) {
        return Err(IndexError::Outdated);
    }
    let counts = columns.counts();
    if counts[0] > 0 {
        rows::put_columns(connection, id, columns)?;
        let is_foreign = sources.iter().any(|source| source.is_foreign);
        let row = SegmentRow { is_foreign, ..SegmentRow::new(id, SegmentState::Live, counts) };
        rows::put_segment(connection, store, &row)?;
        let merged = SegmentView::stored(Snapshot::uncached(connection), &row)?;
        for (source, live_before) in sources.iter().zip(live) {
            let mut died = live_before.clone();
            let now = now.iter().find(|row| row.id == source.id).ok_or(IndexError::Outdated)?;
            died.intersect(&rows::dead(connection, now)?);
            let ids = rows::column(connection, source.id, "memory_ids")?;
            for doc in died.iter() {
                mark_dead(connection, store, id, &merged, &memory_at(&ids, doc)?)?;
            }
        }
    }
    for source in sources {
        rows::put_segment(
            connection,
            store,
            &SegmentRow { state: SegmentState::Merged, ..*source },
        )?;
    }
    Ok(())
}

fn memory_at(ids: &[u8], doc: Doc) -> Result<Vec<u8>, IndexError> {
    let place = usize::try_from(doc).unwrap_or(usize::MAX);
    let id = ids.as_chunks::<16>().0.get(place).ok_or(IndexError::Damaged)?;
    Ok(term::memory(memory_id(*id)))
}

fn mark_dead(
    connection: &Connection,
    store: i64,
    segment: i64,
    view: &SegmentView<'_>,
    memory: &[u8],
) -> Result<(), IndexError> {
    for doc in view.docs_with(Space::Memories, memory)?.iter() {
        rows::put_dead(connection, store, segment, doc)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
