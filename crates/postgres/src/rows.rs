//! The [`Reader`] and [`Writer`] of this backend.
//!
//! One type serves both, since a transaction can do either. Each noun has its own file with its SQL.

mod agents;
mod changes;
mod definitions;
mod events;
pub(crate) mod forgetting;
mod keys;
pub(crate) mod memories;
mod past;
mod receipts;
mod refusals;
mod sessions;
pub(crate) mod stores;
pub(crate) mod upkeep;
pub(crate) mod versions;

use quipu_core::Error;
use quipu_core::backend::{
    Change, Commit, KeyPruneRule, MemoryQuery, PendingErasure, Prunable, PrunePlace, PruneRule,
    Reader, Sequence, SessionQuery, Stamp, StoreQuery, Subject, Usage, VersionQuery, Writer,
};
use quipu_core::model::{
    CopyMade, DeletedStore, Key, KeyId, Memory, MemoryId, MemoryPath, Receipt, ReceiptId,
    Redaction, Refusal, SecretHash, Session, SessionId, Store, StoreId, Timestamp, Tombstone,
    Version, VersionId, View, Workspace, WorkspaceId,
};

use crate::transaction::Transaction;
use crate::values::Bits;
use crate::write::Write;

/// The rows that one transaction sees.
pub(crate) struct Rows<'t, 'b> {
    source: Source<'t, 'b>,
}

/// Where the transaction comes from.
enum Source<'t, 'b> {
    Begun(&'t Transaction),
    /// The first call decides which transaction it is.
    Write(&'t Write<'b>),
}

impl<'t, 'b> Rows<'t, 'b> {
    pub(crate) fn new(transaction: &'t Transaction) -> Self {
        Self { source: Source::Begun(transaction) }
    }

    pub(crate) fn of_write(write: &'t Write<'b>) -> Self {
        Self { source: Source::Write(write) }
    }

    fn transaction(&self) -> Result<&Transaction, Error> {
        match self.source {
            Source::Begun(transaction) => Ok(transaction),
            Source::Write(write) => write.transaction(),
        }
    }
}

impl Reader for Rows<'_, '_> {
    fn workspaces(&self) -> Result<Vec<Workspace>, Error> {
        stores::workspaces(self.transaction()?)
    }

    fn store(&self, id: StoreId) -> Result<Option<Store>, Error> {
        stores::store(self.transaction()?, id)
    }

    fn removed_store(&self, id: StoreId) -> Result<Option<WorkspaceId>, Error> {
        stores::removed_store(self.transaction()?, id)
    }

    fn stores(&self, query: &StoreQuery) -> Result<Vec<Store>, Error> {
        stores::stores(self.transaction()?, query)
    }

    fn deleted_stores(&self, workspace: WorkspaceId) -> Result<Vec<DeletedStore>, Error> {
        stores::deleted_stores(self.transaction()?, workspace)
    }

    fn usage(&self, store: StoreId) -> Result<Usage, Error> {
        stores::usage(self.transaction()?, store)
    }

    fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Option<Memory>, Error> {
        memories::memory(self.transaction()?, store, id, view)
    }

    fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Option<Memory>, Error> {
        memories::memory_at(self.transaction()?, store, path.as_str(), view)
    }

    fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<Option<Memory>, Error> {
        memories::overlapping(self.transaction()?, store, path, except)
    }

    fn memories(&self, store: StoreId, query: &MemoryQuery) -> Result<Vec<Memory>, Error> {
        memories::memories(self.transaction()?, store, query)
    }

