//! Forgetting: redaction of everything that a selection finds, with a plan, a receipt and a proof.
//!
//! A plan is made on one snapshot. Carrying it out makes the same plan again inside the write transaction,
//! so that nothing that was written in between escapes, and compares the digests if the caller expects one.
//! All stores are changed in one transaction: if anything stands in the way, nothing has changed.
//!
//! What was found is searched for once more when everything is erased. The receipt has that count.

mod agents;
mod apply;
mod cut;
mod plan;
mod selection;
mod written;

use std::collections::HashSet;

use crate::backend::{Change, Erasure, Reader, Sequence};
use crate::derived::HeldTraces;
use crate::model::{
    Actor, CopyMade, DefinitionId, HeadChange, Key, MemoryId, MemoryPath, Name, Proof, Reason,
    Receipt, ReceiptId, Refusal, SessionId, Store, StoreId, Timestamp, VersionId, WorkspaceId,
};
use crate::{Error, ErrorKind};

use super::erasing::incomplete;
use super::feed::{Changes, changes_after};
use super::{Engine, Page};

pub(super) use apply::{new_receipt, redact_versions};
pub use selection::{Carrier, Matcher, Pattern, Selection};

/// How many copies of a workspace are remembered.
const COPIES_MADE_KEPT: usize = 1_000;

/// How many heads an error names.
const HEADS_NAMED_MAX: usize = 20;

/// How much of a digest must be given at least.
const DIGEST_CHARS_MIN: usize = 8;

/// Where to search.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The stores; `None` for all of the workspace, with its sessions.
    pub stores: Option<Vec<StoreId>>,
    /// The key of the caller, if it has one: what it does not see is neither named nor changed.
    pub viewer: Option<Key>,
}

impl Scope {
    /// Returns everything of a workspace.
    pub fn all(workspace: WorkspaceId) -> Self {
        Self { workspace, stores: None, viewer: None }
    }

    /// Returns one store.
    pub fn store(store: &Store) -> Self {
        Self { workspace: store.workspace, stores: Some(vec![store.id]), viewer: None }
    }
}

/// What to do with live memories that hold what is to be redacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heads {
    /// Name them, and change nothing.
    #[default]
    Refuse,
    /// Replace the match in their texts and paths, or delete them if the selection has no pattern.
    TakeOut,
}

/// How a redaction is carried out.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// What to do with live memories.
    pub heads: Heads,
    /// The digest of the plan, or its beginning, if the caller has seen one.
    pub expect: Option<String>,
    /// Why it is done.
    pub reason: Option<Reason>,
}

/// What a redaction would do.
#[derive(Clone, Debug)]
pub struct RedactionPlan {
    /// What is selected, described without the text that is looked for.
    pub selection: String,
    /// What happens to live memories.
    pub heads: Heads,
    /// What was found in each store, also if that is nothing.
    pub stores: Vec<StorePlan>,
    /// Sessions of which a field will be changed, or an event will be redacted.
    pub sessions: Vec<SessionHit>,
    /// Versions of agents and environments that will be changed.
    pub definitions: Vec<DefinitionHit>,
    /// How far the events of each session were searched.
    scanned: agents::ScannedSessions,
    /// Earlier receipts of which a sentence will be changed.
    pub receipts: Vec<ReceiptId>,
    /// Records of copies of which the place will be changed.
    copies: Vec<CopyMade>,
    /// How many entries of what is written down beside the rows hold the text. They come and go all the time,
    /// so the digest does not cover them.
    pub traces_count: usize,
    /// Names that hold the text and that somebody has to change: a phrase for each.
    pub names: Vec<String>,
    /// Stores out of scope that hold the text or are copies.
    pub others: Vec<OtherStore>,
    /// Backups and exports made since the oldest version that was found.
    pub copies_made: Vec<CopyMade>,
    /// Deleted stores, which are not searched.
    pub deleted_stores: Vec<StoreId>,
    /// What the storage cannot reach: a sentence for each.
    pub unreachable: Vec<String>,
    /// The SHA-256 of everything that will be changed, as 64 hex digits.
    pub digest: String,
    /// The newest change that the plan has seen.
    sequence: Sequence,
}

