//! Which paths are excluded from a sync: hidden ones, scratch files and those that `.gitignore`
//! files name.
//!
//! Exclusion works on both sides: an excluded file does not become a memory, and a memory at an
//! excluded path does not become a file. Otherwise a new line in `.gitignore` would look like the
//! deletion of all files that it matches.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::Gitignore;

use crate::names::{Making, NameRules};

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Directory,
}

/// The ignore rules of a folder.
pub(super) struct Rules<'a> {
    folder: PathBuf,
    names: &'a NameRules,
    /// The rules of each directory that was asked for, the nearest first.
    by_directory: RefCell<HashMap<String, Chain>>,
}

/// The `.gitignore` files that apply in a directory.
pub(super) type Chain = Rc<[Rc<Gitignore>]>;

impl<'a> Rules<'a> {
    pub(super) fn new(folder: &Path, names: &'a NameRules) -> Self {
        Self { folder: folder.to_owned(), names, by_directory: RefCell::default() }
    }

    /// Returns whether a path, such as `/notes/tea.md`, is excluded by its own name or by that of a
    /// directory above it.
    pub(super) fn exclude(&self, path: &str) -> bool {
        let ends = path.match_indices('/').skip(1).map(|(end, _)| end);
        let above = ends.filter_map(|end| path.get(..end));
        above.into_iter().any(|directory| self.exclude_here(directory, PathKind::Directory))
            || self.exclude_here(path, PathKind::File)
            || self.is_scratch(path)
    }

    /// Returns whether a file has the name of a scratch file.
    pub(super) fn is_scratch(&self, path: &str) -> bool {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        // How the file was created is unknown here, so only its name counts.
        self.names.is_scratch(name, Making::Openly)
    }

    /// Returns whether a path is hidden or ignored, given that no directory above it is.
    fn exclude_here(&self, path: &str, kind: PathKind) -> bool {
        let Some((above, _)) = path.rsplit_once('/') else { return false };
        self.exclude_in(&self.of(above), path, kind)
    }

    /// Returns the same, given the rules of the directory that the path is in.
    pub(super) fn exclude_in(&self, chain: &Chain, path: &str, kind: PathKind) -> bool {
        let Some((_, name)) = path.rsplit_once('/') else { return false };
        if name.starts_with('.') {
            return true;
        }
        if chain.is_empty() {
            return false;
        }
        let full = self.folder.join(path.trim_start_matches('/'));
        for rules in chain.iter() {
            match rules.matched(&full, kind == PathKind::Directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }

    /// Returns the rules of a directory, the nearest first.
    pub(super) fn of(&self, directory: &str) -> Chain {
        if let Some(known) = self.by_directory.borrow().get(directory) {
            return Rc::clone(known);
        }
        let above = directory.rsplit_once('/').map(|(above, _)| self.of(above));
        let file = self.folder.join(directory.trim_start_matches('/')).join(".gitignore");
        // Malformed rules are skipped, as git does.
        let own = file.is_file().then(|| Rc::new(Gitignore::new(file).0));
        let above = above.iter().flat_map(|above| above.iter().cloned());
        let chain: Chain = own.into_iter().chain(above).collect();
        self.by_directory.borrow_mut().insert(directory.to_owned(), Rc::clone(&chain));
        chain
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hidden_paths_are_excluded() {
        let folder = tempfile::tempdir().unwrap();
        let names = NameRules::default();
        let rules = Rules::new(folder.path(), &names);
        for path in ["/.a", "/.obsidian/x.md", "/a/.b/c"] {
            assert!(rules.exclude(path), "{path}");
        }
        for path in ["/a", "/a.b/c..d"] {
            assert!(!rules.exclude(path), "{path}");
        }
    }

    #[test]
    fn scratch_files_are_excluded() {
        let folder = tempfile::tempdir().unwrap();
        let names = NameRules { scratch: vec!["*.draft".to_owned()], ..NameRules::default() };
        let (rules, usual) = (Rules::new(folder.path(), &names), NameRules::default());
        assert!(rules.exclude("/a/b.draft"));
        assert!(!rules.exclude("/a/b.md~") && !rules.exclude("/a.draft/b.md"));
        assert!(Rules::new(folder.path(), &usual).exclude("/a/b.md~"));
    }

    #[test]
    fn gitignore_files_apply_to_their_directory_and_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sub/deep")).unwrap();
        fs::write(folder.path().join(".gitignore"), "*.log\nbuild/\n/top\n!keep.log\n").unwrap();
        fs::write(folder.path().join("sub/.gitignore"), "!a.log\nlocal\n").unwrap();
        let names = NameRules::default();
        let rules = Rules::new(folder.path(), &names);
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
