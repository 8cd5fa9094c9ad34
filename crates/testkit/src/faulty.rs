//! A backend that fails at a chosen step.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_core::backend::{
    AgentReader, AgentWriter, Backend, Change, Commit, Condition, DefinitionQuery, Erasure,
    KeyPruneRule, MemoryQuery, PendingErasure, Prunable, PrunePlace, PruneRule, Purpose, ReadWork,
    Reader, Sequence, SessionEventQuery, SessionQuery, Stamp, StoreQuery, Subject, Usage,
    VersionQuery, WatchWork, WriteWork, Writer,
};
use quipu_core::model::{
    CopyMade, Definition, DefinitionId, DefinitionKind, DeletedStore, EventUsage, Key, KeyId,
    Memory, MemoryId, MemoryPath, Receipt, ReceiptId, Redaction, Refusal, SecretHash, Session,
    SessionEvent, SessionId, Store, StoreId, Timestamp, Tombstone, Version, VersionId, View,
    Workspace, WorkspaceId,
};
use quipu_core::{Error, ErrorKind};

/// Wraps a backend and fails once, at the step that a test chooses.
///
/// A step is one call of a reader or writer method, one commit, or one call of another backend
/// method. A test runs an operation with the fault at step 1, 2, 3, … until it passes without
/// meeting the fault.
///
/// It also panics if the engine breaks its side of [`Writer::next_stamp`]: between taking a stamp and
/// recording the change it must read nothing, since on a database server other writers wait meanwhile,
/// and every stamp must be used.
#[derive(Debug)]
pub struct FaultyBackend {
    inner: Arc<dyn Backend>,
    countdown: Countdown,
}

#[derive(Debug, Default)]
struct Countdown(AtomicU64);

impl Countdown {
    /// Takes one step; fails if it is the chosen one.
    fn step(&self) -> Result<(), Error> {
        let counted = |remaining: u64| remaining.checked_sub(1);
        match self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted) {
            Ok(1) => Err(Error::new(ErrorKind::StorageUnavailable, "an injected fault")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl FaultyBackend {
    /// Wraps a backend, without a fault for now.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner, countdown: Countdown::default() }
    }

    /// Makes the `step`-th step from now fail; 0 means none.
    pub fn fail_at(&self, step: u64) {
        self.countdown.0.store(step, Ordering::SeqCst);
    }

    /// Returns whether the fault has not occurred yet, and removes it.
    pub fn disarm(&self) -> bool {
        self.countdown.0.swap(0, Ordering::SeqCst) > 0
    }

    fn run(&self, work: &mut WriteWork<'_>, writer: &mut dyn Writer) -> Result<(), Error> {
        let is_stamped = Cell::new(false);
        let mut writer = FaultyWriter { inner: writer, countdown: &self.countdown, is_stamped };
        work(&mut writer)?;
        writer.before_read();
        // The last step is the commit.
        self.countdown.step()
    }
}

impl Backend for FaultyBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner
            .read(&mut |reader| work(&FaultyReader { inner: reader, countdown: &self.countdown }))
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(&mut |reader| {
            work(&FaultyReader { inner: reader, countdown: &self.countdown })
        })
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        self.inner.write(purpose, &mut |writer| self.run(work, writer))
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        self.countdown.step()?;
        self.inner.wait(seen, timeout)
    }

    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.watch(timeout, is_done)
    }

    fn erase(&self) -> Result<Erasure, Error> {
        self.countdown.step()?;
        self.inner.erase()
    }

    fn unreachable(&self) -> Result<Vec<String>, Error> {
        self.countdown.step()?;
        self.inner.unreachable()
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.note_erased(erased)
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.countdown.step()?;
        self.inner.condition()
    }

    fn clock(&self) -> Result<Option<Timestamp>, Error> {
        self.countdown.step()?;
        self.inner.clock()
    }

    fn lease(&self, name: &str, duration: Duration) -> Result<bool, Error> {
        self.countdown.step()?;
        self.inner.lease(name, duration)
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.countdown.step()?;
        self.inner.verify()
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.rebuild()
    }

    fn backup(&self, target: &Path) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.backup(target)
    }

    fn compact(&self) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.compact()
    }

    fn close(&self) -> Result<(), Error> {
        self.countdown.step()?;
        self.inner.close()
    }
}

