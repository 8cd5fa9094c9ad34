//! How the tables that move are stored here.

use quipu_core::Error;
use quipu_core::transfer::Table;

/// How a table of the list is stored here.
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// The table.
    pub(super) table: &'static str,
    /// What is selected, in the order of the list's columns, but for the store that owns the row; `{text}`
    /// is the text or `NULL`.
    pub(super) select: &'static str,
    /// What it is selected from.
    pub(super) from: &'static str,
    /// Whether the first column of the key is the store that owns the row.
    pub(super) is_owned: bool,
}

macro_rules! store_columns {
    () => {
        "id, workspace, name, description, metadata, secrets, forgotten, writers, expire_after_days, \
            created_at, updated_at, archived_at"
    };
}

/// Returns the layout of a table that belongs to no store.
const fn free(
    name: &'static str,
    table: &'static str,
    select: &'static str,
    from: &'static str,
) -> Layout {
    Layout { name, table, select, from, is_owned: false }
}

/// Returns the layout of a table whose rows belong to stores.
const fn owned(name: &'static str, select: &'static str) -> Layout {
    Layout { name, table: name, select, from: name, is_owned: true }
}

pub(super) const LAYOUTS: [Layout; 20] = [
    free("workspaces", "workspaces", "id, name, created_at, default_store", "workspaces"),
    free(
        "stores",
        "stores",
        concat!(store_columns!(), ", deleted_at"),
        concat!(
            "(SELECT ",
            store_columns!(),
            ", NULL AS deleted_at FROM stores UNION ALL SELECT ",
            store_columns!(),
            ", deleted_at FROM restorable_stores)"
        ),
    ),
    owned(
        "versions",
        "at, id, memory, operation, path, hash, size_bytes, actor, redacted_at, redacted_by, \
            undone_to, reason, {text}",
    ),
    owned("memories", "path, id, version, hash, size_bytes, created_at, updated_at, touched_at"),
    // Rows of earlier programs have no first change.
    free(
        "changes",
        "changes",
        "sequence, at, store, event, version, ifnull(first, sequence)",
        "changes",
    ),
    free(
        "cursors",
        "cursors",
        "name, sequence",
        "(SELECT * FROM cursors WHERE substr(name, 1, 5) <> 'move.')",
    ),
    free(
        "keys",
        "keys",
        "id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at, kind, \
            parent, family, used_at, payload, forwarding",
        "keys",
    ),
    free("stores of keys", "key_stores", "key, store", "key_stores"),
    free(
        "sessions",
        "sessions",
        "id, workspace, title, metadata, details, token, created_at, updated_at, archived_at, \
            token_expires_at, key",
        "sessions",
    ),
    free(
        "attachments",
        "attachments",
        "session, position, store, access, instructions, name, description, slug",
        "attachments",
    ),
    free(
        "definitions",
        "definitions",
        "kind, id, version, workspace, name, metadata, body, created_at, updated_at, archived_at, \
            is_newest",
        "definitions",
    ),
    free(
        "session events",
        "session_events",
        "session, number, id, at, kind, actor, size_bytes, redacted_at, redacted_by, body",
        "session_events",
    ),
    free(
        "usage by events",
        "event_usage",
        "session, newest, newest_at, events_count, size_bytes",
        "event_usage",
    ),
    free("sessions of keys", "session_keys", "key, session", "session_keys"),
    owned("refusals", "num, at, path, actor, reason"),
    owned("tombstones", "hash, salt, size_bytes, filter"),
    free("receipts", "receipts", "id, workspace, body, is_proven", "receipts"),
    free("copies made", "copies_made", "num, workspace, at, kind, store, target", "copies_made"),
    owned("horizons", "at"),
    free("removed stores", "deleted_stores", "id, workspace, sequence", "deleted_stores"),
];

pub(super) fn layout(table: &Table) -> Result<&'static Layout, Error> {
    let found = LAYOUTS.iter().find(|layout| layout.name == table.name);
    found.ok_or_else(|| Error::invalid(format!("this backend has no {}", table.name)))
}

/// Returns the columns of the key of an owned table, without the store.
pub(super) fn own_key(layout: &Layout) -> &'static [&'static str] {
    match layout.name {
        "versions" => &["at"],
        "memories" => &["path"],
        "refusals" => &["num"],
        "tombstones" => &["hash", "salt"],
        _ => &[],
    }
}

/// Returns whether rows of a table have text that can be removed or redacted, beside versions.
pub(super) fn has_other_text(table: &str) -> bool {
    ["session events", "definitions", "sessions"].contains(&table)
}
