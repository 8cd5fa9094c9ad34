//! The indexer: keeps the index of each store up to what is written.
//!
//! Nothing of the index is written when a memory is. Whoever searches a store first takes in what
//! changed since the index was last written, and long-running doors do so in between, so that a search
//! finds little to do. One snapshot of the store is read, every memory that changed is indexed as it is
//! in that snapshot, and the entries are stored together with the place in the feed. So an index that
//! has reached a change holds every memory as it was then, whichever process brought it there.
//!
//! Searching is a read. If the index cannot be written (the disk is full or read-only, or another
//! process writes it and does not finish), what changed is searched in memory, on top of the file. Threads
//! of one process take [turns](turn).

mod building;
mod erasing;
mod freshness;
mod reading;
mod turn;
mod upkeep;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use quipu_core::backend::{Reader, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Memory, MemoryId, StoreId, View};
use quipu_core::{Engine, Error};

use crate::entry::Entry;
use crate::index::{
    Applied, Batch, BatchBuilder, Cursor, IndexError, IndexFile, Overlay, StoreRow, add_store,
    merge_small, remove_store, store_row,
};
use freshness::{Feed, Relation};
use turn::{Asked, Turn, TurnGuard};

/// Keeps the index.
#[derive(Debug)]
pub(crate) struct Indexer {
    engine: Engine,
    file: IndexFile,
    /// The file that a process locks while it does what takes long.
    lock: PathBuf,
    /// Held by the thread that writes the index.
    turn: Turn,
    /// How far this process has followed the feed.
    followed: AtomicU64,
}

/// Is called with the share of the work that is done; an error ends the work.
pub(crate) type Progress<'p> = &'p dyn Fn(f64) -> Result<(), Error>;

/// One call that brings the indexes of some stores to the present.
///
/// Whether the file can be written is found out once for all of them. Each store would otherwise wait
/// for the same stopped process, and a search over a thousand stores would take minutes.
pub(crate) struct Attempt<'p> {
    progress: Progress<'p>,
    is_blocked: Cell<bool>,
    /// How long to wait for another thread that writes the index.
    patience: Cell<Duration>,
    /// How much more text may be kept in memory.
    room_bytes: Cell<u64>,
}

