//! How processes agree on which file is the index while any of them may replace it.
//!
//! An index is three files: the database, its write-ahead log, and the shared memory that indexes
//! the log. SQLite keeps them consistent unless they are unlinked, which is how a damaged index is
//! replaced, and what people do by hand. So every connection remembers the inodes that it opened,
//! and is closed when the names refer to others. Unlinking takes an exclusive lock on a separate
//! file, opening a shared one. Without it, a process that unlinks a damaged index could unlink the
//! log that another process has just created for the new one, and two processes would write one
//! database with a log each.

use std::fs::{File, Metadata, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use quipu_core::{Error, ErrorKind};

use super::error::IndexError;
use super::file::with_suffix;

/// How long to wait for the lock, and how often to poll. It is held only while files are opened.
const TIMEOUT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(1);

/// Device and inode, which identify a file whatever its name.
type Inode = (u64, u64);

/// The files that a connection has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    database: Inode,
    log: Option<Inode>,
    shared: Option<Inode>,
}

impl Identity {
    /// Returns the files that the names of the index refer to; `None` if there is no index.
    ///
    /// The inode of an open file is not reused, so a connection is never mistaken for one to a
    /// later file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let other = |suffix| inode(&with_suffix(path, suffix));
        Some(Self { database: inode(path)?, log: other("-wal"), shared: other("-shm") })
    }

    /// Returns whether both are the same database, regardless of the log.
    pub(super) fn is_same_file(self, other: Self) -> bool {
        self.database == other.database
    }

    /// Returns whether the database is the same but its log is not. SQLite keeps the log while any
    /// connection is open, so something else must have unlinked it.
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

/// Returns whether a path is a regular file, or can become one.
pub(crate) fn is_file_or_missing(path: &Path) -> bool {
    path.metadata().map_or(true, |found| found.is_file())
}

/// The state of a file that is read without locks: another process that changes it changes this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: Option<Identity>,
    size_bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Self {
        let file = path.metadata().ok();
        Self {
            identity: Identity::of(path),
            size_bytes: file.as_ref().map_or(0, Metadata::len),
            modified: file.and_then(|file| file.modified().ok()),
        }
    }
}

/// Held while the files are opened by name.
pub(super) struct Opening(#[expect(dead_code, reason = "it is a lock")] Option<File>);

/// Held exclusively while the files are unlinked by name.
pub(super) struct Sole(#[expect(dead_code, reason = "it is a lock")] Option<File>);

/// Waits until no process unlinks the files.
pub(super) fn opening(path: &Path) -> Result<Opening, IndexError> {
    locked(path, File::try_lock_shared).map(Opening)
}

/// Waits until no process opens or unlinks the files.
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
    let lock = with_suffix(path, "-lock");
    // Opening a named pipe waits for somebody to open its other end.
    if !is_file_or_missing(&lock) {
        return Ok(None);
    }
    // Where no file can be created, none can be unlinked either.
    let Ok(file) = options.open(lock) else { return Ok(None) };
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(Some(file)),
            // A file system without locks has no second process to coordinate with.
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(IndexError::NotWritable(
                    Error::new(
                        ErrorKind::StorageBusy,
                        "another process has locked the search index and does not release it",
                    )
                    .with_hint(
                        "try again; if it persists, stop the process that holds `index.db-lock`",
                    ),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("index.db");
        std::fs::write(&file, "old").unwrap();
        let stamp = Stamp::of(&file);
        assert_eq!(stamp, Stamp::of(&file));
        std::fs::write(with_suffix(&file, "-wal"), "").unwrap();
        let with_log = Stamp::of(&file);
        assert_ne!(with_log, stamp);
        std::fs::write(&file, "longer").unwrap();
        assert_ne!(Stamp::of(&file), with_log);
    }
}
