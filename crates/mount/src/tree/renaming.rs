//! Renames, and saving by rename.
//!
//! Editors save by writing a new file and renaming it over the old one, or by moving the old one
//! away first. In both cases the memory continues: the new text is its next version. Treating
//! such a rename as a deletion and a creation would cut the history of the memory at every save.

use std::ffi::OsStr;

use quipu_core::engine::{MemoryUpdate, Precondition, Survivor, Written};
use quipu_core::model::{Content, MemoryId, MemoryPath, VersionId, View};
use quipu_core::{Error, ErrorKind};

use super::lookup::Kind;
use super::problems::{DIRECTORY, ProblemKind};
use super::{Invalidation, Tree, TreeGuard, valid_name};
use crate::error::TreeError;
use crate::names::Making;
use crate::nodes::{BufferState, Extent, Ino, ProcessId, ROOT};
use crate::process::are_relatives;

/// What a rename does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Replaces it.
    Yes,
    /// Fails if it exists (`RENAME_NOREPLACE`).
    No,
}

/// The target of a rename.
pub(super) struct Destination<'n> {
    pub(super) parent: Ino,
    pub(super) name: &'n str,
    pub(super) path: MemoryPath,
    /// The node that is there now.
    pub(super) node: Option<Ino>,
    /// The memory that is there, or is parked from there.
    memory: Option<MemoryId>,
}

/// A memory that is ready to replace another one.
struct Prepared {
    /// Its text before the changes of others were merged into it, if there were any.
    ours: Option<Content>,
    /// The text of the other one that it was merged with, or replaces.
    theirs: Content,
    /// The version of the other one that could not be merged.
    overridden: Option<VersionId>,
}

/// How a rename ended that no rule of file systems forbids.
enum Attempt {
    Done,
    /// Another door has created, moved or deleted what it is about.
    Outdated,
}

/// How often a rename is tried. Each attempt fails only if another door changes one of the two names
/// within the few milliseconds that it takes.
const ATTEMPTS_MAX: usize = 10;

impl Tree {
    /// Renames a file or directory on behalf of a process.
    ///
    /// What another door does to the target meanwhile is no error: POSIX orders it before or after the
    /// rename, and a program that does not ask for `RENAME_NOREPLACE` does not expect `EEXIST`.
    pub fn rename(
        &self,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        overwrite: Overwrite,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let name = valid_name(to.1)?;
        let from_name = from.1.to_str().ok_or(TreeError::NotFound)?;
        for _ in 0..ATTEMPTS_MAX {
            // Renames of directories and of parked files write with the lock held.
            if self.is_directory((from.0, from_name)) {
                self.wait_for_storage();
            } else {
                self.wait_for_storage_if_parked();
            }
            let mut guard = self.lock_fresh()?;
            guard.require_writable()?;
            match guard.rename((from.0, from_name), (to.0, name), overwrite, process)? {
                Attempt::Done => return Ok(()),
                Attempt::Outdated => {}
            }
        }
        Err(TreeError::Busy)
    }

    fn is_directory(&self, (parent, name): (Ino, &str)) -> bool {
        let guard = self.lock_any();
        let found = guard.state.nodes.child(parent, name);
        found.is_some_and(|ino| guard.state.nodes.directory(ino).is_ok())
    }
}

