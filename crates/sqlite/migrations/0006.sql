-- The index has a file of its own now, `index.db`.
DROP TABLE note_instances;
DROP TABLE fact_instances;
DROP TABLE note_terms;
DROP TABLE fact_terms;
DROP TABLE facts;
DROP TABLE link_keys;
DROP TABLE links;
DROP TABLE note_fields;
DROP TABLE note_names;
DROP TABLE notes;
DELETE FROM cursors WHERE name LIKE 'index.%';

-- Of what text was removed that may still be in a free part of a file.
CREATE TABLE erasures (
    store BLOB NOT NULL,
    -- The memory of which a version was redacted; nothing if the whole store was removed.
    memory BLOB NOT NULL,
    -- Another number each time, and 0 when it is erased.
    count INTEGER NOT NULL,
    PRIMARY KEY (store, memory)
) STRICT, WITHOUT ROWID;
INSERT INTO erasures SELECT zeroblob(16), x'', erase_pending FROM upkeep WHERE erase_pending > 0;
DROP TABLE upkeep;
