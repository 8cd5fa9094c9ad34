//! How the tables that move are stored here.

use quipu_core::Error;
use quipu_core::transfer::{Table, Value};
use tokio_postgres::Row;

use crate::error;
use crate::partition::{self, Partition};
use crate::values::{Bits, Columns as _, List, Param};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An id.
    Id,
    Bytes,
    Text,
    /// A text that may hold any character, as bytes.
    Raw,
    Number,
    Flag,
}

use Kind::{Bytes, Flag, Id, Number, Raw, Text};

/// How a table of the list is stored here.
pub(super) struct Layout {
    pub(super) name: &'static str,
    pub(super) table: &'static str,
    /// What rows are selected from.
    pub(super) from: &'static str,
    /// The columns in the order of the list, but for the store that owns the row.
    pub(super) columns: &'static [(&'static str, Kind)],
    /// How many of them are the key.
    pub(super) key_length: usize,
    /// Whether the first column of the list is the store that owns the row.
    pub(super) is_owned: bool,
}

impl Layout {
    /// Returns whether its rows are in partitions by store.
    pub(super) fn is_partitioned(&self) -> bool {
        partition::OF_STORES.contains(&self.table)
    }

    /// Returns whether it has the texts of versions.
    pub(super) fn has_texts(&self) -> bool {
        self.columns.iter().any(|(name, _)| *name == CONTENT)
    }

    /// Returns the table with the rows of a store.
    pub(super) fn table_of(&self, store: i64) -> String {
        if self.is_partitioned() {
            format!("{}_{}", self.table, Partition::of_store(store).number())
        } else {
            self.table.to_owned()
        }
    }

    /// Returns the condition that lets the server look in one partition only.
    pub(super) fn same_partition(&self, column: &str, number: &str) -> String {
        if self.is_partitioned() {
            format!("AND {column} % 16 = {number} % 16")
        } else {
            String::new()
        }
    }
}

/// Returns the layout of stores.
pub(super) fn stores() -> &'static Layout {
    let [_, stores, ..] = &LAYOUTS;
    stores
}

const fn free(
    (name, table): (&'static str, &'static str),
    key_length: usize,
    columns: &'static [(&'static str, Kind)],
) -> Layout {
    Layout { name, table, from: table, columns, key_length, is_owned: false }
}

const fn owned(
    name: &'static str,
    key_length: usize,
    columns: &'static [(&'static str, Kind)],
) -> Layout {
    Layout { name, table: name, from: name, columns, key_length, is_owned: true }
}

macro_rules! store_columns {
    () => {
        "num, id, workspace, secrets, forgotten, writers, expire_after_days, created_at, updated_at, \
            archived_at"
    };
}

