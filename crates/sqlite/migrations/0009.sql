-- Agents and environments, in all of their versions. The body is opaque.
CREATE TABLE definitions (
    id BLOB NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    metadata TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    -- 1 if there is no later version.
    is_newest INTEGER NOT NULL,
    PRIMARY KEY (kind, id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX definitions_newest ON definitions (workspace, kind, id) WHERE is_newest;

-- What was recorded in sessions. The body is opaque, and NULL once redacted.
CREATE TABLE session_events (
    num INTEGER PRIMARY KEY,
    session BLOB NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    redacted_at INTEGER,
    redacted_by TEXT,
    body TEXT
) STRICT;
CREATE UNIQUE INDEX session_events_by_number ON session_events (session, number);
CREATE INDEX session_events_by_time ON session_events (at);

-- What is kept of the events of each session. A row stays as long as its session, so that no number is
-- given out twice.
CREATE TABLE event_usage (
    session BLOB PRIMARY KEY REFERENCES sessions (id),
    newest INTEGER NOT NULL,
    newest_at INTEGER NOT NULL,
    events_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE workspaces ADD COLUMN events_size_bytes INTEGER NOT NULL DEFAULT 0;

-- Who may change the memories of a store. All stores so far were open to everyone who may write.
ALTER TABLE stores ADD COLUMN writers TEXT NOT NULL DEFAULT 'everyone';
ALTER TABLE restorable_stores ADD COLUMN writers TEXT NOT NULL DEFAULT 'everyone';
-- Whether the holder of a key may have requests forwarded to the upstream. No key so far may.
ALTER TABLE keys ADD COLUMN forwarding TEXT NOT NULL DEFAULT 'denied';
