//! Which file it is and how it looks from outside, so that only what has changed is read.

use std::fmt;
use std::fs::Metadata;
use std::str::FromStr;
use std::time::Duration;

/// Which file it is, whatever its name: it survives a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    number: i64,
    /// A number may be used again for another file, but not with the same birth.
    born_nanos: i64,
}

/// What changes whenever a file is written.
///
/// Programs may set the time of modification to what they like, but not that of the last change
/// (`ctime`), so it decides where a system has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size_bytes: i64,
    modified_nanos: i64,
    changed_nanos: i64,
}

/// A moment by the clock of the folder's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderTime(i64);

/// File systems count time in steps, up to two seconds on FAT. A file that was changed within the
/// current step may change again and look the same, so it is read again the next time.
#[cfg(not(test))]
const GRANULARITY_NANOS: i64 = 2_000_000_000;
#[cfg(test)]
const GRANULARITY_NANOS: i64 = 20_000_000;

impl Stamp {
    /// Returns how a file looks; `None` if it changed so lately that this proves nothing.
    pub(super) fn settled(metadata: &Metadata, now: FolderTime) -> Option<Self> {
        let stamp = Self::of(metadata)?;
        (stamp.changed_nanos.saturating_add(GRANULARITY_NANOS) < now.0).then_some(stamp)
    }

    /// Returns how a file looks, however lately it changed.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let modified_nanos = modified_nanos(metadata)?;
        let changed_nanos = changed_nanos(metadata).unwrap_or(modified_nanos);
        let size_bytes = metadata.len().try_into().ok()?;
        Some(Self { size_bytes, modified_nanos, changed_nanos })
    }
}

impl Stamp {
    pub(super) fn new(size_bytes: i64, modified_nanos: i64, changed_nanos: i64) -> Option<Self> {
        (size_bytes >= 0).then_some(Self { size_bytes, modified_nanos, changed_nanos })
    }

    pub(super) fn size_bytes(self) -> u64 {
        u64::try_from(self.size_bytes).unwrap_or_default()
    }
}

impl FolderTime {
    /// Returns how long before this moment a file changed; zero if it changed later.
    pub(super) fn since_change(self, metadata: &Metadata) -> Duration {
        let changed_nanos = Stamp::of(metadata).map_or(i64::MAX, |stamp| stamp.changed_nanos);
        let age_nanos = self.0.saturating_sub(changed_nanos);
        Duration::from_nanos(u64::try_from(age_nanos).unwrap_or_default())
    }

    /// Takes the time from a file that was just made.
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
    /// Returns `None` for numbers that no file has.
    pub(super) fn new(number: i64, born_nanos: i64) -> Option<Self> {
        (number >= 0 && born_nanos >= 0).then_some(Self { number, born_nanos })
    }

    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let born = metadata.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let number = metadata.ino().cast_signed();
        Self::new(number, born.as_nanos().try_into().ok()?)
    }

    /// Returns `None` where files have no numbers; equal texts still tell renames.
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

/// Says that a text is neither an [`Identity`] nor a [`Stamp`].
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
