//! The file system of a store, independent of the kernel.
//!
//! One lock protects the whole tree. A call holds it from beginning to end, so no caller ever sees
//! half of another call. Locks per file or directory are the tempting way; renames, parked memories
//! and changes of other doors touch several of each, and the lock order that they would need has no
//! natural definition. Reads mostly come out of the kernel's cache, so the lock is rarely contended,
//! except by durable writes, which therefore run without it (see `storing`).
//!
//! Stored memories are read from the engine each time. The tree keeps only what exists in the mount
//! alone: buffers, scratch files, empty directories, and what the kernel has been told.
//!
//! - `lookup`: names and attributes.
//! - `listing`: the entries of a directory.
//! - `opening`: opening files.
//! - `files`: writing and closing them.
//! - `reading`: reading open files.
//! - `creating`: creating and removing files and directories.
//! - `renaming`: renames, and saving by rename.
//! - `replaced`: files that are replaced while they are written.
//! - `parking`: memories that were moved to a backup name moments ago.
//! - `storing`: durable writes, outside of the lock.
//! - `stuck`: a write lock that is not given back.
//! - `validating`: refusing writes as early as possible.
//! - `problems`: the report of what was not stored.
//! - `known_texts`: which text a process has read, the base of a merge.
//! - `recent`: which files have changed moments ago.
//! - `following`: changes of other doors, from the change feed.
//! - `past`: the tree of a store as it was.

mod creating;
mod files;
mod following;
mod known_texts;
mod listing;
mod lookup;
mod opening;
mod parking;
mod past;
mod problems;
mod reading;
mod recent;
mod renaming;
mod replaced;
mod storing;
mod stuck;
mod validating;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use quipu_core::backend::{Sequence, Usage as StoreUsage};
use quipu_core::engine::Written;
use quipu_core::model::{Access, Actor, Store, StoreId, Timestamp, Version, VersionId};
use quipu_core::{Engine, Error};

use crate::error::TreeError;
use crate::names::NameRules;
use crate::nodes::{Ino, Nodes};

pub use creating::NewFile;

pub use listing::DirectoryEntry;
pub use lookup::{Attributes, Kind, Usage};
pub use opening::{OpenMode, Opened, Position, Start, Writing};
pub(crate) use problems::DIRECTORY as OWN_DIRECTORY;
pub use renaming::Overwrite;

use parking::Parked;

/// A store as a tree of files and directories.
#[derive(Debug)]
pub struct Tree {
    engine: Engine,
    settings: TreeSettings,
    is_frozen: bool,
    state: Mutex<State>,
    /// Notified when claims end.
    stored: Condvar,
    invalidations: Invalidations,
    recorder: problems::Recorder,
    stuck: stuck::StuckTurn,
    /// `None` for the tree of a store as it is.
    past: Option<past::OfPast>,
}

/// Where invalidations go, and what is added to the inode numbers in them.
#[derive(Clone, Debug)]
struct Invalidations {
    sender: Sender<Invalidation>,
    offset: Ino,
}

/// Which store a tree shows, and on whose behalf.
#[derive(Clone, Debug)]
pub struct TreeSettings {
    /// The store.
    pub store: StoreId,
    /// Who makes the versions.
    pub actor: Actor,
    /// What may be done.
    pub access: Access,
    /// Names of scratch and backup files.
    pub names: NameRules,
}

/// Something that a caching kernel has to drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// A directory entry, positive or negative.
    Entry {
        /// The directory.
        parent: Ino,
        /// The name.
        name: String,
    },
    /// A file's attributes and cached text.
    Content(Ino),
    /// A file's attributes.
    Attributes(Ino),
    /// Nothing; wakes the receiver, because [`Tree::settle_due`] has a new deadline.
    Wake,
}

#[derive(Debug)]
struct State {
    nodes: Nodes,
    handles: HashMap<u64, opening::Handle>,
    listings: HashMap<u64, listing::OpenDirectory>,
    /// Keys the hash of listing positions, so that nobody can construct collisions.
    listing_key: u128,
    handle_next: u64,
    parked: Vec<Parked>,
    /// Versions that this tree has made and that the feed has not delivered yet.
    own: HashSet<VersionId>,
    /// Counts changes by any door; a listing snapshot of an older count is checked again.
    changes_count: u64,
    /// Counts invalidations of cached texts.
    outdated_count: u64,
    /// The position in the change feed up to which changes have been applied.
    seen: Sequence,
    status: StoreStatus,
    /// The store itself, as of `seen`. Every change of it is in the feed.
    record: Option<Store>,
    /// How full the store was, and when.
    usage: Option<(Sequence, StoreUsage)>,
    /// Which texts processes have read recently.
    known_texts: known_texts::KnownTexts,
    /// What has changed moments ago.
    recent: recent::RecentChanges,
    /// What could not be stored recently.
    problems: problems::Problems,
    /// What the durable writes in flight are about.
    claims: Vec<storing::Claim>,
    /// Versions that may have been made by one of these.
    deferred: Vec<Version>,
    /// Counts what can have changed the past of the store: redactions, and gaps in the feed.
    redactions_count: u64,
    /// Of a tree of the past: from when on the history is complete.
    horizon: Option<Timestamp>,
    /// Of a tree of the past: whether its notice says less than it should.
    is_notice_due: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreStatus {
    Open,
    Archived,
    Deleted,
}

impl Tree {
    /// Returns the tree of a store, and the invalidations for a kernel that caches.
    pub fn new(
        engine: Engine,
        settings: TreeSettings,
    ) -> Result<(Self, Receiver<Invalidation>), Error> {
        let (sender, receiver) = channel();
        let recorder = problems::Recorder::start(engine.clone());
        let invalidations = Invalidations { sender, offset: 0 };
        Ok((Self::over(engine, settings, recorder, invalidations)?, receiver))
    }

