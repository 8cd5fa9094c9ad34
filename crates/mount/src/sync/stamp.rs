//! Fingerprints of files from their stat data, so that only changed files are read.

use std::fmt;
use std::fs::Metadata;
use std::str::FromStr;
use std::time::Duration;

/// The identity of a file, which survives renames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    number: i64,
    /// Inode numbers are reused, but not together with the time of birth.
    born_nanos: i64,
}

/// The stat data that changes whenever a file is written.
///
/// Programs can set `mtime` to anything, and archivers do. They cannot set `ctime`, so it decides
/// where a system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size_bytes: i64,
    modified_nanos: i64,
    changed_nanos: i64,
}

/// A time by the clock of the folder's file system, which may be that of another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderTime(i64);

/// The granularity of timestamps, up to two seconds on FAT.
///
/// This is git's "racy" problem: a file that changed within the current tick may change again
/// within it, with the same size, and its stat data stays the same. Trusting that data would hide
/// the second edit for good. So no stamp is recorded for such a file, and the next sync reads it
/// again.
#[cfg(not(test))]
const GRANULARITY_NANOS: i64 = 2_000_000_000;
#[cfg(test)]
const GRANULARITY_NANOS: i64 = 20_000_000;

impl Stamp {
    /// Returns the stamp of a file; `None` if it changed so recently that an equal stamp would
    /// prove nothing.
    pub(super) fn settled(metadata: &Metadata, now: FolderTime) -> Option<Self> {
        let stamp = Self::of(metadata)?;
        (stamp.changed_nanos.saturating_add(GRANULARITY_NANOS) < now.0).then_some(stamp)
    }

    /// Returns the stamp of a file, however recently it changed.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let modified_nanos = modified_nanos(metadata)?;
        let changed_nanos = changed_nanos(metadata).unwrap_or(modified_nanos);
        let size_bytes = metadata.len().try_into().ok()?;
        Some(Self { size_bytes, modified_nanos, changed_nanos })
    }
}

impl Stamp {
    /// Returns the same as [`of`](Self::of).
    #[cfg(target_os = "linux")]
    pub(super) fn of_statx(found: &rustix::fs::Statx) -> Option<Self> {
        let (modified, changed) = (found.stx_mtime, found.stx_ctime);
        let modified_nanos = nanos(modified.tv_sec, modified.tv_nsec.into())?;
        let changed_nanos = nanos(changed.tv_sec, changed.tv_nsec.into())?;
        Self::new(found.stx_size.try_into().ok()?, modified_nanos, changed_nanos)
    }

    pub(super) fn new(size_bytes: i64, modified_nanos: i64, changed_nanos: i64) -> Option<Self> {
        (size_bytes >= 0).then_some(Self { size_bytes, modified_nanos, changed_nanos })
    }

    pub(super) fn size_bytes(self) -> u64 {
        u64::try_from(self.size_bytes).unwrap_or_default()
    }
}

impl FolderTime {
    /// Returns the time since a file changed; zero if it changed later than this.
    pub(super) fn since_change(self, stamp: Stamp) -> Duration {
        let age_nanos = self.0.saturating_sub(stamp.changed_nanos);
        Duration::from_nanos(u64::try_from(age_nanos).unwrap_or_default())
    }

    /// Takes the time from a file that was just created.
    pub(super) fn of_new_file(metadata: &Metadata) -> Option<Self> {
        modified_nanos(metadata).map(Self)
    }
}

#[cfg(unix)]
fn modified_nanos(metadata: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt as _;
    nanos(metadata.mtime(), metadata.mtime_nsec())
}

#[cfg(unix)]
fn changed_nanos(metadata: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt as _;
    nanos(metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(unix)]
fn nanos(seconds: i64, nanos: i64) -> Option<i64> {
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(not(unix))]
fn modified_nanos(metadata: &Metadata) -> Option<i64> {
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

#[cfg(not(unix))]
fn changed_nanos(_: &Metadata) -> Option<i64> {
    None
}

impl Identity {
    /// Returns `None` for negative numbers, which no file has.
    pub(super) fn new(number: i64, born_nanos: i64) -> Option<Self> {
        (number >= 0 && born_nanos >= 0).then_some(Self { number, born_nanos })
    }

    /// Returns the same as [`of`](Self::of): `None` if the file system keeps no time of birth.
    #[cfg(target_os = "linux")]
    pub(super) fn of_statx(found: &rustix::fs::Statx) -> Option<Self> {
        use rustix::fs::StatxFlags;
        let born = found.stx_btime;
        if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME) {
            return None;
        }
        Self::new(found.stx_ino.cast_signed(), nanos(born.tv_sec, born.tv_nsec.into())?)
    }

    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let born = metadata.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let number = metadata.ino().cast_signed();
        Self::new(number, born.as_nanos().try_into().ok()?)
    }

    /// Returns `None`, since files have no inode number here; renames are still found by content.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.born_nanos)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.size_bytes, self.modified_nanos, self.changed_nanos)
    }
}

/// The text is neither an [`Identity`] nor a [`Stamp`].
#[derive(Debug)]
pub(super) struct ParseStampError;

impl FromStr for Identity {
    type Err = ParseStampError;

    fn from_str(text: &str) -> Result<Self, ParseStampError> {
        let (number, born) = text.split_once('-').ok_or(ParseStampError)?;
        match (number.parse(), born.parse()) {
            (Ok(number), Ok(born_nanos)) => Ok(Self { number, born_nanos }),
            _ => Err(ParseStampError),
        }
    }
}

impl FromStr for Stamp {
    type Err = ParseStampError;

    fn from_str(text: &str) -> Result<Self, ParseStampError> {
        let mut words = text.split(':');
        let size = words.next().and_then(|word| word.parse().ok());
        let mut nanos = || words.next().and_then(|word| word.parse().ok());
        match (size, nanos(), nanos()) {
            (Some(size_bytes), Some(modified_nanos), Some(changed_nanos)) => {
                Ok(Self { size_bytes, modified_nanos, changed_nanos })
            }
            _ => Err(ParseStampError),
        }
    }
}
