//! Quipu's own shapes, which the hosted service does not have.

use quipu_core::backend::{Change, Event, Usage};
use quipu_core::diff::{Diff, Line};
use quipu_core::engine::{CheckReport, Pruned, Remedy};
use quipu_core::model;
use quipu_screen::Finding;
use serde::Serialize;

use super::{StoreBody, VersionBody};

/// A store with Quipu's own settings and its usage.
#[derive(Clone, Debug, Serialize)]
pub struct StoreDetails {
    /// The store.
    #[serde(flatten)]
    pub store: StoreBody,
    /// What happens to writes that hold credentials.
    pub secrets: &'static str,
    /// What happens to writes that bring back redacted text.
    pub forgotten: &'static str,
    /// Who may change memories, of those who may write.
    pub writers: &'static str,
    /// After how many days unused memories are deleted, if ever.
    pub expire_after_days: Option<u32>,
    /// How many memories it holds.
    pub memories_count: u64,
    /// The total length of their texts.
    pub size_bytes: u64,
}

impl From<(&model::Store, Usage)> for StoreDetails {
    fn from((store, usage): (&model::Store, Usage)) -> Self {
        Self {
            store: store.into(),
            secrets: store.policy.secrets.as_str(),
            forgotten: store.policy.forgotten.as_str(),
            writers: store.policy.writers.as_str(),
            expire_after_days: store.policy.expire_after_days,
            memories_count: usage.memories_count,
            size_bytes: usage.size_bytes,
        }
    }
}

/// A new token of a session.
#[derive(Clone, Debug, Serialize)]
pub struct TokenBody {
    /// The token.
    pub token: String,
    /// When it expires.
    pub token_expires_at: Option<String>,
}

/// A run of the memory tool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolSessionBody {
    /// The session that its writes will name, if it can write.
    pub session_id: Option<String>,
    /// The token to send in place of the key from now on, if any.
    pub token: Option<String>,
    /// When the session's token expires, if the session has one.
    pub token_expires_at: Option<String>,
}

/// The policy of a store.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PolicyBody {
    /// What happens to writes that hold credentials.
    pub secrets: &'static str,
    /// What happens to writes that bring back redacted text.
    pub forgotten: &'static str,
    /// Who may change memories, of those who may write.
    pub writers: &'static str,
    /// After how many days unused memories are deleted, if ever.
    pub expire_after_days: Option<u32>,
}

impl From<model::StorePolicy> for PolicyBody {
    fn from(policy: model::StorePolicy) -> Self {
        Self {
            secrets: policy.secrets.as_str(),
            forgotten: policy.forgotten.as_str(),
            writers: policy.writers.as_str(),
            expire_after_days: policy.expire_after_days,
        }
    }
}

/// A credential that screening found, or redacted text that came back; never the text itself.
#[derive(Clone, Debug, Serialize)]
pub struct FindingBody {
    /// What kind of credential it is, or `redacted-text`.
    pub kind: String,
    /// The line, counted from 1; 0 if it is in the path.
    pub line: usize,
}

impl From<&Finding> for FindingBody {
    fn from(finding: &Finding) -> Self {
        Self { kind: finding.kind.as_str().to_owned(), line: finding.line }
    }
}

/// A workspace.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "workspace")]
pub struct WorkspaceBody {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: String,
}

impl From<&model::Workspace> for WorkspaceBody {
    fn from(workspace: &model::Workspace) -> Self {
        Self {
            id: workspace.id.to_string(),
            name: workspace.name.to_string(),
            created_at: workspace.created_at.to_string(),
        }
    }
}

/// A key without its secret.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "api_key")]
pub struct KeyBody {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What its holder may do.
    pub role: &'static str,
    /// The only stores that it opens; null means all.
    pub memory_store_ids: Option<Vec<String>>,
    /// When it was created.
    pub created_at: String,
    /// When it expires, if ever.
    pub expires_at: Option<String>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<String>,
    /// What it is for.
    pub kind: &'static str,
    /// The key that it was derived from, if it was.
    pub parent_id: Option<String>,
    /// About when it was last used, if it was.
    pub last_used_at: Option<String>,
    /// Whether its holder may have requests forwarded to the upstream: `allowed` or `denied`.
    pub forwarding: &'static str,
}

impl From<&model::Key> for KeyBody {
    fn from(key: &model::Key) -> Self {
        let ids = |stores: &Vec<model::StoreId>| stores.iter().map(ToString::to_string).collect();
        Self {
            id: key.id.to_string(),
            name: key.name.to_string(),
            role: key.role.as_str(),
            memory_store_ids: key.stores.as_ref().map(ids),
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
            kind: key.kind.as_str(),
            parent_id: key.parent.map(|id| id.to_string()),
            last_used_at: key.used_at.map(|at| at.to_string()),
            forwarding: key.forwarding.as_str(),
        }
    }
}

/// A session and what is attached to it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "session")]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// The attached stores.
    pub resources: Vec<AttachmentBody>,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When it was archived, if it was.
    pub archived_at: Option<String>,
}

/// A store attached to a session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "memory_store")]
pub struct AttachmentBody {
    /// The store.
    pub memory_store_id: String,
    /// `read_write` or `read_only`.
    pub access: &'static str,
    /// What the agent should do with it.
    pub instructions: String,
    /// The store's name when it was attached.
    pub name: String,
    /// The store's description when it was attached.
    pub description: String,
    /// Where it is mounted.
    pub mount_path: String,
}

