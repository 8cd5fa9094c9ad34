//! Finding things: lookups, attributes, listings.

use std::ffi::OsStr;
use std::num::NonZero;

use quipu_core::engine::ListQuery;
use quipu_core::model::{Access, Directory, Listing, Memory, MemoryPath, Timestamp, View};

use super::{Standing, Tree, Turn, gone};
use crate::error::TreeError;
use crate::nodes::{DirectoryNode, FileNode, Ino, ROOT, What};

/// What a file or directory looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub ino: Ino,
    /// What it is.
    pub kind: Kind,
    /// How long the text is.
    pub size_bytes: u64,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// What may be done with it.
    pub access: Access,
    /// Whether it is gone, and only those who have it open still see it.
    pub is_removed: bool,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// One line of a directory.
#[derive(Clone, Debug)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// Where the line after it begins.
    pub next: u64,
    /// What it looks like.
    pub attributes: Attributes,
}

/// How full the store is.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// How many bytes fit.
    pub size_bytes_max: u64,
    /// How many more bytes fit.
    pub size_bytes_free: u64,
    /// How many memories fit.
    pub memories_max: u64,
    /// How many more memories fit.
    pub memories_free: u64,
}

/// A directory that somebody is reading: its names as they were when the reading began.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    ino: Ino,
    lines: Vec<Line>,
    /// How many changes the tree had seen then.
    changes_count: u64,
}

#[derive(Clone, Debug)]
enum Line {
    /// Something that lives in the mount only, or a directory that is known already.
    Node(String, Ino),
    Memory(String, Box<Memory>),
    Directory(String),
}

impl Line {
    fn name(&self) -> &str {
        match self {
            Self::Node(name, _) | Self::Memory(name, _) | Self::Directory(name) => name,
        }
    }
}

/// How many lines are made ready at a time; more than a kernel takes at once.
const LINES_MAX: usize = 256;

impl Tree {
    /// Finds a name in a directory, for the kernel, which must forget it one day.
    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Attributes, TreeError> {
        let mut turn = self.turn()?;
        let ino = turn.find(parent, name.to_str().ok_or(TreeError::NotFound)?)?;
        let attributes = turn.attributes(ino)?;
        turn.state.nodes.get_mut(ino)?.lookups += 1;
        Ok(attributes)
    }

    /// Notes that the kernel was told about a node in a listing.
    pub fn told(&self, ino: Ino) {
        if let Ok(node) = self.any_turn().state.nodes.get_mut(ino) {
            node.lookups += 1;
        }
    }

    /// Notes that the kernel forgot about so many lookups of a node.
    pub fn forget(&self, ino: Ino, lookups: u64) {
        let mut turn = self.any_turn();
        if let Ok(node) = turn.state.nodes.get_mut(ino) {
            node.lookups = node.lookups.saturating_sub(lookups);
        }
        turn.state.nodes.drop_unused(ino);
    }

    /// Returns what a node looks like.
    pub fn attributes(&self, ino: Ino) -> Result<Attributes, TreeError> {
        self.turn()?.attributes(ino)
    }

    /// Begins to read a directory.
    pub fn open_directory(&self, ino: Ino) -> Result<u64, TreeError> {
        let mut turn = self.turn()?;
        turn.state.nodes.directory(ino)?;
        let handle = turn.new_handle();
        let open = OpenDirectory { ino, lines: Vec::new(), changes_count: 0 };
        turn.state.listings.insert(handle, open);
        turn.state.nodes.get_mut(ino)?.handles += 1;
        Ok(handle)
    }

    /// Returns lines of a directory from a place on; none at the end. Place 0 reads it anew.
    pub fn read_directory(&self, handle: u64, from: u64) -> Result<Vec<DirectoryEntry>, TreeError> {
        let mut turn = self.turn()?;
        let ino = turn.state.listings.get(&handle).ok_or(TreeError::BadHandle)?.ino;
        if from == 0 {
            let (lines, changes_count) = (turn.lines(ino)?, turn.state.changes_count);
            turn.state.listings.insert(handle, OpenDirectory { ino, lines, changes_count });
        }
        let skipped = usize::try_from(from).unwrap_or(usize::MAX);
        let open = turn.state.listings.get(&handle).ok_or(TreeError::BadHandle)?;
        let is_fresh = open.changes_count == turn.state.changes_count;
        let lines: Vec<_> = open.lines.iter().skip(skipped).take(LINES_MAX).cloned().collect();
        let mut entries = Vec::new();
        for (line, next) in lines.into_iter().zip(from + 1..) {
            let found = if is_fresh {
                turn.line_attributes(ino, &line)
            } else {
                turn.find(ino, line.name()).and_then(|ino| turn.attributes(ino))
            };
            // What went away since is not shown, but keeps its place.
            if let Some(attributes) = present(found)? {
                entries.push(DirectoryEntry { name: line.name().to_owned(), next, attributes });
            }
        }
        Ok(entries)
    }

