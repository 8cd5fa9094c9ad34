//! The connection that writes: SQLite behind the [`Gate`].
//!
//! On a full disk it lets only removals in, with the room of the [`Reserve`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::backend::Purpose;
use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use crate::error::{self, StorageResult as _};
use crate::files::Files;
use crate::gate::{Gate, Inside};
use crate::group::{Database, GroupCommit, Work};
use crate::open;
use crate::reserve::Reserve;
use crate::sync::{Arc, Instant};

/// A connection that is inside the gate whenever it has a transaction.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    database: PathBuf,
    log: PathBuf,
    /// `None` after a failure that left it in an unknown state; the next write opens another.
    connection: Option<Connection>,
    gate: Arc<Gate>,
    files: Arc<Files>,
    reserve: Reserve,
    inside: Option<Inside>,
    /// What the open transaction is for.
    purpose: Purpose,
    is_closed: bool,
    /// When the log was last found too long.
    long_log_at: Option<Instant>,
}

/// A log that is longer than this is emptied as soon as no reader needs it.
const LOG_SIZE_BYTES_WANTED: u64 = 64 * 1024 * 1024;

/// A log that is longer than this takes no further changes.
const LOG_SIZE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How often emptying a long log is tried.
const EMPTY_LOG_EVERY: Duration = Duration::from_millis(250);

/// How long a clean end waits for readers.
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
            inside: None,
            purpose: Purpose::Change,
            is_closed: false,
            long_log_at: None,
        }
    }

    /// Returns the connection; opens another if the last one was given up.
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
        let _inside = self.gate.enter(deadline)?;
        self.files.require_same()?;
        let worked = work(self.connection()?);
        self.end_transaction();
        worked
    }

    /// Closes the connection, and moves the log into the database if nobody else writes: then it is
    /// theirs to do so. Whoever closes last removes the log.
    pub(crate) fn close(&mut self) {
        let emptied = self.exclusively(Instant::now(), |connection| {
            connection.busy_timeout(CLOSE_TIMEOUT).or_storage_error()?;
            open::truncate_log(connection)
        });
        // What is committed is in the log, so a failure here loses nothing.
        emptied.map(drop).unwrap_or_default();
        self.connection = None;
        self.is_closed = true;
    }

    /// Empties a log that has grown long; fails if it must not grow any further.
    ///
    /// SQLite starts the log anew only when no reader needs it. Short reads that overlap all the
    /// time, or one long backup, would let it grow without bound.
    fn limit_log(&mut self) -> Result<(), Error> {
        let Ok(log) = fs::metadata(&self.log) else { return Ok(()) };
        if log.len() <= LOG_SIZE_BYTES_WANTED {
            return Ok(());
        }
        let is_due = self.long_log_at.is_none_or(|at| at.elapsed() >= EMPTY_LOG_EVERY);
        let is_too_long = log.len() > LOG_SIZE_BYTES_MAX;
        if !is_due && !is_too_long {
            return Ok(());
        }
        self.long_log_at = Some(Instant::now());
        if self.try_empty_log()? || !is_too_long { Ok(()) } else { Err(error::log_too_long()) }
    }

    /// Empties the log if no reader is in the way; returns whether it is empty.
    fn try_empty_log(&mut self) -> Result<bool, Error> {
        let connection = self.connection()?;
        connection.busy_timeout(Duration::ZERO).or_storage_error()?;
        let emptied = open::truncate_log(connection);
        connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
        emptied
    }

    fn begin_inside(&mut self, purpose: Purpose) -> Result<(), Error> {
        self.files.require_same()?;
        match purpose {
            Purpose::Removal => {
                self.reserve.give_up();
                // With a failure here, the removal may still find room.
                self.try_empty_log().unwrap_or_default();
            }
            Purpose::Change => {
                self.limit_log()?;
                self.reserve.require()?;
                let size_bytes = self.size_bytes()?;
                if self.reserve.is_log_due(size_bytes) {
                    self.try_empty_log()?;
                }
            }
        }
        let connection = self.connection()?;
        execute(connection, "BEGIN IMMEDIATE")?;
        // A newer program may have migrated the database since it was opened.
        open::require_schema(connection)
    }

    /// Returns how long the database is with everything that is in the log and in the transaction.
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
        // What is written to a file that was removed meanwhile is lost.
        self.files.require_same()
    }

    /// Rolls back what is open. A connection that cannot do even that is given up.
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
        self.inside = Some(self.gate.enter(deadline)?);
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
        // The next one may fit when the log is in the database.
        if matches!(&committed, Err(error) if *error.kind() == ErrorKind::StorageFull) {
            self.try_empty_log().unwrap_or_default();
        }
        self.roll_back();
        committed
    }

    fn roll_back(&mut self) {
        self.end_transaction();
        if self.purpose == Purpose::Removal && self.inside.is_some() {
            // Nobody else may write before the room is kept again. Failing leaves it to the next.
            self.try_empty_log().unwrap_or_default();
            self.reserve.keep();
        }
        self.inside = None;
    }

    fn is_in_transaction(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_autocommit())
    }

    fn changes_count(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::total_changes)
    }
}

impl GroupCommit<WriteConnection> {
    /// Runs work that removes something, on a full disk too.
    pub(crate) fn run_removal(
        &self,
        deadline: Instant,
        work: &mut Work<'_, WriteConnection>,
    ) -> Result<(), Error> {
        match self.run(deadline, work) {
            Err(error) if *error.kind() == ErrorKind::StorageFull => {
                self.run_apart(Purpose::Removal, deadline, work)
            }
            result => result,
        }
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql).or_storage_error()?;
    statement.raw_execute().or_storage_error().map(drop)
}
