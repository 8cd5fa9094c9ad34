//! Taking removed text out of every file.
//!
//! `secure_delete` overwrites what is deleted, but when SQLite moves rows between pages, copies of
//! them can stay in the unused room of a page. So erasing looks at every page, and clears all unused
//! room that holds anything: afterwards every byte of the file that belongs to no row is zero, whatever
//! was removed. That is also its proof.
//!
//! Looking takes time in proportion to the file, so writers go on meanwhile:
//!
//! 1. Inside the gate, the log is moved into the database and cut to nothing, and a snapshot is taken.
//!    A snapshot of an empty log keeps SQLite from writing to the database file until it ends.
//! 2. Outside, every page of the file is looked at. Writers append to the log.
//! 3. Inside again, the pages with remains and those that the log holds, which changed since, are
//!    cleared where that is needed, and the log is emptied again. All other pages are as they were
//!    when they were looked at, without remains.
//!
//! [`quipu_pages`] knows the pages.

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

/// How long to wait for readers that still use the log, and for others that erase.
const READERS_TIMEOUT: Duration = Duration::from_secs(30);

/// How long writers are kept waiting for such readers, and how long they are left alone in between.
const READERS_TRY: Duration = Duration::from_millis(20);
const READERS_PAUSE: Duration = Duration::from_millis(100);

/// How many rows of a deleted store one transaction removes.
const REMOVED_ROWS_MAX: usize = 500;

/// Erases what was removed from a database, once at a time.
pub(crate) struct Eraser {
    database: PathBuf,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    is_busy: bool,
    /// What was erased last.
    erased: Vec<PendingErasure>,
}

/// What erasing works on.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'b> {
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

/// Notes, inside a transaction that removes text, that erasing is due.
pub(crate) fn set_pending(
    connection: &Connection,
    store: StoreId,
    memory: Option<MemoryId>,
) -> rusqlite::Result<()> {
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

    /// Erases everything that was removed before this is called. Whoever comes while another thread
    /// erases waits, and often finds that its own is done too.
    pub(crate) fn erase(&self, parts: Parts<'_>) -> Result<Erasure, Error> {
        let pending = parts.readers.with(|connection| pending(connection).or_storage_error())?;
        if pending.is_empty() {
            return Ok(Erasure::default());
        }
        let deadline = Instant::now() + READERS_TIMEOUT;
        let turn = self.turn(deadline)?;
        if !pending.iter().all(|pending| turn.has_erased(pending)) {
            let erased = self.erase_all(parts, deadline)?;
            turn.keep(erased);
        }
        Ok(Erasure { scanned: vec![scanned(&self.database)], ..Erasure::default() })
    }

    /// Returns what is erased now.
    fn erase_all(&self, parts: Parts<'_>, deadline: Instant) -> Result<Vec<PendingErasure>, Error> {
        let frozen = loop {
            parts.remove_rows()?;
            let frozen = parts.frozen(deadline)?;
            // A store that was deleted in between is counted in the snapshot, so its rows must be
            // gone too: whoever deleted it finds that nothing is pending.
            if !frozen.has_deleted_rows()? {
                break frozen;
            }
            frozen.end()?;
        };
        match frozen.remains()? {
            Remains::InPages(pages) if pages.is_empty() => frozen.end(),
            Remains::InPages(pages) => {
                parts.clear(&self.database, &pages, frozen.page_size)?;
                let erased = frozen.end()?;
                parts.empty_log(deadline, |_| Ok(()))?;
                Ok(erased)
            }
            Remains::Elsewhere => {
                let erased = frozen.end()?;
                parts.rebuild(&self.database)?;
                parts.empty_log(deadline, |_| Ok(()))?;
                Ok(erased)
            }
        }
    }

    fn turn(&self, deadline: Instant) -> Result<ErasingTurn<'_>, Error> {
        let mut state = self.state();
        while state.is_busy {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(Error::new(
                    ErrorKind::StorageBusy,
                    "another redaction is not done yet",
                ));
            }
            let waited = self.done.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_busy = true;
        Ok(ErasingTurn(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ErasingTurn<'e>(&'e Eraser);

impl ErasingTurn<'_> {
    /// Returns whether an earlier turn has erased this already.
    fn has_erased(&self, pending: &PendingErasure) -> bool {
        let is_it = |erased: &PendingErasure| {
            (erased.store, erased.memory) == (pending.store, pending.memory)
                && erased.count >= pending.count
        };
        self.0.state().erased.iter().any(is_it)
    }

    fn keep(&self, erased: Vec<PendingErasure>) {
        self.0.state().erased = erased;
    }
}

impl Drop for ErasingTurn<'_> {
    fn drop(&mut self) {
        self.0.state().is_busy = false;
        self.0.done.notify_one();
    }
}

