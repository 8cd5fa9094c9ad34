//! Carries a plan out, inside one transaction.

use std::collections::BTreeSet;
use std::fmt;

use crate::Error;
use crate::backend::Event;
use crate::model::{
    Actor, Content, CopyMade, HeadChange, Id as _, MemoryPath, Reason, Receipt, ReceiptHead,
    ReceiptId, Redaction, Session, Store, StoreId, TOMBSTONE_SIZE_BYTES_MIN, Tombstone, Version,
    VersionId, View,
};
use crate::settings::Limits;

use super::super::existing_store;
use super::super::intact::Intact as _;
use super::super::transaction::{Ledger, Transaction};
use super::super::versions::existing_version;
use super::super::writers::require_writer;
use super::{
    COPIES_MADE_KEPT, Pattern, PlannedHead, RedactionPlan, Scope, Selection, SessionHit, StorePlan,
    Terms, agents, cut,
};

/// How many tombstones a store has at most.
const TOMBSTONES_PER_STORE_MAX: usize = 1_000;

/// What a pattern matched in a store. It is what is to be forgotten, so it is shown nowhere.
#[derive(Clone, Default)]
pub(super) struct Matched {
    texts: BTreeSet<String>,
    /// Whether something was too short for a tombstone.
    has_short: bool,
    /// Whether there was more than fits.
    has_more: bool,
}

impl fmt::Debug for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matched").field("count", &self.texts.len()).finish_non_exhaustive()
    }
}

impl Matched {
    pub(super) fn add_version(&mut self, selection: &Selection<'_>, version: &Version) {
        self.add(selection, version.content.as_ref().map_or("", Content::as_str));
        self.add(selection, version.path.as_ref().map_or("", MemoryPath::as_str));
        self.add(selection, version.reason.as_ref().map_or("", Reason::as_str));
    }

    pub(super) fn add_store(&mut self, selection: &Selection<'_>, store: &Store) {
        self.add(selection, store.description.as_str());
        // An exact text gets its tombstone wherever it is looked for, whether or not it was there.
        self.add(selection, selection.pattern.as_ref().and_then(Pattern::exact).unwrap_or(""));
    }

    fn add(&mut self, selection: &Selection<'_>, text: &str) {
        let Some(pattern) = &selection.pattern else { return };
        if text.is_empty() {
            return;
        }
        for range in pattern.find(text) {
            let matched = Tombstone::remembered(text.get(range).unwrap_or_default());
            if matched.len() < TOMBSTONE_SIZE_BYTES_MIN {
                self.has_short = true;
            } else if self.texts.len() < TOMBSTONES_PER_STORE_MAX || self.texts.contains(matched) {
                self.texts.insert(matched.to_owned());
            } else {
                self.has_more = true;
            }
        }
    }
}

/// One redaction.
pub(super) struct Run<'a> {
    pub(super) actor: &'a Actor,
    pub(super) limits: &'a Limits,
    pub(super) selection: &'a Selection<'a>,
    pub(super) terms: &'a Terms,
}

