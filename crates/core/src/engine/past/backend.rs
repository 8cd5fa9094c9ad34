//! The backend that answers as of a moment.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{
    Backend, Change, Condition, Erasure, Event, MemoryQuery, PendingErasure, Purpose, ReadWork,
    Reader, Sequence, SessionQuery, Span, StoreQuery, Usage, VersionFilter, VersionQuery,
    WatchWork, WriteWork,
};
use crate::model::{
    CopyMade, DeletedStore, Id as _, Key, KeyId, Memory, MemoryId, MemoryPath, Operation, Receipt,
    ReceiptId, Refusal, SecretHash, Session, SessionId, Store, StoreId, StorePolicy, Timestamp,
    Tombstone, Version, VersionId, View, Workspace, WorkspaceId,
};
use crate::{Error, ErrorKind};

use super::super::feed::{Changes, changes_after};
use super::Past;

/// How many changes are looked at to find out whether a kept tree is still right. If there are more, it
/// is read again.
const CHANGES_MAX: usize = 1_000;

/// Reads one store as it was at a moment.
#[derive(Debug)]
pub(super) struct PastBackend {
    inner: Arc<dyn Backend>,
    store: StoreId,
    at: Timestamp,
    /// The newest change at that moment.
    sequence: Sequence,
    /// The tree that this backend has read.
    tree: Mutex<Option<Arc<Tree>>>,
    /// Those that others have read.
    trees: Arc<Trees>,
}

/// The trees that were read last, shared by all engines of the past that an engine has returned: a client
/// that asks for page after page gets another one for each.
#[derive(Debug, Default)]
pub(in crate::engine) struct Trees(Mutex<Vec<(StoreId, Timestamp, Arc<Tree>)>>);

/// How many trees are shared, and how many memories they have together.
const TREES_MAX: usize = 8;
const TREES_MEMORIES_MAX: usize = 50_000;

impl Trees {
    fn get(&self, store: StoreId, at: Timestamp) -> Option<Arc<Tree>> {
        let trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = trees.iter().find(|(of, then, _)| (*of, *then) == (store, at));
        found.map(|(_, _, tree)| Arc::clone(tree))
    }

    /// Keeps a tree in place of the one that was kept for the same moment, and drops the oldest ones if
    /// there are too many.
    fn keep(&self, store: StoreId, at: Timestamp, tree: &Arc<Tree>) {
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trees.retain(|(of, then, _)| (*of, *then) != (store, at));
        trees.push((store, at, Arc::clone(tree)));
        let size = |trees: &[(StoreId, Timestamp, Arc<Tree>)]| {
            trees.iter().map(|(_, _, tree)| tree.memories.len()).sum::<usize>()
        };
        while trees.len() > TREES_MAX || (size(&trees) > TREES_MEMORIES_MAX && !trees.is_empty()) {
            trees.remove(0);
        }
    }
}

/// All memories of the store, without their texts.
#[derive(Debug)]
pub(in crate::engine) struct Tree {
    /// In byte order of their paths.
    memories: Vec<Memory>,
    /// The newest change, of the present, up to which this is known to be right.
    checked: Sequence,
    horizon: Option<Timestamp>,
}

impl PastBackend {
    pub(super) fn new(
        inner: Arc<dyn Backend>,
        past: &Past,
        sequence: Sequence,
        trees: Arc<Trees>,
    ) -> Self {
        let tree = Mutex::new(trees.get(past.store, past.at));
        Self { inner, store: past.store, at: past.at, sequence, tree, trees }
    }

