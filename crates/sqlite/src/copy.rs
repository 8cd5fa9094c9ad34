//! A copy of the database in memory, which is nobody else's.
//!
//! The index is in the database, so whoever searches may have to write. Where that is impossible for
//! now (the disk is full or read-only, or another process holds the lock and does not go on), a copy
//! takes the index further instead. It is made by SQLite's backup, which only reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::{Backend, Condition, LookWork, Purpose, ReadWork, Sequence, WriteWork};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::error::StorageResult as _;
use crate::open;
use crate::recall::Source;
use crate::rows::{self, Rows};

/// Larger databases are not copied.
const COPY_SIZE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// How often the copying starts again because others write meanwhile, before it gives up.
const ATTEMPTS_MAX: usize = 10;

#[derive(Debug)]
pub(crate) struct CopyInMemory(Mutex<Connection>);

/// Copies what a connection reads; `None` if it is too large or changes too fast.
pub(crate) fn copy(from: &Connection) -> Result<Option<CopyInMemory>, Error> {
    let pragma = |name| from.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let size_bytes =
        pragma("page_count").or_storage_error()? * pragma("page_size").or_storage_error()?;
    if size_bytes > COPY_SIZE_BYTES_MAX {
        return Ok(None);
    }
    let mut copy = Connection::open_in_memory().or_storage_error()?;
    open::configure(&copy).or_storage_error()?;
    {
        let backup = Backup::new(from, &mut copy).or_storage_error()?;
        let mut step = StepResult::Busy;
        for _ in 0..ATTEMPTS_MAX {
            // All pages in one step are one snapshot.
            step = backup.step(-1).or_storage_error()?;
            if step == StepResult::Done {
                break;
            }
        }
        if step != StepResult::Done {
            return Ok(None);
        }
    }
    Ok(Some(CopyInMemory(Mutex::new(copy))))
}

impl CopyInMemory {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic has left open is rolled back by the next one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for CopyInMemory {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        work(&Rows::new(Source::Database(&self.connection())))
    }

    fn read_now(&self, _: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        None
    }

    fn write(&self, _: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let connection = self.connection();
        let transaction = connection.unchecked_transaction().or_storage_error()?;
        work(&mut Rows::new(Source::Database(&transaction)))?;
        transaction.commit().or_storage_error()
    }

    fn wait(&self, _: Sequence, _: Duration) -> Result<Sequence, Error> {
        rows::newest_sequence(&self.connection()).or_storage_error()
    }

    fn watch(&self, _: Duration, look: &mut LookWork<'_>) -> Result<(), Error> {
        look().map(drop)
    }

    fn erase(&self) -> Result<(), Error> {
        Ok(())
    }

    fn is_erased(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn copy_in_memory(&self) -> Result<Option<Arc<dyn Backend>>, Error> {
        Ok(None)
    }

    fn condition(&self) -> Result<Condition, Error> {
        Ok(Condition::default())
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn verify_index(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn rebuild(&self) -> Result<(), Error> {
        Ok(())
    }
}
