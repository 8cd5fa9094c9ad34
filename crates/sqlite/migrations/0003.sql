-- Stores that were deleted, whose rows are being removed, some at a time.
CREATE TABLE removed_stores (
    num INTEGER PRIMARY KEY
) STRICT;

-- Which key made the session, and when its token ends.
ALTER TABLE sessions ADD COLUMN key BLOB;
ALTER TABLE sessions ADD COLUMN token_expires_at INTEGER;
