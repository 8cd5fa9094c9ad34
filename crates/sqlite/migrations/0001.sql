-- Ids are 16 bytes, moments are microseconds since 1970. Foreign keys are declared for
-- `PRAGMA foreign_key_check` (`quipu check`) and are not enforced on the write path.

CREATE TABLE workspaces (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stores (
    -- A small number for the rows that belong to the store. It is never used again.
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- A JSON object of texts.
    metadata TEXT NOT NULL,
    secrets TEXT NOT NULL,
    expire_after_days INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    -- Derived from `memories`.
    memories_count INTEGER NOT NULL DEFAULT 0,
    size_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX stores_by_workspace ON stores (workspace, id);

-- What each memory is now. Its text is that of its newest version, which was made at
-- `updated_at`.
CREATE TABLE memories (
    store INTEGER NOT NULL REFERENCES stores (num),
    path TEXT NOT NULL,
    id BLOB NOT NULL,
    version BLOB NOT NULL,
    hash BLOB NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL REFERENCES versions (at),
    -- When a reading was last noted; only in stores that expire.
    touched_at INTEGER,
    PRIMARY KEY (store, path)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX memories_by_id ON memories (id);

-- No two changes have the same moment, so the moment is the key. A version's id contains it.
CREATE TABLE versions (
    at INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    store INTEGER NOT NULL REFERENCES stores (num),
    memory BLOB NOT NULL,
    operation TEXT NOT NULL,
    path TEXT,
    hash BLOB,
    size_bytes INTEGER,
    actor TEXT NOT NULL,
    redacted_at INTEGER,
    redacted_by TEXT
) STRICT;
CREATE INDEX versions_by_store ON versions (store);
CREATE INDEX versions_by_memory ON versions (memory);

CREATE TABLE texts (
    at INTEGER PRIMARY KEY REFERENCES versions (at),
    content TEXT NOT NULL
) STRICT;

-- The change feed. `store` and `version` outlive what they name.
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    store BLOB NOT NULL,
    event TEXT NOT NULL,
    version BLOB
) STRICT;

-- How far followers of the feed have come.
CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id BLOB PRIMARY KEY,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    title TEXT NOT NULL,
    -- A JSON object of texts.
    metadata TEXT NOT NULL,
    details TEXT NOT NULL,
    token BLOB,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_token ON sessions (token) WHERE token IS NOT NULL;

CREATE TABLE attachments (
    session BLOB NOT NULL REFERENCES sessions (id),
    position INTEGER NOT NULL,
    store BLOB NOT NULL,
    access TEXT NOT NULL,
    instructions TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    slug TEXT NOT NULL,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_store ON attachments (store, session);

CREATE TABLE keys (
    id BLOB PRIMARY KEY,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    secret BLOB NOT NULL UNIQUE,
    -- 0: it opens only the stores in `key_stores`.
    opens_all INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE key_stores (
    key BLOB NOT NULL REFERENCES keys (id),
    store BLOB NOT NULL REFERENCES stores (id),
    PRIMARY KEY (key, store)
) STRICT, WITHOUT ROWID;

-- One row: whether text was removed that may still be in a free part of a file.
CREATE TABLE upkeep (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    erase_pending INTEGER NOT NULL
) STRICT;
INSERT INTO upkeep VALUES (1, 0);
