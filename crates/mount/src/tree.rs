//! A store as a tree of files and directories, for whoever translates file system calls.
//!
//! Every call takes the tree's lock for as long as it runs, so a caller never sees half of another
//! call. Only the durable write of a close or sync happens without it, see `storing`. Stored things are asked of the engine each
//! time; only what lives in the mount alone is kept here.
//!
//! - `places`: finding things, attributes.
//! - `listing`: what a directory holds.
//! - `files`: opening, writing, closing.
//! - `reading`: texts, for whoever has a file open.
//! - `making`: new files and directories, removing them.
//! - `moving`: renames, and what editors do with them.
//! - `parking`: memories that were moved to a backup name moments ago.
//! - `storing`: making what was written durable.
//! - `refusing`: what cannot be stored, as early as it can be known.
//! - `problems`: the report of what was not stored.
//! - `shown`: which text a process knew.
//! - `following`: changes by other doors.

mod creating;
mod files;
mod following;
mod known_texts;
mod listing;
mod lookup;
mod parking;
mod problems;
mod reading;
mod renaming;
mod storing;
mod validating;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use quipu_core::backend::Sequence;
use quipu_core::engine::Written;
use quipu_core::model::{Access, Actor, StoreId, Timestamp, Version, VersionId};
use quipu_core::{Engine, Error};

use crate::error::TreeError;
use crate::names::NameRules;
use crate::nodes::{Ino, Nodes};

pub use creating::NewFile;
pub use files::{OpenMode, Opened, Position, Start, Writing};
pub use listing::DirectoryEntry;
pub use lookup::{Attributes, Kind, Usage};
pub use renaming::Overwrite;

use parking::Parked;

/// A store as a tree of files and directories.
#[derive(Debug)]
pub struct Tree {
    engine: Engine,
    settings: TreeSettings,
    is_frozen: bool,
    state: Mutex<State>,
    /// Rings when a file that was being stored without the lock is stored.
    stored: Condvar,
    invalidations: Sender<Invalidation>,
    recorder: problems::Recorder,
}

/// What a tree shows, and on whose behalf.
#[derive(Clone, Debug)]
pub struct TreeSettings {
    /// The store.
    pub store: StoreId,
    /// Who makes the versions.
    pub actor: Actor,
    /// What may be done.
    pub access: Access,
    /// Which names are special.
    pub names: NameRules,
}

/// What a kernel that caches must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// What it knows about a name in a directory may be wrong.
    Entry {
        /// The directory.
        parent: Ino,
        /// The name.
        name: String,
    },
    /// What it knows about a file may be wrong, the text too.
    Content(Ino),
    /// What it knows about a file's size and time may be wrong.
    Attributes(Ino),
    /// Something must be done later: see [`Tree::settle_due`].
    Wake,
}

#[derive(Debug)]
struct State {
    nodes: Nodes,
    handles: HashMap<u64, files::Handle>,
    listings: HashMap<u64, listing::OpenDirectory>,
    /// What makes the positions in listings differ from those of other mounts.
    listing_key: u128,
    handle_next: u64,
    parked: Vec<Parked>,
    /// Versions that this tree made and that the feed has not shown yet.
    own: HashSet<VersionId>,
    /// How often something changed, by whomever.
    changes_count: u64,
    /// How often the kernel's copy of a text was outdated.
    outdated_count: u64,
    /// Up to where in the feed the changes of other doors are known.
    seen: Sequence,
    status: StoreStatus,
    /// Which texts processes were shown lately.
    known_texts: known_texts::KnownTexts,
    /// What could not be stored lately.
    problems: problems::Problems,
    /// What the durable writes that run without the lock are about.
    claims: Vec<storing::Claim>,
    /// Versions that may have been made by one of these.
    deferred: Vec<Version>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreStatus {
    Open,
    Archived,
    Deleted,
}

impl Tree {
    /// Returns the tree of a store, and what it will have to say to a kernel that caches.
    pub fn new(
        engine: Engine,
        settings: TreeSettings,
    ) -> Result<(Self, Receiver<Invalidation>), Error> {
        let (invalidations, told) = channel();
        // Before the kernel knows anything, so that no change is missed.
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
            known_texts: known_texts::KnownTexts::default(),
            problems: problems::Problems::default(),
            claims: Vec::new(),
            deferred: Vec::new(),
        };
        let is_frozen = settings.access == Access::ReadOnly && is_frozen(&engine, settings.store)?;
        let recorder = problems::Recorder::start(engine.clone());
        let (state, stored) = (Mutex::new(state), Condvar::new());
        Ok((Self { engine, settings, is_frozen, state, stored, invalidations, recorder }, told))
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
    /// A kernel may then open files by itself: whatever text it keeps is the right one. Memories can
    /// still be deleted, which it is told as soon as the feed shows it.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    fn lock(&self) -> Result<TreeGuard<'_>, TreeError> {
        let guard = self.lock_any();
        match guard.state.status {
            StoreStatus::Deleted => Err(TreeError::Stale),
            StoreStatus::Open | StoreStatus::Archived => Ok(guard),
        }
    }

