//! Receipts: what a redaction did, and the proof. And copies that were made for somebody to keep.

use super::words::words;
use super::{
    Actor, MemoryId, Reason, ReceiptId, SessionId, StoreId, Timestamp, VersionId, WorkspaceId,
};

/// What a redaction did. It holds ids and counts, never what was redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id.
    pub id: ReceiptId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// When the text was removed from the rows.
    pub at: Timestamp,
    /// Who redacted.
    pub by: Actor,
    /// Why, if somebody said so.
    pub reason: Option<Reason>,
    /// What was selected, described without the text that was looked for.
    pub selection: String,
    /// The stores that were searched.
    pub stores: Vec<StoreId>,
    /// The versions that were redacted.
    pub versions: Vec<VersionId>,
    /// The live memories that were changed or deleted first.
    pub heads: Vec<ReceiptHead>,
    /// The sessions of which the title or another field was changed, or an event was redacted.
    pub sessions: Vec<SessionId>,
    /// How many events of sessions were redacted.
    pub events_count: u64,
    /// How many versions of agents and environments were changed.
    pub definitions_count: u64,
    /// The stores of which the description or the metadata was changed.
    pub described_stores: Vec<StoreId>,
    /// How many refusals were removed.
    pub refusals_count: u64,
    /// How many tombstones were set.
    pub tombstones_count: u64,
    /// What is left for somebody to do, such as a name to change: a sentence for each.
    pub remarks: Vec<String>,
    /// Copies that are out of reach, such as backups: a sentence for each. They name files of the host.
    pub unreachable: Vec<String>,
    /// The proof; `None` as long as the erasure is not complete.
    pub proof: Option<Proof>,
}

/// What proves that the text is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// When the erasure was complete.
    pub at: Timestamp,
    /// The files that were scanned for bytes that belong to no row.
    pub scanned: Vec<ScannedFile>,
    /// How many rows the selection still finds; `None` if the redaction was interrupted and another
    /// process has completed the erasure, which does not know the text.
    pub hits_left: Option<u64>,
}

/// A file that was scanned from its first byte to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub size_bytes: u64,
}

/// A live memory that was in the way of a redaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptHead {
    /// The memory.
    pub memory: MemoryId,
    /// What was done to it.
    pub change: HeadChange,
    /// The version that this made.
    pub version: VersionId,
}

/// What takes the redacted text out of a live memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadChange {
    /// The match is replaced in its text.
    Edited,
    /// The match is replaced in its path.
    Moved,
    /// The match is replaced in both.
    EditedAndMoved,
    /// It is written again unchanged, because the match is in the reason of its newest version.
    Rewritten,
    /// It is deleted.
    Deleted,
}

words!(HeadChange {
    Edited = "edited",
    Moved = "moved",
    EditedAndMoved = "edited_and_moved",
    Rewritten = "rewritten",
    Deleted = "deleted",
});

/// A copy of texts that Quipu wrote somewhere and that no redaction reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyMade {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// When.
    pub at: Timestamp,
    /// What it is.
    pub kind: CopyKind,
    /// The store that was copied; `None` if all were.
    pub store: Option<StoreId>,
    /// Where it was written to, as a path of the host.
    pub target: String,
}

/// What a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// A copy of the whole database.
    Backup,
    /// Memories, and maybe their versions, as files.
    Export,
}

words!(CopyKind { Backup = "backup", Export = "export" });
