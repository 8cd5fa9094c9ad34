//! The connection that writes: SQLite behind the [`Gate`].
//!
//! On a full disk it admits only removals, in the space of the [`Reserve`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::backend::Purpose;
use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use crate::error::{self, StorageResult as _};
use crate::files::Files;
use crate::gate::{Gate, GateGuard};
use crate::group::{Database, GroupCommit, Work};
use crate::open;
use crate::reserve::Reserve;
use crate::sync::{Arc, Instant};

/// A connection that is inside the gate whenever it has a transaction.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    database: PathBuf,
    log: PathBuf,
    /// `None` after a failure that left it in an unknown state; the next write opens another one.
    connection: Option<Connection>,
    gate: Arc<Gate>,
    files: Arc<Files>,
    reserve: Reserve,
    /// Held while a transaction is open.
    gate_guard: Option<GateGuard>,
    /// What the open transaction is for.
    purpose: Purpose,
    is_closed: bool,
    /// When the log was last found too long.
    long_log_at: Option<Instant>,
}

/// A log that is longer than this is truncated as soon as no reader needs it.
const LOG_SIZE_BYTES_WANTED: u64 = 64 * 1024 * 1024;

/// A log that is longer than this takes no further changes.
const LOG_SIZE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How often truncating a long log is tried.
const TRUNCATE_LOG_INTERVAL: Duration = Duration::from_millis(250);

/// How long closing waits for readers.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

impl WriteConnection {
    pub(crate) fn new(
        database: &Path,
        connection: Connection,
        gate: Arc<Gate>,
        files: Arc<Files>,
    ) -> Self {
        Self {
            database: database.to_owned(),
            log: database.with_file_name(open::LOG_FILE),
            reserve: Reserve::new(database),
            connection: Some(connection),
            gate,
            files,
            gate_guard: None,
            purpose: Purpose::Change,
            is_closed: false,
            long_log_at: None,
        }
    }

    /// Returns the connection; opens another one if the last was discarded.
    pub(crate) fn connection(&mut self) -> Result<&Connection, Error> {
        if self.is_closed {
            return Err(error::closed());
        }
        if self.connection.is_none() {
            self.connection = Some(open::connect(&self.database)?);
        }
        self.connection.as_ref().ok_or_else(error::closed)
    }

    /// Runs `work` while no other process writes. Nothing stays locked, whatever `work` does.
    pub(crate) fn exclusively<T>(
        &mut self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.connection()?;
        let _guard = self.gate.enter(deadline)?;
        self.files.require_unchanged()?;
        let worked = work(self.connection()?);
        self.end_transaction();
        worked
    }

    /// Closes the connection after a checkpoint. If another process writes, the checkpoint is left to it:
    /// whoever closes last removes the log.
    pub(crate) fn close(&mut self) {
        let truncated = self.exclusively(Instant::now(), |connection| {
            connection.busy_timeout(CLOSE_TIMEOUT).or_storage_error()?;
            open::truncate_log(connection)
        });
        // What is committed is in the log, so a failure here loses nothing.
        truncated.map(drop).unwrap_or_default();
        self.connection = None;
        self.is_closed = true;
    }

    /// Truncates a log that has grown long; fails if it must not grow any further.
    ///
    /// SQLite's automatic checkpoint copies pages into the database, but it restarts the log only at a
    /// moment when no reader uses it. Short reads that always overlap, or one long backup, would let it
    /// grow without bound. A checkpoint inside the gate waits for no writer, so it needs just one such
    /// moment.
    fn limit_log(&mut self) -> Result<(), Error> {
        let Ok(log) = fs::metadata(&self.log) else { return Ok(()) };
        if log.len() <= LOG_SIZE_BYTES_WANTED {
            return Ok(());
        }
        let is_due = self.long_log_at.is_none_or(|at| at.elapsed() >= TRUNCATE_LOG_INTERVAL);
        let is_too_long = log.len() > LOG_SIZE_BYTES_MAX;
        if !is_due && !is_too_long {
            return Ok(());
        }
        self.long_log_at = Some(Instant::now());
        if self.try_truncate_log()? || !is_too_long { Ok(()) } else { Err(error::log_too_long()) }
    }

