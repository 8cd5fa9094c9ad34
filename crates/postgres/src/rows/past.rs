//! What a store held at a moment, and how far back that is known.

use quipu_core::Error;
use quipu_core::model::{StoreId, Timestamp, Version, View};

use super::versions::{from_row, select};
use crate::transaction::Transaction;
use crate::values::{Columns as _, List, params};

/// Returns what a store held at a moment.
///
/// Grouping all versions by memory would read every one of them. Whatever existed then exists now or was
/// deleted since, so it is enough to look up one version for each of those.
pub(super) fn versions_at(
    transaction: &Transaction,
    store: StoreId,
    at: Timestamp,
    view: View,
) -> Result<Vec<Version>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Vec::new()) };
    let newest = format!(
        "SELECT max(n.at) FROM versions_{part} n WHERE n.store = $1 AND n.at <= $2 AND n.memory ="
    );
    let sql = format!(
        "{} WHERE v.store = $1 AND v.operation <> 'deleted' AND v.at IN (
            SELECT CASE WHEN m.updated_at <= $2 THEN m.updated_at ELSE ({newest} m.id) END
              FROM memories_{part} m WHERE m.store = $1
            UNION ALL
            SELECT ({newest} d.memory) FROM versions_{part} d
              WHERE d.store = $1 AND d.operation = 'deleted' AND d.at > $2)",
        select(part, view)
    );
    let rows = transaction.query(&sql, params![num, at.as_micros()])?;
    let mut versions =
        rows.iter().map(|row| from_row(row, store)).collect::<Result<Vec<_>, _>>()?;
    versions.sort_by(|left, right| left.path.cmp(&right.path).then(left.id.cmp(&right.id)));
    Ok(versions)
}

pub(super) fn horizon(
    transaction: &Transaction,
    store: StoreId,
) -> Result<Option<Timestamp>, Error> {
    let Some(num) = transaction.number(store)? else { return Ok(None) };
    let row = transaction.query_one("SELECT at FROM horizons WHERE store = $1", params![num])?;
    row.map(|row| row.moment(0)).transpose()
}

/// Raises the horizon of a store whose versions are about to be pruned.
///
/// Until the next version of its memory, the state of the store cannot be told without it. If it has no
/// next one, it is a deletion, and from then on the memory is rightly missing.
pub(super) fn raise_horizon(
    transaction: &Transaction,
    (num, part): (i64, u8),
    moments: &[i64],
) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO horizons
        SELECT $1, max(coalesce(
            (SELECT min(n.at) FROM versions_{part} n
                WHERE n.store = $1 AND n.memory = v.memory AND n.at > v.at), v.at))
          FROM versions_{part} v WHERE v.store = $1 AND v.at = ANY ($2)
        ON CONFLICT (store) DO UPDATE SET at = greatest(horizons.at, excluded.at)"
    );
    transaction.execute(&sql, params![num, List(moments.to_vec())]).map(drop)
}
