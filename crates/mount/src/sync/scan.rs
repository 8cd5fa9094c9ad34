//! What the folder holds now.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;
use std::str::FromStr;

use quipu_core::Error;
use quipu_core::model::{Content, ContentHash, MemoryPath};

use super::data_directory::DataDirectory;
use super::failure::folder_error;
use super::report::LeftOut;
use super::rules::{PathKind, Rules};

/// Which file it is, whatever its name: it survives a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    number: u64,
    /// A number may be used again for another file, but not with the same birth.
    born_nanos: u128,
}

/// A file that can be a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) hash: ContentHash,
    pub(super) size_bytes: u64,
    pub(super) identity: Option<Identity>,
}

/// Everything in the folder that takes part.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: BTreeMap<MemoryPath, FoundFile>,
    /// What cannot be a memory, and why.
    pub(super) left_out: Vec<LeftOut>,
    blocked: BTreeSet<String>,
}

impl Scan {
    /// Tells whether something that cannot be a memory is at this path or above it, so that nobody
    /// knows what the folder holds there.
    pub(super) fn blocks(&self, path: &MemoryPath) -> bool {
        // The empty path stands for the folder itself.
        self.blocked.contains("")
            || self.blocked.contains(path.as_str())
            || path.ancestors().any(|above| self.blocked.contains(above))
    }

    fn leave_out(&mut self, path: &str, reason: impl Into<String>) {
        self.blocked.insert(path.to_owned());
        self.left_out.push(LeftOut { path: path.to_owned(), reason: reason.into() });
    }
}

/// Reads the folder. Nothing outside of it is looked at: links are not followed.
pub(super) fn scan(
    folder: &Path,
    rules: &Rules,
    data: &DataDirectory,
    size_bytes_max: u64,
) -> Result<Scan, Error> {
    let entries =
        fs::read_dir(folder).map_err(|error| folder_error("the folder cannot be read", error))?;
    let mut walk = Walk { rules, data, size_bytes_max, scan: Scan::default() };
    walk.directory(entries, "");
    Ok(walk.scan)
}

struct Walk<'a> {
    rules: &'a Rules,
    data: &'a DataDirectory,
    size_bytes_max: u64,
    scan: Scan,
}

impl Walk<'_> {
    fn directory(&mut self, entries: fs::ReadDir, above: &str) {
        for entry in entries {
            match entry {
                Ok(entry) => self.entry(&entry, above),
                Err(error) => self.scan.leave_out(above, unreadable(&error)),
            }
        }
    }

    fn entry(&mut self, entry: &DirEntry, above: &str) {
        let name = entry.file_name();
        let path = format!("{above}/{}", name.to_string_lossy());
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => return self.scan.leave_out(&path, unreadable(&error)),
        };
        let path_kind = if kind.is_dir() { PathKind::Directory } else { PathKind::File };
        if self.rules.exclude_here(&path, path_kind) {
            return;
        }
        if name.to_str().is_none() {
            return self.scan.leave_out(&path, "its name is not UTF-8");
        }
        let parsed = match MemoryPath::parse(&path) {
            Ok(parsed) => parsed,
            Err(error) => return self.scan.leave_out(&path, error.to_string()),
        };
        if kind.is_dir() && self.data.is(&entry.path()) {
            self.scan.leave_out(&path, "it is Quipu's data directory");
        } else if kind.is_dir() {
            match fs::read_dir(entry.path()) {
                Ok(entries) => self.directory(entries, &path),
                Err(error) => self.scan.leave_out(&path, unreadable(&error)),
            }
        } else if kind.is_symlink() {
            self.scan.leave_out(&path, "it is a symbolic link");
        } else if kind.is_file() {
            match read(&entry.path(), self.size_bytes_max) {
                Ok((file, _)) => drop(self.scan.files.insert(parsed, file)),
                Err(reason) => self.scan.leave_out(&path, reason.to_string()),
            }
        } else {
            self.scan.leave_out(&path, "it is not a regular file");
        }
    }
}

/// Why a file cannot be a memory.
#[derive(Debug)]
pub(super) enum Unfit {
    Io(io::Error),
    Rule(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&unreadable(error)),
            Self::Rule(reason) => f.write_str(reason),
        }
    }
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {}", error.kind())
}

/// Reads a file of at most `size_bytes_max` bytes.
pub(super) fn read(file: &Path, size_bytes_max: u64) -> Result<(FoundFile, Content), Unfit> {
    let file = File::open(file)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(size_bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > size_bytes_max) {
        let size = metadata.len();
        return Err(Unfit::Rule(format!(
            "it has {size} bytes, but a memory has at most {size_bytes_max}"
        )));
    }
    let content = Content::from_bytes(&bytes).map_err(|error| Unfit::Rule(error.to_string()))?;
    let found = FoundFile {
        hash: content.hash(),
        size_bytes: content.size_bytes(),
        identity: Identity::of(&metadata),
    };
    Ok((found, content))
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        use std::time::UNIX_EPOCH;
        let born = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self { number: metadata.ino(), born_nanos: born.as_nanos() })
    }

    /// Returns `None` where files have no numbers; equal texts still tell renames.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.born_nanos)
    }
}

/// Says that a text is not an [`Identity`].
#[derive(Debug)]
pub(super) struct ParseIdentityError;

impl FromStr for Identity {
    type Err = ParseIdentityError;

    fn from_str(text: &str) -> Result<Self, ParseIdentityError> {
        let (number, born) = text.split_once('-').ok_or(ParseIdentityError)?;
        match (number.parse(), born.parse()) {
            (Ok(number), Ok(born_nanos)) => Ok(Self { number, born_nanos }),
            _ => Err(ParseIdentityError),
        }
    }
}
