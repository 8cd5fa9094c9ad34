//! The indexer: keeps the index of each store up to what is written.
//!
//! Nothing of the index is written when a memory is. Whoever searches a store first takes in what
//! changed since the index was last written, and long-running doors do so in between, so that a search
//! finds little to do. One snapshot of the store is read, every memory that changed is indexed as it is
//! in that snapshot, and the entries are stored together with the place in the feed. So an index that
//! has reached a change holds every memory as it was then, whichever process brought it there.
//!
//! Searching is a read. If the index cannot be written (the disk is full or read-only, or another
//! process writes it and does not finish), what changed is searched in memory, on top of the file. A
//! thread does the same rather than wait for another one that is writing.

mod building;
mod erasing;
mod reading;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, TryLockError};

use quipu_core::backend::{Reader, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Memory, MemoryId, StoreId, View};
use quipu_core::{Engine, Error};

use crate::entry::Entry;
use crate::index::{
    Applied, Batch, BatchBuilder, Cursor, IndexError, IndexFile, Overlay, StoreRow, merge_small,
    remove_store, store_row,
};

/// Keeps the index.
#[derive(Debug)]
pub(crate) struct Indexer {
    engine: Engine,
    file: IndexFile,
    /// The file that a process locks while it does what takes long.
    lock: PathBuf,
    /// Held by the thread that writes the index.
    turn: Mutex<()>,
    /// How far this process has followed the feed.
    followed: AtomicU64,
}

/// Is called with the share of the work that is done; an error ends the work.
pub(crate) type Progress<'p> = &'p dyn Fn(f64) -> Result<(), Error>;

/// More memories than this are not read and indexed at once.
const FEW_MAX: usize = 1_000;

/// How often catching up is tried again because another process changed the index.
const ATTEMPTS_MAX: usize = 100;

/// How many versions are listed at once.
const PAGE: usize = 256;

/// How far the index of a store came.
pub(crate) enum CaughtUp {
    /// It holds everything that was there when it was asked for.
    Stored,
    /// It is at this place, and this is what it lacks.
    InMemory(Cursor, Box<Overlay>),
    /// It lacks more than can be searched in memory.
    Behind,
}

impl Indexer {
    pub(crate) fn new(engine: Engine, directory: &Path) -> Self {
        Self {
            engine,
            file: IndexFile::new(directory),
            lock: directory.join("index.lock"),
            turn: Mutex::default(),
            followed: AtomicU64::new(0),
        }
    }

    /// Closes the file as soon as nobody uses it.
    pub(crate) fn close(&self) {
        self.file.close();
    }

    /// Removes the whole index.
    pub(crate) fn discard(&self) -> Result<(), Error> {
        self.file.discard()
    }

    /// Brings the index of a store to the present, or returns what it lacks.
    pub(crate) fn catch_up(&self, store: StoreId) -> Result<CaughtUp, Error> {
        self.catch_up_with(store, &|_| Ok(()))
    }

