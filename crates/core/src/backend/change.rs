//! Changes, their order and their moments.

use crate::model::{Content, Memory, StoreId, Timestamp, Version, VersionId};

/// The place and the moment of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its place in the order of all changes.
    pub sequence: Sequence,
    /// Its moment.
    pub at: Timestamp,
    /// The moment of the change before it; `None` if it is the first.
    pub previous: Option<Timestamp>,
}

impl Stamp {
    /// Returns the stamp of a change made now, after the newest one; `None` if there is none.
    pub fn after(newest: Option<(Sequence, Timestamp)>, now: Timestamp) -> Self {
        let (sequence, at) = newest.unwrap_or((Sequence(0), Timestamp::MIN));
        let earliest = if newest.is_some() { at.next() } else { at };
        let previous = newest.map(|(_, at)| at);
        Self { sequence: Sequence(sequence.0 + 1), at: now.max(earliest), previous }
    }
}

/// The place of a change in the order of all changes of a data directory: 1, 2, 3, …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// One entry of the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the order of all changes; there are no gaps, except before a [restart](Event::Restarted).
    pub sequence: Sequence,
    /// The first change of its transaction: itself, or an earlier one from which on all belong together.
    pub transaction: Sequence,
    /// When it was made; later changes have later moments.
    pub at: Timestamp,
    /// The store that changed.
    pub store: StoreId,
    /// What happened.
    pub event: Event,
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A memory changed; this is its new version.
    Version(VersionId),
    /// The text was taken out of a version.
    Redacted(VersionId),
    /// The store was created, or restored after it had been deleted.
    StoreCreated,
    /// The store's name, description, metadata or policy changed.
    StoreUpdated,
    /// The store was archived.
    StoreArchived,
    /// The store was deleted.
    StoreDeleted,
    /// Changes that had been delivered are lost, and the numbers go on after theirs: the storage was replaced by
    /// an older copy of itself, such as a replica that lagged. All followers start over. It belongs to no store.
    Restarted,
}

/// One change of one memory.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its place in the feed.
    pub sequence: Sequence,
    /// The first change of its transaction, as in [`Change::transaction`].
    pub transaction: Sequence,
    /// The version to add; its moment is that of the change. Its text is in it.
    pub version: Version,
    /// The memory before, if it existed.
    pub before: Option<Memory>,
    /// The memory after, unless it was deleted.
    pub after: Option<Memory>,
}

impl Commit {
    /// Returns the text that the version keeps.
    pub fn content(&self) -> Option<&Content> {
        self.version.content.as_ref()
    }
}
