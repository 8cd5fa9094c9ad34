//! The past of a mounted store, below `.quipu/at`.
//!
//! A directory there is named by a moment and holds the store as it was, in a [`Tree`] of its own that is
//! made when somebody looks the name up. The numbers of its inodes are those of that tree with a serial
//! number above them, so that one mount can serve all of them.
//!
//! Names can be invented without end, and each tree is as large as the store. So only a few trees are
//! kept, and names that mean the same state share one: `2h ago` names another moment at every lookup, but
//! another state only after a change.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_core::backend::{Span, VersionFilter, VersionQuery};
use quipu_core::engine::Past;
use quipu_core::model::{Access, Timestamp, View};
use quipu_core::{Error, Moment};

use crate::error::TreeError;
use crate::nodes::{Ino, ROOT};
use crate::tree::{Attributes, Kind, Tree};

/// How many trees are kept.
pub const PASTS_MAX: usize = 16;

/// The name of the directory of moments, inside of the directory of the mount's own files.
pub(crate) const AT_NAME: &str = "at";

/// Every inode of the past has this bit.
const PAST_BIT: Ino = 1 << 62;
/// Where the serial number of a tree begins. Below it are the numbers of 68 billion lookups.
const SERIAL_SHIFT: u32 = 36;
/// The directory `.quipu`, as long as the store has nothing there.
pub(crate) const HIDDEN: Ino = PAST_BIT | 1;
/// The directory `.quipu/at`.
pub(crate) const AT: Ino = PAST_BIT | 2;

/// The trees of the past of one store that were looked at last.
#[derive(Debug)]
pub struct Pasts {
    present: Arc<Tree>,
    made_at: Timestamp,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The least recently used first.
    trees: Vec<PastTree>,
    /// Serial numbers are never reused: the kernel may still reference inodes of a tree that is gone.
    serial_last: u64,
}

#[derive(Clone, Debug)]
struct PastTree {
    serial: u64,
    /// The newest change of the store that it shows.
    state: Timestamp,
    tree: Arc<Tree>,
}

/// A node of the past.
#[derive(Clone, Debug)]
pub(crate) enum PastNode {
    /// The directory `.quipu` or `.quipu/at`.
    Own(Attributes),
    /// A node of a tree.
    Of(Branch),
}

/// A node of a tree of the past.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) tree: Arc<Tree>,
    /// Its number within the tree.
    pub(crate) ino: Ino,
    offset: Ino,
}

impl Branch {
    /// Returns attributes with the number by which the kernel knows the node.
    pub(crate) fn outside(&self, attributes: Attributes) -> Attributes {
        Attributes { ino: attributes.ino + self.offset, ..attributes }
    }
}

/// Returns whether an inode belongs to the past.
pub(crate) fn is_past(ino: Ino) -> bool {
    ino & PAST_BIT != 0
}

impl Pasts {
    /// Returns the past of the store that a tree shows.
    pub fn new(present: Arc<Tree>) -> Self {
        let made_at = present.engine().now();
        Self { present, made_at, kept: Mutex::default() }
    }

    /// Returns how many trees are kept.
    pub fn trees_count(&self) -> usize {
        self.lock().trees.len()
    }

    /// Returns the root of the tree of a moment. Reads all of the store, so it can take a while.
    ///
    /// Fails with `ENOENT` for whatever names no moment of the store, and with `EBUSY` if all trees that can
    /// be kept are open.
    pub fn moment(&self, name: &OsStr) -> Result<Attributes, TreeError> {
        // A moment in the future, or before the store existed, is not there, like any other name.
        let missing = |error: Error| {
            TreeError::from(error).instead_of(TreeError::Invalid, TreeError::NotFound)
        };
        let engine = self.present.engine();
        let name = name.to_str().ok_or(TreeError::NotFound)?;
        let moment = Moment::parse(name, engine.now()).map_err(missing)?;
        let past = engine.moment(self.present.settings().store, &moment).map_err(missing)?;
        let state = self.state_at(&past)?;
        let found = self.lock().use_tree(state, &past);
        let tree = match found {
            Some(tree) => tree,
            None => self.make(&past, state)?,
        };
        let branch = tree.branch(ROOT);
        Ok(branch.outside(branch.tree.attributes(ROOT)?))
    }

    /// Returns the node of an inode, or `ESTALE` if its tree is no longer kept, which makes the kernel look the
    /// moment up again.
    pub(crate) fn node(&self, ino: Ino) -> Result<PastNode, TreeError> {
        if ino == HIDDEN || ino == AT {
            return Ok(PastNode::Own(self.own(ino)));
        }
        Ok(PastNode::Of(self.branch(ino)?))
    }

