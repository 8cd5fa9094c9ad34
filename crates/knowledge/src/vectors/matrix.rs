//! The vectors of a store in memory.
//!
//! Each search compares its question with every vector of the store. Reading 100,000 of them from the
//! file takes longer than a search may, comparing them takes 3 ms. So they are read once, when the first
//! search needs them, and after that only what is new; [`matrices`](super::matrices) keep them. There is no
//! approximate index: it would have to be built, kept and erased, and would save milliseconds.
//!
//! A vector that was read is used as long as the memory is the same: the segments know when each memory
//! last changed. So vectors of changed and deleted memories need not be found and removed here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use quipu_core::model::{MemoryId, Timestamp};
use quipu_vectors::quantized::Question;
use rusqlite::Connection;

use crate::index::{
    Doc, Embeddings, EncoderRow, IndexError, Lines, SegmentView, StoredPassage, StoredVectors,
    each_vectors_after,
};

/// How many rows may be garbage besides an eighth of them.
const GARBAGE_ROWS_MAX: usize = 1_000;

/// How many segments are remembered with the vectors of their memories.
const SEGMENTS_MAX: usize = 256;

/// A memory without vectors.
const NONE: u32 = u32::MAX;

/// The vectors of a store.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    /// The number of the store in the file, and that of the encoder.
    store: i64,
    encoder: i64,
    /// It holds all vectors up to this stamp.
    stamp: i64,
    dimensions: usize,
    slots: HashMap<MemoryId, Slot, RandomState>,
    slot_count: u32,
    rows: Vec<Row>,
    /// The values of all rows, one after the other.
    values: Vec<i8>,
    /// The slot of each memory of the segments that were searched.
    segments: Mutex<HashMap<i64, Arc<[u32]>>>,
}

/// A memory with vectors.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u32,
    updated_at: Timestamp,
    first_row: usize,
    row_count: usize,
}

/// A passage.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The number of its memory's slot; [`NONE`] if the memory has newer vectors.
    slot: u32,
    scale: f32,
    lines: Lines,
}

/// How similar the memories of a store are to a question.
pub(crate) struct Similarities {
    /// The best passage of each slot.
    best: Vec<Similarity>,
}

/// How similar a memory is to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Similarity {
    /// The cosine of its best passage, or of the whole memory if that is higher.
    pub(crate) cosine: f32,
    /// Its best passage.
    pub(crate) lines: Lines,
}

impl Matrix {
    /// Returns about how much memory some vectors take.
    pub(super) fn estimated_size_bytes(encoder: &EncoderRow, state: &Embeddings) -> usize {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let rows = count(state.passages).saturating_mul(encoder.dimensions + size_of::<Row>());
        let slots = count(state.memories).saturating_mul(2 * size_of::<(MemoryId, Slot)>());
        rows.saturating_add(slots)
    }

    /// Returns how much memory they take, with what is reserved.
    pub(super) fn size_bytes(&self) -> usize {
        let segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        self.rows.capacity() * size_of::<Row>()
            + self.values.capacity()
            + self.slots.capacity() * size_of::<(MemoryId, Slot)>()
            + segments.values().map(|slots| size_of_val(&**slots)).sum::<usize>()
    }

    /// Returns whether it holds everything that the file has of a store and an encoder. A search that began
    /// later may have read more already.
    pub(super) fn is_current(&self, of: (i64, i64), state: &Embeddings) -> bool {
        (self.store, self.encoder) == of && self.stamp >= state.stamp && !self.is_wasteful(state)
    }