/// What a redaction would do in one store.
#[derive(Clone, Debug)]
pub struct StorePlan {
    /// The store.
    pub store: StoreId,
    /// Its name.
    pub name: Name,
    /// The versions that will be redacted, the newest first. Those of [`heads`](Self::heads) are among
    /// them.
    pub versions: Vec<PlannedVersion>,
    /// The live memories that are in the way.
    pub heads: Vec<PlannedHead>,
    /// Refusals that will be removed.
    pub refusals: Vec<Refusal>,
    /// Fields of the store that will be changed, such as its description.
    pub fields: Vec<&'static str>,
    /// What the pattern matched.
    matched: apply::Matched,
}

/// A version that will be redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedVersion {
    /// Its id.
    pub id: VersionId,
    /// Its memory.
    pub memory: MemoryId,
    /// Its path.
    pub path: Option<MemoryPath>,
    /// When it was made.
    pub created_at: Timestamp,
    /// What of it the pattern matched.
    pub carriers: Vec<Carrier>,
}

/// A live memory that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHead {
    /// The memory.
    pub memory: MemoryId,
    /// Its newest version.
    pub version: VersionId,
    /// Its path.
    pub path: MemoryPath,
    /// What takes the match out of it.
    pub change: HeadChange,
}

/// A session that holds the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHit {
    /// The session.
    pub session: SessionId,
    /// The fields that hold it.
    pub fields: Vec<&'static str>,
    /// The numbers of the events that will be redacted.
    pub events: Vec<u64>,
}

/// A version of an agent or an environment that holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionHit {
    /// The agent or the environment.
    pub definition: DefinitionId,
    /// The number of the version.
    pub version: u64,
}

/// A store out of scope that a redaction should not forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherStore {
    /// The store.
    pub store: StoreId,
    /// Its name.
    pub name: Name,
    /// How many of its versions the selection finds.
    pub versions_count: usize,
    /// The store that it was copied from, if its metadata says so.
    pub copied_from: Option<String>,
}

impl RedactionPlan {
    /// Returns how many versions will be redacted.
    pub fn versions_count(&self) -> usize {
        self.stores.iter().map(|store| store.versions.len()).sum()
    }

    /// Returns how many live memories are in the way.
    pub fn heads_count(&self) -> usize {
        self.stores.iter().map(|store| store.heads.len()).sum()
    }

    /// Returns how many rows hold what is selected.
    pub fn hits_count(&self) -> usize {
        let of_store = |store: &StorePlan| {
            store.versions.len() + store.refusals.len() + usize::from(!store.fields.is_empty())
        };
        let in_stores: usize = self.stores.iter().map(of_store).sum();
        let of_session = |hit: &SessionHit| usize::from(!hit.fields.is_empty()) + hit.events.len();
        let in_sessions: usize = self.sessions.iter().map(of_session).sum();
        let records = self.receipts.len() + self.copies.len() + self.definitions.len();
        in_stores + in_sessions + records + self.names.len()
    }

    /// Returns how many events of sessions will be redacted.
    pub fn events_count(&self) -> usize {
        self.sessions.iter().map(|hit| hit.events.len()).sum()
    }
}

impl Engine {
    /// Returns what a redaction would do, and its digest. Nothing is changed.
    pub fn plan_redaction(
        &self,
        scope: &Scope,
        selection: &Selection<'_>,
        heads: Heads,
    ) -> Result<RedactionPlan, Error> {
        let traces = self.hold_traces(scope, selection)?;
        self.plan_with(scope, selection, heads, traces.as_deref())
    }

