//! The directory that Quipu keeps its data in.

use std::fs;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

/// A data directory that this process may have open.
///
/// None of its files may be read as a file: closing one takes away the locks that the database has
/// on it, and then another process changes what is still in use.
#[derive(Debug, Default)]
pub struct DataDirectory {
    identity: Option<Identity>,
}

/// Which directory it is, whatever path leads to it.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

impl DataDirectory {
    /// Names it; it need not exist.
    pub fn new(place: &Path) -> Self {
        Self { identity: identity(place) }
    }

    /// Tells whether a path leads to it.
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
