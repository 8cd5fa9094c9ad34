-- Why the change was made, if somebody said so.
ALTER TABLE versions ADD COLUMN reason TEXT;

-- The first change of the same transaction; NULL in rows of earlier programs, which did not record it.
ALTER TABLE changes ADD COLUMN first INTEGER;

-- Where a memory was at a moment is asked by path; which memories have gone since, by their deletions.
CREATE INDEX versions_by_path ON versions (store, path);
CREATE INDEX deletions_by_store ON versions (store) WHERE operation = 'deleted';

-- From which moment on the history of a store is complete. A store without a row has lost nothing.
CREATE TABLE horizons (
    store INTEGER PRIMARY KEY REFERENCES stores (num),
    at INTEGER NOT NULL
) STRICT;
-- What earlier programs pruned, as far as it can be told. A memory whose oldest version did not create
-- it has lost versions until then. A memory that was deleted and pruned has left no trace, but was
-- deleted before the oldest change in the feed.
INSERT INTO horizons
    SELECT store, max(at) FROM (
        SELECT store, at FROM versions v
            WHERE operation <> 'created'
              AND NOT EXISTS (SELECT 1 FROM versions n WHERE n.memory = v.memory AND n.at < v.at)
        UNION ALL
        SELECT num, (SELECT min(at) FROM changes) FROM
            (SELECT num, created_at FROM stores UNION ALL SELECT num, created_at FROM restorable_stores)
            WHERE (SELECT min(sequence) FROM changes) > 1
              AND created_at < (SELECT min(at) FROM changes)
    ) GROUP BY store;

-- What happens to a write that brings back redacted text.
ALTER TABLE stores ADD COLUMN forgotten TEXT NOT NULL DEFAULT 'warn';
ALTER TABLE restorable_stores ADD COLUMN forgotten TEXT NOT NULL DEFAULT 'warn';

-- Salted hashes of redacted text, by which it is recognized when it comes back.
CREATE TABLE tombstones (
    store INTEGER NOT NULL REFERENCES stores (num),
    hash BLOB NOT NULL,
    salt BLOB NOT NULL,
    size_bytes INTEGER NOT NULL,
    filter INTEGER NOT NULL,
    PRIMARY KEY (store, hash, salt)
) STRICT, WITHOUT ROWID;

-- What redactions did. The body is JSON; it holds nothing that was redacted.
CREATE TABLE receipts (
    id BLOB PRIMARY KEY,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    body TEXT NOT NULL,
    is_proven INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_unproven ON receipts (id) WHERE NOT is_proven;

-- Backups and exports, which no redaction reaches.
CREATE TABLE copies_made (
    num INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL REFERENCES workspaces (id),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    store BLOB,
    target TEXT NOT NULL
) STRICT;

-- Which keys ever owned a session, also after it was deleted or taken over by another key: what it wrote
-- can then still be found by key.
CREATE TABLE session_keys (
    key BLOB NOT NULL,
    session BLOB NOT NULL,
    PRIMARY KEY (key, session)
) STRICT, WITHOUT ROWID;
INSERT INTO session_keys SELECT key, id FROM sessions WHERE key IS NOT NULL;
