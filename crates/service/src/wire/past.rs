//! Stores as they were: what a moment means, differences, blame, copies.

use quipu_core::backend::Usage;
use quipu_core::diff::Diff;
use quipu_core::engine::{BlamedLine, Difference, Precision};
use quipu_core::model::{Memory, Store, Version};
use serde::Serialize;

use super::{ActorBody, DiffBody, ListBody, ListingBody, MemoryBody, SearchBody, StoreBody};
use crate::past::Then;

/// What a moment means for a store.
#[derive(Clone, Debug, Serialize)]
pub struct AsOfBody {
    /// The moment: that of the newest change by then.
    pub at: String,
    /// Whether everything that the store held is known.
    pub complete: bool,
    /// From when on it is; null if it is known for this moment.
    pub complete_from: Option<String>,
}

impl From<&Then> for AsOfBody {
    fn from(then: &Then) -> Self {
        Self {
            at: then.past.at.to_string(),
            complete: then.past.is_complete(),
            complete_from: then.complete_from().map(|from| from.to_string()),
        }
    }
}

/// A store at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct PastStoreBody {
    /// The store.
    pub memory_store_id: String,
    /// The moment.
    #[serde(flatten)]
    pub as_of: AsOfBody,
    /// How many memories it held; those that were redacted since are not counted.
    pub memories_count: u64,
    /// The total length of their texts.
    pub size_bytes: u64,
    /// How many memories cannot be shown, because they were redacted since.
    pub redacted_count: usize,
    /// The first of them.
    pub redacted: Vec<RedactedBody>,
}

/// A version that was redacted.
#[derive(Clone, Debug, Serialize)]
pub struct RedactedBody {
    /// The version.
    pub memory_version_id: String,
    /// Its memory.
    pub memory_id: String,
    /// When it was redacted.
    pub redacted_at: Option<String>,
    /// Who redacted it.
    pub redacted_by: Option<ActorBody>,
}

impl From<&Version> for RedactedBody {
    fn from(version: &Version) -> Self {
        let redaction = version.redaction.as_ref();
        Self {
            memory_version_id: version.id.to_string(),
            memory_id: version.memory.to_string(),
            redacted_at: redaction.map(|redaction| redaction.at.to_string()),
            redacted_by: redaction.map(|redaction| (&redaction.by).into()),
        }
    }
}

impl PastStoreBody {
    /// Returns the shape of a store at a moment, with at most `redacted_max` redacted versions.
    pub fn new(then: &Then, usage: Usage, redacted: &[Version], redacted_max: usize) -> Self {
        Self {
            memory_store_id: then.store().to_string(),
            as_of: then.into(),
            memories_count: usage.memories_count,
            size_bytes: usage.size_bytes,
            redacted_count: redacted.len(),
            redacted: redacted.iter().take(redacted_max).map(RedactedBody::from).collect(),
        }
    }
}

/// A page of the memories of a moment.
#[derive(Clone, Debug, Serialize)]
pub struct PastListBody {
    /// The page.
    #[serde(flatten)]
    pub page: ListBody<ListingBody>,
    /// The moment.
    pub as_of: AsOfBody,
}

/// A memory of a moment.
#[derive(Clone, Debug, Serialize)]
pub struct PastMemoryBody {
    /// The memory.
    #[serde(flatten)]
    pub memory: MemoryBody,
    /// The moment.
    pub as_of: AsOfBody,
}

/// The result of a search in a moment.
#[derive(Clone, Debug, Serialize)]
pub struct PastSearchBody {
    /// What was found; `is_behind` says that the store was too large to be searched completely.
    #[serde(flatten)]
    pub found: SearchBody,
    /// How it was searched: always `scan`, since there is no index of the past.
    pub searched: &'static str,
    /// How many memories could not be searched, because they were redacted since.
    pub redacted_count: usize,
    /// The moment.
    pub as_of: AsOfBody,
}

/// How a search in a moment is done: every text is read.
pub const SEARCHED: &str = "scan";

/// One side of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct SideBody {
    /// The moment.
    #[serde(flatten)]
    pub as_of: AsOfBody,
    /// How many memories could not be compared, because they were redacted since.
    pub redacted_count: usize,
}

