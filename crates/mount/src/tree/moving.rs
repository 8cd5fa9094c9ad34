//! Renames, and what editors do with them.
//!
//! Editors save by writing a new file and renaming it over the old one, or by moving the old one
//! away first. In both cases the memory goes on: the new text is its next version. A memory that
//! is moved to a backup name is therefore *parked* for a moment: the mount shows the move, the
//! store still has the memory in its place, and the next file at that place continues it.

use std::ffi::OsStr;
use std::time::Duration;

use quipu_core::engine::{MemoryUpdate, Survivor, Written};
use quipu_core::model::{Content, MemoryId, MemoryPath, Timestamp, View};
use quipu_core::{Error, ErrorKind};

use super::places::Kind;
use super::problems::Trouble;
use super::{Notice, Tree, Turn, valid_name};
use crate::error::TreeError;
use crate::names::Making;
use crate::nodes::{BufferState, Extent, Ino, Maker, ROOT};
use crate::process::are_relatives;

/// What a rename does with what is at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It takes its place.
    Yes,
    /// It fails.
    No,
}

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

/// Where a rename goes.
struct Destination<'n> {
    parent: Ino,
    name: &'n str,
    path: MemoryPath,
    /// What is there now.
    node: Option<Ino>,
    /// The memory that is there, or was until moments ago.
    memory: Option<MemoryId>,
}

impl Tree {
    /// Moves a file or directory, on behalf of a process.
    pub fn rename(
        &self,
        from: (Ino, &OsStr),
        to: (Ino, &OsStr),
        overwrite: Overwrite,
        maker: Maker,
    ) -> Result<(), TreeError> {
        let mut turn = self.fresh_turn()?;
        turn.require_writable()?;
        let name = valid_name(to.1)?;
        let from_name = from.1.to_str().ok_or(TreeError::NotFound)?;
        turn.wait_until_stored_at(&[(from.0, from_name), (to.0, name)]);
        let ino = turn.find(from.0, from_name)?;
        let path = turn.state.nodes.child_path(to.0, name)?;
        let node = match turn.find(to.0, name) {
            Ok(node) => Some(node),
            Err(TreeError::NotFound) => None,
            Err(error) => return Err(error),
        };
        if node == Some(ino) {
            return Ok(());
        }
        if node.is_some() && overwrite == Overwrite::No {
            return Err(TreeError::Exists);
        }
        turn.refuse_report(Some(ino))?;
        turn.refuse_report(node)?;
        match (turn.kind(ino)?, node.map(|node| turn.kind(node)).transpose()?) {
            (Kind::Directory, Some(Kind::File)) => return Err(TreeError::NotDirectory),
            (Kind::File, Some(Kind::Directory)) => return Err(TreeError::IsDirectory),
            (Kind::Directory, _) => turn.move_directory(ino, (to.0, name, &path), node)?,
            (Kind::File, _) => {
                let memory = turn.memory_at(node, &path);
                let to = Destination { parent: to.0, name, path, node, memory };
                turn.move_file(ino, &to, maker)?;
            }
        }
        turn.entries_changed(to.0);
        turn.keep_if_empty(from.0)
    }

    /// Ends what was parked long enough ago, and returns when to come back, if ever.
    pub fn settle_due(&self) -> Option<Duration> {
        let mut turn = self.any_turn();
        let now = turn.now();
        while let Some(index) = turn.state.parked.iter().position(|parked| parked.until <= now) {
            let parked = turn.state.parked.swap_remove(index);
            turn.settle_or_show(parked);
        }
        let next = turn.state.parked.iter().map(|parked| parked.until).min()?;
        let micros = next.as_micros().saturating_sub(now.as_micros());
        Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }
}

