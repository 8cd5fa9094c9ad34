//! Creates the directories to mount on and removes them afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Directories that were created as mount points, to be removed after unmounting.
///
/// A directory that stays behind is dangerous: a program that keeps writing to `/mnt/memory/notes`
/// after the unmount would believe that its notes are stored.
#[derive(Debug, Default)]
pub(crate) struct MountPoints {
    /// The outermost first.
    made: Vec<PathBuf>,
    /// A directory whose mode was changed, with the mode that it had.
    closed: Option<(PathBuf, u32)>,
}

impl MountPoints {
    /// Creates a directory and its missing parents.
    pub(crate) fn make(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> = directory.ancestors().take_while(|above| !above.exists()).collect();
        for above in missing.into_iter().rev() {
            match fs::create_dir(above) {
                Ok(()) => self.made.push(above.to_owned()),
                // Another process created it first, so it is not ours to remove.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Creates directories below `root` and makes `root` read-only, so that nothing can be created
    /// beside them.
    pub(crate) fn make_below(&mut self, root: &Path, names: &[String]) -> io::Result<()> {
        let mode = fs::metadata(root)?.permissions().mode() & 0o7777;
        // Without owning `root`, its mode cannot be changed; then it stays as it is.
        if set_mode(root, mode | 0o700).is_ok() {
            self.closed = Some((root.to_owned(), mode));
        }
        for name in names {
            self.make(&root.join(name))?;
        }
        set_mode(root, 0o555).or(Ok(()))
    }

    /// Removes created directories that are empty, and restores the mode of `root`.
    pub(crate) fn remove(self) {
        if let Some((directory, mode)) = &self.closed {
            set_mode(directory, mode | 0o700).unwrap_or_default();
        }
        for directory in self.made.iter().rev() {
            // It may not be empty, or be a mount point again already.
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
