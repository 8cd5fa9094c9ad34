//! The index file: opening it, and detecting that it was replaced.
//!
//! The index is derived, so a file that is damaged, has another format or was removed is replaced
//! by an empty one, which the next search fills. Other processes may have the file open at any
//! time; [`replacing`](super::replacing) explains how they notice.
//!
//! Searching must work where nothing can be written. A file that cannot be opened for writing is
//! opened read-only, and if even that would need to create files, as immutable, that is, without
//! its write-ahead log. That is correct only if the log is empty: a process that died during a
//! checkpoint left pages of different ages in the file, and only the log has the right ones. If
//! none of this is possible, the index is empty.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use quipu_core::{Error, ErrorKind};

use super::cache::Cache;
use super::error::IndexError;
use super::replacing::{Identity, Sole, Stamp, is_file_or_missing, opening, replacing};
use super::rows::{self, SegmentRow};
use super::segment::Segment;

/// The name of the index file in the data directory.
pub const INDEX_FILE: &str = "index.db";

/// The format version of the index. It is incremented with every change of the layout or of what is
/// indexed of a text; an index with another version is rebuilt. A golden test enforces this.
pub(crate) const FORMAT: i64 = 6;

/// The tables of the index.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// The application id of an index: the letters `Qidx`.
const APPLICATION_ID: i64 = 0x5169_6478;

/// How long to wait for another process that writes the index. After that, a search uses an
/// overlay.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// The maximum number of idle connections.
const IDLE_MAX: usize = 4;

/// The number of prepared statements cached per connection.
const STATEMENTS_MAX: usize = 48;

/// The index file and the connections to it.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    idle: Mutex<Vec<Opened>>,
}

/// A connection and the files that it has open.
#[derive(Debug)]
struct Opened {
    connection: Connection,
    identity: Option<Identity>,
    /// The state of the file when it was opened, if it is read without locks.
    stamp: Option<Stamp>,
    access: Access,
    cache: Cache,
}

/// A snapshot of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot<'c> {
    pub(crate) connection: &'c Connection,
    /// The cache of the connection, if it may be used.
    cache: Option<&'c Cache>,
}

/// Segments with at most this many memories are cached as a whole.
const SMALL_MEMORIES_MAX: usize = 63;

impl<'c> Snapshot<'c> {
    /// Returns a small segment as a whole. A search looks up each word in each segment, and every
    /// batch adds one, so small segments would otherwise take most of its time.
    pub(crate) fn small_segment(
        &self,
        row: &SegmentRow,
    ) -> Result<Option<Arc<Segment>>, IndexError> {
        let [memories, ..] = row.counts;
        let Some(cache) = self.cache.filter(|_| memories <= SMALL_MEMORIES_MAX) else {
            return Ok(None);
        };
        if let Some(known) = cache.segment(row.id) {
            return Ok(Some(known));
        }
        let blocks = rows::blocks_after(self.connection, row.id, None, usize::MAX)?;
        let segment =
            Arc::new(Segment { blocks, columns: rows::columns(self.connection, row.id)? });
        cache.keep_segment(row.id, &segment);
        Ok(Some(segment))
    }

    /// Returns the snapshot of a write transaction.
    pub(crate) fn uncached(connection: &'c Connection) -> Self {
        Self { connection, cache: None }
    }

    /// Reads a column of a segment.
    pub(crate) fn column(&self, segment: i64, name: &'static str) -> Result<Arc<[u8]>, IndexError> {
        if let Some(known) = self.cache.and_then(|cache| cache.column(segment, name)) {
            return Ok(known);
        }
        let column: Arc<[u8]> = rows::column(self.connection, segment, name)?.into();
        if let Some(cache) = self.cache {
            cache.keep_column(segment, name, &column);
        }
        Ok(column)
    }
}

/// What a connection can do.
#[derive(Debug)]
enum Access {
    Write,
    /// Read only, for this reason.
    Read(IndexError),
}

