//! Versions and their texts.

use quipu_core::Error;
use quipu_core::backend::{Commit, PruneRule, VersionQuery};
use quipu_core::model::{Id as _, Redaction, StoreId, Timestamp, Version, VersionId, View};
use tokio_postgres::Row;

use super::{changes, forgetting, past};
use crate::error::damaged;
use crate::outcome;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, Param, bits, number, params};

pub(crate) const COLUMNS: &str = "v.id, v.memory, v.operation, v.path, v.hash, v.size_bytes, v.actor, v.at, \
    v.redacted_at, v.redacted_by, v.undone_to, v.reason";

pub(super) fn select(part: u8, view: View) -> String {
    match view {
        View::Basic => format!("SELECT {COLUMNS}, NULL::text FROM versions_{part} v"),
        View::Full => format!("SELECT {COLUMNS}, v.content FROM versions_{part} v"),
    }
}

pub(super) fn version(
    transaction: &Transaction,
    store: StoreId,
    id: VersionId,
    view: View,
) -> Result<Option<Version>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.version(store, id, view)) {
        return Ok(Some(known));
    }
    let Some((num, part)) = transaction.place(store)? else { return Ok(None) };
    let sql = format!("{} WHERE v.store = $1 AND v.at = $2 AND v.id = $3", select(part, view));
    let row = transaction.query_one(&sql, params![num, id.created_at().as_micros(), bits(id)])?;
    row.map(|row| from_row(&row, store)).transpose()
}

/// The values of a query whose conditions vary.
struct Values {
    numbers: Vec<i64>,
    ids: Vec<Bits>,
    texts: Vec<String>,
}

pub(super) fn versions(
    transaction: &Transaction,
    store: StoreId,
    query: &VersionQuery,
) -> Result<Vec<Version>, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Vec::new()) };
    let filter = &query.filter;
    let last = match query.before {
        Some(before) => {
            filter.created.last.min(Timestamp::from_micros(before.created_at().as_micros() - 1))
        }
        None => filter.created.last,
    };
    let (first, last) = (filter.created.first.as_micros(), last.as_micros());
    let mut values =
        Values { numbers: vec![num, first, last, number(query.limit)], ids: vec![], texts: vec![] };
    let mut conditions = String::new();
    let mut count = values.numbers.len();
    let mut require = |column: &str| {
        count += 1;
        conditions.push_str(&format!(" AND v.{column} = ${count}"));
    };
    if let Some(memory) = filter.memory {
        require("memory");
        values.ids.push(bits(memory));
    }
    if let Some(path) = &filter.path {
        require("path");
        values.texts.push(path.as_str().to_owned());
    }
    if let Some(operation) = filter.operation {
        require("operation");
        values.texts.push(operation.as_str().to_owned());
    }
    for actor in &filter.actors {
        require("actor");
        values.texts.push(actor.to_string());
    }
    let sql = format!(
        "{} WHERE v.store = $1 AND v.at >= $2 AND v.at <= $3{conditions} ORDER BY v.at DESC LIMIT $4",
        select(part, query.view),
    );
    let rows = transaction.query(&sql, &values.params())?;
    rows.iter().map(|row| from_row(row, store)).collect()
}

impl Values {
    fn params(&self) -> Vec<Param<'_>> {
        let numbers = self.numbers.iter().map(|value| value as _);
        let ids = self.ids.iter().map(|value| value as _);
        let texts = self.texts.iter().map(|value| value as _);
        numbers.chain(ids).chain(texts).collect()
    }
}

pub(crate) fn from_row(row: &Row, store: StoreId) -> Result<Version, Error> {
    let redacted_at = row.optional_moment(8)?;
    Ok(Version {
        id: row.id(0)?,
        store,
        memory: row.id(1)?,
        operation: row.word(2)?,
        path: row.optional_path(3)?,
        content: row.optional_content(12)?,
        hash: row.optional_hash(4)?,
        size_bytes: row.optional_count(5)?,
        actor: row.word(6)?,
        created_at: row.moment(7)?,
        undone_to: row.optional_id(10)?,
        reason: row.optional_reason(11)?,
        redaction: match redacted_at {
            Some(at) => Some(Redaction { at, by: row.word(9)? }),
            None => None,
        },
    })
}

