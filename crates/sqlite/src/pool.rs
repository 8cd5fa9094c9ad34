//! Connections that only read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_core::Error;
use rusqlite::Connection;

use crate::error::{self, StorageResult as _};
use crate::files::{Files, Resting};
use crate::open::{self, Mutability};

/// Idle connections for reading; a new one is opened when all are busy.
pub(crate) struct Pool {
    database: PathBuf,
    mutability: Mutability,
    files: Arc<Files>,
    /// `None` when the pool is closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

/// More idle connections than this are closed.
const IDLE_MAX: usize = 16;

/// How often a read is tried if others write meanwhile.
const ATTEMPTS_MAX: usize = 10;

impl Pool {
    pub(crate) fn new(database: PathBuf, mutability: Mutability, files: Arc<Files>) -> Self {
        Self { database, mutability, files, idle: Mutex::new(Some(Vec::new())) }
    }

    pub(crate) fn mutability(&self) -> Mutability {
        self.mutability
    }

    /// Runs `work` with a connection of its own. If this process may not write the database, `work` may run
    /// more than once.
    pub(crate) fn with<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.files.require_unchanged_throttled()?;
        if self.mutability == Mutability::Protected {
            return self.with_protected(work);
        }
        let idle = match &mut *self.idle() {
            Some(idle) => idle.pop(),
            None => return Err(error::closed()),
        };
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let result = work(&connection);
        if let Some(idle) = &mut *self.idle()
            && idle.len() < IDLE_MAX
            && connection.is_autocommit()
        {
            idle.push(connection);
        }
        result
    }

    /// Runs `work` with a connection that was not used before.
    pub(crate) fn with_new<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.mutability {
            Mutability::Protected => self.with_protected(work),
            Mutability::Mutable | Mutability::Immutable => work(&self.open()?),
        }
    }

    /// Runs `work` on a database that others may write, more than once if they do.
    fn with_protected<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..ATTEMPTS_MAX {
            if self.idle().is_none() {
                return Err(error::closed());
            }
            if let Some(done) = self.try_protected(&mut work)? {
                return Ok(done);
            }
        }
        Err(error::changed_while_read())
    }

    /// Runs `work` once; returns `None` if somebody has written meanwhile.
    ///
    /// While others have it open, SQLite reads along with them. Once they have closed it, the index of the
    /// log is gone, and SQLite cannot create it here, so the file has to be read as immutable. That would
    /// be wrong if somebody began to write meanwhile: pages of two states would be mixed. So the result
    /// counts only if the file is the same afterwards. Connections are not pooled, because which way is
    /// right can change between two reads.
    fn try_protected<T>(
        &self,
        work: &mut impl FnMut(&Connection) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let is_shared = || self.database.with_file_name(open::LOG_INDEX_FILE).exists();
        if is_shared() {
            let result = self.open().and_then(|connection| work(&connection));
            // The last of the others may have closed it just before it was opened here.
            return if result.is_err() && !is_shared() { Ok(None) } else { result.map(Some) };
        }
        let Some(before) = Resting::of(&self.database).or_storage_error()? else {
            return if is_shared() { Ok(None) } else { Err(error::log_on_protected()) };
        };
        let result = work(&open::reader(&self.database, Mutability::Immutable)?);
        let is_same = Resting::of(&self.database).or_storage_error()? == Some(before);
        // Even an error counts only then: mixed pages look like damage.
        is_same.then_some(result).transpose()
    }

    /// Opens a connection that is not pooled, for long transactions.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        open::reader(&self.database, self.mutability)
    }

    /// Closes the idle connections, and every other one as soon as it is idle.
    pub(crate) fn close(&self) {
        *self.idle() = None;
    }

    fn idle(&self) -> MutexGuard<'_, Option<Vec<Connection>>> {
        // Pushing and popping cannot leave the list half-changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::ErrorKind;

    use super::*;
    use crate::{DATABASE_FILE, OpenMode, SqliteBackend};

    /// Commits a row through a process's worth of connections, and closes them.
    fn write(database: &std::path::Path) {
        let connection = open::connect(database).unwrap();
        let sql = "INSERT INTO workspaces (id, name, created_at) VALUES (randomblob(16), 'x', 1)";
        connection.execute(sql, []).unwrap();
    }

    #[test]
    fn a_read_that_overlaps_with_a_writer_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        drop(SqliteBackend::open(directory.path(), OpenMode::Create).unwrap());
        let database = directory.path().join(DATABASE_FILE);
        let files = Arc::new(Files::new([]).unwrap());
        let pool = Pool::new(database.clone(), Mutability::Protected, files);
        let count = |connection: &Connection| -> Result<i64, Error> {
            let sql = "SELECT count(*) FROM workspaces";
            connection.query_row(sql, [], |row| row.get(0)).or_storage_error()
        };
        let before = pool.with(count).unwrap();
        let during = pool.with(|connection| {
            write(&database);
            count(connection)
        });
        assert_eq!(*during.unwrap_err().kind(), ErrorKind::StorageBusy);
        let attempts = i64::try_from(ATTEMPTS_MAX).unwrap();
        assert_eq!(pool.with(count).unwrap(), before + attempts);
        let mut is_written = false;
        let during = pool.with(|connection| {
            if !std::mem::replace(&mut is_written, true) {
                write(&database);
            }
            count(connection)
        });
        assert_eq!(during.unwrap(), before + attempts + 1);

        // While others have it open, what they commit is seen.
        let other = open::connect(&database).unwrap();
        count(&other).unwrap();
        write(&database);
        assert_eq!(pool.with(count).unwrap(), before + attempts + 2);
    }
}
