//! Scans of the folder.
//!
//! Every file is asked for its stat data, but only those with a new fingerprint are read. The time
//! of a directory is no shortcut: it changes when names come and go, not when a file is edited in
//! place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::model::{Content, ContentHash, MemoryPath};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::activity::{Activity, Completeness, RecentChange, SETTLE_TIME};
use super::data_directory::DataDirectory;
use super::failure::folder_error;
use super::listing::{Entry, EntryKind, FileStat, Fingerprint, Listing};
use super::record::Line;
use super::report::LeftOut;
use super::rules::{Chain, PathKind, Rules};
use super::stamp::{FolderTime, Identity, Stamp};
use super::state::State;

/// A file that can be a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) hash: ContentHash,
    pub(super) size_bytes: u64,
    pub(super) identity: Option<Identity>,
    /// The stat data, if an equal one proves that the file has not changed.
    pub(super) stamp: Option<Stamp>,
}

/// The files of the folder that are synced.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Files that may have changed since the last sync.
    pub(super) files: BTreeMap<MemoryPath, FoundFile>,
    /// Which entries of the state have an unchanged file, by index. A list of flags costs less than
    /// a set of 20,000 paths.
    pub(super) unchanged: Vec<bool>,
    /// What cannot be a memory, and why.
    pub(super) left_out: Vec<(LeftOut, Option<Fingerprint>)>,
    /// Names on disk that differ from their composed form (Unicode NFC).
    pub(super) spellings: Spellings,
    blocked: BTreeSet<String>,
    /// Files that may still be written.
    unfinished: BTreeSet<String>,
    /// When to scan those again.
    pub(super) rescan_after: Option<Duration>,
}

/// Names of files and directories on disk, by memory path, where they differ.
pub(super) type Spellings = HashMap<String, String>;

impl Scan {
    /// Returns whether something that cannot be a memory, or cannot be read, is at this path or
    /// above it. A memory there must be left alone: what cannot be seen was not deleted.
    pub(super) fn blocks(&self, path: &MemoryPath) -> bool {
        // The empty path stands for the folder itself.
        self.blocked.contains("")
            || self.blocked.contains(path.as_str())
            || self.unfinished.contains(path.as_str())
            || path.ancestors().any(|above| self.blocked.contains(above))
    }

    /// Returns whether the file of an entry is known to be unchanged.
    pub(super) fn is_unchanged(&self, line: Line<'_>) -> bool {
        self.unchanged.get(line.number).copied().unwrap_or_default()
    }

    /// Returns whether the file at this path may still be written.
    pub(super) fn is_unfinished(&self, path: &MemoryPath) -> bool {
        self.unfinished.contains(path.as_str())
    }

    /// Returns whether a missing file may be one that is being written under another name.
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
        fingerprint: Option<Fingerprint>,
    ) {
        self.blocked.insert(path.to_owned());
        let left_out = LeftOut { path: path.to_owned(), reason: reason.into() };
        self.left_out.push((left_out, fingerprint));
    }
}

/// How to scan a folder.
pub(super) struct ScanOptions<'a> {
    pub(super) folder: &'a Path,
    pub(super) rules: &'a Rules<'a>,
    pub(super) data: &'a DataDirectory,
    pub(super) size_bytes_max: u64,
    /// The time by the folder's clock, if it is known.
    pub(super) now: Option<FolderTime>,
    /// Which files are being written, and when the scan began, if the folder is watched.
    pub(super) activity: Option<(&'a Activity, Instant)>,
    /// The state after the last sync, if its fingerprints can be trusted.
    pub(super) known: Option<&'a State<'a>>,
}

/// Scans the folder. Symbolic links are not followed, so nothing outside of it is read.
pub(super) fn scan(options: &ScanOptions<'_>) -> Result<Scan, Error> {
    let listing = Listing::open(options.folder)
        .map_err(|error| folder_error("the folder cannot be read", error))?;
    let numbers_count = options.known.map_or(0, |state| state.numbers_count);
    let scan = Scan { unchanged: vec![false; numbers_count], ..Scan::default() };
    let mut walk = Walk { options, scan };
    walk.directory(&listing, "");
    Ok(walk.scan)
}

struct Walk<'a> {
    options: &'a ScanOptions<'a>,
    scan: Scan,
}

