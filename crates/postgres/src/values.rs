//! Conversion of values to and from columns.

use std::error::Error as StdError;
use std::str::FromStr;

use bytes::BytesMut;
use quipu_core::Error;
use quipu_core::model::{
    Content, ContentHash, Description, Id, Instructions, MemoryPath, Metadata, Name, Reason,
    SecretHash, Timestamp,
};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::error;

/// A value with its type, so that no round trip is needed to learn what the server expects.
pub(crate) trait Parameter: Sync {
    fn value(&self) -> &(dyn ToSql + Sync);
    fn sql_type(&self) -> Type;
}

pub(crate) type Param<'a> = &'a dyn Parameter;

impl<T: ToSql + Typed + Sync> Parameter for T {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// Names the PostgreSQL type of a Rust type.
pub(crate) trait Typed {
    const TYPE: Type;
    const LIST: Type;
}

macro_rules! typed {
    ($($rust:ty => $one:ident, $many:ident;)*) => {$(
        impl Typed for $rust {
            const TYPE: Type = Type::$one;
            const LIST: Type = Type::$many;
        }
    )*};
}

typed! {
    i64 => INT8, INT8_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    Bits => UUID, UUID_ARRAY;
    Vec<u8> => BYTEA, BYTEA_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
    const LIST: Type = T::LIST;
}

/// Several values in one parameter.
#[derive(Debug, Default)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: Typed> Typed for List<T> {
    const TYPE: Type = T::LIST;
    const LIST: Type = T::LIST;
}

impl<T: ToSql> ToSql for List<T> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.0.to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <Vec<T> as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// Lists the values of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::values::Parameter),*]
    };
}
pub(crate) use params;

/// The bits of an id, as a UUID: byte order is creation order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits(pub(crate) u128);

impl Bits {
    pub(crate) const MAX: Self = Self(u128::MAX);
}

impl ToSql for Bits {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Bits {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(u128::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

/// Returns an id as it is stored.
pub(crate) fn bits(id: impl Id) -> Bits {
    Bits(id.bits())
}

const NO_METADATA: &str = "{}";

/// Returns labels as they are stored.
pub(crate) fn json(metadata: &Metadata) -> String {
    serde_json::to_string(metadata.pairs()).expect("texts can always be written as JSON")
}

/// Converts a count or a limit for PostgreSQL.
pub(crate) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Reads typed values out of a row.
pub(crate) trait Columns {
    fn value<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Error>;

    fn id<I: Id>(&self, column: usize) -> Result<I, Error> {
        self.value::<Bits>(column).map(|bits| I::from_bits(bits.0))
    }

    fn optional_id<I: Id>(&self, column: usize) -> Result<Option<I>, Error> {
        Ok(self.value::<Option<Bits>>(column)?.map(|bits| I::from_bits(bits.0)))
    }

    fn moment(&self, column: usize) -> Result<Timestamp, Error> {
        self.value(column).map(Timestamp::from_micros)
    }

    fn optional_moment(&self, column: usize) -> Result<Option<Timestamp>, Error> {
        Ok(self.value::<Option<i64>>(column)?.map(Timestamp::from_micros))
    }

    fn count(&self, column: usize) -> Result<u64, Error> {
        let count: i64 = self.value(column)?;
        u64::try_from(count).map_err(misfit)
    }

    fn optional_count(&self, column: usize) -> Result<Option<u64>, Error> {
        let count: Option<i64> = self.value(column)?;
        count.map(u64::try_from).transpose().map_err(misfit)
    }

    fn word<T: FromStr<Err: StdError + Send + Sync + 'static>>(
        &self,
        column: usize,
    ) -> Result<T, Error> {
        self.value::<&str>(column)?.parse().map_err(misfit)
    }

    fn path(&self, column: usize) -> Result<MemoryPath, Error> {
        MemoryPath::parse(self.value(column)?).map_err(misfit)
    }

    fn optional_path(&self, column: usize) -> Result<Option<MemoryPath>, Error> {
        let path: Option<&str> = self.value(column)?;
        path.map(MemoryPath::parse).transpose().map_err(misfit)
    }

    fn hash(&self, column: usize) -> Result<ContentHash, Error> {
        self.value::<&[u8]>(column)?.try_into().map(ContentHash::from_bytes).map_err(misfit)
    }

    fn optional_hash(&self, column: usize) -> Result<Option<ContentHash>, Error> {
        let hash: Option<&[u8]> = self.value(column)?;
        hash.map(TryInto::try_into)
            .transpose()
            .map_err(misfit)
            .map(|hash| hash.map(ContentHash::from_bytes))
    }

    fn optional_content(&self, column: usize) -> Result<Option<Content>, Error> {
        let text: Option<&str> = self.value(column)?;
        text.map(Content::new).transpose().map_err(misfit)
    }

    fn secret(&self, column: usize) -> Result<SecretHash, Error> {
        self.value::<&[u8]>(column)?.try_into().map(SecretHash::from_bytes).map_err(misfit)
    }

    fn optional_secret(&self, column: usize) -> Result<Option<SecretHash>, Error> {
        let hash: Option<&[u8]> = self.value(column)?;
        hash.map(TryInto::try_into)
            .transpose()
            .map_err(misfit)
            .map(|hash| hash.map(SecretHash::from_bytes))
    }

    fn name(&self, column: usize) -> Result<Name, Error> {
        Name::new(self.value::<&str>(column)?).map_err(misfit)
    }

    fn description(&self, column: usize) -> Result<Description, Error> {
        Description::new(self.value::<&str>(column)?).map_err(misfit)
    }

    fn instructions(&self, column: usize) -> Result<Instructions, Error> {
        Instructions::new(self.value::<&str>(column)?).map_err(misfit)
    }

    fn optional_reason(&self, column: usize) -> Result<Option<Reason>, Error> {
        let reason: Option<&str> = self.value(column)?;
        reason.map(Reason::new).transpose().map_err(misfit)
    }

    fn metadata(&self, column: usize) -> Result<Metadata, Error> {
        let text: &str = self.value(column)?;
        if text == NO_METADATA {
            return Ok(Metadata::default());
        }
        let pairs = serde_json::from_str(text).map_err(misfit)?;
        Metadata::new(pairs).map_err(misfit)
    }

    /// Reads a text that may hold any character.
    fn raw_text(&self, column: usize) -> Result<String, Error> {
        String::from_utf8(self.value(column)?).map_err(misfit)
    }

    fn optional_raw_text(&self, column: usize) -> Result<Option<String>, Error> {
        let bytes: Option<Vec<u8>> = self.value(column)?;
        bytes.map(String::from_utf8).transpose().map_err(misfit)
    }
}

impl Columns for Row {
    fn value<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Error> {
        self.try_get(column).map_err(misfit)
    }
}

/// Returns the error for a column with a value that Quipu would not have written.
pub(crate) fn misfit(error: impl StdError + Send + Sync + 'static) -> Error {
    error::damaged().with_source(error)
}