/// Returns when a version of a store was last made; 1970 if none is kept.
pub(super) fn changed_at(transaction: &Transaction, store: StoreId) -> Result<Timestamp, Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(Timestamp::MIN) };
    let sql = format!("SELECT at FROM versions_{part} WHERE store = $1 ORDER BY at DESC LIMIT 1");
    let row = transaction.query_one(&sql, params![num])?;
    row.map(|row| row.moment(0)).transpose().map(|at| at.unwrap_or(Timestamp::MIN))
}

pub(super) fn commit(transaction: &Transaction, commit: &Commit) -> Result<(), Error> {
    let (num, _) = transaction.place(commit.version.store)?.ok_or_else(damaged)?;
    transaction.add_commit(num, commit)
}

pub(super) fn redact(
    transaction: &Transaction,
    store: StoreId,
    redactions: &[(VersionId, Redaction)],
) -> Result<(), Error> {
    let Some((num, part)) = transaction.place(store)? else { return Ok(()) };
    let moment = |(id, _): &(VersionId, Redaction)| id.created_at().as_micros();
    let moments = List(redactions.iter().map(moment).collect::<Vec<_>>());
    let ids = List(redactions.iter().map(|(id, _)| bits(*id)).collect::<Vec<_>>());
    // Paths are compared as bytes, since those of refusals are.
    let sql = format!(
        "SELECT v.memory, convert_to(v.path, 'UTF8') FROM versions_{part} v
         JOIN unnest($2::bigint[], $3::uuid[]) r (at, id) ON v.at = r.at AND v.id = r.id
         WHERE v.store = $1"
    );
    let rows = transaction.query(&sql, params![num, moments, ids])?;
    let (mut memories, mut paths) = (Vec::new(), Vec::new());
    for row in &rows {
        memories.push(row.value::<Bits>(0)?);
        paths.extend(row.value::<Option<Vec<u8>>>(1)?);
    }
    if memories.is_empty() {
        return Ok(());
    }
    let sql = format!("DELETE FROM refusals_{part} WHERE store = $1 AND path = ANY ($2)");
    transaction.execute(&sql, params![num, List(paths)])?;
    let sql = format!(
        "UPDATE versions_{part} v SET path = NULL, hash = NULL, size_bytes = NULL, reason = NULL,
            content = NULL, redacted_at = r.redacted_at, redacted_by = r.redacted_by
         FROM unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::text[])
            r (at, id, redacted_at, redacted_by)
         WHERE v.store = $1 AND v.at = r.at AND v.id = r.id"
    );
    let when = redactions.iter().map(|(_, redaction)| redaction.at.as_micros());
    let by = redactions.iter().map(|(_, redaction)| redaction.by.to_string());
    let values = params![num, moments, ids, List(when.collect()), List(by.collect::<Vec<_>>())];
    transaction.execute(&sql, values)?;
    forgetting::set_pending(transaction, store, memories)
}

pub(super) fn prune(
    transaction: &Transaction,
    rule: &PruneRule,
    limit: usize,
) -> Result<usize, Error> {
    transaction.require_exclusive()?;
    // A version is pruned if its memory has enough newer versions, or was deleted long ago.
    let sql = "SELECT v.store, v.at FROM versions v
        WHERE v.at < $1
          AND ((SELECT count(*) FROM (SELECT 1 FROM versions n
                  WHERE n.store = v.store AND n.memory = v.memory AND n.at > v.at LIMIT $2) newer
               ) >= $2
               OR (NOT EXISTS
                     (SELECT 1 FROM memories m WHERE m.store = v.store AND m.id = v.memory)
                   AND NOT EXISTS (SELECT 1 FROM versions n
                     WHERE n.store = v.store AND n.memory = v.memory AND n.at >= $1)))
        ORDER BY v.at LIMIT $3";
    let keep_newest = number(rule.keep_newest);
    let rows =
        transaction.query(sql, params![rule.before.as_micros(), keep_newest, number(limit)])?;
    let (mut stores, mut moments) = (Vec::new(), Vec::new());
    for row in &rows {
        stores.push(row.value(0)?);
        moments.push(row.value(1)?);
    }
    if !moments.is_empty() {
        past::raise_horizons(transaction, &stores, &moments)?;
        let sql = "DELETE FROM versions v USING unnest($1::bigint[], $2::bigint[]) p (store, at)
            WHERE v.store = p.store AND v.at = p.at";
        transaction.execute(sql, params![List(stores), List(moments)])?;
    }
    changes::trim(transaction, rule.before)?;
    outcome::prune(transaction)?;
    Ok(rows.len())
}
