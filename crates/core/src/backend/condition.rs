//! Health and size of the storage, for operators.

use crate::model::Timestamp;

/// A write lock that is held at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHeld {
    /// Differs for every acquisition, so that one long hold can be told from many short ones.
    pub turn: u64,
    /// The process that holds it, described for an operator.
    pub holder: String,
}

/// Health and size of the storage.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// How many stores there are. This and the next two may be some seconds old.
    pub stores_count: u64,
    /// How many memories there are.
    pub memories_count: u64,
    /// How many versions there are.
    pub versions_count: u64,
    /// Who holds the write lock, if anybody does.
    pub lock: Option<LockHeld>,
    /// How many bytes the canonical data takes, without the log.
    pub database_size_bytes: u64,
    /// How many bytes the log of recent changes takes.
    pub log_size_bytes: u64,
    /// How much space is left, where the system reports it.
    pub disk_free_bytes: Option<u64>,
    /// How many writes of this process wait for their turn.
    pub writers_waiting_count: usize,
    /// How many transactions this process has committed.
    pub groups_count: u64,
    /// How many writes were in them.
    pub writes_count: u64,
    /// What the clock of the storage showed, if it has one of its own.
    pub clock: Option<Timestamp>,
}
