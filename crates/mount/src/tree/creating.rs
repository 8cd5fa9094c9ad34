//! Creating and removing files and directories.

use std::ffi::OsStr;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::MemoryPath;

use super::lookup::{Attributes, Kind};
use super::opening::{OpenMode, Opened, Position, Start, Writing};
use super::{Tree, TreeGuard, valid_name};
use crate::error::TreeError;
use crate::names::Making;
use crate::nodes::{Buffer, FileNode, Ino, NodeKind, ProcessId};

/// How a file is created.
#[derive(Clone, Copy, Debug)]
pub struct NewFile {
    /// What it is opened for.
    pub mode: OpenMode,
    /// Whether it is created as temporary files are.
    pub making: Making,
    /// Whether an existing file is an error (`O_EXCL`).
    pub is_exclusive: bool,
    /// Which process creates it.
    pub creator: ProcessId,
}

/// How long a file counts as just created.
const JUST_CREATED: Duration = Duration::from_secs(10);

impl Tree {
    /// Creates and opens a file. It becomes a memory when it is closed.
    pub fn create(
        &self,
        parent: Ino,
        name: &OsStr,
        new: NewFile,
    ) -> Result<(Attributes, Opened), TreeError> {
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        let name = valid_name(name)?;
        guard.unless_overtaken(|guard| guard.create(parent, name, new))
    }

    /// Creates an empty memory without opening it (`mknod`).
    pub fn make_file(&self, parent: Ino, name: &OsStr) -> Result<Attributes, TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        let name = valid_name(name)?;
        guard.require_free(parent, name)?;
        let ino = guard.new_file(parent, name, Making::Openly)?;
        // The kernel's reference, before a memory that nobody references is dropped with its claim.
        guard.state.nodes.get_mut(ino)?.lookups += 1;
        if let Err(error) = guard.store_buffer_unlocked(ino, ProcessId::UNKNOWN) {
            guard.state.nodes.get_mut(ino)?.lookups -= 1;
            guard.state.nodes.detach(ino);
            return Err(error);
        }
        guard.attributes(ino)
    }

    /// Creates a directory. It exists in the mount only until it holds a memory.
    pub fn make_directory(&self, parent: Ino, name: &OsStr) -> Result<Attributes, TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        let name = valid_name(name)?;
        guard.require_free(parent, name)?;
        let path = guard.state.nodes.child_path(parent, name)?;
        guard.settle_below(&path)?;
        let ino = guard.directory_node(parent, name)?;
        guard.state.nodes.directory_mut(ino)?.kept = true;
        guard.entries_changed(parent);
        guard.state.nodes.get_mut(ino)?.lookups += 1;
        guard.attributes(ino)
    }

    /// Accepts a change of mode, owner or times without effect: memories have none of them.
    pub fn accept_attributes(&self, ino: Ino) -> Result<(), TreeError> {
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        guard.state.nodes.get(ino).map(|_| ())
    }

    /// Removes a file. Open handles stay usable, but nothing written through them is stored.
    pub fn remove_file(&self, parent: Ino, name: &OsStr) -> Result<(), TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        let name = name.to_str().ok_or(TreeError::NotFound)?;
        guard.wait_until_stored_at(&[(parent, name)]);
        let ino = guard.find(parent, name)?;
        if guard.state.nodes.file(ino)?.is_report {
            // Removing the report acknowledges it.
            guard.state.problems.clear();
        }
        if guard.is_backup_of_parked(ino) {
            guard.resuming(ino, |guard| guard.remove(ino))?;
        } else {
            guard.keep_readable(ino);
            let claim =
                (Some(ino), guard.state.nodes.file(ino)?.memory, guard.state.nodes.path(ino)?);
            guard.claiming(&[claim], |guard| guard.remove(ino))?;
        }
        guard.keep_if_empty(parent)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, parent: Ino, name: &OsStr) -> Result<(), TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        let name = name.to_str().ok_or(TreeError::NotFound)?;
        guard.wait_until_stored_at(&[(parent, name)]);
        let ino = guard.find(parent, name)?;
        guard.state.nodes.directory(ino)?;
        guard.require_empty(ino)?;
        guard.state.nodes.detach(ino);
        guard.keep_if_empty(parent)
    }
}

