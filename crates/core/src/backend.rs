//! The contract of storage.
//!
//! A backend keeps rows and guarantees snapshot isolation, atomicity and durability. It decides
//! nothing: which change is allowed is the engine's business. All of a write's reading, checking and
//! changing happens in one run of [`Backend::write`], so two concurrent writers cannot break a rule
//! together that each of them has checked alone.
//!
//! The trait is written for two kinds of backend, an embedded file and a database server. That is why
//! order and time come from the backend, inside the transaction ([`Writer::next_stamp`]): a server's
//! clients share no memory in which to count. It is why a write announces what it will read
//! ([`Writer::read_ahead`]), and why erasing reports what it could not reach ([`Erasure`]).
//!
//! Every sentence of these docs is a test in `quipu-testkit`'s conformance suite.

mod agents;
mod change;
mod condition;
mod erasure;
mod query;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::Error;
use crate::model::{
    CopyMade, DeletedStore, Key, KeyId, Memory, MemoryId, MemoryPath, Receipt, ReceiptId,
    Redaction, Refusal, SecretHash, Session, SessionId, Store, StoreId, Timestamp, Tombstone,
    Version, VersionId, View, Workspace, WorkspaceId,
};

pub use crate::model::ScannedFile;
pub use agents::{AgentReader, AgentWriter, DefinitionQuery, SessionEventQuery};
pub use change::{Change, Commit, Event, Sequence, Stamp};
pub use condition::{Condition, LockHeld};
pub use erasure::{Erasure, PendingErasure, Remains};
pub use query::{
    Archived, KeyPruneRule, MemoryQuery, Order, Prunable, PrunePlace, PruneRule, SessionQuery,
    Span, StoreQuery, Usage, VersionFilter, VersionQuery,
};

/// Keeps stores, memories, versions, sessions with their events, definitions and keys.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Runs `work` on one snapshot.
    ///
    /// The snapshot holds every write that has returned, and nothing that happens during `work`
    /// changes it. An error of `work` is returned as it is. `work` may be run more than once, each
    /// time on one snapshot; the last run counts.
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error>;

    /// Runs `work` on one snapshot if that needs neither a lock nor I/O, and returns `None` otherwise;
    /// what `work` did until then does not count.
    ///
    /// The snapshot holds every write that has returned, as that of [`read`](Self::read) does. This never
    /// blocks, so it may be called on an async worker.
    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>>;

    /// Runs `work` in a transaction. From its first call on, no other write of any process overlaps it,
    /// except those that cannot get in its way: a write that begins by announcing a store
    /// ([`Writer::read_ahead`]) excludes only the writes that touch this store, and all those that want a
    /// stamp while it has one. So a write that decides by what it reads of several stores locks them first
    /// ([`Writer::lock_stores`]).
    ///
    /// The wait for other writers is bounded; its end is [`StorageBusy`](crate::ErrorKind::StorageBusy)
    /// with a message that says who was waited for.
    ///
    /// When this returns `Ok`, the changes are durable and seen by every later read. When `work`
    /// fails, its error is returned and nothing has changed. `work` may be run again if the
    /// transaction must be repeated, so it must not keep anything from an earlier run.
    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error>;

    /// Blocks until any process commits a change with a higher sequence than `seen`, or until the
    /// timeout, and returns the highest sequence.
    ///
    /// It returns immediately if there is such a change already. Waiting uses no processor time.
    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error>;

    /// Calls `is_done` now and after every commit of any process, whether or not it has a change, until
    /// `is_done` returns `true` or the timeout passes.
    ///
    /// A commit that completes while `is_done` runs is followed by another call. There may be more calls
    /// than commits. An error of `is_done` is returned as it is. Waiting uses no processor time.
    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error>;

    /// Takes everything that was removed or redacted out of all storage that the backend can reach, and
    /// reports what it scanned and what is out of its reach.
    ///
    /// When this returns `Ok`, nothing that it scanned holds a byte of text that no row holds, whatever
    /// other processes have open. What was [pending](Reader::pending_erasures) stays pending until
    /// [`note_erased`](Self::note_erased).
    fn erase(&self) -> Result<Erasure, Error>;

    /// Returns the copies of text that [`erase`](Self::erase) does not reach, whether or not anything was
    /// erased since they were made. It is what an erasure reports as [`unreachable`](Erasure::unreachable).
    fn unreachable(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Looks for what was erased, as far as this can see beyond its own rows, and says what it cannot see.
    fn remains(&self) -> Result<Remains, Error> {
        Ok(Remains { seen: Vec::new(), unseen: self.unreachable()? })
    }

    /// Records that erasures are complete, here and in everything derived from the text. What was removed
    /// since stays pending.
    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error>;

    /// Returns the health and the size of the storage; fails if it cannot be written now.
    fn condition(&self) -> Result<Condition, Error>;

    /// Returns what the clock of the storage shows, if it has one of its own.
    fn clock(&self) -> Result<Option<Timestamp>, Error> {
        Ok(None)
    }

    /// Takes or renews a lease for this handle, and returns whether it has it: of all processes that share the
    /// storage, one at a time has a lease. It ends by itself when it is not renewed in time.
    ///
    /// An embedded backend gives every lease: there, a lock in the file system does the same.
    fn lease(&self, _: &str, _: Duration) -> Result<bool, Error> {
        Ok(true)
    }

    /// Looks for damage that the engine cannot see through the other methods, such as a corrupt
    /// file or a row without its owner, and returns a sentence for each.
    fn verify(&self) -> Result<Vec<String>, Error>;

    /// Recomputes the [`Usage`] of every store, and the usage of every session and workspace by events.
    fn rebuild(&self) -> Result<(), Error>;

    /// Writes a consistent copy of everything to a new file while others keep writing.
    fn backup(&self, target: &Path) -> Result<(), Error>;

    /// Returns the space of removed rows to the system and changes no row. Writers may have to wait
    /// meanwhile.
    fn compact(&self) -> Result<(), Error>;

    /// Finishes what is under way and closes this handle. Every later call on it fails, and so does a
    /// wait for changes that is under way. Other handles and other processes are not affected.
    fn close(&self) -> Result<(), Error>;
}