    /// Ends the reading of a directory.
    pub fn release_directory(&self, handle: u64) {
        let mut turn = self.any_turn();
        if let Some(open) = turn.state.listings.remove(&handle) {
            turn.release_node(open.ino);
        }
    }

    /// Returns how full the store is.
    pub fn usage(&self) -> Result<Usage, TreeError> {
        let turn = self.turn()?;
        let usage = turn.engine().usage(turn.store())?;
        let limits = turn.engine().limits();
        Ok(Usage {
            size_bytes_max: limits.store_size_bytes_max,
            size_bytes_free: limits.store_size_bytes_max.saturating_sub(usage.size_bytes),
            memories_max: limits.memories_per_store_max,
            memories_free: limits.memories_per_store_max.saturating_sub(usage.memories_count),
        })
    }
}

fn present(found: Result<Attributes, TreeError>) -> Result<Option<Attributes>, TreeError> {
    match found {
        Ok(attributes) => Ok(Some(attributes)),
        Err(TreeError::NotFound | TreeError::Stale) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Turn<'_> {
    pub(super) fn new_handle(&mut self) -> u64 {
        let handle = self.state.handle_next;
        self.state.handle_next += 1;
        handle
    }

    pub(super) fn release_node(&mut self, ino: Ino) {
        if let Ok(node) = self.state.nodes.get_mut(ino) {
            node.handles = node.handles.saturating_sub(1);
        }
        self.state.nodes.drop_unused(ino);
    }

    /// Returns the node at a name, made if it is a memory or directory that nobody asked for yet.
    pub(super) fn find(&mut self, parent: Ino, name: &str) -> Result<Ino, TreeError> {
        self.state.nodes.directory(parent)?;
        let known = self.state.nodes.child(parent, name);
        if let Some(ino) = known.filter(|&ino| self.lives_in_mount_only(ino)) {
            return Ok(ino);
        }
        // Nothing is at a path that breaks a rule.
        let missing = |error: TreeError| error.instead_of(TreeError::Invalid, TreeError::NotFound);
        let path = self.state.nodes.child_path(parent, name).map_err(missing)?;
        let found = if self.is_parked(&path) { None } else { self.stored(&path)? };
        match found {
            Some(Listing::Memory(memory)) => self.file_node(parent, name, &memory),
            Some(Listing::Directory(_)) => self.directory_node(parent, name),
            None => match known {
                Some(ino) if self.state.nodes.directory(ino).is_ok_and(|node| node.kept) => Ok(ino),
                Some(ino) => {
                    self.state.nodes.detach(ino);
                    Err(TreeError::NotFound)
                }
                None => Err(TreeError::NotFound),
            },
        }
    }

    pub(super) fn lives_in_mount_only(&self, ino: Ino) -> bool {
        self.state.nodes.file(ino).is_ok_and(|file| file.memory.is_none())
    }

    /// Returns what the store has at a path.
    pub(super) fn stored(&self, path: &MemoryPath) -> Result<Option<Listing>, TreeError> {
        self.engine().entry(self.store(), path).map_err(gone)
    }

    fn file_node(&mut self, parent: Ino, name: &str, memory: &Memory) -> Result<Ino, TreeError> {
        let known = self.state.nodes.child(parent, name);
        let Some(file) = known.and_then(|ino| self.state.nodes.file_mut(ino).ok()) else {
            let what = What::File(FileNode::of(memory.id));
            return self.state.nodes.put(parent, name, what);
        };
        if file.memory != Some(memory.id) {
            file.memory = Some(memory.id);
            file.text = None;
            file.is_outdated = true;
        }
        known.ok_or(TreeError::Stale)
    }

    pub(super) fn directory_node(&mut self, parent: Ino, name: &str) -> Result<Ino, TreeError> {
        let known = self.state.nodes.child(parent, name);
        match known.filter(|&ino| self.state.nodes.directory(ino).is_ok()) {
            Some(ino) => Ok(ino),
            None => {
                let directory = DirectoryNode {
                    kept: false,
                    changed_at: self.now(),
                    children: std::collections::BTreeMap::new(),
                };
                self.state.nodes.put(parent, name, What::Directory(directory))
            }
        }
    }

    pub(super) fn attributes(&self, ino: Ino) -> Result<Attributes, TreeError> {
        let file = match &self.state.nodes.get(ino)?.what {
            What::Directory(directory) => {
                return Ok(self.shape(ino, Kind::Directory, 0, directory.changed_at));
            }
            What::File(file) => file,
        };
        if let Some(buffer) = &file.buffer {
            let size_bytes = u64::try_from(buffer.bytes.len()).unwrap_or(u64::MAX);
            return Ok(self.shape(ino, Kind::File, size_bytes, buffer.changed_at));
        }
        if let (None, Some(text)) = (&self.state.nodes.get(ino)?.place, &file.text) {
            return Ok(self.shape(ino, Kind::File, text.size_bytes(), self.now()));
        }
        let path = self.state.nodes.path(ino)?.ok_or(TreeError::Stale)?;
        match self.stored(&path)? {
            Some(Listing::Memory(memory)) => Ok(self.memory_shape(ino, &memory)),
            Some(Listing::Directory(_)) | None => Err(TreeError::Stale),
        }
    }

    fn memory_shape(&self, ino: Ino, memory: &Memory) -> Attributes {
        self.shape(ino, Kind::File, memory.size_bytes, memory.updated_at)
    }

    fn shape(&self, ino: Ino, kind: Kind, size_bytes: u64, changed_at: Timestamp) -> Attributes {
        let access = match self.state.standing {
            Standing::Open => self.tree.settings.access,
            Standing::Archived | Standing::Deleted => Access::ReadOnly,
        };
        let node = self.state.nodes.get(ino);
        let is_removed = ino != ROOT && node.is_ok_and(|node| node.place.is_none());
        Attributes { ino, kind, size_bytes, changed_at, access, is_removed }
    }

    /// Returns the names in a directory, in byte order.
    fn lines(&self, ino: Ino) -> Result<Vec<Line>, TreeError> {
        let path = if ino == ROOT { None } else { self.state.nodes.path(ino)? };
        let query = ListQuery {
            directory: path.as_ref().map_or_else(Directory::root, MemoryPath::as_directory),
            depth: Some(NonZero::<usize>::MIN),
            after: None,
            limit: usize::MAX,
            view: View::Basic,
        };
        let mut lines = Vec::new();
        let children = &self.state.nodes.directory(ino)?.children;
        for item in self.engine().list(self.store(), &query)?.items {
            let path = item.sort_key().trim_end_matches('/').to_owned();
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let hidden = match &item {
                Listing::Memory(memory) => self.is_parked(&memory.path),
                Listing::Directory(_) => false,
            };
            let in_mount = children.get(&name).is_some_and(|&ino| self.lives_in_mount_only(ino));
            if !hidden && !in_mount {
                lines.push(match item {
                    Listing::Memory(memory) => Line::Memory(name, Box::new(memory)),
                    Listing::Directory(_) => Line::Directory(name),
                });
            }
        }
        for (name, &child) in children {
            let is_kept = self.state.nodes.directory(child).is_ok_and(|node| node.kept);
            let is_listed = || lines.iter().any(|line| line.name() == name);
            if self.lives_in_mount_only(child) || (is_kept && !is_listed()) {
                lines.push(Line::Node(name.clone(), child));
            }
        }
        Ok(lines)
    }

    fn line_attributes(&mut self, parent: Ino, line: &Line) -> Result<Attributes, TreeError> {
        let ino = match line {
            Line::Node(_, ino) => *ino,
            Line::Directory(name) => self.directory_node(parent, name)?,
            Line::Memory(name, memory) => {
                let ino = self.file_node(parent, name, memory)?;
                if self.state.nodes.file(ino)?.buffer.is_none() {
                    return Ok(self.memory_shape(ino, memory));
                }
                ino
            }
        };
        self.attributes(ino)
    }
}