impl IndexFile {
    /// Returns the index in a directory. Files are opened on first use.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { path: directory.join(INDEX_FILE), idle: Mutex::default() }
    }

    /// Runs `work` on one snapshot of the index.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(Snapshot<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.with(|opened| {
            let transaction = opened.connection.unchecked_transaction()?;
            work(Snapshot { connection: &transaction, cache: Some(&opened.cache) })
        })
    }

    /// Runs `work` in a write transaction.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.with_writable(|connection| {
            let transaction =
                Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let worked = work(&transaction)?;
            transaction.commit()?;
            Ok(worked)
        })
    }

    /// Runs `work` with a writable connection, outside of a transaction.
    pub(crate) fn with_writable<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.with(|opened| match &opened.access {
            Access::Write => work(&opened.connection),
            Access::Read(error) => Err(error.clone()),
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&Opened) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let opened = self.opened()?;
        let mut worked = work(&opened);
        if opened.stamp.is_some_and(|stamp| stamp != Stamp::of(&self.path)) {
            // Another process has written or replaced the file, so pages of two states were read.
            worked = Err(IndexError::Damaged);
        }
        if matches!(worked, Err(IndexError::Damaged)) {
            // Unlinked before it is closed: closing the last connection to a file that still has
            // its name checkpoints the log into it.
            self.remove(opened.identity);
            drop(opened);
            return worked;
        }
        let mut idle = self.idle();
        // Whether the file has become writable again is checked every time.
        let can_write = matches!(opened.access, Access::Write);
        if idle.len() < IDLE_MAX && can_write && opened.connection.is_autocommit() {
            idle.push(opened);
        }
        worked
    }

    fn opened(&self) -> Result<Opened, IndexError> {
        let mut idle = self.idle();
        // Looked up under the lock: an idle connection keeps its log, so one that is missing was unlinked.
        // Before the lock, another thread might just be creating the log, and the index would be removed.
        let current = Identity::of(&self.path);
        let is_torn = |opened: &Opened| opened.identity.is_some_and(|it| it.is_torn_from(current));
        if idle.iter().any(is_torn) {
            // Something has unlinked the log of a database that is in use. A process that opens the
            // database now does not see that log, and both would go on writing the file.
            drop(idle);
            self.remove(current);
            return self.open();
        }
        // A connection to a file that was replaced shows data that no other process sees.
        idle.retain(|opened| opened.identity == current);
        let opened = idle.pop();
        drop(idle);
        match opened {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    fn open(&self) -> Result<Opened, IndexError> {
        let writable = match self.open_writable() {
            Err(IndexError::Damaged) => {
                self.remove(Identity::of(&self.path));
                self.open_writable()
            }
            opened => opened,
        };
        let error = match writable {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        let (connection, stamp) = match self.connect_read_only() {
            Ok(opened) => opened,
            Err(_) => (empty()?, None),
        };
        let access = Access::Read(match error {
            IndexError::Failed(error) => IndexError::NotWritable(error),
            error @ (IndexError::Damaged | IndexError::NotWritable(_) | IndexError::Outdated) => {
                error
            }
        });
        Ok(Opened { connection, identity: None, stamp, access, cache: Cache::default() })
    }

    fn open_writable(&self) -> Result<Opened, IndexError> {
        // Held so that no process unlinks the files in the meantime.
        let _opening = opening(&self.path)?;
        self.require_file()?;
        create_private(&self.path);
        let before = Identity::of(&self.path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // Otherwise SQLite would inspect the bound term to plan each lookup, and plan it again for
        // the next.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // What a power failure undoes is rebuilt, so commits need not be synced. Without any sync
        // at all, a power failure could damage the file. Checkpoints run in the background.
        connection.execute_batch(
            "PRAGMA synchronous = normal; PRAGMA secure_delete = on; PRAGMA temp_store = memory;
            PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -4096;",
        )?;
        prepare(&connection)?;
        let identity = Identity::of(&self.path);
        // The file may have been replaced all the same, and then it is unknown which one this is. A
        // connection to an unlinked file would not erase anything from the other one.
        if !identity.zip(before).is_some_and(|(now, before)| now.is_same_file(before)) {
            return Err(IndexError::NotWritable(Error::new(
                ErrorKind::StorageBusy,
                "the index was replaced while it was opened",
            )));
        }
        let (access, cache) = (Access::Write, Cache::default());
        Ok(Opened { connection, identity, stamp: None, access, cache })
    }

    /// Fails if something other than a file has the name of the index. SQLite would open a named pipe
    /// and wait for somebody to write to it.
    fn require_file(&self) -> Result<(), IndexError> {
        if is_file_or_missing(&self.path) {
            return Ok(());
        }
        let message = format!("`{INDEX_FILE}` in the data directory is not a regular file");
        let error = Error::new(ErrorKind::StorageUnavailable, message);
        let hint = format!("remove or rename `{INDEX_FILE}`; the index is rebuilt by itself");
        Err(IndexError::NotWritable(error.with_hint(hint)))
    }

    /// Opens the file for reading. Without its log, it can be opened without locks and shared memory,
    /// which need a writable directory; then its state is returned too, because SQLite no longer
    /// notices that another process changes the file.
    fn connect_read_only(&self) -> Result<(Connection, Option<Stamp>), IndexError> {
        self.require_file()?;
        let name = self.path.to_str().ok_or(IndexError::Damaged)?;
        let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connect = |uri: String| -> Result<Connection, IndexError> {
            let connection = Connection::open_with_flags(uri, flags)?;
            if is_current(&connection)? { Ok(connection) } else { Err(IndexError::Damaged) }
        };
        let plain = connect(format!("file:{name}"));
        let stamp = Stamp::of(&self.path);
        let has_log = with_suffix(&self.path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
        if plain.is_ok() || has_log {
            return plain.map(|connection| (connection, None));
        }
        connect(format!("file:{name}?immutable=1")).map(|connection| (connection, Some(stamp)))
    }

    /// Closes idle connections. Closing the last connection of all processes checkpoints the log.
    pub(crate) fn close(&self) {
        self.idle().clear();
    }

    /// Makes the truncation of the log durable: SQLite truncates without a sync, so a power failure
    /// could restore old frames. They would not harm the index, but they contain redacted text.
    pub(crate) fn sync_log(&self) -> Result<(), IndexError> {
        let synced = fs::File::open(with_suffix(&self.path, "-wal")).and_then(|log| log.sync_all());
        synced.map_err(|error| {
            let message = "the log of the index cannot be synced";
            let error = Error::new(ErrorKind::StorageUnavailable, message).with_source(error);
            IndexError::NotWritable(error)
        })
    }

    /// Returns the size of the file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |file| file.len())
    }

    /// Returns the size of the write-ahead log.
    pub(crate) fn log_size_bytes(&self) -> u64 {
        with_suffix(&self.path, "-wal").metadata().map_or(0, |file| file.len())
    }

    /// Rewrites the file without its free pages. If the file cannot be written now, it stays as it is.
    pub(crate) fn compact(&self) -> Result<(), Error> {
        let compacted = self.with_writable(|connection| {
            quipu_pages::rebuild(connection, &self.path)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(())
        });
        match compacted {
            Ok(()) | Err(IndexError::NotWritable(_) | IndexError::Damaged) => Ok(()),
            Err(error) => Err(error.into_error()),
        }
    }

    /// Removes the file.
    pub(crate) fn discard(&self) -> Result<(), Error> {
        let before = Identity::of(&self.path);
        self.remove(before);
        // Another process may already have created a new one.
        let is_same = |(before, now): (Identity, Identity)| before.is_same_file(now);
        if before.zip(Identity::of(&self.path)).is_some_and(is_same) {
            return Err(Error::new(
                ErrorKind::StorageUnavailable,
                format!("`{INDEX_FILE}` can neither be written nor removed"),
            ));
        }
        Ok(())
    }

    /// Removes the file, if it is still the same one.
    fn remove(&self, damaged: Option<Identity>) {
        // A process is opening it and does not finish. A file that cannot be removed is detected
        // again when it is opened.
        let Ok(sole) = replacing(&self.path) else { return };
        self.remove_alone(damaged, &sole);
        self.idle().clear();
    }

    fn remove_alone(&self, damaged: Option<Identity>, _: &Sole) {
        let current = Identity::of(&self.path);
        if !damaged.zip(current).is_some_and(|(damaged, now)| damaged.is_same_file(now)) {
            return;
        }
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(with_suffix(&self.path, suffix)).unwrap_or_default();
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Opened>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an empty index in memory.
fn empty() -> Result<Connection, IndexError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Creates the tables in an empty or outdated file.
fn prepare(connection: &Connection) -> Result<(), IndexError> {
    if is_current(connection)? {
        return Ok(());
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if !is_current(&transaction)? {
        let tables = {
            let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
            let mut statement = transaction.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.collect::<Result<Vec<_>, _>>()?
        };
        for table in tables {
            transaction.execute_batch(&format!("DROP TABLE \"{table}\""))?;
        }
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()?;
    Ok(())
}

fn is_current(connection: &Connection) -> Result<bool, IndexError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("application_id")?, number("user_version")?) == (APPLICATION_ID, FORMAT))
}

/// Creates the file before SQLite does, so that only its owner can read it.
fn create_private(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // If this fails, the file exists or cannot be created, which opening it will report.
    options.open(path).map(drop).unwrap_or_default();
}

/// Returns the name of a file that accompanies another one.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