/// Why a write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It adds or changes something.
    Change,
    /// It removes something, so that it must be possible on a full disk too.
    Removal,
}

/// What [`Backend::read`] runs.
pub type ReadWork<'a> = dyn FnMut(&dyn Reader) -> Result<(), Error> + 'a;

/// What [`Backend::write`] runs.
pub type WriteWork<'a> = dyn FnMut(&mut dyn Writer) -> Result<(), Error> + 'a;

/// What [`Backend::watch`] calls; returns whether the watch is over.
pub type WatchWork<'a> = dyn FnMut() -> Result<bool, Error> + 'a;

/// How many changes are looked through at a time for removals.
const REMOVALS_PAGE: usize = 1_000;

/// Reads a snapshot.
///
/// A store that does not exist has no memories and no versions, and its usage is zero.
pub trait Reader: AgentReader {
    /// Returns all workspaces, the oldest first.
    fn workspaces(&self) -> Result<Vec<Workspace>, Error>;

    /// Returns a store that is not deleted.
    fn store(&self, id: StoreId) -> Result<Option<Store>, Error>;

    /// Returns the workspace of a store that was removed, as long as the feed may name the store.
    fn removed_store(&self, id: StoreId) -> Result<Option<WorkspaceId>, Error>;

    /// Returns the stores that the query selects, the newest first.
    fn stores(&self, query: &StoreQuery) -> Result<Vec<Store>, Error>;

    /// Returns the deleted stores of a workspace, the last deleted first. For every other method they
    /// do not exist.
    fn deleted_stores(&self, workspace: WorkspaceId) -> Result<Vec<DeletedStore>, Error>;

    /// Returns how many memories a store holds and how long they are together.
    fn usage(&self, store: StoreId) -> Result<Usage, Error>;

    /// Returns a memory of the store by its id.
    fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Option<Memory>, Error>;

    /// Returns the memory at exactly this path.
    fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Option<Memory>, Error>;

