//! The state: what folder and store had in common when they were last equal.
//!
//! It lives in the folder itself, in `.quipu`. Kept elsewhere, such as in the data directory, an
//! unmounted disk would be an empty folder with a state that lists a thousand files, and a sync
//! would delete a thousand memories. Here the state disappears together with the files.
//!
//! `sync` is a checkpoint and `journal` a write-ahead log of what changed since, so that a sync of
//! one edit does not rewrite megabytes. A sync journals its intents before it carries them out and
//! their outcome afterwards; see [`recovery`](super::recovery) for what a kill in between leaves.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::model::{MemoryId, SessionId, StoreId};
use quipu_core::{Error, ErrorKind};

use super::failure::folder_error;
use super::kill::kill_point;
use super::listing::Fingerprint;
use super::record::{Head, Intent, Line, Record, SyncedEntry, parse_head};
use super::report::LeftOut;
use super::stamp::{FolderTime, Identity};

/// The directory of the state in the folder.
pub(super) const MARKER: &str = ".quipu";
const CHECKPOINT: &str = "sync";
const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
const SCRATCH: &str = "scratch";
const FORMAT: &str = "quipu sync 2";
/// The first format: a checkpoint without stamps and without a journal.
const FORMAT_BEFORE: &str = "quipu sync 1";
const JOURNAL_FORMAT: &str = "quipu sync journal 1";
const END: &str = "end\n";

/// The first two lines of a checkpoint are shorter than this.
const HEAD_SIZE_BYTES_MAX: u64 = 1024;

/// A journal up to this size is never replaced by a new checkpoint.
const JOURNAL_SIZE_BYTES_MIN: usize = 256 * 1024;

/// The texts of checkpoint and journal, which a [`State`] borrows.
#[derive(Debug, Default)]
pub(super) struct StateFiles {
    is_there: bool,
    checkpoint: Option<String>,
    journal: String,
}

/// The parsed state.
#[derive(Debug)]
pub(super) struct State<'a> {
    /// The number of the checkpoint; a journal names the one that it continues.
    generation: u64,
    pub(super) head: Head,
    /// The synced entries, by path.
    pub(super) entries: HashMap<&'a str, Line<'a>>,
    /// Memories without a file, for whatever reason.
    pub(super) store_only: HashSet<MemoryId>,
    /// What was reported as left out: the reason and the fingerprint, by path.
    pub(super) left_out: HashMap<String, (String, Option<Fingerprint>)>,
    /// What was reported as failed.
    pub(super) failed: HashSet<LeftOut>,
    /// What the last sync was doing, if it was killed.
    pub(super) interrupted: Option<Interrupted>,
    journal_size_bytes: usize,
    checkpoint_size_bytes: usize,
    /// All indexes of entries are below this.
    pub(super) numbers_count: usize,
}

/// What a killed sync was doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interrupted {
    pub(super) intents: Vec<Intent>,
    /// The session that wrote to the store, if it was created.
    pub(super) session: Option<SessionId>,
    /// Files that were about to appear at their paths.
    pub(super) written: HashSet<Identity>,
}

/// The changes of a sync to the state.
#[derive(Debug, Default)]
pub(super) struct StateChange {
    pub(super) head: Option<Head>,
    pub(super) gone: Vec<String>,
    pub(super) synced: Vec<SyncedEntry>,
    pub(super) store_only: Option<HashSet<MemoryId>>,
    /// What is left out and was not reported before.
    pub(super) left_out: Vec<(LeftOut, Option<Fingerprint>)>,
    pub(super) failed: Vec<LeftOut>,
    /// Paths for which neither holds anymore.
    pub(super) resolved: Vec<String>,
}