    fn plan_with(
        &self,
        scope: &Scope,
        selection: &Selection<'_>,
        heads: Heads,
        traces: Option<&dyn HeldTraces>,
    ) -> Result<RedactionPlan, Error> {
        selection.require_condition()?;
        let mut plan = self.read(|reader| {
            let mut plan = plan::plan(reader, scope, selection, (heads, &self.limits))?;
            plan::add_surroundings(reader, scope, selection, &mut plan)?;
            Ok(plan)
        })?;
        plan.unreachable = self.backend.unreachable()?;
        if let Some(traces) = traces {
            plan.traces_count = traces.count(&|text| selection.matches(text))?;
            selection.require_complete()?;
        }
        Ok(plan)
    }

    /// Returns what is written down beside the rows, held, if the redaction is about it: like sessions without
    /// stores, it belongs to nothing that a scope or a selection could name.
    fn hold_traces(
        &self,
        scope: &Scope,
        selection: &Selection<'_>,
    ) -> Result<Option<Box<dyn HeldTraces>>, Error> {
        let sees_all =
            scope.stores.is_none() && scope.viewer.as_ref().is_none_or(|key| key.stores.is_none());
        match &self.traces {
            Some(traces) if sees_all && selection.is_by_content_alone() => traces.hold().map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Redacts everything that a selection finds; it is in no file when this returns.
    ///
    /// Either everything is redacted or nothing is. The receipt says what was done and what is left, such
    /// as a text that somebody wrote again meanwhile.
    pub fn redact_selected(
        &self,
        actor: &Actor,
        scope: &Scope,
        selection: &Selection<'_>,
        terms: &Terms,
    ) -> Result<Receipt, Error> {
        selection.require_unnamed(terms.reason.as_ref())?;
        let traces = self.hold_traces(scope, selection)?;
        // Most of the time nobody writes between the two, and the long search happens outside of the
        // write transaction.
        let first = self.plan_with(scope, selection, terms.heads, traces.as_deref())?;
        let id = self.remove(|ledger| {
            // Before anything is compared: a write to one of them may be about to be committed.
            let stores: Vec<_> =
                plan::stores_in(ledger.reader(), scope)?.iter().map(|store| store.id).collect();
            ledger.writer.lock_stores(&stores)?;
            let same = is_unchanged(ledger.reader(), first.sequence, &stores)?;
            let planned = plan::plan_again(
                ledger.reader(),
                scope,
                selection,
                (same.then_some(&first), terms.heads, &self.limits),
            )?;
            require_expected(&planned, terms)?;
            require_found(&planned, selection)?;
            require_no_heads(&planned)?;
            let remarks = plan::remarks(&first, &planned, selection);
            let run = apply::Run { actor, limits: &self.limits, selection, terms };
            run.apply(ledger, scope, &planned, remarks)
        })?;
        self.erase()?;
        let forgotten = match &traces {
            Some(traces) => {
                traces.forget(&|text| selection.matches(text)).map_err(again_with_traces)?
            }
            None => Erasure::default(),
        };
        let receipt = self.verify_redaction(scope, selection, (id, forgotten));
        receipt.map_err(incomplete)
    }

    /// Counts what the selection still finds and adds that to the receipt.
    fn verify_redaction(
        &self,
        scope: &Scope,
        selection: &Selection<'_>,
        (id, forgotten): (ReceiptId, Erasure),
    ) -> Result<Receipt, Error> {
        let left = self
            .read(|reader| plan::plan(reader, scope, selection, (Heads::Refuse, &self.limits)))?;
        let hits_left = u64::try_from(left.hits_count()).unwrap_or(u64::MAX);
        self.remove(|ledger| {
            let receipt = ledger.reader().receipt(id)?.ok_or_else(|| no_receipt(id))?;
            let at = ledger.moment()?;
            // Another process may have completed the erasure first; then the proof is its.
            let proof =
                receipt.proof.clone().unwrap_or(Proof { at, scanned: Vec::new(), hits_left: None });
            let mut proof = Proof { hits_left: Some(hits_left), ..proof };
            proof.scanned.extend(forgotten.scanned.iter().cloned());
            let receipt = Receipt { proof: Some(proof), ..receipt };
            ledger.writer.put_receipt(&receipt)?;
            Ok(receipt)
        })
    }

    /// Returns a receipt.
    pub fn receipt(&self, id: ReceiptId) -> Result<Receipt, Error> {
        self.read(|reader| reader.receipt(id)?.ok_or_else(|| no_receipt(id)))
    }

    /// Lists receipts, the newest first.
    pub fn receipts(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Result<Page<Receipt, ReceiptId>, Error> {
        self.read(|reader| {
            let receipts = reader.receipts(workspace, before, limit.saturating_add(1))?;
            Ok(Page::cut(receipts, limit, |receipt| receipt.id))
        })
    }

    /// Records that a copy was written to a place that no redaction reaches.
    pub fn note_copy(&self, copy: &CopyMade) -> Result<(), Error> {
        self.write(|ledger| ledger.writer.put_copy_made(copy, COPIES_MADE_KEPT))
    }
}

/// Returns the error for a redaction after which what is written down beside the rows may still hold the text.
fn again_with_traces(error: Error) -> Error {
    Error::new(
        ErrorKind::EraseIncomplete,
        format!(
            "the text is removed from the rows, but not from what hooks have written down: {error}"
        ),
    )
    .with_hint("run the same redaction again")
    .with_source(error)
}

/// How many changes of other stores are looked through; beyond that, everything is searched again.
const CHANGES_MAX: usize = 10_000;

/// Returns whether nothing has changed in some stores after a sequence.
fn is_unchanged(reader: &dyn Reader, since: Sequence, stores: &[StoreId]) -> Result<bool, Error> {
    let Changes { items, has_gap } = changes_after(reader, since, CHANGES_MAX)?;
    let stores: HashSet<_> = stores.iter().collect();
    let is_other = |change: &Change| !stores.contains(&change.store);
    Ok(!has_gap && items.len() < CHANGES_MAX && items.iter().all(is_other))
}

/// Refuses a plan that is not the one that the caller has seen.
fn require_expected(plan: &RedactionPlan, terms: &Terms) -> Result<(), Error> {
    let Some(expected) = &terms.expect else { return Ok(()) };
    let is_hex = expected.bytes().all(|byte| byte.is_ascii_hexdigit());
    if expected.len() < DIGEST_CHARS_MIN || !is_hex {
        return Err(Error::invalid(format!(
            "a digest is given as at least {DIGEST_CHARS_MIN} of its hex digits"
        )));
    }
    if plan.digest.starts_with(&expected.to_ascii_lowercase()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::PreconditionFailed,
        format!("the plan has changed: its digest is `{}` now", plan.digest),
    )
    .with_hint("look at the new plan with a dry run; nothing was changed"))
}

/// Refuses a selection by provenance that finds nothing. A pattern that finds nothing is not refused: that
/// the text is nowhere is worth a receipt.
fn require_found(plan: &RedactionPlan, selection: &Selection<'_>) -> Result<(), Error> {
    if selection.pattern.is_some() || plan.hits_count() > 0 {
        return Ok(());
    }
    Err(Error::not_found("the selection finds nothing that is not redacted already")
        .with_hint("`quipu log` shows what there is"))
}

/// Refuses a plan with live memories in the way, unless they may be changed, and names them.
fn require_no_heads(plan: &RedactionPlan) -> Result<(), Error> {
    let count = plan.heads_count();
    if count == 0 || plan.heads == Heads::TakeOut {
        return Ok(());
    }
    let heads = plan.stores.iter().flat_map(|store| &store.heads);
    let named: Vec<_> =
        heads.take(HEADS_NAMED_MAX).map(|head| format!("`{}`", head.path)).collect();
    let more = match count - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!("live memories hold what is to be redacted: {}{more}", named.join(", "));
    Err(Error::new(ErrorKind::HeadNotRedactable, message).with_hint(
        "take it out of them first, or have that done: `--and-heads`; nothing was changed",
    ))
}

fn no_receipt(id: ReceiptId) -> Error {
    Error::not_found(format!("no receipt has the id `{id}`"))
        .with_hint("`quipu receipts` lists those that there are")
}
