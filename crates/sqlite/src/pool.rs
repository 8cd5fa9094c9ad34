//! Connections that only read.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use rusqlite::Connection;

use crate::open;

/// Idle connections for reading; a new one is opened when all are busy.
pub(crate) struct Pool {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// More idle connections than this are closed.
const IDLE_MAX: usize = 16;

impl Pool {
    pub(crate) fn new(database: PathBuf) -> Self {
        Self { database, idle: Mutex::new(Vec::new()) }
    }

    /// Runs `work` with a connection of its own.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.database)?,
        };
        let result = work(&connection);
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && connection.is_autocommit() {
            idle.push(connection);
        }
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // Pushing and popping cannot leave the list half-changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
