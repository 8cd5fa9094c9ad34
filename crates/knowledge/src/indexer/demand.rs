//! Indexing on demand, where there are more stores than this host is asked about.
//!
//! Then nothing indexes a store before it is searched here, and the background follows only the stores that
//! are in the index. When the index is larger than it may be, the stores leave that were not searched for
//! the longest time; those that were not searched since the process began leave first. The next search
//! indexes them again.
//!
//! Other hosts have indexes of their own, so a redaction that happened elsewhere is erased here by whoever
//! follows the feed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::sync::{Mutex, PoisonError};

use quipu_core::backend::{Change, Event, PendingErasure, Sequence};
use quipu_core::model::{StoreId, View};
use quipu_core::{Derived as _, Error};

use super::Indexer;
use crate::index::{self, IndexError};

/// How many changes are read per page.
const CHANGES: usize = 1_000;

/// How many stores are remembered with their last search.
const STORES_MAX: usize = 100_000;

/// Which stores to index, and how much space they may take.
#[derive(Debug)]
pub(super) struct Demand {
    size_bytes_max: u64,
    searches: Mutex<Searches>,
}

/// When each store was last searched, as the number of that search.
#[derive(Debug, Default)]
struct Searches {
    count: u64,
    last: HashMap<StoreId, u64>,
}

impl Demand {
    fn note(&self, stores: &[StoreId]) {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.count += 1;
        let count = searches.count;
        // Stores that were removed are forgotten with the others, which costs an unlucky choice.
        if searches.last.len() > STORES_MAX {
            searches.last.clear();
        }
        searches.last.extend(stores.iter().map(|store| (*store, count)));
    }

    /// Returns the store to remove first; none if only one is left.
    fn oldest(&self, stores: &[StoreId]) -> Option<StoreId> {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.last.retain(|store, _| stores.contains(store));
        let last = |store: &&StoreId| searches.last.get(*store).copied().unwrap_or_default();
        stores.iter().min_by_key(last).filter(|_| stores.len() > 1).copied()
    }
}

impl Indexer {
    /// Returns the same indexer that indexes what is searched, and keeps the index within a size.
    pub(crate) fn on_demand(self, size_bytes_max: u64) -> Self {
        let demand = Demand { size_bytes_max, searches: Mutex::default() };
        Self { demand: Some(demand), ..self }
    }

    pub(super) fn note_search(&self, stores: &[StoreId]) {
        let Some(demand) = &self.demand else { return };
        demand.note(stores);
        // A directory of caches may be removed under a running server. If it cannot be made again, the
        // index cannot be written, which is reported by who writes.
        if let Some(directory) = self.lock.parent().filter(|directory| !directory.is_dir()) {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(directory).unwrap_or_default();
        }
    }

    /// Returns the stores that are in the index; `None` if all stores are to be.
    pub(super) fn demanded(&self) -> Result<Option<Vec<StoreId>>, Error> {
        if self.demand.is_none() {
            return Ok(None);
        }
        self.read_file(index::store_ids).map(Some)
    }

    /// Removes stores until the index is within its size.
    pub(super) fn shrink(&self) {
        // Whoever has just searched has an answer, and the next search tries this again.
        self.try_to_shrink().unwrap_or_default();
    }

    fn try_to_shrink(&self) -> Result<(), Error> {
        let Some(demand) = &self.demand else { return Ok(()) };
        if self.size_bytes() <= demand.size_bytes_max {
            return Ok(());
        }
        loop {
            let (used_bytes, stores) = self.read_file(|connection| {
                Ok((index::used_bytes(connection)?, index::store_ids(connection)?))
            })?;
            if used_bytes <= demand.size_bytes_max {
                return Ok(());
            }
            let Some(store) = demand.oldest(&stores) else { return Ok(()) };
            self.matrices.forget(store);
            match index::remove_store(&self.file, store) {
                Ok(()) => {}
                // The next access repairs the file, or nothing can be done for now.
                Err(IndexError::NotWritable(_) | IndexError::Damaged) => return Ok(()),
                Err(error) => return Err(error.into_error()),
            }
        }
    }

    /// Takes out of the index what other hosts have redacted after `seen`. If that is not known, the index
    /// is discarded: what is searched is indexed again.
    pub(super) fn erase_redacted(&self, seen: Option<Sequence>) -> Result<(), Error> {
        let Some(stores) = self.demanded()? else { return Ok(()) };
        if stores.is_empty() {
            return Ok(());
        }
        let reached = seen.map_or_else(|| self.least_cursor(&stores), Ok)?;
        let mut pending = BTreeSet::new();
        let mut after = reached;
        loop {
            let changes = self.engine.changes(after, CHANGES)?;
            if changes.has_gap {
                return self.discard();
            }
            let Some(last) = changes.items.last() else { break };
            after = last.sequence;
            for change in changes.items.iter().filter(|change| stores.contains(&change.store)) {
                pending.extend(self.erased_by(change)?);
            }
        }
        let pending: Vec<_> = pending
            .into_iter()
            .map(|(store, memory)| PendingErasure { store, memory, count: 0 })
            .collect();
        if pending.is_empty() { Ok(()) } else { self.erase(&pending).map(drop) }
    }

    /// Returns what a change has erased: of a store, a memory or all of it.
    fn erased_by(
        &self,
        change: &Change,
    ) -> Result<Option<(StoreId, Option<quipu_core::model::MemoryId>)>, Error> {
        match change.event {
            Event::Redacted(id) => self.engine.read(|reader| {
                let version = reader.version(change.store, id, View::Basic)?;
                Ok(Some((change.store, version.map(|version| version.memory))))
            }),
            Event::StoreDeleted => Ok(Some((change.store, None))),
            Event::Version(_)
            | Event::StoreCreated
            | Event::StoreUpdated
            | Event::StoreArchived => Ok(None),
        }
    }

    fn least_cursor(&self, stores: &[StoreId]) -> Result<Sequence, Error> {
        let mut least = BTreeMap::new();
        for store in stores {
            least.insert(self.cursor(*store)?.sequence, *store);
        }
        Ok(least.first_key_value().map_or(Sequence(0), |(sequence, _)| *sequence))
    }
}