impl TreeGuard<'_> {
    fn rename(
        &mut self,
        from: (Ino, &str),
        to: (Ino, &str),
        overwrite: Overwrite,
        process: ProcessId,
    ) -> Result<Attempt, TreeError> {
        self.wait_until_stored_at(&[from, to]);
        let ino = self.find(from.0, from.1)?;
        let path = self.state.nodes.child_path(to.0, to.1)?;
        let node = match self.find(to.0, to.1) {
            Ok(node) => Some(node),
            Err(TreeError::NotFound) => None,
            Err(error) => return Err(error),
        };
        if node == Some(ino) {
            return Ok(Attempt::Done);
        }
        if node.is_some() && overwrite == Overwrite::No {
            return Err(TreeError::Exists);
        }
        self.refuse_report(Some(ino))?;
        self.refuse_report(node)?;
        if from.0 == ROOT && from.1 == DIRECTORY && self.kind(ino)? == Kind::Directory {
            // It may hold the report, which belongs to the mount.
            return Err(TreeError::ReadOnly);
        }
        let moved = match (self.kind(ino)?, node.map(|node| self.kind(node)).transpose()?) {
            (Kind::Directory, Some(Kind::File)) => return Err(TreeError::NotDirectory),
            (Kind::File, Some(Kind::Directory)) => return Err(TreeError::IsDirectory),
            (Kind::Directory, _) => self.move_directory(ino, (to.0, to.1, &path), node),
            (Kind::File, _) => {
                let memory = self.memory_at(node, &path);
                let to = Destination { parent: to.0, name: to.1, path, node, memory };
                self.move_file_unlocked(ino, &to, process)
            }
        };
        match moved {
            // Both names were as they should be, so one of them has changed since.
            Err(TreeError::Exists | TreeError::NotFound) => return Ok(Attempt::Outdated),
            moved => moved?,
        }
        self.entries_changed(to.0);
        self.keep_if_empty(from.0)?;
        Ok(Attempt::Done)
    }

    fn memory_at(&self, node: Option<Ino>, path: &MemoryPath) -> Option<MemoryId> {
        let memory = node.and_then(|node| self.state.nodes.file(node).ok()?.memory);
        memory.or_else(|| self.parked_memory(path))
    }

    /// Moves a file with the lock released over its durable writes.
    ///
    /// Parking involves two files and a timer that may settle it at any moment. Claims do not cover
    /// that, so such renames keep the lock.
    fn move_file_unlocked(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let is_backup = |node: Ino| self.is_backup_of_parked(node);
        if self.is_parked(&to.path) || is_backup(ino) || to.node.is_some_and(is_backup) {
            return self.move_file(ino, to, process);
        }
        let (memory, from) = (self.state.nodes.file(ino)?.memory, self.state.nodes.path(ino)?);
        let claims = [(Some(ino), memory, from), (to.node, to.memory, Some(to.path.clone()))];
        self.claiming(&claims, |guard| guard.move_file(ino, to, process))
    }

    fn move_file(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        if self.returns_to_its_place(ino, to)? {
            return Ok(());
        }
        self.resuming(ino, |guard| guard.move_resumed(ino, to, process))
    }

    fn move_resumed(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        if let Some(node) = to.node {
            self.keep_readable(node);
        }
        match self.state.nodes.file(ino)?.memory {
            None => self.move_new_file(ino, to, process)?,
            Some(memory) => self.move_memory(ino, memory, to, process)?,
        }
        if let Some(node) = to.node {
            self.overwrite(node, self.state.nodes.file(ino)?.memory, process)?;
        }
        self.state.nodes.relocate(ino, to.parent, to.name)?;
        self.unpark(&to.path);
        self.invalidate(Invalidation::Attributes(ino));
        self.store_rest(ino)
    }

    /// Detaches the file that was at the target of a rename; its memory, if it had one, continues as
    /// `successor`.
    fn overwrite(
        &mut self,
        node: Ino,
        successor: Option<MemoryId>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        if self.is_backup_of_parked(node) {
            // This backup is all that is left of its memory.
            return self.resuming(node, |guard| guard.remove(node));
        }
        self.detach_overwritten(node, successor, process);
        Ok(())
    }

    /// Moves a file that exists in the mount only.
    fn move_new_file(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        if is_scratch && to.memory.is_none() {
            self.state.nodes.file_mut(ino)?.is_scratch = true;
            return Ok(());
        }
        let file = self.state.nodes.file_mut(ino)?;
        let is_being_written = file.writers > 0;
        let buffer = file.buffer.as_ref().ok_or(TreeError::Stale)?;
        if is_being_written && buffer.state == BufferState::Dirty && to.memory.is_none() {
            // It becomes a memory when it is closed, like any new file.
            file.is_scratch = false;
            return Ok(());
        }
        let content = Content::from_bytes(&buffer.bytes)?;
        let former = file.former;
        let written = match former.and_then(|former| self.bring_back(former, to, &content)) {
            Some(written) => written,
            None => self.put_text(to, &content, process)?,
        };
        let file = self.state.nodes.file_mut(ino)?;
        file.is_scratch = false;
        file.former = None;
        self.adopt(ino, &content, &written)?;
        self.note_written_by(process, &content, &written);
        if !is_being_written {
            self.state.nodes.file_mut(ino)?.buffer = None;
        }
        Ok(())
    }

    /// Restores the memory that a file was before it moved to a scratch name, if possible.
    fn bring_back(
        &mut self,
        former: VersionId,
        to: &Destination<'_>,
        content: &Content,
    ) -> Option<Written> {
        if to.memory.is_some() {
            return None;
        }
        let restored = self.durably(|tree| {
            let (actor, store) = (&tree.settings.actor, tree.settings.store);
            tree.engine.restore(actor, store, former, Some(&to.path))
        });
        let written = restored.ok()?;
        if written.memory.content.as_ref() == Some(content) {
            return Some(written);
        }
        self.note_own(&written);
        let update = MemoryUpdate { content: Some(content.clone()), ..MemoryUpdate::default() };
        self.update(written.memory.id, &update).ok()
    }

    fn put_text(
        &mut self,
        to: &Destination<'_>,
        content: &Content,
        process: ProcessId,
    ) -> Result<Written, Error> {
        if let Some(memory) = to.memory {
            let base = self.base_at(memory, process);
            match self.durably(|tree| tree.replace_text(memory, base.as_ref(), content)) {
                // Another door has just deleted it.
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                result => {
                    let (written, overridden) = result?;
                    if let Some(version) = overridden {
                        self.report_at(to.path.as_str(), ProblemKind::Overridden(version));
                    }
                    return Ok(written);
                }
            }
        }
        self.durably(|tree| {
            let (actor, store) = (&tree.settings.actor, tree.settings.store);
            tree.engine.put(actor, store, (&to.path, content), Precondition::None)
        })
    }

    pub(super) fn update(
        &mut self,
        memory: MemoryId,
        update: &MemoryUpdate,
    ) -> Result<Written, Error> {
        self.durably(|tree| {
            let (actor, store) = (&tree.settings.actor, tree.settings.store);
            tree.engine.update(actor, store, memory, update)
        })
    }

    /// Returns the text that a process has read of the memory that it replaces.
    ///
    /// Also if that is still the newest: another door can change it until this write has its turn. With
    /// nothing to compare with, such a change was lost.
    fn base_at(&self, memory: MemoryId, process: ProcessId) -> Option<Content> {
        self.base_known_of(process, memory, None)
    }

    /// Moves a file that is a memory.
    fn move_memory(
        &mut self,
        ino: Ino,
        memory: MemoryId,
        to: &Destination<'_>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        if to.memory == Some(memory) {
            // It was parked, and the store still has it at this path.
            return Ok(());
        }
        if let Some(target) = to.memory {
            return self.move_onto(ino, (memory, target), &to.path, process);
        }
        let (_, old_name) = self.state.nodes.get(ino)?.place.clone().ok_or(TreeError::Stale)?;
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        if is_scratch || (self.names().is_backup(to.name) && !self.names().is_backup(&old_name)) {
            return self.park(ino, memory, to);
        }
        let update = MemoryUpdate { path: Some(to.path.clone()), ..MemoryUpdate::default() };
        let written = self.update(memory, &update)?;
        self.note_own(&written);
        // While the lock was released, a lookup may have assigned the file to a memory that another
        // door has just created at the old path.
        self.state.nodes.set_memory(ino, Some(memory))?;
        self.state.nodes.file_mut(ino)?.version = Some(written.memory.version);
        Ok(())
    }

    /// Moves a file that is a memory over another one.
    fn move_onto(
        &mut self,
        ino: Ino,
        (memory, target): (MemoryId, MemoryId),
        path: &MemoryPath,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let is_just_created = self.is_just_created(ino, process)?;
        let mut base = if is_just_created { self.base_at(target, process) } else { None };
        let (mut ours, mut overridden) = (None, None);
        let replaced = loop {
            let survivor = match &base {
                Some(known) => {
                    let prepared = self.merge_into((memory, target), known)?;
                    ours = ours.or(prepared.ours);
                    overridden = prepared.overridden.or(overridden);
                    let precondition = Precondition::ContentIs(prepared.theirs.hash());
                    // From now on, the text is a change of theirs.
                    base = Some(prepared.theirs);
                    Survivor::Target(precondition)
                }
                None if is_just_created => Survivor::Target(Precondition::None),
                None => Survivor::Moved,
            };
            let replaced = self.durably(|tree| {
                let (actor, store) = (&tree.settings.actor, tree.settings.store);
                tree.engine.replace(actor, store, (memory, target), survivor)
            });
            match replaced {
                // Another door has changed the target since, so its change has to be merged too.
                Err(error) if *error.kind() == ErrorKind::PreconditionFailed => {}
                replaced => break replaced?,
            }
        };
        if let Some(version) = overridden {
            self.report_at(path.as_str(), ProblemKind::Overridden(version));
        }
        self.state.own.insert(replaced.deleted.id);
        self.note_own(&replaced.written);
        if let Some(ours) = ours.as_ref().or(replaced.written.memory.content.as_ref()) {
            self.note_written_by(process, ours, &replaced.written);
        }
        self.state.nodes.set_memory(ino, Some(replaced.written.memory.id))?;
        let file = self.state.nodes.file_mut(ino)?;
        file.version = Some(replaced.written.memory.version);
        file.text = None;
        self.mark_outdated(ino);
        Ok(())
    }

    /// Merges the changes of others to a memory into the one that is about to replace it.
    fn merge_into(
        &mut self,
        (new, old): (MemoryId, MemoryId),
        base: &Content,
    ) -> Result<Prepared, TreeError> {
        // Neither file is open here: a memory that is gone means that the rename has to start over.
        let missing = |error: TreeError| error.instead_of(TreeError::Stale, TreeError::NotFound);
        let ours = self.content(new).map_err(missing)?;
        let old = self.engine().memory(self.store(), old, View::Full)?;
        let theirs = old.content.ok_or(TreeError::Storage)?;
        let Some(merged) = self.tree.merged((base, &ours, &theirs), Extent::Rewritten) else {
            return Ok(Prepared { ours: None, theirs, overridden: Some(old.version) });
        };
        if merged == ours {
            return Ok(Prepared { ours: None, theirs, overridden: None });
        }
        let update = MemoryUpdate { content: Some(merged), ..MemoryUpdate::default() };
        let written = self.update(new, &update)?;
        self.note_own(&written);
        Ok(Prepared { ours: Some(ours), theirs, overridden: None })
    }

    fn is_just_created(&self, ino: Ino, process: ProcessId) -> Result<bool, TreeError> {
        let now = self.now();
        let made = self.state.nodes.file(ino)?.creator;
        Ok(made.is_some_and(|(by, until)| until > now && are_relatives(by, process)))
    }

    fn move_directory(
        &mut self,
        ino: Ino,
        (parent, name, path): (Ino, &str, &MemoryPath),
        target: Option<Ino>,
    ) -> Result<(), TreeError> {
        let from = self.state.nodes.path(ino)?.ok_or(TreeError::NotPermitted)?;
        if from.as_directory().contains(path) {
            return Err(TreeError::Invalid);
        }
        if let Some(target) = target {
            self.require_empty(target)?;
        }
        self.settle_below(&from)?;
        self.settle_below(path)?;
        let moved = self.durably(|tree| {
            let (actor, store) = (&tree.settings.actor, tree.settings.store);
            tree.engine.rename(actor, store, &from, path)
        });
        match moved {
            Ok(moved) => moved.iter().for_each(|written| self.note_own(written)),
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        self.state.nodes.relocate(ino, parent, name)
    }
}
