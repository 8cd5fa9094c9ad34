//! Which process has read which text of a memory: the merge base for saves without an open handle.
//!
//! Many programs read a file, close it, and later replace its text: they truncate and rewrite it, or
//! rename a new file over it. What they write is a change of the text that they have read. If another
//! door has changed the memory since, both changes are merged, and a three-way merge needs that text.
//!
//! In doubt, the older text is the safer base. Changes that both sides contain are merged into one,
//! while a base that is too new makes the changes of others look as if they had been reverted.

use std::collections::VecDeque;
use std::time::Duration;

use quipu_core::engine::Written;
use quipu_core::model::{Content, MemoryId, Timestamp, VersionId, View};

use super::opening::Handle;
use super::{TreeGuard, gone};
use crate::error::TreeError;
use crate::nodes::{Ino, ProcessId};
use crate::process::{are_one_process, are_relatives};

/// How long a text that was read can be a merge base.
const KNOWN_FOR: Duration = Duration::from_hours(1);
/// Limits of what is remembered; the oldest entries are dropped.
const ENTRIES_MAX: usize = 8192;
const TEXTS_SIZE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How many entries are compared with a process that writes: each takes a read of `/proc`.
const COMPARED_MAX: usize = 16;

/// Texts that were read recently, the oldest first.
#[derive(Debug, Default)]
pub(super) struct KnownTexts {
    entries: VecDeque<Entry>,
    texts_size_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    to: ProcessId,
    memory: MemoryId,
    text: KnownText,
    until: Timestamp,
}

#[derive(Clone, Debug)]
enum KnownText {
    /// A version in the history.
    Version(VersionId),
    /// What a process has written itself, before it was merged with the changes of others, or what it was
    /// shown while others were writing.
    Shown(Content),
}

impl KnownText {
    fn size_bytes(&self) -> u64 {
        match self {
            Self::Version(_) => 0,
            Self::Shown(content) => content.size_bytes(),
        }
    }
}

impl KnownTexts {
    fn add(&mut self, entry: Entry) {
        self.texts_size_bytes += entry.text.size_bytes();
        self.entries.push_back(entry);
        while self.entries.len() > ENTRIES_MAX || self.texts_size_bytes > TEXTS_SIZE_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.texts_size_bytes -= oldest.text.size_bytes();
        }
    }

    /// Returns the last text of a memory that a process itself has read, unless others have read many since.
    fn to_itself(&self, process: ProcessId, memory: MemoryId) -> Option<&KnownText> {
        let is_it = |entry: &&Entry| entry.to == process && entry.memory == memory;
        self.entries.iter().rev().take(COMPARED_MAX).find(is_it).map(|entry| &entry.text)
    }

    /// Returns the last text of a memory that a process, or else a related one, has read.
    fn to(&self, process: ProcessId, memory: MemoryId, now: Timestamp) -> Option<&KnownText> {
        let newest_first = self.entries.iter().rev();
        let of_memory =
            || newest_first.clone().filter(|entry| entry.memory == memory && entry.until > now);
        let mut found = of_memory().find(|entry| entry.to == process);
        for is_meant in [are_one_process, are_relatives] {
            found = found.or_else(|| {
                of_memory().take(COMPARED_MAX).find(|entry| is_meant(entry.to, process))
            });
        }
        found.map(|entry| &entry.text)
    }
}

impl TreeGuard<'_> {
    /// Notes that a process has opened a file to read it.
    pub(super) fn note_read_by(&mut self, process: ProcessId, ino: Ino) -> Result<(), TreeError> {
        let file = self.state.nodes.file(ino)?;
        let Some(memory) = file.memory else { return Ok(()) };
        if let Some(buffer) = &file.buffer {
            // It shows what others are writing, which may be in no version yet.
            if let Ok(shown) = Content::from_bytes(&buffer.bytes) {
                self.remember(process, memory, KnownText::Shown(shown));
            }
            return Ok(());
        }
        let version = match file.version {
            Some(version) => version,
            None => self.engine().memory(self.store(), memory, View::Basic).map_err(gone)?.version,
        };
        self.state.nodes.file_mut(ino)?.version = Some(version);
        self.remember(process, memory, KnownText::Version(version));
        Ok(())
    }

    /// Notes that a process reads an open file from the beginning, if that has changed since it was opened.
    pub(super) fn note_read_again(&mut self, open: &Handle) -> Result<(), TreeError> {
        let file = self.state.nodes.file(open.ino)?;
        let (memory, version) = (file.memory, file.version);
        let is_known = |memory: MemoryId| {
            let known = self.state.known_texts.to_itself(open.opener, memory);
            matches!((known, version), (Some(KnownText::Version(known)), Some(version)) if *known == version)
        };
        match memory {
            Some(memory) if !is_known(memory) && self.is_read_whole(open, memory)? => {
                self.note_read_by(open.opener, open.ino)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Notes that a process reads exactly this text, which others may have replaced already.
    pub(super) fn note_shown(&mut self, open: &Handle, bytes: &[u8]) -> Result<(), TreeError> {
        let memory = self.state.nodes.file(open.ino)?.memory;
        if let (Some(memory), Ok(shown)) = (memory, Content::from_bytes(bytes)) {
            self.remember(open.opener, memory, KnownText::Shown(shown));
        }
        Ok(())
    }

    /// Returns whether the kernel passes on all of a text that has changed since the file was opened.
    ///
    /// The kernel cuts what is read at the size that it knows, which may be that of the open. A text that
    /// was cut is no base: what is missing would look like removed by the program.
    fn is_read_whole(&self, open: &Handle, memory: MemoryId) -> Result<bool, TreeError> {
        let Some(KnownText::Version(known)) = self.state.known_texts.to_itself(open.opener, memory)
        else {
            return Ok(true);
        };
        let known = self.engine().version(self.store(), *known, View::Basic)?;
        let text = self.state.nodes.file(open.ino)?.text.as_ref();
        Ok(text.map(Content::size_bytes) == known.size_bytes)
    }

    /// Notes which text a process knows after it has stored one.
    pub(super) fn note_written_by(
        &mut self,
        process: ProcessId,
        ours: &Content,
        written: &Written,
    ) {
        let is_ours = written.memory.content.as_ref() == Some(ours);
        let text = if is_ours {
            KnownText::Version(written.memory.version)
        } else {
            KnownText::Shown(ours.clone())
        };
        self.remember(process, written.memory.id, text);
    }

    fn remember(&mut self, to: ProcessId, memory: MemoryId, text: KnownText) {
        if to != ProcessId::UNKNOWN {
            let until = self.now().plus(KNOWN_FOR);
            self.state.known_texts.add(Entry { to, memory, text, until });
        }
    }

    /// Returns the last text of a file that a process has read, unless it is the newest.
    pub(super) fn base_known_to(&self, process: ProcessId, ino: Ino) -> Option<Content> {
        let file = self.state.nodes.file(ino).ok()?;
        self.base_known_of(process, file.memory?, file.version)
    }

    /// Returns the last text of a memory that a process has read, unless it is version `newest`.
    pub(super) fn base_known_of(
        &self,
        process: ProcessId,
        memory: MemoryId,
        newest: Option<VersionId>,
    ) -> Option<Content> {
        match self.state.known_texts.to(process, memory, self.now())? {
            KnownText::Shown(content) => Some(content.clone()),
            KnownText::Version(version) if Some(*version) == newest => None,
            // It may have been redacted or pruned; then nothing can be merged.
            KnownText::Version(version) => {
                self.engine().version(self.store(), *version, View::Full).ok()?.content
            }
        }
    }
}
