//! Queries, filters and rules.

use std::ops::Bound;

use crate::model::{
    Actor, Directory, Key, MemoryId, MemoryPath, Operation, SessionId, StoreId, Timestamp, Version,
    VersionId, View, WorkspaceId,
};

/// Selects stores of a workspace.
#[derive(Clone, Debug)]
pub struct StoreQuery {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Whether archived stores are selected.
    pub archived: Archived,
    /// Only those created in this span.
    pub created: Span,
    /// Only those with a smaller id, to continue after a page.
    pub before: Option<StoreId>,
    /// How many at most.
    pub limit: usize,
}

/// What to do with archived things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Leave them out.
    #[default]
    Hide,
    /// Treat them like others.
    Show,
}

/// A span of time; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first moment.
    pub first: Timestamp,
    /// The last moment.
    pub last: Timestamp,
}

impl Default for Span {
    /// Returns all time.
    fn default() -> Self {
        Self { first: Timestamp::MIN, last: Timestamp::MAX }
    }
}

impl Span {
    /// Returns whether a moment belongs to the span.
    pub fn contains(&self, at: Timestamp) -> bool {
        (self.first..=self.last).contains(&at)
    }
}

/// Selects memories of a store.
#[derive(Clone, Debug)]
pub struct MemoryQuery {
    /// Only those in this directory, however deep.
    pub directory: Directory,
    /// Only those whose path lies after this text in byte order.
    pub start: Bound<String>,
    /// How many at most.
    pub limit: usize,
    /// Whether their texts are read.
    pub view: View,
}

/// Selects versions of a store.
#[derive(Clone, Debug)]
pub struct VersionQuery {
    /// Only those that pass this filter.
    pub filter: VersionFilter,
    /// Only those with a smaller id, to continue after a page.
    pub before: Option<VersionId>,
    /// How many at most.
    pub limit: usize,
    /// Whether their texts are read.
    pub view: View,
}

/// Conditions on versions; all that are set must hold.
#[derive(Clone, Debug, Default)]
pub struct VersionFilter {
    /// The memory.
    pub memory: Option<MemoryId>,
    /// The path after the change.
    pub path: Option<MemoryPath>,
    /// The kind of change.
    pub operation: Option<Operation>,
    /// The actor. A version has one actor, so two different ones select nothing.
    pub actors: Vec<Actor>,
    /// When the change was made.
    pub created: Span,
}

impl VersionFilter {
    /// Returns whether a version passes.
    pub fn accepts(&self, version: &Version) -> bool {
        self.memory.is_none_or(|memory| version.memory == memory)
            && self.path.as_ref().is_none_or(|path| version.path.as_ref() == Some(path))
            && self.operation.is_none_or(|operation| version.operation == operation)
            && self.actors.iter().all(|actor| version.actor == *actor)
            && self.created.contains(version.created_at)
    }
}

/// Selects sessions of a workspace.
#[derive(Clone, Debug)]
pub struct SessionQuery {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Only those with this store attached.
    pub store: Option<StoreId>,
    /// Whether archived sessions are selected.
    pub archived: Archived,
    /// Only those created in this span.
    pub created: Span,
    /// Only those that this key [sees](Key::sees); `None` selects all of the workspace.
    pub viewer: Option<Key>,
    /// The order.
    pub order: Order,
    /// Only those after this one in the order, to continue after a page.
    pub after: Option<SessionId>,
    /// How many at most.
    pub limit: usize,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest comes first.
    #[default]
    NewestFirst,
    /// The oldest comes first.
    OldestFirst,
}

/// How full a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many memories it holds.
    pub memories_count: u64,
    /// The sum of the sizes of their texts.
    pub size_bytes: u64,
}

/// Selects versions to prune.
#[derive(Clone, Copy, Debug)]
pub struct PruneRule {
    /// Only those made before this moment.
    pub before: Timestamp,
    /// How many of the newest versions are never pruned if their memory still exists, or was deleted at
    /// or after that moment, so that its deletion can be undone.
    pub keep_newest: u64,
}

/// Versions that a [`PruneRule`] gives up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prunable {
    /// The versions, with their stores. Those of one store are neighbors.
    pub versions: Vec<(StoreId, VersionId)>,
    /// Where to go on; `None` at the end.
    pub next: Option<PrunePlace>,
}

/// A place among all versions. What the numbers mean is the backend's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunePlace(pub [i64; 3]);

/// Selects derived keys to prune. A key ends when it is revoked or expires.
#[derive(Clone, Copy, Debug)]
pub struct KeyPruneRule {
    /// Links, codes and tokens that ended before this moment.
    pub before: Timestamp,
    /// Browsers' keys that ended before this moment.
    pub browsers_before: Timestamp,
}
