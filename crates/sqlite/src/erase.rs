//! Takes removed text out of every file.
//!
//! `secure_delete` overwrites what is deleted, but it is not enough: when SQLite moves rows between
//! pages, as a split or a merge of B-tree pages does, copies of them can stay in the unallocated space of
//! a page. So erasing scans every page and zeroes all unallocated space that holds anything. Afterwards
//! every byte of the file that belongs to no row is zero, whatever was removed. That is also the proof.
//!
//! `VACUUM` would do too, but it rewrites the whole file while nobody can write: 1.5 to 1.9 s at 100 MB,
//! for every redaction. Searching the file for the removed text would miss parts of it that are split
//! over two pages.
//!
//! A scan takes time in proportion to the file, so writers go on meanwhile:
//!
//! 1. Inside the gate, a checkpoint truncates the log, and a snapshot is taken. As long as a snapshot
//!    on an empty log is open, no checkpoint may write to the database file: the file is frozen.
//! 2. Outside the gate, every page of the file is scanned. Writers append to the log.
//! 3. Inside again, the pages with remains are cleared, and so are the pages that the log holds: they
//!    changed since the scan. The snapshot ends and the log is truncated again, since its old frames
//!    hold text too. All other pages are as they were when they were scanned: without remains.
//!
//! [`quipu_pages`] knows the page format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use quipu_core::backend::{Erasure, PendingErasure, Purpose, ScannedFile};
use quipu_core::model::{Id, MemoryId, StoreId};
use quipu_core::{Error, ErrorKind};
use quipu_pages::{PageNumber, Remains, logged_pages};
use rusqlite::{Connection, params};

use crate::error::StorageResult as _;
use crate::group::GroupCommit;
use crate::open;
use crate::pool::Pool;
use crate::rows;
use crate::sync::{Condvar, Instant, Mutex, MutexGuard, PoisonError};
use crate::writer::WriteConnection;

/// How long to wait for readers that still use the log, and for another thread that erases.
const READERS_TIMEOUT: Duration = Duration::from_secs(30);

/// How long each attempt to truncate the log blocks writers, and how long writers are left alone before
/// the next attempt.
const READERS_TRY: Duration = Duration::from_millis(20);
const READERS_PAUSE: Duration = Duration::from_millis(100);

/// How many rows of a deleted store one transaction removes.
const REMOVED_ROWS_MAX: usize = 500;

/// Erases what was removed from a database, one thread at a time.
pub(crate) struct Eraser {
    database: PathBuf,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    is_busy: bool,
    /// What the last erasure covered.
    erased: Vec<PendingErasure>,
}

/// The connections that erasing needs.
#[derive(Clone, Copy)]
pub(crate) struct Access<'b> {
    pub(crate) writer: &'b GroupCommit<WriteConnection>,
    pub(crate) readers: &'b Pool,
    /// How long to wait for other writers.
    pub(crate) lock_timeout: Duration,
}

/// Returns what is not erased yet.
pub(crate) fn pending(connection: &Connection) -> rusqlite::Result<Vec<PendingErasure>> {
    let sql = "SELECT store, memory, count FROM erasures WHERE count > 0";
    let mut statement = connection.prepare_cached(sql)?;
    let pending = statement.query_map([], |row| {
        let memory = row.get_ref(1)?.as_blob()?.first_chunk::<16>().copied();
        Ok(PendingErasure {
            store: StoreId::from_bits(u128::from_be_bytes(row.get(0)?)),
            memory: memory.map(|id| MemoryId::from_bits(u128::from_be_bytes(id))),
            count: row.get(2)?,
        })
    })?;
    pending.collect()
}

