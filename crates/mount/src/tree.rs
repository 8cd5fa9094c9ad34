//! A store as a tree of files and directories, for whoever translates file system calls.
//!
//! Every call takes the tree's lock for as long as it runs, the durable write of a close among
//! them: a caller never sees half of another call. Stored things are asked of the engine each
//! time; only what lives in the mount alone is kept here.
//!
//! - `places`: finding things, attributes.
//! - `listing`: what a directory holds.
//! - `files`: opening, reading, writing, closing.
//! - `making`: new files and directories, removing them.
//! - `moving`: renames, and what editors do with them.
//! - `following`: changes by other doors.

mod files;
mod following;
mod listing;
mod making;
mod moving;
mod places;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_core::engine::{Effect, Written};
use quipu_core::model::{Access, Actor, StoreId, Timestamp, VersionId};
use quipu_core::{Engine, Error};

use crate::error::TreeError;
use crate::names::NameRules;
use crate::nodes::{Ino, Nodes};

pub use files::{OpenMode, Opened, Position, Start, Writing};
pub use listing::DirectoryEntry;
pub use making::NewFile;
pub use moving::Overwrite;
pub use places::{Attributes, Kind, Usage};

use moving::Parked;

/// A store as a tree of files and directories.
#[derive(Debug)]
pub struct Tree {
    engine: Engine,
    settings: TreeSettings,
    state: Mutex<State>,
    notices: Sender<Notice>,
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
pub enum Notice {
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
    Later,
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
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    Archived,
    Deleted,
}

impl Tree {
    /// Returns the tree of a store, and what it will have to say to a kernel that caches.
    pub fn new(engine: Engine, settings: TreeSettings) -> (Self, Receiver<Notice>) {
        let (notices, told) = channel();
        let state = State {
            nodes: Nodes::new(engine.now()),
            handles: HashMap::new(),
            listings: HashMap::new(),
            listing_key: engine.random(),
            handle_next: 1,
            parked: Vec::new(),
            own: HashSet::new(),
            changes_count: 0,
            standing: Standing::Open,
        };
        (Self { engine, settings, state: Mutex::new(state), notices }, told)
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns what the tree shows.
    pub fn settings(&self) -> &TreeSettings {
        &self.settings
    }

    fn turn(&self) -> Result<Turn<'_>, TreeError> {
        let turn = self.any_turn();
        match turn.state.standing {
            Standing::Deleted => Err(TreeError::Stale),
            Standing::Open | Standing::Archived => Ok(turn),
        }
    }

    fn any_turn(&self) -> Turn<'_> {
        // A call that panics leaves whole nodes behind, so the lock is still usable.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Turn { tree: self, state }
    }
}

/// One call's turn at the tree.
struct Turn<'a> {
    tree: &'a Tree,
    state: MutexGuard<'a, State>,
}

impl Turn<'_> {
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

    fn tell(&self, notice: Notice) {
        // Without a kernel nobody listens, which is fine.
        self.tree.notices.send(notice).unwrap_or_default();
    }

    /// Tells the kernel to look up a node's place again.
    fn tell_entry(&self, ino: Ino) {
        if let Some((parent, name)) =
            self.state.nodes.get(ino).ok().and_then(|node| node.place.clone())
        {
            self.tell(Notice::Entry { parent, name });
        }
    }

    fn note_own(&mut self, written: &Written) {
        if written.effect == Effect::Changed {
            self.state.own.insert(written.memory.version);
        }
    }

    /// Fails unless this tree may change its store now.
    fn require_writable(&mut self) -> Result<(), TreeError> {
        if self.tree.settings.access == Access::ReadOnly || self.state.standing != Standing::Open {
            return Err(TreeError::ReadOnly);
        }
        match self.engine().store(self.store()) {
            Ok(store) if store.archived_at.is_some() => {
                self.state.standing = Standing::Archived;
                Err(TreeError::ReadOnly)
            }
            Ok(_) => Ok(()),
            Err(error) => Err(gone(error)),
        }
    }
}

/// Says that a store that must be there is not.
fn gone(error: Error) -> TreeError {
    TreeError::from(error).instead_of(TreeError::NotFound, TreeError::Stale)
}

/// Returns a name that can be part of a path, or what to answer to whoever wants to use it.
fn valid_name(name: &OsStr) -> Result<&str, TreeError> {
    name.to_str().ok_or(TreeError::NotText)
}
