//! Files: opening, writing, closing.

use std::time::Duration;

use quipu_core::model::{Content, Timestamp, View};

use super::{Attributes, Tree, TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{Blank, Buffer, BufferState, Extent, Ino, ProcessId};
use crate::process::is_bystander;

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    pub(super) ino: Ino,
    pub(super) mode: OpenMode,
    pub(super) opener: ProcessId,
    /// The merge base: the newest stored text that a program which may write through this handle can
    /// have read. Its writes are a change of this text, whatever other doors have stored since.
    /// `None` for readers and if there was no stored text.
    pub(super) base: Option<Content>,
    /// Whether the kernel has cached a part of `base` that differs from what is stored.
    pub(super) is_behind: bool,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Read-only.
    Read,
    /// For writing, possibly for reading too.
    Write(Writing),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    /// What opening does to the text.
    pub start: Start,
    /// Where writes go.
    pub position: Position,
}

/// What opening does to the text of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    Kept,
    /// Truncates it.
    Emptied,
}

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// To the offset of each write.
    Anywhere,
    /// To the current end (`O_APPEND`).
    AtEnd,
}

/// An opened file.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Its handle.
    pub handle: u64,
    /// Whether the kernel may keep its cached text.
    pub is_unchanged: bool,
    /// Whether reads must bypass the kernel's cache, because its pages belong to a writer that has
    /// not seen the stored text yet.
    pub is_apart: bool,
}

/// Size limits of one scratch file and of all together.
const SCRATCH_FILE_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
const SCRATCH_SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long after a change by another door opens make the kernel ask for the size again.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

impl Tree {
    /// Opens a file.
    pub fn open(&self, ino: Ino, mode: OpenMode, process: ProcessId) -> Result<Opened, TreeError> {
        if mode != OpenMode::Read {
            self.wait_for_storage_if_parked();
        }
        let mut guard = self.lock_fresh()?;
        let present = guard.present(ino)?;
        let opened = guard.open(present, mode, process)?;
        // The kernel has another inode in mind. It must not mix the pages of the two.
        Ok(Opened { is_apart: opened.is_apart || present != ino, ..opened })
    }