struct FaultyReader<'a> {
    inner: &'a dyn Reader,
    countdown: &'a Countdown,
}

struct FaultyWriter<'a> {
    inner: &'a mut dyn Writer,
    countdown: &'a Countdown,
    /// Whether the transaction has a stamp and has not recorded its change yet.
    is_stamped: Cell<bool>,
}

impl FaultyReader<'_> {
    #[expect(clippy::unused_self, reason = "it stands where a writer checks")]
    fn before_read(&self) {}
}

impl FaultyWriter<'_> {
    fn before_read(&self) {
        let is_stamped = self.is_stamped.get();
        assert!(
            !is_stamped,
            "everything is read before the stamp is taken, and every stamp is used"
        );
    }

    /// Keeps track of whether a stamp is outstanding.
    fn before_write(&self, method: &str) {
        match method {
            "next_stamp" => {
                self.before_read();
                self.is_stamped.set(true);
            }
            "commit" | "record" => self.is_stamped.set(false),
            _ => {}
        }
    }
}

/// Passes methods on to the inner reader or writer, each after one step.
macro_rules! stepping {
    ($(fn $name:ident($receiver:ident $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {$(
        stepping!(@method $receiver, $name, ($($argument: $type),*), $answer);
    )*};
    (@method read, $name:ident, ($($argument:ident: $type:ty),*), $answer:ty) => {
        fn $name(&self $(, $argument: $type)*) -> Result<$answer, Error> {
            self.before_read();
            self.countdown.step()?;
            self.inner.$name($($argument),*)
        }
    };
    (@method write, $name:ident, ($($argument:ident: $type:ty),*), $answer:ty) => {
        fn $name(&mut self $(, $argument: $type)*) -> Result<$answer, Error> {
            self.before_write(stringify!($name));
            self.countdown.step()?;
            self.inner.$name($($argument),*)
        }
    };
}

macro_rules! stepping_reader {
    ($type:ident) => {
        impl Reader for $type<'_> {
            stepping! {
                fn workspaces(read) -> Vec<Workspace>;
                fn store(read, id: StoreId) -> Option<Store>;
                fn removed_store(read, id: StoreId) -> Option<WorkspaceId>;
                fn stores(read, query: &StoreQuery) -> Vec<Store>;
                fn deleted_stores(read, workspace: WorkspaceId) -> Vec<DeletedStore>;
                fn usage(read, store: StoreId) -> Usage;
                fn memory(read, store: StoreId, id: MemoryId, view: View) -> Option<Memory>;
                fn memory_at(read, store: StoreId, path: &MemoryPath, view: View)
                    -> Option<Memory>;
                fn overlapping(
                    read, store: StoreId, path: &MemoryPath, except: Option<MemoryId>
                ) -> Option<Memory>;
                fn memories(read, store: StoreId, query: &MemoryQuery) -> Vec<Memory>;
                fn unused_memories(read, store: StoreId, since: Timestamp, limit: usize)
                    -> Vec<Memory>;
                fn last_use(read, store: StoreId, memory: MemoryId) -> Option<Timestamp>;
                fn version(read, store: StoreId, id: VersionId, view: View) -> Option<Version>;
                fn versions(read, store: StoreId, query: &VersionQuery) -> Vec<Version>;
                fn versions_at(read, store: StoreId, at: Timestamp, view: View) -> Vec<Version>;
                fn horizon(read, store: StoreId) -> Option<Timestamp>;
                fn refusals(read, store: StoreId, limit: usize) -> Vec<Refusal>;
                fn session(read, id: SessionId) -> Option<Session>;
                fn session_with_token(read, token: &SecretHash) -> Option<Session>;
                fn sessions(read, query: &SessionQuery) -> Vec<Session>;
                fn sessions_of_key(read, key: KeyId) -> Vec<SessionId>;
                fn sessions_count(read, workspace: WorkspaceId) -> u64;
                fn key(read, id: KeyId) -> Option<Key>;
                fn key_with_secret(read, secret: &SecretHash) -> Option<Key>;
                fn keys(read, workspace: WorkspaceId) -> Vec<Key>;
                fn derived_keys(read, workspace: WorkspaceId, parent: Option<KeyId>) -> Vec<Key>;
                fn changes(read, after: Sequence, limit: usize) -> Vec<Change>;
                fn prunable(read, rule: &PruneRule, after: Option<PrunePlace>, limit: usize)
                    -> Prunable;
                fn cursor(read, name: &str) -> Option<Sequence>;
                fn newest_change(read) -> (Sequence, Timestamp);
                fn oldest_change(read) -> Option<(Sequence, Timestamp)>;
                fn changed_at(read, store: StoreId) -> Timestamp;
                fn pending_erasures(read) -> Vec<PendingErasure>;
                fn tombstones(read, store: StoreId) -> Vec<Tombstone>;
                fn receipt(read, id: ReceiptId) -> Option<Receipt>;
                fn receipts(
                    read, workspace: WorkspaceId, before: Option<ReceiptId>, limit: usize
                ) -> Vec<Receipt>;
                fn unproven_receipts(read) -> Vec<Receipt>;
                fn copies_made(read, workspace: WorkspaceId, since: Timestamp) -> Vec<CopyMade>;
            }
        }

        impl AgentReader for $type<'_> {
            stepping! {
                fn definition(read, id: DefinitionId) -> Option<Definition>;
                fn definitions(read, query: &DefinitionQuery) -> Vec<Definition>;
                fn definition_versions(
                    read, id: DefinitionId, before: Option<u64>, limit: usize
                ) -> Vec<Definition>;
                fn definitions_count(read, workspace: WorkspaceId, kind: DefinitionKind) -> u64;
                fn definitions_size_bytes(read, workspace: WorkspaceId) -> u64;
                fn session_events(read, session: SessionId, query: &SessionEventQuery)
                    -> Vec<SessionEvent>;
                fn event_usage(read, session: SessionId) -> EventUsage;
                fn events_size_bytes(read, workspace: WorkspaceId) -> u64;
            }
        }
    };
}

stepping_reader!(FaultyReader);
stepping_reader!(FaultyWriter);

impl Writer for FaultyWriter<'_> {
    stepping! {
        fn read_ahead(write, store: StoreId, subject: Subject<'_>) -> ();
        fn next_stamp(write, now: Timestamp) -> Stamp;
        fn put_workspace(write, workspace: &Workspace) -> ();
        fn put_store(write, store: &Store) -> ();
        fn delete_store(write, id: StoreId, at: Timestamp) -> ();
        fn restore_store(write, id: StoreId) -> ();
        fn remove_store(write, id: StoreId) -> ();
        fn commit(write, commit: &Commit) -> ();
        fn lock_stores(write, stores: &[StoreId]) -> ();
        fn redact(write, store: StoreId, redactions: &[(VersionId, Redaction)]) -> ();
        fn touch(write, store: StoreId, memory: MemoryId, at: Timestamp) -> ();
        fn prune(write, rule: &PruneRule, store: StoreId, versions: &[VersionId]) -> usize;
        fn trim_changes(write, before: Timestamp, limit: usize) -> usize;
        fn put_refusal(write, refusal: &Refusal, kept_count: usize) -> ();
        fn remove_refusal(write, refusal: &Refusal) -> ();
        fn require_erasure(write, store: StoreId) -> ();
        fn put_tombstone(write, store: StoreId, tombstone: &Tombstone) -> ();
        fn put_receipt(write, receipt: &Receipt) -> ();
        fn put_copy_made(write, copy: &CopyMade, kept_count: usize) -> ();
        fn remove_copy_made(write, copy: &CopyMade) -> ();
        fn put_session(write, session: &Session) -> ();
        fn remove_session(write, id: SessionId) -> ();
        fn prune_sessions(write, before: Timestamp, limit: usize) -> usize;
        fn put_key(write, key: &Key) -> ();
        fn prune_keys(write, rule: &KeyPruneRule, limit: usize) -> usize;
        fn put_cursor(write, name: &str, sequence: Sequence) -> ();
        fn record(write, change: &Change) -> ();
    }
}

impl AgentWriter for FaultyWriter<'_> {
    stepping! {
        fn put_definition(write, definition: &Definition) -> ();
        fn remove_definition(write, id: DefinitionId) -> ();
        fn read_session_ahead(write, session: SessionId) -> ();
        fn add_session_event(write, event: &SessionEvent) -> ();
        fn redact_session_event(
            write, session: SessionId, number: u64, redaction: &Redaction
        ) -> ();
        fn prune_session_events(write, before: Timestamp, limit: usize) -> usize;
    }
}
