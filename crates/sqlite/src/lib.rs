//! Quipu's embedded backend: one SQLite file that many processes share.
//!
//! Rules live in `quipu-core`; this crate only stores rows. What it adds to SQLite: [`group`] is group
//! commit for the threads of a process, [`gate`] is a fair lock between processes, [`recall`] is a cache
//! that is never stale, [`feed`] wakes followers of the change feed, [`erase`] makes redaction real,
//! [`reserve`] lets a full disk be cleaned up, and [`files`] notices that the files were replaced.
//! `docs/storage.md` tells users what is in the data directory.

mod backup;
mod erase;
mod error;
mod feed;
mod files;
mod gate;
mod group;
mod holder;
mod open;
mod pool;
mod recall;
mod reserve;
mod rows;
mod seqlock;
mod sync;
mod timed_call;
mod transfer;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::{
    Backend, Condition, Erasure, PendingErasure, Purpose, ReadWork, Sequence, WatchWork, WriteWork,
};

use erase::{Access, Eraser};
use error::StorageResult as _;
use feed::Feed;
use files::Files;
use gate::Gate;
use group::{GroupCommit, Hooks};
use open::{Opened, Writing};
use pool::Pool;
use recall::{Recall, Source};
use rows::{Rows, Totals};
use writer::WriteConnection;

pub use backup::{Restored, restore_backup};
pub use open::{DATABASE_FILE, OpenMode, OpenSettings, private_directory, schema_version};

/// How long closing waits for the writes of this process that are under way.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How old the cached counts of stores, memories and versions may be.
const TOTALS_AGE_MAX: Duration = Duration::from_secs(5);

/// A data directory that is open.
pub struct SqliteBackend {
    directory: PathBuf,
    lock_timeout: Duration,
    /// `None` if this process cannot write.
    writer: Option<GroupCommit<WriteConnection>>,
    readers: Pool,
    files: Arc<Files>,
    recall: Recall,
    feed: Arc<Feed>,
    eraser: Eraser,
    gate: Option<Arc<Gate>>,
    totals: Mutex<Option<(Instant, Totals)>>,
    is_closed: AtomicBool,
}

impl SqliteBackend {
    /// Opens a data directory; [`OpenMode`] says what to do if it does not exist.
    pub fn open(directory: &Path, mode: OpenMode) -> Result<Self, Error> {
        Self::open_with(directory, &OpenSettings::new(mode))
    }

    /// Opens a data directory.
    pub fn open_with(directory: &Path, settings: &OpenSettings) -> Result<Self, Error> {
        let Opened { files, writing, mutability } = open::open(directory, settings)?;
        let database = directory.join(DATABASE_FILE);
        let gate = writing.as_ref().map(|writing| Arc::clone(&writing.gate));
        let feed = Arc::new(Feed::new(&directory.join(open::GATE_FILES[0])));
        let writer = writing.map(|Writing { connection, gate }| {
            let hooks = hooks(&gate, &feed);
            let files = Arc::clone(&files);
            GroupCommit::new(WriteConnection::new(&database, connection, gate, files), hooks)
        });
        Ok(Self {
            directory: directory.to_owned(),
            lock_timeout: settings.lock_timeout,
            writer,
            readers: Pool::new(database.clone(), mutability, Arc::clone(&files)),
            recall: Recall::new(gate.as_ref().map(|gate| gate.turn_count()), Arc::clone(&files)),
            gate,
            totals: Mutex::default(),
            is_closed: AtomicBool::new(false),
            files,
            feed,
            eraser: Eraser::new(&database),
        })
    }

    fn file_size_bytes(&self, name: &str) -> u64 {
        self.directory.join(name).metadata().map_or(0, |file| file.len())
    }

    fn writer(&self) -> Result<&GroupCommit<WriteConnection>, Error> {
        self.writer.as_ref().ok_or_else(|| self.readers.mutability().refusal())
    }

    fn erase_access(&self) -> Result<Access<'_>, Error> {
        let (writer, lock_timeout) = (self.writer()?, self.lock_timeout);
        Ok(Access { writer, readers: &self.readers, lock_timeout })
    }

    /// Fails after [`close`](Backend::close). What needs a connection fails by itself; this is for what is
    /// answered from memory.
    fn require_open(&self) -> Result<(), Error> {
        if self.is_closed.load(Ordering::Acquire) { Err(error::closed()) } else { Ok(()) }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.lock_timeout
    }

    /// Counts rows. Counting a million versions takes tens of milliseconds, so the result is cached.
    fn totals(&self) -> Result<Totals, Error> {
        let mut cached = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, totals)) = &*cached
            && at.elapsed() < TOTALS_AGE_MAX
        {
            return Ok(*totals);
        }
        let totals = self.readers.with(|connection| rows::totals(connection).or_storage_error())?;
        *cached = Some((Instant::now(), totals));
        Ok(totals)
    }

    fn newest_sequence(&self) -> Result<Sequence, Error> {
        self.readers.with(|connection| rows::newest_sequence(connection).or_storage_error())
    }
}

