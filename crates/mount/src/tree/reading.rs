//! Reading files.

use std::sync::Arc;

use quipu_core::model::{Content, MemoryId, View};

use super::opening::{Handle, PinnedText};
use super::{Attributes, OpenMode, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{Ino, ProcessId};

impl Tree {
    /// Returns a part of a file's text, including writes that are not stored yet.
    pub fn read(&self, ino: Ino, offset: u64, size_bytes: usize) -> Result<Vec<u8>, TreeError> {
        Ok(part(self.lock()?.shown_bytes(ino)?, offset, size_bytes))
    }

    /// Returns the attributes of a file to a process that may be about to read it.
    pub fn attributes_for(&self, ino: Ino, process: ProcessId) -> Result<Attributes, TreeError> {
        let mut guard = self.lock_fresh()?;
        let attributes = guard.attributes(ino)?;
        let size_bytes = guard.pin(ino, process)?.unwrap_or(attributes.size_bytes);
        Ok(Attributes { size_bytes, ..attributes })
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
            // program writes; an older base would make the change look like its own, and with a newer one
            // its save would take the change back.
            match open.pinned.as_ref().filter(|pinned| open.is_apart && !pinned.is_begun) {
                Some(pinned) => guard.note_shown(&open, &pinned.bytes)?,
                None => {
                    guard.load_text(open.ino)?;
                    guard.note_read_again(&open)?;
                }
            }
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
        if open.is_apart && open.mode == OpenMode::Read {
            return guard.read_apart(handle, offset, size_bytes);
        }
        Ok(part(guard.shown_bytes(open.ino)?, offset, size_bytes))
    }
}

impl TreeGuard<'_> {
    /// Returns a part of the text that a reader reads, for a handle that bypasses the kernel's cache: what
    /// comes in several parts is one text, whatever others write meanwhile.
    ///
    /// The text is released after its end, so that a program which waits for more (`tail -f`) finds it.
    fn read_apart(
        &mut self,
        handle: u64,
        offset: u64,
        size_bytes: usize,
    ) -> Result<Vec<u8>, TreeError> {
        let open = self.handle(handle)?;
        let bytes = match open.pinned.filter(|pinned| offset > 0 || !pinned.is_begun) {
            Some(pinned) => pinned.bytes,
            None => Arc::from(self.shown_bytes(open.ino)?),
        };
        let read = part(&bytes, offset, size_bytes);
        let open = self.state.handles.get_mut(&handle).ok_or(TreeError::BadHandle)?;
        open.pinned = (!read.is_empty()).then_some(PinnedText { bytes, is_begun: true });
        Ok(read)
    }

    /// Pins the text of a file for the handles of a process that asks for its size, and returns that. A
    /// program that reads as many bytes as `fstat` has told it gets all of one text.
    fn pin(&mut self, ino: Ino, process: ProcessId) -> Result<Option<u64>, TreeError> {
        let is_its_reader = |open: &Handle| {
            (open.opened_as, open.opener, open.mode) == (ino, process, OpenMode::Read)
                && open.is_apart
        };
        let readers = self.state.handles.iter().filter(|(_, open)| is_its_reader(open));
        let mut readers: Vec<_> = readers.map(|(&handle, open)| (handle, open.ino)).collect();
        readers.sort_unstable();
        let mut size_bytes = None;
        for (handle, ino) in readers {
            let bytes: Arc<[u8]> = Arc::from(self.shown_bytes(ino)?);
            size_bytes = u64::try_from(bytes.len()).ok();
            if let Some(open) = self.state.handles.get_mut(&handle)
                && open.pinned.as_ref().is_none_or(|pinned| !pinned.is_begun)
            {
                open.pinned = Some(PinnedText { bytes, is_begun: false });
            }
        }
        Ok(size_bytes)
    }

    /// Returns the text that a file shows, including writes that are not stored yet.
    fn shown_bytes(&mut self, ino: Ino) -> Result<&[u8], TreeError> {
        self.load_text(ino)?;
        let file = self.state.nodes.file(ino)?;
        match (&file.buffer, &file.text) {
            (Some(buffer), _) => Ok(&buffer.bytes),
            (None, Some(text)) => Ok(text.as_str().as_bytes()),
            (None, None) => Err(TreeError::Stale),
        }
    }

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
