//! The indexer: keeps the index of each store up to date with its memories.
//!
//! Writing a memory does not touch the index. The next search first applies what changed since the
//! cursor of the index, and long-running doors do so in the background, so that a search usually
//! finds nothing to apply. Indexing inside of the commit would make every write pay for tokenizing,
//! and would make a full disk or a damaged index fail writes that have nothing to do with
//! searching.
//!
//! Changes are read from one snapshot of the store: the cursor, the list of changed memories and
//! their texts all come from the same read transaction, and the segment is committed together with
//! the cursor. If the cursor were read after the texts, a memory that is written in between would
//! be skipped, and nothing would ever index it, because the cursor claims that it has been. Too
//! many changes for one batch are read later than the cursor, which is the harmless direction: the
//! next search applies some of them again. So an index at a cursor lacks nothing up to that change,
//! no matter which process applied it.
//!
//! Searching is a read. If the index cannot be written (the disk is full or read-only, or another
//! process holds the write lock and does not finish), the changes are indexed in memory and
//! searched as an overlay on top of the file. The threads of one process take [turns](turn).

mod building;
mod changes;
mod demand;
mod embedding;
mod encoding;
mod erasing;
mod freshness;
mod parts;
mod reading;
mod scanning;
mod searches;
mod turn;
mod upkeep;

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use quipu_core::backend::Reader;
use quipu_core::model::{Memory, MemoryId, StoreId, View};
use quipu_core::{Engine, Error};
use quipu_notes::tokenizer::Lexicon;

use crate::entry::Entry;
use crate::index::{
    Applied, Batch, BatchBuilder, Cursor, IndexError, IndexFile, Overlay, StoreRow, add_store,
    merge_small, remove_store, store_row,
};
use crate::vectors::Matrices;
use changes::{Changed, changed};
use demand::Demand;
use embedding::Progress as Embedding;
pub use embedding::{EmbedReport, EmbedStep, Embedded};
use scanning::Scans;
use turn::{Asked, Turn, TurnGuard};

/// Maintains the index.
#[derive(Debug)]
pub(crate) struct Indexer {
    engine: Engine,
    file: IndexFile,
    /// The file that a process locks for long-running work.
    lock: PathBuf,
    /// Held by the thread that writes the index.
    turn: Turn,
    /// How far this process has followed the feed.
    followed: AtomicU64,
    /// The words of the last texts that were indexed.
    lexicon: Mutex<Lexicon>,
    /// How far this process is with making vectors.
    embedding: Mutex<Embedding>,
    /// The vectors of the stores that were searched last.
    pub(crate) matrices: Matrices,
    /// Whether the engine reads the past, of which nothing is stored.
    is_of_past: bool,
    scans: Scans,
    /// Which stores to index, if not all of them.
    demand: Option<Demand>,
}

/// Called with the completed fraction of the work; an error aborts the work.
pub(crate) type Progress<'p> = &'p dyn Fn(f64) -> Result<(), Error>;

/// One call that brings the indexes of some stores up to date.
///
/// Whether the file is writable is determined once for all of them. Otherwise each store would wait
/// for the same stopped process, and a search over a thousand stores would take minutes.
pub(crate) struct Attempt<'p> {
    progress: Progress<'p>,
    is_blocked: Cell<bool>,
    /// How long to wait for another thread that writes the index.
    patience: Cell<Duration>,
    /// How much more text may be indexed in memory.
    budget_bytes: Cell<u64>,
}

impl<'p> Attempt<'p> {
    pub(crate) fn new(progress: Progress<'p>) -> Self {
        let budget_bytes = Cell::new(OVERLAYS_SIZE_BYTES_MAX);
        let patience = Cell::new(LEADER_PATIENCE);
        Self { progress, is_blocked: Cell::new(false), patience, budget_bytes }
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked.get()
    }

    fn mark_blocked(&self) {
        self.is_blocked.set(true);
    }

    /// Returns what the index lacks of a store as an overlay, if the memory budget allows it.
    fn in_memory(
        &self,
        from: Cursor,
        size_bytes: u64,
        overlay: impl FnOnce() -> Overlay,
    ) -> CaughtUp {
        match self.budget_bytes.get().checked_sub(size_bytes) {
            Some(left) => {
                self.budget_bytes.set(left);
                CaughtUp::InMemory(from, Box::new(overlay()))
            }
            None => CaughtUp::Behind,
        }
    }
}

