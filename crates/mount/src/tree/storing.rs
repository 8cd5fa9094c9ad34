//! Durable writes: what to store, as a change of which text, and outside of the tree's lock.
//!
//! A durable write takes milliseconds, nearly all of them waiting for the disk. With the lock held,
//! every open would wait for somebody else's fsync, and no two writes could join one group commit. So
//! closes, syncs, removals and renames release the lock over the write, in three steps:
//!
//! 1. with the lock: decide what to write, and *claim* the nodes, memories and paths concerned;
//! 2. without it: write;
//! 3. with the lock again: apply the result to the nodes, note the own versions, end the claims.
//!
//! The claims are what makes step 2 safe. Calls that would change a claimed node wait. A claimed node
//! stays in the table even if a lookup finds in the store that it is gone already. And a version in
//! the change feed that may be our own is deferred until step 3: the feed can deliver it before
//! this call has returned from the engine, and taking it for a foreign one would invalidate the
//! kernel's cache and drop the buffer of an open file.

use std::panic::{self, AssertUnwindSafe};

use quipu_core::engine::{MemoryUpdate, Precondition, Written};
use quipu_core::merge::{Merged, merge};
use quipu_core::model::{Content, MemoryId, MemoryPath, Version, VersionId, View};
use quipu_core::{Error, ErrorKind};