impl StateFiles {
    /// Reads the state of a folder. What is not UTF-8 was not written by a sync and is ignored.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let marker = folder.join(MARKER);
        let bytes = |name: &str| match fs::read(marker.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(folder_error("the state of the sync cannot be read", error)),
        };
        let checkpoint = bytes(CHECKPOINT)?;
        let is_there = checkpoint.is_some();
        let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let journal = bytes(JOURNAL)?.map(whole_lines).unwrap_or_default();
        Ok(Self { is_there, checkpoint: text(checkpoint).map(upgraded), journal })
    }

    /// Returns whether there is a checkpoint, readable or not.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.is_there
    }

    /// Returns the newest generation in the files, however damaged they are.
    fn generation(&self) -> u64 {
        let number = |text: &str, format: &str| {
            let first = text.lines().next()?.strip_prefix(format)?;
            first.trim().parse::<u64>().ok()
        };
        let checkpoint = self.checkpoint.as_deref().and_then(|text| number(text, FORMAT));
        checkpoint.max(number(&self.journal, JOURNAL_FORMAT)).unwrap_or_default()
    }

    /// Returns the state; `None` if it is missing or malformed.
    pub(super) fn state(&self) -> Option<State<'_>> {
        State::parse(self.checkpoint.as_deref()?, &self.journal)
    }
}

/// Returns the store of a folder's state, without reading all of it.
pub(super) fn store_of(folder: &Path) -> Option<StoreId> {
    let mut head = Vec::new();
    let file = File::open(folder.join(MARKER).join(CHECKPOINT)).ok()?;
    file.take(HEAD_SIZE_BYTES_MAX).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().nth(1)?;
    line.strip_prefix("head ").unwrap_or(line).split(' ').next()?.parse().ok()
}