    fn unused_memories(
        &self,
        store: StoreId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Memory>, Error> {
        memories::unused(self.transaction()?, store, since, limit)
    }

    fn last_use(&self, store: StoreId, memory: MemoryId) -> Result<Option<Timestamp>, Error> {
        memories::last_use(self.transaction()?, store, memory)
    }

    fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Option<Version>, Error> {
        versions::version(self.transaction()?, store, id, view)
    }

    fn versions(&self, store: StoreId, query: &VersionQuery) -> Result<Vec<Version>, Error> {
        versions::versions(self.transaction()?, store, query)
    }

    fn versions_at(
        &self,
        store: StoreId,
        at: Timestamp,
        view: View,
    ) -> Result<Vec<Version>, Error> {
        past::versions_at(self.transaction()?, store, at, view)
    }

    fn horizon(&self, store: StoreId) -> Result<Option<Timestamp>, Error> {
        past::horizon(self.transaction()?, store)
    }

    fn refusals(&self, store: StoreId, limit: usize) -> Result<Vec<Refusal>, Error> {
        refusals::refusals(self.transaction()?, store, limit)
    }

    fn session(&self, id: SessionId) -> Result<Option<Session>, Error> {
        sessions::session(self.transaction()?, id)
    }

    fn session_with_token(&self, token: &SecretHash) -> Result<Option<Session>, Error> {
        sessions::session_with_token(self.transaction()?, token)
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        sessions::sessions(self.transaction()?, query)
    }

    fn sessions_of_key(&self, key: KeyId) -> Result<Vec<SessionId>, Error> {
        sessions::sessions_of_key(self.transaction()?, key)
    }

    fn sessions_count(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        sessions::sessions_count(self.transaction()?, workspace)
    }

    fn key(&self, id: KeyId) -> Result<Option<Key>, Error> {
        keys::key(self.transaction()?, id)
    }

    fn key_with_secret(&self, secret: &SecretHash) -> Result<Option<Key>, Error> {
        keys::key_with_secret(self.transaction()?, secret)
    }

    fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
        keys::keys(self.transaction()?, workspace)
    }

    fn derived_keys(
        &self,
        workspace: WorkspaceId,
        parent: Option<KeyId>,
    ) -> Result<Vec<Key>, Error> {
        keys::derived_keys(self.transaction()?, workspace, parent)
    }

    fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        changes::changes(self.transaction()?, after, limit)
    }

    fn removals(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        changes::removals(self.transaction()?, after, limit)
    }

    fn cursor(&self, name: &str) -> Result<Option<Sequence>, Error> {
        changes::cursor(self.transaction()?, name)
    }

    fn newest_change(&self) -> Result<(Sequence, Timestamp), Error> {
        changes::newest(self.transaction()?)
    }

    fn oldest_change(&self) -> Result<Option<(Sequence, Timestamp)>, Error> {
        changes::oldest(self.transaction()?)
    }

    fn changed_at(&self, store: StoreId) -> Result<Timestamp, Error> {
        versions::changed_at(self.transaction()?, store)
    }

    fn prunable(
        &self,
        rule: &PruneRule,
        after: Option<PrunePlace>,
        limit: usize,
    ) -> Result<Prunable, Error> {
        versions::prunable(self.transaction()?, rule, after, limit)
    }

    fn pending_erasures(&self) -> Result<Vec<PendingErasure>, Error> {
        forgetting::pending(self.transaction()?)
    }

    fn tombstones(&self, store: StoreId) -> Result<Vec<Tombstone>, Error> {
        forgetting::tombstones(self.transaction()?, store)
    }

    fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, Error> {
        receipts::receipt(self.transaction()?, id)
    }

    fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Vec<Receipt>, Error> {
        receipts::receipts(self.transaction()?, workspace, before, limit)
    }

    fn unproven_receipts(&self) -> Result<Vec<Receipt>, Error> {
        receipts::unproven_receipts(self.transaction()?)
    }

    fn copies_made(
        &self,
        workspace: WorkspaceId,
        since: Timestamp,
    ) -> Result<Vec<CopyMade>, Error> {
        forgetting::copies_made(self.transaction()?, workspace, since)
    }
}

impl Writer for Rows<'_, '_> {
    fn read_ahead(&mut self, store: StoreId, subject: Subject<'_>) -> Result<(), Error> {
        match self.source {
            Source::Begun(_) => Ok(()),
            Source::Write(write) => write.announce(store, subject),
        }
    }

