//! How everything moves from one backend to another, row by row.
//!
//! The rules of the engine are about what may happen next. A move must not ask them: it carries over what
//! has happened, with every id, moment and sequence, the redacted and the deleted. So this is below
//! [`Backend`](crate::Backend): a list of the tables that every backend has in some form, and their rows as
//! plain values. What a backend derives from them, such as the usage of a store, it derives again.
//!
//! [`mover`] compares and copies; `docs/decisions/0029-moving.md` says why it works this way.

mod mover;

use crate::Error;
use crate::backend::{Reader, Sequence};
use crate::error::ErrorKind;
use crate::model::View;

pub use mover::{MoveMode, Moved, Progress, Step, TableMoved, Watcher, digest, move_all};

/// A kind of row that every backend keeps.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// What people call it.
    pub name: &'static str,
    /// The columns, those of the key first. Rows are in ascending order of their keys: numbers by value,
    /// bytes and texts by their bytes.
    pub columns: &'static [&'static str],
    /// How many columns the key has. Where the first is a store, the row goes with the store.
    pub key_length: usize,
    /// Whether rows are also unique by columns that are not their key and can change, so that the rows that
    /// differ must go before others can take their places.
    pub has_places: bool,
}

/// The version of a text, whose last column is the text.
pub const VERSIONS: Table = Table {
    name: "versions",
    columns: &[
        "store",
        "at",
        "id",
        "memory",
        "operation",
        "path",
        "hash",
        "size_bytes",
        "actor",
        "redacted_at",
        "redacted_by",
        "undone_to",
        "reason",
        "content",
    ],
    key_length: 2,
    has_places: false,
};

/// Every table, owners before what they own.
pub const TABLES: [Table; 20] = [
    Table {
        name: "workspaces",
        columns: &["id", "name", "created_at", "default_store"],
        key_length: 1,
        has_places: false,
    },
    // With those that are deleted and can be restored.
    Table {
        name: "stores",
        columns: &[
            "id",
            "workspace",
            "name",
            "description",
            "metadata",
            "secrets",
            "forgotten",
            "writers",
            "expire_after_days",
            "created_at",
            "updated_at",
            "archived_at",
            "deleted_at",
        ],
        key_length: 1,
        has_places: false,
    },
    VERSIONS,
    Table {
        name: "memories",
        columns: &[
            "store",
            "path",
            "id",
            "version",
            "hash",
            "size_bytes",
            "created_at",
            "updated_at",
            "touched_at",
        ],
        key_length: 2,
        has_places: true,
    },
    Table {
        name: "changes",
        columns: &["sequence", "at", "store", "event", "version", "first"],
        key_length: 1,
        has_places: false,
    },
    // How far followers have come.
    Table { name: "cursors", columns: &["name", "sequence"], key_length: 1, has_places: false },
    Table {
        name: "keys",
        columns: &[
            "id",
            "workspace",
            "name",
            "role",
            "secret",
            "opens_all",
            "created_at",
            "expires_at",
            "revoked_at",
            "kind",
            "parent",
            "family",
            "used_at",
            "payload",
            "forwarding",
        ],
        key_length: 1,
        has_places: false,
    },
    Table { name: "stores of keys", columns: &["key", "store"], key_length: 2, has_places: false },
    Table {
        name: "sessions",
        columns: &[
            "id",
            "workspace",
            "title",
            "metadata",
            "details",
            "token",
            "created_at",
            "updated_at",
            "archived_at",
            "token_expires_at",
            "key",
        ],
        key_length: 1,
        has_places: false,
    },
    Table {
        name: "attachments",
        columns: &[
            "session",
            "position",
            "store",
            "access",
            "instructions",
            "name",
            "description",
            "slug",
        ],
        key_length: 2,
        has_places: false,
    },
    // Agents and environments, in all of their versions.
    Table {
        name: "definitions",
        columns: &[
            "kind",
            "id",
            "version",
            "workspace",
            "name",
            "metadata",
            "body",
            "created_at",
            "updated_at",
            "archived_at",
            "is_newest",
        ],
        key_length: 3,
        has_places: false,
    },
    Table {
        name: "session events",
        columns: &[
            "session",
            "number",
            "id",
            "at",
            "kind",
            "actor",
            "size_bytes",
            "redacted_at",
            "redacted_by",
            "body",
        ],
        key_length: 2,
        has_places: false,
    },
    // The newest number of each session, which outlives its events.
    Table {
        name: "usage by events",
        columns: &["session", "newest", "newest_at", "events_count", "size_bytes"],
        key_length: 1,
        has_places: false,
    },
    // Which keys ever owned a session.
    Table {
        name: "sessions of keys",
        columns: &["key", "session"],
        key_length: 2,
        has_places: false,
    },
    Table {
        name: "refusals",
        columns: &["store", "num", "at", "path", "actor", "reason"],
        key_length: 2,
        has_places: false,
    },
    Table {
        name: "tombstones",
        columns: &["store", "hash", "salt", "size_bytes", "filter"],
        key_length: 3,
        has_places: false,
    },
    Table {
        name: "receipts",
        columns: &["id", "workspace", "body", "is_proven"],
        key_length: 1,
        has_places: false,
    },
    // Backups and exports.
    Table {
        name: "copies made",
        columns: &["num", "workspace", "at", "kind", "store", "target"],
        key_length: 1,
        has_places: false,
    },
    // From which moment on the history of a store is complete.
    Table { name: "horizons", columns: &["store", "at"], key_length: 1, has_places: false },
    // Stores that are gone, but that the feed may still name.
    Table {
        name: "removed stores",
        columns: &["id", "workspace", "sequence"],
        key_length: 1,
        has_places: false,
    },
];

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number; moments are microseconds since 1970, flags are 0 and 1.
    Integer(i64),
    /// Ids, hashes, salts.
    Bytes(Vec<u8>),
    /// A text; labels and receipts are JSON.
    Text(String),
}

