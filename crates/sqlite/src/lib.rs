//! Quipu's embedded backend: one SQLite file that many processes share.
//!
//! Rules live in `quipu-core`; this crate only keeps rows. What it adds to SQLite:
//! [`group`] commits the writes of many threads with one sync, [`gate`] queues the writers of many
//! processes without polling, [`recall`] answers again what cannot have changed, [`feed`] wakes
//! whoever waits for changes, and [`erase`] makes redaction real. `docs/storage.md` tells users what is in the data directory.

mod erase;
mod error;
mod feed;
mod gate;
mod group;
mod open;
mod pool;
mod recall;
mod rows;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::{Backend, LookWork, ReadWork, Sequence, WriteWork};

use error::StorageResult as _;
use feed::Feed;
use group::GroupCommit;
use pool::Pool;
use recall::Recall;

pub use open::{DATABASE_FILE, OpenMode};

/// A data directory that is open.
pub struct SqliteBackend {
    directory: PathBuf,
    writer: GroupCommit,
    readers: Pool,
    recall: Recall,
    feed: Arc<Feed>,
}

impl SqliteBackend {
    /// Opens a data directory; [`OpenMode`] says what to do if it does not exist.
    pub fn open(directory: &Path, mode: OpenMode) -> Result<Self, Error> {
        let opened = open::open(directory, mode)?;
        let feed = Arc::new(Feed::new(&opened.gate));
        let recall = Recall::new(opened.gate.turns().or_storage_error()?);
        Ok(Self {
            directory: directory.to_owned(),
            writer: GroupCommit::new(opened.connection, opened.gate, Arc::clone(&feed)),
            readers: Pool::new(directory.join(DATABASE_FILE)),
            recall,
            feed,
        })
    }

    /// Writes a consistent copy of everything to a new file while others go on writing.
    pub fn backup(&self, target: &Path) -> Result<(), Error> {
        erase::backup(&self.directory.join(DATABASE_FILE), target)
    }

    /// Returns how many bytes the database and its log take on disk.
    pub fn size_bytes(&self) -> u64 {
        let files = [DATABASE_FILE, open::LOG_FILE].map(|name| self.directory.join(name));
        files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    fn newest_sequence(&self) -> Result<Sequence, Error> {
        self.readers.with(|connection| rows::newest_sequence(connection).or_storage_error())
    }
}

impl Backend for SqliteBackend {
    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.recall.try_without_database(work)
    }

    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        if let Some(worked) = self.read_now(work) {
            return worked;
        }
        self.readers.with(|connection| self.recall.run_on(connection, work))
    }

    fn write(&self, work: &mut WriteWork<'_>) -> Result<(), Error> {
        self.writer.run(work)
    }

    fn write_derived(&self, work: &mut WriteWork<'_>) -> Result<(), Error> {
        self.writer.run_unsynced(work)
    }

    fn wait(&self, seen: Sequence, patience: Duration) -> Result<Sequence, Error> {
        let mut newest = seen;
        self.feed.watch(patience, &mut || {
            newest = self.newest_sequence()?;
            Ok(newest > seen)
        })?;
        Ok(newest)
    }

    fn watch(&self, patience: Duration, look: &mut LookWork<'_>) -> Result<(), Error> {
        self.feed.watch(patience, look)
    }

    fn erase(&self) -> Result<(), Error> {
        if self.readers.with(erase::is_pending)? {
            self.writer.alone(erase::erase)?;
        }
        Ok(())
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        // A connection that has searched before would compare the index with what it remembers.
        let connection = open::reader(&self.directory.join(DATABASE_FILE))?;
        rows::verify(&connection).or_storage_error()
    }

    fn verify_index(&self) -> Result<Vec<String>, Error> {
        self.readers.with(|connection| rows::verify_index(connection).or_storage_error())
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.writer.alone(|connection| rows::rebuild(connection).or_storage_error())
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("directory", &self.directory).finish_non_exhaustive()
    }
}
