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
//! Pages are read and written through SQLite's `sqlite_dbpage`. Opening the database file a second time
//! would not do: closing it again would drop this process's POSIX locks on it, and another process
//! might then remove the log under us.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use quipu_core::backend::Purpose;
use quipu_core::{Error, ErrorKind};
use rusqlite::{Connection, OptionalExtension as _};

use crate::error::StorageResult as _;
use crate::group::GroupCommit;
use crate::log::logged_pages;
use crate::open;
use crate::pages::walk::{Remains, Walk};
use crate::pages::{PageNumber, Tree};
use crate::pool::Pool;
use crate::rows;
use crate::sync::{Condvar, Instant, Mutex, PoisonError};
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
    is_busy: Mutex<bool>,
    done: Condvar,
}

/// What erasing works on.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'b> {
    pub(crate) writer: &'b GroupCommit<WriteConnection>,
    pub(crate) readers: &'b Pool,
    /// How long to wait for other writers.
    pub(crate) lock_timeout: Duration,
}

/// Returns whether text was removed that may still be in a file.
pub(crate) fn is_pending(connection: &Connection) -> Result<bool, Error> {
    pending(connection).map(|count| count > 0)
}

/// Returns how many removals are not erased yet.
fn pending(connection: &Connection) -> Result<i64, Error> {
    let sql = "SELECT erase_pending FROM upkeep";
    let mut statement = connection.prepare_cached(sql).or_storage_error()?;
    statement.query_row([], |row| row.get(0)).or_storage_error()
}

/// Notes, inside a transaction that removes text, that erasing is due.
pub(crate) fn set_pending(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE upkeep SET erase_pending = erase_pending + 1";
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

impl Eraser {
    pub(crate) fn new(database: &Path) -> Self {
        let database = database.to_owned();
        Self { database, is_busy: Mutex::new(false), done: Condvar::new() }
    }

    /// Erases everything that was removed before this is called. Whoever comes while another thread
    /// erases waits, and often finds that its own is done too.
    pub(crate) fn erase(&self, parts: Parts<'_>) -> Result<(), Error> {
        let deadline = Instant::now() + READERS_TIMEOUT;
        if !parts.readers.with(is_pending)? {
            return Ok(());
        }
        let _turn = self.turn(deadline)?;
        if !parts.readers.with(is_pending)? {
            return Ok(());
        }
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
            Remains::InPages(pages) if pages.is_empty() => {}
            Remains::InPages(pages) => {
                parts.clear(&self.database, &pages, frozen.page_size)?;
                let pending = frozen.end()?;
                parts.empty_log(deadline, |_| Ok(()))?;
                return parts.note_done(pending);
            }
            Remains::Elsewhere => {
                let pending = frozen.end()?;
                parts.rebuild(&self.database)?;
                parts.empty_log(deadline, |_| Ok(()))?;
                return parts.note_done(pending);
            }
        }
        let pending = frozen.end()?;
        parts.note_done(pending)
    }

    fn turn(&self, deadline: Instant) -> Result<ErasingTurn<'_>, Error> {
        let mut is_busy = self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_busy {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(Error::new(
                    ErrorKind::StorageBusy,
                    "another redaction is not done yet",
                ));
            }
            let waited = self.done.wait_timeout(is_busy, remaining);
            is_busy = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_busy = true;
        Ok(ErasingTurn(self))
    }
}

struct ErasingTurn<'e>(&'e Eraser);

impl Drop for ErasingTurn<'_> {
    fn drop(&mut self) {
        *self.0.is_busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.done.notify_one();
    }
}

/// A database file that does not change.
struct Frozen {
    snapshot: Connection,
    page_size: usize,
    /// How many removals were not erased when it was taken.
    pending: i64,
}

impl Frozen {
    /// Takes a snapshot while the log is empty and nobody writes.
    fn new(snapshot: Connection) -> Result<Self, Error> {
        snapshot.execute_batch("BEGIN").or_storage_error()?;
        // A transaction has its snapshot from its first read on.
        let pending = pending(&snapshot)?;
        let page_size = snapshot.pragma_query_value(None, "page_size", |row| row.get(0));
        Ok(Self { page_size: page_size.or_storage_error()?, pending, snapshot })
    }

