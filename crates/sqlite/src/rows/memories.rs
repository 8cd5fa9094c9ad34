//! Memories: the current text at each path.

use std::ops::Bound;

use quipu_core::backend::MemoryQuery;
use quipu_core::model::{Directory, Memory, MemoryId, MemoryPath, StoreId, Timestamp, View};
use rusqlite::{Connection, OptionalExtension as _, Params, Result, Row, params};

use super::columns::{Columns as _, blob, limit};

macro_rules! basic {
    () => {
        "SELECT m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at, m.updated_at, NULL
         FROM memories m"
    };
}

macro_rules! full {
    () => {
        "SELECT m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at, m.updated_at,
            t.content
         FROM memories m JOIN texts t ON t.at = m.updated_at"
    };
}

macro_rules! of_store {
    () => {
        "m.store = (SELECT num FROM stores WHERE id = ?1)"
    };
}

pub(super) fn memory(
    connection: &Connection,
    store: StoreId,
    id: MemoryId,
    view: View,
) -> Result<Option<Memory>> {
    // The plus keeps SQLite from choosing the store's index over that of the id.
    let sql = match view {
        View::Basic => concat!(basic!(), " WHERE m.id = ?2 AND +", of_store!()),
        View::Full => concat!(full!(), " WHERE m.id = ?2 AND +", of_store!()),
    };
    one(connection, store, sql, params![blob(store), blob(id)])
}

pub(super) fn memory_at(
    connection: &Connection,
    store: StoreId,
    path: &str,
    view: View,
) -> Result<Option<Memory>> {
    let sql = match view {
        View::Basic => concat!(basic!(), " WHERE ", of_store!(), " AND m.path = ?2"),
        View::Full => concat!(full!(), " WHERE ", of_store!(), " AND m.path = ?2"),
    };
    one(connection, store, sql, params![blob(store), path])
}

pub(super) fn overlapping(
    connection: &Connection,
    store: StoreId,
    path: &MemoryPath,
    except: Option<MemoryId>,
) -> Result<Option<Memory>> {
    let counts = |memory: &Memory| Some(memory.id) != except;
    let mut above: Vec<_> = path.ancestors().collect();
    above.push(path.as_str());
    for candidate in above.into_iter().rev() {
        let found = memory_at(connection, store, candidate, View::Basic)?.filter(counts);
        if found.is_some() {
            return Ok(found);
        }
    }
    let query = MemoryQuery {
        directory: path.as_directory(),
        start: Bound::Unbounded,
        // The exception may be the first.
        limit: 2,
        view: View::Basic,
    };
    Ok(memories(connection, store, &query)?.into_iter().find(counts))
}

pub(super) fn memories(
    connection: &Connection,
    store: StoreId,
    query: &MemoryQuery,
) -> Result<Vec<Memory>> {
    let directory = query.directory.as_str();
    let (comparison, start) = match &query.start {
        Bound::Included(start) if start.as_str() > directory => (">=", start.as_str()),
        Bound::Excluded(start) if start.as_str() > directory => (">", start.as_str()),
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => (">=", directory),
    };
    let select = match query.view {
        View::Basic => concat!(basic!(), " WHERE ", of_store!()),
        View::Full => concat!(full!(), " WHERE ", of_store!()),
    };
    let sql =
        format!("{select} AND m.path {comparison} ?2 AND m.path < ?3 ORDER BY m.path LIMIT ?4");
    let end = end_of(&query.directory);
    connection
        .prepare_cached(&sql)?
        .query_map(params![blob(store), start, end, limit(query.limit)], |row| {
            from_row(row, store)
        })?
        .collect()
}

/// Returns the exclusive upper bound of all paths of a directory: `0` is the character after `/`.
fn end_of(directory: &Directory) -> String {
    let mut end = directory.as_str().to_owned();
    end.pop();
    end.push('0');
    end
}

