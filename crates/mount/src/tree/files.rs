//! Files: opening, reading, writing, closing.

use quipu_core::engine::{Effect, MemoryUpdate, Precondition, Written};
use quipu_core::merge::{Merged, merge};
use quipu_core::model::{Content, MemoryId, Timestamp, View};
use quipu_core::{Error, ErrorKind};

use super::{Notice, Tree, Turn, gone};
use crate::error::TreeError;
use crate::nodes::{Blank, Buffer, BufferState, Extent, Ino, Maker};
use crate::process::is_bystander;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    ino: Ino,
    mode: OpenMode,
    maker: Maker,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Only for reading.
    Read,
    /// For writing, perhaps for reading too.
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

/// What opening a file does to its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    Kept,
    /// It is emptied.
    Emptied,
}

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// To the place that each write names.
    Anywhere,
    /// To the end, wherever that is by then.
    AtEnd,
}

/// An opened file.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// What to name it by.
    pub handle: u64,
    /// Whether the text is what the kernel may have kept of it.
    pub is_unchanged: bool,
}

/// How much a scratch file may hold, and all of them together.
const SCRATCH_FILE_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
const SCRATCH_SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Tree {
    /// Opens a file.
    pub fn open(&self, ino: Ino, mode: OpenMode, maker: Maker) -> Result<Opened, TreeError> {
        self.turn()?.open(ino, mode, maker)
    }

    /// Returns a part of a file's text, as whoever writes it left it.
    pub fn read(&self, ino: Ino, offset: u64, size_bytes: usize) -> Result<Vec<u8>, TreeError> {
        let mut turn = self.turn()?;
        turn.load_text(ino)?;
        let file = turn.state.nodes.file(ino)?;
        let bytes = match (&file.buffer, &file.text) {
            (Some(buffer), _) => buffer.bytes.as_slice(),
            (None, Some(text)) => text.as_str().as_bytes(),
            (None, None) => return Err(TreeError::Stale),
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(size_bytes).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }

    /// Writes to an open file's buffer.
    pub fn write(
        &self,
        handle: u64,
        offset: u64,
        bytes: &[u8],
        writer: Maker,
    ) -> Result<(), TreeError> {
        let mut turn = self.turn()?;
        let open = turn.handle(handle)?;
        let OpenMode::Write(writing) = open.mode else { return Err(TreeError::BadHandle) };
        turn.load_buffer(open.ino)?;
        let length = turn.state.nodes.buffer_mut(open.ino)?.bytes.len();
        let start = match writing.position {
            Position::AtEnd => length,
            Position::Anywhere => usize::try_from(offset).unwrap_or(usize::MAX),
        };
        let end = start.saturating_add(bytes.len());
        let fit = turn.require_fit(open.ino, end);
        let now = turn.now();
        let buffer = turn.state.nodes.buffer_mut(open.ino)?;
        if let Err(error) = fit {
            // A text without its end must not be stored as if it were whole.
            buffer.touched(now, writer);
            buffer.overflowed = true;
            return Err(error);
        }
        if buffer.bytes.len() < end {
            buffer.bytes.resize(end, 0);
        }
        if let Some(target) = buffer.bytes.get_mut(start..end) {
            target.copy_from_slice(bytes);
        }
        buffer.touched(now, writer);
        if writing.position != Position::AtEnd {
            buffer.extent = Extent::Rewritten;
        } else if usize::try_from(offset) != Ok(start) {
            // The kernel has put the bytes where it believed the end to be.
            turn.state.nodes.file_mut(open.ino)?.is_outdated = true;
            turn.tell(Notice::Content(open.ino));
        }
        Ok(())
    }

    /// Makes a file so long. If nobody has it open for writing, this is durable at once.
    pub fn truncate(&self, ino: Ino, size_bytes: u64, writer: Maker) -> Result<(), TreeError> {
        let mut turn = self.turn()?;
        turn.require_writable()?;
        if turn.state.nodes.file(ino)?.writers == 0 {
            turn.state.nodes.get(ino)?.place.as_ref().ok_or(TreeError::Stale)?;
            turn.settle_backup(ino)?;
        }
        turn.load_buffer(ino)?;
        let size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let fit = turn.require_fit(ino, size_bytes);
        let now = turn.now();
        let buffer = turn.state.nodes.buffer_mut(ino)?;
        if fit.is_ok() && buffer.bytes.len() != size_bytes {
            buffer.bytes.resize(size_bytes, 0);
            buffer.touched(now, writer);
            buffer.extent = Extent::Rewritten;
        }
        buffer.overflowed &= fit.is_err();
        let file = turn.state.nodes.file(ino)?;
        if file.writers > 0 {
            return fit;
        }
        let stored = if file.is_dirty() { turn.store_buffer(ino, Maker::UNKNOWN) } else { Ok(()) };
        turn.finish_writing(ino);
        fit.and(stored)
    }

    /// Closes one descriptor of a handle: what was written is durable when this returns.
    ///
    /// The first close of a file that was only emptied stores nothing yet, because a shell empties
    /// a file, closes a second descriptor and only then writes. The close of a process that only
    /// inherited the descriptor stores nothing either.
    pub fn flush(&self, handle: u64, closer: Maker) -> Result<(), TreeError> {
        let mut turn = self.turn()?;
        let open = turn.handle(handle)?;
        if open.mode == OpenMode::Read || !turn.state.nodes.file(open.ino)?.is_dirty() {
            return Ok(());
        }
        let buffer = turn.state.nodes.buffer_mut(open.ino)?;
        if is_bystander(closer, &buffer.writers) {
            return Ok(());
        }
        if buffer.blank == Blank::Yes {
            buffer.blank = Blank::ClosedOnce;
            return Ok(());
        }
        turn.store_buffer(open.ino, closer)
    }

    /// Makes what was written durable.
    pub fn sync(&self, handle: u64) -> Result<(), TreeError> {
        let mut turn = self.turn()?;
        let open = turn.handle(handle)?;
        if !turn.state.nodes.file(open.ino)?.is_dirty() {
            return Ok(());
        }
        turn.store_buffer(open.ino, open.maker)
    }

    /// Ends a handle.
    pub fn release(&self, handle: u64) {
        let mut turn = self.any_turn();
        let Some(open) = turn.state.handles.remove(&handle) else { return };
        if let (OpenMode::Write(_), Ok(file)) = (open.mode, turn.state.nodes.file_mut(open.ino)) {
            file.writers = file.writers.saturating_sub(1);
            if file.writers == 0 {
                turn.end_writing(open.ino, open.maker);
            }
        }
        turn.release_node(open.ino);
        if let Ok(node) = turn.state.nodes.get(open.ino)
            && node.handles == 0
            && let Ok(file) = turn.state.nodes.file_mut(open.ino)
        {
            file.text = None;
        }
    }

    /// Stores what open files hold and ends what is parked, before the tree goes away.
    pub fn close(&self) {
        let mut turn = self.any_turn();
        turn.settle_all();
        for ino in turn.state.nodes.inos() {
            if turn.state.nodes.file(ino).is_ok_and(|file| file.writers > 0 && file.is_dirty()) {
                // Nobody has been told yet that this is stored, and nobody can be told now.
                turn.store_buffer(ino, Maker::UNKNOWN).unwrap_or_default();
            }
        }
    }
}

impl Buffer {
    fn touched(&mut self, now: Timestamp, writer: Maker) {
        if !self.writers.contains(&writer) {
            self.writers.push(writer);
        }
        self.state = BufferState::Dirty;
        self.blank = Blank::No;
        self.changed_at = now;
    }
}

impl Turn<'_> {
    fn handle(&self, handle: u64) -> Result<Handle, TreeError> {
        self.state.handles.get(&handle).copied().ok_or(TreeError::BadHandle)
    }

    pub(super) fn open(
        &mut self,
        ino: Ino,
        mode: OpenMode,
        maker: Maker,
    ) -> Result<Opened, TreeError> {
        self.state.nodes.file(ino)?;
        // The kernel may not know yet that a file is gone; it asks again when it is told so.
        self.state.nodes.get(ino)?.place.as_ref().ok_or(TreeError::Stale)?;
        if let OpenMode::Write(writing) = mode {
            self.require_writable()?;
            self.settle_backup(ino)?;
            self.load_buffer(ino)?;
            let now = self.now();
            let buffer = self.state.nodes.buffer_mut(ino)?;
            if writing.start == Start::Emptied {
                buffer.bytes.clear();
                buffer.touched(now, maker);
                buffer.blank = Blank::Yes;
                buffer.extent = Extent::Rewritten;
                buffer.overflowed = false;
            }
            self.state.nodes.file_mut(ino)?.writers += 1;
        }
        let file = self.state.nodes.file_mut(ino)?;
        let is_unchanged = !std::mem::take(&mut file.is_outdated);
        if let (OpenMode::Read, Some(memory)) = (mode, file.memory) {
            // The kernel may have kept the text and never ask for it again.
            self.engine().note_reading(self.store(), memory);
        }
        self.state.nodes.get_mut(ino)?.handles += 1;
        let handle = self.new_handle();
        self.state.handles.insert(handle, Handle { ino, mode, maker });
        Ok(Opened { handle, is_unchanged })
    }

    /// Makes sure that the stored text is at hand, unless there is a buffer.
    pub(super) fn load_text(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.buffer.is_some() || file.text.is_some() {
            return Ok(());
        }
        let id = file.memory.ok_or(TreeError::Stale)?;
        let content = self.content(id)?;
        self.state.nodes.file_mut(ino)?.text = Some(content);
        Ok(())
    }

    /// Makes sure that there is a buffer.
    pub(super) fn load_buffer(&mut self, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        if file.buffer.is_some() {
            return Ok(());
        }
        // A text that was read before may be old by now, and would be written back.
        let id = file.memory.ok_or(TreeError::Stale)?;
        let memory = self.engine().memory(self.store(), id, View::Full).map_err(gone)?;
        let content = memory.content.ok_or(TreeError::Storage)?;
        self.state.nodes.file_mut(ino)?.buffer = Some(Buffer::stored(&content, memory.updated_at));
        Ok(())
    }

    pub(super) fn content(&self, id: MemoryId) -> Result<Content, TreeError> {
        let memory = self.engine().memory(self.store(), id, View::Full).map_err(gone)?;
        memory.content.ok_or(TreeError::Storage)
    }

    /// Fails if a file may not be so long.
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

    /// Stores what a file's buffer holds, as at most one version.
    pub(super) fn store_buffer(&mut self, ino: Ino, maker: Maker) -> Result<(), TreeError> {
        let stored = self.try_store(ino, maker);
        let state = match stored {
            Ok(()) => BufferState::Clean,
            Err(error) => BufferState::Failed(error),
        };
        let buffer = self.state.nodes.buffer_mut(ino)?;
        buffer.state = state;
        buffer.blank = Blank::No;
        if stored.is_ok() {
            buffer.writers.clear();
        }
        stored
    }

    fn try_store(&mut self, ino: Ino, maker: Maker) -> Result<(), TreeError> {
        let is_placed = self.state.nodes.get(ino)?.place.is_some();
        let file = self.state.nodes.file(ino)?;
        let (memory, is_scratch) = (file.memory, file.is_scratch);
        if is_scratch || (memory.is_none() && !is_placed) {
            return Ok(());
        }
        let buffer = self.state.nodes.buffer_mut(ino)?;
        if buffer.overflowed {
            return Err(TreeError::TooLarge);
        }
        let (content, base) = (Content::from_bytes(&buffer.bytes)?, buffer.base.clone());
        let extent = buffer.extent;
        let (written, is_new) = match (memory, base) {
            (Some(id), Some(base)) => match self.save(id, (base, content.clone()), extent) {
                Err(error) if *error.kind() == ErrorKind::NotFound && is_placed => {
                    (self.begin(ino, &content)?, true)
                }
                saved => (saved?, false),
            },
            (None, _) | (_, None) => (self.begin(ino, &content)?, true),
        };
        if is_new && written.effect == Effect::Changed {
            self.note_maker(ino, maker)?;
        }
        self.adopt(ino, &content, &written)
    }

    /// Writes a text to a memory. What others wrote since `base` is merged with it if that is
    /// possible; otherwise the text wins, and theirs stays in the history.
    fn save(
        &mut self,
        id: MemoryId,
        (base, content): (Content, Content),
        extent: Extent,
    ) -> Result<Written, Error> {
        let (mut base, mut content) = (base, content);
        loop {
            let precondition = Precondition::ContentIs(base.hash());
            let update = MemoryUpdate { content: Some(content.clone()), path: None, precondition };
            match self.engine().update(self.actor(), self.store(), id, &update) {
                Err(error) if *error.kind() == ErrorKind::PreconditionFailed => {}
                result => return result,
            }
            let theirs = self.engine().memory(self.store(), id, View::Full)?;
            let theirs = theirs.content.expect("the memory was read with its text");
            content = self.merged((&base, &content, &theirs), extent);
            base = theirs;
        }
    }

    fn merged(
        &self,
        (base, ours, theirs): (&Content, &Content, &Content),
        extent: Extent,
    ) -> Content {
        let limit = self.engine().limits().content_size_bytes_max;
        let appended = || {
            let added = ours.as_str().strip_prefix(base.as_str())?;
            (extent == Extent::Appended).then(|| format!("{}{added}", theirs.as_str()))
        };
        let merged = match merge(base.as_str(), ours.as_str(), theirs.as_str()) {
            Merged::Clean(text) => Some(text),
            Merged::Conflicted(_) => appended(),
        };
        let merged = merged.and_then(|text| Content::new(text).ok());
        merged.filter(|text| text.size_bytes() <= limit).unwrap_or_else(|| ours.clone())
    }

    /// Writes the first text of a file: to the memory that was moved away from its place moments
    /// ago, or to a new one.
    fn begin(&mut self, ino: Ino, content: &Content) -> Result<Written, TreeError> {
        let path = self.state.nodes.path(ino)?.ok_or(TreeError::Stale)?;
        if let Some(parked) = self.parked_memory(&path) {
            let update = MemoryUpdate { content: Some(content.clone()), ..MemoryUpdate::default() };
            let written = self.engine().update(self.actor(), self.store(), parked, &update);
            match written {
                // Another door deleted it just now.
                Err(error) if *error.kind() == ErrorKind::NotFound => self.unpark(&path),
                written => {
                    let written = written?;
                    self.note_own(&written);
                    self.unpark(&path);
                    return Ok(written);
                }
            }
        }
        let target = (&path, content);
        Ok(self.engine().put(self.actor(), self.store(), target, Precondition::None)?)
    }

    /// Makes a file what was stored for it.
    pub(super) fn adopt(
        &mut self,
        ino: Ino,
        ours: &Content,
        written: &Written,
    ) -> Result<(), TreeError> {
        self.note_own(written);
        self.state.changes_count += 1;
        let file = self.state.nodes.file_mut(ino)?;
        file.memory = Some(written.memory.id);
        file.text = None;
        let stored = written.memory.content.clone().ok_or(TreeError::Storage)?;
        let is_other = stored != *ours;
        file.is_outdated |= is_other;
        if let Some(buffer) = &mut file.buffer {
            if is_other {
                buffer.bytes = stored.as_str().as_bytes().to_vec();
            }
            buffer.base = Some(stored);
            buffer.changed_at = written.memory.updated_at;
            buffer.state = BufferState::Clean;
            buffer.extent = Extent::Appended;
        }
        self.tell(if is_other { Notice::Content(ino) } else { Notice::Attributes(ino) });
        Ok(())
    }

    /// Ends the writing of a file that nobody writes to any more.
    fn end_writing(&mut self, ino: Ino, maker: Maker) {
        let state = self.state.nodes.buffer_mut(ino).map(|buffer| buffer.state);
        if state == Ok(BufferState::Dirty)
            && let Err(error) = self.store_buffer(ino, maker)
        {
            // A mapped file was changed after its last close, so nobody can be told.
            tracing::error!(?error, "what was written after a file's last close is lost");
        }
        self.finish_writing(ino);
    }

    /// Gives up the buffer of a file that nobody writes to; what could not be stored goes with it.
    fn finish_writing(&mut self, ino: Ino) {
        let is_backup = self.is_backup_of_parked(ino);
        let Ok(file) = self.state.nodes.file_mut(ino) else { return };
        let failed =
            matches!(file.buffer.as_ref().map(|buffer| buffer.state), Some(BufferState::Failed(_)));
        if file.memory.is_some() {
            file.buffer = None;
            file.is_outdated |= failed;
            if failed {
                self.tell(Notice::Content(ino));
            }
        } else if !file.is_scratch && !is_backup {
            // It could not be stored, or another door has deleted it.
            self.tell_entry(ino);
            self.state.nodes.detach(ino);
        }
    }
}
