//! Files that are replaced while programs have them open for writing.
//!
//! On a disk such a program goes on writing to a file without a name, and what it writes is gone with
//! its last descriptor. A mount promises more: nothing is lost silently. So a replaced file that is
//! open for writing keeps no name but follows the memory that took it. What is written to it is a
//! change of the text that its program could read, and a close merges it into that memory, exactly as
//! if another mount had replaced the file. Readers keep the text that they opened.
//!
//! A file that was removed is different: whoever removes it says that its text is not wanted.

use quipu_core::model::{Content, MemoryId, MemoryPath};

use super::TreeGuard;
use super::opening::{Handle, OpenMode};
use crate::error::TreeError;
use crate::nodes::{Blank, Buffer, BufferState, FileNode, Ino, ProcessId};
use crate::process::are_one_process;

impl TreeGuard<'_> {
    /// Detaches a file that a process has replaced by one with this memory, which it follows if it is being
    /// written.
    pub(super) fn detach_overwritten(
        &mut self,
        ino: Ino,
        successor: Option<MemoryId>,
        process: ProcessId,
    ) {
        let is_written =
            self.state.nodes.file(ino).is_ok_and(|file| file.writers > 0 && !file.is_scratch);
        let memory = successor.filter(|_| is_written);
        // Fails for directories, which have no memory.
        self.state.nodes.set_memory(ino, memory).unwrap_or_default();
        self.state.nodes.detach_replaced(ino);
        if is_written {
            self.forget_superseded(ino, process);
        }
    }

    /// Makes the writers of a file that was moved away follow its memory, which another file at its old
    /// path has continued. The moved file keeps the text that was stored.
    pub(super) fn divert_writers(
        &mut self,
        backup: Ino,
        (memory, path): (MemoryId, &MemoryPath),
    ) -> Result<(), TreeError> {
        let file = self.state.nodes.file_mut(backup)?;
        let Some(buffer) = file.buffer.as_mut().filter(|_| file.memory.is_none()) else {
            return Ok(());
        };
        let Some(base) = buffer.base.clone() else { return Ok(()) };
        let is_changed = buffer.bytes != base.as_str().as_bytes();
        if file.writers == 0 && !is_changed {
            return Ok(());
        }
        let kept = Buffer::stored(&base, buffer.changed_at);
        let mut written = std::mem::replace(buffer, kept);
        if is_changed {
            written.state = BufferState::Dirty;
        }
        let file = FileNode { memory: Some(memory), ..FileNode::new(written) };
        let place = self.directory_of(path).map(|parent| (parent, path.file_name().to_owned()));
        let follower = self.state.nodes.add_replaced(place, file);
        let is_writer = |open: &&mut Handle| open.ino == backup && open.mode != OpenMode::Read;
        let mut writers = 0;
        for open in self.state.handles.values_mut().filter(is_writer) {
            open.ino = follower;
            writers += 1;
        }
        self.state.nodes.get_mut(backup)?.handles -= writers;
        self.state.nodes.file_mut(backup)?.writers -= writers;
        self.state.nodes.get_mut(follower)?.handles += writers;
        self.state.nodes.file_mut(follower)?.writers += writers;
        self.forget_superseded(follower, ProcessId::UNKNOWN);
        if writers > 0 || !self.state.nodes.file(follower)?.is_dirty() {
            self.state.nodes.drop_unused(follower);
            return Ok(());
        }
        let stored = self.store_buffer(follower, ProcessId::UNKNOWN);
        self.state.nodes.drop_unused(follower);
        stored
    }

    /// Forgets what was written to a file before a process replaced it, if that does not belong into the
    /// new text. What is written from now on is a change of the text that its program has.
    ///
    /// That is so for a truncation without a write, and for what the process has written itself: an editor
    /// that fails to write a file moves the old one back, and then closes what it has begun. It is also so
    /// for what the new text contains already, because whoever made it has read this file.
    fn forget_superseded(&mut self, ino: Ino, process: ProcessId) {
        let Ok(file) = self.state.nodes.file(ino) else { return };
        let Some(buffer) = file.buffer.as_ref().filter(|_| file.is_dirty()) else { return };
        let Ok(ours) = Content::from_bytes(&buffer.bytes) else { return };
        let is_it = |&writer: &ProcessId| writer == process || are_one_process(writer, process);
        let is_its_own = !buffer.writers.is_empty() && buffer.writers.iter().all(is_it);
        if buffer.blank == Blank::No && !is_its_own && !self.is_contained(file, &ours) {
            return;
        }
        let buffer = Buffer::stored(&ours, buffer.changed_at);
        if let Ok(file) = self.state.nodes.file_mut(ino) {
            file.buffer = Some(buffer);
        }
        for open in self.state.handles.values_mut().filter(|open| open.ino == ino) {
            open.base = (open.mode != OpenMode::Read).then(|| ours.clone());
        }
    }

    /// Returns whether the memory of a file contains all changes that were made to the file's text.
    fn is_contained(&self, file: &FileNode, ours: &Content) -> bool {
        let theirs = file.memory.and_then(|memory| self.content(memory).ok());
        let buffer = file.buffer.as_ref();
        let (Some(theirs), Some(buffer)) = (theirs, buffer) else { return false };
        let Some(base) = &buffer.base else { return false };
        self.tree.merged((base, ours, &theirs), buffer.extent).as_ref() == Some(&theirs)
    }

    /// Makes the file at the name of a memory show what was stored through one that it has replaced. The
    /// feed does not deliver our own versions.
    pub(super) fn show_to_successors(&mut self, ino: Ino) -> Result<(), TreeError> {
        let Some(memory) = self.state.nodes.file(ino)?.memory else { return Ok(()) };
        for other in self.state.nodes.files_of(memory) {
            let is_placed = self.state.nodes.get(other)?.place.is_some();
            if other != ino && is_placed {
                // A write of its own may be newer.
                self.distrust(other, None);
            }
        }
        Ok(())
    }

    /// Makes nothing be stored that is written to files which a removed one had replaced.
    pub(super) fn remove_predecessors(&mut self, memory: MemoryId) {
        for ino in self.state.nodes.files_of(memory) {
            if let Ok(node) = self.state.nodes.get_mut(ino)
                && node.place.is_none()
            {
                node.left = None;
                self.orphan(ino);
            }
        }
    }
}
