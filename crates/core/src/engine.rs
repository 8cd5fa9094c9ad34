//! The engine: every door ends here.
//!
//! Its methods are plain synchronous calls that are atomic: they do everything, or nothing and say why.
//! A read runs on one snapshot, a write in one transaction; the rules are in [`transaction`].

mod blame;
mod changed;
mod check;
mod compare;
mod copy;
mod definitions;
mod derived_keys;
mod erasing;
mod feed;
mod forget;
mod intact;
mod keys;
mod listing;
mod memories;
mod past;
mod places;
mod plan;
mod restoration;
mod retention;
mod revert;
mod session_events;
mod sessions;
mod stores;
mod transaction;
mod uses;
mod versions;
mod waiting;
mod writers;

use std::sync::Arc;

use crate::backend::{Backend, Condition, Purpose, Reader, Subject};
use crate::clock::Clock;
use crate::derived::{Derived, Traces};
use crate::model::{Actor, Memory, SecretPolicy, Store, StoreId, Timestamp};
use crate::settings::Limits;
use crate::{Error, ErrorKind};
use quipu_screen::Finding;

pub use blame::{BlamedLine, Precision};
pub use changed::{Changed, Known};
pub use check::{CheckReport, Problem, Remedy};
pub use compare::{Difference, compare};
pub use copy::COPIED_FROM;
pub use definitions::DefinitionContent;
pub use derived_keys::{DERIVED_KEYS_MAX, Derivation, Exchange, NewDerivedKey};
pub use feed::{Changes, FeedEntries, FeedEntry, FeedPlace, Position, changes_after};
pub use forget::{
    Carrier, DefinitionHit, Heads, Matcher, OtherStore, Pattern, PlannedHead, PlannedVersion,
    RedactionPlan, Scope, Selection, SessionHit, StorePlan, Terms,
};
pub use keys::{NewKey, Principal};
pub use listing::{ListQuery, PathContents};
pub use memories::{MemoryUpdate, Precondition, Removed};
pub use past::{Past, newest_change_by};
pub use places::{Replaced, Survivor};
pub use plan::{Action, Approval, CarriedOut, Goal, Plan, State, Step};
pub use restoration::{Completeness, Restoration};
pub use retention::Pruned;
pub use revert::ChangeSelection;
pub use session_events::{EVENTS_PER_CALL_MAX, NewSessionEvent, SessionState};
pub use sessions::{
    NewAttachment, NewSession, SESSION_DETAILS_SIZE_BYTES_MAX, SESSION_TITLE_CHARS_MAX,
    SessionToken, SessionUpdate,
};
pub use stores::{NewStore, StoreUpdate};

use past::Trees;
use transaction::{Ledger, Transaction};
use uses::Uses;
use waiting::Restriction;
use writers::require_writer;

/// The only way to read and change stored data.
#[derive(Clone, Debug)]
pub struct Engine {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    /// What must be erased along with redacted text.
    derived: Option<Arc<dyn Derived>>,
    /// What else may hold text that is redacted.
    traces: Option<Arc<dyn Traces>>,
    /// Reads that have not been recorded yet.
    uses: Arc<Uses>,
    /// The pasts that were read last.
    trees: Arc<Trees>,
    /// Set if this engine must not block; see [`waiting`].
    restriction: Option<Restriction>,
}

/// A page of a longer list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<C>,
}

/// The result of a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// The memory as it is now, with its text.
    pub memory: Memory,
    /// Whether a version was made.
    pub effect: Effect,
    /// The credentials that were found in the text, whatever the store does about them.
    pub findings: Vec<Finding>,
    /// What the store does about them.
    pub policy: SecretPolicy,
}

impl Effect {
    /// Returns whether a version was made.
    pub fn has_changed(self) -> bool {
        match self {
            Self::Created | Self::Changed => true,
            Self::Unchanged => false,
        }
    }
}

/// Whether a write changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The memory is new or was restored: this is its first version, or its first after a deletion.
    Created,
    /// One version of an existing memory was made.
    Changed,
    /// Everything was already as asked, so no version was made.
    Unchanged,
}

