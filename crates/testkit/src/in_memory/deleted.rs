//! Stores that are deleted and can be restored.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quipu_core::backend::PendingErasure;
use quipu_core::model::{
    DeletedStore, Memory, MemoryId, MemoryPath, StoreId, Timestamp, Version, VersionId, WorkspaceId,
};

use super::State;

/// A deleted store with what was in it.
#[derive(Clone, Debug)]
pub(super) struct Deleted {
    store: DeletedStore,
    memories: BTreeMap<(StoreId, MemoryPath), Memory>,
    versions: BTreeMap<VersionId, Version>,
}

impl State {
    pub(super) fn hide(&mut self, id: StoreId, at: Timestamp) {
        let Some(store) = self.stores.remove(&id) else { return };
        self.removed_stores.insert(id, store.workspace);
        let memories: BTreeMap<_, _> =
            self.memories.extract_if(.., |_, memory| memory.store == id).collect();
        let versions = self.versions.extract_if(.., |_, version| version.store == id).collect();
        let memories_count = u64::try_from(memories.len()).expect("they fit into memory");
        let store = DeletedStore { store, memories_count, deleted_at: at };
        self.deleted_stores.insert(id, Deleted { store, memories, versions });
    }

    pub(super) fn show(&mut self, id: StoreId) {
        let Some(deleted) = self.deleted_stores.remove(&id) else { return };
        self.stores.insert(id, deleted.store.store);
        self.memories.extend(deleted.memories);
        self.versions.extend(deleted.versions);
    }

    pub(super) fn forget(&mut self, id: StoreId) {
        let removed = self.stores.remove(&id);
        self.removed_stores.extend(removed.map(|store| (id, store.workspace)));
        self.deleted_stores.remove(&id);
        self.refusals.retain(|refusal| refusal.store != id);
    }

    pub(super) fn hidden(&self, workspace: WorkspaceId) -> Vec<DeletedStore> {
        let all = self.deleted_stores.values().map(|deleted| &deleted.store);
        let mut hidden: Vec<_> =
            all.filter(|deleted| deleted.store.workspace == workspace).cloned().collect();
        hidden.sort_by_key(|deleted| Reverse(deleted.deleted_at));
        hidden
    }
}

impl State {
    /// Notes that text was removed and is to be erased.
    pub(super) fn set_pending(&mut self, store: StoreId, memory: Option<MemoryId>) {
        let count = self.commits + 1;
        self.pending_erasures.retain(|it| (it.store, it.memory) != (store, memory));
        self.pending_erasures.push(PendingErasure { store, memory, count });
    }
}