/// Returns the valid part of a journal, before what a power loss may have left.
fn whole_lines(mut bytes: Vec<u8>) -> String {
    let valid_size_bytes = match str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    bytes.truncate(valid_size_bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Converts a checkpoint of the first format.
fn upgraded(text: String) -> String {
    let Some(rest) = text.strip_prefix(FORMAT_BEFORE) else { return text };
    let mut new = format!("{FORMAT} 0\n");
    for (number, line) in rest.trim_start_matches('\n').lines().enumerate() {
        let words: Vec<_> = line.splitn(6, ' ').collect();
        match (number, words.as_slice()) {
            (0, _) => new += &format!("head {line}\n"),
            (_, [memory, version, store_hash, folder_hash, identity, path]) => {
                new += &format!(
                    "= {identity} {path}\t{memory} {version} {store_hash} {folder_hash}\n"
                );
            }
            (..) => new += &format!("{line}\n"),
        }
    }
    new
}

impl<'a> State<'a> {
    fn parse(checkpoint: &'a str, journal: &'a str) -> Option<Self> {
        let (first, rest) = checkpoint.strip_suffix(END)?.split_once('\n')?;
        let generation = first.strip_prefix(FORMAT)?.trim_start().parse().ok()?;
        let (head, rest) = rest.split_once('\n')?;
        let mut state = Self {
            generation,
            head: parse_head(head.strip_prefix("head ")?)?,
            entries: HashMap::with_capacity(rest.len() / 200),
            store_only: HashSet::new(),
            left_out: HashMap::new(),
            failed: HashSet::new(),
            interrupted: None,
            journal_size_bytes: 0,
            checkpoint_size_bytes: checkpoint.len(),
            numbers_count: 0,
        };
        for line in rest.lines() {
            state.take(Record::parse(line)?);
        }
        let header = format!("{JOURNAL_FORMAT} {generation}\n");
        for line in journal.strip_prefix(&header).unwrap_or_default().split_inclusive('\n') {
            // A power loss leaves half a line at the end, or garbage.
            let Some(record) = verified(line) else { break };
            state.take(Record::parse(record)?);
            state.journal_size_bytes += line.len();
        }
        Some(state)
    }

    fn take(&mut self, record: Record<'a>) {
        match record {
            Record::Head(head) => self.head = head,
            Record::Entry(line) => {
                let number = self.numbers_count;
                self.numbers_count += 1;
                self.entries.insert(line.path, Line { number, ..line });
            }
            Record::Gone(path) => drop(self.entries.remove(path)),
            Record::StoreOnly(memory) => drop(self.store_only.insert(memory)),
            Record::StoreOnlyCleared => self.store_only.clear(),
            Record::LeftOut(LeftOut { path, reason }, fingerprint) => {
                self.left_out.insert(path, (reason, fingerprint));
            }
            Record::Failed(failed) => drop(self.failed.insert(failed)),
            Record::Resolved(path) => {
                self.failed.retain(|failed| failed.path != path);
                self.left_out.remove(&path);
            }
            Record::Intent(intent) => self.interrupted().intents.push(intent),
            Record::Session(session) => self.interrupted().session = Some(session),
            Record::Written(identity, _) => drop(self.interrupted().written.insert(identity)),
            Record::Done => self.interrupted = None,
        }
    }

    fn interrupted(&mut self) -> &mut Interrupted {
        self.interrupted.get_or_insert_default()
    }

    /// Returns whether the journal has grown so long that a new checkpoint is cheaper.
    fn is_long(&self, more_size_bytes: usize) -> bool {
        let size_bytes = self.journal_size_bytes + more_size_bytes;
        size_bytes > JOURNAL_SIZE_BYTES_MIN && size_bytes > self.checkpoint_size_bytes / 4
    }

    fn checkpoint(&self, generation: u64, change: &StateChange) -> String {
        let head = change.head.as_ref().unwrap_or(&self.head);
        let mut text = format!("{FORMAT} {generation}\n{}\n", Record::Head(*head));
        let mut lines: HashMap<&str, String> =
            self.entries.iter().map(|(path, line)| (*path, line.as_str().to_owned())).collect();
        change.gone.iter().for_each(|path| drop(lines.remove(path.as_str())));
        lines.extend(change.synced.iter().map(|it| (it.path.as_str(), it.to_string())));
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_unstable();
        for (_, line) in lines {
            text += &format!("= {line}\n");
        }
        for other in change.store_only.as_ref().unwrap_or(&self.store_only) {
            text += &format!("{}\n", Record::StoreOnly(*other));
        }
        let is_resolved = |path: &String| change.resolved.contains(path);
        for (path, (reason, fingerprint)) in
            self.left_out.iter().filter(|(path, _)| !is_resolved(path))
        {
            let left_out = LeftOut { path: path.clone(), reason: reason.clone() };
            text += &format!("{}\n", Record::LeftOut(left_out, *fingerprint));
        }
        for failed in self.failed.iter().filter(|failed| !is_resolved(&failed.path)) {
            text += &format!("{}\n", Record::Failed(failed.clone()));
        }
        text + &change.about_files() + END
    }
}

impl StateChange {
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_none()
            && self.gone.is_empty()
            && self.synced.is_empty()
            && self.store_only.is_none()
            && self.left_out.is_empty()
            && self.failed.is_empty()
            && self.resolved.is_empty()
    }

    /// Returns the records of left-out and failed files, one per line.
    fn about_files(&self) -> String {
        let mut text = String::new();
        for (left_out, fingerprint) in &self.left_out {
            text += &format!("{}\n", Record::LeftOut(left_out.clone(), *fingerprint));
        }
        for failed in &self.failed {
            text += &format!("{}\n", Record::Failed(failed.clone()));
        }
        text
    }

    fn records(&self) -> String {
        let mut text = String::new();
        for path in &self.gone {
            text += &format!("{}\n", Record::Gone(path));
        }
        for synced in &self.synced {
            text += &format!("= {synced}\n");
        }
        if let Some(store_only) = &self.store_only {
            text += &format!("{}\n", Record::StoreOnlyCleared);
            for other in store_only {
                text += &format!("{}\n", Record::StoreOnly(*other));
            }
        }
        for path in &self.resolved {
            text += &format!("{}\n", Record::Resolved(path.clone()));
        }
        text += &self.about_files();
        if let Some(head) = self.head {
            text += &format!("{}\n", Record::Head(head));
        }
        text + &format!("{}\n", Record::Done)
    }
}

/// The directory of the state, locked.
#[derive(Debug)]
pub(super) struct Marker {
    directory: PathBuf,
    // The lock is released when this is dropped.
    _lock: File,
}

/// Whether a record must survive a power loss, or only a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    Synced,
    Deferred,
}

