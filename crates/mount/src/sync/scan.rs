//! What the folder holds now.
//!
//! A file that looks from outside as it did at the last sync is not read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, DirEntry, File, FileType};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::model::{Content, ContentHash, MemoryPath};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::activity::{Activity, Completeness, RecentChange, SETTLE_TIME};
use super::data_directory::DataDirectory;
use super::failure::folder_error;
use super::record::Line;
use super::report::LeftOut;
use super::rules::{PathKind, Rules};
use super::stamp::{FolderTime, Identity, Stamp};
use super::state::State;

/// A file that can be a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) hash: ContentHash,
    pub(super) size_bytes: u64,
    pub(super) identity: Option<Identity>,
    /// How it looks from outside, if that tells whether it changes.
    pub(super) stamp: Option<Stamp>,
}

/// Everything in the folder that takes part.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files that have changed since the last sync, or may have.
    pub(super) files: BTreeMap<MemoryPath, FoundFile>,
    /// Which entries of the state have a file that has not changed, by their numbers.
    pub(super) unchanged: Vec<bool>,
    /// What cannot be a memory, and why.
    pub(super) left_out: Vec<(LeftOut, Option<(Identity, Stamp)>)>,
    /// How names are spelled in the folder whose composed form (Unicode NFC) is another one.
    pub(super) spellings: Spellings,
    blocked: BTreeSet<String>,
    /// Files that somebody may be writing just now.
    unfinished: BTreeSet<String>,
    /// When to look at those again.
    pub(super) rescan_after: Option<Duration>,
}

/// The names of files and directories in the folder, by their paths, where these differ.
pub(super) type Spellings = HashMap<String, String>;

impl Scan {
    /// Tells whether something that cannot be a memory is at this path or above it, so that nobody
    /// knows what the folder holds there.
    pub(super) fn blocks(&self, path: &MemoryPath) -> bool {
        // The empty path stands for the folder itself.
        self.blocked.contains("")
            || self.blocked.contains(path.as_str())
            || self.unfinished.contains(path.as_str())
            || path.ancestors().any(|above| self.blocked.contains(above))
    }

    /// Tells whether the file of an entry is certainly what it was.
    pub(super) fn is_unchanged(&self, line: Line<'_>) -> bool {
        self.unchanged.get(line.number).copied().unwrap_or_default()
    }

    /// Tells whether somebody may be writing the file at this path.
    pub(super) fn is_unfinished(&self, path: &MemoryPath) -> bool {
        self.unfinished.contains(path.as_str())
    }

    /// Tells whether a file that is still being written may be one that is missing elsewhere.
    pub(super) fn hides_renames(&self) -> bool {
        !self.unfinished.is_empty()
    }

    fn leave_out(&mut self, path: &str, reason: impl Into<String>) {
        self.leave_out_as(path, reason, None);
    }

    fn leave_out_as(
        &mut self,
        path: &str,
        reason: impl Into<String>,
        fingerprint: Option<(Identity, Stamp)>,
    ) {
        self.blocked.insert(path.to_owned());
        let left_out = LeftOut { path: path.to_owned(), reason: reason.into() };
        self.left_out.push((left_out, fingerprint));
    }
}

/// How a folder is looked at.
pub(super) struct ScanOptions<'a> {
    pub(super) folder: &'a Path,
    pub(super) rules: &'a Rules<'a>,
    pub(super) data: &'a DataDirectory,
    pub(super) size_bytes_max: u64,
    /// The time by the folder's clock, if it is known.
    pub(super) now: Option<FolderTime>,
    /// Who writes what, if that is being watched.
    pub(super) activity: Option<(&'a Activity, Instant)>,
    /// What was there at the last sync.
    pub(super) known: Option<&'a State<'a>>,
}

/// Reads the folder. Nothing outside of it is looked at: links are not followed.
pub(super) fn scan(looking: &ScanOptions<'_>) -> Result<Scan, Error> {
    let entries = fs::read_dir(looking.folder)
        .map_err(|error| folder_error("the folder cannot be read", error))?;
    let numbers_count = looking.known.map_or(0, |state| state.numbers_count);
    let scan = Scan { unchanged: vec![false; numbers_count], ..Scan::default() };
    let mut walk = Walk { looking, scan };
    walk.directory(entries, "");
    Ok(walk.scan)
}

struct Walk<'a> {
    looking: &'a ScanOptions<'a>,
    scan: Scan,
}