fn scanned(database: &Path) -> ScannedFile {
    let name = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ScannedFile { name, size_bytes: database.metadata().map_or(0, |file| file.len()) }
}

/// A database file that does not change.
struct Frozen {
    snapshot: Connection,
    page_size: usize,
    /// What was not erased when it was taken.
    pending: Vec<PendingErasure>,
}

impl Frozen {
    /// Takes a snapshot while the log is empty and nobody writes.
    fn new(snapshot: Connection) -> Result<Self, Error> {
        snapshot.execute_batch("BEGIN").or_storage_error()?;
        // A transaction has its snapshot from its first read on.
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

impl Parts<'_> {
    fn deadline(&self) -> Instant {
        Instant::now() + self.lock_timeout
    }

    fn exclusively<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = self.deadline();
        self.writer.alone(deadline, |writer| writer.exclusively(deadline, work))
    }

    /// Removes the rows of deleted stores, some at a time, so that others can write in between and
    /// the log stays short.
    fn remove_rows(&self) -> Result<(), Error> {
        let mut has_more = true;
        while has_more {
            let mut limit = REMOVED_ROWS_MAX;
            self.writer.run_removal(self.deadline(), &mut |writer| {
                has_more = rows::remove_deleted(writer.connection()?, limit).or_storage_error()?;
                // If it runs again, the disk is full: rows that lie apart need a page of the log each.
                limit = REMOVED_ROWS_MAX / 10;
                Ok(())
            })?;
        }
        self.writer.run_removal(self.deadline(), &mut |writer| {
            let sql = "DELETE FROM erasures WHERE count = 0";
            writer.connection()?.execute(sql, []).or_storage_error().map(drop)
        })
    }

    /// Empties the log and takes a snapshot of the database file alone.
    fn frozen(&self, deadline: Instant) -> Result<Frozen, Error> {
        self.empty_log(deadline, |_| Frozen::new(self.readers.open()?))
    }

    /// Empties the log and runs `work` before anybody writes to it again.
    ///
    /// A reader that still uses the log is waited for, but writers are not kept waiting with it.
    fn empty_log<T>(
        &self,
        deadline: Instant,
        work: impl Fn(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let worked = self.exclusively(|connection| {
                connection.busy_timeout(READERS_TRY).or_storage_error()?;
                let emptied = open::truncate_log(connection);
                connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
                if emptied? { work(connection).map(Some) } else { Ok(None) }
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

    /// Clears the unused room of pages, and of all that changed since the log was empty.
    fn clear(&self, database: &Path, pages: &[PageNumber], page_size: usize) -> Result<(), Error> {
        let log = database.with_file_name(open::LOG_FILE);
        let deadline = self.deadline();
        // Not in a group: what others in it have changed is not in the log yet.
        let clear_for = |purpose| {
            self.writer.run_apart(purpose, deadline, &mut |writer| {
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

    /// Writes the whole file again from its rows.
    fn rebuild(&self, database: &Path) -> Result<(), Error> {
        self.exclusively(|connection| quipu_pages::rebuild(connection, database).or_storage_error())
    }

    /// Notes that these are erased, unless more was removed since.
    pub(crate) fn note_done(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.writer.run_removal(self.deadline(), &mut |writer| {
            // Removing the row would leave unused bytes behind, just after all were cleared.
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
