//! Looking for damage below the model, and computing derived rows again.

use rusqlite::{Connection, Result, Row};

/// How much damage SQLite lists before it stops.
const DAMAGES_MAX: u32 = 20;

/// Returns a sentence for everything that is wrong with the file or its rows.
pub(crate) fn verify(connection: &Connection) -> Result<Vec<String>> {
    let damage = |row: &Row<'_>| row.get::<_, String>(0);
    let integrity = format!("PRAGMA integrity_check({DAMAGES_MAX})");
    let mut problems: Vec<String> = connection
        .prepare(&integrity)?
        .query_map([], damage)?
        .filter(|line| !line.as_ref().is_ok_and(|line| line == "ok"))
        .map(|line| line.map(|line| format!("the database file is damaged: {line}")))
        .collect::<Result<_>>()?;
    let orphan = |row: &Row<'_>| {
        let (table, owner): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of `{table}` has no owner in `{owner}`"))
    };
    let mut orphans = connection.prepare("PRAGMA foreign_key_check")?;
    for problem in orphans.query_map([], orphan)? {
        problems.push(problem?);
    }
    Ok(problems)
}

/// Computes the usage of every store from its memories.
pub(crate) fn rebuild(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE stores SET
            memories_count = (SELECT count(*) FROM memories m WHERE m.store = stores.num),
            size_bytes = (SELECT ifnull(sum(m.size_bytes), 0) FROM memories m
                WHERE m.store = stores.num)",
    )
}