impl Run<'_> {
    /// Changes everything that the plan names and returns the id of the receipt, which has no proof yet.
    pub(super) fn apply(
        &self,
        ledger: &mut Ledger<'_>,
        scope: &Scope,
        plan: &RedactionPlan,
        (remarks, unreachable): (Vec<String>, Vec<String>),
    ) -> Result<ReceiptId, Error> {
        let mut receipt = new_receipt(ledger, self.actor, scope)?;
        receipt.reason.clone_from(&self.terms.reason);
        receipt.selection.clone_from(&plan.selection);
        receipt.stores = plan.stores.iter().map(|store| store.store).collect();
        receipt.remarks = remarks;
        receipt.unreachable = unreachable;
        for hit in &plan.sessions {
            self.apply_to_session(ledger, hit, &mut receipt)?;
        }
        self.apply_to_definitions(ledger, plan, &mut receipt)?;
        for id in &plan.receipts {
            if let (Some(earlier), Some(pattern)) =
                (ledger.reader().receipt(*id)?, &self.selection.pattern)
            {
                ledger.writer.put_receipt(&cut::receipt(pattern, &earlier))?;
            }
        }
        for copy in &plan.copies {
            if let Some(pattern) = &self.selection.pattern {
                let target = cut::short(pattern, &copy.target, usize::MAX);
                ledger.writer.remove_copy_made(copy)?;
                let after = CopyMade { target, ..copy.clone() };
                ledger.writer.put_copy_made(&after, COPIES_MADE_KEPT)?;
            }
        }
        // Last, because all other writers wait for the stamps of these changes.
        for store in &plan.stores {
            self.apply_to_store(ledger, store, &mut receipt)?;
        }
        // Sessions, labels and refusals have lost text too, and something may be left of what somebody has
        // changed by hand. One erasure covers all files, whichever store asks for it.
        let store = plan.stores.first().map_or(StoreId::from_bits(0), |store| store.store);
        ledger.writer.require_erasure(store)?;
        ledger.writer.put_receipt(&receipt)?;
        self.selection.require_complete()?;
        Ok(receipt.id)
    }

    fn apply_to_session(
        &self,
        ledger: &mut Ledger<'_>,
        hit: &SessionHit,
        receipt: &mut Receipt,
    ) -> Result<(), Error> {
        let Some(session) = ledger.reader().session(hit.session)? else { return Ok(()) };
        if let (Some(pattern), false) = (&self.selection.pattern, hit.fields.is_empty()) {
            let (after, _) = cut::session(pattern, &session);
            let updated_at = receipt.at.max(session.updated_at);
            ledger.writer.put_session(&Session { updated_at, ..after })?;
        }
        let redaction = Redaction { at: receipt.at, by: self.actor.clone() };
        for number in &hit.events {
            ledger.writer.redact_session_event(session.id, *number, &redaction)?;
            receipt.events_count += 1;
        }
        receipt.sessions.push(hit.session);
        Ok(())
    }

    /// Takes the match out of versions of agents and environments. No version is made: each of them is
    /// what a session may have run with.
    fn apply_to_definitions(
        &self,
        ledger: &mut Ledger<'_>,
        plan: &RedactionPlan,
        receipt: &mut Receipt,
    ) -> Result<(), Error> {
        let Some(pattern) = &self.selection.pattern else { return Ok(()) };
        for hit in &plan.definitions {
            let later = hit.version.saturating_add(1);
            let found = ledger.reader().definition_versions(hit.definition, Some(later), 1)?;
            if let Some(before) = found.iter().find(|it| it.version == hit.version) {
                ledger.writer.put_definition(&agents::without(pattern, before))?;
                receipt.definitions_count += 1;
            }
        }
        Ok(())
    }

    fn apply_to_store(
        &self,
        ledger: &mut Ledger<'_>,
        plan: &StorePlan,
        receipt: &mut Receipt,
    ) -> Result<(), Error> {
        let store = existing_store(ledger.reader(), plan.store)?;
        require_writer(ledger.reader(), &store, self.actor)?;
        let mut made = Vec::new();
        for head in &plan.heads {
            let version = self.take_out(ledger, &store, head)?;
            receipt.heads.push(ReceiptHead {
                memory: head.memory,
                change: head.change,
                version: version.id,
            });
            // A deletion names the path of what it has deleted.
            if self.selection.carriers(&version).is_some() {
                made.push(version.id);
            }
        }
        let planned: Vec<_> = plan.versions.iter().map(|version| version.id).collect();
        let all: Vec<_> = planned.iter().chain(&made).copied().collect();
        redact_versions(ledger, self.actor, (store.id, &all))?;
        receipt.versions.extend(planned);
        for refusal in &plan.refusals {
            ledger.writer.remove_refusal(refusal)?;
            receipt.refusals_count += 1;
        }
        self.describe(ledger, &store, plan, receipt)?;
        set_tombstones(ledger, plan, receipt)
    }

    /// Takes the match out of a live memory, as a new version.
    fn take_out(
        &self,
        ledger: &mut Ledger<'_>,
        store: &Store,
        head: &PlannedHead,
    ) -> Result<Version, Error> {
        let mut transaction = Transaction {
            ledger,
            limits: self.limits,
            actor: self.actor,
            store: store.clone(),
            undone_to: None,
            reason: self.terms.reason.clone(),
        };
        let found = transaction.reader().memory(store.id, head.memory, View::Full)?;
        let memory = found.ok_or_else(|| Error::not_found("a memory is gone"))?.intact()?;
        let (Some(pattern), Some(content)) = (&self.selection.pattern, memory.content.clone())
        else {
            return transaction.delete(memory);
        };
        let (is_edited, is_moved) = match head.change {
            HeadChange::Edited => (true, false),
            HeadChange::Moved => (false, true),
            HeadChange::EditedAndMoved => (true, true),
            HeadChange::Rewritten => (false, false),
            HeadChange::Deleted => return transaction.delete(memory),
        };
        let content =
            if is_edited { cut::text(pattern, &content, self.limits) } else { Some(content) };
        let mut path = if is_moved { None } else { Some(memory.path.clone()) };
        let candidates =
            if is_moved { cut::paths(pattern, &memory.path, memory.id) } else { Vec::new() };
        for candidate in candidates {
            let reader = transaction.reader();
            if reader.overlapping(store.id, &candidate, Some(memory.id))?.is_none() {
                path = Some(candidate);
                break;
            }
        }
        match (path, content) {
            (Some(path), Some(content)) => transaction.rewrite(memory, path, content),
            (None, _) | (_, None) => Err(Error::invalid("a memory has no path to move to")
                .with_hint("rename it yourself, then redact again; nothing was changed")),
        }
    }

    /// Takes the match out of the description and the labels of a store.
    fn describe(
        &self,
        ledger: &mut Ledger<'_>,
        store: &Store,
        plan: &StorePlan,
        receipt: &mut Receipt,
    ) -> Result<(), Error> {
        let (false, Some(pattern)) = (plan.fields.is_empty(), &self.selection.pattern) else {
            return Ok(());
        };
        let (after, _) = cut::store(pattern, store);
        let stamp = ledger.stamp()?;
        ledger.writer.put_store(&Store { updated_at: stamp.at, ..after })?;
        ledger.record(stamp, store.id, Event::StoreUpdated)?;
        receipt.described_stores.push(store.id);
        Ok(())
    }
}

