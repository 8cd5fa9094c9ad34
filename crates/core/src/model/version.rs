//! Versions: what a memory was after each change.

use super::words::words;
use super::{
    Actor, Content, ContentHash, MemoryId, MemoryPath, Reason, StoreId, Timestamp, VersionId,
};

/// An immutable snapshot of a memory, made by one change.
///
/// Only redaction changes it: path, hash, size, text and reason become `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The store that it belongs to.
    pub store: StoreId,
    /// The memory that changed; it may be deleted by now.
    pub memory: MemoryId,
    /// What kind of change it was.
    pub operation: Operation,
    /// The path after the change (before it, for a deletion); `None` once redacted.
    pub path: Option<MemoryPath>,
    /// The text after the change; `None` for a deletion, once redacted, or when the version was
    /// read with [`View::Basic`](super::View::Basic).
    pub content: Option<Content>,
    /// The hash of that text; `None` for a deletion and once redacted.
    pub hash: Option<ContentHash>,
    /// The length of that text; `None` for a deletion and once redacted.
    pub size_bytes: Option<u64>,
    /// Who made the change.
    pub actor: Actor,
    /// When the change was made; no two versions of a data directory have the same moment.
    pub created_at: Timestamp,
    /// The older version that an undo went back to, if this version is an undo.
    pub undone_to: Option<VersionId>,
    /// Why the change was made, if its author said so; `None` once redacted.
    pub reason: Option<Reason>,
    /// The redaction, if there was one.
    pub redaction: Option<Redaction>,
}

/// What kind of change a version records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The memory was created, or restored after a deletion.
    Created,
    /// Its text, its path or both changed.
    Modified,
    /// It was deleted.
    Deleted,
}

words!(Operation { Created = "created", Modified = "modified", Deleted = "deleted" });

/// Who took the text out of a version, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Actor,
}
