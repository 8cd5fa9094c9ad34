//! Opening files.

use std::sync::Arc;

use quipu_core::model::Content;

use super::{Tree, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{Blank, BufferState, Extent, Ino, ProcessId};

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    pub(super) ino: Ino,
    /// The inode that the kernel has opened, if that had been replaced.
    pub(super) opened_as: Ino,
    pub(super) mode: OpenMode,
    pub(super) opener: ProcessId,
    /// The merge base: the newest stored text that a program which may write through this handle can
    /// have read. Its writes are a change of this text, whatever other doors have stored since.
    /// `None` for readers and if there was no stored text.
    pub(super) base: Option<Content>,
    /// Whether the kernel has cached a part of `base` that differs from what is stored.
    pub(super) is_behind: bool,
    /// Whether reads bypass the kernel's cache.
    pub(super) is_apart: bool,
    /// The text that a reader apart from the cache reads, until it has seen its end.
    pub(super) pinned: Option<PinnedText>,
}

/// A text of which a program knows a part or the size, so that the rest has to fit.
#[derive(Clone, Debug)]
pub(super) struct PinnedText {
    pub(super) bytes: Arc<[u8]>,
    /// Whether a part was read, so that reading from the beginning begins another text.
    pub(super) is_begun: bool,
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
    /// Whether reads must bypass the kernel's cache, because its pages or its size may be those of
    /// another text.
    pub is_apart: bool,
}

/// How often a call is tried that others have overtaken.
const ATTEMPTS_MAX: usize = 10;

impl Tree {
    /// Opens a file.
    pub fn open(&self, ino: Ino, mode: OpenMode, process: ProcessId) -> Result<Opened, TreeError> {
        if mode != OpenMode::Read {
            self.wait_for_storage_if_parked();
        }
        let mut guard = self.lock_fresh()?;
        guard.unless_overtaken(|guard| {
            let present = guard.present(ino)?;
            let opened = guard.open(present, mode, process)?;
            if present == ino {
                return Ok(opened);
            }
            // The kernel has another inode in mind. It must not mix the pages of the two.
            if let Some(open) = guard.state.handles.get_mut(&opened.handle) {
                open.opened_as = ino;
                open.is_apart = true;
            }
            Ok(Opened { is_apart: true, ..opened })
        })
    }
}

impl TreeGuard<'_> {
    pub(super) fn handle(&self, handle: u64) -> Result<Handle, TreeError> {
        self.state.handles.get(&handle).cloned().ok_or(TreeError::BadHandle)
    }

    /// Returns a handle whose file no write in flight claims. The handle may get another file while this
    /// waits.
    pub(super) fn unclaimed_handle(&mut self, handle: u64) -> Result<Handle, TreeError> {
        loop {
            let open = self.handle(handle)?;
            if !self.is_claimed(open.ino) {
                return Ok(open);
            }
            self.wait_for_storing();
        }
    }

    /// Repeats a call that has met a file which others have just replaced or deleted.
    ///
    /// A call waits for writes in flight with the lock released, and the storage does not wait for the
    /// tree either. `ESTALE` makes the kernel look the name up again, but only once.
    pub(super) fn unless_overtaken<T>(
        &mut self,
        mut call: impl FnMut(&mut Self) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        for _ in 1..ATTEMPTS_MAX {
            match call(self) {
                Err(TreeError::Stale) => self.catch_up()?,
                done => return done,
            }
        }
        call(self)
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
        let is_somebody_behind = self.is_somebody_behind(ino)?;
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
        let is_unchanged = file.outdated.is_none() && !self.has_changed_recently(ino);
        // While a rename over it is in flight, a file may already show the text that replaces its own.
        let is_apart = is_somebody_behind || !is_unchanged || self.is_claimed(ino);
        if let (OpenMode::Read, Some(memory)) = (mode, file.memory) {
            // The kernel may have the text cached and never send a read.
            self.engine().note_reading(self.store(), memory);
            self.note_read_by(process, ino)?;
        }
        self.state.nodes.get_mut(ino)?.handles += 1;
        let handle = self.new_handle();
        let open = Handle {
            ino,
            opened_as: ino,
            mode,
            opener: process,
            base,
            is_behind: false,
            is_apart,
            pinned: None,
        };
        self.state.handles.insert(handle, open);
        Ok(Opened { handle, is_unchanged, is_apart })
    }

    /// Returns whether another door has changed a file moments ago.
    pub(super) fn has_changed_recently(&self, ino: Ino) -> bool {
        let (recent, now) = (&self.state.recent, self.engine().now());
        recent.is_any(now)
            && matches!(self.state.nodes.path(ino), Ok(Some(path)) if recent.contains(&path, now))
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
}