    /// Returns the tree, from memory if nothing was redacted or pruned since it was read.
    fn tree(&self, reader: &dyn Reader) -> Result<Arc<Tree>, Error> {
        let checked = reader.newest_change()?.0;
        let horizon = reader.horizon(self.store)?;
        let kept = self.tree.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(tree) = kept
            && tree.horizon == horizon
            && self.is_unchanged_since(reader, tree.checked)?
        {
            return Ok(tree);
        }
        let versions = reader.versions_at(self.store, self.at, View::Basic)?;
        let memories: Vec<_> = versions.into_iter().filter_map(memory_of).collect();
        let tree = Arc::new(Tree { memories, checked, horizon });
        *self.tree.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&tree));
        self.trees.keep(self.store, self.at, &tree);
        Ok(tree)
    }

    /// Returns whether no version of the store was redacted after a change.
    fn is_unchanged_since(&self, reader: &dyn Reader, checked: Sequence) -> Result<bool, Error> {
        if reader.newest_change()?.0 == checked {
            return Ok(true);
        }
        let Changes { items: changes, has_gap } = changes_after(reader, checked, CHANGES_MAX)?;
        // A snapshot that is older than the tree has no changes after it.
        let is_known = !has_gap && !changes.is_empty() && changes.len() < CHANGES_MAX;
        let touches_the_past = |change: &Change| {
            change.store == self.store
                && matches!(change.event, Event::Redacted(_) | Event::StoreDeleted)
        };
        Ok(is_known && !changes.iter().any(touches_the_past))
    }

    fn refusal() -> Error {
        Error::new(ErrorKind::StoreArchived, "the past of a store is read-only")
            .with_hint("write to the store itself; `restore` brings a past state back")
    }
}

/// Returns the memory that a version was, without its text; `None` for a deletion and once redacted.
///
/// What was restored after a deletion counts as created when its id was made: finding the restoration
/// would take another query for each memory.
fn memory_of(version: Version) -> Option<Memory> {
    Some(Memory {
        id: version.memory,
        store: version.store,
        path: version.path?,
        content: version.content,
        hash: version.hash?,
        size_bytes: version.size_bytes?,
        version: version.id,
        created_at: version.memory.created_at(),
        updated_at: version.created_at,
    })
}

impl Backend for PastBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(&mut |reader| work(&PastReader { past: self, reader }))
    }

    fn read_now(&self, _: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        None
    }

    fn write(&self, _: Purpose, _: &mut WriteWork<'_>) -> Result<(), Error> {
        Err(Self::refusal())
    }

    fn wait(&self, _: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        self.inner.watch(timeout, &mut || Ok(false))?;
        Ok(self.sequence)
    }

    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error> {
        self.inner.watch(timeout, is_done)
    }

    fn erase(&self) -> Result<Erasure, Error> {
        Err(Self::refusal())
    }

    fn note_erased(&self, _: &[PendingErasure]) -> Result<(), Error> {
        Err(Self::refusal())
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.inner.condition()
    }

    fn clock(&self) -> Result<Option<Timestamp>, Error> {
        self.inner.clock()
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.inner.verify()
    }

    fn rebuild(&self) -> Result<(), Error> {
        Err(Self::refusal())
    }

    fn backup(&self, _: &Path) -> Result<(), Error> {
        Err(Self::refusal())
    }

    fn compact(&self) -> Result<(), Error> {
        Err(Self::refusal())
    }

    /// Does nothing: the handle belongs to the present.
    fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A snapshot of the present, read as of a moment.
pub(super) struct PastReader<'a> {
    past: &'a PastBackend,
    pub(super) reader: &'a dyn Reader,
}

impl PastReader<'_> {
    fn is_here(&self, store: StoreId) -> bool {
        store == self.past.store
    }

    /// Returns the newest version of the store by then that passes a filter.
    fn newest(&self, filter: VersionFilter, view: View) -> Result<Option<Version>, Error> {
        let created = Span { last: self.past.at, ..filter.created };
        let filter = VersionFilter { created, ..filter };
        let query = VersionQuery { filter, before: None, limit: 1, view };
        Ok(self.reader.versions(self.past.store, &query)?.pop())
    }

    /// Returns the memories in byte order of their paths, without their texts.
    fn tree(&self, store: StoreId) -> Result<Option<Arc<Tree>>, Error> {
        if !self.is_here(store) || self.store(store)?.is_none() {
            return Ok(None);
        }
        self.past.tree(self.reader).map(Some)
    }

    fn with_text(&self, memory: &Memory, view: View) -> Result<Memory, Error> {
        let content = match view {
            View::Basic => None,
            View::Full => self
                .reader
                .version(memory.store, memory.version, View::Full)?
                .and_then(|version| version.content),
        };
        Ok(Memory { content, ..memory.clone() })
    }
}

