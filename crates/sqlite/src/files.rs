//! Detects that the files of a data directory are no longer the ones that were opened.
//!
//! An open file outlives its name: if somebody removes the database, moves a backup over it or
//! removes the lock file, this process would go on with files that nobody else sees. Its writes
//! would be acknowledged and lost, and it would not notice that a key was revoked. SQLite does not
//! check this in WAL mode.
//!
//! So writes compare device and inode of each name before they begin *and* before they are
//! acknowledged: a check before alone would miss a file that is replaced during the commit. A cached
//! read is a single `pread`, which four calls of `stat` would dwarf, so reads check every 100 ms.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use quipu_core::Error;

use crate::error::{self, StorageResult as _};
use crate::open::LOG_FILE;

/// The names of the files, and their identities when they were opened.
#[derive(Debug)]
pub(crate) struct Files {
    opened: Vec<(PathBuf, Identity)>,
    started_at: Instant,
    /// When a read last checked, in milliseconds since the start.
    checked_at: AtomicU64,
}

/// Equal for two names of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// A database file that nobody has open for writing. Two that are equal have the same content: whoever
/// writes creates a log first, and moves it into the database before it removes the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    identity: Option<Identity>,
    size_bytes: u64,
    modified_at: SystemTime,
}

impl Resting {
    /// Returns `None` if there is a log with something in it. May wait a moment, so that a later change has
    /// a later timestamp.
    pub(crate) fn of(database: &Path) -> io::Result<Option<Self>> {
        let log = database.with_file_name(LOG_FILE);
        if log.metadata().is_ok_and(|log| log.len() > 0) {
            return Ok(None);
        }
        let file = database.metadata()?;
        let identity = Identity::of(database)?;
        let modified_at = file.modified()?;
        // A timestamp in the future is no problem: a change would replace it by the present.
        if let Ok(age) = modified_at.elapsed() {
            thread::sleep(TIMESTAMP_STEP_MAX.saturating_sub(age));
        }
        Ok(Some(Self { identity, size_bytes: file.len(), modified_at }))
    }
}

/// File systems date changes by a clock that ticks every 1 to 10 ms.
const TIMESTAMP_STEP_MAX: Duration = Duration::from_millis(20);

/// How often reads check.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Files {
    /// Records the identities of these files.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, Error> {
        let mut opened = Vec::new();
        for path in paths {
            if let Some(identity) = Identity::of(&path).or_storage_error()? {
                opened.push((path, identity));
            }
        }
        Ok(Self { opened, started_at: Instant::now(), checked_at: AtomicU64::new(0) })
    }

    /// Fails if a name refers to another file than when it was opened, or to none.
    pub(crate) fn require_unchanged(&self) -> Result<(), Error> {
        for (path, identity) in &self.opened {
            if Identity::of(path).or_storage_error()? != Some(*identity) {
                return Err(error::replaced(path));
            }
        }
        Ok(())
    }

    /// Like [`require_unchanged`](Self::require_unchanged), but does nothing if the last check was recent.
    pub(crate) fn require_unchanged_throttled(&self) -> Result<(), Error> {
        let now = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(CHECK_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        if now < self.checked_at.load(Ordering::Relaxed).saturating_add(every) {
            return Ok(());
        }
        self.require_unchanged()?;
        // Only a success is remembered, so a failure is reported every time.
        self.checked_at.store(now, Ordering::Relaxed);
        Ok(())
    }
}

impl Identity {
    /// Returns the identity behind a name; `None` on systems without inodes.
    #[cfg(unix)]
    fn of(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;
        match path.metadata() {
            Ok(file) => Ok(Some(Self { device: file.dev(), inode: file.ino() })),
            // No file has inode 0, so a missing one differs from every other.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Some(Self { device: 0, inode: 0 }))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }
}
