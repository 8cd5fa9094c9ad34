//! The simplest backend: everything in maps, cloned for every write.

mod agents;
mod backend;
mod deleted;
mod forgetting;
mod keys;
mod memories;
mod past;
mod reader;
mod refusals;
mod sessions;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quipu_core::backend::{Change, PendingErasure, Sequence};
use quipu_core::model::{
    CopyMade, Definition, DefinitionId, Key, KeyId, Memory, MemoryId, MemoryPath, Receipt,
    ReceiptId, Refusal, Session, SessionEvent, SessionId, Store, StoreId, Timestamp, Tombstone,
    Version, VersionId, View, Workspace, WorkspaceId,
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
