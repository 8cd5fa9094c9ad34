//! The [`Reader`] and [`Writer`] of this backend.
//!
//! One type serves both, since a connection inside a transaction can do either. Each noun has its
//! own file with its SQL.

mod agents;
mod changes;
mod columns;
mod definitions;
mod events;
mod forgetting;
mod keys;
mod memories;
mod past;
mod refusals;
mod sessions;
mod stores;
mod upkeep;
mod versions;

use quipu_core::Error;
use quipu_core::backend::{
    Change, Commit, KeyPruneRule, MemoryQuery, PendingErasure, Prunable, PrunePlace, PruneRule,
    Reader, Sequence, SessionQuery, Stamp, StoreQuery, Usage, VersionQuery, Writer,
};
use quipu_core::model::{
    CopyMade, DeletedStore, Id as _, Key, KeyId, Memory, MemoryId, MemoryPath, Receipt, ReceiptId,
    Redaction, Refusal, SecretHash, Session, SessionId, Store, StoreId, Timestamp, Tombstone,
    Version, VersionId, View, Workspace, WorkspaceId,
};
use rusqlite::Connection;

use crate::erase;
use crate::error::StorageResult as _;
use crate::recall::{Cacheable, Lookup, Source};

pub(crate) use changes::newest_sequence;
pub(crate) use stores::remove_deleted;
pub(crate) use upkeep::{Totals, rebuild, totals, verify};

/// The rows that one transaction sees.
pub(crate) struct Rows<'c> {
    source: Source<'c>,
}

impl<'c> Rows<'c> {
    pub(crate) fn new(source: Source<'c>) -> Self {
        Self { source }
    }

    fn connection(&self) -> Result<&Connection, Error> {
        match &self.source {
            Source::Database(connection) | Source::Snapshot(connection, _) => Ok(connection),
            Source::Cache(cache) => Err(cache.miss()),
        }
    }

    /// Looks up one row, in the cache or in the database.
    fn lookup<T: Cacheable>(
        &self,
        lookup: Lookup,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        match &self.source {
            Source::Database(connection) => read(connection).or_storage_error(),
            Source::Snapshot(connection, lookups) => {
                let found = read(connection).or_storage_error()?;
                lookups.borrow_mut().push((lookup, found.to_cached()));
                Ok(found)
            }
            Source::Cache(cache) => cache.get(&lookup),
        }
    }
}

