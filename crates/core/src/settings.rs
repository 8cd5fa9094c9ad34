//! Limits and retention periods. All are configurable; the defaults are those of the hosted service.

use std::time::Duration;

/// Size limits and retention periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest text of a memory.
    pub content_size_bytes_max: u64,
    /// How many memories a store may hold.
    pub memories_per_store_max: u64,
    /// The largest sum of the texts of a store's memories.
    pub store_size_bytes_max: u64,
    /// How many stores a workspace may hold, including archived and deleted ones.
    pub stores_per_workspace_max: u64,
    /// How many stores may be attached to a session.
    pub stores_per_session_max: usize,
    /// How many sessions a workspace may hold, including archived ones.
    pub sessions_per_workspace_max: u64,
    /// How long a session is kept after it has ended, if no version names it.
    pub sessions_kept_for: Duration,
    /// How many agents a workspace may hold, and how many environments. Archived ones make room for new ones.
    pub definitions_per_workspace_max: u64,
    /// The largest sum of all versions of all agents and environments of a workspace.
    pub workspace_definitions_size_bytes_max: u64,
    /// How many versions an agent may have.
    pub versions_per_agent_max: u64,
    /// The largest agent or environment.
    pub definition_size_bytes_max: u64,
    /// The largest event of a session.
    pub event_size_bytes_max: u64,
    /// How many events are kept of a session.
    pub events_per_session_max: u64,
    /// The largest sum of the events that are kept of a session.
    pub session_events_size_bytes_max: u64,
    /// The largest sum of the events that are kept of all sessions of a workspace.
    pub workspace_events_size_bytes_max: u64,
    /// How long an event of a session is kept.
    pub events_kept_for: Duration,
    /// How long the token of a session is valid.
    pub session_token_valid_for: Duration,
    /// How long every version is kept.
    pub versions_kept_for: Duration,
    /// How long a deleted store can be restored.
    pub deleted_stores_kept_for: Duration,
    /// How many versions of a live memory are kept however old they are.
    pub versions_kept_min: u64,
    /// How far the clock may be ahead of the newest change. Moments never go back, so one write with a
    /// wrong clock would drag all later ones into the future with it.
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
            definitions_per_workspace_max: 1_000,
            workspace_definitions_size_bytes_max: 256 * 1024 * 1024,
            versions_per_agent_max: 1_000,
            definition_size_bytes_max: 256 * 1024,
            event_size_bytes_max: 256 * 1024,
            events_per_session_max: 100_000,
            session_events_size_bytes_max: 64 * 1024 * 1024,
            workspace_events_size_bytes_max: 4 * 1024 * 1024 * 1024,
            events_kept_for: 30 * DAY,
            session_token_valid_for: 30 * DAY,
            versions_kept_for: 30 * DAY,
            deleted_stores_kept_for: 7 * DAY,
            versions_kept_min: 10,
            clock_ahead_max: 400 * DAY,
        }
    }
}
