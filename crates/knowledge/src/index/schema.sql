-- The index of every store, in one file: a search over a thousand stores is then a thousand lookups
-- and not a thousand files to open. Every row belongs to one store, and nothing is shared between
-- them. Ids are 16 bytes, moments are microseconds since 1970. Blobs end with the seal of their row.

CREATE TABLE stores (
    num INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    -- The change that the index has reached, and its moment: every memory of the store is in the
    -- index as it was then.
    sequence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- No segment that was made of an older state may be added: it could bring back erased words.
    purged INTEGER NOT NULL,
    -- How many documents of each kind there are, and how many words they have together.
    totals BLOB NOT NULL
) STRICT;

CREATE TABLE segments (
    store INTEGER NOT NULL,
    id INTEGER NOT NULL,
    -- 0: being written, 1: in use, 2: merged into another and to be removed.
    state INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    observations INTEGER NOT NULL,
    relations INTEGER NOT NULL,
    -- Whether any memory, dead or not, is in another language than English.
    is_foreign INTEGER NOT NULL,
    -- How many memories are dead.
    dead INTEGER NOT NULL,
    seal INTEGER NOT NULL,
    PRIMARY KEY (store, id)
) STRICT, WITHOUT ROWID;

-- What is known of the documents of a segment, in the order of use.
CREATE TABLE columns (
    segment INTEGER PRIMARY KEY,
    memory_lengths BLOB NOT NULL,
    observation_lengths BLOB NOT NULL,
    observation_rows BLOB NOT NULL,
    relation_lengths BLOB NOT NULL,
    relation_rows BLOB NOT NULL,
    memory_ids BLOB NOT NULL,
    memory_times BLOB NOT NULL,
    memory_paths BLOB NOT NULL,
    -- The memories by directory and name, and where each directory begins in that order.
    memory_order BLOB NOT NULL,
    memory_directories BLOB NOT NULL
) STRICT;

-- Memories of a segment that were changed or deleted since, 2,048 to a row.
CREATE TABLE dead (
    segment INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    bits BLOB NOT NULL,
    PRIMARY KEY (segment, chunk)
) STRICT, WITHOUT ROWID;

CREATE TABLE postings (
    segment INTEGER NOT NULL,
    first BLOB NOT NULL,
    -- The first term of the next block; empty in the last.
    next BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (segment, first)
) STRICT, WITHOUT ROWID;

-- Apart from the postings, because only phrases need them.
CREATE TABLE positions (
    segment INTEGER NOT NULL,
    first BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (segment, first)
) STRICT, WITHOUT ROWID;

-- What each memory is called and links to, and its part of the totals of the store.
CREATE TABLE notes (
    store INTEGER NOT NULL,
    memory BLOB NOT NULL,
    totals BLOB NOT NULL,
    card BLOB NOT NULL,
    PRIMARY KEY (store, memory)
) STRICT, WITHOUT ROWID;

-- What the vectors were made with. The one with the highest number is in use; vectors of others are
-- being removed. A number is a moment, so that it is used once even if the file is replaced.
CREATE TABLE encoders (
    num INTEGER PRIMARY KEY,
    dimensions INTEGER NOT NULL,
    identity BLOB NOT NULL
) STRICT;

-- The vectors of the passages of a memory, in the order in which they were made, so that a process that
-- has read them up to a stamp reads only what is new. A memory whose text the encoder has rejected has a
-- row without passages.
CREATE TABLE vectors (
    store INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    memory BLOB NOT NULL,
    encoder INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (store, stamp),
    UNIQUE (store, memory)
) STRICT, WITHOUT ROWID;

-- How many memories of a store have vectors of an encoder, how many it has rejected, and how many
-- passages have vectors. A store without rows in `vectors` has none here.
CREATE TABLE embeddings (
    store INTEGER PRIMARY KEY,
    encoder INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT;

-- The highest numbers that a store and a segment have had, so that none is used twice.
CREATE TABLE numbers (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    store INTEGER NOT NULL,
    segment INTEGER NOT NULL
) STRICT;
INSERT INTO numbers VALUES (1, 0, 0);
