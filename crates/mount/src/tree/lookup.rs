//! Lookups and attributes.

use std::ffi::OsStr;

use quipu_core::model::{Access, Listing, Memory, MemoryPath, Timestamp};

use super::problems::DIRECTORY;
use super::{StoreStatus, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{DirectoryNode, FileNode, Ino, NodeKind, ROOT};

/// The attributes of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its inode number.
    pub ino: Ino,
    /// Whether it is a file or a directory.
    pub kind: Kind,
    /// The size of its text.
    pub size_bytes: u64,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// Whether it can be written.
    pub access: Access,
    /// Whether it was removed and is only visible through open handles.
    pub is_removed: bool,
    /// Whether others are changing it, so that nothing of this is to be cached.
    pub is_volatile: bool,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// How full the store is, for `statfs`.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Its capacity in bytes.
    pub size_bytes_max: u64,
    /// Free bytes.
    pub size_bytes_free: u64,
    /// Its capacity in memories.
    pub memories_max: u64,
    /// Free memories.
    pub memories_free: u64,
}

impl Tree {
    /// Looks up a name in a directory and takes a reference, which [`Tree::forget`] returns.
    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Attributes, TreeError> {
        let name = name.to_str().ok_or(TreeError::NotFound)?;
        let mut guard = self.lock_fresh_for(parent, name)?;
        guard.unless_overtaken(|guard| {
            let ino = guard.find(parent, name)?;
            let attributes = guard.attributes(ino)?;
            guard.state.nodes.get_mut(ino)?.lookups += 1;
            Ok(attributes)
        })
    }

    /// Returns whether there is something at a name.
    pub(crate) fn has(&self, parent: Ino, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        self.lock_fresh_for(parent, name).is_ok_and(|mut guard| guard.find(parent, name).is_ok())
    }

    /// Returns whether a directory is the one of the mount's own files.
    pub(crate) fn is_own_directory(&self, ino: Ino) -> bool {
        self.lock_any().state.nodes.child(ROOT, DIRECTORY) == Some(ino)
    }

    /// Takes a reference for a node that the kernel got with a listing.
    pub fn count_lookup(&self, ino: Ino) {
        if let Ok(node) = self.lock_any().state.nodes.get_mut(ino) {
            node.lookups += 1;
        }
    }

    /// Returns `lookups` references of a node.
    pub fn forget(&self, ino: Ino, lookups: u64) {
        let mut guard = self.lock_any();
        if let Ok(node) = guard.state.nodes.get_mut(ino) {
            node.lookups = node.lookups.saturating_sub(lookups);
        }
        guard.state.nodes.drop_unused(ino);
    }

    /// Returns the attributes of a node.
    pub fn attributes(&self, ino: Ino) -> Result<Attributes, TreeError> {
        self.lock_fresh()?.attributes(ino)
    }

    /// Returns how full the store is.
    pub fn usage(&self) -> Result<Usage, TreeError> {
        let guard = self.lock()?;
        let usage = guard.engine().usage(guard.store())?;
        let limits = guard.engine().limits();
        Ok(Usage {
            size_bytes_max: limits.store_size_bytes_max,
            size_bytes_free: limits.store_size_bytes_max.saturating_sub(usage.size_bytes),
            memories_max: limits.memories_per_store_max,
            memories_free: limits.memories_per_store_max.saturating_sub(usage.memories_count),
        })
    }
}

