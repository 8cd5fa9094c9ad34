//! The directories to mount on, and what becomes of them afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Directories that were made to mount on, to be removed when nothing is mounted there any more.
///
/// A directory that stays behind is dangerous: a program that goes on writing to `/mnt/memory/notes`
/// after the mount is gone would believe that its notes are kept.
#[derive(Debug, Default)]
pub(crate) struct MountPoints {
    /// The outermost first.
    made: Vec<PathBuf>,
    /// A directory whose mode was changed, with the mode that it had.
    closed: Option<(PathBuf, u32)>,
}

impl MountPoints {
    /// Makes a directory and those above it, as far as they are missing.
    pub(crate) fn make(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> = directory.ancestors().take_while(|above| !above.exists()).collect();
        for above in missing.into_iter().rev() {
            match fs::create_dir(above) {
                Ok(()) => self.made.push(above.to_owned()),
                // Somebody else was faster, and it is theirs.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes directories below `root`, beside which nobody can put anything from then on.
    pub(crate) fn make_below(&mut self, root: &Path, names: &[String]) -> io::Result<()> {
        let mode = fs::metadata(root)?.permissions().mode() & 0o7777;
        // Whoever may make directories here without owning the place must live with its mode.
        if set_mode(root, mode | 0o700).is_ok() {
            self.closed = Some((root.to_owned(), mode));
        }
        for name in names {
            self.make(&root.join(name))?;
        }
        set_mode(root, 0o555).or(Ok(()))
    }

    /// Removes what was made and is empty, and opens what was closed.
    pub(crate) fn remove(self) {
        if let Some((directory, mode)) = &self.closed {
            set_mode(directory, mode | 0o700).unwrap_or_default();
        }
        for directory in self.made.iter().rev() {
            // Somebody may have put something there, or be about to mount there again.
            fs::remove_dir(directory).unwrap_or_default();
        }
        if let Some((directory, mode)) = self.closed {
            set_mode(&directory, mode).unwrap_or_default();
        }
    }
}

fn set_mode(directory: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let (mine, root) = (home.path().join("mine"), home.path().join("mine/a/root"));
        fs::create_dir(&mine).unwrap();
        set_mode(&mine, 0o750).unwrap();
        let mut points = MountPoints::default();
        points.make(&root).unwrap();
        points.make_below(&root, &["notes".to_owned()]).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o555);
        points.remove();
        assert_eq!(fs::read_dir(&mine).unwrap().count(), 0);

        let mut points = MountPoints::default();
        points.make(&mine).unwrap();
        points.make_below(&mine, &["notes".to_owned(), "team".to_owned()]).unwrap();
        fs::write(mine.join("notes/kept"), "").unwrap();
        points.remove();
        assert_eq!(fs::metadata(&mine).unwrap().permissions().mode() & 0o777, 0o750);
        assert!(mine.join("notes/kept").exists() && !mine.join("team").exists());
    }
}