/// How long a call waits for other threads that write the index. Indexing as many changes as are indexed
/// at once takes a part of that.
const LEADER_PATIENCE: Duration = Duration::from_secs(1);

/// Larger sets of changes, by count or by total size, are not read and indexed at once.
const FEW_MAX: usize = 1_000;
const FEW_SIZE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How many changed memories are indexed in parts; more of them are a build of their own.
const PARTS: RangeInclusive<usize> = FEW_MAX + 1..=10_000;

/// The maximum size of the text that one call indexes in memory, over all stores.
const OVERLAYS_SIZE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often catching up is retried after another process has changed the index.
const ATTEMPTS_MAX: usize = 100;

/// How many versions are listed per page.
const PAGE: usize = 256;

/// How up to date the index of a store is.
pub(crate) enum CaughtUp {
    /// It holds everything that had been written when the call began.
    Stored,
    /// Another thread has brought it further, perhaps far enough.
    Followed,
    /// The index is at this cursor, and the overlay holds everything after it.
    InMemory(Cursor, Box<Overlay>),
    /// The same, but the overlay holds only a part: the rest does not fit into memory.
    PartlyInMemory(Cursor, Box<Overlay>),
    /// It lacks more than the memory budget allows to search as an overlay.
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
            lexicon: Mutex::default(),
            embedding: Mutex::default(),
            matrices: Matrices::default(),
            is_of_past: false,
            scans: Scans::default(),
            demand: None,
        }
    }

    /// Returns whether the engine reads the past.
    pub(crate) fn is_of_past(&self) -> bool {
        self.is_of_past
    }

    /// Closes the file as soon as it is no longer in use.
    pub(crate) fn close(&self) {
        self.file.close();
    }

    /// Returns the size of the index and its write-ahead log.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.file.size_bytes() + self.file.log_size_bytes()
    }

    /// Returns the free space inside of the index to the file system.
    pub(crate) fn compact(&self) -> Result<(), Error> {
        self.file.compact()
    }

    /// Removes the whole index.
    pub(crate) fn discard(&self) -> Result<(), Error> {
        self.file.discard()
    }

    /// Brings the index of a store up to date, or returns what it lacks.
    pub(crate) fn catch_up(
        &self,
        store: StoreId,
        attempt: &Attempt<'_>,
    ) -> Result<CaughtUp, Error> {
        for _ in 0..ATTEMPTS_MAX {
            match self.lead_or_follow(store, attempt)? {
                CaughtUp::Followed => {}
                caught_up @ (CaughtUp::Stored
                | CaughtUp::InMemory(..)
                | CaughtUp::PartlyInMemory(..)
                | CaughtUp::Behind) => return Ok(caught_up),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    /// Brings the index of a store to the present, or waits for another thread that does so.
    fn lead_or_follow(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<CaughtUp, Error> {
        if self.is_of_past {
            return self.scan(store, attempt);
        }
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
                Changed::Many(ids, _) if turn.is_some() && PARTS.contains(&ids.len()) => {
                    match self.apply_part(store, from) {
                        // The turn is given back, so that whoever waits for it sees how far it is.
                        Ok(Applied::Done) => return Ok(CaughtUp::Followed),
                        Ok(Applied::Outdated) | Err(IndexError::Damaged) => continue,
                        Err(IndexError::NotWritable(_)) => {
                            attempt.mark_blocked();
                            return Ok(CaughtUp::Behind);
                        }
                        Err(error) => return Err(error.into_error()),
                    }
                }
                Changed::Many(ids, to) => {
                    // This takes longer than anybody should wait for.
                    turn = None;
                    match self.apply_changes(store, &ids, (from, to), attempt) {
                        Ok(Applied::Done) => return Ok(CaughtUp::Stored),
                        Ok(Applied::Outdated) | Err(IndexError::Damaged) => continue,
                        Err(IndexError::NotWritable(_)) => {
                            attempt.mark_blocked();
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
            let batch = self.batch(&memories, removed);
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
                // Another process was faster, or the file was damaged and is empty now.
                Ok(Applied::Outdated) | Err(IndexError::Damaged) => {}
                Err(IndexError::NotWritable(_)) => {
                    attempt.mark_blocked();
                    return Ok(in_memory(&batch));
                }
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    /// Indexes the memories that changed first after a cursor, as many as are indexed at once.
    ///
    /// Without parts, a search right after a burst of writes and the follower in the background would
    /// each index the whole burst, and one of them would find at the end that the other was faster.
    /// With them, each continues where the other stopped.
    fn apply_part(&self, store: StoreId, from: Cursor) -> Result<Applied, IndexError> {
        let (memories, removed, to, read_at) = self.engine.read(|reader| {
            let (ids, to) = parts::first(reader, store, from)?;
            let (memories, removed) = read_memories(reader, store, &ids)?;
            Ok((memories, removed, to, newest(reader)?))
        })?;
        // The memories may be newer than `to`, which is the harmless direction.
        let batch = self.batch(&memories, removed);
        self.file.write(|connection| batch.apply(connection, store, (from, to), read_at.sequence))
    }

    /// Returns the cursor of a store, and makes sure that the store has a row.
    ///
    /// The row must exist before any memory is read for a batch: a redaction records itself in the
    /// row, and without one a batch that was read before the redaction could not be told from one
    /// that was read after it.
    fn registered(&self, store: StoreId, attempt: &Attempt<'_>) -> Result<Cursor, Error> {
        let row = self.row(store)?;
        // A feed that ends before a change that the row knows is another one: an older copy of the database
        // has taken its place. Then nothing of the row holds. It was read first, so it cannot be newer.
        let newest = self.engine.read(|reader| Ok(reader.newest_change()?.0))?;
        if let Some(row) = row.filter(|row| !row.is_removed() && row.purged <= newest) {
            return Ok(row.cursor);
        }
        if attempt.is_blocked() {
            return Ok(Cursor::START);
        }
        let registered = self.register(store, row);
        match registered {
            Ok(()) | Err(IndexError::Damaged) => Ok(Cursor::START),
            Err(IndexError::NotWritable(_)) => {
                attempt.mark_blocked();
                Ok(Cursor::START)
            }
            Err(error) => Err(error.into_error()),
        }
    }

    /// Adds the row of a store, after removing what is left of an earlier one.
    fn register(&self, store: StoreId, removed: Option<StoreRow>) -> Result<(), IndexError> {
        if removed.is_some() {
            // The process that began to remove it has died, and the store was restored since.
            remove_store(&self.file, store)?;
        }
        self.file.write(|connection| {
            if store_row(connection, store)?.is_some() {
                return Ok(());
            }
            // Read under the write lock: a redaction that saw no row is complete by now.
            let (exists, newest) = self
                .engine
                .read(|reader| Ok((reader.store(store)?.is_some(), reader.newest_change()?.0)))?;
            if exists { add_store(connection, store, newest).map(drop) } else { Ok(()) }
        })
    }

    /// Returns the indexed form of memories.
    fn batch(&self, memories: &[Memory], removed: Vec<MemoryId>) -> Batch {
        match self.lexicon.try_lock() {
            Ok(mut lexicon) => batch(memories, removed, &mut lexicon),
            // Another thread is indexing. Waiting for it would cost more than stemming the words again.
            Err(_) => batch(memories, removed, &mut Lexicon::default()),
        }
    }

    fn cursor(&self, store: StoreId) -> Result<Cursor, Error> {
        Ok(self.row(store)?.map_or(Cursor::START, |row| row.cursor))
    }

    fn row(&self, store: StoreId) -> Result<Option<StoreRow>, Error> {
        self.read_file(|connection| store_row(connection, store))
    }

    /// Reads the file. Damage empties the file, so then it is read once more.
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

    /// Changes the file directly, bypassing every check.
    #[cfg(test)]
    pub(crate) fn write_file<T>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.file.write(work)
    }
}

/// Reads memories with their texts; the ids of deleted ones are returned separately.
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

fn batch(memories: &[Memory], removed: Vec<MemoryId>, lexicon: &mut Lexicon) -> Batch {
    let mut batch = BatchBuilder::default();
    for memory in memories {
        let Entry { card, documents } = Entry::read(memory, lexicon);
        batch.add(documents, card.to_bytes());
    }
    for memory in removed {
        batch.remove(memory);
    }
    batch.finish()
}

#[cfg(test)]
mod tests;