use super::problems::ProblemKind;
use super::{Claims, Invalidation, Tree, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{Blank, BufferState, Extent, Ino, ProcessId};

/// A text to be stored.
struct Job {
    content: Content,
    target: Target,
    /// Its path, for a new memory or one that was deleted meanwhile.
    path: Option<MemoryPath>,
}

enum Target {
    /// A memory, the merge base, and how the text differs from it.
    Change(MemoryId, Content, Extent),
    /// A parked memory that this text continues, and the merge base if it is known.
    Parked(MemoryId, Option<Content>),
    /// A new memory.
    New,
}

/// The result of storing a text.
struct Stored {
    written: Written,
    is_new: bool,
    /// A version of another door that could not be merged and was replaced.
    overridden: Option<VersionId>,
}

impl Stored {
    fn new(written: Written) -> Self {
        Self { written, is_new: true, overridden: None }
    }
}

/// What a durable write in flight is about.
#[derive(Debug)]
pub(super) struct Claim {
    /// The call that it belongs to.
    owner: u64,
    ino: Option<Ino>,
    memory: Option<MemoryId>,
    path: Option<MemoryPath>,
}

impl TreeGuard<'_> {
    /// Stores what a file's buffer holds, as at most one version.
    pub(super) fn store_buffer(&mut self, ino: Ino, process: ProcessId) -> Result<(), TreeError> {
        let stored = match self.job(ino, process) {
            Ok(Some(job)) => {
                let stored = self.durably(|tree| tree.perform(&job));
                self.take_over(ino, &job, stored, process)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.note_stored(ino, stored)
    }

    /// Stores what a file's buffer holds, with the lock released over the write.
    ///
    /// Only for calls that do nothing else: anything read from the state before may be outdated.
    pub(super) fn store_buffer_unlocked(
        &mut self,
        ino: Ino,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let job = match self.job(ino, process) {
            // Continuing a parked memory changes two files, which only the lock keeps consistent.
            Ok(Some(job)) if !matches!(job.target, Target::Parked(..)) => job,
            Ok(_) | Err(_) => return self.store_buffer(ino, process),
        };
        let memory = match job.target {
            Target::Change(memory, ..) => Some(memory),
            Target::Parked(..) | Target::New => None,
        };
        self.claiming(&[(Some(ino), memory, job.path.clone())], |guard| {
            let stored = guard.durably(|tree| tree.perform(&job));
            let stored = guard.take_over(ino, &job, stored, process);
            guard.note_stored(ino, stored)
        })
    }

    /// Runs a call whose durable writes release the lock, after claiming what they are about.
    ///
    /// The claims end when the call returns. By then it has to have noted its own versions, because
    /// deferred versions are examined again.
    pub(super) fn claiming<T>(
        &mut self,
        claims: &[(Option<Ino>, Option<MemoryId>, Option<MemoryPath>)],
        call: impl FnOnce(&mut Self) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        let owner = self.new_handle();
        for (ino, memory, path) in claims.iter().cloned() {
            if let Some(node) = ino.and_then(|ino| self.state.nodes.get_mut(ino).ok()) {
                node.claims += 1;
            }
            self.state.claims.push(Claim { owner, ino, memory, path });
        }
        self.claims = Claims::Held;
        let done = call(self);
        self.claims = Claims::None;
        self.state.claims.retain(|claim| claim.owner != owner);
        for ino in claims.iter().filter_map(|claim| claim.0) {
            if let Ok(node) = self.state.nodes.get_mut(ino) {
                node.claims = node.claims.saturating_sub(1);
            }
            self.state.nodes.drop_unused(ino);
        }
        self.observe_deferred();
        self.tree.stored.notify_all();
        done
    }

    /// Runs a durable write, with the lock released if its subjects are claimed.
    pub(super) fn durably<T>(
        &mut self,
        write: impl FnOnce(&Tree) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.claims == Claims::None {
            return self.tree.write_unless_stuck(write);
        }
        // A panic must end the claims as well, or others would wait for them forever.
        let write =
            |tree: &Tree| panic::catch_unwind(AssertUnwindSafe(|| tree.write_unless_stuck(write)));
        self.without_lock(write).unwrap_or_else(|_panic| {
            Err(Error::new(ErrorKind::StorageUnavailable, "storing the text failed unexpectedly"))
        })
    }

    /// Waits while a file is claimed.
    pub(super) fn wait_until_stored(&mut self, ino: Ino) {
        while self.is_claimed(ino) {
            self.wait_for_storing();
        }
    }

    /// Waits while what is at these names, or below them, is claimed.
    pub(super) fn wait_until_stored_at(&mut self, names: &[(Ino, &str)]) {
        let parent = |guard: &Self, ino| Some(guard.state.nodes.get(ino).ok()?.place.as_ref()?.0);
        let is_busy = |guard: &Self| {
            let at: Vec<_> = names
                .iter()
                .filter_map(|(ino, name)| guard.state.nodes.child(*ino, name))
                .collect();
            guard.state.claims.iter().any(|claim| {
                std::iter::successors(claim.ino, |&ino| parent(guard, ino))
                    .any(|ino| at.contains(&ino))
            })
        };
        while is_busy(self) {
            self.wait_for_storing();
        }
    }

    /// Waits while anything is claimed.
    pub(super) fn wait_until_all_is_stored(&mut self) {
        while !self.state.claims.is_empty() {
            self.wait_for_storing();
        }
    }

    /// Returns whether a node is claimed by a write in flight.
    pub(super) fn is_claimed(&self, ino: Ino) -> bool {
        self.state.claims.iter().any(|claim| claim.ino == Some(ino))
    }

    /// Returns whether a version may have been made by a write in flight.
    pub(super) fn may_be_own(&self, version: &Version) -> bool {
        self.state.claims.iter().any(|claim| {
            claim.memory == Some(version.memory)
                || (claim.path.is_some() && claim.path == version.path)
        })
    }

    fn observe_deferred(&mut self) {
        let deferred = std::mem::take(&mut self.state.deferred);
        for version in deferred {
            if self.may_be_own(&version) {
                self.state.deferred.push(version);
            } else if !self.state.own.remove(&version.id) {
                self.observe_version(&version);
            }
        }
    }

    /// Returns what to store for a file; `None` if it is not to be stored.
    fn job(&mut self, ino: Ino, process: ProcessId) -> Result<Option<Job>, TreeError> {
        let path = self.path_to_store_at(ino)?;
        let file = self.state.nodes.file(ino)?;
        let (memory, is_scratch) = (file.memory, file.is_scratch);
        let is_given_up = file.buffer.as_ref().is_some_and(|buffer| buffer.is_given_up);
        if is_scratch || is_given_up || (memory.is_none() && path.is_none()) {
            return Ok(None);
        }
        let buffer = self.state.nodes.buffer_mut(ino)?;
        if let Some(error) = buffer.refused {
            return Err(error);
        }
        let content = Content::from_bytes(&buffer.bytes)?;
        let (base, extent) = (buffer.base.clone(), buffer.extent);
        let parked = path.as_ref().and_then(|path| self.parked_memory(path));
        let target = match (memory, base, parked) {
            (Some(memory), Some(base), _) => Target::Change(memory, base, extent),
            (_, _, Some(parked)) => {
                Target::Parked(parked, self.base_known_of(process, parked, None))
            }
            (None, _, None) | (_, None, None) => Target::New,
        };
        Ok(Some(Job { content, target, path }))
    }

    /// Returns where a file is, or was when it was replaced; `None` if it was removed.
    fn path_to_store_at(&self, ino: Ino) -> Result<Option<MemoryPath>, TreeError> {
        let node = self.state.nodes.get(ino)?;
        match (&node.place, &node.left) {
            (Some(_), _) => self.state.nodes.path(ino),
            (None, Some(_)) => Ok(self.last_path(ino).ok()),
            (None, None) => Ok(None),
        }
    }

    /// Applies a finished write to its file.
    fn take_over(
        &mut self,
        ino: Ino,
        job: &Job,
        stored: Result<Stored, Error>,
        process: ProcessId,
    ) -> Result<(), TreeError> {
        let stored = stored?;
        if let Some(version) = stored.overridden {
            self.report(ino, ProblemKind::Overridden(version));
        }
        if let (Target::Parked(..), Some(path)) = (&job.target, &job.path) {
            self.note_own(&stored.written);
            self.unpark(path);
        }
        if stored.is_new && stored.written.effect.has_changed() {
            self.note_creator(ino, process)?;
        }
        self.adopt(ino, &job.content, &stored.written)?;
        self.note_written_by(process, &job.content, &stored.written);
        self.show_to_successors(ino)
    }

    fn note_stored(&mut self, ino: Ino, stored: Result<(), TreeError>) -> Result<(), TreeError> {
        let state = match stored {
            Ok(()) => BufferState::Clean,
            Err(error) => BufferState::Failed(error),
        };
        let before = self.state.nodes.buffer_mut(ino).map(|buffer| buffer.state);
        if let Err(error) = stored
            && before != Ok(state)
        {
            self.report(ino, ProblemKind::Refused(error));
        }
        if let Ok(buffer) = self.state.nodes.buffer_mut(ino) {
            buffer.state = state;
            buffer.blank = Blank::No;
            if stored.is_ok() {
                buffer.writers.clear();
            }
        }
        stored
    }

    /// Makes a file show what was stored for it.
    pub(super) fn adopt(
        &mut self,
        ino: Ino,
        ours: &Content,
        written: &Written,
    ) -> Result<(), TreeError> {
        self.note_own(written);
        self.state.changes_count += 1;
        self.state.nodes.set_memory(ino, Some(written.memory.id))?;
        let stored = written.memory.content.clone().ok_or(TreeError::Storage)?;
        let is_other = stored != *ours;
        for open in self.state.handles.values_mut().filter(|open| open.ino == ino) {
            // A writer knows what it has written, not what that was merged with. With the merged text
            // as its base, its next write would look like a removal of the changes of others.
            open.base = open.base.is_some().then(|| ours.clone());
        }
        let file = self.state.nodes.file_mut(ino)?;
        file.version = Some(written.memory.version);
        file.text = None;
        if is_other {
            file.buffer = None;
            self.mark_outdated(ino);
            return Ok(());
        }
        let mut is_shown = true;
        if let Some(buffer) = &mut file.buffer {
            buffer.base = Some(stored);
            buffer.changed_at = written.memory.updated_at;
            buffer.state = BufferState::Clean;
            buffer.extent = Extent::Appended;
            is_shown = buffer.is_shown.get();
        }
        // A write makes the kernel drop the attributes by itself. Invalidating them for every close would
        // wake another thread each time.
        if is_shown {
            self.invalidate(Invalidation::Attributes(ino));
        }
        Ok(())
    }
}

impl Tree {
    /// Stores a text. Needs no lock.
    fn perform(&self, job: &Job) -> Result<Stored, Error> {
        let saved = match &job.target {
            Target::Change(memory, base, extent) => {
                Some(self.save(*memory, (base, &job.content), *extent))
            }
            Target::Parked(memory, Some(base)) => {
                Some(self.save(*memory, (base, &job.content), Extent::Rewritten))
            }
            Target::Parked(memory, None) => Some(self.overwrite(*memory, &job.content)),
            Target::New => None,
        };
        match (saved, &job.path) {
            // Another door has deleted the memory; what was written is stored as a new one.
            (Some(Err(error)), Some(path)) if *error.kind() == ErrorKind::NotFound => {
                self.store_new(path, job)
            }
            (None, Some(path)) => self.store_new(path, job),
            (Some(saved), _) => saved,
            (None, None) => Err(Error::not_found("the file has no place any more")),
        }
    }

    /// Stores a text as a new memory, or merges it into the one that was created there meanwhile.
    fn store_new(&self, path: &MemoryPath, job: &Job) -> Result<Stored, Error> {
        let (actor, store) = (&self.settings.actor, self.settings.store);
        let created = self.engine.create(actor, store, path, &job.content);
        let Some(there) = created.as_ref().err().and_then(|error| memory_in_the_way(error, path))
        else {
            return created.map(Stored::new);
        };
        let nothing = Content::new("").expect("the empty text is a text");
        let (base, extent) = match &job.target {
            Target::Change(_, base, extent) => (base, *extent),
            Target::Parked(_, Some(base)) => (base, Extent::Rewritten),
            Target::Parked(_, None) | Target::New => (&nothing, Extent::Rewritten),
        };
        match self.save(there, (base, &job.content), extent) {
            // It is gone again, so whoever takes the path now has seen neither.
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                let target = (path, &job.content);
                self.engine.put(actor, store, target, Precondition::None).map(Stored::new)
            }
            saved => saved,
        }
    }

    /// Replaces the text of a memory unconditionally.
    fn overwrite(&self, memory: MemoryId, content: &Content) -> Result<Stored, Error> {
        let update = MemoryUpdate { content: Some(content.clone()), ..MemoryUpdate::default() };
        let (actor, store) = (&self.settings.actor, self.settings.store);
        let written = self.engine.update(actor, store, memory, &update)?;
        Ok(Stored { written, is_new: false, overridden: None })
    }

    /// Writes a text to a memory by compare-and-swap. If others have changed it since `base`, both
    /// changes are merged; if they conflict, this text wins, and theirs stays in the history.
    fn save(
        &self,
        memory: MemoryId,
        (base, content): (&Content, &Content),
        extent: Extent,
    ) -> Result<Stored, Error> {
        let (actor, store) = (&self.settings.actor, self.settings.store);
        let (mut base, mut content) = (base.clone(), content.clone());
        let mut overridden = None;
        loop {
            let precondition = Precondition::ContentIs(base.hash());
            let update = MemoryUpdate { content: Some(content.clone()), path: None, precondition };
            match self.engine.update(actor, store, memory, &update) {
                Err(error) if *error.kind() == ErrorKind::PreconditionFailed => {}
                result => {
                    return result.map(|written| Stored { written, is_new: false, overridden });
                }
            }
            let theirs = self.engine.memory(store, memory, View::Full)?;
            let version = theirs.version;
            let theirs = theirs.content.expect("the memory was read with its text");
            match self.merged((&base, &content, &theirs), extent) {
                Some(merged) => content = merged,
                None => overridden = Some(version),
            }
            base = theirs;
        }
    }

    /// Merges two changes of a text; `None` if they conflict or the result is too large.
    pub(super) fn merged(
        &self,
        (base, ours, theirs): (&Content, &Content, &Content),
        extent: Extent,
    ) -> Option<Content> {
        let limit = self.engine.limits().content_size_bytes_max;
        let appended = || {
            let added = ours.as_str().strip_prefix(base.as_str())?;
            (extent == Extent::Appended).then(|| format!("{}{added}", theirs.as_str()))
        };
        let merged = match merge(base.as_str(), ours.as_str(), theirs.as_str()) {
            Merged::Clean(text) => Some(text),
            Merged::Conflicted(_) => appended(),
        };
        let merged = merged.and_then(|text| Content::new(text).ok());
        merged.filter(|text| text.size_bytes() <= limit)
    }

    /// Gives a memory the text of a file that was renamed over it, merged from the text that the process
    /// had read, if that is known. Also returns a version of another door that could not be merged
    /// and was replaced.
    pub(super) fn replace_text(
        &self,
        memory: MemoryId,
        base: Option<&Content>,
        content: &Content,
    ) -> Result<(Written, Option<VersionId>), Error> {
        let stored = match base {
            Some(base) => self.save(memory, (base, content), Extent::Rewritten)?,
            None => self.overwrite(memory, content)?,
        };
        Ok((stored.written, stored.overridden))
    }
}

/// Returns the memory that has the path which a new one was to get.
fn memory_in_the_way(error: &Error, path: &MemoryPath) -> Option<MemoryId> {
    let ErrorKind::PathConflict { memory, path: taken } = error.kind() else { return None };
    (taken == path).then_some(*memory)
}
