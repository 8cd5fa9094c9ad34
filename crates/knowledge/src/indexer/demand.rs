//! Indexing on demand, where there are more stores than this host is asked about.
//!
//! Then nothing indexes a store before it is searched here, and the background follows only the stores that
//! are in the index. When the index is larger than it may be, the stores leave that were not searched for
//! the longest time; those that were not searched since the process began leave first. The next search
//! indexes them again.
//!
//! Other hosts have indexes of their own, so what was redacted elsewhere is erased here by whoever uses the index
//! next, before it searches or follows the feed. How far that has been done is the least `purged` of the stores:
//! nothing from before it is left in their rows. The cursors would not do. A search brings a store up to date,
//! and what was redacted since is then found no more, but its words stay in the file until a merge.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_core::backend::{Change, Event, PendingErasure, Reader, Sequence};
use quipu_core::model::{MemoryId, StoreId, Timestamp, View};
use quipu_core::{Derived as _, Error};

use super::Indexer;
use super::searches::Searches;
use crate::index::{self, IndexError};

/// How many changes are read per page.
const CHANGES: usize = 1_000;

/// After how many further changes it is noted in the file how far it has been erased. Processes that begin look
/// for removals from there on.
const NOTED_EVERY: u64 = 10_000;

/// Which stores to index, and how much space they may take.
#[derive(Debug)]
pub(super) struct Demand {
    size_bytes_max: u64,
    searches: Searches,
    /// The stores that searches of this process are using, which must not leave meanwhile.
    used: Mutex<HashMap<StoreId, usize>>,
    /// How far this process has erased what was removed.
    erased: Mutex<Option<Sequence>>,
}

/// Stores that are in use for as long as this exists.
pub(super) struct Used<'d> {
    demand: &'d Demand,
    stores: Vec<StoreId>,
}

impl Demand {
    fn used(&self) -> MutexGuard<'_, HashMap<StoreId, usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stores that may leave, in the order in which they do.
    fn leaving(&self, stores: Vec<StoreId>) -> Vec<StoreId> {
        let used: HashSet<_> = self.used().keys().copied().collect();
        let last = self.searches.last();
        let mut leaving: Vec<_> = stores
            .into_iter()
            .filter(|store| !used.contains(store))
            .map(|store| (last.get(&store).copied().unwrap_or(Timestamp::MIN), store))
            .collect();
        leaving.sort_unstable();
        leaving.into_iter().map(|(_, store)| store).collect()
    }
}

impl Drop for Used<'_> {
    fn drop(&mut self) {
        let mut used = self.demand.used();
        for store in &self.stores {
            if let Some(count) = used.get_mut(store) {
                *count -= 1;
                if *count == 0 {
                    used.remove(store);
                }
            }
        }
    }
}

impl Indexer {
    /// Returns the same indexer that indexes what is searched, and keeps the index within a size.
    pub(crate) fn on_demand(self, size_bytes_max: u64) -> Self {
        let searches = Searches::new(self.lock.with_file_name("searches"));
        let (used, erased) = (Mutex::default(), Mutex::default());
        Self { demand: Some(Demand { size_bytes_max, searches, used, erased }), ..self }
    }

