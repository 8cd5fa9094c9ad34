//! The rows of memories, with their names and links.

use quipu_core::model::{Id as _, MemoryId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::error::IndexError;
use super::rows::blob;
use super::seal::Seal;
use super::segment::Totals;
use super::store_rows::{totals_from_bytes, totals_to_bytes};

/// The row of a memory.
#[derive(Clone, Debug)]
pub(crate) struct NoteRow {
    pub(crate) totals: Totals,
    pub(crate) card: Vec<u8>,
}

/// Returns the seal of a row, which is appended to its card.
fn seal(store: i64, memory: MemoryId, totals: &[u8]) -> Seal {
    Seal::new("notes").with_number(store).with(&blob(memory.bits())).with(totals)
}

/// Returns the row of a memory, if there is one.
pub(crate) fn note(
    connection: &Connection,
    store: i64,
    memory: MemoryId,
) -> Result<Option<NoteRow>, IndexError> {
    let sql = "SELECT totals, card FROM notes WHERE store = ?1 AND memory = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![store, blob(memory.bits())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (totals, card) = unsealed(store, memory, (row.get_ref(0)?, row.get_ref(1)?))?;
    Ok(Some(NoteRow { totals: totals_from_bytes(totals)?, card: card.to_vec() }))
}

/// Returns the totals and the verified card of a row.
fn unsealed<'r>(
    store: i64,
    memory: MemoryId,
    (totals, card): (ValueRef<'r>, ValueRef<'r>),
) -> Result<(&'r [u8], &'r [u8]), IndexError> {
    let totals = totals.as_blob().ok().ok_or(IndexError::Damaged)?;
    let card = card.as_blob().ok().ok_or(IndexError::Damaged)?;
    Ok((totals, seal(store, memory, totals).verify(card)?))
}

/// Adds or replaces the row of a memory.
pub(crate) fn put_note(
    connection: &Connection,
    store: i64,
    memory: MemoryId,
    totals: &Totals,
    card: &[u8],
) -> Result<(), IndexError> {
    let sql = "INSERT OR REPLACE INTO notes (store, memory, totals, card) VALUES (?1, ?2, ?3, ?4)";
    let totals = totals_to_bytes(totals);
    let card = seal(store, memory, &totals).append_to(card);
    connection.prepare_cached(sql)?.execute(params![store, blob(memory.bits()), totals, card])?;
    Ok(())
}

pub(crate) fn remove_note(
    connection: &Connection,
    store: i64,
    memory: MemoryId,
) -> Result<(), IndexError> {
    let sql = "DELETE FROM notes WHERE store = ?1 AND memory = ?2";
    connection.prepare_cached(sql)?.execute(params![store, blob(memory.bits())])?;
    Ok(())
}

/// Calls `work` with each memory of a store and its card, by id, until it returns `false`.
pub(crate) fn each_note(
    connection: &Connection,
    store: i64,
    mut work: impl FnMut(MemoryId, &[u8]) -> Result<bool, IndexError>,
) -> Result<(), IndexError> {
    let sql = "SELECT memory, totals, card FROM notes WHERE store = ?1 ORDER BY memory";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store])?;
    while let Some(row) = rows.next()? {
        let (memory, card) = of_row(store, row)?;
        if !work(memory, card)? {
            break;
        }
    }
    Ok(())
}

/// Returns the memory and the card of a row with the columns `memory, totals, card`.
pub(super) fn of_row<'r>(store: i64, row: &'r Row<'_>) -> Result<(MemoryId, &'r [u8]), IndexError> {
    let memory = MemoryId::from_bits(u128::from_be_bytes(row.get(0)?));
    let (_, card) = unsealed(store, memory, (row.get_ref(1)?, row.get_ref(2)?))?;
    Ok((memory, card))
}

/// Removes at most `limit` rows of a store; returns whether any were removed.
pub(crate) fn remove_notes(
    connection: &Connection,
    store: i64,
    limit: usize,
) -> Result<bool, IndexError> {
    let sql = "DELETE FROM notes WHERE store = ?1 AND memory IN
        (SELECT memory FROM notes WHERE store = ?1 LIMIT ?2)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(connection.prepare_cached(sql)?.execute([store, limit])? > 0)
}
