//! The report of a sync.

use std::collections::HashSet;
use std::fmt;

use quipu_core::model::{MemoryPath, VersionId};

/// What a sync did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was done, sorted by path.
    pub actions: Vec<Action>,
    /// Files that cannot be memories; they were left alone.
    pub left_out: Vec<LeftOut>,
    /// What could not be synced; the next sync tries again.
    pub failed: Vec<LeftOut>,
    /// Which of these an earlier sync has reported already.
    pub repeated: HashSet<LeftOut>,
    /// How many files equal their memories now.
    pub in_sync_count: usize,
    /// What folder and store had in common at the start.
    pub start: Start,
}

/// What folder and store had in common at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// They were in sync before, so what is missing on one side was deleted there.
    #[default]
    Known,
    /// They had nothing in common, so nothing was deleted on either side.
    First,
    /// The store is older than the folder's last sync, as after a restored backup, so nothing was
    /// deleted on either side.
    StoreWentBack,
}

/// A change that a sync made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The path of the memory.
    pub path: MemoryPath,
    /// What was done.
    pub kind: ActionKind,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Something new was created on this side.
    Created(Side),
    /// This side got the text of the other one.
    Changed(Side),
    /// This side followed a rename.
    Moved {
        /// The side that followed.
        side: Side,
        /// The path before.
        from: MemoryPath,
    },
    /// This side followed a deletion.
    Deleted(Side),
    /// It was deleted on this side but changed on the other, so it was created again.
    Revived(Side),
    /// Both sides had changed different lines, which were merged.
    Merged,
    /// Both sides had changed the same lines. Both have the folder's text now; the store's text is
    /// in the history.
    Conflict {
        /// The version with the store's text.
        version: VersionId,
    },
}

/// One of the two sides of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The folder.
    Folder,
    /// The store.
    Store,
}

/// A file that was not synced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeftOut {
    /// Its path; lossy if the name is not UTF-8.
    pub path: String,
    /// The reason.
    pub reason: String,
}

impl ActionKind {
    /// Returns the stable name of the action in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Created(_) => "created",
            Self::Changed(_) => "changed",
            Self::Moved { .. } => "moved",
            Self::Deleted(_) => "deleted",
            Self::Revived(_) => "revived",
            Self::Merged => "merged",
            Self::Conflict { .. } => "conflict",
        }
    }

    /// Returns the side that changed, if only one did.
    pub fn side(&self) -> Option<Side> {
        match self {
            Self::Created(side)
            | Self::Changed(side)
            | Self::Moved { side, .. }
            | Self::Deleted(side)
            | Self::Revived(side) => Some(*side),
            Self::Merged | Self::Conflict { .. } => None,
        }
    }
}

impl Side {
    /// Returns the name of the side.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.kind.side().map_or("both", Side::as_str);
        write!(f, "{side:6}  {:8}  {}", self.kind.as_str(), self.path)?;
        match &self.kind {
            ActionKind::Moved { from, .. } => write!(f, "  (was {from})"),
            ActionKind::Conflict { version } => write!(f, "  (the store's text is {version})"),
            ActionKind::Revived(_) => f.write_str("  (deleted here, changed there)"),
            ActionKind::Created(_)
            | ActionKind::Changed(_)
            | ActionKind::Deleted(_)
            | ActionKind::Merged => Ok(()),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}