    /// Returns a memory other than `except` whose path overlaps `path`: the one at it, else the
    /// nearest above it, else the first below it. Its text is left out.
    fn overlapping(
        &self,
        store: StoreId,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<Option<Memory>, Error>;

    /// Returns the memories that the query selects, in byte order of their paths.
    fn memories(&self, store: StoreId, query: &MemoryQuery) -> Result<Vec<Memory>, Error>;

    /// Returns at most `limit` memories that were neither written nor touched after `since`. Their
    /// texts are left out.
    fn unused_memories(
        &self,
        store: StoreId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Memory>, Error>;

    /// Returns when a memory was last written or touched, if its store deletes unused memories;
    /// otherwise `None`.
    fn last_use(&self, store: StoreId, memory: MemoryId) -> Result<Option<Timestamp>, Error>;

    /// Returns a version of the store.
    fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Option<Version>, Error>;

    /// Returns the versions that the query selects, the newest first.
    fn versions(&self, store: StoreId, query: &VersionQuery) -> Result<Vec<Version>, Error>;

    /// Returns what a store held at a moment: of each memory the newest version that was made by then,
    /// unless that is a deletion. They come in byte order of their paths; redacted ones, which have no
    /// path, come first.
    ///
    /// Below the [horizon](Self::horizon) versions may be missing.
    fn versions_at(&self, store: StoreId, at: Timestamp, view: View)
    -> Result<Vec<Version>, Error>;

    /// Returns the moment from which on the history of a store is complete; `None` if no version of it was
    /// ever pruned.
    ///
    /// It never goes back. It is the moment at which the last of the pruned versions was replaced by the
    /// next one of its memory, or deleted the memory.
    fn horizon(&self, store: StoreId) -> Result<Option<Timestamp>, Error>;

    /// Returns at most `limit` refusals of a store, the newest first.
    fn refusals(&self, store: StoreId, limit: usize) -> Result<Vec<Refusal>, Error>;

    /// Returns a session.
    fn session(&self, id: SessionId) -> Result<Option<Session>, Error>;

    /// Returns the session whose token has this hash.
    fn session_with_token(&self, token: &SecretHash) -> Result<Option<Session>, Error>;

    /// Returns the sessions that the query selects, in its order.
    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error>;

    /// Returns the sessions that this key owns or has ever owned: those that it created, those that it took
    /// over, and those that another key took over from it, and the same of the keys that were derived from
    /// it. Removed ones are among them for as long as a version names them, at least; that the derived key
    /// was removed changes nothing.
    fn sessions_of_key(&self, key: KeyId) -> Result<Vec<SessionId>, Error>;

    /// Returns how many sessions a workspace has, archived ones among them.
    fn sessions_count(&self, workspace: WorkspaceId) -> Result<u64, Error>;

    /// Returns a key.
    fn key(&self, id: KeyId) -> Result<Option<Key>, Error>;

    /// Returns the key whose secret has this hash.
    fn key_with_secret(&self, secret: &SecretHash) -> Result<Option<Key>, Error>;

    /// Returns all keys of a workspace, the oldest first.
    fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error>;

    /// Returns the [derived](Key::is_derived) keys of a workspace with this parent, the oldest first; with
    /// none, those that the owner of the data made.
    fn derived_keys(
        &self,
        workspace: WorkspaceId,
        parent: Option<KeyId>,
    ) -> Result<Vec<Key>, Error>;

    /// Returns at most `limit` changes after a sequence, in order.
    ///
    /// Whether changes have been pruned in between is for [`oldest_change`](Self::oldest_change) to say.
    fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error>;

    /// Returns at most `limit` changes after a sequence that have removed text, in order: redactions and
    /// deletions of stores.
    fn removals(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        let (mut removals, mut after) = (Vec::new(), after);
        while removals.len() < limit {
            let changes = self.changes(after, limit.max(REMOVALS_PAGE))?;
            let Some(last) = changes.last() else { break };
            after = last.sequence;
            let removes =
                |change: &Change| matches!(change.event, Event::Redacted(_) | Event::StoreDeleted);
            removals.extend(changes.into_iter().filter(removes));
        }
        removals.truncate(limit);
        Ok(removals)
    }

    /// Returns the cursor that was put under a name.
    fn cursor(&self, name: &str) -> Result<Option<Sequence>, Error>;

    /// Returns the sequence and the moment of the newest change; zero and 1970 if there is none.
    fn newest_change(&self) -> Result<(Sequence, Timestamp), Error>;

    /// Returns the sequence and the moment of the oldest change that is still in the feed; `None` if
    /// there has been no change. A follower whose next sequence is lower has missed changes and must
    /// start over.
    fn oldest_change(&self) -> Result<Option<(Sequence, Timestamp)>, Error>;

    /// Returns when a memory of a store last changed, according to the versions that are kept; 1970 if
    /// there are none.
    fn changed_at(&self, store: StoreId) -> Result<Timestamp, Error>;

    /// Looks at some versions, after a place, and returns at most `limit` of them that a rule gives up. Called
    /// with each next place until there is none, it has returned all of them; those of deleted stores may be
    /// left out, since these are removed themselves.
    fn prunable(
        &self,
        _: &PruneRule,
        _: Option<PrunePlace>,
        _limit: usize,
    ) -> Result<Prunable, Error> {
        Ok(Prunable::default())
    }

    /// Returns the removals whose text may still be in a file, in no particular order.
    fn pending_erasures(&self) -> Result<Vec<PendingErasure>, Error>;

    /// Returns the tombstones of a store, in no particular order.
    fn tombstones(&self, store: StoreId) -> Result<Vec<Tombstone>, Error>;

    /// Returns a receipt.
    fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, Error>;

    /// Returns at most `limit` receipts of a workspace, the newest first; only those with a smaller id
    /// than `before`, to continue after a page.
    fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Vec<Receipt>, Error>;

    /// Returns the receipts without a proof, of all workspaces.
    fn unproven_receipts(&self) -> Result<Vec<Receipt>, Error>;

    /// Returns the copies of a workspace that were made at or after a moment, the oldest first.
    fn copies_made(&self, workspace: WorkspaceId, since: Timestamp)
    -> Result<Vec<CopyMade>, Error>;
}

/// Changes what a [`Reader`] reads, inside one transaction. It reads its own changes.
pub trait Writer: Reader + AgentWriter {
    /// Announces what the transaction is about to read and change, so that a backend over a network can
    /// lock the store and read all of it in one round trip.
    ///
    /// It changes no answer, neither before nor after the transaction's own changes: an embedded backend
    /// does nothing here.
    fn read_ahead(&mut self, _: StoreId, _: Subject<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Announces the stores that the transaction is about. From here on until it ends, no other write of any
    /// process touches one of them, and what is read of them is what the last of those writes has left.
    ///
    /// It is called before anything is changed. An embedded backend does nothing here: there, writes do not
    /// overlap.
    fn lock_stores(&mut self, _: &[StoreId]) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the place and the moment of the next change of this transaction.
    ///
    /// The sequence is the one after the newest change. The moment is `now`, or the next one after the
    /// newest change if that is later, so moments never repeat and never go back. Until the
    /// transaction ends, no other writer of any process gets the same; a stamp whose transaction fails is
    /// given out again, so the sequence has no gaps.
    ///
    /// On a server this takes the one counter that all writers share. So the engine calls it as late as
    /// it can, when everything has been checked, and records the change before it asks for another stamp.
    fn next_stamp(&mut self, now: Timestamp) -> Result<Stamp, Error>;

    /// Adds or replaces a workspace.
    fn put_workspace(&mut self, workspace: &Workspace) -> Result<(), Error>;

    /// Adds or replaces a store.
    fn put_store(&mut self, store: &Store) -> Result<(), Error>;

    /// Hides a store as if it did not exist. Keys and sessions keep it.
    fn delete_store(&mut self, id: StoreId, at: Timestamp) -> Result<(), Error>;

    /// Shows a deleted store again as it was.
    fn restore_store(&mut self, id: StoreId) -> Result<(), Error>;

    /// Removes a store, deleted or not, with its memories and its versions, and detaches it from keys.
    /// Sessions keep their attachment as a record. Erasing is pending from then on.
    fn remove_store(&mut self, id: StoreId) -> Result<(), Error>;

    /// Adds a version and makes the memory what the version says: this is the only way to change
    /// a memory.
    ///
    /// The change feed gets an [`Event::Version`] and the store's usage follows.
    fn commit(&mut self, commit: &Commit) -> Result<(), Error>;

    /// Takes path, text, hash, size and reason out of versions of a store and records who did it. Refusals
    /// that name one of the paths go with them. Erasing is pending from then on.
    fn redact(
        &mut self,
        store: StoreId,
        redactions: &[(VersionId, Redaction)],
    ) -> Result<(), Error>;

    /// Records that a memory was read at a moment. No version is made.
    fn touch(&mut self, store: StoreId, memory: MemoryId, at: Timestamp) -> Result<(), Error>;

    /// Removes those of these versions of a store that the rule still gives up, and returns how many it removed;
    /// the [horizon](Reader::horizon) of the store follows.
    fn prune(
        &mut self,
        rule: &PruneRule,
        store: StoreId,
        versions: &[VersionId],
    ) -> Result<usize, Error>;

    /// Removes the oldest changes, at most `limit` of them, that were made before a moment, but never the
    /// newest of all; returns how many it removed.
    fn trim_changes(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error>;

    /// Adds a refusal, and removes all but the newest `kept_count` of its store.
    fn put_refusal(&mut self, refusal: &Refusal, kept_count: usize) -> Result<(), Error>;

    /// Removes every refusal that equals this one.
    fn remove_refusal(&mut self, refusal: &Refusal) -> Result<(), Error>;

    /// Makes an erasure pending for a store of which a row other than a version has lost text; for the store
    /// with the id 0, which does not exist, if the text belonged to no store.
    fn require_erasure(&mut self, store: StoreId) -> Result<(), Error>;

    /// Adds a tombstone to a store, unless it has an equal one. It is removed with the store.
    fn put_tombstone(&mut self, store: StoreId, tombstone: &Tombstone) -> Result<(), Error>;

    /// Adds or replaces a receipt. It stays when its stores are removed.
    fn put_receipt(&mut self, receipt: &Receipt) -> Result<(), Error>;

    /// Records a copy, and removes all but the newest `kept_count` of its workspace.
    fn put_copy_made(&mut self, copy: &CopyMade, kept_count: usize) -> Result<(), Error>;

    /// Removes every record of a copy that equals this one.
    fn remove_copy_made(&mut self, copy: &CopyMade) -> Result<(), Error>;

    /// Adds or replaces a session.
    fn put_session(&mut self, session: &Session) -> Result<(), Error>;

    /// Removes a session with its events. Versions keep it as their actor.
    fn remove_session(&mut self, id: SessionId) -> Result<(), Error>;

    /// Removes at most `limit` sessions that ended before a moment, and returns how many it removed. A
    /// session has ended when it was archived, or when it has not changed and its token, if it has one,
    /// has expired or lost its key by revocation. Sessions that a version names, as its author or as who
    /// redacted it, stay.
    fn prune_sessions(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error>;

    /// Adds or replaces a key.
    fn put_key(&mut self, key: &Key) -> Result<(), Error>;

    /// Removes at most `limit` [derived](Key::is_derived) keys that the rule gives up, and returns how many
    /// it removed.
    ///
    /// A key that a version names stays, as its author or as who redacted it. So does a browser's key whose
    /// person a version names, unless a newer one has the same parent and name. Other keys always stay.
    fn prune_keys(&mut self, rule: &KeyPruneRule, limit: usize) -> Result<usize, Error>;

    /// Stores a place in the feed under a name, and replaces the one that was there.
    fn put_cursor(&mut self, name: &str, sequence: Sequence) -> Result<(), Error>;

    /// Adds a change to the feed.
    fn record(&mut self, change: &Change) -> Result<(), Error>;
}

/// What a transaction on a store is about, beside the store's row and its usage.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// Nothing that is known in advance.
    Store,
    /// The memory at a path, and what overlaps it.
    At(&'a MemoryPath, View),
    /// A memory, by its id.
    Memory(MemoryId, View),
    /// Two memories with their texts, by their ids.
    Memories([MemoryId; 2]),
    /// A version with its text, and its memory.
    Version(VersionId),
}
