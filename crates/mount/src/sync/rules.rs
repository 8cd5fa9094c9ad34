//! Which paths take no part in a sync: hidden ones, and those that `.gitignore` files name.
//!
//! A path that takes no part is left alone on both sides: such a file does not become a memory, and
//! such a memory does not become a file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::Gitignore;

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Directory,
}

/// The ignore rules of a folder.
pub(super) struct Rules {
    folder: PathBuf,
    /// The rules of each directory that was asked for; `None` if it has none.
    by_directory: RefCell<HashMap<String, Option<Rc<Gitignore>>>>,
}

impl Rules {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), by_directory: RefCell::default() }
    }

    /// Tells whether a path, such as `/notes/tea.md`, takes no part, by its own name or by that of
    /// a directory above it.
    pub(super) fn exclude(&self, path: &str) -> bool {
        let ends = path.match_indices('/').skip(1).map(|(end, _)| end);
        let above = ends.filter_map(|end| path.get(..end));
        above.into_iter().any(|directory| self.exclude_here(directory, PathKind::Directory))
            || self.exclude_here(path, PathKind::File)
    }

    /// Tells the same of a path of which every directory above takes part.
    pub(super) fn exclude_here(&self, path: &str, kind: PathKind) -> bool {
        let Some((mut above, name)) = path.rsplit_once('/') else { return false };
        if name.starts_with('.') {
            return true;
        }
        let full = self.folder.join(path.trim_start_matches('/'));
        loop {
            if let Some(rules) = self.of(above) {
                match rules.matched(&full, kind == PathKind::Directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            match above.rsplit_once('/') {
                Some((higher, _)) => above = higher,
                None => return false,
            }
        }
    }

    fn of(&self, directory: &str) -> Option<Rc<Gitignore>> {
        if let Some(known) = self.by_directory.borrow().get(directory) {
            return known.clone();
        }
        let file = self.folder.join(directory.trim_start_matches('/')).join(".gitignore");
        // A rule that cannot be understood is left out, as git does.
        let rules = file.is_file().then(|| Rc::new(Gitignore::new(file).0));
        self.by_directory.borrow_mut().insert(directory.to_owned(), rules.clone());
        rules
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hidden_paths_take_no_part() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Rules::new(folder.path());
        for path in ["/.a", "/.obsidian/x.md", "/a/.b/c"] {
            assert!(rules.exclude(path), "{path}");
        }
        for path in ["/a", "/a.b/c..d"] {
            assert!(!rules.exclude(path), "{path}");
        }
    }

    #[test]
    fn gitignore_files_hold_in_their_directory_and_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub/deep")).unwrap();
        fs::write(folder.path().join(".gitignore"), "*.log\nbuild/\n/top\n!keep.log\n").unwrap();
        fs::write(folder.path().join("sub/.gitignore"), "!a.log\nlocal\n").unwrap();
        let rules = Rules::new(folder.path());
        let excluded =
            ["/a.log", "/x/a.log", "/build/x", "/sub/build/y/z", "/top", "/sub/deep/local"];
        for path in excluded {
            assert!(rules.exclude(path), "{path}");
        }
        for path in ["/keep.log", "/sub/a.log", "/build", "/sub/top", "/local"] {
            assert!(!rules.exclude(path), "{path}");
        }
    }
}