    fn over(
        engine: Engine,
        settings: TreeSettings,
        recorder: problems::Recorder,
        invalidations: Invalidations,
    ) -> Result<Self, Error> {
        // Read before the kernel caches anything, so that no change is missed.
        let seen = engine.newest_sequence()?;
        let state = State {
            nodes: Nodes::new(engine.now()),
            handles: HashMap::new(),
            listings: HashMap::new(),
            listing_key: engine.random(),
            handle_next: 1,
            parked: Vec::new(),
            own: HashSet::new(),
            changes_count: 0,
            outdated_count: 0,
            seen,
            status: StoreStatus::Open,
            record: None,
            usage: None,
            known_texts: known_texts::KnownTexts::default(),
            recent: recent::RecentChanges::default(),
            problems: problems::Problems::default(),
            claims: Vec::new(),
            deferred: Vec::new(),
            redactions_count: 0,
            horizon: None,
            is_notice_due: false,
        };
        let is_frozen = settings.access == Access::ReadOnly && is_frozen(&engine, settings.store)?;
        Ok(Self {
            engine,
            settings,
            is_frozen,
            state: Mutex::new(state),
            stored: Condvar::new(),
            invalidations,
            recorder,
            stuck: stuck::StuckTurn::default(),
            past: None,
        })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns what the tree shows.
    pub fn settings(&self) -> &TreeSettings {
        &self.settings
    }

    /// Returns whether no text of the store can change any more.
    ///
    /// A kernel may then open files without asking: whatever text it has cached is current. Memories
    /// can still be deleted, which invalidates them as soon as the feed delivers it.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    fn lock(&self) -> Result<TreeGuard<'_>, TreeError> {
        self.lock_any().unless_deleted()
    }

    /// Locks the tree after applying every change that was acknowledged before the call.
    fn lock_fresh(&self) -> Result<TreeGuard<'_>, TreeError> {
        let mut guard = self.lock_any();
        guard.catch_up()?;
        guard.unless_deleted()
    }

    /// Like [`Tree::lock_fresh`], and finds out with the same read whether the store has nothing at a name.
    fn lock_fresh_for(&self, parent: Ino, name: &str) -> Result<TreeGuard<'_>, TreeError> {
        let mut guard = self.lock_any();
        let path = guard.state.nodes.child_path(parent, name);
        let is_known = guard.state.nodes.child(parent, name).is_some();
        let (Ok(path), false) = (path, is_known) else {
            drop(guard);
            return self.lock_fresh();
        };
        let store = guard.store();
        let is_absent =
            guard.catch_up_and(|reader| Ok(reader.overlapping(store, &path, None)?.is_none()))?;
        if is_absent {
            guard.note_absent(parent, name);
        }
        guard.unless_deleted()
    }

    fn lock_any(&self) -> TreeGuard<'_> {
        // A call that panics leaves the table consistent, so a poisoned lock is still usable.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        TreeGuard { tree: self, state: Held(Some(state)), claims: Claims::None }
    }
}

/// The state of a tree while its lock is held.
struct Held<'a>(Option<MutexGuard<'a, State>>);

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.as_deref().expect("the lock is held, except while a guard waits or writes")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_deref_mut().expect("the lock is held, except while a guard waits or writes")
    }
}

/// The locked tree, for the duration of one call.
struct TreeGuard<'a> {
    tree: &'a Tree,
    state: Held<'a>,
    claims: Claims,
}

/// Whether a guard has claimed what it writes, so that it may release the lock meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    None,
    Held,
}

impl<'a> TreeGuard<'a> {
    fn unless_deleted(self) -> Result<Self, TreeError> {
        match self.state.status {
            StoreStatus::Deleted => Err(TreeError::Stale),
            StoreStatus::Open | StoreStatus::Archived => Ok(self),
        }
    }