/// Buries what was found, so that it is recognized when it comes back.
fn set_tombstones(
    ledger: &mut Ledger<'_>,
    plan: &StorePlan,
    receipt: &mut Receipt,
) -> Result<(), Error> {
    let Matched { texts, has_short, has_more } = &plan.matched;
    let mut has_more = *has_more;
    let present = ledger.reader().tombstones(plan.store)?;
    let salt = present.first().map_or_else(|| ledger.random().to_le_bytes(), |it| it.salt);
    let mut count = present.len();
    for tombstone in texts.iter().filter_map(|text| Tombstone::new(salt, text)) {
        if present.contains(&tombstone) {
            continue;
        }
        if count >= TOMBSTONES_PER_STORE_MAX {
            has_more = true;
            break;
        }
        ledger.writer.put_tombstone(plan.store, &tombstone)?;
        receipt.tombstones_count += 1;
        count += 1;
    }
    let store = plan.store;
    if *has_short {
        receipt.remarks.push(format!(
            "in the store `{store}`, matches of less than {TOMBSTONE_SIZE_BYTES_MIN} bytes are not \
             recognized when they come back"
        ));
    }
    if has_more {
        receipt.remarks.push(format!(
            "the store `{store}` has {TOMBSTONES_PER_STORE_MAX} tombstones, which is its limit; \
             further matches are not recognized when they come back"
        ));
    }
    Ok(())
}

/// Redacts versions of a store and records it in the feed.
pub(in super::super) fn redact_versions(
    ledger: &mut Ledger<'_>,
    actor: &Actor,
    (store, ids): (StoreId, &[VersionId]),
) -> Result<(), Error> {
    for id in ids {
        existing_version(ledger.reader(), store, *id, View::Basic)?;
    }
    let mut redactions = Vec::with_capacity(ids.len());
    for id in ids {
        let stamp = ledger.stamp()?;
        redactions.push((*id, Redaction { at: stamp.at, by: actor.clone() }));
        ledger.record(stamp, store, Event::Redacted(*id))?;
    }
    ledger.writer.redact(store, &redactions)
}

/// Returns an empty receipt.
pub(in super::super) fn new_receipt(
    ledger: &Ledger<'_>,
    actor: &Actor,
    scope: &Scope,
) -> Result<Receipt, Error> {
    let at = ledger.moment()?;
    Ok(Receipt {
        id: ReceiptId::new(at, ledger.random()),
        workspace: scope.workspace,
        at,
        by: actor.clone(),
        reason: None,
        selection: String::new(),
        stores: scope.stores.clone().unwrap_or_default(),
        versions: Vec::new(),
        heads: Vec::new(),
        sessions: Vec::new(),
        described_stores: Vec::new(),
        events_count: 0,
        definitions_count: 0,
        refusals_count: 0,
        tombstones_count: 0,
        remarks: Vec::new(),
        unreachable: Vec::new(),
        proof: None,
    })
}
