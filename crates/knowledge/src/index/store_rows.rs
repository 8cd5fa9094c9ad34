//! The rows of stores: the cursor and the totals of each index.

use quipu_core::backend::Sequence;
use quipu_core::model::{Id as _, StoreId, Timestamp};
use rusqlite::{Connection, Row, params};

use super::codec::{Damaged, Input, put_varint};
use super::error::IndexError;
use super::rows::blob;
use super::seal::Seal;
use super::segment::Totals;

/// A position in the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cursor {
    pub(crate) sequence: Sequence,
    /// The timestamp of the change with this sequence.
    pub(crate) at: Timestamp,
}

impl Cursor {
    /// The position before all changes.
    pub(crate) const START: Self = Self { sequence: Sequence(0), at: Timestamp::MIN };
}

/// The row of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreRow {
    pub(crate) id: StoreId,
    /// Its number, which is never reused.
    pub(crate) num: i64,
    /// The index holds every memory of the store as of this change.
    pub(crate) cursor: Cursor,
    /// Nothing that was read before this change may be added: it could bring back redacted text.
    pub(crate) purged: Sequence,
    pub(crate) totals: Totals,
}

impl StoreRow {
    /// A sequence that no reader ever reaches.
    pub(crate) const REMOVED: Sequence = Sequence(i64::MAX as u64);

    /// Returns the row that marks the store as removed, so that nothing can be added.
    pub(crate) fn removed(&self) -> Self {
        Self { purged: Self::REMOVED, cursor: Cursor::START, ..*self }
    }

    /// Returns whether the store is being removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.purged == Self::REMOVED
    }
}

fn sequence(row: &Row<'_>, column: usize) -> Result<Sequence, IndexError> {
    u64::try_from(row.get::<_, i64>(column)?).map(Sequence).ok().ok_or(IndexError::Damaged)
}

fn number(sequence: Sequence) -> i64 {
    i64::try_from(sequence.0).unwrap_or(i64::MAX)
}

pub(super) fn totals_to_bytes(totals: &Totals) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in totals.counts.iter().chain(&totals.lengths) {
        put_varint(&mut bytes, *number);
    }
    bytes
}

pub(super) fn totals_from_bytes(bytes: &[u8]) -> Result<Totals, Damaged> {
    let mut input = Input::new(bytes);
    let mut totals = Totals::default();
    for number in totals.counts.iter_mut().chain(&mut totals.lengths) {
        *number = input.varint()?;
    }
    Ok(totals)
}

/// Returns the seal of a row, which is appended to its totals.
fn seal(id: &[u8], num: i64, cursor: Cursor, purged: Sequence) -> Seal {
    let seal = Seal::new("stores").with(id).with_number(num);
    let seal = seal.with_number(number(cursor.sequence)).with_number(cursor.at.as_micros());
    seal.with_number(number(purged))
}

/// Returns the row of a store, if there is one.
pub(crate) fn store(connection: &Connection, id: StoreId) -> Result<Option<StoreRow>, IndexError> {
    let sql = "SELECT num, sequence, at, purged, totals FROM stores WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let key = blob(id.bits());
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let cursor = Cursor { sequence: sequence(row, 1)?, at: Timestamp::from_micros(row.get(2)?) };
    let (num, purged) = (row.get(0)?, sequence(row, 3)?);
    let sealed = row.get_ref(4)?.as_blob().ok().ok_or(IndexError::Damaged)?;
    let totals = totals_from_bytes(seal(&key, num, cursor, purged).verify(sealed)?)?;
    Ok(Some(StoreRow { id, num, cursor, purged, totals }))
}

/// Returns the ids of all stores that have a row, in the order in which they were added.
pub(crate) fn ids(connection: &Connection) -> Result<Vec<StoreId>, IndexError> {
    let mut statement = connection.prepare_cached("SELECT id FROM stores ORDER BY num")?;
    let mut rows = statement.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(StoreId::from_bits(u128::from_be_bytes(row.get(0)?)));
    }
    Ok(ids)
}

/// Returns the least sequence from which on every store may hold words of text that was removed; `None` if no
/// store has a row.
pub(crate) fn least_purged(connection: &Connection) -> Result<Option<Sequence>, IndexError> {
    let sql = "SELECT min(purged) FROM stores WHERE purged <> ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let least: Option<i64> = statement.query_row([number(StoreRow::REMOVED)], |row| row.get(0))?;
    least
        .map(|least| u64::try_from(least).map(Sequence).ok().ok_or(IndexError::Damaged))
        .transpose()
}

/// Notes for every store that nothing from before a sequence is left.
pub(crate) fn raise_purged(connection: &Connection, to: Sequence) -> Result<(), IndexError> {
    for id in ids(connection)? {
        let row = store(connection, id)?.filter(|row| !row.is_removed() && row.purged < to);
        if let Some(row) = row {
            put_store(connection, &StoreRow { purged: to, ..row })?;
        }
    }
    Ok(())
}

/// Returns how much of the file is in use.
pub(crate) fn used_bytes(connection: &Connection) -> Result<u64, IndexError> {
    let sql = "SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Adds a store with an empty index, to which nothing may be added that was read before the change
/// `purged`.
pub(crate) fn add_store(
    connection: &Connection,
    id: StoreId,
    purged: Sequence,
) -> Result<StoreRow, IndexError> {
    // SQLite would reuse the number of the last store. A process that still removes rows of that
    // store by number would then remove those of the new one, or leave it rows that are not its
    // own.
    let sql = "UPDATE numbers SET store = store + 1 RETURNING store";
    let num = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let row = StoreRow { id, num, cursor: Cursor::START, purged, totals: Totals::default() };
    put_store(connection, &row)?;
    Ok(row)
}

/// Adds or replaces the row of a store.
pub(crate) fn put_store(connection: &Connection, row: &StoreRow) -> Result<(), IndexError> {
    let sql = "INSERT INTO stores (num, id, sequence, at, purged, totals)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (num) DO UPDATE SET
            sequence = excluded.sequence, at = excluded.at, purged = excluded.purged,
            totals = excluded.totals";
    let key = blob(row.id.bits());
    let seal = seal(&key, row.num, row.cursor, row.purged);
    connection.prepare_cached(sql)?.execute(params![
        row.num,
        key,
        number(row.cursor.sequence),
        row.cursor.at.as_micros(),
        number(row.purged),
        seal.append_to(&totals_to_bytes(&row.totals)),
    ])?;
    Ok(())
}

/// Returns the `purged` sequence of a store.
pub(crate) fn purged(connection: &Connection, num: i64) -> Result<Sequence, IndexError> {
    let mut statement = connection.prepare_cached("SELECT purged FROM stores WHERE num = ?1")?;
    let mut rows = statement.query([num])?;
    match rows.next()? {
        Some(row) => sequence(row, 0),
        None => Err(IndexError::Outdated),
    }
}

/// Removes the row of a store; its segments and notes are removed separately.
pub(crate) fn remove_store(connection: &Connection, num: i64) -> Result<(), IndexError> {
    connection.prepare_cached("DELETE FROM stores WHERE num = ?1")?.execute([num])?;
    Ok(())
}