    /// Returns the node of an inode within a tree.
    pub(crate) fn branch(&self, ino: Ino) -> Result<Branch, TreeError> {
        let serial = (ino & !PAST_BIT) >> SERIAL_SHIFT;
        let mut kept = self.lock();
        let tree = kept.use_first(|tree| tree.serial == serial).ok_or(TreeError::Stale)?;
        Ok(tree.branch(ino - tree.offset()))
    }

    /// Returns the attributes of a directory that the mount itself makes.
    pub(crate) fn own(&self, ino: Ino) -> Attributes {
        Attributes {
            ino,
            kind: Kind::Directory,
            size_bytes: 0,
            changed_at: self.made_at,
            access: Access::ReadOnly,
            is_removed: false,
            is_volatile: false,
        }
    }

    /// Applies redactions to all trees, so that the kernel drops what it has cached of them.
    pub fn follow(&self) -> Result<(), Error> {
        let trees = self.lock().trees.clone();
        trees.iter().try_for_each(|past| past.tree.follow().map(drop))
    }

    /// Returns the moment of the newest change of the store by then.
    fn state_at(&self, past: &Past) -> Result<Timestamp, Error> {
        let created = Span { last: past.at, ..Span::default() };
        let filter = VersionFilter { created, ..VersionFilter::default() };
        let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
        let newest = self.present.engine().read(|reader| reader.versions(past.store, &query))?;
        Ok(newest.first().map_or(Timestamp::MIN, |version| version.created_at))
    }

    /// Makes the tree of a moment, in place of the least recently used one if there are too many.
    fn make(&self, past: &Past, state: Timestamp) -> Result<PastTree, TreeError> {
        let serial = {
            let mut kept = self.lock();
            kept.serial_last += 1;
            kept.serial_last
        };
        let tree = self.present.at_moment(past, PAST_BIT | serial << SERIAL_SHIFT)?;
        // Reads the names of all memories now. Later calls are answered by the thread that answers
        // everybody, which must not be held up by that.
        tree.usage()?;
        let made = PastTree { serial, state, tree: Arc::new(tree) };
        let (tree, evicted) = self.lock().keep(made, past)?;
        if let Some(evicted) = evicted {
            // The kernel may have its texts cached, and nobody would tell it of a redaction from now on.
            evicted.tree.drop_from_kernel();
        }
        Ok(tree)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic leaves a list of trees, so a poisoned lock is still usable.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PastTree {
    fn offset(&self) -> Ino {
        PAST_BIT | self.serial << SERIAL_SHIFT
    }

    fn branch(&self, ino: Ino) -> Branch {
        Branch { tree: Arc::clone(&self.tree), ino, offset: self.offset() }
    }

    /// Returns whether it shows a state, and says the same about what is missing.
    fn shows(&self, state: Timestamp, past: &Past) -> bool {
        let is_complete = |at: Timestamp| Past { at, ..*past }.is_complete();
        self.state == state
            && self.tree.moment().is_some_and(|at| is_complete(at) == past.is_complete())
    }
}

impl Kept {
    /// Returns the first tree that fits, as the most recently used one.
    fn use_first(&mut self, fits: impl Fn(&PastTree) -> bool) -> Option<PastTree> {
        let index = self.trees.iter().position(fits)?;
        let tree = self.trees.remove(index);
        self.trees.push(tree.clone());
        Some(tree)
    }

    fn use_tree(&mut self, state: Timestamp, past: &Past) -> Option<PastTree> {
        self.use_first(|tree| tree.shows(state, past))
    }

    /// Keeps a new tree and returns it, together with the one that had to go. If another thread has made
    /// the same meanwhile, that one is returned instead.
    fn keep(
        &mut self,
        made: PastTree,
        past: &Past,
    ) -> Result<(PastTree, Option<PastTree>), TreeError> {
        if let Some(known) = self.use_tree(made.state, past) {
            return Ok((known, None));
        }
        let evicted = if self.trees.len() < PASTS_MAX {
            None
        } else {
            let unused = self.trees.iter().position(|past| !past.tree.is_open());
            Some(self.trees.remove(unused.ok_or(TreeError::Busy)?))
        };
        self.trees.push(made.clone());
        Ok((made, evicted))
    }
}

#[cfg(test)]
mod tests;
