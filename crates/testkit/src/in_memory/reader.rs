//! What can be read of the maps.

use std::ops::Bound;

use quipu_core::Error;
use quipu_core::backend::{
    Archived, Change, MemoryQuery, PendingErasure, Prunable, PrunePlace, PruneRule, Reader,
    Sequence, SessionQuery, StoreQuery, Usage, VersionQuery,
};
use quipu_core::model::{
    CopyMade, DeletedStore, Id as _, Key, KeyId, Memory, MemoryId, MemoryPath, Receipt, ReceiptId,
    Refusal, SecretHash, Session, SessionId, Store, StoreId, Timestamp, Tombstone, Version,
    VersionId, View, Workspace, WorkspaceId,
};

use super::{State, basic, keys, memories, sessions, viewed};

impl Reader for State {
    fn workspaces(&self) -> Result<Vec<Workspace>, Error> {
        Ok(self.workspaces.values().cloned().collect())
    }

    fn store(&self, id: StoreId) -> Result<Option<Store>, Error> {
        Ok(self.stores.get(&id).cloned())
    }

    fn removed_store(&self, id: StoreId) -> Result<Option<WorkspaceId>, Error> {
        Ok(self.removed_stores.get(&id).copied())
    }

    fn stores(&self, query: &StoreQuery) -> Result<Vec<Store>, Error> {
        let selected = self.stores.values().rev().filter(|store| {
            store.workspace == query.workspace
                && query.before.is_none_or(|before| store.id < before)
                && query.created.contains(store.created_at)
                && (query.archived == Archived::Show || store.archived_at.is_none())
        });
        Ok(selected.take(query.limit).cloned().collect())
    }

    fn deleted_stores(&self, workspace: WorkspaceId) -> Result<Vec<DeletedStore>, Error> {
        Ok(self.hidden(workspace))
    }

    fn usage(&self, store: StoreId) -> Result<Usage, Error> {
        Ok(self.memories_of(store).fold(Usage::default(), |usage, memory| Usage {
            memories_count: usage.memories_count + 1,
            size_bytes: usage.size_bytes + memory.size_bytes,
        }))
    }

    fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Option<Memory>, Error> {
        let mut found = self.memories_of(store).find(|memory| memory.id == id).cloned();
        if let Some(memory) = &mut found {
            viewed(&mut memory.content, view);
        }
        Ok(found)
    }

    fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Option<Memory>, Error> {
        let mut found = self.memories.get(&(store, path.clone())).cloned();
        if let Some(memory) = &mut found {
            viewed(&mut memory.content, view);
        }
        Ok(found)
    }

    fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<Option<Memory>, Error> {
        Ok(memories::overlapping(self, store, path, except))
    }

    fn memories(&self, store: StoreId, query: &MemoryQuery) -> Result<Vec<Memory>, Error> {
        Ok(memories::selected(self, store, query))
    }