pub(super) const LAYOUTS: [Layout; 20] = [
    free(
        ("workspaces", "workspaces"),
        1,
        &[("id", Id), ("name", Text), ("created_at", Number), ("default_store", Id)],
    ),
    Layout {
        name: "stores",
        table: "stores",
        from: concat!(
            "(SELECT s.id, s.workspace, t.name, t.description, t.metadata, s.secrets, s.forgotten, \
                s.writers, s.expire_after_days, s.created_at, s.updated_at, s.archived_at, \
                s.deleted_at FROM (SELECT ",
            store_columns!(),
            ", NULL::bigint AS deleted_at FROM stores UNION ALL SELECT ",
            store_columns!(),
            ", deleted_at FROM restorable_stores) s \
                JOIN store_texts t ON t.store = s.num AND t.store % 16 = s.num % 16) s"
        ),
        columns: &[
            ("id", Id),
            ("workspace", Id),
            ("name", Text),
            ("description", Text),
            ("metadata", Text),
            ("secrets", Text),
            ("forgotten", Text),
            ("writers", Text),
            ("expire_after_days", Number),
            ("created_at", Number),
            ("updated_at", Number),
            ("archived_at", Number),
            ("deleted_at", Number),
        ],
        key_length: 1,
        is_owned: false,
    },
    owned(
        "versions",
        1,
        &[
            ("at", Number),
            ("id", Id),
            ("memory", Id),
            ("operation", Text),
            ("path", Text),
            ("hash", Bytes),
            ("size_bytes", Number),
            ("actor", Text),
            ("redacted_at", Number),
            ("redacted_by", Text),
            ("undone_to", Id),
            ("reason", Text),
            (CONTENT, Text),
        ],
    ),
    owned(
        "memories",
        1,
        &[
            ("path", Text),
            ("id", Id),
            ("version", Id),
            ("hash", Bytes),
            ("size_bytes", Number),
            ("created_at", Number),
            ("updated_at", Number),
            ("touched_at", Number),
        ],
    ),
    free(
        ("changes", "changes"),
        1,
        &[
            ("sequence", Number),
            ("at", Number),
            ("store", Id),
            ("event", Text),
            ("version", Id),
            ("first", Number),
        ],
    ),
    Layout {
        name: "cursors",
        table: "cursors",
        from: "(SELECT * FROM cursors WHERE left(name, 5) <> 'move.') c",
        columns: &[("name", Text), ("sequence", Number)],
        key_length: 1,
        is_owned: false,
    },
    free(
        ("keys", "keys"),
        1,
        &[
            ("id", Id),
            ("workspace", Id),
            ("name", Text),
            ("role", Text),
            ("secret", Bytes),
            ("opens_all", Flag),
            ("created_at", Number),
            ("expires_at", Number),
            ("revoked_at", Number),
            ("kind", Text),
            ("parent", Id),
            ("family", Id),
            ("used_at", Number),
            ("payload", Raw),
            ("forwarding", Text),
        ],
    ),
    free(("stores of keys", "key_stores"), 2, &[("key", Id), ("store", Id)]),
    free(
        ("sessions", "sessions"),
        1,
        &[
            ("id", Id),
            ("workspace", Id),
            ("title", Raw),
            ("metadata", Text),
            ("details", Raw),
            ("token", Bytes),
            ("created_at", Number),
            ("updated_at", Number),
            ("archived_at", Number),
            ("token_expires_at", Number),
            ("key", Id),
        ],
    ),
    free(
        ("attachments", "attachments"),
        2,
        &[
            ("session", Id),
            ("position", Number),
            ("store", Id),
            ("access", Text),
            ("instructions", Text),
            ("name", Text),
            ("description", Text),
            ("slug", Raw),
        ],
    ),
    free(
        ("definitions", "definitions"),
        3,
        &[
            ("kind", Text),
            ("id", Id),
            ("version", Number),
            ("workspace", Id),
            ("name", Text),
            ("metadata", Text),
            ("body", Text),
            ("created_at", Number),
            ("updated_at", Number),
            ("archived_at", Number),
            ("is_newest", Flag),
        ],
    ),
    free(
        ("session events", "session_events"),
        2,
        &[
            ("session", Id),
            ("number", Number),
            ("id", Id),
            ("at", Number),
            ("kind", Text),
            ("actor", Text),
            ("size_bytes", Number),
            ("redacted_at", Number),
            ("redacted_by", Text),
            ("body", Text),
        ],
    ),
    free(
        ("usage by events", "event_usage"),
        1,
        &[
            ("session", Id),
            ("newest", Number),
            ("newest_at", Number),
            ("events_count", Number),
            ("size_bytes", Number),
        ],
    ),
    free(("sessions of keys", "session_keys"), 2, &[("key", Id), ("session", Id)]),
    owned(
        "refusals",
        1,
        &[("num", Number), ("at", Number), ("path", Raw), ("actor", Text), ("reason", Raw)],
    ),
    owned(
        "tombstones",
        2,
        &[("hash", Bytes), ("salt", Bytes), ("size_bytes", Number), ("filter", Number)],
    ),
    free(
        ("receipts", "receipts"),
        1,
        &[("id", Id), ("workspace", Id), ("body", Raw), ("is_proven", Flag)],
    ),
    free(
        ("copies made", "copies_made"),
        1,
        &[
            ("num", Number),
            ("workspace", Id),
            ("at", Number),
            ("kind", Text),
            ("store", Id),
            ("target", Raw),
        ],
    ),
    owned("horizons", 0, &[("at", Number)]),
    free(
        ("removed stores", "deleted_stores"),
        1,
        &[("id", Id), ("workspace", Id), ("sequence", Number)],
    ),
];

/// The column with the text of a version.
pub(super) const CONTENT: &str = "content";

/// The numbers of the stores that own rows.
pub(super) const OWNERS: &str =
    "SELECT id, num FROM stores UNION ALL SELECT id, num FROM restorable_stores";

pub(super) fn layout(table: &Table) -> Result<&'static Layout, Error> {
    let found = LAYOUTS.iter().find(|layout| layout.name == table.name);
    found.ok_or_else(|| Error::invalid(format!("this backend has no {}", table.name)))
}

/// A value as a parameter.
pub(super) enum Stored {
    Id(Option<Bits>),
    Bytes(Option<Vec<u8>>),
    Text(Option<String>),
    Number(Option<i64>),
    Flag(Option<bool>),
}

