//! The connection that writes: SQLite behind the [`Gate`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::Error;
use rusqlite::Connection;

use crate::error::{self, StorageResult as _};
use crate::files::Files;
use crate::gate::{Gate, Inside};
use crate::group::{Database, Durability};
use crate::open;
use crate::sync::{Arc, Instant};

/// A connection that is inside the gate whenever it has a transaction.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    database: PathBuf,
    log: PathBuf,
    /// `None` after a failure that left it in an unknown state; the next write opens another.
    connection: Option<Connection>,
    durability: Durability,
    gate: Arc<Gate>,
    files: Arc<Files>,
    inside: Option<Inside>,
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
            connection: Some(connection),
            durability: Durability::Synced,
            gate,
            files,
            inside: None,
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
            self.durability = Durability::Synced;
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
        self.set_durability(Durability::Synced)?;
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

    fn set_durability(&mut self, durability: Durability) -> Result<(), Error> {
        if self.durability != durability {
            let level = match durability {
                Durability::Synced => "full",
                Durability::Deferred => "normal",
            };
            let connection = self.connection()?;
            connection.pragma_update(None, "synchronous", level).or_storage_error()?;
            self.durability = durability;
        }
        Ok(())
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
        let connection = self.connection()?;
        connection.busy_timeout(Duration::ZERO).or_storage_error()?;
        let emptied = open::truncate_log(connection);
        connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
        if emptied? || !is_too_long { Ok(()) } else { Err(error::log_too_long()) }
    }

    fn begin_inside(&mut self) -> Result<(), Error> {
        self.files.require_same()?;
        self.limit_log()?;
        let connection = self.connection()?;
        execute(connection, "BEGIN IMMEDIATE")?;
        // A newer program may have migrated the database since it was opened.
        open::require_schema(connection)
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
    fn begin(&mut self, durability: Durability, deadline: Instant) -> Result<(), Error> {
        self.connection()?;
        self.inside = Some(self.gate.enter(deadline)?);
        let begun = self.set_durability(durability).and_then(|()| self.begin_inside());
        if begun.is_err() {
            self.roll_back();
        }
        begun
    }

    fn commit(&mut self) -> Result<(), Error> {
        let committed = match &self.connection {
            Some(connection) => execute(connection, "COMMIT"),
            None => Err(error::closed()),
        };
        // What is written to a file that was removed meanwhile is lost.
        let committed = committed.and_then(|()| self.files.require_same());
        self.roll_back();
        committed
    }

    fn roll_back(&mut self) {
        self.end_transaction();
        self.inside = None;
    }

    fn is_in_transaction(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_autocommit())
    }

    fn changes_count(&self) -> u64 {
        self.connection.as_ref().map_or(0, Connection::total_changes)
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql).or_storage_error()?;
    statement.raw_execute().or_storage_error().map(drop)
}