    /// Truncates the log if no reader is in the way; returns whether it is empty.
    fn try_truncate_log(&mut self) -> Result<bool, Error> {
        let connection = self.connection()?;
        connection.busy_timeout(Duration::ZERO).or_storage_error()?;
        let truncated = open::truncate_log(connection);
        connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
        truncated
    }

    fn begin_inside(&mut self, purpose: Purpose) -> Result<(), Error> {
        self.files.require_unchanged()?;
        match purpose {
            Purpose::Removal => {
                self.reserve.release();
                // If this fails, the removal may still find enough space.
                self.try_truncate_log().unwrap_or_default();
            }
            Purpose::Change => {
                self.limit_log()?;
                self.reserve.require()?;
                let size_bytes = self.size_bytes()?;
                if self.reserve.is_checkpoint_due(size_bytes) {
                    self.try_truncate_log()?;
                }
            }
        }
        let connection = self.connection()?;
        execute(connection, "BEGIN IMMEDIATE")?;
        // A newer program may have migrated the database since it was opened. Inside the transaction:
        // a check before it could be overtaken by a migration.
        open::require_schema(connection)
    }

    /// Returns how large the database is with everything that is in the log and in the transaction.
    fn size_bytes(&mut self) -> Result<u64, Error> {
        let connection = self.connection()?;
        let pragma =
            |sql| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, u64>(0));
        let pages_count = pragma("PRAGMA page_count").or_storage_error()?;
        Ok(pages_count * pragma("PRAGMA page_size").or_storage_error()?)
    }

    fn commit_inside(&mut self) -> Result<(), Error> {
        if self.purpose != Purpose::Removal {
            let size_bytes = self.size_bytes()?;
            self.reserve.require_room(size_bytes)?;
        }
        let connection = self.connection.as_ref().ok_or_else(error::closed)?;
        execute(connection, "COMMIT")?;
        // A write to a file that was removed or replaced meanwhile is lost, so it is not acknowledged.
        self.files.require_unchanged()
    }

    /// Rolls back what is open. A connection that cannot do even that is discarded.
    fn end_transaction(&mut self) {
        let Some(connection) = &self.connection else { return };
        if connection.is_autocommit() {
            return;
        }
        let rolled_back = execute(connection, "ROLLBACK");
        if rolled_back.is_err() && !connection.is_autocommit() {
            self.connection = None;
        }
    }
}

impl Database for WriteConnection {
    fn begin(&mut self, purpose: Purpose, deadline: Instant) -> Result<(), Error> {
        self.connection()?;
        self.gate_guard = Some(self.gate.enter(deadline)?);
        self.purpose = purpose;
        let begun = self.begin_inside(purpose);
        if begun.is_err() {
            self.roll_back();
        }
        begun
    }

    fn commit(&mut self) -> Result<(), Error> {
        let committed = self.commit_inside();
        self.end_transaction();
        // After a checkpoint, the next one may fit.
        if matches!(&committed, Err(error) if *error.kind() == ErrorKind::StorageFull) {
            self.try_truncate_log().unwrap_or_default();
        }
        self.roll_back();
        committed
    }

    fn roll_back(&mut self) {
        self.end_transaction();
        if self.purpose == Purpose::Removal && self.gate_guard.is_some() {
            // Before the gate opens, so that nobody else takes the space. If this fails, the next writer
            // tries again.
            self.try_truncate_log().unwrap_or_default();
            self.reserve.acquire();
        }
        self.gate_guard = None;
    }

    fn is_in_transaction(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_autocommit())
    }

    fn changes_count(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::total_changes)
    }
}

impl GroupCommit<WriteConnection> {
    /// Runs work that removes something, even on a full disk.
    ///
    /// It tries like any other write first. Using the reserve right away would make every deletion pay
    /// for a checkpoint and for writing the reserve again.
    pub(crate) fn run_removal(
        &self,
        deadline: Instant,
        work: &mut Work<'_, WriteConnection>,
    ) -> Result<(), Error> {
        match self.run(deadline, work) {
            Err(error) if *error.kind() == ErrorKind::StorageFull => {
                self.run_alone(Purpose::Removal, deadline, work)
            }
            result => result,
        }
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql).or_storage_error()?;
    statement.raw_execute().or_storage_error().map(drop)
}
