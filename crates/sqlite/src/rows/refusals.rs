//! Refusals: texts that were not stored.

use quipu_core::model::{Refusal, StoreId};
use rusqlite::{Connection, Result, Row, params};

use super::columns::{Columns as _, blob, limit};

pub(super) fn refusals(
    connection: &Connection,
    store: StoreId,
    limit_count: usize,
) -> Result<Vec<Refusal>> {
    let sql = "SELECT at, path, actor, reason FROM refusals
        WHERE store = (SELECT num FROM stores WHERE id = ?1) ORDER BY num DESC LIMIT ?2";
    let refusal = |row: &Row<'_>| {
        Ok(Refusal {
            store,
            at: row.moment(0)?,
            path: row.get(1)?,
            actor: row.word(2)?,
            reason: row.get(3)?,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_map(params![blob(store), limit(limit_count)], refusal)?
        .collect()
}

pub(super) fn put_refusal(
    connection: &Connection,
    refusal: &Refusal,
    kept_count: usize,
) -> Result<()> {
    let sql = "INSERT INTO refusals (store, at, path, actor, reason)
        SELECT num, ?2, ?3, ?4, ?5 FROM stores WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![
        blob(refusal.store),
        refusal.at.as_micros(),
        refusal.path,
        refusal.actor.to_string(),
        refusal.reason,
    ])?;
    let sql = "DELETE FROM refusals WHERE store = (SELECT num FROM stores WHERE id = ?1)
        AND num <= (SELECT num FROM refusals
            WHERE store = (SELECT num FROM stores WHERE id = ?1)
            ORDER BY num DESC LIMIT 1 OFFSET ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![blob(refusal.store), limit(kept_count)]).map(drop)
}

pub(super) fn remove_refusal(connection: &Connection, refusal: &Refusal) -> Result<()> {
    let sql = "DELETE FROM refusals WHERE store = (SELECT num FROM stores WHERE id = ?1)
        AND at = ?2 AND path = ?3 AND actor = ?4 AND reason = ?5";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(refusal.store),
            refusal.at.as_micros(),
            refusal.path,
            refusal.actor.to_string(),
            refusal.reason,
        ])
        .map(drop)
}
