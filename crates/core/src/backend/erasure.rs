//! What has to be erased, and what an erasure achieved.

use crate::model::{MemoryId, ScannedFile, StoreId};

/// A removal of text that may still be in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingErasure {
    /// The store.
    pub store: StoreId,
    /// The memory of which a version was redacted, or one that does not exist if another row lost text;
    /// `None` if the whole store was removed.
    pub memory: Option<MemoryId>,
    /// Grows with each removal, so that one that happens during an erasure is not taken for erased.
    pub count: u64,
}

/// What an erasure achieved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    /// Every file that may have held the text, and holds nothing of it now.
    pub scanned: Vec<ScannedFile>,
    /// Copies that are out of reach, such as the database that a backup has replaced: for each, a sentence
    /// that says where it is and how to get rid of it. Empty if every copy is in [`scanned`](Self::scanned).
    pub unreachable: Vec<String>,
}

impl Erasure {
    /// Adds what another part has erased.
    pub fn extend(&mut self, other: Self) {
        self.scanned.extend(other.scanned);
        self.unreachable.extend(other.unreachable);
    }
}

/// Where text that was erased may still be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// What was looked at and may still hold some: for each, a sentence that says how to finish.
    pub seen: Vec<String>,
    /// What cannot be looked at from here, with what to do about it.
    pub unseen: Vec<String>,
}
