-- What a key is for, and what it was derived from. All keys so far are keys of their own.
ALTER TABLE keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'key';
ALTER TABLE keys ADD COLUMN parent BLOB REFERENCES keys (id);
-- The first of the one-time keys that were exchanged until it was issued. It may have been pruned.
ALTER TABLE keys ADD COLUMN family BLOB;
ALTER TABLE keys ADD COLUMN used_at INTEGER;
ALTER TABLE keys ADD COLUMN payload TEXT;
CREATE INDEX keys_by_parent ON keys (workspace, parent);
