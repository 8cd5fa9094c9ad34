//! What folder and store had in common when they were last equal.
//!
//! It is kept in the folder itself, in `.quipu`, so that a folder that is gone, empty or on a disk
//! that is not there has no past: nothing can look deleted in it. It holds ids, paths and hashes,
//! never a text.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::backend::Sequence;
use quipu_core::model::{ContentHash, MemoryId, MemoryPath, StoreId, VersionId};
use quipu_core::{Error, ErrorKind};

use super::failure::folder_error;
use super::scan::Identity;

/// The directory in the folder that is the sync's own.
pub(super) const MARKER: &str = ".quipu";
const STATE: &str = "sync";
const LOCK: &str = "lock";
const SCRATCH: &str = "scratch";
const FORMAT: &str = "quipu sync 1";
const END: &str = "end\n";

/// A memory and a file that are the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    pub(super) memory: MemoryId,
    /// Where both were.
    pub(super) path: MemoryPath,
    /// The memory's version at that time.
    pub(super) version: VersionId,
    /// What the memory held.
    pub(super) store_hash: ContentHash,
    /// What the file held; another text only if the store took a credential out.
    pub(super) folder_hash: ContentHash,
    /// Which file it was, however it is called.
    pub(super) identity: Option<Identity>,
}

/// Everything that folder and store have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) store: StoreId,
    /// The newest change of the data directory at that time.
    pub(super) sequence: Sequence,
    /// The newest version of the store at that time.
    pub(super) newest: Option<VersionId>,
    pub(super) agreed: Vec<Agreed>,
}

/// The sync's own directory, locked.
#[derive(Debug)]
pub(super) struct Marker {
    directory: PathBuf,
    // Held until the marker is dropped.
    _lock: File,
}

impl Marker {
    /// Makes the directory if it is not there, and keeps other syncs out of the folder.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let directory = folder.join(MARKER);
        let lock = prepare(&directory)
            .map_err(|error| folder_error("`.quipu` in the folder cannot be written", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { directory, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                ErrorKind::PreconditionFailed,
                "another `quipu sync` works on this folder",
            )
            .with_hint("wait until it has ended, or stop it")),
            Err(TryLockError::Error(error)) => {
                Err(folder_error("the folder cannot be locked", error))
            }
        }
    }

    /// Returns the directory for files that are not complete yet.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join(SCRATCH)
    }

    /// Removes what a sync that was killed has left behind, if `is_known` says that its text is
    /// kept elsewhere.
    pub(super) fn tidy(&self, is_known: impl Fn(&Path) -> bool) {
        let entries = fs::read_dir(self.scratch()).into_iter().flatten().flatten();
        for left_over in entries.map(|entry| entry.path()).filter(|path| is_known(path)) {
            // What cannot be removed is in nobody's way.
            fs::remove_file(left_over).unwrap_or_default();
        }
    }

    /// Tells whether a state was written and is still there.
    pub(super) fn has_state(&self) -> bool {
        self.directory.join(STATE).is_file()
    }

    /// Replaces the state; it is on the disk when this returns.
    pub(super) fn write(&self, state: &State) -> Result<(), Error> {
        let written = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(self.scratch())?;
            file.write_all(state.to_text().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(self.directory.join(STATE))?;
            Ok(())
        };
        written().map_err(|error| folder_error("the state of the sync cannot be written", error))
    }
}

fn prepare(directory: &Path) -> io::Result<File> {
    let scratch = directory.join(SCRATCH);
    fs::create_dir_all(&scratch)?;
    let ignore = directory.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    File::options().create(true).append(true).open(directory.join(LOCK))
}

/// Returns the state of a folder; `None` if it has none or if it cannot be understood.
pub(super) fn read(folder: &Path) -> Result<Option<State>, Error> {
    match fs::read(folder.join(MARKER).join(STATE)) {
        Ok(bytes) => Ok(str::from_utf8(&bytes).ok().and_then(State::parse)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(folder_error("the state of the sync cannot be read", error)),
    }
}

impl State {
    fn to_text(&self) -> String {
        let newest = self.newest.map_or_else(|| "-".to_owned(), |version| version.to_string());
        let Self { store, sequence, agreed, .. } = self;
        let mut text = format!("{FORMAT}\n{store} {} {newest}\n", sequence.0);
        for entry in agreed {
            let identity = entry.identity.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let Agreed { memory, version, store_hash, folder_hash, path, .. } = entry;
            text += &format!("{memory} {version} {store_hash} {folder_hash} {identity} {path}\n");
        }
        text + END
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix(END)?.lines();
        if lines.next()? != FORMAT {
            return None;
        }
        let mut head = lines.next()?.split(' ');
        let store = head.next()?.parse().ok()?;
        let sequence = Sequence(head.next()?.parse().ok()?);
        let newest = match head.next()? {
            "-" => None,
            version => Some(version.parse().ok()?),
        };
        let agreed = lines.map(parse_entry).collect::<Option<_>>()?;
        Some(Self { store, sequence, newest, agreed })
    }
}

fn parse_entry(line: &str) -> Option<Agreed> {
    let mut words = line.splitn(6, ' ');
    Some(Agreed {
        memory: words.next()?.parse().ok()?,
        version: words.next()?.parse().ok()?,
        store_hash: words.next()?.parse().ok()?,
        folder_hash: words.next()?.parse().ok()?,
        identity: match words.next()? {
            "-" => None,
            identity => Some(identity.parse().ok()?),
        },
        path: MemoryPath::parse(words.next()?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use quipu_core::model::{Content, Id as _};

    use super::*;

    fn state() -> State {
        let entry = |number: u128, path: &str| Agreed {
            memory: MemoryId::from_bits(number),
            path: MemoryPath::parse(path).unwrap(),
            version: VersionId::from_bits(number + 1),
            store_hash: Content::new("a").unwrap().hash(),
            folder_hash: Content::new("b").unwrap().hash(),
            identity: "12-34".parse().ok(),
        };
        State {
            store: StoreId::from_bits(7),
            sequence: Sequence(9),
            newest: Some(VersionId::from_bits(3)),
            agreed: vec![entry(1, "/a b.md"), Agreed { identity: None, ..entry(2, "/c/ d") }],
        }
    }

    #[test]
    fn a_state_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let marker = Marker::open(folder.path()).unwrap();
        assert!(!marker.has_state());
        for state in [state(), State { newest: None, agreed: Vec::new(), ..state() }] {
            marker.write(&state).unwrap();
            assert_eq!(read(folder.path()).unwrap(), Some(state));
        }
        assert!(marker.has_state());
    }

    #[test]
    fn a_state_that_is_not_whole_counts_as_none() {
        let text = state().to_text();
        for end in 0..text.len() {
            assert_eq!(State::parse(text.get(..end).unwrap()), None);
        }
        assert_eq!(State::parse(&text.replace("sync 1", "sync 2")), None);
    }

    #[test]
    fn two_syncs_cannot_work_on_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = Marker::open(folder.path()).unwrap();
        let refused = Marker::open(folder.path()).unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::PreconditionFailed);
        drop(first);
        Marker::open(folder.path()).unwrap();
    }
}