pub(super) fn unused(
    connection: &Connection,
    store: StoreId,
    since: Timestamp,
    at_most: usize,
) -> Result<Vec<Memory>> {
    let sql = concat!(
        basic!(),
        " WHERE ",
        of_store!(),
        " AND m.updated_at <= ?2 AND ifnull(m.touched_at, 0) <= ?2 ORDER BY m.path LIMIT ?3"
    );
    connection
        .prepare_cached(sql)?
        .query_map(params![blob(store), since.as_micros(), limit(at_most)], |row| {
            from_row(row, store)
        })?
        .collect()
}

pub(super) fn last_use(
    connection: &Connection,
    store: StoreId,
    memory: MemoryId,
) -> Result<Option<Timestamp>> {
    let sql =
        "SELECT max(m.updated_at, ifnull(m.touched_at, 0)) FROM stores s CROSS JOIN memories m
        WHERE s.id = ?1 AND s.expire_after_days IS NOT NULL AND m.id = ?2 AND m.store = s.num";
    connection
        .prepare_cached(sql)?
        .query_row(params![blob(store), blob(memory)], |row| row.moment(0))
        .optional()
}

pub(super) fn touch(
    connection: &Connection,
    store: StoreId,
    memory: MemoryId,
    at: Timestamp,
) -> Result<()> {
    let sql = "UPDATE memories SET touched_at = ?3
        WHERE id = ?2 AND store = (SELECT num FROM stores WHERE id = ?1)";
    connection
        .prepare_cached(sql)?
        .execute(params![blob(store), blob(memory), at.as_micros()])
        .map(drop)
}

/// Updates the row of a memory after a change.
pub(super) fn replace(
    connection: &Connection,
    before: Option<&Memory>,
    after: Option<&Memory>,
) -> Result<()> {
    match (before, after) {
        (Some(before), Some(after)) if before.path == after.path => update(connection, after),
        (before, after) => {
            before.map_or(Ok(()), |memory| delete(connection, memory))?;
            after.map_or(Ok(()), |memory| insert(connection, memory))
        }
    }
}

fn insert(connection: &Connection, memory: &Memory) -> Result<()> {
    let sql = "INSERT INTO memories
            (store, path, id, version, hash, size_bytes, created_at, updated_at)
        VALUES ((SELECT num FROM stores WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(memory.store),
            memory.path.as_str(),
            blob(memory.id),
            blob(memory.version),
            memory.hash.as_bytes(),
            memory.size_bytes,
            memory.created_at.as_micros(),
            memory.updated_at.as_micros(),
        ])
        .map(drop)
}

fn update(connection: &Connection, memory: &Memory) -> Result<()> {
    let sql = "UPDATE memories SET version = ?3, hash = ?4, size_bytes = ?5, updated_at = ?6
        WHERE store = (SELECT num FROM stores WHERE id = ?1) AND path = ?2";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(memory.store),
            memory.path.as_str(),
            blob(memory.version),
            memory.hash.as_bytes(),
            memory.size_bytes,
            memory.updated_at.as_micros(),
        ])
        .map(drop)
}

fn delete(connection: &Connection, memory: &Memory) -> Result<()> {
    let sql = "DELETE FROM memories
        WHERE store = (SELECT num FROM stores WHERE id = ?1) AND path = ?2";
    connection
        .prepare_cached(sql)?
        .execute(params![blob(memory.store), memory.path.as_str()])
        .map(drop)
}

fn one(
    connection: &Connection,
    store: StoreId,
    sql: &str,
    parameters: impl Params,
) -> Result<Option<Memory>> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(parameters, |row| from_row(row, store)).optional()
}

fn from_row(row: &Row<'_>, store: StoreId) -> Result<Memory> {
    Ok(Memory {
        id: row.id(1)?,
        store,
        path: row.path(0)?,
        content: if row.is_null(7)? { None } else { Some(row.content(7)?) },
        hash: row.hash(3)?,
        size_bytes: row.count(4)?,
        version: row.id(2)?,
        created_at: row.moment(5)?,
        updated_at: row.moment(6)?,
    })
}
