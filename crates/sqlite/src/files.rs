//! Whether the files of a data directory are still the ones that were opened.
//!
//! An open file outlives its name: if somebody removes the database, moves a backup over it or
//! removes the lock file, this process would go on with files that nobody else sees. Its writes
//! would be acknowledged and gone, and it would not notice that a key was revoked. So writes look at
//! the names before they begin and before they are acknowledged, and reads now and then.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quipu_core::Error;

use crate::error::{self, StorageResult as _};

/// The names of the files, and what was behind them when they were opened.
#[derive(Debug)]
pub(crate) struct Files {
    opened: Vec<(PathBuf, Identity)>,
    started_at: Instant,
    /// When reads looked last, in milliseconds after the start.
    looked_at: AtomicU64,
}

/// What is the same for two names of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// How often reads look.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Files {
    /// Notes what these names mean now.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, Error> {
        let mut opened = Vec::new();
        for path in paths {
            if let Some(identity) = Identity::of(&path).or_storage_error()? {
                opened.push((path, identity));
            }
        }
        Ok(Self { opened, started_at: Instant::now(), looked_at: AtomicU64::new(0) })
    }

    /// Fails if a name means another file than when it was opened, or none.
    pub(crate) fn require_same(&self) -> Result<(), Error> {
        for (path, identity) in &self.opened {
            if Identity::of(path).or_storage_error()? != Some(*identity) {
                return Err(error::replaced(path));
            }
        }
        Ok(())
    }

    /// Like [`require_same`](Self::require_same), but looks only if the last look is a while ago.
    pub(crate) fn require_same_lately(&self) -> Result<(), Error> {
        let now = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        if now < self.looked_at.load(Ordering::Relaxed).saturating_add(every) {
            return Ok(());
        }
        self.require_same()?;
        // Only what is right is remembered, so a failure is reported every time.
        self.looked_at.store(now, Ordering::Relaxed);
        Ok(())
    }
}

impl Identity {
    /// Returns what a name means; `None` if the system has no such notion.
    #[cfg(unix)]
    fn of(path: &Path) -> std::io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;
        match path.metadata() {
            Ok(file) => Ok(Some(Self { device: file.dev(), inode: file.ino() })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Some(Self { device: 0, inode: 0 }))
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> std::io::Result<Option<Self>> {
        Ok(None)
    }
}