    /// Reads what the file has and this does not.
    pub(super) fn update(
        &mut self,
        connection: &Connection,
        (store, encoder): (i64, &EncoderRow),
        state: &Embeddings,
    ) -> Result<(), IndexError> {
        if self.is_wasteful(state) {
            self.compact();
        }
        // What was deleted is only known to be gone by reading all others.
        if (self.store, self.encoder) != (store, encoder.num) || self.is_wasteful(state) {
            *self = Self { store, encoder: encoder.num, ..Self::default() };
            self.dimensions = encoder.dimensions;
            self.reserve(usize::try_from(state.passages).unwrap_or_default());
        }
        if self.stamp < state.stamp {
            let after = self.stamp;
            each_vectors_after(connection, (store, encoder), after, |vectors| self.add(vectors))?;
            self.stamp = state.stamp;
        }
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    fn is_wasteful(&self, state: &Embeddings) -> bool {
        let passages = usize::try_from(state.passages).unwrap_or(usize::MAX);
        self.rows.len() > passages.saturating_add(passages / 8).saturating_add(GARBAGE_ROWS_MAX)
    }

    /// Removes the rows of earlier versions of memories.
    fn compact(&mut self) {
        let mut kept = 0;
        let mut firsts = vec![0; usize::try_from(self.slot_count).unwrap_or_default()];
        let mut last = NONE;
        for at in 0..self.rows.len() {
            let Some(row) = self.rows.get(at).copied().filter(|row| row.slot != NONE) else {
                continue;
            };
            if let Some(first) =
                usize::try_from(row.slot).ok().and_then(|slot| firsts.get_mut(slot))
                && row.slot != last
            {
                *first = kept;
                last = row.slot;
            }
            self.rows.swap(kept, at);
            let from = at * self.dimensions;
            self.values.copy_within(from..from + self.dimensions, kept * self.dimensions);
            kept += 1;
        }
        self.rows.truncate(kept);
        self.values.truncate(kept * self.dimensions);
        for slot in self.slots.values_mut() {
            let first = usize::try_from(slot.number).ok().and_then(|slot| firsts.get(slot));
            slot.first_row = first.copied().unwrap_or_default();
        }
    }

    /// Makes room for exactly this many rows. A vector grows to twice its size otherwise, which is a lot.
    fn reserve(&mut self, rows: usize) {
        self.rows.reserve_exact(rows);
        self.values.reserve_exact(rows.saturating_mul(self.dimensions));
    }

    fn add(&mut self, mut vectors: StoredVectors<'_>) -> Result<(), IndexError> {
        let count = vectors.passages.len();
        if self.rows.len() + count > self.rows.capacity() {
            self.reserve(count.max(self.rows.len() / 16));
        }
        let next = self.slot_count;
        let known = self.slots.get(&vectors.memory);
        let number = known.map_or(next, |slot| slot.number);
        if let Some(Slot { first_row, row_count, .. }) = known {
            let old = self.rows.iter_mut().skip(*first_row).take(*row_count);
            old.for_each(|row| row.slot = NONE);
        } else {
            self.slot_count = next.checked_add(1).ok_or(IndexError::Damaged)?;
        }
        let first_row = self.rows.len();
        while let Some(passage) = vectors.passages.next()? {
            let StoredPassage { lines, scale, values } = passage;
            self.rows.push(Row { slot: number, scale, lines });
            self.values.extend(values.iter().map(|value| value.cast_signed()));
        }
        let (updated_at, row_count) = (vectors.updated_at, self.rows.len() - first_row);
        self.slots.insert(vectors.memory, Slot { number, updated_at, first_row, row_count });
        Ok(())
    }

    /// Compares a question with all vectors.
    pub(crate) fn similarities(&self, question: &Question) -> Similarities {
        let nothing = Similarity { cosine: f32::NEG_INFINITY, lines: Lines::default() };
        let mut best = vec![nothing; usize::try_from(self.slot_count).unwrap_or_default()];
        let values = self.values.chunks_exact(self.dimensions.max(1));
        for (row, values) in self.rows.iter().zip(values) {
            let cosine = question.cosine(row.scale, values);
            let best = usize::try_from(row.slot).ok().and_then(|slot| best.get_mut(slot));
            if let Some(best) = best.filter(|best| best.cosine < cosine) {
                // A whole memory is shown by the best of its passages, which come before it.
                let lines = if row.lines == Lines::WHOLE { best.lines } else { row.lines };
                *best = Similarity { cosine, lines };
            }
        }
        Similarities { best }
    }

    /// Returns the slot of each memory of a segment; [`NONE`] if it has no vectors of its present text.
    pub(crate) fn slots_of(&self, segment: &SegmentView<'_>) -> Result<Arc<[u32]>, IndexError> {
        let segments = || self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = segment.id().and_then(|id| segments().get(&id).cloned()) {
            return Ok(known);
        }
        let mut slots = Vec::new();
        segment.each_memory(|memory, updated_at| {
            let slot = self.slots.get(&memory).filter(|slot| slot.updated_at == updated_at);
            slots.push(slot.map_or(NONE, |slot| slot.number));
        })?;
        let slots: Arc<[u32]> = slots.into();
        if let Some(id) = segment.id() {
            let mut segments = segments();
            // Segments that were merged are never asked for again.
            if segments.len() >= SEGMENTS_MAX {
                segments.clear();
            }
            segments.insert(id, Arc::clone(&slots));
        }
        Ok(slots)
    }
}

impl Similarities {
    /// Returns how similar a document is, given the slots of its segment; `None` if it has no vectors.
    pub(crate) fn of(&self, slots: &[u32], doc: Doc) -> Option<Similarity> {
        let slot = *slots.get(usize::try_from(doc).ok()?)?;
        let best = self.best.get(usize::try_from(slot).ok()?).copied();
        // A memory that the encoder has rejected has a slot without rows.
        best.filter(|best| best.cosine > f32::NEG_INFINITY)
    }
}
