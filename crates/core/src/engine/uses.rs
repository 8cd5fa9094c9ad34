//! Which memories were read, for stores that delete what nobody uses.
//!
//! That a memory was read is a hint for its expiry, weeks later. So a read only keeps the hint in
//! memory, and whoever runs for long writes the hints down now and then: a read must neither wait for
//! the write lock nor fail because the disk is full. Hints that a crash loses cost a memory at most
//! the time since they were last written.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::backend::Reader;
use crate::model::{Memory, MemoryId, StoreId, Timestamp};

use super::Engine;

/// A memory's reading is noted at most this often, and only in stores that expire.
const TOUCH_PERIOD: Duration = Duration::from_hours(1);

/// More readings than this are not kept. Whoever reads so many memories within a few seconds reads
/// them all, and will do so again.
const USES_MAX: usize = 20_000;

/// How many readings one transaction writes, so that other writers get their turn.
const BATCH: usize = 500;

/// Readings that are not written down yet.
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
    /// Reads a memory and notes that it was used. Every door reads texts through this.
    pub(super) fn reading(
        &self,
        find: impl Fn(&dyn Reader) -> Result<Memory, Error>,
    ) -> Result<Memory, Error> {
        let (memory, noted) = self.read(|reader| {
            let memory = find(reader)?;
            let noted = reader.noted_use(memory.store, memory.id)?;
            Ok((memory, noted))
        })?;
        self.note_use(&memory, noted);
        Ok(memory)
    }

    /// Notes that a memory was read, if its store deletes unused memories and the last use was
    /// `noted` long ago.
    pub(super) fn note_use(&self, memory: &Memory, noted: Option<Timestamp>) {
        let now = self.clock.now();
        if noted.is_some_and(|noted| is_due(noted, now)) {
            self.uses.add(memory.store, memory.id, now);
        }
    }

    /// Notes that the text of a memory was handed to a reader, by a door that keeps a copy of it.
    /// Whether that matters in its store is looked up when it is written down.
    pub fn note_reading(&self, store: StoreId, memory: MemoryId) {
        self.uses.add(store, memory, self.clock.now());
    }

    /// Returns whether there is anything that [`write_uses`](Self::write_uses) would write.
    pub fn has_unwritten_uses(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Writes down which memories were read since this was last called, and returns how many. A
    /// door calls it every few seconds and when it ends; if it fails, the hints are lost.
    pub fn write_uses(&self) -> Result<usize, Error> {
        let uses = self.uses.take();
        if uses.is_empty() {
            return Ok(0);
        }
        let due = self.read(|reader| {
            let mut due = Vec::new();
            for &((store, memory), at) in &uses {
                if reader.noted_use(store, memory)?.is_some_and(|noted| is_due(noted, at)) {
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
