//! Connections that only read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_core::Error;
use rusqlite::Connection;

use crate::error;
use crate::files::Files;
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

impl Pool {
    pub(crate) fn new(database: PathBuf, mutability: Mutability, files: Arc<Files>) -> Self {
        Self { database, mutability, files, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Runs `work` with a connection of its own.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.files.require_unchanged_throttled()?;
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
