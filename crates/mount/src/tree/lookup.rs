//! Finding things: lookups and attributes.

use std::ffi::OsStr;

use quipu_core::model::{Access, Listing, Memory, MemoryPath, Timestamp};

use super::{StoreStatus, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{DirectoryNode, FileNode, Ino, NodeKind, ROOT};

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

impl Tree {
    /// Finds a name in a directory, for the kernel, which must forget it one day.
    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Attributes, TreeError> {
        let mut guard = self.lock_fresh()?;
        let ino = guard.find(parent, name.to_str().ok_or(TreeError::NotFound)?)?;
        let attributes = guard.attributes(ino)?;
        guard.state.nodes.get_mut(ino)?.lookups += 1;
        Ok(attributes)
    }

    /// Notes that the kernel was told about a node in a listing.
    pub fn count_lookup(&self, ino: Ino) {
        if let Ok(node) = self.lock_any().state.nodes.get_mut(ino) {
            node.lookups += 1;
        }
    }

    /// Notes that the kernel forgot about so many lookups of a node.
    pub fn forget(&self, ino: Ino, lookups: u64) {
        let mut guard = self.lock_any();
        if let Ok(node) = guard.state.nodes.get_mut(ino) {
            node.lookups = node.lookups.saturating_sub(lookups);
        }
        guard.state.nodes.drop_unused(ino);
    }

    /// Returns what a node looks like.
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
                // Whoever removes or moves it takes it out of the tree.
                Some(ino) if self.is_claimed(ino) => Err(TreeError::NotFound),
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
        Attributes { ino, kind, size_bytes, changed_at, access, is_removed }
    }
}
