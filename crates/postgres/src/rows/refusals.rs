//! Refusals: texts that were not stored.

use quipu_core::Error;
use quipu_core::model::{Refusal, StoreId};

use crate::transaction::Transaction;
use crate::values::{Columns as _, number, params};

pub(super) fn refusals(
    transaction: &Transaction,
    store: StoreId,
    limit: usize,
) -> Result<Vec<Refusal>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT at, path, actor, reason FROM refusals_{part}
        WHERE store = $1 ORDER BY num DESC LIMIT $2"
    );
    let rows = transaction.query(&sql, params![num, number(limit)])?;
    let refusals = rows.iter().map(|row| {
        Ok(Refusal {
            store,
            at: row.moment(0)?,
            path: row.raw_text(1)?,
            actor: row.word(2)?,
            reason: row.raw_text(3)?,
        })
    });
    refusals.collect()
}

pub(super) fn put_refusal(
    transaction: &Transaction,
    refusal: &Refusal,
    kept_count: usize,
) -> Result<(), Error> {
    let Some((num, part)) = transaction.place(refusal.store)? else { return Ok(()) };
    let sql = format!(
        "INSERT INTO refusals_{part} (store, at, path, actor, reason) VALUES ($1, $2, $3, $4, $5)"
    );
    let values = params![
        num,
        refusal.at.as_micros(),
        refusal.path.as_bytes(),
        refusal.actor.to_string(),
        refusal.reason.as_bytes(),
    ];
    transaction.execute(&sql, values)?;
    let sql = format!(
        "DELETE FROM refusals_{part} WHERE store = $1 AND num <=
        (SELECT num FROM refusals_{part} WHERE store = $1 ORDER BY num DESC LIMIT 1 OFFSET $2)"
    );
    transaction.execute(&sql, params![num, number(kept_count)]).map(drop)
}

pub(super) fn remove_refusal(transaction: &Transaction, refusal: &Refusal) -> Result<(), Error> {
    let Some((num, part)) = transaction.place(refusal.store)? else { return Ok(()) };
    let sql = format!(
        "DELETE FROM refusals_{part}
        WHERE store = $1 AND at = $2 AND path = $3 AND actor = $4 AND reason = $5"
    );
    let values = params![
        num,
        refusal.at.as_micros(),
        refusal.path.as_bytes(),
        refusal.actor.to_string(),
        refusal.reason.as_bytes(),
    ];
    transaction.execute(&sql, values).map(drop)
}
