//! Batches: changes on their way into the index.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_core::backend::Sequence;
use quipu_core::model::{MemoryId, StoreId, Timestamp};
use rusqlite::Connection;

use super::error::IndexError;
use super::file::Snapshot;
use super::note_rows;
use super::postings::Doc;
use super::rows::{self, SegmentRow, SegmentState};
use super::segment::{Documents, Segment, SegmentBuilder, Totals};
use super::store_rows::{self, Cursor, StoreRow};
use super::term::{self, Space};
use super::view::{Overlay, SegmentView};

/// What is indexed of some memories of a store, all read in one state of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    segment: Arc<Segment>,
    notes: Vec<BatchNote>,
    removed: Vec<MemoryId>,
}

#[derive(Clone, Debug)]
struct BatchNote {
    memory: MemoryId,
    totals: Totals,
    card: Arc<[u8]>,
}

/// Makes a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchBuilder {
    segment: SegmentBuilder,
    notes: Vec<BatchNote>,
    removed: Vec<MemoryId>,
}

impl BatchBuilder {
    /// Adds a memory that lives. Each memory comes once.
    pub(crate) fn add(&mut self, documents: Documents, card: Vec<u8>) {
        let (memory, totals) = (documents.row.id, documents.totals());
        self.segment.add(documents);
        self.notes.push(BatchNote { memory, totals, card: card.into() });
    }

    /// Adds a memory that was deleted.
    pub(crate) fn remove(&mut self, memory: MemoryId) {
        self.removed.push(memory);
    }

    pub(crate) fn finish(self) -> Batch {
        Batch { segment: Arc::new(self.segment.finish()), notes: self.notes, removed: self.removed }
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It is in the index.
    Done,
    /// The index has changed since, so the batch was made of the wrong state.
    Outdated,
}

impl Batch {
    /// Returns the batch as something to search before it is in the file.
    pub(crate) fn overlay(&self, reached: Timestamp) -> Overlay {
        let mut totals = Totals::default();
        self.notes.iter().for_each(|note| totals.add(&note.totals));
        let kept = self.notes.iter().map(|note| (note.memory, Some(Arc::clone(&note.card))));
        let removed = self.removed.iter().map(|memory| (*memory, None));
        let cards: HashMap<_, _> = kept.chain(removed).collect();
        Overlay { reached, segment: Arc::clone(&self.segment), totals, cards }
    }

    /// Puts the batch into the index of a store, which it brings from one change to another.
    ///
    /// Whoever makes a batch reads the memories before it can know whether it may write. So the index
    /// must be where it was then, and nothing may have been erased since the memories were read, at
    /// `read_at`, that the batch could bring back.
    pub(crate) fn apply(
        &self,
        connection: &Connection,
        store: StoreId,
        (from, to): (Cursor, Cursor),
        read_at: Sequence,
    ) -> Result<Applied, IndexError> {
        // Without a row nobody knows what was erased since the memories were read: the store may have
        // been removed, or the whole file. Adding the row here would bring that back.
        let Some(mut row) = store_rows::store(connection, store)? else {
            return Ok(Applied::Outdated);
        };
        if row.cursor != from || read_at < row.purged {
            return Ok(Applied::Outdated);
        }
        self.replace_old(connection, &mut row)?;
        if !self.notes.is_empty() {
            let id = rows::next_segment(connection)?;
            put_segment(connection, row.num, id, &self.segment)?;
        }
        for BatchNote { memory, totals, card } in &self.notes {
            note_rows::put_note(connection, row.num, *memory, totals, card)?;
            row.totals.add(totals);
        }
        row.cursor = to;
        store_rows::put_store(connection, &row)?;
        Ok(Applied::Done)
    }

    /// Marks what the index has of the batch's memories as dead.
    fn replace_old(&self, connection: &Connection, row: &mut StoreRow) -> Result<(), IndexError> {
        let notes = self.notes.iter().map(|note| note.memory);
        let mut segments = None;
        for memory in notes.chain(self.removed.iter().copied()) {
            let Some(old) = note_rows::note(connection, row.num, memory)? else { continue };
            row.totals.subtract(&old.totals);
            let segments = match &mut segments {
                Some(segments) => segments,
                none => none.insert(live_segments(connection, row.num)?),
            };
            let term = term::memory(memory);
            for (id, view) in segments {
                for doc in view.docs_with(Space::Memories, &term)?.iter() {
                    kill(connection, row.num, *id, doc, view)?;
                }
            }
            note_rows::remove_note(connection, row.num, memory)?;
        }
        Ok(())
    }
}

fn kill(
    connection: &Connection,
    store: i64,
    segment: i64,
    doc: Doc,
    view: &mut SegmentView<'_>,
) -> Result<(), IndexError> {
    view.kill(doc);
    rows::put_dead(connection, store, segment, doc)
}

/// Returns the segments of a store that are searched.
pub(crate) fn live_segments(
    connection: &Connection,
    store: i64,
) -> Result<Vec<(i64, SegmentView<'_>)>, IndexError> {
    let mut views = Vec::new();
    for row in rows::segments(connection, store)? {
        if row.state == SegmentState::Live {
            views.push((row.id, SegmentView::stored(Snapshot::uncached(connection), &row)?));
        }
    }
    Ok(views)
}

/// Adds a segment that is searched from now on.
pub(crate) fn put_segment(
    connection: &Connection,
    store: i64,
    id: i64,
    segment: &Segment,
) -> Result<(), IndexError> {
    for block in &segment.blocks {
        rows::put_block(connection, id, block)?;
    }
    rows::put_columns(connection, id, &segment.columns)?;
    let (counts, is_foreign) = (segment.columns.counts(), segment.is_foreign());
    let row = SegmentRow { is_foreign, ..SegmentRow::new(id, SegmentState::Live, counts) };
    rows::put_segment(connection, store, &row)
}
