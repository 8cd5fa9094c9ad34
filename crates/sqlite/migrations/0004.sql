-- The workspaces of stores that were deleted, for as long as the feed may name the stores.
CREATE TABLE deleted_stores (
    id BLOB PRIMARY KEY,
    workspace BLOB NOT NULL,
    -- That of the newest change when the store was deleted.
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Nothing tells where earlier ones belonged, unless there is only one workspace.
INSERT INTO deleted_stores
    SELECT store, (SELECT id FROM workspaces), max(sequence) FROM changes
    WHERE event = 'store_deleted' AND (SELECT count(*) FROM workspaces) = 1 GROUP BY store;

CREATE INDEX sessions_by_workspace ON sessions (workspace, id);
