//! Verifies what lies below the model, and recomputes derived rows.

use rusqlite::{Connection, Result, Row};

use super::events;

/// How many problems SQLite reports before it stops.
const DAMAGES_MAX: u32 = 20;

/// Row counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) stores: u64,
    pub(crate) memories: u64,
    pub(crate) versions: u64,
}

/// Counts stores, memories and versions.
pub(crate) fn totals(connection: &Connection) -> Result<Totals> {
    let sql = "SELECT count(*), coalesce(sum(memories_count), 0),
        (SELECT count(*) FROM versions) FROM stores";
    connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(Totals { stores: row.get(0)?, memories: row.get(1)?, versions: row.get(2)? })
    })
}

/// Returns a sentence for each problem of the file or its rows.
pub(crate) fn verify(connection: &Connection) -> Result<Vec<String>> {
    let damage = |row: &Row<'_>| row.get::<_, String>(0);
    let integrity = format!("PRAGMA integrity_check({DAMAGES_MAX})");
    let mut problems: Vec<String> = connection
        .prepare(&integrity)?
        .query_map([], damage)?
        .filter(|line| !line.as_ref().is_ok_and(|line| line == "ok"))
        .map(|line| line.map(|line| format!("the database file is damaged: {line}")))
        .collect::<Result<_>>()?;
    let orphan = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?));
    let mut orphans = connection.prepare("PRAGMA foreign_key_check")?;
    for orphan in orphans.query_map([], orphan)? {
        let (table, owner) = orphan?;
        if owner != "stores" || has_orphans(connection, &table)? {
            problems.push(format!("a row of `{table}` has no owner in `{owner}`"));
        }
    }
    problems.dedup();
    Ok(problems)
}

/// Returns whether a table has rows of a store that is neither there nor deleted. Most
/// tables name it by its number, those of keys by its id.
fn has_orphans(connection: &Connection, table: &str) -> Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {table} WHERE store NOT IN
            (SELECT num FROM stores UNION SELECT num FROM restorable_stores
                UNION SELECT num FROM removed_stores
                UNION SELECT id FROM stores UNION SELECT id FROM restorable_stores))"
    );
    connection.query_row(&sql, [], |row| row.get(0))
}

/// Recomputes the usage of every store from its memories, and that of every session from its events.
pub(crate) fn rebuild(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE stores SET
            memories_count = (SELECT count(*) FROM memories m WHERE m.store = stores.num),
            size_bytes = (SELECT ifnull(sum(m.size_bytes), 0) FROM memories m
                WHERE m.store = stores.num)",
    )?;
    events::rebuild(connection)
}
