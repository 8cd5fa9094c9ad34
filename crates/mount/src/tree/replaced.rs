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
    /// Detaches a file that was replaced by one with this memory, which it follows if it is being written.
    pub(super) fn detach_overwritten(&mut self, ino: Ino, successor: Option<MemoryId>) {
        let is_written =
            self.state.nodes.file(ino).is_ok_and(|file| file.writers > 0 && !file.is_scratch);
        let memory = successor.filter(|_| is_written);
        // Fails for directories, which have no memory.
        self.state.nodes.set_memory(ino, memory).unwrap_or_default();
        self.state.nodes.detach_replaced(ino);
        if is_written {
            self.forget_truncation(ino);
        }
    }

    /// Gives up a new file if the process that writes it replaces it: an editor that fails to write the new
    /// file moves the old one back, and then closes what it has begun.
    pub(super) fn give_up_if_replaced_by_its_writer(&mut self, ino: Ino, process: ProcessId) {
        let mut writers = self.state.handles.values().filter(|open| open.ino == ino);
        let is_its_own =
            writers.all(|open| open.opener == process || are_one_process(open.opener, process));
        if let Ok(file) = self.state.nodes.file_mut(ino)
            && let (None, Some(buffer)) = (file.memory, &mut file.buffer)
            && is_its_own
        {
            buffer.is_given_up = true;
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
        let writers = std::mem::take(&mut file.writers);
        let file = FileNode { memory: Some(memory), writers, ..FileNode::new(written) };
        let place = self.directory_of(path).map(|parent| (parent, path.file_name().to_owned()));
        let follower = self.state.nodes.add_replaced(place, file);
        let is_writer = |open: &&mut Handle| open.ino == backup && open.mode != OpenMode::Read;
        for open in self.state.handles.values_mut().filter(is_writer) {
            open.ino = follower;
        }
        self.state.nodes.get_mut(backup)?.handles -= writers;
        self.state.nodes.get_mut(follower)?.handles += writers;
        self.forget_truncation(follower);
        if writers > 0 {
            return Ok(());
        }
        let stored = self.store_buffer(follower, ProcessId::UNKNOWN);
        self.state.nodes.drop_unused(follower);
        stored
    }

    /// Forgets that a replaced file was truncated by its open, unless its writer went on.
    ///
    /// The truncation was before the replacement. Storing it afterwards would empty the new file.
    fn forget_truncation(&mut self, ino: Ino) {
        let now = self.now();
        let Ok(buffer) = self.state.nodes.buffer_mut(ino) else { return };
        if buffer.blank == Blank::No {
            return;
        }
        let empty = Content::new("").expect("the empty text is a text");
        *buffer = Buffer::stored(&empty, now);
        for open in self.state.handles.values_mut().filter(|open| open.ino == ino) {
            open.base = open.base.is_some().then(|| empty.clone());
        }
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