    /// Returns whether there are rows of deleted stores.
    fn has_deleted_rows(&self) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM removed_stores)";
        self.snapshot.query_row(sql, [], |row| row.get(0)).or_storage_error()
    }

    fn remains(&self) -> Result<Remains, Error> {
        remains(&self.snapshot).or_storage_error()
    }

    /// Ends the snapshot.
    fn end(self) -> Result<i64, Error> {
        self.snapshot.execute_batch("COMMIT").or_storage_error()?;
        Ok(self.pending)
    }
}

/// Looks at every page.
fn remains(snapshot: &Connection) -> rusqlite::Result<Remains> {
    let mut roots = snapshot.prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")?;
    let roots = roots.query_map([], |row| row.get(0).map(PageNumber))?;
    let roots = roots.collect::<rusqlite::Result<Vec<_>>>()?;
    // Without `sqlite_dbpage`, nothing can be told about the pages.
    let Ok(mut pages) = snapshot.prepare("SELECT data FROM sqlite_dbpage") else {
        return Ok(Remains::Elsewhere);
    };
    let mut walk = Walk::new(snapshot.pragma_query_value(None, "page_count", |row| row.get(0))?);
    let mut rows = pages.query([])?;
    while let Some(row) = rows.next()? {
        walk.add(row.get_ref(0)?.as_blob().unwrap_or_default());
    }
    Ok(walk.remains(&roots))
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
        Ok(())
    }

    /// Empties the log and takes a snapshot of the database file alone.
    fn frozen(&self, deadline: Instant) -> Result<Frozen, Error> {
        self.writer.run_removal(self.deadline(), &mut |writer| {
            rows::compact_index(writer.connection()?).or_storage_error()
        })?;
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
                clear_pages(writer.connection()?, &pages)
            })
        };
        match clear_for(Purpose::Change) {
            Err(error) if *error.kind() == ErrorKind::StorageFull => clear_for(Purpose::Removal),
            result => result,
        }
    }

    /// Writes the whole file again from its rows.
    fn rebuild(&self, database: &Path) -> Result<(), Error> {
        self.exclusively(|connection| rebuild(connection, database))
    }

    /// Notes that what was pending is erased, unless more was removed since.
    fn note_done(&self, pending: i64) -> Result<(), Error> {
        self.writer.run_removal(self.deadline(), &mut |writer| {
            let sql = "UPDATE upkeep SET erase_pending = 0 WHERE erase_pending = ?1";
            writer.connection()?.execute(sql, [pending]).or_storage_error().map(drop)
        })
    }
}

fn clear_pages(connection: &Connection, pages: &BTreeSet<PageNumber>) -> Result<(), Error> {
    let read = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
    let write = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";
    let mut read = connection.prepare_cached(read).or_storage_error()?;
    let mut write = connection.prepare_cached(write).or_storage_error()?;
    for &number in pages {
        let page = read.query_row([number.0], |row| row.get::<_, Vec<u8>>(0)).optional();
        let Some(mut page) = page.or_storage_error()? else { continue };
        // What is no B-tree page any more was freed, and with that cleared.
        if let Ok(tree) = Tree::read(number, &page)
            && tree.has_remains(&page)
        {
            tree.clear(&mut page);
            write.execute((number.0, page)).or_storage_error()?;
        }
    }
    Ok(())
}

/// Writes a database again from its rows, with its temporary copy beside it.
pub(crate) fn rebuild(connection: &Connection, database: &Path) -> Result<(), Error> {
    // The copy holds live rows only and has no name, but it may be too large for the memory.
    if let Some(directory) = database.parent().and_then(Path::to_str) {
        connection.pragma_update(None, "temp_store_directory", directory).or_storage_error()?;
    }
    connection.pragma_update(None, "temp_store", "file").or_storage_error()?;
    let rebuilt = connection.execute_batch("VACUUM").or_storage_error();
    connection.pragma_update(None, "temp_store", "memory").or_storage_error()?;
    rebuilt
}

#[cfg(test)]
mod tests;
