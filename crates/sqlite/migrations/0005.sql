-- Stores that were deleted and can be restored. Their memories and versions keep their number, and
-- are found again when the row is back in `stores`.
CREATE TABLE restorable_stores (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,
    secrets TEXT NOT NULL,
    expire_after_days INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    memories_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    deleted_at INTEGER NOT NULL
) STRICT;

-- The store that commands use if none is named.
ALTER TABLE workspaces ADD COLUMN default_store BLOB;

-- The version that an undo went back to, if this one is an undo.
ALTER TABLE versions ADD COLUMN undone_to BLOB;

-- Texts that were not stored, or not as their writer expected; without the texts.
CREATE TABLE refusals (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    store INTEGER NOT NULL REFERENCES stores (num),
    at INTEGER NOT NULL,
    path TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX refusals_by_store ON refusals (store, num);
