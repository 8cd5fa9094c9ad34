//! Batches: changes to be applied to the index.

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
use super::vector_rows;
use super::view::{Overlay, SegmentView};

/// The indexed form of some memories of a store, all read in one snapshot.
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

/// Builds a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchBuilder {
    segment: SegmentBuilder,
    notes: Vec<BatchNote>,
    removed: Vec<MemoryId>,
}

impl BatchBuilder {
    /// Adds a live memory; each memory may be added once.
    pub(crate) fn add(&mut self, documents: Documents, card: Vec<u8>) {
        let (memory, totals) = (documents.row.id, documents.totals());
        self.segment.add(documents);
        self.notes.push(BatchNote { memory, totals, card: card.into() });
    }

    /// Adds a deleted memory.
    pub(crate) fn remove(&mut self, memory: MemoryId) {
        self.removed.push(memory);
    }

    pub(crate) fn finish(self) -> Batch {
        Batch { segment: Arc::new(self.segment.finish()), notes: self.notes, removed: self.removed }
    }
}

/// The outcome of applying a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It was committed to the index.
    Done,
    /// The index has changed since the memories were read, so the batch must be built again.
    Outdated,
}

impl Batch {
    /// Returns the batch as an overlay, to be searched without being written.
    pub(crate) fn overlay(&self, reached: Timestamp) -> Overlay {
        let mut totals = Totals::default();
        self.notes.iter().for_each(|note| totals.add(&note.totals));
        let kept = self.notes.iter().map(|note| (note.memory, Some(Arc::clone(&note.card))));
        let removed = self.removed.iter().map(|memory| (*memory, None));
        let cards: HashMap<_, _> = kept.chain(removed).collect();
        Overlay { reached, segment: Arc::clone(&self.segment), totals, cards }
    }

    /// Applies the batch to the index of a store, and advances the cursor.
    ///
    /// The memories of a batch are read before the write lock is acquired. So the cursor must still
    /// be at `from`, and nothing may have been redacted since the memories were read, at `read_at`:
    /// the batch could bring redacted text back.
    pub(crate) fn apply(
        &self,
        connection: &Connection,
        store: StoreId,
        (from, to): (Cursor, Cursor),
        read_at: Sequence,
    ) -> Result<Applied, IndexError> {
        // Without a row there is no record of what was redacted since the memories were read: the
        // store may have been removed, or the whole file. Adding the row here would bring the text
        // back.
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

    /// Marks the indexed documents of the batch's memories as dead, and removes their vectors.
    fn replace_old(&self, connection: &Connection, row: &mut StoreRow) -> Result<(), IndexError> {
        let notes = self.notes.iter().map(|note| note.memory);
        let memories = notes.chain(self.removed.iter().copied());
        vector_rows::remove_vectors(connection, row.num, memories.clone())?;
        let mut segments = None;
        for memory in memories {
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

/// Returns the live segments of a store.
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

/// Adds a live segment.
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
