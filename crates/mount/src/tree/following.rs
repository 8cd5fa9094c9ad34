//! Following the change feed: changes of other doors, and the invalidations that they need.
//!
//! A thread of the mount follows the feed continuously, but it may be a moment behind. So calls that
//! a program can order after a change (lookups, opens, attributes) first catch up themselves, which
//! is one comparison of sequence numbers while nobody writes. The thread alone would leave a window
//! in which an open returns a text that was replaced before it.
//!
//! The tree's own versions are in the feed too. They are recognized by their ids and skipped:
//! invalidating for them would make every write drop the cache that it has just filled.

use quipu_core::Error;
use quipu_core::backend::{Event, Reader, Sequence};
use quipu_core::engine::{Changes, changes_after};
use quipu_core::model::{MemoryPath, Operation, Version, VersionId, View};

use super::{Invalidation, StoreStatus, Tree, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{BufferState, Ino, ROOT};

/// How many changes are read from the feed at a time.
const CHANGES_MAX: usize = 1000;

impl Tree {
    /// Applies all changes of other doors so far, and returns the position in the feed.
    pub fn follow(&self) -> Result<Sequence, Error> {
        let mut guard = self.lock_any();
        guard.catch_up()?;
        Ok(guard.state.seen)
    }

    /// Counts what can have changed the past of the store so far.
    pub(crate) fn redactions_count(&self) -> u64 {
        self.lock_any().state.redactions_count
    }

    /// Returns the number of the pending invalidation of a file's cached text, if there is one.
    pub fn outdated(&self, ino: Ino) -> Option<u64> {
        self.lock_any().state.nodes.file(ino).ok()?.outdated
    }

    /// Notes that the kernel has dropped its cached text for this invalidation. A newer one stays
    /// pending.
    pub fn dropped(&self, ino: Ino, outdated: Option<u64>) {
        if let Ok(file) = self.lock_any().state.nodes.file_mut(ino)
            && file.outdated == outdated
        {
            file.outdated = None;
        }
    }
}

impl TreeGuard<'_> {
    /// Applies the changes of other doors that were acknowledged so far.
    pub(super) fn catch_up(&mut self) -> Result<(), Error> {
        self.catch_up_and(|_| Ok(()))
    }

    /// Applies the changes of other doors that were acknowledged so far, and returns what `question` finds
    /// right after the last of them.
    ///
    /// All of it is read from one snapshot. While a mount writes, nothing can be answered from memory, and
    /// a snapshot for each question took longer than the rest of a lookup.
    pub(super) fn catch_up_and<T>(
        &mut self,
        question: impl Fn(&dyn Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(past) = &self.tree.past {
            self.catch_up_with_present(past)?;
            return self.engine().read(question);
        }
        loop {
            let seen = self.state.seen;
            let (changes, answer) = self.engine().read(|reader| {
                let newest = reader.newest_change()?.0;
                let changes = if newest == seen {
                    Changes::default()
                } else {
                    changes_after(reader, seen, CHANGES_MAX)?
                };
                Ok(((changes, newest), question(reader)?))
            })?;
            let (changes, newest) = changes;
            if changes.has_gap {
                self.distrust_everything();
                if changes.items.is_empty() {
                    // The feed is that of an older copy, which this is ahead of.
                    self.state.seen = newest;
                }
            }
            let changes = changes.items;
            for change in &changes {
                if change.store == self.store() && self.observe(change.event).is_err() {
                    self.distrust_everything();
                }
                self.state.seen = change.sequence;
            }
            if changes.len() < CHANGES_MAX {
                return Ok(answer);
            }
        }
    }

    fn observe(&mut self, event: Event) -> Result<(), TreeError> {
        match event {
            Event::Version(id) => {
                if self.state.own.remove(&id) {
                    return Ok(());
                }
                self.state.changes_count += 1;
                self.state.nodes.forget_absent();
                let version = self.engine().version(self.store(), id, View::Basic);
                match version.map_err(TreeError::from) {
                    Ok(version) if self.may_be_own(&version) => {
                        self.state.deferred.push(version);
                    }
                    Ok(version) => self.observe_version(&version),
                    // The version was pruned already, so what it changed is unknown.
                    Err(TreeError::NotFound) => self.distrust_everything(),
                    Err(error) => return Err(error),
                }
            }
            Event::StoreArchived => {
                self.state.record = None;
                self.state.status = StoreStatus::Archived;
                // Only the modes have changed.
                for ino in self.state.nodes.inos() {
                    self.invalidate(Invalidation::Attributes(ino));
                }
            }
            Event::StoreDeleted => {
                self.state.status = StoreStatus::Deleted;
                self.distrust_everything();
            }
            Event::StoreUpdated => self.state.record = None,
            Event::Redacted(_) => self.state.redactions_count += 1,
            Event::StoreCreated => self.store_restored()?,
            Event::Restarted => self.distrust_everything(),
        }
        Ok(())
    }

    /// Shows the store again after it was deleted and restored.
    fn store_restored(&mut self) -> Result<(), TreeError> {
        if self.state.status == StoreStatus::Deleted {
            self.state.record = None;
            let is_archived = self.record()?.archived_at.is_some();
            self.state.status = if is_archived { StoreStatus::Archived } else { StoreStatus::Open };
            self.distrust_everything();
        }
        Ok(())
    }

    /// Invalidates everything, when the changes are not known in detail.
    pub(super) fn distrust_everything(&mut self) {
        self.state.changes_count += 1;
        self.state.redactions_count += 1;
        self.state.record = None;
        self.state.usage = None;
        self.state.nodes.forget_absent();
        for ino in self.state.nodes.inos() {
            self.distrust(ino, None);
        }
        let now = self.engine().now();
        self.state.recent.note_all(now);
    }

    /// Marks the kernel's cached text of a file as outdated, and has it dropped.
    ///
    /// Until the kernel has confirmed that, every open must refuse to keep the cache. Clearing the mark
    /// at the first such open is the tempting way, and it is wrong: another open may be answered
    /// concurrently, before the pages are gone.
    pub(super) fn mark_outdated(&mut self, ino: Ino) {
        self.state.outdated_count += 1;
        let count = self.state.outdated_count;
        if let Ok(file) = self.state.nodes.file_mut(ino) {
            file.outdated = Some(count);
        }
        self.invalidate(Invalidation::Content(ino));
    }

    /// Invalidates the text and the name of a node; its newest version may be known.
    pub(super) fn distrust(&mut self, ino: Ino, version: Option<VersionId>) {
        // The name first: the kernel orders this after lookups in flight, which may carry old attributes.
        self.invalidate_entry(ino);
        if let Ok(file) = self.state.nodes.file_mut(ino)
            && file.memory.is_some()
        {
            file.text = None;
            file.version = version;
            if file.buffer.as_ref().is_some_and(|buffer| buffer.state == BufferState::Clean) {
                file.buffer = None;
            }
        }
        self.mark_outdated(ino);
        if let Ok(Some(path)) = self.state.nodes.path(ino) {
            self.note_recent(path);
        }
    }

    fn note_recent(&mut self, path: MemoryPath) {
        // Not the time that the files of a past have, which does not move on.
        let now = self.engine().now();
        self.state.recent.note(path, now);
    }

    pub(super) fn observe_version(&mut self, version: &Version) {
        let is_deleted = version.operation == Operation::Deleted;
        let path = version.path.as_ref().filter(|_| !is_deleted);
        if is_deleted {
            self.forget_parked(version.memory);
        }
        for ino in self.state.nodes.files_of(version.memory) {
            let here = self.state.nodes.path(ino).ok().flatten();
            if here.is_some() && here.as_ref() == path {
                self.distrust(ino, Some(version.id));
            } else {
                self.moved_away(ino, version);
            }
        }
        if let Some(path) = path {
            self.note_recent(path.clone());
            self.appeared(path);
        }
    }

    /// Detaches a node whose memory was moved or deleted by another door.
    fn moved_away(&mut self, ino: Ino, version: &Version) {
        let is_deleted = version.operation == Operation::Deleted;
        let parents = self.parents(ino);
        self.invalidate_entry(ino);
        let Ok(file) = self.state.nodes.file(ino) else { return };
        let is_written = file.writers > 0;
        let memory = (!is_deleted).then_some(version.memory);
        if self.state.nodes.set_memory(ino, memory).is_err() || (is_deleted && is_written) {
            // Its writer will store it again on close.
            return;
        }
        self.state.nodes.detach_replaced(ino);
        self.invalidate(Invalidation::Attributes(ino));
        for directory in parents {
            self.vanish_if_empty(directory);
        }
    }

    /// Returns the ancestors of a node, the nearest first, without the root.
    pub(super) fn parents(&self, ino: Ino) -> Vec<Ino> {
        let parent = |ino: Ino| self.state.nodes.get(ino).ok()?.place.as_ref().map(|place| place.0);
        std::iter::successors(parent(ino), |&above| parent(above))
            .filter(|&above| above != ROOT)
            .collect()
    }

    pub(super) fn vanish_if_empty(&mut self, ino: Ino) {
        let Ok(Some(path)) = self.state.nodes.path(ino) else { return };
        let Ok(directory) = self.state.nodes.directory(ino) else { return };
        let holds = |child: &Ino| {
            self.lives_in_mount_only(*child)
                || self.state.nodes.directory(*child).is_ok_and(|directory| directory.kept)
        };
        if directory.kept || directory.children.values().any(holds) {
            return;
        }
        if let Ok(None) = self.stored(&path) {
            self.invalidate_entry(ino);
            self.state.nodes.detach(ino);
        }
    }

    /// Invalidates the first unknown name on the path of a new memory.
    fn appeared(&mut self, path: &MemoryPath) {
        let mut parent = ROOT;
        let mut names = path.as_str().split('/').skip(1).peekable();
        while let Some(name) = names.next() {
            let child = self.state.nodes.child(parent, name);
            let is_directory = child.is_some_and(|child| self.state.nodes.directory(child).is_ok());
            let should_be_directory = names.peek().is_some();
            if !(is_directory && should_be_directory) {
                self.invalidate(Invalidation::Entry { parent, name: name.to_owned() });
            }
            match child {
                Some(child) if is_directory && !should_be_directory => {
                    // A memory took the place of a directory that existed in the mount only.
                    self.state.nodes.detach(child);
                    return;
                }
                Some(child) if is_directory => parent = child,
                Some(_) | None => return,
            }
        }
    }
}