impl TreeGuard<'_> {
    pub(super) fn new_handle(&mut self) -> u64 {
        let handle = self.state.handle_next;
        self.state.handle_next += 1;
        handle
    }

    pub(super) fn release_node(&mut self, ino: Ino) {
        if let Ok(node) = self.state.nodes.get_mut(ino) {
            node.handles = node.handles.saturating_sub(1);
            if let (0, NodeKind::File(file)) = (node.handles, &mut node.kind) {
                file.text = None;
            }
        }
        self.state.nodes.drop_unused(ino);
    }

    /// Returns the node at a name, created if the kernel has not looked it up before.
    pub(super) fn find(&mut self, parent: Ino, name: &str) -> Result<Ino, TreeError> {
        self.state.nodes.directory(parent)?;
        let known = self.state.nodes.child(parent, name);
        if let Some(ino) = known.filter(|&ino| self.lives_in_mount_only(ino)) {
            return Ok(ino);
        }
        if known.is_none() && self.state.nodes.is_absent(parent, name) {
            return Err(TreeError::NotFound);
        }
        // No memory has an invalid path.
        let missing = |error: TreeError| error.instead_of(TreeError::Invalid, TreeError::NotFound);
        let path = self.state.nodes.child_path(parent, name).map_err(missing)?;
        let found = if self.is_parked(&path) { None } else { self.stored(&path)? };
        match found {
            Some(Listing::Memory(memory)) => self.file_node(parent, name, &memory),
            Some(Listing::Directory(_)) => self.directory_node(parent, name),
            None => match known {
                Some(ino) if self.state.nodes.directory(ino).is_ok_and(|node| node.kept) => Ok(ino),
                // The call in flight that removes or moves it detaches it.
                Some(ino) if self.is_claimed(ino) => Err(TreeError::NotFound),
                Some(ino) => {
                    self.state.nodes.detach_replaced(ino);
                    Err(TreeError::NotFound)
                }
                None => {
                    self.note_absent(parent, name);
                    Err(TreeError::NotFound)
                }
            },
        }
    }

    /// Remembers that the store has nothing at a name, as of the position in the feed.
    pub(super) fn note_absent(&mut self, parent: Ino, name: &str) {
        // Parked memories are still at their old names, and come back there if the store refuses the move.
        if self.state.parked.is_empty() {
            self.state.nodes.note_absent(parent, name);
        }
    }

    pub(super) fn lives_in_mount_only(&self, ino: Ino) -> bool {
        self.state.nodes.file(ino).is_ok_and(|file| file.memory.is_none())
    }

    /// Returns the memory or directory at a path of the store.
    pub(super) fn stored(&self, path: &MemoryPath) -> Result<Option<Listing>, TreeError> {
        self.engine().entry(self.store(), path).map_err(gone)
    }

    pub(super) fn file_node(
        &mut self,
        parent: Ino,
        name: &str,
        memory: &Memory,
    ) -> Result<Ino, TreeError> {
        let known = self.state.nodes.child(parent, name);
        let Some(ino) = known.filter(|&ino| self.state.nodes.file(ino).is_ok()) else {
            return self.state.nodes.put(parent, name, NodeKind::File(FileNode::of(memory)));
        };
        if self.state.nodes.file(ino)?.memory != Some(memory.id) {
            self.state.nodes.set_memory(ino, Some(memory.id))?;
            let file = self.state.nodes.file_mut(ino)?;
            file.text = None;
            file.version = Some(memory.version);
            self.mark_outdated(ino);
        }
        Ok(ino)
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
                self.state.nodes.put(parent, name, NodeKind::Directory(directory))
            }
        }
    }

    pub(super) fn attributes(&self, ino: Ino) -> Result<Attributes, TreeError> {
        let file = match &self.state.nodes.get(ino)?.kind {
            NodeKind::Directory(directory) => {
                return Ok(self.shape(ino, Kind::Directory, 0, directory.changed_at));
            }
            NodeKind::File(file) => file,
        };
        if let Some(buffer) = &file.buffer {
            buffer.is_shown.set(true);
            let size_bytes = u64::try_from(buffer.bytes.len()).unwrap_or(u64::MAX);
            return Ok(self.shape(ino, Kind::File, size_bytes, buffer.changed_at));
        }
        if let (None, Some(text)) = (&self.state.nodes.get(ino)?.place, &file.text) {
            return Ok(self.shape(ino, Kind::File, text.size_bytes(), self.now()));
        }
        let path = self.last_path(ino)?;
        match self.stored(&path)? {
            Some(Listing::Memory(memory)) => Ok(self.memory_shape(ino, &memory)),
            Some(Listing::Directory(_)) | None => Err(TreeError::Stale),
        }
    }

    /// Returns the path of a node, or the one that it had when it was replaced: whoever opens it gets the
    /// file that is there now.
    pub(super) fn last_path(&self, ino: Ino) -> Result<MemoryPath, TreeError> {
        match &self.state.nodes.get(ino)?.left {
            Some((parent, name)) if self.state.nodes.get(ino)?.place.is_none() => {
                self.state.nodes.child_path(*parent, name)
            }
            Some(_) | None => self.state.nodes.path(ino)?.ok_or(TreeError::Stale),
        }
    }

    pub(super) fn memory_shape(&self, ino: Ino, memory: &Memory) -> Attributes {
        self.shape(ino, Kind::File, memory.size_bytes, memory.updated_at)
    }

    fn shape(&self, ino: Ino, kind: Kind, size_bytes: u64, changed_at: Timestamp) -> Attributes {
        let is_report = self.state.nodes.file(ino).is_ok_and(|file| file.is_report);
        let access = match self.state.status {
            StoreStatus::Open if !is_report => self.tree.settings.access,
            StoreStatus::Open | StoreStatus::Archived | StoreStatus::Deleted => Access::ReadOnly,
        };
        let node = self.state.nodes.get(ino);
        let is_removed = ino != ROOT && node.is_ok_and(|node| node.place.is_none());
        // What replaced it is at its place, and changes of that invalidate another inode.
        let is_volatile = is_removed
            || kind == Kind::File && (self.is_claimed(ino) || self.has_changed_recently(ino));
        Attributes { ino, kind, size_bytes, changed_at, access, is_removed, is_volatile }
    }
}