fn hooks(gate: &Arc<Gate>, feed: &Arc<Feed>) -> Hooks {
    let (gate, feed) = (Arc::clone(gate), Arc::clone(feed));
    Hooks { committed: Box::new(move || feed.notify()), busy: Box::new(move || gate.busy()) }
}

impl Backend for SqliteBackend {
    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        if let Err(closed) = self.require_open() {
            return Some(Err(closed));
        }
        self.recall.try_without_database(work)
    }

    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        if let Some(worked) = self.read_now(work) {
            return worked;
        }
        self.readers.with(|connection| self.recall.run_on(connection, work))
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let mut on_rows = |writer: &mut WriteConnection| {
            work(&mut Rows::new(Source::Database(writer.connection()?)))
        };
        match purpose {
            Purpose::Change => self.writer()?.run(self.deadline(), &mut on_rows),
            Purpose::Removal => self.writer()?.run_removal(self.deadline(), &mut on_rows),
        }
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let mut newest = seen;
        self.feed.watch(timeout, &mut || {
            newest = self.newest_sequence()?;
            Ok(newest > seen)
        })?;
        Ok(newest)
    }

    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error> {
        self.feed.watch(timeout, is_done)
    }

    fn erase(&self) -> Result<Erasure, Error> {
        let erased = self.eraser.erase(self.erase_access()?)?;
        // Listed even if nothing was erased: what is unreachable does not depend on it.
        Ok(Erasure { unreachable: self.unreachable()?, ..erased })
    }

    fn unreachable(&self) -> Result<Vec<String>, Error> {
        backup::leftovers(&self.directory).or_storage_error()
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        if erased.is_empty() { Ok(()) } else { self.erase_access()?.note_erased(erased) }
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.require_open()?;
        self.files.require_unchanged()?;
        let stats = self.writer()?.stats();
        let totals = self.totals()?;
        let held = self.gate.as_ref().map(|gate| gate.held()).transpose().or_storage_error()?;
        Ok(Condition {
            stores_count: totals.stores,
            memories_count: totals.memories,
            versions_count: totals.versions,
            lock: held.flatten(),
            database_size_bytes: self.file_size_bytes(DATABASE_FILE),
            log_size_bytes: self.file_size_bytes(open::LOG_FILE),
            disk_free_bytes: disk_free_bytes(&self.directory),
            writers_waiting_count: stats.waiting,
            groups_count: stats.groups,
            writes_count: stats.writes,
            clock: None,
        })
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        // A pooled connection would check pages from its own cache instead of those on the disk.
        self.readers.with_new(|connection| rows::verify(connection).or_storage_error())
    }

    fn rebuild(&self) -> Result<(), Error> {
        let deadline = self.deadline();
        self.writer()?.outside_transaction(deadline, |writer| {
            writer.exclusively(deadline, |connection| rows::rebuild(connection).or_storage_error())
        })
    }

    fn backup(&self, target: &Path) -> Result<(), Error> {
        backup::backup(&self.directory.join(DATABASE_FILE), target)
    }

    fn compact(&self) -> Result<(), Error> {
        let (deadline, database) = (self.deadline(), self.directory.join(DATABASE_FILE));
        self.writer()?.outside_transaction(deadline, |writer| {
            writer.exclusively(deadline, |connection| {
                quipu_pages::rebuild(connection, &database).or_storage_error()?;
                open::truncate_log(connection).map(drop)
            })
        })
    }

    /// Runs a checkpoint too, so that a copy of the database file alone is complete.
    fn close(&self) -> Result<(), Error> {
        self.is_closed.store(true, Ordering::Release);
        self.readers.close();
        let closed = match &self.writer {
            Some(writer) => writer.outside_transaction(Instant::now() + CLOSE_TIMEOUT, |writer| {
                writer.close();
                Ok(())
            }),
            None => Ok(()),
        };
        self.feed.notify();
        closed
    }
}

/// Returns how much space is available to us on the disk of a directory, where the system reports it.
fn disk_free_bytes(directory: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(directory).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _: &Path = directory;
        None
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("directory", &self.directory).finish_non_exhaustive()
    }
}
