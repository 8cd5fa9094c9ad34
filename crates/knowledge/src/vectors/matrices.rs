//! The vectors of the stores that were searched last.
//!
//! They are given back when there is no more room for those of another store, and when no search has needed
//! them for a while.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use quipu_core::model::StoreId;

use super::matrix::Matrix;
use crate::index::{EncoderRow, IndexError, StoreView, embeddings};

/// The maximum size of all vectors in memory.
const SIZE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// How long vectors are kept that no search needs.
const IDLE_MAX: Duration = Duration::from_mins(15);

/// The vectors of the stores that were searched last.
#[derive(Debug)]
pub(crate) struct Matrices {
    held: Mutex<Held>,
    size_bytes_max: AtomicUsize,
}

#[derive(Debug, Default)]
struct Held {
    stores: HashMap<StoreId, HeldStore>,
    /// How much memory they take together.
    size_bytes: usize,
    uses_count: u64,
}

/// The vectors of a store.
#[derive(Debug)]
struct HeldStore {
    matrix: Arc<RwLock<Matrix>>,
    size_bytes: usize,
    /// The number of the use that was the last one, and its time.
    last_use: u64,
    used_at: Instant,
}

/// What is available of the vectors of a store.
pub(crate) enum Available {
    /// These.
    Vectors(Arc<RwLock<Matrix>>),
    /// None were made yet.
    Nothing,
    /// There are too many to be held in memory.
    TooMany,
}

impl Default for Matrices {
    fn default() -> Self {
        Self { held: Mutex::default(), size_bytes_max: AtomicUsize::new(SIZE_BYTES_MAX) }
    }
}

impl Matrices {
    /// Returns the vectors of a store that an encoder has made.
    pub(crate) fn of(
        &self,
        view: &StoreView<'_>,
        encoder: &EncoderRow,
    ) -> Result<Available, IndexError> {
        let Some((connection, num)) = view.stored() else { return Ok(Available::Nothing) };
        let state = embeddings(connection, num)?.filter(|state| state.encoder == encoder.num);
        let Some(state) = state else { return Ok(Available::Nothing) };
        let size_bytes = Matrix::estimated_size_bytes(encoder, &state);
        // Garbage and room to grow take a fifth of the memory at most.
        if size_bytes > self.size_bytes_max() / 5 * 4 {
            return Ok(Available::TooMany);
        }
        let matrix = self.held(view.store, size_bytes);
        let is_current = |matrix: &Matrix| matrix.is_current((num, encoder.num), &state);
        if !is_current(&matrix.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut locked = matrix.write().unwrap_or_else(PoisonError::into_inner);
            if !is_current(&locked) {
                locked.update(connection, (num, encoder), &state)?;
            }
            let size_bytes = locked.size_bytes();
            drop(locked);
            self.resize(view.store, size_bytes);
        }
        Ok(Available::Vectors(matrix))
    }

    /// Forgets the vectors of a store.
    pub(crate) fn forget(&self, store: StoreId) {
        self.all().remove(store);
    }

    /// Forgets the vectors that no search has needed for a while.
    pub(crate) fn forget_idle(&self) {
        let mut held = self.all();
        let idle = held.stores.iter().filter(|(_, held)| held.used_at.elapsed() > IDLE_MAX);
        let idle: Vec<_> = idle.map(|(store, _)| *store).collect();
        for store in idle {
            held.remove(store);
        }
    }

    /// Returns how much memory the vectors take.
    pub(crate) fn size_bytes(&self) -> usize {
        self.all().size_bytes
    }

    /// Changes how much memory they may take.
    pub(crate) fn limit(&self, size_bytes_max: usize) {
        self.size_bytes_max.store(size_bytes_max, Ordering::Relaxed);
    }

    fn size_bytes_max(&self) -> usize {
        self.size_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns the vectors of a store, in whatever state, and makes room for them.
    fn held(&self, store: StoreId, size_bytes: usize) -> Arc<RwLock<Matrix>> {
        let mut held = self.all();
        held.uses_count += 1;
        let (last_use, used_at) = (held.uses_count, Instant::now());
        let new = || HeldStore { matrix: Arc::default(), size_bytes: 0, last_use, used_at };
        let known = held.stores.entry(store).or_insert_with(new);
        (known.last_use, known.used_at) = (last_use, used_at);
        let (matrix, known_size) = (Arc::clone(&known.matrix), known.size_bytes);
        held.resize(store, size_bytes.max(known_size), self.size_bytes_max());
        matrix
    }

    fn resize(&self, store: StoreId, size_bytes: usize) {
        self.all().resize(store, size_bytes, self.size_bytes_max());
    }

    fn all(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Notes the size of a store, and forgets those that were used before all others until there is room.
    fn resize(&mut self, store: StoreId, size_bytes: usize, size_bytes_max: usize) {
        // Another search may just have forgotten it.
        let Some(known) = self.stores.get_mut(&store) else { return };
        let before = std::mem::replace(&mut known.size_bytes, size_bytes);
        self.size_bytes = self.size_bytes - before + size_bytes;
        while self.size_bytes > size_bytes_max {
            let others = self.stores.iter().filter(|(other, _)| **other != store);
            let oldest = others.min_by_key(|(_, held)| held.last_use);
            let Some(oldest) = oldest.map(|(store, _)| *store) else { return };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, store: StoreId) {
        self.size_bytes -= self.stores.remove(&store).map_or(0, |held| held.size_bytes);
    }
}
