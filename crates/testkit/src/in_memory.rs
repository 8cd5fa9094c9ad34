//! The simplest backend: everything in maps, cloned for every write.

mod agents;
mod backend;
mod deleted;
mod forgetting;
mod keys;
mod memories;
mod past;
mod refusals;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quipu_core::backend::{
    Archived, Change, Commit, Event, KeyPruneRule, MemoryQuery, PendingErasure, Prunable,
    PrunePlace, PruneRule, Reader, Sequence, SessionQuery, Stamp, StoreQuery, Usage, VersionQuery,
    Writer,
};
use quipu_core::model::{
    CopyMade, Definition, DefinitionId, DeletedStore, Id as _, Key, KeyId, Memory, MemoryId,
    MemoryPath, Receipt, ReceiptId, Redaction, Refusal, SecretHash, Session, SessionEvent,
    SessionId, Store, StoreId, Timestamp, Tombstone, Version, VersionId, View, Workspace,
    WorkspaceId,
};

use quipu_core::{Error, ErrorKind};

use deleted::Deleted;

/// A backend that forgets everything when its last handle is dropped.
#[derive(Debug, Default)]
pub struct InMemoryBackend {
    shared: Arc<Shared>,
    is_closed: AtomicBool,
}

/// What all handles have in common.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default)]
struct State {
    workspaces: BTreeMap<WorkspaceId, Workspace>,
    stores: BTreeMap<StoreId, Store>,
    deleted_stores: BTreeMap<StoreId, Deleted>,
    removed_stores: BTreeMap<StoreId, WorkspaceId>,
    refusals: Vec<Refusal>,
    memories: BTreeMap<(StoreId, MemoryPath), Memory>,
    touched: BTreeMap<MemoryId, Timestamp>,
    versions: BTreeMap<VersionId, Version>,
    horizons: BTreeMap<StoreId, Timestamp>,
    sessions: BTreeMap<SessionId, Session>,
    session_keys: BTreeSet<(KeyId, SessionId)>,
    definitions: BTreeMap<(DefinitionId, u64), Definition>,
    events: BTreeMap<(SessionId, u64), SessionEvent>,
    newest_events: BTreeMap<SessionId, (u64, Timestamp)>,
    keys: BTreeMap<KeyId, Key>,
    changes: BTreeMap<Sequence, Change>,
    cursors: BTreeMap<String, Sequence>,
    pending_erasures: Vec<PendingErasure>,
    tombstones: Vec<(StoreId, Tombstone)>,
    receipts: BTreeMap<ReceiptId, Receipt>,
    copies_made: Vec<CopyMade>,
    commits: u64,
}