/// Records, inside a transaction that removes text, that an erasure is pending.
pub(crate) fn set_pending(
    connection: &Connection,
    store: StoreId,
    memory: Option<MemoryId>,
) -> rusqlite::Result<()> {
    // Erasures that are complete have a count of 0, and their rows are deleted later. Starting from the
    // sequence keeps the count growing across such a deletion, so that a thread that still has the old
    // count does not take this removal for erased.
    let sql = "INSERT INTO erasures
        VALUES (?1, ?2, (SELECT ifnull(max(sequence), 0) FROM changes) + 1)
        ON CONFLICT DO UPDATE SET count = max(count + 1, excluded.count)";
    let values = params![bytes(store), memory_bytes(memory)];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn bytes(id: impl Id) -> [u8; 16] {
    id.bits().to_be_bytes()
}

fn memory_bytes(memory: Option<MemoryId>) -> Vec<u8> {
    memory.map_or_else(Vec::new, |memory| bytes(memory).to_vec())
}

impl Eraser {
    pub(crate) fn new(database: &Path) -> Self {
        let database = database.to_owned();
        Self { database, state: Mutex::default(), done: Condvar::new() }
    }

    /// Erases everything that was removed before this is called. A thread that comes while another one
    /// erases waits, and often finds that its own removals were covered.
    pub(crate) fn erase(&self, access: Access<'_>) -> Result<Erasure, Error> {
        let pending = access.readers.with(|connection| pending(connection).or_storage_error())?;
        if pending.is_empty() {
            return Ok(Erasure::default());
        }
        let deadline = Instant::now() + READERS_TIMEOUT;
        let guard = self.exclusive(deadline)?;
        if !pending.iter().all(|pending| guard.has_erased(pending)) {
            let erased = self.erase_all(access, deadline)?;
            guard.remember(erased);
        }
        Ok(Erasure { scanned: vec![scanned(&self.database)], ..Erasure::default() })
    }

    /// Returns what was erased.
    fn erase_all(
        &self,
        access: Access<'_>,
        deadline: Instant,
    ) -> Result<Vec<PendingErasure>, Error> {
        let frozen = loop {
            access.remove_rows()?;
            let frozen = access.frozen(deadline)?;
            // A store that was deleted between these two calls is pending in the snapshot, so it will be
            // reported as erased: its rows must be gone too.
            if !frozen.has_deleted_rows()? {
                break frozen;
            }
            frozen.end()?;
        };
        match frozen.remains()? {
            Remains::InPages(pages) if pages.is_empty() => frozen.end(),
            Remains::InPages(pages) => {
                access.clear(&self.database, &pages, frozen.page_size)?;
                let erased = frozen.end()?;
                access.truncate_log(deadline, |_| Ok(()))?;
                Ok(erased)
            }
            Remains::Elsewhere => {
                let erased = frozen.end()?;
                access.rebuild(&self.database)?;
                access.truncate_log(deadline, |_| Ok(()))?;
                Ok(erased)
            }
        }
    }

    fn exclusive(&self, deadline: Instant) -> Result<ErasureGuard<'_>, Error> {
        let mut state = self.state();
        while state.is_busy {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(Error::new(
                    ErrorKind::StorageBusy,
                    "another redaction is still in progress",
                ));
            }
            let waited = self.done.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_busy = true;
        Ok(ErasureGuard(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ErasureGuard<'e>(&'e Eraser);

impl ErasureGuard<'_> {
    /// Returns whether the erasure of another thread has covered this one.
    fn has_erased(&self, pending: &PendingErasure) -> bool {
        let is_it = |erased: &PendingErasure| {
            (erased.store, erased.memory) == (pending.store, pending.memory)
                && erased.count >= pending.count
        };
        self.0.state().erased.iter().any(is_it)
    }

    fn remember(&self, erased: Vec<PendingErasure>) {
        self.0.state().erased = erased;
    }
}

impl Drop for ErasureGuard<'_> {
    fn drop(&mut self) {
        self.0.state().is_busy = false;
        self.0.done.notify_one();
    }
}

fn scanned(database: &Path) -> ScannedFile {
    let name = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ScannedFile { name, size_bytes: database.metadata().map_or(0, |file| file.len()) }
}

/// A database file that nobody writes to while this exists.
struct FrozenFile {
    snapshot: Connection,
    page_size: usize,
    /// What was pending when the snapshot was taken.
    pending: Vec<PendingErasure>,
}

impl FrozenFile {
    /// Takes a snapshot while the log is empty and nobody writes.
    fn new(snapshot: Connection) -> Result<Self, Error> {
        snapshot.execute_batch("BEGIN").or_storage_error()?;
        // `BEGIN` takes no snapshot; the first read does.
        let pending = pending(&snapshot).or_storage_error()?;
        let page_size = snapshot.pragma_query_value(None, "page_size", |row| row.get(0));
        Ok(Self { page_size: page_size.or_storage_error()?, pending, snapshot })
    }

    /// Returns whether there are rows of deleted stores.
    fn has_deleted_rows(&self) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM removed_stores)";
        self.snapshot.query_row(sql, [], |row| row.get(0)).or_storage_error()
    }

    fn remains(&self) -> Result<Remains, Error> {
        quipu_pages::scan(&self.snapshot).or_storage_error()
    }

    /// Ends the snapshot.
    fn end(self) -> Result<Vec<PendingErasure>, Error> {
        self.snapshot.execute_batch("COMMIT").or_storage_error()?;
        Ok(self.pending)
    }
}

