//! Refusals: texts that a door could not store, or stored in place of another text.

use super::{Actor, StoreId, Timestamp};

/// A text that was not stored, or not as its writer expected, when the writer may not have seen the
/// error. The text itself is not kept: it may have been refused because of a credential in it.
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