    /// Returns a guard that knows every change that was acknowledged before it began.
    fn lock_fresh(&self) -> Result<TreeGuard<'_>, TreeError> {
        let mut guard = self.lock_any();
        guard.catch_up()?;
        match guard.state.status {
            StoreStatus::Deleted => Err(TreeError::Stale),
            StoreStatus::Open | StoreStatus::Archived => Ok(guard),
        }
    }

    fn lock_any(&self) -> TreeGuard<'_> {
        // A call that panics leaves whole nodes behind, so the lock is still usable.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        TreeGuard { tree: self, state: Held(Some(state)), claims: Claims::None }
    }
}

/// The state of a tree while its lock is held.
struct Held<'a>(Option<MutexGuard<'a, State>>);

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.as_deref().expect("the lock is held, except while a guard waits")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_deref_mut().expect("the lock is held, except while a guard waits")
    }
}

/// One call's guard at the tree.
struct TreeGuard<'a> {
    tree: &'a Tree,
    state: Held<'a>,
    claims: Claims,
}

/// Whether a guard has claimed what it writes, so that it can let go of the lock meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    None,
    Held,
}

impl<'a> TreeGuard<'a> {
    /// Runs something without the lock. Whatever was known of the tree may be different afterwards.
    fn without_lock<T>(&mut self, work: impl FnOnce(&'a Tree) -> T) -> T {
        drop(self.state.0.take());
        let done = work(self.tree);
        self.state = self.tree.lock_any().state;
        done
    }

    /// Lets go of the lock until something that was being stored is stored.
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

    fn actor(&self) -> &Actor {
        &self.tree.settings.actor
    }

    fn names(&self) -> &NameRules {
        &self.tree.settings.names
    }

    fn now(&self) -> Timestamp {
        self.tree.engine.now()
    }

    fn invalidate(&self, invalidation: Invalidation) {
        // Without a kernel nobody listens, which is fine.
        self.tree.invalidations.send(invalidation).unwrap_or_default();
    }

    /// Tells the kernel to look up a node's place again.
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

    /// Fails unless this tree may change its store now.
    fn require_writable(&mut self) -> Result<(), TreeError> {
        if self.tree.settings.access == Access::ReadOnly || self.state.status != StoreStatus::Open {
            return Err(TreeError::ReadOnly);
        }
        match self.engine().store(self.store()) {
            Ok(store) if store.archived_at.is_some() => {
                self.state.status = StoreStatus::Archived;
                Err(TreeError::ReadOnly)
            }
            Ok(_) => Ok(()),
            Err(error) => Err(gone(error)),
        }
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

/// Says that a store that must be there is not.
fn gone(error: Error) -> TreeError {
    TreeError::from(error).instead_of(TreeError::NotFound, TreeError::Stale)
}

/// Returns a name that can be part of a path, or what to answer to whoever wants to use it.
fn valid_name(name: &OsStr) -> Result<&str, TreeError> {
    name.to_str().ok_or(TreeError::NotText)
}
