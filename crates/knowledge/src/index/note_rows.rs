//! The rows of memories: what they are called and link to.

use quipu_core::model::{Id as _, MemoryId};
use rusqlite::{Connection, params};

use super::error::IndexError;
use super::rows::{blob, totals_from_bytes, totals_to_bytes};
use super::segment::Totals;

/// What the index knows of a memory besides its terms.
#[derive(Clone, Debug)]
pub(crate) struct NoteRow {
    pub(crate) totals: Totals,
    pub(crate) card: Vec<u8>,
}

/// Returns what the index knows of a memory, if it knows it.
pub(crate) fn note(
    connection: &Connection,
    store: i64,
    memory: MemoryId,
) -> Result<Option<NoteRow>, IndexError> {
    let sql = "SELECT totals, card FROM notes WHERE store = ?1 AND memory = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![store, blob(memory.bits())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(NoteRow {
        totals: totals_from_bytes(row.get_ref(0)?.as_blob().ok().ok_or(IndexError::Damaged)?)?,
        card: row.get(1)?,
    }))
}

/// Adds what is known of a memory, or replaces it.
pub(crate) fn put_note(
    connection: &Connection,
    store: i64,
    memory: MemoryId,
    totals: &Totals,
    card: &[u8],
) -> Result<(), IndexError> {
    let sql = "INSERT OR REPLACE INTO notes (store, memory, totals, card) VALUES (?1, ?2, ?3, ?4)";
    let id = blob(memory.bits());
    connection.prepare_cached(sql)?.execute(params![store, id, totals_to_bytes(totals), card])?;
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

/// Calls `work` with the memories of a store and their cards, by id, until it returns `false`.
pub(crate) fn each_note(
    connection: &Connection,
    store: i64,
    mut work: impl FnMut(MemoryId, &[u8]) -> Result<bool, IndexError>,
) -> Result<(), IndexError> {
    let sql = "SELECT memory, card FROM notes WHERE store = ?1 ORDER BY memory";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store])?;
    while let Some(row) = rows.next()? {
        let memory = MemoryId::from_bits(u128::from_be_bytes(row.get(0)?));
        let card = row.get_ref(1)?.as_blob().ok().ok_or(rusqlite::Error::InvalidQuery)?;
        if !work(memory, card)? {
            break;
        }
    }
    Ok(())
}

/// Removes some notes of a store; returns whether there are more.
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