    /// Writes to an open file's buffer.
    pub fn write(
        &self,
        handle: u64,
        offset: u64,
        bytes: &[u8],
        writer: ProcessId,
    ) -> Result<(), TreeError> {
        let mut guard = self.lock()?;
        let open = guard.handle(handle)?;
        let OpenMode::Write(writing) = open.mode else { return Err(TreeError::BadHandle) };
        guard.wait_until_stored(open.ino);
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
        if writing.position != Position::AtEnd {
            buffer.extent = Extent::Rewritten;
        } else if usize::try_from(offset) != Ok(start) {
            // The kernel has cached the bytes at the offset that it took for the end.
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
        let open = guard.handle(handle)?;
        guard.wait_until_stored(open.ino);
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
        let open = guard.handle(handle)?;
        guard.wait_until_stored(open.ino);
        if !guard.state.nodes.file(open.ino)?.is_dirty() {
            return Ok(());
        }
        guard.store_buffer_unlocked(open.ino, open.opener)
    }

    /// Releases a handle after its last descriptor was closed.
    pub fn release(&self, handle: u64) {
        let mut guard = self.lock_any();
        let Some(open) = guard.state.handles.remove(&handle) else { return };
        if open.mode != OpenMode::Read {
            guard.wait_until_stored(open.ino);
        }
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
    fn touched(&mut self, now: Timestamp, writer: ProcessId) {
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
    pub(super) fn handle(&self, handle: u64) -> Result<Handle, TreeError> {
        self.state.handles.get(&handle).cloned().ok_or(TreeError::BadHandle)
    }

    /// Returns the file that is now at the name of a file that was replaced.
    ///
    /// The kernel looks a name up first and opens it then, and either can be replaced in between. `ESTALE`
    /// makes the kernel look again, but only once: a program that opens a file which others keep
    /// replacing would fail now and then. Opening the present file is what it asked for.
    fn present(&mut self, ino: Ino) -> Result<Ino, TreeError> {
        let node = self.state.nodes.get(ino)?;
        let (None, Some((parent, name))) = (&node.place, node.left.clone()) else {
            return Ok(ino);
        };
        // If there is none, the kernel looks the name up again, and says so.
        let missing = |error: TreeError| error.instead_of(TreeError::NotFound, TreeError::Stale);
        let present = self.find(parent, &name).map_err(missing)?;
        // A directory is opened by another call.
        self.state.nodes.file(present).map_err(|_directory| TreeError::Stale)?;
        Ok(present)
    }

    pub(super) fn open(
        &mut self,
        ino: Ino,
        mode: OpenMode,
        process: ProcessId,
    ) -> Result<Opened, TreeError> {
        match mode {
            // It may be gone a moment later, and a file that is open stays readable.
            OpenMode::Read if self.is_claimed(ino) => self.load_text(ino)?,
            OpenMode::Read => {}
            OpenMode::Write(_) => self.wait_until_stored(ino),
        }
        self.state.nodes.file(ino)?;
        // The kernel may not know yet that the file is gone; on ESTALE it looks the name up again.
        self.state.nodes.get(ino)?.place.as_ref().ok_or(TreeError::Stale)?;
        if mode != OpenMode::Read && self.state.nodes.file(ino)?.is_report {
            return Err(TreeError::NotPermitted);
        }
        let mut base = None;
        let is_apart = self.is_somebody_behind(ino)?;
        if let OpenMode::Write(writing) = mode {
            self.require_writable()?;
            self.settle_backup(ino)?;
            self.load_buffer(ino)?;
            let known = self.base_known_to(process, ino);
            let now = self.now();
            let buffer = self.state.nodes.buffer_mut(ino)?;
            if writing.start == Start::Emptied {
                // A program that truncates and rewrites a file has usually read it before.
                if let (BufferState::Clean, Some(known)) = (buffer.state, known) {
                    buffer.base = Some(known);
                }
                buffer.bytes.clear();
                buffer.touched(now, process);
                buffer.blank = Blank::Yes;
                buffer.extent = Extent::Rewritten;
                buffer.refused = None;
            }
            base.clone_from(&buffer.base);
            self.state.nodes.file_mut(ino)?.writers += 1;
        }
        let file = self.state.nodes.file(ino)?;
        // Answers that were on their way when the kernel dropped the size may have brought it back.
        let is_settled = file.outdated_at.is_none_or(|at| at.plus(SETTLED_AFTER) < self.now());
        let is_unchanged = file.outdated.is_none() && is_settled;
        if let (OpenMode::Read, Some(memory)) = (mode, file.memory) {
            // The kernel may have the text cached and never send a read.
            self.engine().note_reading(self.store(), memory);
            self.note_read_by(process, ino)?;
        }
        self.state.nodes.get_mut(ino)?.handles += 1;
        let handle = self.new_handle();
        let open = Handle { ino, mode, opener: process, base, is_behind: false };
        self.state.handles.insert(handle, open);
        Ok(Opened { handle, is_unchanged, is_apart })
    }

    /// Returns whether a writer of the file has not seen the text that is stored.
    fn is_somebody_behind(&mut self, ino: Ino) -> Result<bool, TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.writers == 0 || file.is_dirty() || file.memory.is_none() {
            return Ok(false);
        }
        self.load_text(ino)?;
        let file = self.state.nodes.file(ino)?;
        let buffered = file.buffer.as_ref().and_then(|buffer| buffer.base.as_ref());
        let Some(stored) = buffered.or(file.text.as_ref()) else { return Ok(false) };
        let is_behind = |open: &Handle| {
            open.ino == ino && open.base.as_ref().is_some_and(|base| base != stored)
        };
        Ok(self.state.handles.values().any(is_behind))
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