impl Reader for PastReader<'_> {
    fn workspaces(&self) -> Result<Vec<Workspace>, Error> {
        self.reader.workspaces()
    }

    fn store(&self, id: StoreId) -> Result<Option<Store>, Error> {
        let store = if self.is_here(id) { self.reader.store(id)? } else { None };
        // It takes no new text, and nothing in it expires.
        let policy = |policy| StorePolicy { expire_after_days: None, ..policy };
        let archived_at = Some(self.past.at);
        Ok(store.map(|store| Store { policy: policy(store.policy), archived_at, ..store }))
    }

    fn removed_store(&self, _: StoreId) -> Result<Option<WorkspaceId>, Error> {
        Ok(None)
    }

    fn stores(&self, query: &StoreQuery) -> Result<Vec<Store>, Error> {
        let is_selected = |store: &Store| {
            store.workspace == query.workspace
                && query.created.contains(store.created_at)
                && query.before.is_none_or(|before| store.id < before)
        };
        let store = self.store(self.past.store)?.filter(is_selected);
        Ok(store.into_iter().take(query.limit).collect())
    }

    fn deleted_stores(&self, _: WorkspaceId) -> Result<Vec<DeletedStore>, Error> {
        Ok(Vec::new())
    }

    fn usage(&self, store: StoreId) -> Result<Usage, Error> {
        let Some(tree) = self.tree(store)? else { return Ok(Usage::default()) };
        Ok(Usage {
            memories_count: u64::try_from(tree.memories.len()).unwrap_or(u64::MAX),
            size_bytes: tree.memories.iter().map(|memory| memory.size_bytes).sum(),
        })
    }

    fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Option<Memory>, Error> {
        if !self.is_here(store) {
            return Ok(None);
        }
        let of_memory = VersionFilter { memory: Some(id), ..VersionFilter::default() };
        Ok(self.newest(of_memory, view)?.and_then(memory_of))
    }

    /// The last memory that came to the path by then is the only one that can have been there: another
    /// one would have had to leave first, and coming back makes a version.
    fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Option<Memory>, Error> {
        if !self.is_here(store) {
            return Ok(None);
        }
        let at_path = VersionFilter { path: Some(path.clone()), ..VersionFilter::default() };
        match self.newest(at_path, View::Basic)? {
            Some(version) if version.operation != Operation::Deleted => {
                let memory = self.memory(store, version.memory, view)?;
                Ok(memory.filter(|memory| memory.path == *path))
            }
            Some(_) | None => Ok(None),
        }
    }

    fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<Option<Memory>, Error> {
        let Some(tree) = self.tree(store)? else { return Ok(None) };
        let overlaps = |memory: &&Memory| memory.path.overlaps(path) && Some(memory.id) != except;
        let overlaps: Vec<_> = tree.memories.iter().filter(overlaps).collect();
        let at_or_above = overlaps.iter().filter(|memory| memory.path <= *path);
        let nearest = at_or_above.max_by_key(|memory| memory.path.as_str().len());
        Ok(nearest.or(overlaps.first()).map(|memory| (*memory).clone()))
    }

    fn memories(&self, store: StoreId, query: &MemoryQuery) -> Result<Vec<Memory>, Error> {
        let Some(tree) = self.tree(store)? else { return Ok(Vec::new()) };
        let directory = query.directory.as_str();
        let is_before = |memory: &Memory| {
            let path = memory.path.as_str();
            let is_before_start = match &query.start {
                Bound::Included(start) => path < start.as_str(),
                Bound::Excluded(start) => path <= start.as_str(),
                Bound::Unbounded => false,
            };
            path < directory || is_before_start
        };
        let start = tree.memories.partition_point(is_before);
        let rest = tree.memories.get(start..).unwrap_or_default();
        let selected = rest.iter().take_while(|memory| query.directory.contains(&memory.path));
        selected.take(query.limit).map(|memory| self.with_text(memory, query.view)).collect()
    }

    fn unused_memories(&self, _: StoreId, _: Timestamp, _: usize) -> Result<Vec<Memory>, Error> {
        Ok(Vec::new())
    }

    fn last_use(&self, _: StoreId, _: MemoryId) -> Result<Option<Timestamp>, Error> {
        Ok(None)
    }

    fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Option<Version>, Error> {
        if !self.is_here(store) || id.created_at() > self.past.at {
            return Ok(None);
        }
        self.reader.version(store, id, view)
    }

    fn versions(&self, store: StoreId, query: &VersionQuery) -> Result<Vec<Version>, Error> {
        if !self.is_here(store) {
            return Ok(Vec::new());
        }
        let mut query = query.clone();
        query.filter.created.last = query.filter.created.last.min(self.past.at);
        self.reader.versions(store, &query)
    }

    fn versions_at(
        &self,
        store: StoreId,
        at: Timestamp,
        view: View,
    ) -> Result<Vec<Version>, Error> {
        if !self.is_here(store) {
            return Ok(Vec::new());
        }
        self.reader.versions_at(store, at.min(self.past.at), view)
    }

    fn horizon(&self, store: StoreId) -> Result<Option<Timestamp>, Error> {
        if self.is_here(store) { self.reader.horizon(store) } else { Ok(None) }
    }

    fn refusals(&self, _: StoreId, _: usize) -> Result<Vec<Refusal>, Error> {
        Ok(Vec::new())
    }

    fn session(&self, id: SessionId) -> Result<Option<Session>, Error> {
        self.reader.session(id)
    }

    fn session_with_token(&self, token: &SecretHash) -> Result<Option<Session>, Error> {
        self.reader.session_with_token(token)
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        self.reader.sessions(query)
    }

    fn sessions_of_key(&self, key: KeyId) -> Result<Vec<SessionId>, Error> {
        self.reader.sessions_of_key(key)
    }

    fn sessions_count(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        self.reader.sessions_count(workspace)
    }

    fn key(&self, id: KeyId) -> Result<Option<Key>, Error> {
        self.reader.key(id)
    }

    fn key_with_secret(&self, secret: &SecretHash) -> Result<Option<Key>, Error> {
        self.reader.key_with_secret(secret)
    }

    fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
        self.reader.keys(workspace)
    }

    fn derived_keys(
        &self,
        workspace: WorkspaceId,
        parent: Option<KeyId>,
    ) -> Result<Vec<Key>, Error> {
        self.reader.derived_keys(workspace, parent)
    }

    fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        let mut changes = self.reader.changes(after, limit)?;
        changes.retain(|change| change.sequence <= self.past.sequence);
        Ok(changes)
    }

    fn cursor(&self, name: &str) -> Result<Option<Sequence>, Error> {
        self.reader.cursor(name)
    }

    fn newest_change(&self) -> Result<(Sequence, Timestamp), Error> {
        Ok((self.past.sequence, self.past.at))
    }

    fn oldest_change(&self) -> Result<Option<(Sequence, Timestamp)>, Error> {
        self.reader.oldest_change()
    }

    fn changed_at(&self, store: StoreId) -> Result<Timestamp, Error> {
        if !self.is_here(store) {
            return Ok(Timestamp::MIN);
        }
        let newest = self.newest(VersionFilter::default(), View::Basic)?;
        Ok(newest.map_or(Timestamp::MIN, |version| version.created_at))
    }

    fn tombstones(&self, store: StoreId) -> Result<Vec<Tombstone>, Error> {
        if self.is_here(store) { self.reader.tombstones(store) } else { Ok(Vec::new()) }
    }

    fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, Error> {
        self.reader.receipt(id)
    }

    fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Vec<Receipt>, Error> {
        self.reader.receipts(workspace, before, limit)
    }

    fn unproven_receipts(&self) -> Result<Vec<Receipt>, Error> {
        self.reader.unproven_receipts()
    }

    fn copies_made(
        &self,
        workspace: WorkspaceId,
        since: Timestamp,
    ) -> Result<Vec<CopyMade>, Error> {
        self.reader.copies_made(workspace, since)
    }

    fn pending_erasures(&self) -> Result<Vec<PendingErasure>, Error> {
        Ok(Vec::new())
    }
}