    /// Notes that stores are about to be searched; they stay in the index until what is returned is dropped.
    pub(super) fn note_search(&self, stores: &[StoreId]) -> Option<Used<'_>> {
        let demand = self.demand.as_ref()?;
        // A directory of caches may be removed under a running server. If it cannot be made again, the
        // index cannot be written, which is reported by who writes.
        if let Some(directory) = self.lock.parent().filter(|directory| !directory.is_dir()) {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(directory).unwrap_or_default();
        }
        demand.searches.note(stores, self.engine.now());
        let mut used = demand.used();
        for store in stores {
            *used.entry(*store).or_default() += 1;
        }
        drop(used);
        Some(Used { demand, stores: stores.to_vec() })
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
        let is_small =
            || Ok::<_, Error>(self.read_file(index::used_bytes)? <= demand.size_bytes_max);
        if is_small()? {
            return Ok(());
        }
        let stores = self.read_file(index::store_ids)?;
        // One store stays, however large it is.
        let count_max = stores.len().saturating_sub(1);
        for store in demand.leaving(stores).into_iter().take(count_max) {
            self.matrices.forget(store);
            match index::remove_store(&self.file, store) {
                Ok(()) => {}
                // The next access repairs the file, or nothing can be done for now.
                Err(IndexError::NotWritable(_) | IndexError::Damaged) => return Ok(()),
                Err(error) => return Err(error.into_error()),
            }
            if is_small()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes out of the index what other hosts have redacted. If that cannot be told, because the feed does not
    /// reach back, the index is discarded: what is searched is indexed again.
    pub(super) fn erase_removed(&self) -> Result<(), Error> {
        let Some(demand) = &self.demand else { return Ok(()) };
        let newest = self.engine.newest_sequence()?;
        // Held meanwhile: whoever comes next would find the same.
        let mut erased = demand.erased.lock().unwrap_or_else(PoisonError::into_inner);
        if *erased == Some(newest) {
            return Ok(());
        }
        let Some(noted) = self.read_file(index::least_purged)? else {
            // Nothing is indexed, so nothing has to go.
            *erased = Some(newest);
            return Ok(());
        };
        let from = erased.map_or(noted, |erased| erased.max(noted)).min(newest);
        match self.removed_since(from)? {
            None => {
                self.discard()?;
            }
            Some(pending) => {
                let has_pending = !pending.is_empty();
                if has_pending {
                    self.erase(&pending)?;
                }
                if has_pending || newest.0.saturating_sub(noted.0) > NOTED_EVERY {
                    self.note_erased(newest)?;
                }
            }
        }
        *erased = Some(newest);
        Ok(())
    }

    /// Returns what was removed after a sequence from stores that are indexed; `None` if the feed does not reach
    /// back to it.
    fn removed_since(&self, from: Sequence) -> Result<Option<Vec<PendingErasure>>, Error> {
        let stores: HashSet<_> = self.demanded()?.unwrap_or_default().into_iter().collect();
        let mut pending = BTreeSet::new();
        let mut after = from;
        loop {
            let found = self.engine.read(|reader| {
                let oldest = reader.oldest_change()?.map_or(Sequence(0), |(oldest, _)| oldest);
                if oldest.0 > from.0.saturating_add(1) {
                    return Ok(None);
                }
                let changes = reader.removals(after, CHANGES)?;
                let of_index = changes.iter().filter(|change| stores.contains(&change.store));
                let removed = of_index.map(|change| removed_by(reader, change));
                let removed = removed.collect::<Result<Vec<_>, _>>()?;
                Ok(Some((removed, changes.last().map(|change| change.sequence))))
            })?;
            let Some((removed, last)) = found else { return Ok(None) };
            pending.extend(removed.into_iter().flatten());
            let Some(last) = last else { break };
            after = last;
        }
        let pending =
            pending.into_iter().map(|(store, memory)| PendingErasure { store, memory, count: 0 });
        Ok(Some(pending.collect()))
    }

    /// Notes in the file that nothing from before a sequence is left.
    fn note_erased(&self, newest: Sequence) -> Result<(), Error> {
        match self.file.write(|connection| index::raise_purged(connection, newest)) {
            // Then the next process looks again.
            Ok(()) | Err(IndexError::NotWritable(_) | IndexError::Damaged) => Ok(()),
            Err(error) => Err(error.into_error()),
        }
    }
}

/// Returns what a change has removed: of a store, a memory or all of it.
fn removed_by(
    reader: &dyn Reader,
    change: &Change,
) -> Result<Option<(StoreId, Option<MemoryId>)>, Error> {
    match change.event {
        Event::Redacted(id) => {
            let version = reader.version(change.store, id, View::Basic)?;
            Ok(Some((change.store, version.map(|version| version.memory))))
        }
        Event::StoreDeleted => Ok(Some((change.store, None))),
        Event::Version(_)
        | Event::StoreCreated
        | Event::StoreUpdated
        | Event::StoreArchived
        | Event::Restarted => Ok(None),
    }
}