impl Engine {
    /// Creates an engine over a backend.
    pub fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let (uses, trees) = (Arc::default(), Arc::default());
        let (derived, traces) = (None, None);
        Self { backend, clock, limits, derived, traces, uses, trees, restriction: None }
    }

    /// Returns the same engine, which from now on also erases redacted text from `derived`.
    #[must_use]
    pub fn with_derived(self, derived: Arc<dyn Derived>) -> Self {
        Self { derived: Some(derived), ..self }
    }

    /// Returns the same engine, which from now on also redacts what is in `traces`.
    #[must_use]
    pub fn with_traces(self, traces: Arc<dyn Traces>) -> Self {
        Self { traces: Some(traces), ..self }
    }

    /// Returns the backend, for administration that no rule applies to.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns the limits that apply to writes.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the health of the storage; fails if it cannot be read or written now.
    pub fn condition(&self) -> Result<Condition, Error> {
        self.newest_sequence()?;
        self.backend.condition()
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns 128 random bits.
    pub fn random(&self) -> u128 {
        self.clock.random()
    }

    /// Runs `work` on one snapshot. It may be run more than once; the last run counts.
    pub fn read<T>(&self, work: impl Fn(&dyn Reader) -> Result<T, Error>) -> Result<T, Error> {
        let mut answer = None;
        self.backend.read(&mut |reader| {
            answer = Some(work(reader)?);
            Ok(())
        })?;
        Ok(answer.expect("a backend runs the work that it is given"))
    }

    fn write<T>(&self, work: impl FnMut(&mut Ledger<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.write_for(Purpose::Change, work)
    }

    /// Like [`write`](Self::write), for work that removes something and must be possible on a full disk.
    fn remove<T>(&self, work: impl FnMut(&mut Ledger<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.write_for(Purpose::Removal, work)
    }

    fn write_for<T>(
        &self,
        purpose: Purpose,
        mut work: impl FnMut(&mut Ledger<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.backend.write(purpose, &mut |writer| {
            answer =
                Some(work(&mut Ledger::new(writer, &*self.clock, self.limits.clock_ahead_max))?);
            Ok(())
        })?;
        Ok(answer.expect("a backend runs the work that it is given"))
    }

    /// Runs `work` in a transaction on one store.
    fn change<T>(
        &self,
        actor: &Actor,
        (store, subject): (StoreId, Subject<'_>),
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.change_for(Purpose::Change, actor, (store, subject), work)
    }

    /// Like [`change`](Self::change), for work that removes memories.
    fn clear<T>(
        &self,
        actor: &Actor,
        (store, subject): (StoreId, Subject<'_>),
        work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.change_for(Purpose::Removal, actor, (store, subject), work)
    }

    fn change_for<T>(
        &self,
        purpose: Purpose,
        actor: &Actor,
        (store, subject): (StoreId, Subject<'_>),
        mut work: impl FnMut(&mut Transaction<'_, '_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.write_for(purpose, |ledger| {
            ledger.writer.read_ahead(store, subject)?;
            let store = existing_store(ledger.reader(), store)?;
            require_writer(ledger.reader(), &store, actor)?;
            work(&mut Transaction {
                ledger,
                limits: &self.limits,
                actor,
                store,
                undone_to: None,
                reason: None,
            })
        })
    }
}

/// Returns a store, or the error for one that does not exist.
pub fn existing_store(reader: &dyn Reader, id: StoreId) -> Result<Store, Error> {
    reader.store(id)?.ok_or_else(|| no_store(id))
}

fn no_store(id: StoreId) -> Error {
    Error::not_found(format!("no store has the id `{id}`"))
        .with_hint("list the stores to see which exist")
}

/// Returns the error that rolls back a transaction when a caller's closure has failed with an error of
/// its own type.
fn aborted() -> Error {
    Error::new(ErrorKind::InvalidInput, "the caller refused the change")
}