    fn unused_memories(
        &self,
        store: StoreId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Memory>, Error> {
        let unused = self.memories_of(store).filter(|memory| {
            memory.updated_at <= since
                && self.touched.get(&memory.id).is_none_or(|touched| *touched <= since)
        });
        Ok(unused.take(limit).map(basic).collect())
    }

    fn last_use(&self, store: StoreId, memory: MemoryId) -> Result<Option<Timestamp>, Error> {
        let expires =
            self.stores.get(&store).is_some_and(|store| store.policy.expire_after_days.is_some());
        let memory = self.memory(store, memory, View::Basic)?.filter(|_| expires);
        Ok(memory.map(|memory| {
            self.touched.get(&memory.id).map_or(memory.updated_at, |at| memory.updated_at.max(*at))
        }))
    }

    fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Option<Version>, Error> {
        let mut found = self.versions.get(&id).filter(|version| version.store == store).cloned();
        if let Some(version) = &mut found {
            viewed(&mut version.content, view);
        }
        Ok(found)
    }

    fn versions(&self, store: StoreId, query: &VersionQuery) -> Result<Vec<Version>, Error> {
        let selected = self.versions.values().rev().filter(|version| {
            version.store == store
                && query.before.is_none_or(|before| version.id < before)
                && query.filter.accepts(version)
        });
        let mut selected: Vec<_> = selected.take(query.limit).cloned().collect();
        for version in &mut selected {
            viewed(&mut version.content, query.view);
        }
        Ok(selected)
    }

    fn versions_at(
        &self,
        store: StoreId,
        at: Timestamp,
        view: View,
    ) -> Result<Vec<Version>, Error> {
        Ok(self.held_at(store, at, view))
    }

    fn horizon(&self, store: StoreId) -> Result<Option<Timestamp>, Error> {
        Ok(self.horizons.get(&store).copied())
    }

    fn refusals(&self, store: StoreId, limit: usize) -> Result<Vec<Refusal>, Error> {
        Ok(self.refused(store, limit))
    }

    fn session(&self, id: SessionId) -> Result<Option<Session>, Error> {
        Ok(self.sessions.get(&id).cloned())
    }

    fn session_with_token(&self, token: &SecretHash) -> Result<Option<Session>, Error> {
        Ok(self.sessions.values().find(|session| session.token == Some(*token)).cloned())
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        Ok(sessions::selected(self, query))
    }

    fn sessions_of_key(&self, key: KeyId) -> Result<Vec<SessionId>, Error> {
        Ok(sessions::of_key(self, key))
    }

    fn sessions_count(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        Ok(sessions::count(self, workspace))
    }

    fn key(&self, id: KeyId) -> Result<Option<Key>, Error> {
        Ok(self.keys.get(&id).cloned())
    }

    fn key_with_secret(&self, secret: &SecretHash) -> Result<Option<Key>, Error> {
        Ok(self.keys.values().find(|key| key.secret == *secret).cloned())
    }

    fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
        Ok(self.keys.values().filter(|key| key.workspace == workspace).cloned().collect())
    }

    fn derived_keys(
        &self,
        workspace: WorkspaceId,
        parent: Option<KeyId>,
    ) -> Result<Vec<Key>, Error> {
        Ok(keys::derived(self, workspace, parent))
    }

    fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        let later = self.changes.range((Bound::Excluded(after), Bound::Unbounded));
        Ok(later.take(limit).map(|(_, change)| change.clone()).collect())
    }

    fn cursor(&self, name: &str) -> Result<Option<Sequence>, Error> {
        Ok(self.cursors.get(name).copied())
    }

    fn newest_change(&self) -> Result<(Sequence, Timestamp), Error> {
        let newest = self.changes.values().next_back();
        Ok(newest.map_or((Sequence(0), Timestamp::MIN), |change| (change.sequence, change.at)))
    }

    fn oldest_change(&self) -> Result<Option<(Sequence, Timestamp)>, Error> {
        Ok(self.changes.values().next().map(|change| (change.sequence, change.at)))
    }

    fn changed_at(&self, store: StoreId) -> Result<Timestamp, Error> {
        let of_store = self.versions.values().filter(|version| version.store == store);
        Ok(of_store.map(|version| version.created_at).max().unwrap_or(Timestamp::MIN))
    }

    fn prunable(
        &self,
        rule: &PruneRule,
        after: Option<PrunePlace>,
        limit: usize,
    ) -> Result<Prunable, Error> {
        let after = after.map_or(i64::MIN, |PrunePlace([at, ..])| at);
        let mut versions = self.given_up(rule);
        versions.retain(|(_, id)| id.created_at().as_micros() > after);
        versions.truncate(limit);
        let last = versions.last().filter(|_| versions.len() == limit);
        let next = last.map(|(_, id)| PrunePlace([id.created_at().as_micros(), 0, 0]));
        versions.sort_by_key(|(store, _)| *store);
        Ok(Prunable { versions, next })
    }

    fn pending_erasures(&self) -> Result<Vec<PendingErasure>, Error> {
        Ok(self.pending_erasures.clone())
    }

    fn tombstones(&self, store: StoreId) -> Result<Vec<Tombstone>, Error> {
        Ok(self.tombstones_of(store))
    }

    fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, Error> {
        Ok(self.receipts.get(&id).cloned())
    }

    fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Vec<Receipt>, Error> {
        Ok(self.receipts_of(workspace, before, limit))
    }

    fn unproven_receipts(&self) -> Result<Vec<Receipt>, Error> {
        Ok(self.receipts.values().filter(|it| it.proof.is_none()).cloned().collect())
    }

    fn copies_made(
        &self,
        workspace: WorkspaceId,
        since: Timestamp,
    ) -> Result<Vec<CopyMade>, Error> {
        Ok(self.copies_since(workspace, since))
    }
}
