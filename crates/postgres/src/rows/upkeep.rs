//! Verifies what lies below the model, and recomputes derived rows.

use quipu_core::Error;
use quipu_core::model::Timestamp;

use super::events;
use crate::transaction::Transaction;
use crate::values::{Columns as _, number, params};

/// Row counts and sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) stores: u64,
    pub(crate) memories: u64,
    pub(crate) versions: u64,
    pub(crate) size_bytes: u64,
    /// Whether they were counted, or taken from the server's statistics.
    pub(crate) is_exact: bool,
}

/// How many rows of a table are counted one by one; beyond that the server's statistics have to do.
const COUNTED_MAX: u64 = 100_000;

/// Returns what the clock of the server shows.
pub(crate) fn clock(transaction: &Transaction) -> Result<Timestamp, Error> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    transaction.query_one(sql, &[])?.ok_or_else(crate::error::damaged)?.moment(0)
}

/// Counts stores, memories and versions.
pub(crate) fn totals(transaction: &Transaction) -> Result<Totals, Error> {
    // A table that was never analyzed says -1.
    let sql = "SELECT
            coalesce(sum(greatest(c.reltuples, 0)) FILTER (WHERE c.relname = 'stores'), 0)::bigint,
            coalesce(sum(greatest(c.reltuples, 0))
                FILTER (WHERE c.relname ~ '^memories_[0-9]+$'), 0)::bigint,
            coalesce(sum(greatest(c.reltuples, 0))
                FILTER (WHERE c.relname ~ '^versions_[0-9]+$'), 0)::bigint,
            coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace =
            (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema())";
    let row = transaction.query_one(sql, &[])?.ok_or_else(crate::error::damaged)?;
    let estimated = Totals {
        stores: row.count(0)?,
        memories: row.count(1)?,
        versions: row.count(2)?,
        size_bytes: row.count(3)?,
        is_exact: false,
    };
    if estimated.stores.max(estimated.versions) > COUNTED_MAX {
        return Ok(estimated);
    }
    let sql = "SELECT count(*), coalesce(sum(memories_count), 0)::bigint,
            (SELECT count(*) FROM (SELECT 1 FROM versions LIMIT $1) counted)
        FROM (SELECT memories_count FROM stores LIMIT $1) s";
    let row = transaction.query_one(sql, params![number(COUNTED_MAX + 1)])?;
    let row = row.ok_or_else(crate::error::damaged)?;
    Ok(Totals {
        stores: row.count(0)?,
        memories: row.count(1)?,
        versions: row.count(2)?,
        is_exact: true,
        ..estimated
    })
}

/// What rows belong to: table, column, and where the owners are.
const OWNERS: [(&str, &str, &str); 15] = [
    ("stores", "workspace", "SELECT id FROM workspaces"),
    ("store_texts", "store", NUMBERS),
    ("memories", "store", NUMBERS),
    ("versions", "store", NUMBERS),
    ("refusals", "store", NUMBERS),
    ("tombstones", "store", NUMBERS),
    ("horizons", "store", NUMBERS),
    ("sessions", "workspace", "SELECT id FROM workspaces"),
    ("attachments", "session", "SELECT id FROM sessions"),
    ("session_events", "session", "SELECT id FROM sessions"),
    ("event_usage", "session", "SELECT id FROM sessions"),
    ("definitions", "workspace", "SELECT id FROM workspaces"),
    ("keys", "workspace", "SELECT id FROM workspaces"),
    ("key_stores", "key", "SELECT id FROM keys"),
    ("receipts", "workspace", "SELECT id FROM workspaces"),
];

const NUMBERS: &str = "SELECT num FROM stores UNION SELECT num FROM restorable_stores
    UNION SELECT num FROM removed_stores";

/// Returns a sentence for each problem of the rows.
pub(crate) fn verify(transaction: &Transaction) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    let mut exists = |sql: &str, problem: &str| -> Result<(), Error> {
        let row = transaction.query_one(&format!("SELECT EXISTS ({sql})"), &[])?;
        if row.map(|row| row.value(0)).transpose()?.unwrap_or(false) {
            problems.push(problem.to_owned());
        }
        Ok(())
    };
    for (table, column, owners) in OWNERS {
        let sql = format!("SELECT 1 FROM {table} WHERE {column} NOT IN ({owners})");
        exists(&sql, &format!("a row of `{table}` has no owner"))?;
    }
    exists(
        "SELECT 1 FROM memories m WHERE NOT EXISTS
            (SELECT 1 FROM versions v WHERE v.store = m.store AND v.at = m.updated_at)",
        "a memory has no version",
    )?;
    exists(
        "SELECT 1 FROM changes c, counter n WHERE c.sequence > n.sequence",
        "a change has a higher number than the counter",
    )?;
    Ok(problems)
}

/// Recomputes the usage of every store from its memories.
pub(crate) fn rebuild(transaction: &Transaction) -> Result<(), Error> {
    transaction.require_exclusive()?;
    let sql = "UPDATE stores SET memories_count = c.memories_count, size_bytes = c.size_bytes
        FROM (SELECT s.num, count(m.id) AS memories_count,
                coalesce(sum(m.size_bytes), 0)::bigint AS size_bytes
            FROM stores s LEFT JOIN memories m ON m.store = s.num GROUP BY s.num) c
        WHERE c.num = stores.num
          AND (stores.memories_count, stores.size_bytes) <> (c.memories_count, c.size_bytes)";
    transaction.execute(sql, &[])?;
    events::rebuild(transaction)
}

/// How many rows of a removed store one transaction deletes.
const REMOVED_ROWS_MAX: usize = 1_000;

/// Deletes some rows of a removed store; returns whether there are more.
pub(crate) fn remove_deleted(transaction: &Transaction) -> Result<bool, Error> {
    let sql = "SELECT num FROM removed_stores ORDER BY num LIMIT 1";
    let Some(row) = transaction.query_one(sql, &[])? else { return Ok(false) };
    let (num, part) = transaction.place_of(row.value(0)?)?;
    transaction.require_erasure(Some(num));
    let sql = format!(
        "WITH gone AS (DELETE FROM versions_{part} WHERE store = $1 AND at IN
            (SELECT at FROM versions_{part} WHERE store = $1 LIMIT $2) RETURNING 1),
        gone_too AS (DELETE FROM memories_{part} WHERE store = $1 AND path IN
            (SELECT path FROM memories_{part} WHERE store = $1 LIMIT $2) RETURNING 1)
        SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM gone_too)"
    );
    let deleted = transaction.execute(&sql, params![num, number(REMOVED_ROWS_MAX)])?;
    let deleted_count = deleted.first().map_or(Ok(0), |row| row.count(0))?;
    if deleted_count == 0 {
        for sql in [
            format!("DELETE FROM refusals_{part} WHERE store = $1"),
            format!("DELETE FROM store_texts_{part} WHERE store = $1"),
            "DELETE FROM tombstones WHERE store = $1".to_owned(),
            "DELETE FROM horizons WHERE store = $1".to_owned(),
            "DELETE FROM removed_stores WHERE num = $1".to_owned(),
        ] {
            transaction.execute(&sql, params![num])?;
        }
    }
    Ok(true)
}
