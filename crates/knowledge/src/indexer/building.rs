//! Building the index of a store by comparing every memory.
//!
//! This is needed when the feed does not reach back to the cursor of the index, whether the store
//! is new to the index or was not searched for long. Every memory is compared with its row in the
//! index, so only differences are indexed, and a build that was killed continues where it stopped.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Bound;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::{MemoryQuery, Reader};
use quipu_core::model::{Directory, MemoryId, StoreId, VersionId, View};
use quipu_core::{Error, ErrorKind};

use super::{ATTEMPTS_MAX, Attempt, CaughtUp, Indexer, newest, read_memories};
use crate::card::Card;
use crate::index::{
    Applied, Batch, BatchBuilder, Cursor, IndexError, each_note, is_file_or_missing, note,
    store_row,
};

/// Limits of one batch, in memories and in bytes of text: a batch is held in memory as a whole.
const BATCH_MEMORIES_MAX: usize = 4_096;
const BATCH_SIZE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The same limit for changed memories. Their sizes are not known in advance, so each may have the
/// maximum size of a memory.
const FEED_BATCH_MEMORIES_MAX: usize = 1_000;

/// How many memories are listed per page.
const PAGE: usize = 1_000;

/// How long to wait for another process that builds, and how often to poll.
const TIMEOUT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// The outcome of locking for long-running work.
pub(super) enum Lock {
    /// This process holds the lock until the value is dropped.
    Acquired(Option<File>),
    /// Another process holds it.
    Contended,
}

/// A memory and the size of its text in bytes.
type MemorySize = (MemoryId, u64);

/// A listed memory.
struct Head {
    memory: MemoryId,
    version: VersionId,
    size_bytes: u64,
}