impl Walk<'_> {
    fn directory(&mut self, entries: fs::ReadDir, above: &str) {
        let mut decomposed = Vec::new();
        let mut path = above.to_owned();
        for entry in entries {
            match entry {
                Ok(entry) => match entry.file_name().to_str() {
                    Some(name) if name.is_ascii() || is_nfc(name) => {
                        path.truncate(above.len());
                        path.push('/');
                        path.push_str(name);
                        self.entry(&entry, &path);
                    }
                    Some(name) => decomposed.push((name.to_owned(), entry)),
                    None => {
                        let path = format!("{above}/{}", entry.file_name().to_string_lossy());
                        self.unnamed(&entry, &path);
                    }
                },
                Err(error) => self.scan.leave_out(above, unreadable(&error)),
            }
        }
        // Macs write names with separate accents. Such a file is the memory whose name is composed,
        // unless another file is called that already.
        decomposed.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, entry) in decomposed {
            let path = format!("{above}/{}", name.nfc().collect::<String>());
            let composed = path.get(above.len() + 1..).unwrap_or_default();
            if entry.path().with_file_name(composed).symlink_metadata().is_ok_and(|other| {
                // Some systems find a file by either name.
                entry.metadata().is_ok_and(|it| Identity::of(&it) != Identity::of(&other))
            }) || self.scan.spellings.contains_key(&path)
            {
                let reason = "another file has this name in composed form (Unicode NFC)";
                self.scan.leave_out(&format!("{above}/{name}"), reason);
                continue;
            }
            self.scan.spellings.insert(path.clone(), name);
            self.entry(&entry, &path);
        }
    }

    fn unnamed(&mut self, entry: &DirEntry, path: &str) {
        let kind = entry.file_type().map_or(PathKind::File, kind_of);
        if !self.looking.rules.exclude_here(path, kind) {
            self.scan.leave_out(path, "its name is not UTF-8");
        }
    }

    fn entry(&mut self, entry: &DirEntry, path: &str) {
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => return self.scan.leave_out(path, unreadable(&error)),
        };
        if self.looking.rules.exclude_here(path, kind_of(kind)) {
            return;
        }
        if kind.is_file() {
            return self.file(entry, path);
        }
        if let Err(error) = MemoryPath::parse(path) {
            return self.scan.leave_out(path, error.to_string());
        }
        if kind.is_dir() && self.looking.data.is(&entry.path()) {
            self.scan.leave_out(path, "it is Quipu's data directory");
        } else if kind.is_dir() {
            match fs::read_dir(entry.path()) {
                Ok(entries) => self.directory(entries, path),
                Err(error) => self.scan.leave_out(path, unreadable(&error)),
            }
        } else if kind.is_symlink() {
            self.scan.leave_out(path, "it is a symbolic link");
        } else {
            self.scan.leave_out(path, "it is not a regular file");
        }
    }

    fn file(&mut self, entry: &DirEntry, path: &str) {
        if let Some(state) = self.looking.known {
            // The call takes no path, so it is the cheapest way to look at a file.
            if let Some(fingerprint) = fingerprint_of(entry) {
                let line = state.entries.get(path).filter(|line| line.has_fingerprint(fingerprint));
                let known = line.and_then(|line| self.scan.unchanged.get_mut(line.number));
                if let Some(is_unchanged) = known {
                    *is_unchanged = true;
                    return;
                }
                if let Some((reason, known)) = state.left_out.get(path)
                    && *known == Some(fingerprint)
                {
                    return self.scan.leave_out_as(path, reason, Some(fingerprint));
                }
            }
        }
        if self.looking.rules.is_scratch(path) {
            return;
        }
        let parsed = match MemoryPath::parse(path) {
            Ok(parsed) => parsed,
            Err(error) => return self.scan.leave_out(path, error.to_string()),
        };
        let fingerprint = fingerprint_of(entry);
        if let Completeness::Unfinished(wait) = self.completeness(entry, path) {
            return self.wait_for(path, wait);
        }
        match read(&entry.path(), self.looking.size_bytes_max, self.looking.now) {
            // Somebody may have opened it since the question was asked.
            _ if self.looking.activity.is_some() && fingerprint_of(entry) != fingerprint => {
                self.wait_for(path, SETTLE_TIME);
            }
            Ok((file, _)) => drop(self.scan.files.insert(parsed, file)),
            Err(Unfit::Rule(reason, fingerprint)) => {
                self.scan.leave_out_as(path, reason, fingerprint)
            }
            Err(reason @ Unfit::Io(_)) => self.scan.leave_out(path, reason.to_string()),
        }
    }

    fn completeness(&self, entry: &DirEntry, path: &str) -> Completeness {
        let (Some((activity, scanned_at)), Some(now), Ok(metadata)) =
            (self.looking.activity, self.looking.now, entry.metadata())
        else {
            return Completeness::Complete;
        };
        let (age, size_bytes) = (now.since_change(&metadata), metadata.len());
        activity.completeness(path, &RecentChange { age, scanned_at, size_bytes })
    }

    fn wait_for(&mut self, path: &str, wait: Duration) {
        self.scan.unfinished.insert(path.to_owned());
        let sooner = self.scan.rescan_after.map_or(wait, |other| other.min(wait));
        self.scan.rescan_after = Some(sooner);
    }
}

/// Returns how a file looks from outside.
fn fingerprint_of(entry: &DirEntry) -> Option<(Identity, Stamp)> {
    let metadata = entry.metadata().ok()?;
    Identity::of(&metadata).zip(Stamp::of(&metadata))
}

fn kind_of(kind: FileType) -> PathKind {
    if kind.is_dir() { PathKind::Directory } else { PathKind::File }
}

/// Why a file cannot be a memory.
#[derive(Debug)]
pub(super) enum Unfit {
    Io(io::Error),
    /// It breaks a rule, and does so as long as it looks like this.
    Rule(String, Option<(Identity, Stamp)>),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&unreadable(error)),
            Self::Rule(reason, _) => f.write_str(reason),
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
pub(super) fn read(
    file: &Path,
    size_bytes_max: u64,
    now: Option<FolderTime>,
) -> Result<(FoundFile, Content), Unfit> {
    #[cfg(test)]
    super::kill::READS.set(super::kill::READS.get() + 1);
    let file = File::open(file)?;
    // Before the text: if it changes now, the file looks different the next time.
    let metadata = file.metadata()?;
    let stamp = now.and_then(|now| Stamp::settled(&metadata, now));
    let identity = Identity::of(&metadata);
    let rule = |reason| Unfit::Rule(reason, identity.zip(stamp));
    let mut bytes = Vec::new();
    file.take(size_bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > size_bytes_max) {
        let size = metadata.len();
        return Err(rule(format!(
            "it has {size} bytes, but a memory has at most {size_bytes_max}"
        )));
    }
    let content = Content::from_bytes(&bytes).map_err(|error| rule(error.to_string()))?;
    let found =
        FoundFile { hash: content.hash(), size_bytes: content.size_bytes(), identity, stamp };
    Ok((found, content))
}
