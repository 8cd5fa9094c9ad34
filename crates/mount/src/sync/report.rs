//! What a sync did, for people and programs.

use std::collections::HashSet;
use std::fmt;

use quipu_core::model::{MemoryPath, VersionId};

/// What a sync did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was done, in order of paths.
    pub actions: Vec<Action>,
    /// Files that cannot be memories; they were left alone.
    pub left_out: Vec<LeftOut>,
    /// What should have been done but could not be; it is tried again next time.
    pub failed: Vec<LeftOut>,
    /// What of both an earlier sync has said already.
    pub repeated: HashSet<LeftOut>,
    /// How many memories and files are the same now.
    pub in_sync_count: usize,
    /// How folder and store met.
    pub start: Start,
}

/// How folder and store met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// They were in sync before, so what is missing on one side was deleted there.
    #[default]
    Known,
    /// They have no common past, so nothing was deleted on either side.
    First,
    /// The store is older than the folder's last sync, as after a restored backup, so nothing was
    /// deleted on either side.
    StoreWentBack,
}

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where.
    pub path: MemoryPath,
    /// What.
    pub kind: ActionKind,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Something new on the other side is now on this side, too.
    Created(Side),
    /// The text of this side is now that of the other side.
    Changed(Side),
    /// This side followed a rename of the other side.
    Moved {
        /// The side that followed.
        side: Side,
        /// The path before.
        from: MemoryPath,
    },
    /// This side followed a deletion of the other side.
    Deleted(Side),
    /// It was deleted on this side but changed on the other, so it came back.
    Revived(Side),
    /// Both sides had changed different lines, and both have all changes now.
    Merged,
    /// Both sides had changed the same lines. The folder's text is on both sides now; the store's
    /// text is this version.
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

/// Something that was left alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeftOut {
    /// Where, as far as its name is text.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl ActionKind {
    /// Returns the word for it that programs may rely on.
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

    /// Returns the side that changed, if it is one.
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
    /// Returns its name.
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