impl Reader for Rows<'_> {
    fn workspaces(&self) -> Result<Vec<Workspace>, Error> {
        stores::workspaces(self.connection()?).or_storage_error()
    }

    fn store(&self, id: StoreId) -> Result<Option<Store>, Error> {
        self.lookup(Lookup::Store(id), |connection| stores::store(connection, id))
    }

    fn removed_store(&self, id: StoreId) -> Result<Option<WorkspaceId>, Error> {
        stores::removed_store(self.connection()?, id).or_storage_error()
    }

    fn stores(&self, query: &StoreQuery) -> Result<Vec<Store>, Error> {
        stores::stores(self.connection()?, query).or_storage_error()
    }

    fn deleted_stores(&self, workspace: WorkspaceId) -> Result<Vec<DeletedStore>, Error> {
        stores::deleted_stores(self.connection()?, workspace).or_storage_error()
    }

    fn usage(&self, store: StoreId) -> Result<Usage, Error> {
        stores::usage(self.connection()?, store).or_storage_error()
    }

    fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Option<Memory>, Error> {
        self.lookup(Lookup::Memory(store, id, view), |connection| {
            memories::memory(connection, store, id, view)
        })
    }

    fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Option<Memory>, Error> {
        self.lookup(Lookup::MemoryAt(store, path.clone(), view), |connection| {
            memories::memory_at(connection, store, path.as_str(), view)
        })
    }

    fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<Option<Memory>, Error> {
        memories::overlapping(self.connection()?, store, path, except).or_storage_error()
    }

    fn memories(&self, store: StoreId, query: &MemoryQuery) -> Result<Vec<Memory>, Error> {
        memories::memories(self.connection()?, store, query).or_storage_error()
    }

    fn unused_memories(
        &self,
        store: StoreId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Memory>, Error> {
        memories::unused(self.connection()?, store, since, limit).or_storage_error()
    }

    fn last_use(&self, store: StoreId, memory: MemoryId) -> Result<Option<Timestamp>, Error> {
        self.lookup(Lookup::LastUse(store, memory), |connection| {
            memories::last_use(connection, store, memory)
        })
    }

    fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Option<Version>, Error> {
        versions::version(self.connection()?, store, id, view).or_storage_error()
    }

    fn versions(&self, store: StoreId, query: &VersionQuery) -> Result<Vec<Version>, Error> {
        versions::versions(self.connection()?, store, query).or_storage_error()
    }

    fn versions_at(
        &self,
        store: StoreId,
        at: Timestamp,
        view: View,
    ) -> Result<Vec<Version>, Error> {
        past::versions_at(self.connection()?, store, at, view).or_storage_error()
    }

    fn horizon(&self, store: StoreId) -> Result<Option<Timestamp>, Error> {
        past::horizon(self.connection()?, store).or_storage_error()
    }

    fn refusals(&self, store: StoreId, limit: usize) -> Result<Vec<Refusal>, Error> {
        refusals::refusals(self.connection()?, store, limit).or_storage_error()
    }

    fn session(&self, id: SessionId) -> Result<Option<Session>, Error> {
        sessions::session(self.connection()?, id).or_storage_error()
    }

    fn session_with_token(&self, token: &SecretHash) -> Result<Option<Session>, Error> {
        self.lookup(Lookup::SessionWithToken(*token.as_bytes()), |connection| {
            sessions::session_with_token(connection, token)
        })
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        sessions::sessions(self.connection()?, query).or_storage_error()
    }

    fn sessions_of_key(&self, key: KeyId) -> Result<Vec<SessionId>, Error> {
        sessions::sessions_of_key(self.connection()?, key).or_storage_error()
    }

    fn sessions_count(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        sessions::sessions_count(self.connection()?, workspace).or_storage_error()
    }

    fn key(&self, id: KeyId) -> Result<Option<Key>, Error> {
        self.lookup(Lookup::Key(id), |connection| keys::key(connection, id))
    }

    fn key_with_secret(&self, secret: &SecretHash) -> Result<Option<Key>, Error> {
        self.lookup(Lookup::KeyWithSecret(*secret.as_bytes()), |connection| {
            keys::key_with_secret(connection, secret)
        })
    }

    fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
        keys::keys(self.connection()?, workspace).or_storage_error()
    }

    fn derived_keys(
        &self,
        workspace: WorkspaceId,
        parent: Option<KeyId>,
    ) -> Result<Vec<Key>, Error> {
        keys::derived_keys(self.connection()?, workspace, parent).or_storage_error()
    }

    fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        changes::changes(self.connection()?, after, limit).or_storage_error()
    }

    fn cursor(&self, name: &str) -> Result<Option<Sequence>, Error> {
        changes::cursor(self.connection()?, name).or_storage_error()
    }

    fn newest_change(&self) -> Result<(Sequence, Timestamp), Error> {
        self.lookup(Lookup::NewestChange, changes::newest)
    }

    fn oldest_change(&self) -> Result<Option<(Sequence, Timestamp)>, Error> {
        changes::oldest(self.connection()?).or_storage_error()
    }

    fn changed_at(&self, store: StoreId) -> Result<Timestamp, Error> {
        self.lookup(Lookup::ChangedAt(store), |connection| {
            versions::changed_at(connection, store).map(Some)
        })
        .map(|at: Option<Timestamp>| at.unwrap_or(Timestamp::MIN))
    }

    fn prunable(
        &self,
        rule: &PruneRule,
        after: Option<PrunePlace>,
        limit: usize,
    ) -> Result<Prunable, Error> {
        versions::prunable(self.connection()?, rule, after, limit).or_storage_error()
    }

    fn pending_erasures(&self) -> Result<Vec<PendingErasure>, Error> {
        erase::pending(self.connection()?).or_storage_error()
    }

    fn tombstones(&self, store: StoreId) -> Result<Vec<Tombstone>, Error> {
        forgetting::tombstones(self.connection()?, store).or_storage_error()
    }

    fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, Error> {
        forgetting::receipt(self.connection()?, id).or_storage_error()
    }

    fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Vec<Receipt>, Error> {
        forgetting::receipts(self.connection()?, workspace, before, limit).or_storage_error()
    }

    fn unproven_receipts(&self) -> Result<Vec<Receipt>, Error> {
        forgetting::unproven_receipts(self.connection()?).or_storage_error()
    }

    fn copies_made(
        &self,
        workspace: WorkspaceId,
        since: Timestamp,
    ) -> Result<Vec<CopyMade>, Error> {
        forgetting::copies_made(self.connection()?, workspace, since).or_storage_error()
    }
}