impl Access<'_> {
    fn deadline(&self) -> Instant {
        Instant::now() + self.lock_timeout
    }

    fn exclusively<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = self.deadline();
        self.writer.outside_transaction(deadline, |writer| writer.exclusively(deadline, work))
    }

    /// Removes the rows of deleted stores in batches, so that others can write in between and the log
    /// stays short.
    fn remove_rows(&self) -> Result<(), Error> {
        let mut has_more = true;
        while has_more {
            let mut limit = REMOVED_ROWS_MAX;
            self.writer.run_removal(self.deadline(), &mut |writer| {
                has_more = rows::remove_deleted(writer.connection()?, limit).or_storage_error()?;
                // It runs again only if the disk is full. Rows that are far apart need one page of the log
                // each, so a smaller batch may fit.
                limit = REMOVED_ROWS_MAX / 10;
                Ok(())
            })?;
        }
        self.writer.run_removal(self.deadline(), &mut |writer| {
            let sql = "DELETE FROM erasures WHERE count = 0";
            writer.connection()?.execute(sql, []).or_storage_error().map(drop)
        })
    }

    /// Truncates the log and takes a snapshot of the database file alone.
    fn frozen(&self, deadline: Instant) -> Result<FrozenFile, Error> {
        self.truncate_log(deadline, |_| FrozenFile::new(self.readers.open()?))
    }

    /// Truncates the log and runs `work` before anybody writes to it again.
    ///
    /// A reader that uses the log is in the way. Waiting for it inside the gate would block all writers
    /// for as long, so this tries briefly, leaves, and comes back.
    fn truncate_log<T>(
        &self,
        deadline: Instant,
        work: impl Fn(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let worked = self.exclusively(|connection| {
                connection.busy_timeout(READERS_TRY).or_storage_error()?;
                let truncated = open::truncate_log(connection);
                connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
                if truncated? { work(connection).map(Some) } else { Ok(None) }
            })?;
            if let Some(worked) = worked {
                return Ok(worked);
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    ErrorKind::StorageBusy,
                    "another process, such as a long backup, still reads the old text",
                ));
            }
            thread::sleep(READERS_PAUSE);
        }
    }

    /// Clears the unallocated space of these pages, and of all that changed since the log was truncated.
    fn clear(&self, database: &Path, pages: &[PageNumber], page_size: usize) -> Result<(), Error> {
        let log = database.with_file_name(open::LOG_FILE);
        let deadline = self.deadline();
        // Not in a group: pages that its other members have changed are not in the log yet, and would be
        // missed.
        let clear_for = |purpose| {
            self.writer.run_alone(purpose, deadline, &mut |writer| {
                let changed = logged_pages(&log, page_size).or_storage_error()?;
                let pages: BTreeSet<_> = pages.iter().copied().chain(changed).collect();
                quipu_pages::clear(writer.connection()?, &pages).or_storage_error()
            })
        };
        match clear_for(Purpose::Change) {
            Err(error) if *error.kind() == ErrorKind::StorageFull => clear_for(Purpose::Removal),
            result => result,
        }
    }

    /// Rewrites the whole file from its rows.
    fn rebuild(&self, database: &Path) -> Result<(), Error> {
        self.exclusively(|connection| quipu_pages::rebuild(connection, database).or_storage_error())
    }

    /// Records that these are erased, unless more was removed since.
    pub(crate) fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.writer.run_removal(self.deadline(), &mut |writer| {
            // Deleting the row would leave unallocated bytes behind, just after all were cleared. The
            // next erasure deletes it.
            let sql = "UPDATE erasures SET count = 0
                WHERE store = ?1 AND memory = ?2 AND count = ?3";
            for PendingErasure { store, memory, count } in erased {
                let values = params![bytes(*store), memory_bytes(*memory), count];
                writer.connection()?.execute(sql, values).or_storage_error()?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
