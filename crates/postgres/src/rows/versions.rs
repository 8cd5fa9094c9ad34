//! Versions and their texts.

use std::collections::{HashMap, HashSet};

use quipu_core::Error;
use quipu_core::backend::{Commit, Prunable, PrunePlace, PruneRule, VersionQuery};
use quipu_core::model::{Id as _, Redaction, StoreId, Timestamp, Version, VersionId, View};
use tokio_postgres::Row;

use super::{forgetting, past};
use crate::error::damaged;
use crate::partition::{self, Partition};
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

/// Returns those actors that a version names, as its author or as who redacted it.
pub(super) fn named(
    transaction: &Transaction,
    actors: Vec<String>,
) -> Result<HashSet<String>, Error> {
    if actors.is_empty() {
        return Ok(HashSet::new());
    }
    let sql = "SELECT a.actor FROM unnest($1::text[]) a (actor)
        WHERE EXISTS (SELECT 1 FROM versions v WHERE v.actor = a.actor)
            OR EXISTS (SELECT 1 FROM versions v WHERE v.redacted_by = a.actor)";
    let rows = transaction.query(sql, params![List(actors)])?;
    rows.iter().map(|row| row.value(0)).collect()
}

/// Returns the condition that a rule gives up a version: its memory has enough newer ones, or was deleted long
/// ago. $1 is the moment of the rule, $2 how many newer ones are enough.
fn given_up(part: u8) -> String {
    format!(
        "v.at < $1
          AND ((SELECT count(*) FROM (SELECT 1 FROM versions_{part} n
                  WHERE n.store = v.store AND n.memory = v.memory AND n.at > v.at LIMIT $2) newer
               ) >= $2
               OR (NOT EXISTS (SELECT 1 FROM memories_{part} m
                     WHERE m.store = v.store AND m.id = v.memory)
                   AND NOT EXISTS (SELECT 1 FROM versions_{part} n
                     WHERE n.store = v.store AND n.memory = v.memory AND n.at >= $1)))"
    )
}

/// How many versions are looked at in one call.
const LOOKED_AT_MAX: usize = 5_000;

/// Versions are looked at in the order of their key, one partition after the other: a place is the partition, the
/// number of the store and the moment. Looking for all at once would take minutes on a large database.
pub(super) fn prunable(
    transaction: &Transaction,
    rule: &PruneRule,
    after: Option<PrunePlace>,
    limit: usize,
) -> Result<Prunable, Error> {
    let PrunePlace([partition, store, at]) = after.unwrap_or(PrunePlace([0, 0, i64::MIN]));
    let Some(part) = u8::try_from(partition).ok().filter(|part| *part < partition::COUNT) else {
        return Ok(Prunable::default());
    };
    transaction.enter_partition(Partition::Stores(part))?;
    let sql = format!(
        "SELECT v.store, v.at, v.id, {} FROM
            (SELECT store, at, id, memory FROM versions_{part} v
             WHERE (v.store, v.at) > ($3, $4) ORDER BY v.store, v.at LIMIT $5) v
         ORDER BY v.store, v.at",
        given_up(part)
    );
    let (keep_newest, count) = (number(rule.keep_newest), number(LOOKED_AT_MAX));
    let values = params![rule.before.as_micros(), keep_newest, store, at, count];
    let rows = transaction.query(&sql, values)?;
    let (mut found, mut place) = (Vec::new(), [partition, store, at]);
    for row in &rows {
        let (store, at): (i64, i64) = (row.value(0)?, row.value(1)?);
        place = [partition, store, at];
        if row.value(3)? {
            found.push((store, row.id(2)?));
        }
        if found.len() >= limit {
            break;
        }
    }
    let is_last = rows.len() < LOOKED_AT_MAX && found.len() < limit;
    let next = if is_last { [partition + 1, 0, i64::MIN] } else { place };
    let versions = with_stores(transaction, &found)?;
    let is_over = next == [i64::from(partition::COUNT), 0, i64::MIN];
    Ok(Prunable { versions, next: (!is_over).then_some(PrunePlace(next)) })
}

/// Returns versions with the ids of their stores. Those of stores that are being removed are left out.
fn with_stores(
    transaction: &Transaction,
    versions: &[(i64, VersionId)],
) -> Result<Vec<(StoreId, VersionId)>, Error> {
    if versions.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = List(versions.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    let sql = "SELECT num, id FROM stores WHERE num = ANY ($1)
        UNION ALL SELECT num, id FROM restorable_stores WHERE num = ANY ($1)";
    let mut stores: HashMap<i64, StoreId> = HashMap::new();
    for row in transaction.query(sql, params![numbers])? {
        stores.insert(row.value(0)?, row.id(1)?);
    }
    let versions = versions.iter();
    Ok(versions.filter_map(|(number, id)| Some((*stores.get(number)?, *id))).collect())
}

pub(super) fn prune(
    transaction: &Transaction,
    rule: &PruneRule,
    store: StoreId,
    ids: &[VersionId],
) -> Result<usize, Error> {
    let num = match transaction.number(store)? {
        Some(num) => Some(num),
        // One that is deleted is not written, and is restored or removed by whoever has its row.
        None => {
            let sql = "SELECT num FROM restorable_stores WHERE id = $1 FOR UPDATE";
            let row = transaction.query_one(sql, params![bits(store)])?;
            row.map(|row| row.value(0)).transpose()?
        }
    };
    let Some((num, part)) = num.map(|num| transaction.place_of(num)).transpose()? else {
        return Ok(0);
    };
    let moments = List(ids.iter().map(|id| id.created_at().as_micros()).collect::<Vec<_>>());
    let all = List(ids.iter().map(|id| bits(*id)).collect::<Vec<_>>());
    let sql = format!(
        "SELECT v.at FROM versions_{part} v JOIN unnest($4::bigint[], $5::uuid[]) p (at, id)
            ON v.at = p.at AND v.id = p.id
         WHERE v.store = $3 AND {}",
        given_up(part)
    );
    let keep_newest = number(rule.keep_newest);
    let values = params![rule.before.as_micros(), keep_newest, num, moments, all];
    let rows = transaction.query(&sql, values)?;
    let moments = rows.iter().map(|row| row.value(0)).collect::<Result<Vec<i64>, _>>()?;
    if moments.is_empty() {
        return Ok(0);
    }
    past::raise_horizon(transaction, (num, part), &moments)?;
    let sql = format!("DELETE FROM versions_{part} WHERE store = $1 AND at = ANY ($2)");
    let pruned_count = moments.len();
    transaction.execute(&sql, params![num, List(moments)])?;
    Ok(pruned_count)
}