impl<'p> Attempt<'p> {
    pub(crate) fn new(progress: Progress<'p>) -> Self {
        let room_bytes = Cell::new(OVERLAYS_SIZE_BYTES_MAX);
        let patience = Cell::new(LEADER_PATIENCE);
        Self { progress, is_blocked: Cell::new(false), patience, room_bytes }
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    fn note_blocked(&self) {
        self.is_blocked.set(true);
    }

    /// Returns what the index lacks of a store as something to search, if there is room for it.
    fn in_memory(
        &self,
        from: Cursor,
        size_bytes: u64,
        overlay: impl FnOnce() -> Overlay,
    ) -> CaughtUp {
        match self.room_bytes.get().checked_sub(size_bytes) {
            Some(left) => {
                self.room_bytes.set(left);
                CaughtUp::InMemory(from, Box::new(overlay()))
            }
            None => CaughtUp::Behind,
        }
    }
}

/// How long a call waits for other threads that write the index. Indexing as many changes as are indexed
/// at once takes a part of that.
const LEADER_PATIENCE: Duration = Duration::from_secs(1);

/// More memories, or longer ones together, are not read and indexed at once.
const FEW_MAX: usize = 1_000;
const FEW_SIZE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// No more text than this is searched in memory by one call, however many stores it is in.
const OVERLAYS_SIZE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often catching up is tried again because another process changed the index.
const ATTEMPTS_MAX: usize = 100;

/// How many versions are listed at once.
const PAGE: usize = 256;

/// How far the index of a store came.
pub(crate) enum CaughtUp {
    /// It holds everything that was there when it was asked for.
    Stored,
    /// Another thread has brought it further, perhaps far enough.
    Followed,
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
            turn: Turn::default(),
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
    pub(crate) fn catch_up(
        &self,
        store: StoreId,
        attempt: &Attempt<'_>,
    ) -> Result<CaughtUp, Error> {
        for _ in 0..ATTEMPTS_MAX {
            match self.lead_or_follow(store, attempt)? {
                CaughtUp::Followed => {}
                caught_up @ (CaughtUp::Stored | CaughtUp::InMemory(..) | CaughtUp::Behind) => {
                    return Ok(caught_up);
                }
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    /// Brings the index of a store to the present, or waits for another thread that does so.
    fn lead_or_follow(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        if attempt.is_blocked() {
            return self.lead(store, attempt, None);
        }
        let patience = attempt.patience.get();
        let begun = Instant::now();
        match self.turn.lead_or_follow(patience) {
            Asked::Leads(turn) => self.lead(store, attempt, Some(turn)),
            Asked::Followed => {
                attempt.patience.set(patience.saturating_sub(begun.elapsed()));
                Ok(CaughtUp::Followed)
            }
            Asked::GaveUp => {
                attempt.patience.set(Duration::ZERO);
                self.lead(store, attempt, None)
            }
        }
    }

    /// Brings the index of a store to the present, in memory only if it is not the turn of this thread.
    fn lead(
        &self,
        store: StoreId,
        attempt: &Attempt<'_>,
        mut turn: Option<TurnGuard<'_>>,
    ) -> Result<CaughtUp, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let from = self.registered(store, attempt)?;
            let changed = self.engine.read(|reader| changed(reader, store, from))?;
            let (memories, removed, to) = match changed {
                Changed::Few { memories, removed, to } => (memories, removed, to),
                Changed::Many(..) if attempt.is_blocked() => return Ok(CaughtUp::Behind),
                Changed::Many(ids, to) => {
                    // This takes longer than anybody should wait for.
                    turn = None;
                    match self.take_in(store, &ids, (from, to), attempt) {
                        Ok(Applied::Done) => return Ok(CaughtUp::Stored),
                        Ok(Applied::Outdated) | Err(IndexError::Damaged) => continue,
                        Err(IndexError::NotWritable(_)) => {
                            attempt.note_blocked();
                            return Ok(CaughtUp::Behind);
                        }
                        Err(error) => return Err(error.into_error()),
                    }
                }
                Changed::Unknown => {
                    drop(turn);
                    return self.build(store, attempt);
                }
                Changed::Gone => {
                    return Ok(attempt.in_memory(from, 0, || Batch::default().overlay(from.at)));
                }
            };
            let in_memory = |batch: &Batch| {
                let size_bytes = memories.iter().map(|memory| memory.size_bytes).sum();
                attempt.in_memory(from, size_bytes, || batch.overlay(to.at))
            };
            let batch = batch(&memories, removed);
            if turn.is_none() || attempt.is_blocked() {
                return Ok(in_memory(&batch));
            }
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
                    attempt.note_blocked();
                    return Ok(in_memory(&batch));
                }
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    /// Returns the place that the index of a store has reached, and sees to it that it has a row.
    ///
    /// The row comes before anything is read that is to be added, or nobody could tell a batch that was
    /// read before a redaction from one that was read after it.
    fn registered(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<Cursor, Error> {
        let row = self.row(store)?;
        if let Some(row) = row.filter(|row| !row.is_removed()) {
            return Ok(row.cursor);
        }
        if attempt.is_blocked() {
            return Ok(Cursor::START);
        }
        let registered = self.register(store, row);
        match registered {
            Ok(()) | Err(IndexError::Damaged) => Ok(Cursor::START),
            Err(IndexError::NotWritable(_)) => {
                attempt.note_blocked();
                Ok(Cursor::START)
            }
            Err(error) => Err(error.into_error()),
        }
    }

    /// Adds the row of a store, after what is left of it was removed.
    fn register(&self, store: StoreId, removed: Option<StoreRow>) -> Result<(), IndexError> {
        if removed.is_some() {
            // Whoever began to remove it has died, and the store was restored since.
            remove_store(&self.file, store)?;
        }
        self.file.write(|connection| {
            if store_row(connection, store)?.is_some() {
                return Ok(());
            }
            // Read while nobody else can write the index: an erasing that has seen no row is over.
            let (exists, newest) = self
                .engine
                .read(|reader| Ok((reader.store(store)?.is_some(), reader.newest_change()?.0)))?;
            if exists { add_store(connection, store, newest).map(drop) } else { Ok(()) }
        })
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

    /// Changes the file past all rules.
    #[cfg(test)]
    pub(crate) fn write_file<T>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.file.write(work)
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
    /// The store was deleted.
    Gone,
}

fn changed(reader: &dyn Reader, store: StoreId, from: Cursor) -> Result<Changed, Error> {
    if reader.store(store)?.is_none() {
        return Ok(Changed::Gone);
    }
    let feed = Feed::read(reader)?;
    let to = feed.newest();
    // A change that has left the feed may have been the deletion of a memory, of which no version
    // is kept.
    if feed.relation(reader, from)? == Relation::Unknown {
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
    let (mut memories, mut removed) = (Vec::new(), Vec::new());
    let mut size_bytes = 0;
    for &id in &ids {
        match reader.memory(store, id, View::Full)? {
            Some(memory) => {
                size_bytes += memory.size_bytes;
                memories.push(memory);
            }
            None => removed.push(id),
        }
        if size_bytes > FEW_SIZE_BYTES_MAX {
            return Ok(Changed::Many(ids, to));
        }
    }
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

#[cfg(test)]
mod tests;