/// Values of many rows as one parameter.
pub(super) enum Array {
    Ids(List<Option<Bits>>),
    Bytes(List<Option<Vec<u8>>>),
    Texts(List<Option<String>>),
    Numbers(List<Option<i64>>),
    Flags(List<Option<bool>>),
}

impl Array {
    pub(super) fn new<'v>(
        kind: Kind,
        values: impl Iterator<Item = Option<&'v Value>>,
    ) -> Result<Self, Error> {
        let mut array = match kind {
            Id => Self::Ids(List(Vec::new())),
            Bytes | Raw => Self::Bytes(List(Vec::new())),
            Text => Self::Texts(List(Vec::new())),
            Number => Self::Numbers(List(Vec::new())),
            Flag => Self::Flags(List(Vec::new())),
        };
        for value in values {
            let value = Stored::new(value.ok_or_else(error::damaged)?, kind)?;
            match (&mut array, value) {
                (Self::Ids(all), Stored::Id(value)) => all.0.push(value),
                (Self::Bytes(all), Stored::Bytes(value)) => all.0.push(value),
                (Self::Texts(all), Stored::Text(value)) => all.0.push(value),
                (Self::Numbers(all), Stored::Number(value)) => all.0.push(value),
                (Self::Flags(all), Stored::Flag(value)) => all.0.push(value),
                (_, _) => return Err(error::damaged()),
            }
        }
        Ok(array)
    }

    pub(super) fn numbers(values: impl Iterator<Item = Option<i64>>) -> Self {
        Self::Numbers(List(values.collect()))
    }

    pub(super) fn sql_type(&self) -> &'static str {
        match self {
            Self::Ids(_) => "uuid[]",
            Self::Bytes(_) => "bytea[]",
            Self::Texts(_) => "text[]",
            Self::Numbers(_) => "bigint[]",
            Self::Flags(_) => "boolean[]",
        }
    }

    pub(super) fn param(&self) -> Param<'_> {
        match self {
            Self::Ids(all) => all,
            Self::Bytes(all) => all,
            Self::Texts(all) => all,
            Self::Numbers(all) => all,
            Self::Flags(all) => all,
        }
    }
}

impl Stored {
    pub(super) fn new(value: &Value, kind: Kind) -> Result<Self, Error> {
        Ok(match (kind, value) {
            (Id, Value::Null) => Self::Id(None),
            (Id, Value::Bytes(bytes)) => {
                let bytes = bytes.first_chunk().copied().ok_or_else(error::damaged)?;
                Self::Id(Some(Bits(u128::from_be_bytes(bytes))))
            }
            (Bytes | Raw, Value::Null) => Self::Bytes(None),
            (Bytes, Value::Bytes(bytes)) => Self::Bytes(Some(bytes.clone())),
            (Raw, Value::Text(text)) => Self::Bytes(Some(text.clone().into_bytes())),
            (Text, Value::Null) => Self::Text(None),
            (Text, Value::Text(text)) => Self::Text(Some(text.clone())),
            (Number, Value::Null) => Self::Number(None),
            (Number, Value::Integer(number)) => Self::Number(Some(*number)),
            (Flag, Value::Null) => Self::Flag(None),
            (Flag, Value::Integer(number)) => Self::Flag(Some(*number != 0)),
            (Id | Bytes | Raw | Text | Number | Flag, _) => return Err(error::damaged()),
        })
    }

    pub(super) fn param(&self) -> Param<'_> {
        match self {
            Self::Id(id) => id,
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text,
            Self::Number(number) => number,
            Self::Flag(flag) => flag,
        }
    }
}

pub(super) fn read(row: &Row, column: usize, kind: Kind) -> Result<Value, Error> {
    let found = match kind {
        Id => row
            .value::<Option<Bits>>(column)?
            .map(|id| id.0.to_be_bytes().to_vec())
            .map(Value::Bytes),
        Bytes => row.value::<Option<Vec<u8>>>(column)?.map(Value::Bytes),
        Raw => row.optional_raw_text(column)?.map(Value::Text),
        Text => row.value::<Option<String>>(column)?.map(Value::Text),
        Number => row.value::<Option<i64>>(column)?.map(Value::Integer),
        Flag => row.value::<Option<bool>>(column)?.map(i64::from).map(Value::Integer),
    };
    Ok(found.unwrap_or(Value::Null))
}

/// Returns the columns of the key, without the store that owns the row.
pub(super) fn key(layout: &Layout) -> Vec<&'static str> {
    layout.columns.iter().take(layout.key_length).map(|(name, _)| *name).collect()
}

/// Returns whether rows of a table have text that can be removed or redacted, beside versions.
pub(super) fn has_other_text(table: &str) -> bool {
    ["session events", "definitions", "sessions"].contains(&table)
}
