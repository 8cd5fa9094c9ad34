//! What a transaction knows of the stores that it has locked, without asking.
//!
//! A group reads ahead what each of its members has announced. From then on nobody else can change these
//! rows, and the changes of the members are entered here as they are made, so that a later member sees the
//! changes of an earlier one although they have not been sent yet.

use std::collections::HashMap;

use quipu_core::backend::{Commit, Usage};
use quipu_core::model::{
    Memory, MemoryId, MemoryPath, Store, StoreId, Tombstone, Version, VersionId, View,
};

/// What is known.
#[derive(Default)]
pub(crate) struct Overlay {
    stores: HashMap<StoreId, KnownStore>,
}

/// What is known of a store. A place that is missing here is not known.
#[derive(Default)]
struct KnownStore {
    row: Option<(Store, Usage)>,
    tombstones: Option<Vec<Tombstone>>,
    by_path: HashMap<String, Option<Known>>,
    by_id: HashMap<MemoryId, Option<Known>>,
    versions: HashMap<VersionId, Version>,
    /// The first memories below a directory; not more than the query for an overlap asks for.
    below: HashMap<String, Vec<Memory>>,
}

/// What is at a place: a memory, or nothing.
pub(crate) struct Found(pub(crate) Option<Memory>);

/// A memory, with or without its text.
#[derive(Clone)]
struct Known {
    memory: Memory,
    view: View,
}

impl Known {
    fn shown(&self, view: View) -> Option<Memory> {
        match (view, self.view) {
            (View::Basic, _) => Some(Memory { content: None, ..self.memory.clone() }),
            (View::Full, View::Full) => Some(self.memory.clone()),
            (View::Full, View::Basic) => None,
        }
    }
}

impl Overlay {
    pub(crate) fn put_store(&mut self, store: Store, usage: Usage) {
        let id = store.id;
        self.stores.entry(id).or_default().row = Some((store, usage));
    }

    pub(crate) fn put_tombstones(&mut self, store: StoreId, tombstones: Vec<Tombstone>) {
        self.stores.entry(store).or_default().tombstones = Some(tombstones);
    }

    pub(crate) fn put_memory(&mut self, memory: Memory, view: View) {
        let known = self.stores.entry(memory.store).or_default();
        known
            .by_path
            .insert(memory.path.as_str().to_owned(), Some(Known { memory: memory.clone(), view }));
        known.by_id.insert(memory.id, Some(Known { memory, view }));
    }

    /// Notes that nothing is at a path, unless something was found there.
    pub(crate) fn put_empty_path(&mut self, store: StoreId, path: &str) {
        self.stores.entry(store).or_default().by_path.entry(path.to_owned()).or_insert(None);
    }

    /// Notes that there is no such memory, unless it was found.
    pub(crate) fn put_no_memory(&mut self, store: StoreId, id: MemoryId) {
        self.stores.entry(store).or_default().by_id.entry(id).or_insert(None);
    }

    pub(crate) fn put_below(&mut self, store: StoreId, directory: &str, memory: Option<Memory>) {
        let below = self.stores.entry(store).or_default().below.entry(directory.to_owned());
        below.or_default().extend(memory);
    }

    pub(crate) fn put_version(&mut self, version: Version) {
        self.stores.entry(version.store).or_default().versions.insert(version.id, version);
    }

    pub(crate) fn store(&self, id: StoreId) -> Option<&Store> {
        self.stores.get(&id)?.row.as_ref().map(|(store, _)| store)
    }

    pub(crate) fn usage(&self, id: StoreId) -> Option<Usage> {
        self.stores.get(&id)?.row.as_ref().map(|(_, usage)| *usage)
    }

    pub(crate) fn tombstones(&self, id: StoreId) -> Option<&[Tombstone]> {
        self.stores.get(&id)?.tombstones.as_deref()
    }

    /// Returns a memory, or that there is none; `None` if that is not known.
    pub(crate) fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Option<Found> {
        match self.stores.get(&store)?.by_id.get(&id)? {
            Some(known) => known.shown(view).map(|memory| Found(Some(memory))),
            None => Some(Found(None)),
        }
    }

    pub(crate) fn memory_at(&self, store: StoreId, path: &str, view: View) -> Option<Found> {
        match self.stores.get(&store)?.by_path.get(path)? {
            Some(known) => known.shown(view).map(|memory| Found(Some(memory))),
            None => Some(Found(None)),
        }
    }

    pub(crate) fn version(&self, store: StoreId, id: VersionId, view: View) -> Option<Version> {
        let version = self.stores.get(&store)?.versions.get(&id)?;
        Some(match view {
            View::Full => version.clone(),
            View::Basic => Version { content: None, ..version.clone() },
        })
    }

    /// Returns the memory that overlaps a path, or that there is none; `None` if that is not known.
    pub(crate) fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Option<Found> {
        let known = self.stores.get(&store)?;
        let mut above: Vec<_> = path.ancestors().collect();
        above.push(path.as_str());
        for candidate in above.into_iter().rev() {
            if let Some(found) = known.by_path.get(candidate)?
                && Some(found.memory.id) != except
            {
                return Some(Found(found.shown(View::Basic)));
            }
        }
        let below = known.below.get(path.as_directory().as_str())?;
        Some(Found(below.iter().find(|memory| Some(memory.id) != except).cloned()))
    }

    /// Enters a change.
    pub(crate) fn commit(&mut self, commit: &Commit) {
        let Some(known) = self.stores.get_mut(&commit.version.store) else { return };
        let (before, after) = (commit.before.as_ref(), commit.after.as_ref());
        let size = |memory: Option<&Memory>| memory.map_or(0, |memory| memory.size_bytes);
        if let Some((_, usage)) = &mut known.row {
            usage.memories_count = (usage.memories_count + u64::from(after.is_some()))
                .saturating_sub(u64::from(before.is_some()));
            usage.size_bytes = (usage.size_bytes + size(after)).saturating_sub(size(before));
        }
        for memory in before.into_iter().chain(after) {
            // What else is in a directory is not known here.
            known.below.retain(|directory, _| !memory.path.as_str().starts_with(&**directory));
        }
        if let Some(before) = before {
            known.by_path.insert(before.path.as_str().to_owned(), None);
            known.by_id.insert(before.id, None);
        }
        if let Some(after) = after {
            let view = if after.content.is_some() { View::Full } else { View::Basic };
            let entry = Some(Known { memory: after.clone(), view });
            known.by_path.insert(after.path.as_str().to_owned(), entry.clone());
            known.by_id.insert(after.id, entry);
        }
    }

    /// Forgets everything, after changes that were not entered or were taken back.
    pub(crate) fn forget_all(&mut self) {
        self.stores.clear();
    }
}