impl Marker {
    /// Creates the directory if needed, and locks it against other syncs.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let directory = folder.join(MARKER);
        let lock = prepare(folder, &directory)
            .map_err(|error| folder_error("`.quipu` in the folder cannot be written", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                ErrorKind::PreconditionFailed,
                "another `quipu sync` is running on this folder",
            )
            .with_hint("wait until it has finished, or stop it")),
            Err(TryLockError::Error(error)) => {
                Err(folder_error("the folder cannot be locked", error))
            }
        }
    }

    /// Returns the directory for incomplete files.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join(SCRATCH)
    }

    /// Returns the scratch files of a killed sync.
    pub(super) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.scratch()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Returns the time by the clock of the folder's file system. The system clock would be wrong
    /// for a network file system.
    pub(super) fn now(&self) -> Option<FolderTime> {
        let file = tempfile::NamedTempFile::new_in(self.scratch()).ok()?;
        FolderTime::of_new_file(&file.as_file().metadata().ok()?)
    }

    /// Returns whether there is a checkpoint.
    pub(super) fn has_state(&self) -> bool {
        self.directory.join(CHECKPOINT).is_file()
    }

    /// Replaces the state by an empty one.
    pub(super) fn begin(&self, before: &StateFiles, head: Head) -> Result<(), Error> {
        let generation = before.generation() + 1;
        let text = format!("{FORMAT} {generation}\n{}\n{END}", Record::Head(head));
        self.replace(CHECKPOINT, &text).map_err(not_written)
    }

    /// Appends records to the journal.
    pub(super) fn append(&self, records: &str, durability: Durability) -> Result<(), Error> {
        let mut text = String::with_capacity(records.len() * 2);
        for record in records.lines() {
            text += &format!("{:08x} {record}\n", checksum(record));
        }
        let append = || -> io::Result<()> {
            let mut file = File::options().append(true).open(self.directory.join(JOURNAL))?;
            // A single write, so that records of several threads do not interleave.
            file.write_all(text.as_bytes())?;
            if durability == Durability::Synced { file.sync_data() } else { Ok(()) }
        };
        append().map_err(not_written)
    }

    /// Starts a journal, or continues that of the state.
    pub(super) fn continue_journal(&self, state: &State<'_>) -> Result<(), Error> {
        let header = format!("{JOURNAL_FORMAT} {}\n", state.generation);
        let size_bytes = header.len() + state.journal_size_bytes;
        let place = self.directory.join(JOURNAL);
        let is_ours = state.journal_size_bytes > 0;
        let continued = || -> io::Result<()> {
            if !is_ours {
                return self.replace(JOURNAL, &header);
            }
            let file = File::options().write(true).open(&place)?;
            let size_bytes = u64::try_from(size_bytes).unwrap_or(u64::MAX);
            // Parsing stops at a torn record, so one at the end would hide all that is appended
            // after it.
            if file.metadata()?.len() > size_bytes { file.set_len(size_bytes) } else { Ok(()) }
        };
        continued().map_err(not_written)
    }

    /// Writes the outcome of a sync durably, to the journal or as a new checkpoint.
    pub(super) fn write(&self, state: &State<'_>, change: &StateChange) -> Result<(), Error> {
        let records = change.records();
        kill_point("before the state is written");
        if !state.is_long(records.len()) {
            self.append(&records, Durability::Synced)?;
            kill_point("after the state was written");
            return Ok(());
        }
        let checkpoint = state.checkpoint(state.generation + 1, change);
        self.replace(CHECKPOINT, &checkpoint).map_err(not_written)
    }

    /// Replaces a file of the state atomically and durably.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(self.scratch())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.directory.join(name))?;
        sync_directory(&self.directory)
    }
}

fn not_written(error: io::Error) -> Error {
    folder_error("the state of the sync cannot be written", error)
}

fn prepare(folder: &Path, directory: &Path) -> io::Result<File> {
    let scratch = directory.join(SCRATCH);
    if !scratch.is_dir() {
        fs::create_dir_all(&scratch)?;
        sync_directory(folder)?;
        sync_directory(directory)?;
    }
    let ignore = directory.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    File::options().create(true).append(true).open(directory.join(LOCK))
}

/// Syncs the entries of a directory to disk, where the system can.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Returns the record of an intact line of the journal.
fn verified(line: &str) -> Option<&str> {
    let (sum, record) = line.strip_suffix('\n')?.split_once(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == checksum(record)).then_some(record)
}

/// Returns the FNV-1a hash of a record. It only has to detect torn writes.
fn checksum(record: &str) -> u32 {
    record.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
