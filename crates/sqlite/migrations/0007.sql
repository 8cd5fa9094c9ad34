-- Why the change was made, if somebody said so.
ALTER TABLE versions ADD COLUMN reason TEXT;

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
