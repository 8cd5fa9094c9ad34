//! Redactions by selection: what is asked for, the plan and the receipt.

use quipu_core::engine::{
    DefinitionHit, Heads, OtherStore, PlannedHead, PlannedVersion, RedactionPlan, SessionHit,
    StorePlan,
};
use quipu_core::model;
use serde::{Deserialize, Serialize};

use super::ActorBody;

/// The body of a request to redact what a selection finds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactSelection {
    /// Versions that hold this text.
    pub matching: Option<String>,
    /// Versions that match this regular expression.
    pub regex: Option<String>,
    /// Versions at this path or below it.
    pub path: Option<String>,
    /// Versions of this memory.
    pub memory_id: Option<String>,
    /// Versions by this session.
    pub session_id: Option<String>,
    /// Versions by this actor.
    pub actor_id: Option<String>,
    /// These versions.
    pub memory_version_ids: Option<Vec<String>>,
    /// Only versions made then or later.
    pub since: Option<String>,
    /// Only versions made then or earlier.
    pub until: Option<String>,
    /// Whether the match is taken out of live memories too.
    pub and_heads: Option<bool>,
    /// Whether only the plan is wanted.
    pub dry_run: Option<bool>,
    /// The digest of the plan, or its beginning.
    pub expect: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Who reads an answer: only the owner of the machine is told where files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Somebody at the machine.
    Owner,
    /// Somebody at the other end of a network.
    Remote,
}

