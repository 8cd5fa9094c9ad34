//! Listing directories.
//!
//! A program reads a long directory in parts and passes a cookie to say where to continue. Between two
//! parts anything may happen: other doors add and remove memories, the kernel drops its cache, or the
//! first part came out of that cache without any call to the tree. POSIX requires that a name which
//! exists throughout is listed exactly once all the same, and for good reason: a backup tool that
//! misses names deletes them elsewhere.
//!
//! So a cookie must mean the same at any time, without server state. Numbering the entries of a
//! snapshot is the tempting way, and it is wrong: the snapshot may be gone, and in the next one the
//! numbers belong to other names. Here the cookie of a name is a keyed hash of it, and names are
//! listed in hash order, as ext4 does.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZero;

use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, MemoryPath, View};

use super::lookup::Attributes;
use super::{Tree, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{Ino, ROOT};

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// The position to continue from after it.
    pub next: u64,
    /// Its attributes.
    pub attributes: Attributes,
}

/// An open directory.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    ino: Ino,
    /// The entries when reading began; `None` before and after.
    snapshot: Option<Snapshot>,
}

/// The entries of a directory at some moment, so that not every part of a listing reads all of them.
/// If anything has changed since, each entry is checked before it is listed.
#[derive(Debug)]
struct Snapshot {
    /// In the order of their positions.
    lines: Vec<Line>,
    /// The tree's count of changes at that moment.
    changes_count: u64,
}

#[derive(Clone, Debug)]
struct Line {
    position: u64,
    name: String,
    kind: Listed,
}

#[derive(Clone, Debug)]
enum Listed {
    /// A file or directory that exists in the mount only.
    Node(Ino),
    Memory(Box<Memory>),
    Directory,
}

/// How many entries are returned at a time; more than fit into one reply to the kernel.
const LINES_MAX: usize = 256;

/// Positions fit into a signed 64-bit integer, as `telldir` needs it. The smallest ones are left to
/// the caller.
const POSITION_MIN: u64 = 1 << 16;
const POSITION_MAX: u64 = i64::MAX.cast_unsigned();

impl Tree {
    /// Opens a directory.
    pub fn open_directory(&self, ino: Ino) -> Result<u64, TreeError> {
        let mut guard = self.lock()?;
        guard.state.nodes.directory(ino)?;
        let handle = guard.new_handle();
        guard.state.listings.insert(handle, OpenDirectory { ino, snapshot: None });
        guard.state.nodes.get_mut(ino)?.handles += 1;
        Ok(handle)
    }

    /// Returns the entries after a position, none at the end. Position 0 is the beginning; any other is
    /// the `next` of a [`DirectoryEntry`] of this directory, read with any handle.
    ///
    /// Whatever happens between two calls, a name that exists throughout is listed exactly once.
    pub fn read_directory(&self, handle: u64, from: u64) -> Result<Vec<DirectoryEntry>, TreeError> {
        let mut guard = self.lock()?;
        let open = guard.state.listings.get_mut(&handle).ok_or(TreeError::BadHandle)?;
        let ino = open.ino;
        let snapshot = match open.snapshot.take().filter(|_| from > 0) {
            Some(snapshot) => snapshot,
            None => guard.snapshot(ino)?,
        };
        let entries = guard.entries(ino, &snapshot, from)?;
        // A listing that has reached its end needs no snapshot.
        if !entries.is_empty()
            && let Some(open) = guard.state.listings.get_mut(&handle)
        {
            open.snapshot = Some(snapshot);
        }
        Ok(entries)
    }

    /// Releases an open directory.
    pub fn release_directory(&self, handle: u64) {
        let mut guard = self.lock_any();
        if let Some(open) = guard.state.listings.remove(&handle) {
            guard.release_node(open.ino);
        }
    }
}

fn present(found: Result<Attributes, TreeError>) -> Result<Option<Attributes>, TreeError> {
    match found {
        Ok(attributes) => Ok(Some(attributes)),
        Err(TreeError::NotFound | TreeError::Stale) => Ok(None),
        Err(error) => Err(error),
    }
}