/// A page of the differences between two moments.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonBody {
    /// The old side.
    pub from: SideBody,
    /// The new side.
    pub to: SideBody,
    /// How many memories are only on the new side.
    pub added_count: usize,
    /// How many are only on the old side.
    pub removed_count: usize,
    /// How many have another text at the same path.
    pub changed_count: usize,
    /// How many have another path, and perhaps another text.
    pub moved_count: usize,
    /// The page.
    #[serde(flatten)]
    pub page: ListBody<DifferenceBody>,
}

/// One memory that differs.
#[derive(Clone, Debug, Serialize)]
pub struct DifferenceBody {
    /// `added`, `removed`, `changed` or `moved`.
    pub kind: &'static str,
    /// The memory: the new one if there is one.
    pub memory_id: String,
    /// Its path on the old side.
    pub old_path: Option<String>,
    /// Its path on the new side.
    pub new_path: Option<String>,
    /// Its version on the old side.
    pub old_version_id: Option<String>,
    /// Its version on the new side.
    pub new_version_id: Option<String>,
    /// The lines that differ; null in the basic view, and if a text was redacted in the meantime.
    pub diff: Option<DiffBody>,
}

impl DifferenceBody {
    /// Returns the word for a difference.
    pub fn kind(difference: &Difference) -> &'static str {
        match difference {
            Difference::Added(_) => "added",
            Difference::Removed(_) => "removed",
            Difference::Changed { .. } => "changed",
            Difference::Moved { .. } => "moved",
        }
    }

    /// Returns the shape of a difference, with `context` unchanged lines around each change.
    pub fn new(difference: &Difference, diff: Option<&Diff>, context: usize) -> Self {
        let (old, new) = (difference.before(), difference.after());
        let path = |memory: &Memory| memory.path.to_string();
        let version = |memory: &Memory| memory.version.to_string();
        Self {
            kind: Self::kind(difference),
            memory_id: new.or(old).map(|memory| memory.id.to_string()).unwrap_or_default(),
            old_path: old.map(path),
            new_path: new.map(path),
            old_version_id: old.map(version),
            new_version_id: new.map(version),
            diff: diff.map(|diff| DiffBody::new(diff, context)),
        }
    }
}

/// A page of the lines of a memory, each with the version that it came with.
#[derive(Clone, Debug, Serialize)]
pub struct BlameBody {
    /// The memory.
    pub memory_id: String,
    /// Its path.
    pub path: String,
    /// The version whose lines these are.
    pub memory_version_id: String,
    /// The moment.
    pub as_of: AsOfBody,
    /// The page.
    #[serde(flatten)]
    pub page: ListBody<BlamedLineBody>,
}

/// One line and the version that it came with.
#[derive(Clone, Debug, Serialize)]
pub struct BlamedLineBody {
    /// Its number, counted from 1.
    pub line: usize,
    /// The line, without its line break.
    pub text: String,
    /// The version.
    pub memory_version_id: String,
    /// Who made it.
    pub created_by: ActorBody,
    /// When.
    pub created_at: String,
    /// Whether the line is known to come with this version; otherwise it may be older.
    pub precise: bool,
}

impl BlamedLineBody {
    /// Returns the shape of a line with this number.
    pub fn new(line: usize, blamed: &BlamedLine) -> Self {
        Self {
            line,
            text: blamed.text.clone(),
            memory_version_id: blamed.version.to_string(),
            created_by: (&blamed.actor).into(),
            created_at: blamed.created_at.to_string(),
            precise: blamed.precision == Precision::Exact,
        }
    }
}

/// A store that was made as a copy.
#[derive(Clone, Debug, Serialize)]
pub struct CopyBody {
    /// The new store.
    #[serde(flatten)]
    pub store: StoreBody,
    /// How many memories were copied.
    pub memories_count: usize,
    /// What they were copied from.
    pub source: SourceBody,
}

/// What a store is a copy of.
#[derive(Clone, Debug, Serialize)]
pub struct SourceBody {
    /// The store.
    pub memory_store_id: String,
    /// The moment, and what could not be copied.
    #[serde(flatten)]
    pub side: SideBody,
}

impl CopyBody {
    /// Returns the shape of a copy.
    pub fn new((store, copied_count): &(Store, usize), then: &Then, redacted_count: usize) -> Self {
        Self {
            store: store.into(),
            memories_count: *copied_count,
            source: SourceBody {
                memory_store_id: then.store().to_string(),
                side: SideBody { as_of: then.into(), redacted_count },
            },
        }
    }
}
