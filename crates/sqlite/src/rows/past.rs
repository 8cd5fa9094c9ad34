//! What a store held at a moment, and how far back that is known.

use quipu_core::model::{StoreId, Timestamp, Version, View};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::columns::{Columns as _, blob};
use super::versions::{STORE_NUMBER, from_row, select};

/// Returns what a store held at a moment.
///
/// Grouping all versions by memory would read every one of them. Whatever existed then exists now or was
/// deleted since, so it is enough to look up one version for each of those.
pub(super) fn versions_at(
    connection: &Connection,
    store: StoreId,
    at: Timestamp,
    view: View,
) -> Result<Vec<Version>> {
    let sql = format!(
        "{} JOIN (
            SELECT CASE WHEN updated_at <= ?2 THEN updated_at
                ELSE (SELECT max(at) FROM versions WHERE memory = memories.id AND at <= ?2) END AS at
              FROM memories WHERE store = {STORE_NUMBER}
            UNION ALL
            SELECT (SELECT max(at) FROM versions n WHERE n.memory = d.memory AND n.at <= ?2)
              FROM versions d
              WHERE d.store = {STORE_NUMBER} AND d.operation = 'deleted' AND d.at > ?2
         ) past ON past.at = v.at
         WHERE v.operation <> 'deleted'",
        select(view)
    );
    let mut versions = connection
        .prepare_cached(&sql)?
        .query_map(params![blob(store), at.as_micros()], |row| from_row(row, store))?
        .collect::<Result<Vec<_>>>()?;
    // Here and not in SQL, which would copy the rows into a temporary tree. A memory that was deleted and
    // restored since is there once for each.
    versions.sort_by(|a, b| a.path.cmp(&b.path).then(a.id.cmp(&b.id)));
    versions.dedup_by_key(|version| version.id);
    Ok(versions)
}

pub(super) fn horizon(connection: &Connection, store: StoreId) -> Result<Option<Timestamp>> {
    let sql = format!("SELECT at FROM horizons WHERE store = {STORE_NUMBER}");
    connection.prepare_cached(&sql)?.query_row([blob(store)], |row| row.moment(0)).optional()
}

/// Raises the horizon of the store whose version is about to be pruned.
///
/// Until the next version of its memory, the state of the store cannot be told without it. If it has no
/// next one, it is a deletion, and from then on the memory is rightly missing.
pub(super) fn raise_horizon(connection: &Connection, pruned_at: i64) -> Result<()> {
    let sql = "INSERT INTO horizons
        SELECT v.store,
            ifnull((SELECT min(n.at) FROM versions n WHERE n.memory = v.memory AND n.at > v.at), v.at)
          FROM versions v WHERE v.at = ?1
        ON CONFLICT (store) DO UPDATE SET at = max(at, excluded.at)";
    connection.prepare_cached(sql)?.execute([pruned_at]).map(drop)
}
