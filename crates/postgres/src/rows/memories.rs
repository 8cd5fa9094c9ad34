//! Memories: the current text at each path.

use std::ops::Bound;

use quipu_core::Error;
use quipu_core::backend::MemoryQuery;
use quipu_core::model::{Directory, Memory, MemoryId, MemoryPath, StoreId, Timestamp, View};
use tokio_postgres::Row;

use crate::transaction::Transaction;
use crate::values::{Columns as _, List, Param, bits, number, params};

/// Selects memories of a partition; the store's number is the first parameter.
fn select(part: u8, view: View, rest: &str) -> String {
    let columns = "m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at, m.updated_at";
    match view {
        View::Basic => {
            format!("SELECT {columns}, NULL::text FROM memories_{part} m WHERE m.store = $1 {rest}")
        }
        View::Full => format!(
            "SELECT {columns}, v.content FROM memories_{part} m
             JOIN versions_{part} v ON v.store = $1 AND v.at = m.updated_at
             WHERE m.store = $1 {rest}"
        ),
    }
}

pub(super) fn memory(
    transaction: &Transaction,
    store: StoreId,
    id: MemoryId,
    view: View,
) -> Result<Option<Memory>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.memory(store, id, view)) {
        return Ok(known.0);
    }
    let Some((num, part)) = transaction.place(store)? else { return Ok(None) };
    one(transaction, store, &select(part, view, "AND m.id = $2"), params![num, bits(id)])
}

pub(super) fn memory_at(
    transaction: &Transaction,
    store: StoreId,
    path: &str,
    view: View,
) -> Result<Option<Memory>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.memory_at(store, path, view)) {
        return Ok(known.0);
    }
    let Some((num, part)) = transaction.place(store)? else { return Ok(None) };
    one(transaction, store, &select(part, view, "AND m.path = $2"), params![num, path])
}

pub(super) fn overlapping(
    transaction: &Transaction,
    store: StoreId,
    path: &MemoryPath,
    except: Option<MemoryId>,
) -> Result<Option<Memory>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.overlapping(store, path, except)) {
        return Ok(known.0);
    }
    let Some((num, part)) = transaction.place(store)? else { return Ok(None) };
    let mut above: Vec<_> = path.ancestors().collect();
    above.push(path.as_str());
    let directory = path.as_directory();
    // The exception may be the first of those below.
    let below = "ORDER BY m.path LIMIT 2";
    let sql = format!(
        "({} AND m.path = ANY ($2)) UNION ALL ({} AND m.path >= $3 AND m.path < $4 {below})",
        select(part, View::Basic, ""),
        select(part, View::Basic, ""),
    );
    let end = end_of(&directory);
    let rows = transaction.query(&sql, params![num, List(above), directory.as_str(), end])?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(from_row(row, store)?);
    }
    found.retain(|memory: &Memory| Some(memory.id) != except);
    // Of those at the path and above it the longest path is the nearest; those below are longer.
    let is_below = |memory: &Memory| directory.contains(&memory.path);
    found.sort_by(|left, right| {
        let depth = |memory: &Memory| memory.path.as_str().len();
        is_below(left).cmp(&is_below(right)).then_with(|| {
            if is_below(left) { left.path.cmp(&right.path) } else { depth(right).cmp(&depth(left)) }
        })
    });
    Ok(found.into_iter().next())
}

pub(super) fn memories(
    transaction: &Transaction,
    store: StoreId,
    query: &MemoryQuery,
) -> Result<Vec<Memory>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Vec::new()) };
    let directory = query.directory.as_str();
    let (comparison, start) = match &query.start {
        Bound::Included(start) if start.as_str() > directory => (">=", start.as_str()),
        Bound::Excluded(start) if start.as_str() > directory => (">", start.as_str()),
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => (">=", directory),
    };
    let rest = format!("AND m.path {comparison} $2 AND m.path < $3 ORDER BY m.path LIMIT $4");
    let end = end_of(&query.directory);
    let rows = transaction
        .query(&select(part, query.view, &rest), params![num, start, end, number(query.limit)])?;
    rows.iter().map(|row| from_row(row, store)).collect()
}

/// Returns the exclusive upper bound of all paths of a directory: `0` is the character after `/`.
pub(crate) fn end_of(directory: &Directory) -> String {
    let mut end = directory.as_str().to_owned();
    end.pop();
    end.push('0');
    end
}

pub(super) fn unused(
    transaction: &Transaction,
    store: StoreId,
    since: Timestamp,
    limit: usize,
) -> Result<Vec<Memory>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Vec::new()) };
    let rest =
        "AND m.updated_at <= $2 AND coalesce(m.touched_at, 0) <= $2 ORDER BY m.path LIMIT $3";
    let rows = transaction
        .query(&select(part, View::Basic, rest), params![num, since.as_micros(), number(limit)])?;
    rows.iter().map(|row| from_row(row, store)).collect()
}

pub(super) fn last_use(
    transaction: &Transaction,
    store: StoreId,
    memory: MemoryId,
) -> Result<Option<Timestamp>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(None) };
    let sql = format!(
        "SELECT greatest(m.updated_at, coalesce(m.touched_at, 0)) FROM memories_{part} m
        WHERE m.store = $1 AND m.id = $2
          AND EXISTS (SELECT 1 FROM stores s WHERE s.num = $1 AND s.expire_after_days IS NOT NULL)"
    );
    let row = transaction.query_one(&sql, params![num, bits(memory)])?;
    row.map(|row| row.moment(0)).transpose()
}

pub(super) fn touch(
    transaction: &Transaction,
    store: StoreId,
    memory: MemoryId,
    at: Timestamp,
) -> Result<(), Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(()) };
    let sql = format!("UPDATE memories_{part} SET touched_at = $3 WHERE store = $1 AND id = $2");
    transaction.execute(&sql, params![num, bits(memory), at.as_micros()]).map(drop)
}

fn one(
    transaction: &Transaction,
    store: StoreId,
    sql: &str,
    params: &[Param<'_>],
) -> Result<Option<Memory>, Error> {
    let row = transaction.query_one(sql, params)?;
    row.map(|row| from_row(&row, store)).transpose()
}

pub(crate) fn from_row(row: &Row, store: StoreId) -> Result<Memory, Error> {
    Ok(Memory {
        id: row.id(1)?,
        store,
        path: row.path(0)?,
        content: row.optional_content(7)?,
        hash: row.hash(3)?,
        size_bytes: row.count(4)?,
        version: row.id(2)?,
        created_at: row.moment(5)?,
        updated_at: row.moment(6)?,
    })
}