impl Indexer {
    /// Brings the index of a store up to date. Only one process builds at a time; others wait.
    pub(super) fn build(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        if attempt.is_blocked() {
            return self.build_in_memory(store, attempt);
        }
        let deadline = Instant::now() + TIMEOUT;
        // The holder of the lock may be building another store, which may take long.
        let mut is_large = false;
        loop {
            if let Lock::Acquired(_lock) = self.try_lock() {
                let _turn = self.turn.build();
                return self.build_alone(store, attempt);
            }
            if !is_large {
                match self.build_in_memory(store, attempt)? {
                    CaughtUp::PartlyInMemory(..) | CaughtUp::Behind => is_large = true,
                    built @ (CaughtUp::Stored | CaughtUp::Followed | CaughtUp::InMemory(..)) => {
                        return Ok(built);
                    }
                }
            }
            if self.is_reached(store)? {
                return Ok(CaughtUp::Stored);
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    ErrorKind::StorageBusy,
                    "another process is still building the search index of this store",
                )
                .with_hint("try again in a while; reading by path works meanwhile"));
            }
            (attempt.progress)(0.0)?;
            thread::sleep(PAUSE);
        }
    }

    /// Acquires the lock for long-running work, unless another process holds it.
    pub(super) fn try_lock(&self) -> Lock {
        try_lock(&self.lock)
    }

    fn build_alone(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let from = self.registered(store, attempt)?;
            if attempt.is_blocked() {
                return self.build_in_memory(store, attempt);
            }
            match self.build_from(store, from, attempt) {
                Ok(Applied::Done) => return Ok(CaughtUp::Stored),
                Ok(Applied::Outdated) | Err(IndexError::Damaged) => {}
                Err(IndexError::NotWritable(_)) => {
                    attempt.mark_blocked();
                    return self.build_in_memory(store, attempt);
                }
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    fn build_from(
        &self,
        store: StoreId,
        from: Cursor,
        attempt: &Attempt<'_>,
    ) -> Result<Applied, IndexError> {
        let (to, heads) =
            self.engine.read(|reader| Ok((newest(reader)?, heads(reader, store)?)))?;
        let (outdated, gone) = self.compare(store, &heads)?;
        let batches = batches(&outdated);
        self.apply_batches(store, (&batches, gone), (from, to), attempt)
    }

    /// Indexes changed memories, and advances the cursor.
    pub(super) fn apply_changes(
        &self,
        store: StoreId,
        memories: &[MemoryId],
        cursors: (Cursor, Cursor),
        attempt: &Attempt<'_>,
    ) -> Result<Applied, IndexError> {
        let batches: Vec<_> =
            memories.chunks(FEED_BATCH_MEMORIES_MAX).map(<[MemoryId]>::to_vec).collect();
        self.apply_batches(store, (&batches, Vec::new()), cursors, attempt)
    }

    /// Indexes memories batch by batch, and advances the cursor at the end.
    ///
    /// Each batch is read in a snapshot at `to` or later, so nothing up to `to` is missing; what
    /// changes during the build is indexed again by the next search. Advancing the cursor earlier
    /// would lose the remaining batches if the process died. Holding one snapshot for the whole
    /// build would be simpler, but would keep the backend from reclaiming space for minutes.
    fn apply_batches(
        &self,
        store: StoreId,
        (batches, gone): (&[Vec<MemoryId>], Vec<MemoryId>),
        (from, to): (Cursor, Cursor),
        attempt: &Attempt<'_>,
    ) -> Result<Applied, IndexError> {
        let all: usize = batches.iter().map(Vec::len).sum();
        let mut done = 0;
        for ids in batches {
            (attempt.progress)(share(done, all))?;
            done += ids.len();
            let (read_at, batch) = self.batch_of(store, ids, Vec::new())?;
            let applied = self.file.write(|connection| {
                batch.apply(connection, store, (from, from), read_at.sequence)
            })?;
            if applied == Applied::Outdated {
                return Ok(applied);
            }
        }
        let mut last = BatchBuilder::default();
        for memory in gone {
            last.remove(memory);
        }
        let last = last.finish();
        self.file.write(|connection| last.apply(connection, store, (from, to), to.sequence))
    }

    /// Returns everything that the index lacks as an overlay, if it fits into one batch.
    fn build_in_memory(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        let from = self.cursor(store)?;
        let (to, heads) =
            self.engine.read(|reader| Ok((newest(reader)?, heads(reader, store)?)))?;
        let (outdated, gone) = self.compare(store, &heads).map_err(IndexError::into_error)?;
        let size_bytes = outdated.iter().map(|(_, size_bytes)| size_bytes).sum();
        let in_memory =
            |batch: &Batch| attempt.in_memory(from, size_bytes, || batch.overlay(to.at));
        match batches(&outdated).as_slice() {
            [] => Ok(in_memory(&self.batch(&[], gone))),
            [ids] => Ok(in_memory(&self.batch_of(store, ids, gone)?.1)),
            _ => Ok(CaughtUp::Behind),
        }
    }

    pub(super) fn batch_of(
        &self,
        store: StoreId,
        ids: &[MemoryId],
        mut gone: Vec<MemoryId>,
    ) -> Result<(Cursor, Batch), Error> {
        let (read_at, (memories, removed)) =
            self.engine.read(|reader| Ok((newest(reader)?, read_memories(reader, store, ids)?)))?;
        gone.extend(removed);
        Ok((read_at, self.batch(&memories, gone)))
    }

    /// Returns the memories that are missing or outdated in the index, and those in the index that
    /// no longer exist.
    fn compare(
        &self,
        store: StoreId,
        heads: &[Head],
    ) -> Result<(Vec<MemorySize>, Vec<MemoryId>), IndexError> {
        self.file.read(|snapshot| {
            let all = || heads.iter().map(|head| (head.memory, head.size_bytes)).collect();
            let row = store_row(snapshot.connection, store)?.filter(|row| !row.is_removed());
            let Some(row) = row else { return Ok((all(), Vec::new())) };
            let mut outdated = Vec::new();
            for head in heads {
                let known = note(snapshot.connection, row.num, head.memory)?;
                let known = known.map(|note| Card::read_row(store, head.memory, &note.card));
                if known.transpose()?.is_none_or(|card| card.version != head.version) {
                    outdated.push((head.memory, head.size_bytes));
                }
            }
            let alive: HashSet<_> = heads.iter().map(|head| head.memory).collect();
            let mut gone = Vec::new();
            each_note(snapshot.connection, row.num, |memory, _| {
                if !alive.contains(&memory) {
                    gone.push(memory);
                }
                Ok(true)
            })?;
            Ok((outdated, gone))
        })
    }
}

/// Locks a file, unless another process holds the lock.
pub(super) fn try_lock(path: &Path) -> Lock {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // If the lock file cannot be created, neither can an index, so there is nothing to protect. A
    // named pipe in its place would block until somebody opens its other end.
    if !is_file_or_missing(path) {
        return Lock::Acquired(None);
    }
    let Ok(file) = options.open(path) else { return Lock::Acquired(None) };
    match file.try_lock() {
        Ok(()) => Lock::Acquired(Some(file)),
        Err(_) => Lock::Contended,
    }
}

/// Lists every memory of a store.
fn heads(reader: &dyn Reader, store: StoreId) -> Result<Vec<Head>, Error> {
    let mut heads = Vec::new();
    let mut start = Bound::Unbounded;
    loop {
        let query =
            MemoryQuery { directory: Directory::root(), start, limit: PAGE, view: View::Basic };
        let memories = reader.memories(store, &query)?;
        let Some(last) = memories.last() else { return Ok(heads) };
        start = Bound::Excluded(last.path.as_str().to_owned());
        heads.extend(memories.into_iter().map(|memory| Head {
            memory: memory.id,
            version: memory.version,
            size_bytes: memory.size_bytes,
        }));
    }
}

/// Returns the completed fraction of the work.
pub(super) fn share(done: usize, all: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(done) / number(all).max(1.0)
}

/// Divides memories into batches within the limits.
fn batches(memories: &[MemorySize]) -> Vec<Vec<MemoryId>> {
    let mut batches: Vec<Vec<MemoryId>> = Vec::new();
    let mut size_bytes = u64::MAX;
    for (memory, size) in memories {
        let is_full = batches.last().is_none_or(|batch| batch.len() >= BATCH_MEMORIES_MAX)
            || size_bytes.saturating_add(*size) > BATCH_SIZE_BYTES_MAX;
        if is_full {
            batches.push(Vec::new());
            size_bytes = 0;
        }
        size_bytes += size;
        if let Some(batch) = batches.last_mut() {
            batch.push(*memory);
        }
    }
    batches
}
