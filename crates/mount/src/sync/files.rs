//! Changes to the folder that never lose an edit.
//!
//! Files are written under a scratch name, synced and renamed, so they appear complete or not at
//! all. Checking a file's hash and then replacing it would leave a window in which an editor saves.
//! So the old file is first moved aside atomically (`RENAME_EXCHANGE` where it exists) and
//! inspected afterwards, when no path leads to it. If it is not what the plan expected, it is put
//! back.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use quipu_core::model::{Content, ContentHash, MemoryPath};
use tempfile::{NamedTempFile, TempPath};

use super::kill::kill_point;
use super::scan::{self, FoundFile, Spellings, Unfit};
use super::stamp::Identity;
use super::state::sync_directory;

/// The folder, for writing.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    scratch: PathBuf,
    size_bytes_max: u64,
    /// The names on disk that differ from those in memory paths (decomposed Unicode).
    spellings: Mutex<Spellings>,
    /// Directories with changed entries that are not synced to disk yet.
    unsynced: Mutex<BTreeSet<PathBuf>>,
}

/// Is called with the identity of a file before the file appears at its path.
pub(super) type Announce<'a> = dyn Fn(Option<Identity>) -> Result<(), Obstacle> + 'a;

/// Why the folder was not changed.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The file has changed since the folder was scanned.
    Changed,
    Io(io::Error),
    /// The journal cannot be written.
    Journal(Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Folder {
    pub(super) fn new(root: &Path, scratch: PathBuf, size_bytes_max: u64) -> Self {
        let (spellings, unsynced) = (Mutex::default(), Mutex::default());
        Self { root: root.to_owned(), scratch, size_bytes_max, spellings, unsynced }
    }

    /// Sets the names that the last scan found.
    pub(super) fn spell(&self, spellings: Spellings) {
        *self.spellings.lock().unwrap_or_else(PoisonError::into_inner) = spellings;
    }

    fn place(&self, path: &MemoryPath) -> PathBuf {
        let spellings = self.spellings.lock().unwrap_or_else(PoisonError::into_inner);
        if spellings.is_empty() {
            return self.root.join(path.as_str().trim_start_matches('/'));
        }
        let mut place = self.root.clone();
        for part in path.ancestors().chain([path.as_str()]) {
            let name = part.rsplit_once('/').map_or(part, |(_, name)| name);
            place.push(spellings.get(part).map_or(name, String::as_str));
        }
        place
    }

    /// Reads a file, which must have this hash.
    pub(super) fn read(&self, path: &MemoryPath, hash: ContentHash) -> Result<Content, Obstacle> {
        let (found, content) = self.inspect(&self.place(path))?;
        if found.hash == hash { Ok(content) } else { Err(Obstacle::Changed) }
    }

    /// Returns what is at a path now.
    pub(super) fn found(&self, path: &MemoryPath) -> Result<FoundFile, Obstacle> {
        self.inspect(&self.place(path)).map(|(found, _)| found)
    }

    fn inspect(&self, file: &Path) -> Result<(FoundFile, Content), Obstacle> {
        scan::read(file, self.size_bytes_max, None).map_err(|unfit| match unfit {
            Unfit::Io(error) if error.kind() != io::ErrorKind::NotFound => Obstacle::Io(error),
            Unfit::Io(_) | Unfit::Rule(..) => Obstacle::Changed,
        })
    }

    /// Creates a file where none exists, or where one has the same text.
    ///
    /// `announce` is called before the file appears.
    pub(super) fn create(
        &self,
        path: &MemoryPath,
        text: &Content,
        announce: &Announce<'_>,
    ) -> Result<(), Obstacle> {
        if cfg!(windows) && is_reserved_on_windows(path) {
            let message = "Windows does not allow a file of this name";
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message).into());
        }
        let place = self.place(path);
        self.make_parents(&place)?;
        remove_empty_directories(&place);
        let new = self.complete(text)?;
        announce(Identity::of(&new.as_file().metadata()?))?;
        kill_point("before a file is created");
        match new.persist_noclobber(&place) {
            Ok(_) => {
                kill_point("after a file was created");
                self.note(&place);
                Ok(())
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                self.read(path, text.hash()).map(drop)
            }
            Err(error) => Err(error.error.into()),
        }
    }

    /// Replaces a file, which must have this hash.
    pub(super) fn replace(
        &self,
        path: &MemoryPath,
        hash: ContentHash,
        (text, announce): (&Content, &Announce<'_>),
    ) -> Result<(), Obstacle> {
        let place = self.place(path);
        self.read(path, hash)?;
        let new = self.complete(text)?;
        make_alike(new.as_file(), &place)?;
        announce(Identity::of(&new.as_file().metadata()?))?;
        let new = new.into_temp_path();
        kill_point("before a file is replaced");
        match exchange(&new, &place) {
            Ok(()) => {
                kill_point("after a file was replaced");
                // The scratch name now holds the old file, with every edit that was saved up to the
                // exchange.
                if self.inspect(&new).is_ok_and(|(found, _)| found.hash == hash) {
                    self.note(&place);
                    return Ok(());
                }
                exchange(&new, &place)?;
                if !self.inspect(&new).is_ok_and(|(found, _)| found.hash == text.hash()) {
                    // Another edit was saved between the two exchanges. Keep both.
                    put_back(new, &place)?;
                }
                Err(Obstacle::Changed)
            }
            Err(error) if is_unsupported(&error) => {
                self.read(path, hash)?;
                new.persist(&place).map_err(|error| error.error)?;
                self.note(&place);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a file, which must have this hash, out of the folder, and removes directories that are
    /// empty then.
    ///
    /// The file is deleted when the returned path is dropped.
    pub(super) fn remove(
        &self,
        path: &MemoryPath,
        hash: ContentHash,
    ) -> Result<TempPath, Obstacle> {
        let place = self.place(path);
        let aside = NamedTempFile::new_in(&self.scratch)?.into_temp_path();
        kill_point("before a file is removed");
        match fs::rename(&place, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Obstacle::Changed),
            moved => moved?,
        }
        kill_point("after a file was removed");
        if !self.inspect(&aside).is_ok_and(|(found, _)| found.hash == hash) {
            put_back(aside, &place)?;
            return Err(Obstacle::Changed);
        }
        self.note(&place);
        self.remove_empty_parents(&place);
        Ok(aside)
    }

    /// Writes a complete file to the scratch directory.
    fn complete(&self, text: &Content) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        make_ordinary(&mut builder);
        let mut file = builder.tempfile_in(&self.scratch)?;
        file.write_all(text.as_str().as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    fn make_parents(&self, place: &Path) -> io::Result<()> {
        let Some(parent) = place.parent() else { return Ok(()) };
        if parent.is_dir() {
            return Ok(());
        }
        for above in parent.ancestors().take_while(|above| above.starts_with(&self.root)) {
            self.note(above);
        }
        fs::create_dir_all(parent)
    }

    fn remove_empty_parents(&self, place: &Path) {
        let inside = |above: &&Path| **above != self.root && above.starts_with(&self.root);
        for above in place.ancestors().skip(1).take_while(inside) {
            if fs::remove_dir(above).is_err() {
                return;
            }
            self.note(above);
        }
    }

    /// Remembers to sync the directory of a file.
    fn note(&self, place: &Path) {
        if let Some(parent) = place.parent() {
            let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
            unsynced.insert(parent.to_owned());
        }
    }

    /// Syncs all changed directories to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in std::mem::take(&mut *unsynced) {
            match sync_directory(&directory) {
                // A removed directory needs no sync.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Requests mode 0666 like any other program, so that the umask decides; `tempfile` would make it
/// 0600.
#[cfg(unix)]
fn make_ordinary(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn make_ordinary(_: &mut tempfile::Builder<'_, '_>) {}

/// Copies the permissions and, if allowed, the owner of another file.
fn make_alike(new: &File, old: &Path) -> io::Result<()> {
    let metadata = fs::metadata(old)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        fchown(new, Some(metadata.uid()), Some(metadata.gid())).unwrap_or_default();
    }
    new.set_permissions(metadata.permissions())
}

/// Puts a file back in its place. If another one is there already, both are kept.
fn put_back(aside: TempPath, place: &Path) -> io::Result<()> {
    let Err(error) = aside.persist_noclobber(place) else { return Ok(()) };
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let copy = (1..).map(|number: u32| place.with_file_name(format!("{name}.{number}")));
    let mut aside = error.path;
    for copy in copy {
        match aside.persist_noclobber(copy) {
            Ok(()) => break,
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => aside = error.path,
            Err(error) => {
                // Better in the scratch directory than nowhere.
                error.path.keep().map_err(|error| error.error)?;
                return Err(error.error);
            }
        }
    }
    Ok(())
}

/// Removes a directory tree without files.
///
/// Stores have no empty directories, so one at the path of a memory is merely in the way.
fn remove_empty_directories(place: &Path) {
    let is_directory = place.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_directory {
        let inside = fs::read_dir(place).into_iter().flatten().flatten();
        inside.for_each(|entry| remove_empty_directories(&entry.path()));
        // Fails if the directory is not empty, as it should.
        fs::remove_dir(place).unwrap_or_default();
    }
}

#[cfg(target_os = "linux")]
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns whether the file system cannot exchange two files.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// Returns whether Windows reserves a name or a character in a path.
fn is_reserved_on_windows(path: &MemoryPath) -> bool {
    path.as_str().split('/').skip(1).any(|name| {
        let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
        let is_device = match stem.as_str() {
            "CON" | "PRN" | "AUX" | "NUL" => true,
            _ => {
                let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
                number.is_some_and(|n| matches!(n.as_bytes(), [b'1'..=b'9']))
            }
        };
        is_device
            || name.ends_with([' ', '.'])
            || name.contains(['<', '>', ':', '"', '|', '?', '*', '\\'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        folder: Folder,
        home: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let home = tempfile::tempdir().unwrap();
        let scratch = home.path().join(".quipu");
        fs::create_dir(&scratch).unwrap();
        Fixture { folder: Folder::new(home.path(), scratch, 100), home }
    }

    fn path(text: &str) -> MemoryPath {
        MemoryPath::parse(text).unwrap()
    }

    fn content(text: &str) -> Content {
        Content::new(text).unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands for a call that can fail")]
    fn quietly(_: Option<Identity>) -> Result<(), Obstacle> {
        Ok(())
    }

    impl Fixture {
        fn text(&self) -> String {
            fs::read_to_string(self.home.path().join("a")).unwrap()
        }

        fn put(&self, text: &str) {
            fs::write(self.home.path().join("a"), text).unwrap();
        }

        #[track_caller]
        fn assert_tidy(&self) {
            assert_eq!(fs::read_dir(self.home.path().join(".quipu")).unwrap().count(), 0);
            self.folder.sync().unwrap();
        }
    }

    #[test]
    fn a_file_that_is_in_the_way_is_kept() {
        let fixture = fixture();
        fixture.put("edited");
        assert!(matches!(
            fixture.folder.create(&path("/a"), &content("b"), &quietly),
            Err(Obstacle::Changed)
        ));
        assert_eq!(fixture.text(), "edited");
        fixture.folder.create(&path("/a"), &content("edited"), &quietly).unwrap();
        fixture.folder.create(&path("/d/e/f"), &content("x"), &quietly).unwrap();
        fixture.assert_tidy();
    }

    #[test]
    fn an_edit_that_comes_before_a_replacement_is_kept() {
        let fixture = fixture();
        fixture.put("edited");
        let replaced = fixture.folder.replace(
            &path("/a"),
            content("scanned").hash(),
            (&content("new"), &quietly),
        );
        assert!(matches!(replaced, Err(Obstacle::Changed)));
        assert_eq!(fixture.text(), "edited");
        fixture
            .folder
            .replace(&path("/a"), content("edited").hash(), (&content("new"), &quietly))
            .unwrap();
        assert_eq!(fixture.text(), "new");
        fixture.assert_tidy();
    }

    #[test]
    fn a_concurrent_edit_survives_a_replacement() {
        let fixture = fixture();
        for _ in 0..200 {
            fixture.put("scanned");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let scratch = fixture.home.path().join("edit");
                    fs::write(&scratch, "edited").unwrap();
                    fs::rename(&scratch, fixture.home.path().join("a")).unwrap();
                });
                let known = content("scanned").hash();
                drop(fixture.folder.replace(
                    &path("/a"),
                    known,
                    (&content("from the store"), &quietly),
                ));
            });
            // The edit must survive, whichever came first.
            assert_eq!(fixture.text(), "edited");
        }
        fixture.assert_tidy();
    }

    #[test]
    fn an_edit_that_comes_before_a_removal_is_kept() {
        let fixture = fixture();
        fixture.put("edited");
        let removed = fixture.folder.remove(&path("/a"), content("scanned").hash());
        assert!(matches!(removed, Err(Obstacle::Changed)));
        assert_eq!(fixture.text(), "edited");
        fixture.folder.remove(&path("/a"), content("edited").hash()).unwrap();
        assert!(!fixture.home.path().join("a").exists());
        fixture.assert_tidy();
    }

    #[test]
    fn putting_a_file_back_never_overwrites() {
        let fixture = fixture();
        let aside = NamedTempFile::new_in(fixture.home.path()).unwrap().into_temp_path();
        fs::write(&aside, "old").unwrap();
        fixture.put("new");
        put_back(aside, &fixture.home.path().join("a")).unwrap();
        assert_eq!(fixture.text(), "new");
        assert_eq!(fs::read_to_string(fixture.home.path().join("a.1")).unwrap(), "old");
    }

    #[test]
    fn only_empty_directories_give_way() {
        let fixture = fixture();
        fs::create_dir_all(fixture.home.path().join("a/b/c")).unwrap();
        fixture.folder.create(&path("/a"), &content("x"), &quietly).unwrap();
        assert_eq!(fixture.text(), "x");
        fs::create_dir_all(fixture.home.path().join("d/e")).unwrap();
        fs::write(fixture.home.path().join("d/e/.kept"), "").unwrap();
        assert!(fixture.folder.create(&path("/d"), &content("x"), &quietly).is_err());
        assert!(fixture.home.path().join("d/e/.kept").exists());
    }

    #[test]
    fn names_reserved_by_windows_are_recognized() {
        for name in ["/CON", "/a/nul.txt", "/com1.md", "/a:b", "/x ", "/x./y", "/a\\b", "/lpt9"] {
            assert!(is_reserved_on_windows(&path(name)), "{name}");
        }
        for name in ["/console", "/a.b", "/com", "/com10", "/.con"] {
            assert!(!is_reserved_on_windows(&path(name)), "{name}");
        }
    }
}
