//! How processes agree on which file is the index while any of them may replace it.
//!
//! An index is three files: the database, its log, and the memory that says what is in the log. SQLite
//! takes care of them as long as nobody removes them by name, which is what replacing a damaged index
//! does, and what people do. So every connection remembers which files it opened, and is closed when
//! the names mean others. To remove all three takes an exclusive lock on a file of its own, to open them
//! a shared one: otherwise whoever removes a damaged index could remove the log that another process
//! has just made for the new one, and two processes would write one file with a log each.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::{Error, ErrorKind};

use super::error::IndexError;
use super::file::with_suffix;

/// How long to wait for the lock, and how often to look. It is held for as long as opening takes.
const TIMEOUT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(1);

/// What is the same for two names of one file.
type Inode = (u64, u64);

/// Which files a connection has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    database: Inode,
    log: Option<Inode>,
    shared: Option<Inode>,
}

impl Identity {
    /// Returns which files have the names of the index; `None` if there is none.
    ///
    /// An open file keeps its inode, so a connection is never taken for one to a later file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let other = |suffix| inode(&with_suffix(path, suffix));
        Some(Self { database: inode(path)?, log: other("-wal"), shared: other("-shm") })
    }

    /// Returns whether both are the same database, whatever its log is.
    pub(super) fn is_same_file(self, other: Self) -> bool {
        self.database == other.database
    }

    /// Returns whether the database is the same and its log is not. SQLite keeps the log for as long as
    /// anybody has the database open, so this is the work of somebody else.
    pub(super) fn is_torn_from(self, other: Option<Self>) -> bool {
        other.is_some_and(|other| self.is_same_file(other) && self != other)
    }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<Inode> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn inode(path: &Path) -> Option<Inode> {
    path.metadata().ok().map(|_| (0, 0))
}

/// Held while the files are opened by their names.
pub(super) struct Opening(#[expect(dead_code, reason = "it is a lock")] Option<File>);

/// Held by the only one who may remove the files by their names.
pub(super) struct Sole(#[expect(dead_code, reason = "it is a lock")] Option<File>);

/// Waits until nobody removes the files.
pub(super) fn opening(path: &Path) -> Result<Opening, IndexError> {
    locked(path, File::try_lock_shared).map(Opening)
}

/// Waits until nobody opens or removes the files.
pub(super) fn replacing(path: &Path) -> Result<Sole, IndexError> {
    locked(path, File::try_lock).map(Sole)
}

fn locked(
    path: &Path,
    try_lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<File>, IndexError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Where no file can be made, none can be removed either.
    let Ok(file) = options.open(with_suffix(path, "-lock")) else { return Ok(None) };
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(Some(file)),
            // A file system without locks has no second process to agree with.
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(IndexError::NotWritable(Error::new(
                    ErrorKind::StorageBusy,
                    "another process opens or replaces the index and does not finish",
                )));
            }
        }
    }
}