    fn lock_stores(&mut self, stores: &[StoreId]) -> Result<(), Error> {
        self.transaction()?.lock_stores(stores)
    }

    fn next_stamp(&mut self, now: Timestamp) -> Result<Stamp, Error> {
        self.transaction()?.next_stamp(now)
    }

    fn put_workspace(&mut self, workspace: &Workspace) -> Result<(), Error> {
        stores::put_workspace(self.transaction()?, workspace)
    }

    fn put_store(&mut self, store: &Store) -> Result<(), Error> {
        stores::put_store(self.transaction()?, store)
    }

    fn delete_store(&mut self, id: StoreId, at: Timestamp) -> Result<(), Error> {
        stores::delete_store(self.transaction()?, id, at)
    }

    fn restore_store(&mut self, id: StoreId) -> Result<(), Error> {
        stores::restore_store(self.transaction()?, id)
    }

    fn remove_store(&mut self, id: StoreId) -> Result<(), Error> {
        stores::remove_store(self.transaction()?, id)
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        versions::commit(self.transaction()?, commit)
    }

    fn redact(
        &mut self,
        store: StoreId,
        redactions: &[(VersionId, Redaction)],
    ) -> Result<(), Error> {
        versions::redact(self.transaction()?, store, redactions)
    }

    fn touch(&mut self, store: StoreId, memory: MemoryId, at: Timestamp) -> Result<(), Error> {
        memories::touch(self.transaction()?, store, memory, at)
    }

    fn prune(
        &mut self,
        rule: &PruneRule,
        store: StoreId,
        versions: &[VersionId],
    ) -> Result<usize, Error> {
        versions::prune(self.transaction()?, rule, store, versions)
    }

    fn trim_changes(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        changes::trim(self.transaction()?, before, limit)
    }

    fn put_refusal(&mut self, refusal: &Refusal, kept_count: usize) -> Result<(), Error> {
        refusals::put_refusal(self.transaction()?, refusal, kept_count)
    }

    fn remove_refusal(&mut self, refusal: &Refusal) -> Result<(), Error> {
        refusals::remove_refusal(self.transaction()?, refusal)
    }

    fn require_erasure(&mut self, store: StoreId) -> Result<(), Error> {
        // No memory has this id, so nothing that was derived from one is erased.
        let none = vec![Bits(0)];
        forgetting::set_pending(self.transaction()?, store, none)
    }

    fn put_tombstone(&mut self, store: StoreId, tombstone: &Tombstone) -> Result<(), Error> {
        forgetting::put_tombstone(self.transaction()?, store, tombstone)
    }

    fn put_receipt(&mut self, receipt: &Receipt) -> Result<(), Error> {
        receipts::put_receipt(self.transaction()?, receipt)
    }

    fn put_copy_made(&mut self, copy: &CopyMade, kept_count: usize) -> Result<(), Error> {
        forgetting::put_copy_made(self.transaction()?, copy, kept_count)
    }

    fn remove_copy_made(&mut self, copy: &CopyMade) -> Result<(), Error> {
        forgetting::remove_copy_made(self.transaction()?, copy)
    }

    fn put_session(&mut self, session: &Session) -> Result<(), Error> {
        sessions::put_session(self.transaction()?, session)
    }

    fn remove_session(&mut self, id: SessionId) -> Result<(), Error> {
        sessions::remove_session(self.transaction()?, id)
    }

    fn prune_sessions(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        sessions::prune(self.transaction()?, before, limit)
    }

    fn put_key(&mut self, key: &Key) -> Result<(), Error> {
        keys::put_key(self.transaction()?, key)
    }

    fn prune_keys(&mut self, rule: &KeyPruneRule, limit: usize) -> Result<usize, Error> {
        keys::prune(self.transaction()?, rule, limit)
    }

    fn put_cursor(&mut self, name: &str, sequence: Sequence) -> Result<(), Error> {
        changes::put_cursor(self.transaction()?, name, sequence)
    }

    fn record(&mut self, change: &Change) -> Result<(), Error> {
        changes::record(self.transaction()?, change)
    }
}