impl TreeGuard<'_> {
    fn create(
        &mut self,
        parent: Ino,
        name: &str,
        new: NewFile,
    ) -> Result<(Attributes, Opened), TreeError> {
        let (ino, mode) = match self.find(parent, name) {
            Ok(_) if new.is_exclusive => return Err(TreeError::Exists),
            Ok(ino) => (ino, new.mode),
            Err(TreeError::NotFound) => {
                // Closing the handle creates the memory, even if it is read-only.
                let mode = match new.mode {
                    OpenMode::Read => OpenMode::Write(Writing {
                        start: Start::Kept,
                        position: Position::Anywhere,
                    }),
                    OpenMode::Write(_) => new.mode,
                };
                (self.new_file(parent, name, new.making)?, mode)
            }
            Err(error) => return Err(error),
        };
        let opened = self.open(ino, mode, new.creator)?;
        if let Ok(buffer) = self.state.nodes.buffer_mut(ino) {
            buffer.writers.push(new.creator);
        }
        self.state.nodes.get_mut(ino)?.lookups += 1;
        Ok((self.attributes(ino)?, opened))
    }

    fn require_free(&mut self, parent: Ino, name: &str) -> Result<(), TreeError> {
        match self.find(parent, name) {
            Ok(_) => Err(TreeError::Exists),
            Err(TreeError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn new_file(&mut self, parent: Ino, name: &str, making: Making) -> Result<Ino, TreeError> {
        self.state.nodes.child_path(parent, name)?;
        let is_scratch = self.names().is_scratch(name, making);
        if !is_scratch {
            let limit = self.engine().limits().memories_per_store_max;
            if !self.is_usage(|usage| usage.memories_count < limit)? {
                return Err(TreeError::StoreFull);
            }
        }
        let file = FileNode { is_scratch, ..FileNode::new(Buffer::new(self.now())) };
        let ino = self.state.nodes.put(parent, name, NodeKind::File(file))?;
        self.entries_changed(parent);
        Ok(ino)
    }

    pub(super) fn note_creator(&mut self, ino: Ino, process: ProcessId) -> Result<(), TreeError> {
        let until = self.now().plus(JUST_CREATED);
        self.state.nodes.file_mut(ino)?.creator = Some((process, until));
        Ok(())
    }

    /// Notes that the entries of a directory have changed.
    pub(super) fn entries_changed(&mut self, directory: Ino) {
        self.state.changes_count += 1;
        let now = self.now();
        if let Ok(directory) = self.state.nodes.directory_mut(directory) {
            directory.changed_at = now;
        }
    }

    /// Deletes the memory of a file, and detaches the file.
    pub(super) fn remove(&mut self, ino: Ino) -> Result<(), TreeError> {
        if let Some(id) = self.state.nodes.file(ino)?.memory {
            self.keep_readable(ino);
            let deleted = self.durably(|tree| {
                let (actor, store) = (&tree.settings.actor, tree.settings.store);
                tree.engine.delete(actor, store, id, Precondition::None)
            });
            match deleted {
                Ok(version) => {
                    self.state.own.insert(version.id);
                }
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            self.remove_predecessors(id);
        }
        self.orphan(ino);
        Ok(())
    }

    /// Detaches a file that is no longer a memory.
    pub(super) fn orphan(&mut self, ino: Ino) {
        // Fails for directories, which have no memory.
        self.state.nodes.set_memory(ino, None).unwrap_or_default();
        self.state.nodes.detach(ino);
    }

    /// Loads the text of a file that is open, so that it stays readable after its removal.
    pub(super) fn keep_readable(&mut self, ino: Ino) {
        if self.state.nodes.get(ino).is_ok_and(|node| node.handles > 0) {
            // Another door may have deleted it already; then there is nothing to keep.
            self.load_buffer(ino).unwrap_or_default();
        }
    }

    /// Keeps a directory that has become empty, as any file system does. The store has no empty
    /// directories.
    pub(super) fn keep_if_empty(&mut self, directory: Ino) -> Result<(), TreeError> {
        self.entries_changed(directory);
        if let Ok(Some(path)) = self.state.nodes.path(directory)
            && self.stored(&path)?.is_none()
        {
            self.state.nodes.directory_mut(directory)?.kept = true;
        }
        Ok(())
    }

    /// Fails unless a directory is empty.
    pub(super) fn require_empty(&mut self, ino: Ino) -> Result<(), TreeError> {
        let path = self.state.nodes.path(ino)?.ok_or(TreeError::NotPermitted)?;
        self.settle_below(&path)?;
        let holds = |child: &Ino| {
            self.lives_in_mount_only(*child)
                || self.state.nodes.directory(*child).is_ok_and(|directory| directory.kept)
        };
        let in_mount = self.state.nodes.directory(ino)?.children.values().any(holds);
        if in_mount || self.holds_memories(&path)? {
            return Err(TreeError::NotEmpty);
        }
        Ok(())
    }

    fn holds_memories(&self, path: &MemoryPath) -> Result<bool, TreeError> {
        Ok(self.stored(path)?.is_some())
    }

    /// Returns the kind of a node.
    pub(super) fn kind(&self, ino: Ino) -> Result<Kind, TreeError> {
        Ok(match self.state.nodes.get(ino)?.kind {
            NodeKind::Directory(_) => Kind::Directory,
            NodeKind::File(_) => Kind::File,
        })
    }
}
