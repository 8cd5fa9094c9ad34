//! The vectors of a store in memory.
//!
//! Each search compares its question with every vector of the store. Reading 100,000 of them from the
//! file takes longer than a search may, comparing them takes 3 ms. So they are read once, when the first
//! search needs them, and after that only what is new. There is no approximate index: it would have to
//! be built, kept and erased, and would save milliseconds.
//!
//! A vector that was read is used as long as the memory is the same: the segments know when each memory
//! last changed. So vectors of changed and deleted memories need not be found and removed here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use foldhash::fast::RandomState;
use quipu_core::model::{MemoryId, StoreId, Timestamp};
use quipu_vectors::quantized::Question;

use crate::index::{
    Doc, EncoderRow, IndexError, Lines, SegmentView, StoreView, StoredPassage, StoredVectors,
    each_vectors_after, embeddings, encoder,
};

/// The maximum size of all vectors in memory. A store with more is searched by words alone: that is
/// about 1,200,000 passages of 384 dimensions.
const SIZE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// How many segments are remembered with the vectors of their memories.
const SEGMENTS_MAX: usize = 256;

/// A memory without vectors.
const NONE: u32 = u32::MAX;

/// The vectors of the stores that were searched last.
#[derive(Debug, Default)]
pub(crate) struct Matrices(Mutex<Vec<Held>>);

/// The vectors of a store in memory.
#[derive(Debug)]
struct Held {
    store: StoreId,
    matrix: Arc<RwLock<Matrix>>,
    size_bytes: usize,
}

/// What is available of the vectors of a store.
pub(crate) enum Available {
    /// These.
    Vectors(Arc<RwLock<Matrix>>),
    /// None were made yet.
    Nothing,
    /// They were made by another encoder.
    OfAnother,
    /// There are too many to be held in memory.
    TooMany,
}

impl Matrices {
    /// Returns the vectors of a store that were made by the encoder with this identity and length of vectors.
    pub(crate) fn of(
        &self,
        view: &StoreView<'_>,
        (identity, dimensions): (&str, usize),
    ) -> Result<Available, IndexError> {
        let Some((connection, num)) = view.stored() else { return Ok(Available::Nothing) };
        let Some(row) = encoder(connection)? else { return Ok(Available::Nothing) };
        // A server may have got another model by the same name.
        if row.identity != identity || row.dimensions != dimensions {
            return Ok(Available::OfAnother);
        }
        let state = embeddings(connection, num)?.filter(|state| state.encoder == row.num);
        let Some(state) = state else { return Ok(Available::Nothing) };
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let passages = count(state.passages);
        let size_bytes = passages
            .saturating_mul(row.dimensions + size_of::<Row>())
            .saturating_add(count(state.memories).saturating_mul(2 * size_of::<Slot>()));
        if size_bytes > SIZE_BYTES_MAX {
            return Ok(Available::TooMany);
        }
        let matrix = self.held(view.store, size_bytes);
        let is_current = |matrix: &Matrix| {
            let is_same = matrix.encoder == row.num && matrix.store == num;
            // A search that began later may have read more already.
            let has_garbage = matrix.rows.len() / 2 > passages + 1_000;
            (is_same && !has_garbage, is_same && matrix.stamp >= state.stamp)
        };
        let (_, has_all) = is_current(&matrix.read().unwrap_or_else(PoisonError::into_inner));
        if has_all {
            return Ok(Available::Vectors(matrix));
        }
        let mut locked = matrix.write().unwrap_or_else(PoisonError::into_inner);
        let (is_usable, has_all) = is_current(&locked);
        if !is_usable {
            *locked = Matrix { store: num, encoder: row.num, ..Matrix::default() };
            locked.reserve(passages, &row);
        }
        if !has_all || !is_usable {
            let after = locked.stamp;
            each_vectors_after(connection, (num, &row), after, |vectors| locked.add(vectors))?;
            locked.dimensions = row.dimensions;
            locked.stamp = state.stamp;
            locked.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        drop(locked);
        Ok(Available::Vectors(matrix))
    }

    /// Forgets the vectors of a store.
    pub(crate) fn forget(&self, store: StoreId) {
        self.all().retain(|held| held.store != store);
    }

    /// Returns the vectors of a store, in whatever state, and makes room for them.
    fn held(&self, store: StoreId, size_bytes: usize) -> Arc<RwLock<Matrix>> {
        let mut all = self.all();
        let known = all.iter().position(|held| held.store == store);
        let mut held = match known {
            Some(place) => all.remove(place),
            None => Held { store, matrix: Arc::default(), size_bytes: 0 },
        };
        held.size_bytes = size_bytes;
        let matrix = Arc::clone(&held.matrix);
        // The one that was used last is at the end.
        all.push(held);
        let size_bytes = |all: &[Held]| all.iter().map(|held| held.size_bytes).sum::<usize>();
        while size_bytes(&all) > SIZE_BYTES_MAX {
            all.remove(0);
        }
        matrix
    }

    fn all(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    fn reserve(&mut self, passages: usize, encoder: &EncoderRow) {
        self.rows.reserve_exact(passages);
        self.values.reserve_exact(passages.saturating_mul(encoder.dimensions));
    }

    fn add(&mut self, mut vectors: StoredVectors<'_>) -> Result<(), IndexError> {
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
