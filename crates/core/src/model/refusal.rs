//! Refusals: texts that a door could not store, or stored in the place of another text.

use super::{Actor, StoreId, Timestamp};

/// A text that was not stored, or not as its writer expected, where the writer may not have learned of
/// it. The text itself is not kept: it may have been refused because of what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The store that it was meant for.
    pub store: StoreId,
    /// When.
    pub at: Timestamp,
    /// The path that it was meant for.
    pub path: String,
    /// Who wrote it.
    pub actor: Actor,
    /// What happened and what to do, as a sentence without a full stop.
    pub reason: String,
}
