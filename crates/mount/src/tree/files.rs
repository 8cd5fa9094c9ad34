//! Files: writing, closing.

use quipu_core::model::{Timestamp, View};

use super::opening::{Handle, OpenMode, Position};
use super::{Attributes, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{Blank, Buffer, BufferState, Extent, Ino, ProcessId};
use crate::process::is_bystander;

/// Size limits of one scratch file and of all together.
const SCRATCH_FILE_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
const SCRATCH_SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Tree {
    /// Writes to an open file's buffer.
    pub fn write(
        &self,
        handle: u64,
        offset: u64,
        bytes: &[u8],
        writer: ProcessId,
    ) -> Result<(), TreeError> {
        let mut guard = self.lock()?;
        let open = guard.unclaimed_handle(handle)?;
        let OpenMode::Write(writing) = open.mode else { return Err(TreeError::BadHandle) };
        guard.load_buffer_of(&open, writing.position)?;
        let length = guard.state.nodes.buffer_mut(open.ino)?.bytes.len();
        let start = match writing.position {
            Position::AtEnd => length,
            Position::Anywhere => usize::try_from(offset).unwrap_or(usize::MAX),
        };
        let end = start.saturating_add(bytes.len());
        let possible = guard
            .require_fit(open.ino, end)
            .and_then(|()| guard.require_acceptable(open.ino, (start, bytes), writer));
        let now = guard.now();
        if possible == Err(TreeError::NotText) {
            guard.give_up_blank_files(writer);
        }
        let buffer = guard.state.nodes.buffer_mut(open.ino)?;
        if let Err(error) = possible {
            // A text that lacks this part must not be stored as if it were complete.
            buffer.touched(now, writer);
            buffer.refused = Some(error);
            return Err(error);
        }
        if buffer.bytes.len() < end {
            buffer.bytes.resize(end, 0);
        }
        if let Some(target) = buffer.bytes.get_mut(start..end) {
            target.copy_from_slice(bytes);
        }
        buffer.touched(now, writer);
        if writer != ProcessId::UNKNOWN {
            // Writeback of mapped pages does not make the kernel drop the attributes.
            buffer.is_shown.set(false);
        }
        if writing.position == Position::Anywhere {
            buffer.extent = Extent::Rewritten;
        }
        // The kernel has cached the bytes at the offset that it took for the end, or not at all.
        if open.is_apart || usize::try_from(offset) != Ok(start) {
            guard.mark_outdated(open.ino);
        }
        Ok(())
    }

    /// Sets the size of a file, if one is given, and accepts any other change of attributes.
    pub fn set(
        &self,
        file: (Ino, Option<u64>),
        size_bytes: Option<u64>,
        writer: ProcessId,
    ) -> Result<Attributes, TreeError> {
        match size_bytes {
            Some(size_bytes) => self.truncate(file, size_bytes, writer)?,
            None => self.accept_attributes(file.0)?,
        }
        self.attributes(file.0)
    }

    /// Sets the size of a file, possibly through an open handle. Without writers, this is durable when
    /// it returns.
    pub fn truncate(
        &self,
        (ino, handle): (Ino, Option<u64>),
        size_bytes: u64,
        writer: ProcessId,
    ) -> Result<(), TreeError> {
        self.wait_for_storage_if_parked();
        let mut guard = self.lock_fresh()?;
        guard.require_writable()?;
        // The handle knows which file was opened if that had been replaced.
        let ino = handle.and_then(|handle| guard.handle(handle).ok()).map_or(ino, |open| open.ino);
        if guard.state.nodes.file(ino)?.is_report {
            return Err(TreeError::NotPermitted);
        }
        guard.wait_until_stored(ino);
        if guard.state.nodes.file(ino)?.writers == 0 {
            guard.state.nodes.get(ino)?.place.as_ref().ok_or(TreeError::Stale)?;
            guard.settle_backup(ino)?;
        }
        match handle.and_then(|handle| guard.handle(handle).ok()) {
            Some(open) => guard.load_buffer_of(&open, Position::Anywhere)?,
            None => guard.load_buffer(ino)?,
        }
        if let (Some(handle), 0) = (handle, size_bytes) {
            guard.begin_anew(handle)?;
        }
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let fit = guard.require_fit(ino, size_bytes);
        let now = guard.now();
        let buffer = guard.state.nodes.buffer_mut(ino)?;
        if fit.is_ok() && buffer.bytes.len() != size_bytes {
            buffer.bytes.resize(size_bytes, 0);
            buffer.touched(now, writer);
            buffer.extent = Extent::Rewritten;
        }
        if fit.is_ok() && (size_bytes == 0 || buffer.refused == Some(TreeError::TooLarge)) {
            buffer.refused = None;
        }
        let file = guard.state.nodes.file(ino)?;
        if file.writers > 0 {
            return fit;
        }
        let stored = if file.is_dirty() {
            guard.store_buffer_unlocked(ino, ProcessId::UNKNOWN)
        } else {
            Ok(())
        };
        // Nobody has opened it for writing meanwhile: that waits until the claim ends.
        guard.finish_writing(ino);
        fit.and(stored)
    }

    /// Returns whether calls that change a file may have to wait for the disk: for a write in flight, or
    /// because they settle a parked memory.
    pub fn is_busy(&self, ino: Ino) -> bool {
        let guard = self.lock_any();
        guard.is_claimed(ino) || !guard.state.parked.is_empty()
    }

    /// Returns whether a file is open for writing. If it is not, truncating it is a durable write.
    pub fn has_writers(&self, ino: Ino) -> bool {
        self.lock_any().state.nodes.file(ino).is_ok_and(|file| file.writers > 0)
    }

    /// Returns whether closing a descriptor of this handle stores something, which blocks.
    pub fn has_to_store(&self, handle: u64) -> bool {
        let guard = self.lock_any();
        let state =
            |open: &Handle| Some(guard.state.nodes.file(open.ino).ok()?.buffer.as_ref()?.state);
        guard.handle(handle).is_ok_and(|open| {
            open.mode != OpenMode::Read && state(&open) == Some(BufferState::Dirty)
        })
    }

    /// Closes one descriptor of a handle; what was written is durable when this returns.
    ///
    /// The first close of a file that was only truncated stores nothing, because a shell truncates a
    /// file, closes a duplicate descriptor and only then writes. The close of a process that only
    /// inherited the descriptor stores nothing either.
    pub fn flush(&self, handle: u64, closer: ProcessId) -> Result<(), TreeError> {
        let mut guard = self.lock()?;
        let open = guard.unclaimed_handle(handle)?;
        if open.mode == OpenMode::Read || !guard.state.nodes.file(open.ino)?.is_dirty() {
            return Ok(());
        }
        let buffer = guard.state.nodes.buffer_mut(open.ino)?;
        if is_bystander(closer, &buffer.writers) {
            return Ok(());
        }
        if buffer.blank == Blank::Yes {
            buffer.blank = Blank::ClosedOnce;
            return Ok(());
        }
        guard.store_buffer_unlocked(open.ino, closer)
    }

    /// Makes what was written durable.
    pub fn sync(&self, handle: u64) -> Result<(), TreeError> {
        let mut guard = self.lock()?;
        let open = guard.unclaimed_handle(handle)?;
        if !guard.state.nodes.file(open.ino)?.is_dirty() {
            return Ok(());
        }
        guard.store_buffer_unlocked(open.ino, open.opener)
    }

    /// Releases a handle after its last descriptor was closed.
    pub fn release(&self, handle: u64) {
        let mut guard = self.lock_any();
        // Before it is removed: what it has written may come to belong to another file meanwhile.
        if guard.handle(handle).is_ok_and(|open| open.mode != OpenMode::Read) {
            guard.unclaimed_handle(handle).map(drop).unwrap_or_default();
        }
        let Some(open) = guard.state.handles.remove(&handle) else { return };
        if open.is_behind {
            guard.mark_outdated(open.ino);
        }
        if let (OpenMode::Write(_), Ok(file)) = (open.mode, guard.state.nodes.file_mut(open.ino)) {
            file.writers = file.writers.saturating_sub(1);
            if file.writers == 0 {
                guard.end_writing(open.ino, open.opener);
            }
        }
        guard.release_node(open.ino);
    }

    /// Stores open files and settles parked memories before the tree goes away.
    pub fn close(&self) {
        let mut guard = self.lock_any();
        guard.wait_until_all_is_stored();
        guard.settle_all();
        for ino in guard.state.nodes.inos() {
            if guard.state.nodes.file(ino).is_ok_and(|file| file.writers > 0 && file.is_dirty()) {
                // Nobody has been promised that this is stored, and no error can be returned now.
                guard.store_buffer(ino, ProcessId::UNKNOWN).unwrap_or_default();
            }
        }
        drop(guard);
        self.recorder.finish();
    }
}

impl Buffer {
    pub(super) fn touched(&mut self, now: Timestamp, writer: ProcessId) {
        if !self.writers.contains(&writer) {
            self.writers.push(writer);
        }
        self.state = BufferState::Dirty;
        self.blank = Blank::No;
        self.is_given_up = false;
        self.changed_at = now;
    }
}

impl TreeGuard<'_> {
    /// Notes that a program empties an open file, to write all of it. As with `O_TRUNC`, what it writes comes
    /// of the text that it has read before, which may be older than the one that it opened.
    fn begin_anew(&mut self, handle: u64) -> Result<(), TreeError> {
        let open = self.handle(handle)?;
        let Some(known) = self.base_known_to(open.opener, open.ino) else { return Ok(()) };
        let buffer = self.state.nodes.buffer_mut(open.ino)?;
        if buffer.state == BufferState::Clean {
            buffer.base = Some(known.clone());
            self.state.handles.get_mut(&handle).ok_or(TreeError::BadHandle)?.base = Some(known);
        }
        Ok(())
    }

    /// Makes sure that there is a buffer.
    pub(super) fn load_buffer(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.buffer.is_some() {
            return Ok(());
        }
        // A text that was read earlier may be outdated, and would be written back.
        let id = file.memory.ok_or(TreeError::Stale)?;
        let memory = self.engine().memory(self.store(), id, View::Full).map_err(gone)?;
        let content = memory.content.ok_or(TreeError::Storage)?;
        self.state.nodes.file_mut(ino)?.buffer = Some(Buffer::stored(&content, memory.updated_at));
        Ok(())
    }

    /// Makes sure that there is a buffer for writes through a handle, filled with the text that its
    /// program can have read, unless it can only append.
    ///
    /// Filling it with what is stored now is the tempting way, and it loses the changes of others: a
    /// program that has read the old text writes all of it back, or writes to offsets that mean
    /// something else now.
    fn load_buffer_of(&mut self, open: &Handle, position: Position) -> Result<(), TreeError> {
        let file = self.state.nodes.file(open.ino)?;
        let (Some(base), Position::Anywhere) = (&open.base, position) else {
            return self.load_buffer(open.ino);
        };
        if file.memory.is_none() || file.is_dirty() {
            return self.load_buffer(open.ino);
        }
        let is_there = |buffer: &Buffer| buffer.base.as_ref() == Some(base);
        if !file.buffer.as_ref().is_some_and(is_there) {
            let buffer = Buffer::stored(base, self.now());
            self.state.nodes.file_mut(open.ino)?.buffer = Some(buffer);
            self.mark_outdated(open.ino);
        }
        Ok(())
    }

    /// Fails if a file may not have this size.
    fn require_fit(&self, ino: Ino, size_bytes: usize) -> Result<(), TreeError> {
        let limit = self.engine().limits().content_size_bytes_max;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let file = self.state.nodes.file(ino)?;
        if !file.is_scratch {
            return if size_bytes <= limit { Ok(()) } else { Err(TreeError::TooLarge) };
        }
        let length = file.buffer.as_ref().map_or(0, |buffer| buffer.bytes.len());
        let others = self.state.nodes.scratch_size_bytes().saturating_sub(length);
        if size_bytes > SCRATCH_FILE_SIZE_BYTES_MAX {
            return Err(TreeError::TooLarge);
        }
        if size_bytes > length && others.saturating_add(size_bytes) > SCRATCH_SIZE_BYTES_MAX {
            return Err(TreeError::DiskFull);
        }
        Ok(())
    }

    /// Stores and drops the buffer of a file whose last writer is gone.
    fn end_writing(&mut self, ino: Ino, process: ProcessId) {
        let state = self.state.nodes.buffer_mut(ino).map(|buffer| buffer.state);
        if state == Ok(BufferState::Dirty)
            && let Err(error) = self.store_buffer_unlocked(ino, process)
        {
            // A mapping was changed after the last close, so no call can return the error.
            tracing::error!(?error, "a write through a mapping after the last close was lost");
        }
        self.finish_writing(ino);
    }

    /// Drops the buffer of a file without writers, and with it what could not be stored.
    fn finish_writing(&mut self, ino: Ino) {
        let is_backup = self.is_backup_of_parked(ino);
        let Ok(file) = self.state.nodes.file_mut(ino) else { return };
        let failed =
            matches!(file.buffer.as_ref().map(|buffer| buffer.state), Some(BufferState::Failed(_)));
        if file.memory.is_some() {
            file.buffer = None;
            if failed {
                self.mark_outdated(ino);
            }
        } else if !file.is_scratch && !is_backup {
            // It could not be stored, or another door has deleted it.
            self.invalidate_entry(ino);
            self.state.nodes.detach(ino);
        }
    }
}