    /// Like [`catch_up`](Self::catch_up), and says how far it is.
    pub(crate) fn catch_up_with(
        &self,
        store: StoreId,
        progress: Progress<'_>,
    ) -> Result<CaughtUp, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let row = self.row(store)?;
            if row.is_some_and(|row| row.is_removed()) {
                // Whoever began to remove it has died, and the store was restored since.
                remove_store(&self.file, store).map_err(IndexError::into_error)?;
            }
            let from = row.map_or(Cursor::START, |row| row.cursor);
            let changed = self.engine.read(|reader| changed(reader, store, from))?;
            let (memories, removed, to) = match changed {
                Changed::Few { memories, removed, to } => (memories, removed, to),
                Changed::Many(ids, to) => match self.take_in(store, &ids, (from, to), progress) {
                    Ok(Applied::Done) => return Ok(CaughtUp::Stored),
                    Ok(Applied::Outdated) | Err(IndexError::Damaged) => continue,
                    Err(IndexError::NotWritable(_)) => return Ok(CaughtUp::Behind),
                    Err(error) => return Err(error.into_error()),
                },
                Changed::Unknown => return self.build(store, progress),
            };
            let batch = batch(&memories, removed);
            // Another thread may be writing what this one would, but waiting for it would take
            // longer than searching a few changes in memory.
            let Some(_turn) = self.try_turn() else {
                return Ok(CaughtUp::InMemory(from, Box::new(batch.overlay(to.at))));
            };
            let applied = self.file.write(|connection| {
                let applied = batch.apply(connection, store, (from, to), to.sequence)?;
                if applied == Applied::Done {
                    merge_small(connection, store)?;
                }
                Ok(applied)
            });
            match applied {
                Ok(Applied::Done) => return Ok(CaughtUp::Stored),
                // Another process was quicker, or the file was damaged and is empty now.
                Ok(Applied::Outdated) | Err(IndexError::Damaged) => {}
                Err(IndexError::NotWritable(_)) => {
                    return Ok(CaughtUp::InMemory(from, Box::new(batch.overlay(to.at))));
                }
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    fn cursor(&self, store: StoreId) -> Result<Cursor, Error> {
        Ok(self.row(store)?.map_or(Cursor::START, |row| row.cursor))
    }

    fn row(&self, store: StoreId) -> Result<Option<StoreRow>, Error> {
        self.read_file(|connection| store_row(connection, store))
    }

    /// Reads the file; if it is damaged, it is read again empty.
    fn read_file<T>(
        &self,
        work: impl Fn(&rusqlite::Connection) -> Result<T, IndexError>,
    ) -> Result<T, Error> {
        let read = || self.file.read(|snapshot| work(snapshot.connection));
        match read() {
            Err(IndexError::Damaged) => read().map_err(IndexError::into_error),
            result => result.map_err(IndexError::into_error),
        }
    }

    fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What changed in a store since a place in the feed.
enum Changed {
    /// These memories, all read at this place.
    Few { memories: Vec<Memory>, removed: Vec<MemoryId>, to: Cursor },
    /// These memories, until this place; too many to be read at once.
    Many(Vec<MemoryId>, Cursor),
    /// The feed does not reach back.
    Unknown,
}

fn changed(reader: &dyn Reader, store: StoreId, from: Cursor) -> Result<Changed, Error> {
    let to = newest(reader)?;
    // A change that has left the feed may have been the deletion of a memory, of which no version
    // is kept. An index that is ahead of the feed was made of another database.
    let oldest = reader.oldest_change()?.map_or(1, |(oldest, _)| oldest.0);
    if from.sequence.0 + 1 < oldest || from.sequence > to.sequence {
        return Ok(Changed::Unknown);
    }
    let created = Span { first: from.at.next(), ..Span::default() };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    let mut ids = Vec::new();
    let mut before = None;
    loop {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view: View::Basic };
        let versions = reader.versions(store, &query)?;
        ids.extend(versions.iter().map(|version| version.memory));
        match versions.last() {
            Some(last) if versions.len() == PAGE => before = Some(last.id),
            Some(_) | None => break,
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.len() > FEW_MAX {
        return Ok(Changed::Many(ids, to));
    }
    let (memories, removed) = read_memories(reader, store, &ids)?;
    Ok(Changed::Few { memories, removed, to })
}

/// Reads memories with their texts; those that are gone are returned apart.
fn read_memories(
    reader: &dyn Reader,
    store: StoreId,
    ids: &[MemoryId],
) -> Result<(Vec<Memory>, Vec<MemoryId>), Error> {
    let (mut memories, mut removed) = (Vec::new(), Vec::new());
    for &id in ids {
        match reader.memory(store, id, View::Full)? {
            Some(memory) => memories.push(memory),
            None => removed.push(id),
        }
    }
    Ok((memories, removed))
}

fn newest(reader: &dyn Reader) -> Result<Cursor, Error> {
    let (sequence, at) = reader.newest_change()?;
    Ok(Cursor { sequence, at })
}

fn batch(memories: &[Memory], removed: Vec<MemoryId>) -> Batch {
    let mut batch = BatchBuilder::default();
    for memory in memories {
        let Entry { card, documents } = Entry::read(memory);
        batch.add(documents, card.to_bytes());
    }
    for memory in removed {
        batch.remove(memory);
    }
    batch.finish()
}
