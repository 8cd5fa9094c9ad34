//! What Quipu derives from memories: what they are called, how they are linked, and a search index for
//! each store.
//!
//! Everything here can be made again from the memories, and decides nothing about them.
//! [`Knowledge`] is what doors use. It reads the canonical rows through [`quipu_core`], understands texts
//! with [`quipu_notes`], and keeps the [`index`] in a file of its own with the help of the [`indexer`].

mod card;
mod context;
mod entry;
#[cfg(test)]
mod fixture;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod golden;
mod graph;
mod index;
mod indexer;
mod lookup;
mod names;
mod recent;
mod search;
mod verify;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use quipu_core::backend::Sequence;
use quipu_core::model::StoreId;
use quipu_core::{Engine, Error};

pub use card::LinkRow;
pub use context::{Context, ContextItem, ContextRequest, DEPTH_MAX, Direction, Related};
pub use graph::{Graph, NoteLink, Orphans};
pub use index::INDEX_FILE;
pub use names::{NoteCard, Scope};
pub use recent::{RecentChange, RecentRequest};
pub use search::{
    Found, SearchFilter, SearchHit, SearchMode, SearchPage, SearchRequest, SearchTarget, Total,
};

use indexer::{Attempt, Indexer};
use lookup::Lookup;

/// An engine that also knows what memories are called, how they are linked, and where words are.
#[derive(Clone, Debug)]
pub struct Knowledge {
    engine: Engine,
    indexer: Arc<Indexer>,
}

impl Knowledge {
    /// Adds knowledge to an engine. The index is kept in `directory`, and made when it is first used.
    pub fn new(engine: Engine, directory: &Path) -> Self {
        let indexer = Arc::new(Indexer::new(engine.clone(), directory));
        let engine = engine.with_derived(Arc::clone(&indexer) as _);
        Self { engine, indexer }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs `work` with knowledge that never waits; `None` if `work` needs one that may.
    pub fn without_waiting<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.engine.without_waiting(|engine| work(&self.with_engine(engine)))
    }

    /// Runs `work` with knowledge that changes no memory, so it waits for no writer; `None` if `work`
    /// has to write.
    pub fn without_writing<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.engine.without_writing(|engine| work(&self.with_engine(engine)))
    }

    fn with_engine(&self, engine: &Engine) -> Self {
        Self { engine: engine.clone(), indexer: Arc::clone(&self.indexer) }
    }

    /// Brings the indexes of all stores that changed after `seen` to the present and does what is due
    /// to keep them fast; returns how far they have come. `None` looks at all stores.
    ///
    /// Searching is right without it. A door that runs for long calls it whenever something has
    /// changed, so that a search finds little to do.
    pub fn follow(&self, seen: Option<Sequence>) -> Result<Sequence, Error> {
        self.indexer.follow(seen)
    }

    /// Returns how far [`follow`](Self::follow) has come in this process.
    pub fn followed(&self) -> Sequence {
        self.indexer.followed()
    }

    /// Brings the indexes of some stores to the present, as a search would, and calls `progress` now
    /// and then with the share of the work that is done; if that fails, so does the call.
    pub fn catch_up(
        &self,
        stores: &[StoreId],
        progress: &dyn Fn(f64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.engine.require_blocking()?;
        let attempt = Attempt::new(progress);
        for &store in stores {
            self.indexer.catch_up(store, &attempt)?;
        }
        Ok(())
    }

    /// Does what is due to keep the index of a store fast.
    pub fn tidy_index(&self, store: StoreId) -> Result<(), Error> {
        self.indexer.tidy(store)
    }

    /// Removes the whole index; whoever searches makes it again.
    pub fn discard_index(&self) -> Result<(), Error> {
        self.indexer.discard()
    }

    /// Closes the index and everything else. Whatever still uses it gets an error from then on.
    pub fn close(&self) -> Result<(), Error> {
        self.indexer.close();
        self.engine.backend().close()
    }

    fn lookup<T>(
        &self,
        stores: &[StoreId],
        work: impl Fn(&Lookup<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.indexer.read(&self.engine, stores, work)
    }
}

impl Deref for Knowledge {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
