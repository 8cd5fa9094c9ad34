//! Limits and periods. Every one can be set; the defaults are those of the hosted service.

use std::time::Duration;

/// How much fits, and how long things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the text of a memory may be.
    pub content_size_bytes_max: u64,
    /// How many memories a store may hold.
    pub memories_per_store_max: u64,
    /// How long all texts of a store's memories may be together.
    pub store_size_bytes_max: u64,
    /// How many stores a workspace may hold, archived and deleted ones among them.
    pub stores_per_workspace_max: u64,
    /// How many stores may be attached to a session.
    pub stores_per_session_max: usize,
    /// How many sessions a workspace may hold, archived ones among them.
    pub sessions_per_workspace_max: u64,
    /// How long a session is kept that is over and that no version names.
    pub sessions_kept_for: Duration,
    /// How long the token of a session is valid.
    pub session_token_valid_for: Duration,
    /// How long every version is kept.
    pub versions_kept_for: Duration,
    /// How long a deleted store can be restored.
    pub deleted_stores_kept_for: Duration,
    /// How many versions of a live memory are kept however old they are.
    pub versions_kept_min: u64,
    /// How far the clock may be beyond the newest change. Changes cannot be dated back, so one that is
    /// dated into the future by mistake would take all later ones along.
    pub clock_ahead_max: Duration,
}

const DAY: Duration = Duration::from_hours(24);

impl Default for Limits {
    fn default() -> Self {
        Self {
            content_size_bytes_max: 102_400,
            memories_per_store_max: 10_000,
            store_size_bytes_max: 100 * 1024 * 1024,
            stores_per_workspace_max: 1_000,
            stores_per_session_max: 8,
            sessions_per_workspace_max: 100_000,
            sessions_kept_for: 90 * DAY,
            session_token_valid_for: 30 * DAY,
            versions_kept_for: 30 * DAY,
            deleted_stores_kept_for: 7 * DAY,
            versions_kept_min: 10,
            clock_ahead_max: 400 * DAY,
        }
    }
}