impl Walk<'_> {
    fn directory(&mut self, listing: &Listing<'_>, above: &str) {
        let mut decomposed = Vec::new();
        let rules = self.options.rules.of(above);
        let mut path = above.to_owned();
        listing.for_each(|entry| match entry {
            Ok(entry) => match entry.name().to_str() {
                Some(name) if name.is_ascii() || is_nfc(name) => {
                    path.truncate(above.len());
                    path.push('/');
                    path.push_str(name);
                    self.entry(&entry, &path, &rules);
                }
                Some(name) => decomposed.push((name.to_owned(), entry.kind())),
                None => {
                    let path = format!("{above}/{}", entry.name().to_string_lossy());
                    if !self.options.rules.exclude_in(&rules, &path, path_kind(entry.kind())) {
                        self.scan.leave_out(&path, "its name is not UTF-8");
                    }
                }
            },
            Err(error) => self.scan.leave_out(above, unreadable(&error)),
        });
        decomposed.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        for (name, kind) in decomposed {
            listing.with_entry((&name, kind), |entry| self.decomposed(&entry, &name, above));
        }
    }

    /// Takes an entry whose name is not in composed form, as on Macs.
    ///
    /// It is the file of the memory with the composed name, unless another file has that name.
    fn decomposed(&mut self, entry: &Entry<'_>, name: &str, above: &str) {
        let path = format!("{above}/{}", name.nfc().collect::<String>());
        let composed = path.get(above.len() + 1..).unwrap_or_default();
        let other = entry.place().with_file_name(composed).symlink_metadata();
        // Some file systems find a file by either name, so the identity decides.
        let is_taken = other.is_ok_and(|other| {
            entry.stat().is_some_and(|stat| stat.identity != Identity::of(&other))
        });
        if is_taken || self.scan.spellings.contains_key(&path) {
            let reason = "another file has this name in composed form (Unicode NFC)";
            return self.scan.leave_out(&format!("{above}/{name}"), reason);
        }
        self.scan.spellings.insert(path.clone(), name.to_owned());
        let rules = self.options.rules.of(above);
        self.entry(entry, &path, &rules);
    }

    fn entry(&mut self, entry: &Entry<'_>, path: &str, rules: &Chain) {
        if self.options.rules.exclude_in(rules, path, path_kind(entry.kind())) {
            return;
        }
        if entry.kind() == EntryKind::File {
            return self.file(entry, path);
        }
        if let Err(error) = MemoryPath::parse(path) {
            return self.scan.leave_out(path, error.to_string());
        }
        match entry.kind() {
            EntryKind::Directory => {
                let place = entry.place();
                if self.options.data.is(&place) {
                    return self.scan.leave_out(path, "it is Quipu's data directory");
                }
                match Listing::open(&place) {
                    Ok(listing) => self.directory(&listing, path),
                    Err(error) => self.scan.leave_out(path, unreadable(&error)),
                }
            }
            EntryKind::Symlink => self.scan.leave_out(path, "it is a symbolic link"),
            EntryKind::File | EntryKind::Special => {
                self.scan.leave_out(path, "it is not a regular file");
            }
        }
    }

    fn file(&mut self, entry: &Entry<'_>, path: &str) {
        let stat = entry.stat();
        let fingerprint = stat.and_then(FileStat::fingerprint);
        if let (Some(state), Some(fingerprint)) = (self.options.known, fingerprint) {
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
        if self.options.rules.is_scratch(path) {
            return;
        }
        let parsed = match MemoryPath::parse(path) {
            Ok(parsed) => parsed,
            Err(error) => return self.scan.leave_out(path, error.to_string()),
        };
        if let Completeness::Unfinished(wait) = self.completeness(stat, path) {
            return self.wait_for(path, wait);
        }
        match read(&entry.place(), self.options.size_bytes_max, self.options.now) {
            // It may have been opened after its completeness was determined.
            _ if self.options.activity.is_some() && entry.stat() != stat => {
                self.wait_for(path, SETTLE_TIME);
            }
            Ok((file, _)) => drop(self.scan.files.insert(parsed, file)),
            Err(Unfit::Rule(reason, fingerprint)) => {
                self.scan.leave_out_as(path, reason, fingerprint);
            }
            Err(reason @ Unfit::Io(_)) => self.scan.leave_out(path, reason.to_string()),
        }
    }

    fn completeness(&self, stat: Option<FileStat>, path: &str) -> Completeness {
        let (Some((activity, scanned_at)), Some(now), Some(stat)) =
            (self.options.activity, self.options.now, stat)
        else {
            return Completeness::Complete;
        };
        let (age, size_bytes) = (now.since_change(stat.stamp), stat.stamp.size_bytes());
        activity.completeness(path, &RecentChange { age, scanned_at, size_bytes })
    }

    fn wait_for(&mut self, path: &str, wait: Duration) {
        self.scan.unfinished.insert(path.to_owned());
        let sooner = self.scan.rescan_after.map_or(wait, |other| other.min(wait));
        self.scan.rescan_after = Some(sooner);
    }
}

fn path_kind(kind: EntryKind) -> PathKind {
    if kind == EntryKind::Directory { PathKind::Directory } else { PathKind::File }
}

/// Why a file cannot be a memory.
#[derive(Debug)]
pub(super) enum Unfit {
    Io(io::Error),
    /// It violates a rule, and does so until its fingerprint changes.
    Rule(String, Option<Fingerprint>),
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
    // Stat before read. If the file changes in between, the recorded stamp is the old one and the
    // next sync reads it again; the other way round, the change would be missed.
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
