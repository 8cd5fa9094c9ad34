//! Reading files.

use quipu_core::model::{Content, MemoryId, View};

use super::{OpenMode, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::Ino;

impl Tree {
    /// Returns a part of a file's text, including writes that are not stored yet.
    pub fn read(&self, ino: Ino, offset: u64, size_bytes: usize) -> Result<Vec<u8>, TreeError> {
        let mut guard = self.lock()?;
        guard.load_text(ino)?;
        let file = guard.state.nodes.file(ino)?;
        match (&file.buffer, &file.text) {
            (Some(buffer), _) => Ok(part(&buffer.bytes, offset, size_bytes)),
            (None, Some(text)) => Ok(part(text.as_str().as_bytes(), offset, size_bytes)),
            (None, None) => Err(TreeError::Stale),
        }
    }

    /// Returns a part of the text of a file that the kernel has opened without a message.
    pub fn read_unopened(
        &self,
        ino: Ino,
        offset: u64,
        size_bytes: usize,
    ) -> Result<Vec<u8>, TreeError> {
        let read = self.read(ino, offset, size_bytes);
        // No release follows that would drop the text.
        if let Ok(file) = self.lock_any().state.nodes.file_mut(ino) {
            file.text = None;
        }
        read
    }

    /// Returns a part of an open file's text.
    ///
    /// A program that may write and reads from the beginning gets what is stored, which becomes the
    /// base of its writes. One that continues in the middle gets the rest of the text that it has
    /// begun: a mixture of two versions would be written back as one.
    pub fn read_open(
        &self,
        handle: u64,
        offset: u64,
        size_bytes: usize,
    ) -> Result<Vec<u8>, TreeError> {
        let mut guard = self.lock()?;
        let open = guard.handle(handle)?;
        if offset == 0 && open.mode == OpenMode::Read {
            // The text may have changed since the open. What is read now is the base of what the
            // program writes; an older base would make the change look like its own.
            guard.load_text(open.ino)?;
            guard.note_read_again(&open)?;
        }
        let file = guard.state.nodes.file(open.ino)?;
        let is_stored = file.memory.is_some() && !file.is_dirty();
        if let (Some(base), true) = (open.base, is_stored) {
            guard.load_text(open.ino)?;
            let file = guard.state.nodes.file(open.ino)?;
            let buffered = file.buffer.as_ref().and_then(|buffer| buffer.base.clone());
            let stored = buffered.or_else(|| file.text.clone()).ok_or(TreeError::Stale)?;
            if stored != base {
                let open = guard.state.handles.get_mut(&handle).ok_or(TreeError::BadHandle)?;
                if offset > 0 {
                    open.is_behind = true;
                    return Ok(part(base.as_str().as_bytes(), offset, size_bytes));
                }
                open.base = Some(stored);
            }
        }
        drop(guard);
        self.read(open.ino, offset, size_bytes)
    }
}

impl TreeGuard<'_> {
    /// Loads the stored text, unless there is a buffer.
    pub(super) fn load_text(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.buffer.is_some() || file.text.is_some() {
            return Ok(());
        }
        let id = file.memory.ok_or(TreeError::Stale)?;
        let memory = self.engine().memory(self.store(), id, View::Full).map_err(gone)?;
        let file = self.state.nodes.file_mut(ino)?;
        file.text = Some(memory.content.ok_or(TreeError::Storage)?);
        // The feed may not have got that far yet.
        file.version = Some(memory.version);
        Ok(())
    }

    pub(super) fn content(&self, id: MemoryId) -> Result<Content, TreeError> {
        let memory = self.engine().memory(self.store(), id, View::Full).map_err(gone)?;
        memory.content.ok_or(TreeError::Storage)
    }
}

/// Returns a part of a text.
fn part(bytes: &[u8], offset: u64, size_bytes: usize) -> Vec<u8> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = start.saturating_add(size_bytes).min(bytes.len());
    bytes.get(start..end).unwrap_or_default().to_vec()
}