    /// Releases the lock, runs `work` and locks again. Anything read from the state before may be
    /// outdated afterwards.
    fn without_lock<T>(&mut self, work: impl FnOnce(&'a Tree) -> T) -> T {
        drop(self.state.0.take());
        let done = work(self.tree);
        self.state = self.tree.lock_any().state;
        done
    }

    /// Waits, with the lock released, until claims end.
    fn wait_for_storing(&mut self) {
        if let Some(state) = self.state.0.take() {
            let state = self.tree.stored.wait(state).unwrap_or_else(PoisonError::into_inner);
            self.state.0 = Some(state);
        }
    }
}

impl TreeGuard<'_> {
    fn engine(&self) -> &Engine {
        &self.tree.engine
    }

    fn store(&self) -> StoreId {
        self.tree.settings.store
    }

    fn names(&self) -> &NameRules {
        &self.tree.settings.names
    }

    /// Returns the time of new files and directories.
    fn now(&self) -> Timestamp {
        self.tree.past.as_ref().map_or_else(|| self.tree.engine.now(), past::OfPast::at)
    }

    fn invalidate(&self, invalidation: Invalidation) {
        let Invalidations { sender, offset } = &self.tree.invalidations;
        let invalidation = match invalidation {
            Invalidation::Entry { parent, name } => {
                Invalidation::Entry { parent: parent + offset, name }
            }
            Invalidation::Content(ino) => Invalidation::Content(ino + offset),
            Invalidation::Attributes(ino) => Invalidation::Attributes(ino + offset),
            Invalidation::Wake => Invalidation::Wake,
        };
        // Without a kernel there is no receiver.
        sender.send(invalidation).unwrap_or_default();
    }

    /// Makes the kernel look up the name of a node again.
    fn invalidate_entry(&self, ino: Ino) {
        if let Some((parent, name)) =
            self.state.nodes.get(ino).ok().and_then(|node| node.place.clone())
        {
            self.invalidate(Invalidation::Entry { parent, name });
        }
    }

    fn note_own(&mut self, written: &Written) {
        if written.effect.has_changed() {
            self.state.own.insert(written.memory.version);
        }
    }

    /// Fails unless the store can be changed through this tree now.
    fn require_writable(&mut self) -> Result<(), TreeError> {
        if self.tree.settings.access == Access::ReadOnly || self.state.status != StoreStatus::Open {
            return Err(TreeError::ReadOnly);
        }
        if self.record()?.archived_at.is_some() {
            self.state.status = StoreStatus::Archived;
            return Err(TreeError::ReadOnly);
        }
        Ok(())
    }

    /// Returns the store, as of the position in the feed. Reading it each time would take a snapshot of
    /// the database for every create and every write.
    fn record(&mut self) -> Result<&Store, TreeError> {
        let record = match self.state.record.take() {
            Some(record) => record,
            None => self.engine().store(self.store()).map_err(gone)?,
        };
        Ok(self.state.record.insert(record))
    }

    /// Returns whether the usage of the store is acceptable.
    ///
    /// A change adds at most one memory and its text. So an older usage is good enough while the store
    /// cannot have reached its limits since; near them it is read again each time.
    fn is_usage(&mut self, acceptable: impl Fn(&StoreUsage) -> bool) -> Result<bool, TreeError> {
        let (seen, content_max) = (self.state.seen, self.engine().limits().content_size_bytes_max);
        let at_most = |(at, usage): (Sequence, StoreUsage)| {
            let changes = seen.0.saturating_sub(at.0);
            let grown = changes.saturating_mul(content_max);
            StoreUsage {
                memories_count: usage.memories_count.saturating_add(changes),
                size_bytes: usage.size_bytes.saturating_add(grown),
            }
        };
        if self.state.usage.is_some_and(|known| acceptable(&at_most(known))) {
            return Ok(true);
        }
        let usage = self.engine().usage(self.store()).map_err(gone)?;
        self.state.usage = Some((seen, usage));
        Ok(acceptable(&usage))
    }
}

/// Returns whether the texts of a store stay as they are.
///
/// Archiving cannot be undone. A store whose memories expire is not frozen although it is archived:
/// that a memory is read keeps it from expiring, so every open has to be known.
fn is_frozen(engine: &Engine, store: StoreId) -> Result<bool, Error> {
    let store = engine.store(store)?;
    Ok(store.archived_at.is_some() && store.policy.expire_after().is_none())
}

/// Maps the error for a store that is gone to `ESTALE`.
fn gone(error: Error) -> TreeError {
    TreeError::from(error).instead_of(TreeError::NotFound, TreeError::Stale)
}

/// Returns a name as UTF-8, or the error for creating one that is not.
fn valid_name(name: &OsStr) -> Result<&str, TreeError> {
    name.to_str().ok_or(TreeError::NotText)
}