impl Writer for Rows<'_> {
    fn next_stamp(&mut self, now: Timestamp) -> Result<Stamp, Error> {
        let (sequence, at) = changes::newest(self.connection()?).or_storage_error()?;
        Ok(Stamp::after((sequence.0 > 0).then_some((sequence, at)), now))
    }

    fn put_workspace(&mut self, workspace: &Workspace) -> Result<(), Error> {
        stores::put_workspace(self.connection()?, workspace).or_storage_error()
    }

    fn put_store(&mut self, store: &Store) -> Result<(), Error> {
        stores::put_store(self.connection()?, store).or_storage_error()
    }

    fn delete_store(&mut self, id: StoreId, at: Timestamp) -> Result<(), Error> {
        stores::delete_store(self.connection()?, id, at).or_storage_error()
    }

    fn restore_store(&mut self, id: StoreId) -> Result<(), Error> {
        stores::restore_store(self.connection()?, id).or_storage_error()
    }

    fn remove_store(&mut self, id: StoreId) -> Result<(), Error> {
        stores::remove_store(self.connection()?, id).or_storage_error()
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        versions::commit(self.connection()?, commit).or_storage_error()
    }

    fn redact(
        &mut self,
        store: StoreId,
        redactions: &[(VersionId, Redaction)],
    ) -> Result<(), Error> {
        let connection = self.connection()?;
        let mut redactions = redactions.iter();
        redactions
            .try_for_each(|(id, redaction)| versions::redact(connection, store, *id, redaction))
            .or_storage_error()
    }

    fn touch(&mut self, store: StoreId, memory: MemoryId, at: Timestamp) -> Result<(), Error> {
        memories::touch(self.connection()?, store, memory, at).or_storage_error()
    }

    fn prune(
        &mut self,
        rule: &PruneRule,
        store: StoreId,
        versions: &[VersionId],
    ) -> Result<usize, Error> {
        versions::prune(self.connection()?, rule, store, versions).or_storage_error()
    }

    fn trim_changes(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        changes::trim(self.connection()?, before, limit).or_storage_error()
    }

    fn put_refusal(&mut self, refusal: &Refusal, kept_count: usize) -> Result<(), Error> {
        refusals::put_refusal(self.connection()?, refusal, kept_count).or_storage_error()
    }

    fn remove_refusal(&mut self, refusal: &Refusal) -> Result<(), Error> {
        refusals::remove_refusal(self.connection()?, refusal).or_storage_error()
    }

    fn require_erasure(&mut self, store: StoreId) -> Result<(), Error> {
        // No memory has this id, so nothing that was derived from one is erased.
        let none = MemoryId::from_bits(0);
        erase::set_pending(self.connection()?, store, Some(none)).or_storage_error()
    }

    fn put_tombstone(&mut self, store: StoreId, tombstone: &Tombstone) -> Result<(), Error> {
        forgetting::put_tombstone(self.connection()?, store, tombstone).or_storage_error()
    }

    fn put_receipt(&mut self, receipt: &Receipt) -> Result<(), Error> {
        forgetting::put_receipt(self.connection()?, receipt).or_storage_error()
    }

    fn put_copy_made(&mut self, copy: &CopyMade, kept_count: usize) -> Result<(), Error> {
        forgetting::put_copy_made(self.connection()?, copy, kept_count).or_storage_error()
    }

    fn remove_copy_made(&mut self, copy: &CopyMade) -> Result<(), Error> {
        forgetting::remove_copy_made(self.connection()?, copy).or_storage_error()
    }

    fn put_session(&mut self, session: &Session) -> Result<(), Error> {
        sessions::put_session(self.connection()?, session).or_storage_error()
    }

    fn remove_session(&mut self, id: SessionId) -> Result<(), Error> {
        sessions::remove_session(self.connection()?, id).or_storage_error()
    }

    fn prune_sessions(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        sessions::prune(self.connection()?, before, limit).or_storage_error()
    }

    fn put_key(&mut self, key: &Key) -> Result<(), Error> {
        keys::put_key(self.connection()?, key).or_storage_error()
    }

    fn prune_keys(&mut self, rule: &KeyPruneRule, limit: usize) -> Result<usize, Error> {
        keys::prune(self.connection()?, rule, limit).or_storage_error()
    }

    fn put_cursor(&mut self, name: &str, sequence: Sequence) -> Result<(), Error> {
        changes::put_cursor(self.connection()?, name, sequence).or_storage_error()
    }

    fn record(&mut self, change: &Change) -> Result<(), Error> {
        changes::record(self.connection()?, change).or_storage_error()
    }
}