impl InMemoryBackend {
    /// Returns another handle to the same data, as another process would have.
    #[must_use]
    pub fn reopened(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), is_closed: AtomicBool::new(false) }
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::StorageUnavailable, "the backend is closed"));
        }
        Ok(self.shared.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn viewed<T>(content: &mut Option<T>, view: View) {
    if view == View::Basic {
        *content = None;
    }
}

fn basic(memory: &Memory) -> Memory {
    Memory { content: None, ..memory.clone() }
}

impl State {
    fn memories_of(&self, store: StoreId) -> impl Iterator<Item = &Memory> {
        self.memories.values().filter(move |memory| memory.store == store)
    }
}

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

impl Writer for State {
    fn next_stamp(&mut self, now: Timestamp) -> Result<Stamp, Error> {
        let newest = self.changes.values().next_back();
        Ok(Stamp::after(newest.map(|change| (change.sequence, change.at)), now))
    }

    fn put_workspace(&mut self, workspace: &Workspace) -> Result<(), Error> {
        self.workspaces.insert(workspace.id, workspace.clone());
        Ok(())
    }

    fn put_store(&mut self, store: &Store) -> Result<(), Error> {
        self.stores.insert(store.id, store.clone());
        Ok(())
    }

    fn delete_store(&mut self, id: StoreId, at: Timestamp) -> Result<(), Error> {
        self.hide(id, at);
        Ok(())
    }

    fn restore_store(&mut self, id: StoreId) -> Result<(), Error> {
        self.show(id);
        Ok(())
    }

    fn remove_store(&mut self, id: StoreId) -> Result<(), Error> {
        self.forget(id);
        self.memories.retain(|_, memory| memory.store != id);
        self.versions.retain(|_, version| version.store != id);
        self.horizons.remove(&id);
        self.tombstones.retain(|(store, _)| *store != id);
        self.set_pending(id, None);
        for key in self.keys.values_mut() {
            key.stores.iter_mut().for_each(|stores| stores.retain(|store| *store != id));
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let version = &commit.version;
        self.versions.insert(version.id, version.clone());
        if let Some(before) = &commit.before {
            self.memories.remove(&(before.store, before.path.clone()));
        }
        match &commit.after {
            Some(after) => {
                self.memories.insert((after.store, after.path.clone()), after.clone());
            }
            None => {
                self.touched.remove(&version.memory);
            }
        }
        self.record(&Change {
            sequence: commit.sequence,
            transaction: commit.transaction,
            at: version.created_at,
            store: version.store,
            event: Event::Version(version.id),
        })
    }

    fn redact(
        &mut self,
        store: StoreId,
        redactions: &[(VersionId, Redaction)],
    ) -> Result<(), Error> {
        for (id, redaction) in redactions {
            let version = self.versions.get_mut(id).filter(|version| version.store == store);
            let Some(version) = version else { continue };
            let path = version.path.as_ref().map(MemoryPath::as_str);
            self.refusals.retain(|it| it.store != store || Some(it.path.as_str()) != path);
            version.path = None;
            version.content = None;
            version.hash = None;
            version.size_bytes = None;
            version.reason = None;
            version.redaction = Some(redaction.clone());
            let memory = version.memory;
            self.set_pending(store, Some(memory));
        }
        Ok(())
    }

    fn touch(&mut self, store: StoreId, memory: MemoryId, at: Timestamp) -> Result<(), Error> {
        if self.memory(store, memory, View::Basic)?.is_some() {
            self.touched.insert(memory, at);
        }
        Ok(())
    }

    fn prune(
        &mut self,
        rule: &PruneRule,
        store: StoreId,
        versions: &[VersionId],
    ) -> Result<usize, Error> {
        let given_up = self.given_up(rule);
        let pruned = versions.iter().filter(|id| given_up.contains(&(store, **id)));
        let pruned: Vec<_> = pruned.copied().collect();
        for id in &pruned {
            self.remove_version(*id);
        }
        Ok(pruned.len())
    }

    fn trim_changes(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        let newest = self.newest_change()?.0;
        let old = self.changes.values();
        let old = old.filter(|change| change.sequence != newest && change.at < before);
        let trimmed: Vec<_> = old.map(|change| change.sequence).take(limit).collect();
        self.changes.retain(|sequence, _| !trimmed.contains(sequence));
        Ok(trimmed.len())
    }

    fn put_refusal(&mut self, refusal: &Refusal, kept_count: usize) -> Result<(), Error> {
        self.refuse(refusal, kept_count);
        Ok(())
    }

    fn remove_refusal(&mut self, refusal: &Refusal) -> Result<(), Error> {
        self.refusals.retain(|it| it != refusal);
        Ok(())
    }

    fn require_erasure(&mut self, store: StoreId) -> Result<(), Error> {
        self.set_pending(store, Some(MemoryId::from_bits(0)));
        Ok(())
    }

    fn put_tombstone(&mut self, store: StoreId, tombstone: &Tombstone) -> Result<(), Error> {
        self.bury(store, tombstone);
        Ok(())
    }

    fn put_receipt(&mut self, receipt: &Receipt) -> Result<(), Error> {
        self.receipts.insert(receipt.id, receipt.clone());
        Ok(())
    }

    fn put_copy_made(&mut self, copy: &CopyMade, kept_count: usize) -> Result<(), Error> {
        self.note_copy(copy, kept_count);
        Ok(())
    }

    fn remove_copy_made(&mut self, copy: &CopyMade) -> Result<(), Error> {
        self.copies_made.retain(|it| it != copy);
        Ok(())
    }

    fn put_session(&mut self, session: &Session) -> Result<(), Error> {
        let parent = session.key.and_then(|key| self.keys.get(&key)).and_then(|key| key.parent);
        let owners = session.key.into_iter().chain(parent);
        self.session_keys.extend(owners.map(|key| (key, session.id)));
        self.sessions.insert(session.id, session.clone());
        Ok(())
    }

    fn remove_session(&mut self, id: SessionId) -> Result<(), Error> {
        sessions::remove(self, id);
        Ok(())
    }

    fn prune_sessions(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        Ok(sessions::prune(self, before, limit))
    }

    fn put_key(&mut self, key: &Key) -> Result<(), Error> {
        self.keys.insert(key.id, key.clone());
        Ok(())
    }

    fn prune_keys(&mut self, rule: &KeyPruneRule, limit: usize) -> Result<usize, Error> {
        Ok(keys::prune(self, rule, limit))
    }

    fn put_cursor(&mut self, name: &str, sequence: Sequence) -> Result<(), Error> {
        self.cursors.insert(name.to_owned(), sequence);
        Ok(())
    }

    fn record(&mut self, change: &Change) -> Result<(), Error> {
        self.changes.insert(change.sequence, change.clone());
        Ok(())
    }
}
