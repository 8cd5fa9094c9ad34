//! How the storage is doing, for those who watch over a server.

/// A write lock that is held at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHeld {
    /// Another number for every writer's turn, so that one that lasts can be told from many.
    pub turn: u64,
    /// The process that holds it, in words.
    pub holder: String,
}

/// How the storage is doing.
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
    /// How many bytes the canonical data takes.
    pub database_size_bytes: u64,
    /// How many bytes the log of recent changes takes.
    pub log_size_bytes: u64,
    /// How much room is left, where that can be told.
    pub disk_free_bytes: Option<u64>,
    /// How many writes of this process wait for their turn.
    pub writers_waiting_count: usize,
    /// How many transactions this process has committed.
    pub groups_count: u64,
    /// How many writes were in them.
    pub writes_count: u64,
}