impl AttachmentBody {
    /// Returns the shape of a store that is mounted below `mount_root`.
    pub fn new(attachment: &model::Attachment, mount_root: &str) -> Self {
        Self {
            memory_store_id: attachment.store.to_string(),
            access: attachment.access.as_str(),
            instructions: attachment.instructions.to_string(),
            name: attachment.name.to_string(),
            description: attachment.description.to_string(),
            mount_path: attachment.mount_path(mount_root),
        }
    }
}

impl SessionSummary {
    /// Returns the shape of a session whose stores are mounted below `mount_root`.
    pub fn new(session: &model::Session, mount_root: &str) -> Self {
        let attachment = |attachment| AttachmentBody::new(attachment, mount_root);
        Self {
            id: session.id.to_string(),
            title: session.title.clone(),
            resources: session.attachments.iter().map(attachment).collect(),
            created_at: session.created_at.to_string(),
            updated_at: session.updated_at.to_string(),
            archived_at: session.archived_at.map(|at| at.to_string()),
        }
    }
}

/// One entry of the change feed.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeBody {
    /// Its sequence number in the feed.
    pub sequence: u64,
    /// When it was made.
    pub created_at: String,
    /// The store that changed.
    pub memory_store_id: String,
    /// What happened, such as `memory_version.created`.
    pub event: &'static str,
    /// The version that was made or redacted.
    pub memory_version_id: Option<String>,
    /// The version that was made, in the basic view, where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_version: Option<VersionBody>,
}

impl From<&Change> for ChangeBody {
    fn from(change: &Change) -> Self {
        let (event, version) = match change.event {
            Event::Version(version) => ("memory_version.created", Some(version)),
            Event::Redacted(version) => ("memory_version.redacted", Some(version)),
            Event::StoreCreated => ("memory_store.created", None),
            Event::StoreUpdated => ("memory_store.updated", None),
            Event::StoreArchived => ("memory_store.archived", None),
            Event::StoreDeleted => ("memory_store.deleted", None),
            // No store has changed, so nobody sees it; streams say that there is a gap.
            Event::Restarted => ("restarted", None),
        };
        Self {
            sequence: change.sequence.0,
            created_at: change.at.to_string(),
            memory_store_id: change.store.to_string(),
            event,
            memory_version_id: version.map(|version| version.to_string()),
            memory_version: None,
        }
    }
}

/// The difference between two texts.
#[derive(Clone, Debug, Serialize)]
pub struct DiffBody {
    /// How many lines were added.
    pub added_count: usize,
    /// How many lines were removed.
    pub removed_count: usize,
    /// The changes, with lines around them.
    pub hunks: Vec<HunkBody>,
}

/// A group of changed lines.
#[derive(Clone, Debug, Serialize)]
pub struct HunkBody {
    /// The place, as a unified diff writes it.
    pub header: String,
    /// The lines, each after a space, a minus or a plus.
    pub lines: Vec<String>,
}

impl DiffBody {
    /// Returns the shape of a diff with `context` unchanged lines around each change.
    pub fn new(diff: &Diff, context: usize) -> Self {
        let hunk = |hunk: &quipu_core::diff::Hunk<'_>| HunkBody {
            header: hunk.header(),
            lines: hunk.lines.iter().map(Line::to_string).collect(),
        };
        Self {
            added_count: diff.added_count(),
            removed_count: diff.removed_count(),
            hunks: diff.hunks(context).iter().map(hunk).collect(),
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckBody {
    /// How many stores there are.
    pub stores_count: usize,
    /// How many memories there are.
    pub memories_count: usize,
    /// How many versions there are.
    pub versions_count: usize,
    /// How many changes the feed holds.
    pub changes_count: usize,
    /// Whether removed text may still be in a file; `quipu prune` finishes that.
    pub is_erasing_pending: bool,
    /// What is wrong.
    pub problems: Vec<ProblemBody>,
}

/// A problem that a check found.
#[derive(Clone, Debug, Serialize)]
pub struct ProblemBody {
    /// What is wrong.
    pub message: String,
    /// Whether `quipu check --rebuild` repairs it.
    pub can_be_rebuilt: bool,
}

impl From<&CheckReport> for CheckBody {
    fn from(report: &CheckReport) -> Self {
        let problem = |problem: &quipu_core::engine::Problem| ProblemBody {
            message: problem.message.clone(),
            can_be_rebuilt: problem.remedy == Remedy::Rebuild,
        };
        Self {
            stores_count: report.stores_count,
            memories_count: report.memories_count,
            versions_count: report.versions_count,
            changes_count: report.changes_count,
            is_erasing_pending: report.is_erasing_pending,
            problems: report.problems.iter().map(problem).collect(),
        }
    }
}

/// The result of pruning.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PrunedBody {
    /// How many versions were removed.
    pub versions_count: usize,
    /// How many memories had expired and were deleted.
    pub memories_count: usize,
    /// How many deleted stores were erased.
    pub stores_count: usize,
    /// How many old events of sessions were removed.
    pub events_count: usize,
    /// How many ended sessions were removed.
    pub sessions_count: usize,
    /// How many ended keys that were derived from others were removed.
    pub keys_count: usize,
}

impl From<Pruned> for PrunedBody {
    fn from(pruned: Pruned) -> Self {
        let Pruned {
            versions_count,
            memories_count,
            stores_count,
            events_count,
            sessions_count,
            keys_count,
        } = pruned;
        Self {
            versions_count,
            memories_count,
            stores_count,
            events_count,
            sessions_count,
            keys_count,
        }
    }
}
