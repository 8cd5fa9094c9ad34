//! When memories were last read, for stores that delete unused ones.
//!
//! That a memory was read matters weeks later, when it would expire. So a read only queues a hint in
//! memory, and long-running processes write the queue from time to time. Writing on every read would
//! make readers wait for the write lock, and fail on a full disk. Hints that a crash loses make a memory
//! expire earlier by at most the interval between two writes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::backend::Reader;
use crate::model::{Memory, MemoryId, StoreId, Timestamp};

use super::Engine;

/// A read is recorded at most this often per memory, and only in stores that delete unused memories.
const TOUCH_PERIOD: Duration = Duration::from_hours(1);

/// How many hints are queued; further ones are dropped. Whoever reads this many memories within seconds
/// reads them all, and will do so again.
const USES_MAX: usize = 20_000;

/// How many hints one transaction writes, so that other writers get their turn.
const BATCH: usize = 500;

/// Reads that have not been recorded yet.
#[derive(Debug, Default)]
pub(super) struct Uses(Mutex<HashMap<(StoreId, MemoryId), Timestamp>>);

impl Uses {
    fn add(&self, store: StoreId, memory: MemoryId, at: Timestamp) {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < USES_MAX {
            uses.insert((store, memory), at);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take(&self) -> Vec<((StoreId, MemoryId), Timestamp)> {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *uses).into_iter().collect()
    }
}

impl Engine {
    /// Reads a memory and records the use. Every door reads texts through this.
    pub(super) fn reading(
        &self,
        find: impl Fn(&dyn Reader) -> Result<Memory, Error>,
    ) -> Result<Memory, Error> {
        let (memory, noted) = self.read(|reader| {
            let memory = find(reader)?;
            let noted = reader.last_use(memory.store, memory.id)?;
            Ok((memory, noted))
        })?;
        self.note_use(&memory, noted);
        Ok(memory)
    }

    /// Queues the use of a memory, if its store deletes unused memories (`noted` is `Some`) and the last
    /// recorded use is old enough.
    pub(super) fn note_use(&self, memory: &Memory, noted: Option<Timestamp>) {
        let now = self.clock.now();
        if noted.is_some_and(|noted| is_due(noted, now)) {
            self.uses.add(memory.store, memory.id, now);
        }
    }

    /// Records that a door has served the text of a memory from a copy of its own. Whether its store
    /// deletes unused memories is looked up when the queue is written.
    pub fn note_reading(&self, store: StoreId, memory: MemoryId) {
        self.uses.add(store, memory, self.clock.now());
    }

    /// Returns whether there is anything that [`write_uses`](Self::write_uses) would write.
    pub fn has_unwritten_uses(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Writes the queued uses and returns how many there were. A long-running door calls it every few
    /// seconds and when it ends; if it fails, the queue is lost.
    pub fn write_uses(&self) -> Result<usize, Error> {
        let uses = self.uses.take();
        if uses.is_empty() {
            return Ok(0);
        }
        let due = self.read(|reader| {
            let mut due = Vec::new();
            for &((store, memory), at) in &uses {
                if reader.last_use(store, memory)?.is_some_and(|noted| is_due(noted, at)) {
                    due.push((store, memory, at));
                }
            }
            Ok(due)
        })?;
        for batch in due.chunks(BATCH) {
            self.write(|ledger| {
                for &(store, memory, at) in batch {
                    ledger.writer.touch(store, memory, at)?;
                }
                Ok(())
            })?;
        }
        Ok(due.len())
    }
}

fn is_due(noted: Timestamp, now: Timestamp) -> bool {
    noted.plus(TOUCH_PERIOD) <= now
}
