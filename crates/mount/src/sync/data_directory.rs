//! Quipu's data directory, recognized by identity.

use std::fs;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

/// A data directory that this process may have open.
///
/// None of its files may be opened by a scan. POSIX locks belong to the process: closing any
/// descriptor of a database file drops the locks that SQLite holds on it, and another process could
/// then write to pages in use.
#[derive(Debug, Default)]
pub struct DataDirectory {
    identity: Option<Identity>,
}

/// The identity of a directory, independent of the path that leads to it.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

impl DataDirectory {
    /// Remembers a directory, which need not exist.
    pub fn new(place: &Path) -> Self {
        Self { identity: identity(place) }
    }

    /// Returns whether a path leads to the data directory.
    pub fn is(&self, place: &Path) -> bool {
        self.identity.is_some() && self.identity == identity(place)
    }
}

#[cfg(unix)]
fn identity(place: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(place).ok().filter(fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(place: &Path) -> Option<Identity> {
    fs::canonicalize(place).ok().filter(|place| place.is_dir())
}
