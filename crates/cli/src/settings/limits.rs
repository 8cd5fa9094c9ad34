//! The table `[limits]`.

use std::time::Duration;

use quipu_core::settings::Limits;
use serde::Deserialize;

use super::ServeTable;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsTable {
    content_size_bytes_max: Option<u64>,
    memories_per_store_max: Option<u64>,
    store_size_bytes_max: Option<u64>,
    stores_per_workspace_max: Option<u64>,
    stores_per_session_max: Option<usize>,
    sessions_per_workspace_max: Option<u64>,
    sessions_kept_days: Option<u64>,
    definitions_per_workspace_max: Option<u64>,
    workspace_definitions_size_bytes_max: Option<u64>,
    versions_per_agent_max: Option<u64>,
    definition_size_bytes_max: Option<u64>,
    event_size_bytes_max: Option<u64>,
    events_per_session_max: Option<u64>,
    session_events_size_bytes_max: Option<u64>,
    workspace_events_size_bytes_max: Option<u64>,
    events_kept_days: Option<u64>,
    versions_kept_days: Option<u64>,
    versions_kept_min: Option<u64>,
    clock_ahead_days_max: Option<u64>,
    deleted_stores_kept_days: Option<u64>,
}

/// Returns the limits that the tables set, and the defaults of the others.
pub(super) fn read(table: &LimitsTable, serve: &ServeTable) -> Limits {
    let default = Limits::default();
    let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
    let or = |value: Option<u64>, default| value.unwrap_or(default);
    Limits {
        content_size_bytes_max: or(table.content_size_bytes_max, default.content_size_bytes_max),
        memories_per_store_max: or(table.memories_per_store_max, default.memories_per_store_max),
        store_size_bytes_max: or(table.store_size_bytes_max, default.store_size_bytes_max),
        stores_per_workspace_max: or(
            table.stores_per_workspace_max,
            default.stores_per_workspace_max,
        ),
        stores_per_session_max: table
            .stores_per_session_max
            .unwrap_or(default.stores_per_session_max),
        sessions_per_workspace_max: or(
            table.sessions_per_workspace_max,
            default.sessions_per_workspace_max,
        ),
        sessions_kept_for: table.sessions_kept_days.map_or(default.sessions_kept_for, days),
        definitions_per_workspace_max: or(
            table.definitions_per_workspace_max,
            default.definitions_per_workspace_max,
        ),
        workspace_definitions_size_bytes_max: or(
            table.workspace_definitions_size_bytes_max,
            default.workspace_definitions_size_bytes_max,
        ),
        versions_per_agent_max: or(table.versions_per_agent_max, default.versions_per_agent_max),
        definition_size_bytes_max: or(
            table.definition_size_bytes_max,
            default.definition_size_bytes_max,
        ),
        event_size_bytes_max: or(table.event_size_bytes_max, default.event_size_bytes_max),
        events_per_session_max: or(table.events_per_session_max, default.events_per_session_max),
        session_events_size_bytes_max: or(
            table.session_events_size_bytes_max,
            default.session_events_size_bytes_max,
        ),
        workspace_events_size_bytes_max: or(
            table.workspace_events_size_bytes_max,
            default.workspace_events_size_bytes_max,
        ),
        events_kept_for: table.events_kept_days.map_or(default.events_kept_for, days),
        session_token_valid_for: serve
            .session_token_days
            .map_or(default.session_token_valid_for, days),
        versions_kept_for: table.versions_kept_days.map_or(default.versions_kept_for, days),
        versions_kept_min: or(table.versions_kept_min, default.versions_kept_min),
        clock_ahead_max: table.clock_ahead_days_max.map_or(default.clock_ahead_max, days),
        deleted_stores_kept_for: table
            .deleted_stores_kept_days
            .map_or(default.deleted_stores_kept_for, days),
    }
}
