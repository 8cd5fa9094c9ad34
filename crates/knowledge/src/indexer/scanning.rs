//! Indexing a store as it was.
//!
//! The past has no file, so each call indexes all of it in memory. What the indexer does for a present
//! whose file cannot be written does not fit: it lists the versions since the last time, of which there
//! was none, and gives up beyond a thousand memories, because the file may be writable later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_core::model::{Memory, MemoryId, StoreId};
use quipu_core::{Engine, Error, ErrorKind};

use super::{Attempt, CaughtUp, Indexer};
use crate::index::Cursor;

/// A directory that cannot exist, so that nothing is ever stored in it.
const NOWHERE: &str = "/dev/null/quipu";

/// How much text is indexed: enough for 10,000 notes of usual length.
const SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How many calls index a past at once. Each holds an index of [`SIZE_BYTES_MAX`] of text in memory, and
/// a server runs as many calls as it has readers.
const SCANS_MAX: usize = 8;

/// The calls that are indexing a past of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scans(Arc<AtomicUsize>);

impl Scans {
    /// Counts a call until the value is dropped; refuses one too many. It does not wait: whoever waits holds
    /// a thread that others need to read the present.
    fn begin(&self) -> Result<Scan<'_>, Error> {
        let scan = Scan(&self.0);
        if self.0.fetch_add(1, Ordering::Relaxed) < SCANS_MAX {
            return Ok(scan);
        }
        Err(Error::new(ErrorKind::StorageBusy, "too many searches in the past at once")
            .with_hint("try again in a moment; reading by path works meanwhile"))
    }
}

/// One call that is counted.
pub(super) struct Scan<'s>(&'s AtomicUsize);

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Indexer {
    /// Returns an indexer for an engine of the past, which stores nothing.
    pub(crate) fn of_past(&self, engine: Engine) -> Self {
        let scans = self.scans.clone();
        Self { is_of_past: true, scans, ..Self::new(engine, Path::new(NOWHERE)) }
    }

    /// Begins a call, which is limited if it is about the past.
    pub(super) fn begin(&self) -> Result<Option<Scan<'_>>, Error> {
        self.is_of_past.then(|| self.scans.begin()).transpose()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_too_many_is_refused_until_another_ends() {
        let scans = Scans::default();
        let mut running: Vec<_> = (0..SCANS_MAX).map(|_| scans.begin().unwrap()).collect();
        let other = scans.clone();
        for _ in 0..2 {
            assert_eq!(*other.begin().err().unwrap().kind(), ErrorKind::StorageBusy);
        }
        running.pop();
        let _again = other.begin().unwrap();
        assert!(scans.begin().is_err());
    }
}
