//! Parked memories: those that have just been moved to a backup name.
//!
//! Some editors move the old file away before they write the new one. Storing that move at once
//! would leave the history at the backup and start the new file as an unrelated memory. So a memory
//! that is moved to a backup or scratch name is *parked* for a moment: the mount shows the move, the
//! store still has the memory at its old path, and the next file there continues it. If none comes,
//! or the directory is synced, the move is *settled*: stored as a rename, or as a deletion for a
//! scratch name. The program that made the move was told long ago that it succeeded, so a memory
//! stays parked while the storage fails; if the store refuses the move, that is undone and reported.
//!
//! While a memory is parked, mount and store disagree on purpose, in two names at once. Every call
//! that touches either name has to settle, resume or respect the parking first, under the lock.

use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::engine::{MemoryUpdate, Precondition};
use quipu_core::model::{MemoryId, MemoryPath, Timestamp, View};

use super::problems::ProblemKind;
use super::renaming::Destination;
use super::{Invalidation, Tree, TreeGuard};
use crate::error::TreeError;
use crate::names::Making;
use crate::nodes::{BufferState, Extent, Ino, ProcessId, ROOT};

/// A memory that has just been moved to a backup name.
#[derive(Debug)]
pub(super) struct Parked {
    memory: MemoryId,
    /// Its path in the store.
    path: MemoryPath,
    /// The file that shows its text.
    backup: Ino,
    until: Timestamp,
}

/// How long a memory stays parked; editors need a few milliseconds.
pub(crate) const PARKED_FOR: Duration = Duration::from_secs(2);

/// How long to wait before settling again when the storage has failed. An attempt holds the lock for
/// as long as it waits for a busy storage, and readers need their turn.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// How often settling may fail before the mount ends. Each failure can take as long as the storage
/// lets a writer wait, so this must not grow with the number of parked memories.
const FAILURES_AT_END_MAX: usize = 2;

impl Tree {
    /// Returns whether a memory is parked. Calls that change anything may then have to settle it, which
    /// blocks.
    pub fn has_parked(&self) -> bool {
        !self.lock_any().state.parked.is_empty()
    }

    /// Makes the renames in a directory durable.
    pub fn sync_directory(&self, ino: Ino) -> Result<(), TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        let concerns = |guard: &TreeGuard<'_>, parked: &Parked| {
            let place =
                guard.state.nodes.get(parked.backup).ok().and_then(|node| node.place.as_ref());
            let is_left = guard.state.nodes.child_path(ino, parked.path.file_name());
            place.is_some_and(|(parent, _)| *parent == ino) || is_left == Ok(parked.path.clone())
        };
        let is_concerned = |guard: &TreeGuard<'_>| {
            guard.state.parked.iter().position(|parked| concerns(guard, parked))
        };
        while let Some(index) = is_concerned(&guard) {
            guard.settle_at(index)?;
        }
        Ok(())
    }

    /// Settles what has been parked long enough, and returns when the next deadline is, if any.
    pub fn settle_due(&self) -> Option<Duration> {
        let mut guard = self.lock_any();
        let now = guard.now();
        if guard.state.parked.iter().any(|parked| parked.until <= now) {
            drop(guard);
            self.wait_for_storage();
            guard = self.lock_any();
        }
        while let Some(index) = guard.state.parked.iter().position(|parked| parked.until <= now) {
            if let Err(error) = guard.settle_at(index) {
                tracing::warn!(?error, "a move to a backup name could not be stored");
            }
        }
        let next = guard.state.parked.iter().map(|parked| parked.until).min()?;
        // Settling may have waited for a busy storage.
        let micros = next.as_micros().saturating_sub(guard.now().as_micros());
        Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }
}