impl Turn<'_> {
    fn memory_at(&self, node: Option<Ino>, path: &MemoryPath) -> Option<MemoryId> {
        let memory = node.and_then(|node| self.state.nodes.file(node).ok()?.memory);
        memory.or_else(|| self.parked_memory(path))
    }

    fn move_file(&mut self, ino: Ino, to: &Destination<'_>, maker: Maker) -> Result<(), TreeError> {
        if self.returns_to_its_place(ino, to)? {
            return Ok(());
        }
        self.take_over_parked(ino)?;
        if let Some(node) = to.node {
            self.keep_readable(node);
        }
        match self.state.nodes.file(ino)?.memory {
            None => self.move_new_file(ino, to, maker)?,
            Some(memory) => self.move_memory(ino, memory, to, maker)?,
        }
        if let Some(node) = to.node {
            self.overwrite(node)?;
        }
        self.state.nodes.relocate(ino, to.parent, to.name)?;
        self.unpark(&to.path);
        self.tell(Notice::Attributes(ino));
        self.store_rest(ino)
    }

    /// Takes away what was at the target of a rename; its memory, if it had one, goes on.
    fn overwrite(&mut self, node: Ino) -> Result<(), TreeError> {
        if self.is_backup_of_parked(node) {
            // Nothing else is left of the memory that this file was.
            self.take_over_parked(node)?;
            return self.remove(node);
        }
        self.orphan(node);
        Ok(())
    }

    /// Moves a file that lives in the mount only.
    fn move_new_file(
        &mut self,
        ino: Ino,
        to: &Destination<'_>,
        maker: Maker,
    ) -> Result<(), TreeError> {
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        if is_scratch && to.memory.is_none() {
            self.state.nodes.file_mut(ino)?.is_scratch = true;
            return Ok(());
        }
        let file = self.state.nodes.file_mut(ino)?;
        let is_being_written = file.writers > 0;
        let buffer = file.buffer.as_ref().ok_or(TreeError::Stale)?;
        if is_being_written && buffer.state == BufferState::Dirty && to.memory.is_none() {
            // It becomes a memory when it is closed, as any new file.
            file.is_scratch = false;
            return Ok(());
        }
        let content = Content::from_bytes(&buffer.bytes)?;
        let written = self.put_text(to, &content, maker)?;
        let file = self.state.nodes.file_mut(ino)?;
        file.is_scratch = false;
        self.adopt(ino, &content, &written)?;
        self.note_written_by(maker, &content, &written);
        if !is_being_written {
            self.state.nodes.file_mut(ino)?.buffer = None;
        }
        Ok(())
    }

    fn put_text(
        &mut self,
        to: &Destination<'_>,
        content: &Content,
        maker: Maker,
    ) -> Result<Written, Error> {
        if let Some(memory) = to.memory {
            let base = self.base_at(to, memory, maker);
            match self.tree.replace_text(memory, base.as_ref(), content) {
                // Another door deleted it just now.
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                result => {
                    let (written, overridden) = result?;
                    if let Some(version) = overridden {
                        self.report_at(to.path.as_str(), Trouble::Overridden(version));
                    }
                    return Ok(written);
                }
            }
        }
        let target = (&to.path, content);
        let none = quipu_core::engine::Precondition::None;
        self.engine().put(self.actor(), self.store(), target, none)
    }

    /// Returns the text that a process knew of the memory that it replaces, if it is another one by
    /// now.
    fn base_at(&self, to: &Destination<'_>, memory: MemoryId, maker: Maker) -> Option<Content> {
        let newest = to.node.and_then(|node| self.state.nodes.file(node).ok()?.version);
        self.base_shown_of(maker, memory, newest)
    }

    /// Moves a file that is a memory.
    fn move_memory(
        &mut self,
        ino: Ino,
        memory: MemoryId,
        to: &Destination<'_>,
        maker: Maker,
    ) -> Result<(), TreeError> {
        if to.memory == Some(memory) {
            // It was parked, and its place is still its own.
            return Ok(());
        }
        if let Some(target) = to.memory {
            let survivor =
                if self.is_just_made(ino, maker)? { Survivor::Target } else { Survivor::Moved };
            let ours = match survivor {
                Survivor::Target => self.merge_into(memory, to, target, maker)?,
                Survivor::Moved => None,
            };
            let pair = (memory, target);
            let replaced = self.engine().replace(self.actor(), self.store(), pair, survivor)?;
            self.state.own.insert(replaced.deleted.id);
            self.note_own(&replaced.written);
            if let Some(ours) = ours.as_ref().or(replaced.written.memory.content.as_ref()) {
                self.note_written_by(maker, ours, &replaced.written);
            }
            self.state.nodes.set_memory(ino, Some(replaced.written.memory.id))?;
            let file = self.state.nodes.file_mut(ino)?;
            file.version = Some(replaced.written.memory.version);
            file.text = None;
            self.outdate(ino);
            return Ok(());
        }
        let (_, old_name) = self.state.nodes.get(ino)?.place.clone().ok_or(TreeError::Stale)?;
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        if is_scratch || (self.names().is_backup(to.name) && !self.names().is_backup(&old_name)) {
            return self.park(ino, memory, to);
        }
        let update = MemoryUpdate { path: Some(to.path.clone()), ..MemoryUpdate::default() };
        let written = self.engine().update(self.actor(), self.store(), memory, &update)?;
        self.note_own(&written);
        self.state.nodes.file_mut(ino)?.version = Some(written.memory.version);
        Ok(())
    }

    /// Merges what others have changed in a memory into the new one that is about to replace it, and
    /// returns the text that was merged with theirs, if any was.
    fn merge_into(
        &mut self,
        new: MemoryId,
        to: &Destination<'_>,
        old: MemoryId,
        maker: Maker,
    ) -> Result<Option<Content>, TreeError> {
        let Some(base) = self.base_at(to, old, maker) else { return Ok(None) };
        let (ours, theirs) = (self.content(new)?, self.content(old)?);
        let merged = self.tree.merged((&base, &ours, &theirs), Extent::Rewritten);
        let Some(merged) = merged.filter(|merged| *merged != ours) else { return Ok(None) };
        let update = MemoryUpdate { content: Some(merged), ..MemoryUpdate::default() };
        let written = self.engine().update(self.actor(), self.store(), new, &update)?;
        self.note_own(&written);
        Ok(Some(ours))
    }

    fn is_just_made(&self, ino: Ino, maker: Maker) -> Result<bool, TreeError> {
        let now = self.now();
        let made = self.state.nodes.file(ino)?.maker;
        Ok(made.is_some_and(|(by, until)| until > now && are_relatives(by, maker)))
    }

    fn move_directory(
        &mut self,
        ino: Ino,
        (parent, name, path): (Ino, &str, &MemoryPath),
        target: Option<Ino>,
    ) -> Result<(), TreeError> {
        let from = self.state.nodes.path(ino)?.ok_or(TreeError::NotPermitted)?;
        if from.as_directory().contains(path) {
            return Err(TreeError::Invalid);
        }
        if let Some(target) = target {
            self.require_empty(target)?;
        }
        self.settle_below(&from)?;
        self.settle_below(path)?;
        match self.engine().rename(self.actor(), self.store(), &from, path) {
            Ok(moved) => moved.iter().for_each(|written| self.note_own(written)),
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        self.state.nodes.relocate(ino, parent, name)
    }
}

