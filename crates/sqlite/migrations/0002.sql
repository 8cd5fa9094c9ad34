-- The index: everything here is made of memories and their texts, and can be made again.

-- What each memory is called. `at` is that of the version whose text was read.
CREATE TABLE notes (
    -- The store's number times 2^32, plus a number in the store: a store is a range.
    num INTEGER PRIMARY KEY,
    store INTEGER NOT NULL REFERENCES stores (num),
    memory BLOB NOT NULL UNIQUE,
    at INTEGER NOT NULL REFERENCES versions (at),
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    permalink TEXT NOT NULL,
    -- 0: its frontmatter asks for the permalink; 1: it is made of the path.
    permalink_source INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX notes_by_path ON notes (store, path);
CREATE INDEX notes_by_title ON notes (store, title);
CREATE INDEX notes_by_permalink ON notes (store, permalink);
CREATE INDEX notes_by_at ON notes (store, at);

CREATE TABLE note_names (
    store INTEGER NOT NULL REFERENCES stores (num),
    key TEXT NOT NULL,
    note INTEGER NOT NULL REFERENCES notes (num),
    PRIMARY KEY (store, key, note)
) STRICT, WITHOUT ROWID;

CREATE TABLE note_fields (
    store INTEGER NOT NULL REFERENCES stores (num),
    key TEXT NOT NULL,
    note INTEGER NOT NULL REFERENCES notes (num),
    position INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (store, key, note, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
    note INTEGER NOT NULL REFERENCES notes (num),
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    target_store TEXT,
    target TEXT NOT NULL,
    section TEXT,
    alias TEXT,
    context TEXT,
    line INTEGER NOT NULL,
    PRIMARY KEY (note, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE link_keys (
    store INTEGER NOT NULL REFERENCES stores (num),
    key TEXT NOT NULL,
    note INTEGER NOT NULL REFERENCES notes (num),
    position INTEGER NOT NULL,
    PRIMARY KEY (store, key, note, position)
) STRICT, WITHOUT ROWID;

-- Observations and relations as documents of their own.
CREATE TABLE facts (
    -- As in `notes`; 2^31 more for a relation.
    num INTEGER PRIMARY KEY,
    note INTEGER NOT NULL REFERENCES notes (num),
    position INTEGER NOT NULL
) STRICT;
CREATE INDEX facts_by_note ON facts (note, num);

-- The terms of the documents, by the numbers of `notes` and `facts`. Texts are not kept here: what
-- is to be removed is made again of the version's text. Terms come ready made, so the simplest
-- tokenizer does: it splits at spaces.
CREATE VIRTUAL TABLE note_terms USING fts5 (
    title, tags, headings, body, extra, marks, content = '', tokenize = 'ascii'
);
CREATE VIRTUAL TABLE fact_terms USING fts5 (
    title, tags, headings, body, extra, marks, content = '', tokenize = 'ascii'
);
CREATE VIRTUAL TABLE note_instances USING fts5vocab (note_terms, instance);
CREATE VIRTUAL TABLE fact_instances USING fts5vocab (fact_terms, instance);