impl TreeGuard<'_> {
    pub(super) fn is_parked(&self, path: &MemoryPath) -> bool {
        self.state.parked.iter().any(|parked| parked.path == *path)
    }

    pub(super) fn is_backup_of_parked(&self, ino: Ino) -> bool {
        self.state.parked.iter().any(|parked| parked.backup == ino)
    }

    pub(super) fn parked_memory(&self, path: &MemoryPath) -> Option<MemoryId> {
        self.state.parked.iter().find(|parked| parked.path == *path).map(|parked| parked.memory)
    }

    /// Parks a memory; the file keeps its text as the backup.
    pub(super) fn park(
        &mut self,
        ino: Ino,
        memory: MemoryId,
        to: &Destination<'_>,
    ) -> Result<(), TreeError> {
        let path = self.engine().memory(self.store(), memory, View::Basic)?.path;
        self.load_buffer(ino)?;
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        let until = self.now().plus(PARKED_FOR);
        self.state.nodes.set_memory(ino, None)?;
        let file = self.state.nodes.file_mut(ino)?;
        file.is_scratch = is_scratch;
        file.creator = None;
        self.state.parked.push(Parked { memory, path, backup: ino, until });
        self.state.nodes.forget_absent();
        self.invalidate(Invalidation::Wake);
        Ok(())
    }

    /// Ends the parking at a path whose memory continues with a new text; the backup becomes a file of
    /// its own.
    pub(super) fn unpark(&mut self, path: &MemoryPath) {
        let Some(index) = self.state.parked.iter().position(|parked| parked.path == *path) else {
            return;
        };
        let parked = self.state.parked.swap_remove(index);
        if let Err(error) = self.divert_writers(parked.backup, (parked.memory, path)) {
            tracing::warn!(?error, "what was written to a file that was moved away is not stored");
        }
        if self.state.nodes.file(parked.backup).is_ok_and(|file| !file.is_scratch)
            && let Err(error) = self.store_as_new(parked.backup)
        {
            tracing::warn!(?error, "a backup file could not be stored");
        }
    }

    pub(super) fn store_as_new(&mut self, ino: Ino) -> Result<(), TreeError> {
        self.store_buffer(ino, ProcessId::UNKNOWN)?;
        let file = self.state.nodes.file_mut(ino)?;
        if file.writers == 0 {
            file.buffer = None;
        }
        Ok(())
    }

    /// Resumes a parked file that is moved back to its old path. Returns whether that was the case.
    pub(super) fn returns_to_its_place(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
    ) -> Result<bool, TreeError> {
        let is_it = |parked: &Parked| parked.backup == ino && parked.path == to.path;
        let Some(index) = self.state.parked.iter().position(is_it) else { return Ok(false) };
        if to.node.is_some() {
            return Ok(false);
        }
        let parked = self.state.parked.swap_remove(index);
        self.resume(ino, parked.memory)?;
        self.state.nodes.relocate(ino, to.parent, to.name)?;
        self.store_rest(ino)?;
        Ok(true)
    }

    /// Assigns the memory to its file again.
    fn resume(&mut self, ino: Ino, memory: MemoryId) -> Result<(), TreeError> {
        self.state.nodes.set_memory(ino, Some(memory))?;
        let file = self.state.nodes.file_mut(ino)?;
        file.is_scratch = false;
        if let Some(buffer) = &mut file.buffer {
            let base = buffer.base.as_ref().map(|base| base.as_str().as_bytes());
            if base != Some(buffer.bytes.as_slice()) {
                buffer.state = BufferState::Dirty;
            }
            buffer.extent = Extent::Rewritten;
        }
        if file.writers == 0 && !file.is_dirty() {
            file.buffer = None;
        }
        Ok(())
    }

    /// Stores what was written to a file while it was parked, unless it still has writers.
    pub(super) fn store_rest(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.memory.is_some() && file.writers == 0 && file.is_dirty() {
            return self.store_as_new(ino);
        }
        Ok(())
    }

    /// Settles the parking of a file that is about to be written.
    pub(super) fn settle_backup(&mut self, ino: Ino) -> Result<(), TreeError> {
        let is_it = |parked: &Parked| parked.backup == ino;
        match self.state.parked.iter().position(is_it) {
            Some(index) => self.settle_at(index),
            None => Ok(()),
        }
    }

    /// Removes a file or moves it on, after resuming it if it is parked. If that fails, it is parked as
    /// before.
    pub(super) fn resuming(
        &mut self,
        ino: Ino,
        call: impl FnOnce(&mut Self) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let is_it = |parked: &Parked| parked.backup == ino;
        let Some(index) = self.state.parked.iter().position(is_it) else { return call(self) };
        let is_scratch = self.state.nodes.file(ino)?.is_scratch;
        let parked = self.state.parked.swap_remove(index);
        let done = self.resume(ino, parked.memory).and_then(|()| call(self));
        if done.is_err() && self.is_still_at(&parked) {
            self.load_buffer(ino)?;
            self.state.nodes.set_memory(ino, None)?;
            self.state.nodes.file_mut(ino)?.is_scratch = is_scratch;
            self.state.parked.push(parked);
        }
        done
    }

    /// Returns whether the store has a parked memory at its old path.
    fn is_still_at(&self, parked: &Parked) -> bool {
        let memory = self.engine().memory(self.store(), parked.memory, View::Basic);
        memory.is_ok_and(|memory| memory.path == parked.path)
    }

    /// Settles everything that is parked at or below a path.
    pub(super) fn settle_below(&mut self, path: &MemoryPath) -> Result<(), TreeError> {
        let directory = path.as_directory();
        let concerns = |guard: &Self, parked: &Parked| {
            let backup = guard.state.nodes.path(parked.backup).ok().flatten();
            parked.path == *path
                || directory.contains(&parked.path)
                || backup.is_some_and(|backup| directory.contains(&backup))
        };
        while let Some(index) = self.state.parked.iter().position(|parked| concerns(self, parked)) {
            self.settle_at(index)?;
        }
        Ok(())
    }

    /// Settles everything that is parked, before the mount ends.
    pub(super) fn settle_all(&mut self) {
        let mut failures_count = 0;
        while !self.state.parked.is_empty() && failures_count < FAILURES_AT_END_MAX {
            if self.settle_at(0).is_err_and(may_pass) {
                failures_count += 1;
            }
        }
        let lost: Vec<_> = self.state.parked.iter().map(|parked| parked.backup).collect();
        for backup in lost {
            self.report(backup, ProblemKind::Refused(TreeError::Storage));
        }
    }

    /// Settles a parking. If that fails, the memory either stays parked or is shown at its old path
    /// again.
    fn settle_at(&mut self, index: usize) -> Result<(), TreeError> {
        let parked = self.state.parked.swap_remove(index);
        let settled = self.settle(&parked);
        match settled {
            Err(error) if may_pass(error) => {
                self.state.parked.push(parked);
                // The others would wait for the same storage.
                let until = self.now().plus(RETRY_DELAY);
                for parked in &mut self.state.parked {
                    parked.until = parked.until.max(until);
                }
                return settled;
            }
            Err(error) => {
                self.report(parked.backup, ProblemKind::Refused(error));
                if let Err(error) = self.undo(&parked) {
                    tracing::warn!(?error, "a refused move to a backup name was not undone");
                }
            }
            Ok(()) => {}
        }
        let mut parent = ROOT;
        for name in parked.path.as_str().split('/').skip(1) {
            self.invalidate(Invalidation::Entry { parent, name: name.to_owned() });
            let Some(child) = self.state.nodes.child(parent, name) else { break };
            parent = child;
        }
        settled
    }

    /// Moves the file of a parked memory back to where the store has it.
    fn undo(&mut self, parked: &Parked) -> Result<(), TreeError> {
        self.state.changes_count += 1;
        self.invalidate_entry(parked.backup);
        let name = parked.path.file_name();
        let directory = self.directory_of(&parked.path);
        match directory.filter(|&directory| self.state.nodes.child(directory, name).is_none()) {
            Some(directory) => {
                self.resume(parked.backup, parked.memory)?;
                self.state.nodes.relocate(parked.backup, directory, name)?;
                self.mark_outdated(parked.backup);
                self.store_rest(parked.backup)
            }
            // Another file is there already, or will be as soon as it is looked up.
            None => {
                self.orphan(parked.backup);
                Ok(())
            }
        }
    }

    /// Ends the parking of a memory that another door has deleted.
    pub(super) fn forget_parked(&mut self, memory: MemoryId) {
        let is_it = |parked: &Parked| parked.memory == memory;
        if let Some(index) = self.state.parked.iter().position(is_it) {
            let parked = self.state.parked.swap_remove(index);
            self.drop_backup(parked.backup);
        }
    }

    /// Removes the backup of a memory that is gone, unless it stays a scratch file or its writer will
    /// store it.
    fn drop_backup(&mut self, ino: Ino) {
        if self.state.nodes.file(ino).is_ok_and(|file| !file.is_scratch && file.writers == 0) {
            self.invalidate_entry(ino);
            self.invalidate(Invalidation::Attributes(ino));
            self.orphan(ino);
        }
    }

    /// Stores the move of a parked memory that no new file has continued.
    fn settle(&mut self, parked: &Parked) -> Result<(), TreeError> {
        let file = self.state.nodes.file(parked.backup)?;
        if file.is_scratch {
            // If the file is moved back later, the memory is restored from this version.
            let newest = self.engine().memory(self.store(), parked.memory, View::Basic);
            let former = match newest {
                Ok(memory) => Some(memory.version),
                Err(error) if *error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            };
            self.state.nodes.file_mut(parked.backup)?.former = former;
            let deleted = self.durably(|tree| {
                let (actor, store) = (&tree.settings.actor, tree.settings.store);
                tree.engine.delete(actor, store, parked.memory, Precondition::None)
            });
            match deleted {
                Ok(version) => drop(self.state.own.insert(version.id)),
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            self.keep_emptied(&parked.path);
            return Ok(());
        }
        let path = self.state.nodes.path(parked.backup)?.ok_or(TreeError::Stale)?;
        let update = MemoryUpdate { path: Some(path), ..MemoryUpdate::default() };
        let moved = self.update(parked.memory, &update);
        match moved {
            Ok(moved) => self.note_own(&moved),
            // Another door has deleted it, which is how the move ends too.
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                self.drop_backup(parked.backup);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.resume(parked.backup, parked.memory)?;
        self.keep_emptied(&parked.path);
        Ok(())
    }

    /// Keeps the directory that a memory has left, if it is empty now.
    fn keep_emptied(&mut self, path: &MemoryPath) {
        let Some(directory) = self.directory_of(path) else { return };
        // The move is stored, so it must not be taken for one that has failed.
        if let Err(error) = self.keep_if_empty(directory) {
            tracing::warn!(?error, "an emptied directory may vanish");
        }
    }

    /// Returns the node of the directory of a path, if it is known.
    pub(super) fn directory_of(&self, path: &MemoryPath) -> Option<Ino> {
        let mut names = path.ancestors().filter_map(|above| above.rsplit('/').next());
        names.try_fold(ROOT, |directory, name| self.state.nodes.child(directory, name))
    }
}

/// Returns whether a later attempt may succeed.
fn may_pass(error: TreeError) -> bool {
    matches!(error, TreeError::Storage | TreeError::DiskFull)
}