impl Turn<'_> {
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
    fn park(&mut self, ino: Ino, memory: MemoryId, to: &Destination<'_>) -> Result<(), TreeError> {
        let path = self.engine().memory(self.store(), memory, View::Basic)?.path;
        self.load_buffer(ino)?;
        let is_scratch = self.names().is_scratch(to.name, Making::Openly);
        let until = self.now().plus(PARKED_FOR);
        self.state.nodes.set_memory(ino, None)?;
        let file = self.state.nodes.file_mut(ino)?;
        file.is_scratch = is_scratch;
        file.maker = None;
        self.state.parked.push(Parked { memory, path, backup: ino, until });
        self.tell(Notice::Later);
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

    fn store_as_new(&mut self, ino: Ino) -> Result<(), TreeError> {
        self.store_buffer(ino, Maker::UNKNOWN)?;
        let file = self.state.nodes.file_mut(ino)?;
        if file.writers == 0 {
            file.buffer = None;
        }
        Ok(())
    }

    /// Moves a parked file back to where it came from, and tells whether it was that.
    fn returns_to_its_place(&mut self, ino: Ino, to: &Destination<'_>) -> Result<bool, TreeError> {
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
    fn store_rest(&mut self, ino: Ino) -> Result<(), TreeError> {
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
        let concerns = |turn: &Self, parked: &Parked| {
            let backup = turn.state.nodes.path(parked.backup).ok().flatten();
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
            self.tell(Notice::Entry { parent, name: name.to_owned() });
            let Some(child) = self.state.nodes.child(parent, name) else { break };
            parent = child;
        }
    }

    /// Does to a parked memory what its move meant: no new file took its place.
    fn settle(&mut self, parked: &Parked) -> Result<(), TreeError> {
        let file = self.state.nodes.file(parked.backup)?;
        if file.is_scratch {
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