/// What a redaction would do.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "redaction_plan")]
pub struct RedactionPlanBody {
    digest: String,
    selection: String,
    and_heads: bool,
    versions_count: usize,
    heads_count: usize,
    stores: Vec<StorePlanBody>,
    sessions: Vec<SessionHitBody>,
    definitions: Vec<DefinitionHitBody>,
    receipt_ids: Vec<String>,
    hook_entries_count: usize,
    names: Vec<String>,
    other_stores: Vec<OtherStoreBody>,
    copies_made: Vec<CopyMadeBody>,
    deleted_memory_store_ids: Vec<String>,
    unreachable_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreachable: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct StorePlanBody {
    memory_store_id: String,
    name: String,
    versions: Vec<PlannedVersionBody>,
    heads: Vec<PlannedHeadBody>,
    refusals_count: usize,
    fields: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct PlannedVersionBody {
    memory_version_id: String,
    memory_id: String,
    path: Option<String>,
    created_at: String,
    found_in: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct PlannedHeadBody {
    memory_id: String,
    memory_version_id: String,
    path: String,
    change: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct SessionHitBody {
    session_id: String,
    fields: Vec<&'static str>,
    events_count: usize,
}

#[derive(Clone, Debug, Serialize)]
struct DefinitionHitBody {
    id: String,
    version: u64,
}

impl From<&DefinitionHit> for DefinitionHitBody {
    fn from(hit: &DefinitionHit) -> Self {
        Self { id: hit.definition.to_string(), version: hit.version }
    }
}

#[derive(Clone, Debug, Serialize)]
struct OtherStoreBody {
    memory_store_id: String,
    name: String,
    versions_count: usize,
    copied_from: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct CopyMadeBody {
    kind: &'static str,
    at: String,
    memory_store_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl RedactionPlanBody {
    /// Returns a plan as an audience may see it.
    pub fn new(plan: &RedactionPlan, audience: Audience) -> Self {
        let is_owner = audience == Audience::Owner;
        let copy = |copy: &model::CopyMade| CopyMadeBody {
            kind: copy.kind.as_str(),
            at: copy.at.to_string(),
            memory_store_id: copy.store.map(|store| store.to_string()),
            target: is_owner.then(|| copy.target.clone()),
        };
        Self {
            digest: plan.digest.clone(),
            selection: plan.selection.clone(),
            and_heads: plan.heads == Heads::TakeOut,
            versions_count: plan.versions_count(),
            heads_count: plan.heads_count(),
            stores: plan.stores.iter().map(StorePlanBody::from).collect(),
            sessions: plan.sessions.iter().map(SessionHitBody::from).collect(),
            definitions: plan.definitions.iter().map(DefinitionHitBody::from).collect(),
            hook_entries_count: plan.traces_count,
            receipt_ids: texts(&plan.receipts),
            names: plan.names.clone(),
            other_stores: plan.others.iter().map(OtherStoreBody::from).collect(),
            copies_made: plan.copies_made.iter().map(copy).collect(),
            deleted_memory_store_ids: texts(&plan.deleted_stores),
            unreachable_count: plan.unreachable.len(),
            unreachable: if is_owner { plan.unreachable.clone() } else { Vec::new() },
        }
    }
}

impl From<&StorePlan> for StorePlanBody {
    fn from(plan: &StorePlan) -> Self {
        Self {
            memory_store_id: plan.store.to_string(),
            name: plan.name.to_string(),
            versions: plan.versions.iter().map(PlannedVersionBody::from).collect(),
            heads: plan.heads.iter().map(PlannedHeadBody::from).collect(),
            refusals_count: plan.refusals.len(),
            fields: plan.fields.clone(),
        }
    }
}

impl From<&PlannedVersion> for PlannedVersionBody {
    fn from(version: &PlannedVersion) -> Self {
        Self {
            memory_version_id: version.id.to_string(),
            memory_id: version.memory.to_string(),
            path: version.path.as_ref().map(ToString::to_string),
            created_at: version.created_at.to_string(),
            found_in: version.carriers.iter().map(|carrier| carrier.as_str()).collect(),
        }
    }
}

impl From<&PlannedHead> for PlannedHeadBody {
    fn from(head: &PlannedHead) -> Self {
        Self {
            memory_id: head.memory.to_string(),
            memory_version_id: head.version.to_string(),
            path: head.path.to_string(),
            change: head.change.as_str(),
        }
    }
}

impl From<&SessionHit> for SessionHitBody {
    fn from(hit: &SessionHit) -> Self {
        Self {
            session_id: hit.session.to_string(),
            fields: hit.fields.clone(),
            events_count: hit.events.len(),
        }
    }
}

impl From<&OtherStore> for OtherStoreBody {
    fn from(other: &OtherStore) -> Self {
        Self {
            memory_store_id: other.store.to_string(),
            name: other.name.to_string(),
            versions_count: other.versions_count,
            copied_from: other.copied_from.clone(),
        }
    }
}

/// What a redaction did, and the proof.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "redaction_receipt")]
pub struct ReceiptBody {
    id: String,
    at: String,
    by: ActorBody,
    reason: Option<String>,
    selection: String,
    memory_store_ids: Vec<String>,
    memory_version_ids: Vec<String>,
    memories: Vec<ReceiptHeadBody>,
    session_ids: Vec<String>,
    described_memory_store_ids: Vec<String>,
    events_count: u64,
    definitions_count: u64,
    refusals_count: u64,
    tombstones_count: u64,
    remarks: Vec<String>,
    unreachable_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreachable: Vec<String>,
    proof: Option<ProofBody>,
}

#[derive(Clone, Debug, Serialize)]
struct ReceiptHeadBody {
    memory_id: String,
    change: &'static str,
    memory_version_id: String,
}

#[derive(Clone, Debug, Serialize)]
struct ProofBody {
    at: String,
    scanned: Vec<ScannedBody>,
    scanned_size_bytes: u64,
    hits_left: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
struct ScannedBody {
    name: String,
    size_bytes: u64,
}

impl ReceiptBody {
    /// Returns a receipt as an audience may see it.
    pub fn new(receipt: &model::Receipt, audience: Audience) -> Self {
        let head = |head: &model::ReceiptHead| ReceiptHeadBody {
            memory_id: head.memory.to_string(),
            change: head.change.as_str(),
            memory_version_id: head.version.to_string(),
        };
        let unreachable = match audience {
            Audience::Owner => receipt.unreachable.clone(),
            Audience::Remote => Vec::new(),
        };
        Self {
            id: receipt.id.to_string(),
            at: receipt.at.to_string(),
            by: ActorBody::from(&receipt.by),
            reason: receipt.reason.as_ref().map(ToString::to_string),
            selection: receipt.selection.clone(),
            memory_store_ids: texts(&receipt.stores),
            memory_version_ids: texts(&receipt.versions),
            memories: receipt.heads.iter().map(head).collect(),
            session_ids: texts(&receipt.sessions),
            described_memory_store_ids: texts(&receipt.described_stores),
            events_count: receipt.events_count,
            definitions_count: receipt.definitions_count,
            refusals_count: receipt.refusals_count,
            tombstones_count: receipt.tombstones_count,
            remarks: receipt.remarks.clone(),
            unreachable_count: receipt.unreachable.len(),
            unreachable,
            proof: receipt.proof.as_ref().map(ProofBody::from),
        }
    }
}

impl From<&model::Proof> for ProofBody {
    fn from(proof: &model::Proof) -> Self {
        let scanned = |file: &model::ScannedFile| ScannedBody {
            name: file.name.clone(),
            size_bytes: file.size_bytes,
        };
        Self {
            at: proof.at.to_string(),
            scanned: proof.scanned.iter().map(scanned).collect(),
            scanned_size_bytes: proof.scanned.iter().map(|file| file.size_bytes).sum(),
            hits_left: proof.hits_left,
        }
    }
}

fn texts<T: ToString>(ids: &[T]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