/// The values of a row, in the order of the table's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// Returns the values of the key.
    pub fn key(&self, table: &Table) -> &[Value] {
        self.0.get(..table.key_length).unwrap_or(&self.0)
    }
}

/// Selects rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Only those whose key is greater, to continue after a page.
    pub after: Option<&'a [Value]>,
    /// How many at most.
    pub limit: usize,
    /// Whether the texts of versions are read; without them, the last column is null.
    pub view: View,
}

/// Reads rows of one snapshot.
pub trait RowReader {
    /// Returns the rows that a page selects, in order of their keys.
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Row>, Error>;

    /// Returns how many rows a table has.
    fn count(&self, table: &Table) -> Result<u64, Error>;

    /// Returns the sequence of the newest change; zero if there is none.
    fn newest_sequence(&self) -> Result<u64, Error>;

    /// Returns the number that was put under a name by [`RowWriter::put_mark`].
    fn mark(&self, name: &str) -> Result<Option<u64>, Error>;
}

/// Changes rows inside of one transaction.
pub trait RowWriter: RowReader {
    /// Adds rows or replaces those with the same key. Where a text goes, erasing becomes pending.
    fn put_rows(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error>;

    /// Removes the rows with the keys of these, where there are any. Where a text goes, erasing becomes
    /// pending.
    fn remove_rows(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error>;

    /// Puts a number below 2⁶³ under a name. Marks are about this database, so they are no rows.
    fn put_mark(&mut self, name: &str, value: u64) -> Result<(), Error>;

    /// Recomputes the usage of some stores, which are rows of their table.
    fn derive_usage(&mut self, stores: &[Row]) -> Result<(), Error>;

    /// Recomputes everything else that is derived from rows, such as the next sequence.
    fn derive(&mut self) -> Result<(), Error>;
}

/// What [`Transfer::export`] runs.
pub type ExportWork<'a> = dyn FnMut(&dyn RowReader) -> Result<(), Error> + 'a;

/// What [`Transfer::import`] runs.
pub type ImportWork<'a> = dyn FnMut(&mut dyn RowWriter) -> Result<(), Error> + 'a;

/// A backend whose rows can move.
pub trait Transfer: Send + Sync {
    /// Runs `work` on one snapshot, however long it takes; others go on writing. It may be run more than
    /// once.
    fn export(&self, work: &mut ExportWork<'_>) -> Result<(), Error>;

    /// Runs `work` in one transaction, which is durable when this returns. It may be run more than once.
    fn import(&self, work: &mut ImportWork<'_>) -> Result<(), Error>;
}

/// The names of marks are those of cursors with this prefix.
pub const MARK_PREFIX: &str = "move.";

pub(crate) const STATE: &str = "move.state";
const UNDER_WAY: u64 = 1;
const COMPLETE: u64 = 2;

/// Fails if rows are being moved to this database, or were and it was interrupted: what is there is a part.
pub fn require_complete(reader: &dyn Reader) -> Result<(), Error> {
    if reader.cursor(STATE)? == Some(Sequence(UNDER_WAY)) { Err(incomplete()) } else { Ok(()) }
}

fn incomplete() -> Error {
    Error::new(ErrorKind::StorageUnusable, "a move to this database is not complete")
        .with_hint("run the same `quipu move` again; it continues where it was interrupted")
}
