//! Memories that were moved to a backup name moments ago.
//!
//! Some editors move the old file away before they write the new one. A memory that is moved to a
//! backup name is therefore *parked* for a moment: the mount shows the move, the store still has the
//! memory in its place, and the next file at that place continues it. If none comes, or if somebody
//! syncs the directory, the move is stored as it was meant.

use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::engine::MemoryUpdate;
use quipu_core::model::{MemoryId, MemoryPath, Timestamp, View};

use super::renaming::Destination;
use super::{Invalidation, Tree, TreeGuard};
use crate::error::TreeError;
use crate::names::Making;
use crate::nodes::{BufferState, Extent, Ino, ProcessId, ROOT};

/// A memory that was moved to a backup name moments ago.
#[derive(Debug)]
pub(super) struct Parked {
    memory: MemoryId,
    /// Where the store has it.
    path: MemoryPath,
    /// The file that shows its text.
    backup: Ino,
    until: Timestamp,
}

impl Parked {
    pub(super) fn is_of(&self, memory: MemoryId) -> bool {
        self.memory == memory
    }
}

/// How long a memory stays parked; editors take some milliseconds.
pub(crate) const PARKED_FOR: Duration = Duration::from_secs(2);

impl Tree {
    /// Makes the renames in a directory durable.
    pub fn sync_directory(&self, ino: Ino) -> Result<(), TreeError> {
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
            let parked = guard.state.parked.swap_remove(index);
            guard.settle(&parked)?;
        }
        Ok(())
    }

    /// Ends what was parked long enough ago, and returns when to come back, if ever.
    pub fn settle_due(&self) -> Option<Duration> {
        let mut guard = self.lock_any();
        let now = guard.now();
        while let Some(index) = guard.state.parked.iter().position(|parked| parked.until <= now) {
            let parked = guard.state.parked.swap_remove(index);
            guard.settle_or_show(parked);
        }
        let next = guard.state.parked.iter().map(|parked| parked.until).min()?;
        let micros = next.as_micros().saturating_sub(now.as_micros());
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

    /// Lets a file show the text of a memory, which may come back in a moment.
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
        self.invalidate(Invalidation::Wake);
        Ok(())
    }

    /// Ends the parking of a path whose memory goes on with a new text; the backup stays behind.
    pub(super) fn unpark(&mut self, path: &MemoryPath) {
        let Some(index) = self.state.parked.iter().position(|parked| parked.path == *path) else {
            return;
        };
        let parked = self.state.parked.swap_remove(index);
        if self.state.nodes.file(parked.backup).is_ok_and(|file| !file.is_scratch)
            && let Err(error) = self.store_as_new(parked.backup)
        {
            tracing::warn!(?error, "a backup could not be stored");
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

    /// Moves a parked file back to where it came from, and tells whether it was that.
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

    /// Makes a parked file the memory that it was.
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

    /// Stores what was written to a file while it was parked and nobody writes to any more.
    pub(super) fn store_rest(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.memory.is_some() && file.writers == 0 && file.is_dirty() {
            return self.store_as_new(ino);
        }
        Ok(())
    }

    /// Ends the parking of a file that somebody is about to write to.
    pub(super) fn settle_backup(&mut self, ino: Ino) -> Result<(), TreeError> {
        let is_it = |parked: &Parked| parked.backup == ino;
        match self.state.parked.iter().position(is_it) {
            Some(index) => {
                let parked = self.state.parked.swap_remove(index);
                self.settle(&parked)
            }
            None => Ok(()),
        }
    }

    /// Makes a parked file the memory that it was, before something else happens to it.
    pub(super) fn take_over_parked(&mut self, ino: Ino) -> Result<(), TreeError> {
        let is_it = |parked: &Parked| parked.backup == ino;
        if let Some(index) = self.state.parked.iter().position(is_it) {
            let parked = self.state.parked.swap_remove(index);
            self.resume(ino, parked.memory)?;
        }
        Ok(())
    }

    /// Ends all parking in a directory, or where one is about to be.
    pub(super) fn settle_below(&mut self, path: &MemoryPath) -> Result<(), TreeError> {
        let directory = path.as_directory();
        let concerns = |guard: &Self, parked: &Parked| {
            let backup = guard.state.nodes.path(parked.backup).ok().flatten();
            parked.path == *path
                || directory.contains(&parked.path)
                || backup.is_some_and(|backup| directory.contains(&backup))
        };
        while let Some(index) = self.state.parked.iter().position(|parked| concerns(self, parked)) {
            let parked = self.state.parked.swap_remove(index);
            self.settle(&parked)?;
        }
        Ok(())
    }

    /// Ends all parking.
    pub(super) fn settle_all(&mut self) {
        while let Some(parked) = self.state.parked.pop() {
            self.settle_or_show(parked);
        }
    }

    /// Ends the parking; if that fails, the memory is shown again where it is.
    #[expect(clippy::needless_pass_by_value, reason = "what was parked is not parked any more")]
    fn settle_or_show(&mut self, parked: Parked) {
        if let Err(error) = self.settle(&parked) {
            tracing::warn!(?error, "a memory that was moved to a backup name stays where it was");
        }
        let mut parent = ROOT;
        for name in parked.path.as_str().split('/').skip(1) {
            self.invalidate(Invalidation::Entry { parent, name: name.to_owned() });
            let Some(child) = self.state.nodes.child(parent, name) else { break };
            parent = child;
        }
    }

    /// Does to a parked memory what its move meant: no new file took its place.
    fn settle(&mut self, parked: &Parked) -> Result<(), TreeError> {
        let file = self.state.nodes.file(parked.backup)?;
        if file.is_scratch {
            // If it is moved back one day, it is this memory again.
            let newest = self.engine().memory(self.store(), parked.memory, View::Basic);
            let former = newest.ok().map(|memory| memory.version);
            self.state.nodes.file_mut(parked.backup)?.former = former;
            let none = quipu_core::engine::Precondition::None;
            let deleted = self.engine().delete(self.actor(), self.store(), parked.memory, none);
            match deleted {
                Ok(version) => drop(self.state.own.insert(version.id)),
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
            return self.keep_emptied(&parked.path);
        }
        let path = self.state.nodes.path(parked.backup)?.ok_or(TreeError::Stale)?;
        let update = MemoryUpdate { path: Some(path), ..MemoryUpdate::default() };
        let moved = self.engine().update(self.actor(), self.store(), parked.memory, &update)?;
        self.note_own(&moved);
        self.resume(parked.backup, parked.memory)?;
        self.keep_emptied(&parked.path)
    }

    /// Keeps the directory that a memory has left if it was the last one.
    fn keep_emptied(&mut self, path: &MemoryPath) -> Result<(), TreeError> {
        let mut directory = ROOT;
        for name in path.ancestors().filter_map(|above| above.rsplit('/').next()) {
            let Some(child) = self.state.nodes.child(directory, name) else { return Ok(()) };
            directory = child;
        }
        self.keep_if_empty(directory)
    }
}