impl TreeGuard<'_> {
    /// Returns the position of a name. The hash is keyed per mount, so that nobody can construct
    /// names that collide.
    fn position(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.state.listing_key, name).hash(&mut hasher);
        POSITION_MIN + hasher.finish() % (POSITION_MAX - POSITION_MIN)
    }

    /// Returns the first entries after a position that still exist.
    fn entries(
        &mut self,
        ino: Ino,
        snapshot: &Snapshot,
        from: u64,
    ) -> Result<Vec<DirectoryEntry>, TreeError> {
        let is_fresh = snapshot.changes_count == self.state.changes_count;
        let first = snapshot.lines.partition_point(|line| line.position <= from);
        let mut rest = snapshot.lines.iter().skip(first).peekable();
        let mut entries = Vec::new();
        while let Some(line) = rest.next() {
            if entries.len() == LINES_MAX {
                break;
            }
            let found = if is_fresh {
                self.line_attributes(ino, line)
            } else {
                self.find(ino, &line.name).and_then(|ino| self.attributes(ino))
            };
            // Among 20,000 names, two collide in one of 10¹¹ directories. A reader that stops between
            // them gets both again: listing a name twice does less harm than missing it.
            let collides = rest.peek().is_some_and(|next| next.position == line.position);
            let next = line.position - u64::from(collides);
            if let Some(attributes) = present(found)? {
                entries.push(DirectoryEntry { name: line.name.clone(), next, attributes });
            }
        }
        Ok(entries)
    }

    /// Reads all entries of a directory.
    fn snapshot(&self, ino: Ino) -> Result<Snapshot, TreeError> {
        let path = if ino == ROOT { None } else { self.state.nodes.path(ino)? };
        let query = ListQuery {
            directory: path.as_ref().map_or_else(Directory::root, MemoryPath::as_directory),
            depth: Some(NonZero::<usize>::MIN),
            after: None,
            limit: usize::MAX,
            view: View::Basic,
        };
        let children = &self.state.nodes.directory(ino)?.children;
        let is_in_mount =
            |name: &str| children.get(name).is_some_and(|&child| self.lives_in_mount_only(child));
        let line =
            |name: &str, kind| Line { position: self.position(name), name: name.to_owned(), kind };
        let mut lines = Vec::new();
        let mut directories = HashSet::new();
        for item in self.engine().list(self.store(), &query)?.items {
            let path = item.sort_key().trim_end_matches('/').to_owned();
            let name = path.rsplit('/').next().unwrap_or_default();
            if is_in_mount(name) {
                continue;
            }
            match item {
                Listing::Memory(memory) if self.is_parked(&memory.path) => {}
                Listing::Memory(memory) => lines.push(line(name, Listed::Memory(Box::new(memory)))),
                Listing::Directory(_) => {
                    lines.push(line(name, Listed::Directory));
                    directories.insert(name.to_owned());
                }
            }
        }
        for (name, &child) in children {
            let is_kept = self.state.nodes.directory(child).is_ok_and(|node| node.kept);
            if self.lives_in_mount_only(child) || (is_kept && !directories.contains(name)) {
                lines.push(line(name, Listed::Node(child)));
            }
        }
        lines.sort_unstable_by(|one, other| {
            (one.position, &one.name).cmp(&(other.position, &other.name))
        });
        Ok(Snapshot { lines, changes_count: self.state.changes_count })
    }

    fn line_attributes(&mut self, parent: Ino, line: &Line) -> Result<Attributes, TreeError> {
        let ino = match &line.kind {
            Listed::Node(ino) => *ino,
            Listed::Directory => self.directory_node(parent, &line.name)?,
            Listed::Memory(memory) => {
                let ino = self.file_node(parent, &line.name, memory)?;
                if self.state.nodes.file(ino)?.buffer.is_none() {
                    return Ok(self.memory_shape(ino, memory));
                }
                ino
            }
        };
        self.attributes(ino)
    }
}
