//! Conversion of values to and from columns.

use std::error::Error as StdError;
use std::str::FromStr;

use quipu_core::model::{
    Content, ContentHash, Description, Id, Instructions, MemoryPath, Metadata, Name, Reason,
    SecretHash, Timestamp,
};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};

/// Returns an id as it is stored: big-endian, so that byte order is creation order.
pub(super) fn blob(id: impl Id) -> [u8; 16] {
    id.bits().to_be_bytes()
}

const NO_METADATA: &str = "{}";

/// Returns labels as they are stored.
pub(super) fn json(metadata: &Metadata) -> String {
    serde_json::to_string(metadata.pairs()).expect("texts can always be written as JSON")
}

/// Converts a limit for SQLite.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads typed values out of a row.
pub(super) trait Columns {
    fn id<I: Id>(&self, column: usize) -> Result<I>;
    fn optional_id<I: Id>(&self, column: usize) -> Result<Option<I>>;
    fn moment(&self, column: usize) -> Result<Timestamp>;
    fn optional_moment(&self, column: usize) -> Result<Option<Timestamp>>;
    fn count(&self, column: usize) -> Result<u64>;
    fn word<T: FromStr<Err: StdError + Send + Sync + 'static>>(&self, column: usize) -> Result<T>;
    fn path(&self, column: usize) -> Result<MemoryPath>;
    fn hash(&self, column: usize) -> Result<ContentHash>;
    fn content(&self, column: usize) -> Result<Content>;
    fn secret(&self, column: usize) -> Result<SecretHash>;
    fn name(&self, column: usize) -> Result<Name>;
    fn description(&self, column: usize) -> Result<Description>;
    fn instructions(&self, column: usize) -> Result<Instructions>;
    fn reason(&self, column: usize) -> Result<Reason>;
    fn metadata(&self, column: usize) -> Result<Metadata>;
    fn is_null(&self, column: usize) -> Result<bool>;
}

impl Columns for Row<'_> {
    fn id<I: Id>(&self, column: usize) -> Result<I> {
        self.get(column).map(|bytes| I::from_bits(u128::from_be_bytes(bytes)))
    }

    fn optional_id<I: Id>(&self, column: usize) -> Result<Option<I>> {
        if self.is_null(column)? { Ok(None) } else { self.id(column).map(Some) }
    }

    fn moment(&self, column: usize) -> Result<Timestamp> {
        self.get(column).map(Timestamp::from_micros)
    }

    fn optional_moment(&self, column: usize) -> Result<Option<Timestamp>> {
        self.get::<_, Option<i64>>(column).map(|micros| micros.map(Timestamp::from_micros))
    }

    fn count(&self, column: usize) -> Result<u64> {
        let count: i64 = self.get(column)?;
        u64::try_from(count).map_err(|error| misfit(column, error))
    }

    fn word<T: FromStr<Err: StdError + Send + Sync + 'static>>(&self, column: usize) -> Result<T> {
        text(self, column)?.parse().map_err(|error| misfit(column, error))
    }

    fn path(&self, column: usize) -> Result<MemoryPath> {
        MemoryPath::parse(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn hash(&self, column: usize) -> Result<ContentHash> {
        self.get(column).map(ContentHash::from_bytes)
    }

    fn content(&self, column: usize) -> Result<Content> {
        Content::new(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn secret(&self, column: usize) -> Result<SecretHash> {
        self.get(column).map(SecretHash::from_bytes)
    }

    fn name(&self, column: usize) -> Result<Name> {
        Name::new(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn description(&self, column: usize) -> Result<Description> {
        Description::new(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn instructions(&self, column: usize) -> Result<Instructions> {
        Instructions::new(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn reason(&self, column: usize) -> Result<Reason> {
        Reason::new(text(self, column)?).map_err(|error| misfit(column, error))
    }

    fn metadata(&self, column: usize) -> Result<Metadata> {
        let text = text(self, column)?;
        if text == NO_METADATA {
            return Ok(Metadata::default());
        }
        let pairs = serde_json::from_str(text).map_err(|error| misfit(column, error))?;
        Metadata::new(pairs).map_err(|error| misfit(column, error))
    }

    fn is_null(&self, column: usize) -> Result<bool> {
        Ok(matches!(self.get_ref(column)?, rusqlite::types::ValueRef::Null))
    }
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| misfit(column, error))
}

/// Returns the error for a column with a value that Quipu would not have written.
fn misfit(column: usize, error: impl StdError + Send + Sync + 'static) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
