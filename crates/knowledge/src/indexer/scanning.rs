//! Indexing a store as it was.
//!
//! The past has no file, so each call indexes all of it in memory. What the indexer does for a present
//! whose file cannot be written does not fit: it lists the versions since the last time, of which there
//! was none, and gives up beyond a thousand memories, because the file may be writable later.

use std::path::Path;

use quipu_core::model::{Memory, MemoryId, StoreId};
use quipu_core::{Engine, Error};

use super::{Attempt, CaughtUp, Indexer};
use crate::index::Cursor;

/// A directory that cannot exist, so that nothing is ever stored in it.
const NOWHERE: &str = "/dev/null/quipu";

/// How much text is indexed: enough for 10,000 notes of usual length.
const SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Indexer {
    /// Returns an indexer for an engine of the past, which stores nothing.
    pub(crate) fn of_past(engine: Engine) -> Self {
        Self { is_of_past: true, ..Self::new(engine, Path::new(NOWHERE)) }
    }

    /// Indexes a store in memory; of a store that is too large, the first part, in the order of the paths.
    pub(super) fn scan(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        let memories = self.engine.tree(store)?;
        let (ids, size_bytes) = fitting(&memories);
        let (read_at, batch) = self.batch_of(store, &ids, Vec::new())?;
        let scanned = attempt.in_memory(Cursor::START, size_bytes, || batch.overlay(read_at.at));
        match scanned {
            CaughtUp::InMemory(from, overlay) if ids.len() < memories.len() => {
                Ok(CaughtUp::PartlyInMemory(from, overlay))
            }
            CaughtUp::Stored
            | CaughtUp::Followed
            | CaughtUp::InMemory(..)
            | CaughtUp::PartlyInMemory(..)
            | CaughtUp::Behind => Ok(scanned),
        }
    }
}

/// Returns the first memories whose texts fit into memory together, and the size of these texts.
fn fitting(memories: &[Memory]) -> (Vec<MemoryId>, u64) {
    let (mut ids, mut total_bytes) = (Vec::new(), 0);
    for memory in memories {
        if total_bytes + memory.size_bytes > SIZE_BYTES_MAX {
            break;
        }
        total_bytes += memory.size_bytes;
        ids.push(memory.id);
    }
    (ids, total_bytes)
}
