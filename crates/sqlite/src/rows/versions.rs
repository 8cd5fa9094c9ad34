//! Versions and their texts.

use quipu_core::backend::{Change, Commit, Event, Prunable, PrunePlace, PruneRule, VersionQuery};
use quipu_core::model::{
    ContentHash, Id as _, Memory, MemoryPath, Reason, Redaction, StoreId, Timestamp, Version,
    VersionId, View,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params, params_from_iter};

use super::columns::{Columns as _, blob, limit};
use super::{changes, memories, past};
use crate::erase;

const COLUMNS: &str = "v.id, v.memory, v.operation, v.path, v.hash, v.size_bytes, v.actor, v.at, \
    v.redacted_at, v.redacted_by, v.undone_to, v.reason";
pub(super) const STORE_NUMBER: &str = "(SELECT num FROM stores WHERE id = ?1)";

pub(super) fn select(view: View) -> String {
    select_by(view, "")
}

/// Selects versions by an index that SQLite would not choose.
fn select_by(view: View, index: &str) -> String {
    match view {
        View::Basic => format!("SELECT {COLUMNS}, NULL FROM versions v {index}"),
        View::Full => format!(
            "SELECT {COLUMNS}, t.content FROM versions v {index} LEFT JOIN texts t ON t.at = v.at"
        ),
    }
}

pub(super) fn version(
    connection: &Connection,
    store: StoreId,
    id: VersionId,
    view: View,
) -> Result<Option<Version>> {
    let sql =
        format!("{} WHERE v.at = ?2 AND v.id = ?3 AND v.store = {STORE_NUMBER}", select(view));
    connection
        .prepare_cached(&sql)?
        .query_row(params![blob(store), id.created_at().as_micros(), blob(id)], |row| {
            from_row(row, store)
        })
        .optional()
}

pub(super) fn versions(
    connection: &Connection,
    store: StoreId,
    query: &VersionQuery,
) -> Result<Vec<Version>> {
    let filter = &query.filter;
    let mut conditions = Vec::new();
    let mut values: Vec<Value> = vec![blob(store).to_vec().into()];
    let mut require = |condition: &str, value: Value| {
        values.push(value);
        conditions.push(format!("{condition} ?{}", values.len()));
    };
    if let Some(memory) = filter.memory {
        require("v.memory =", blob(memory).to_vec().into());
    }
    if let Some(path) = &filter.path {
        require("v.path =", path.as_str().to_owned().into());
    }
    if let Some(operation) = filter.operation {
        require("v.operation =", operation.as_str().to_owned().into());
    }
    for actor in &filter.actors {
        require("v.actor =", actor.to_string().into());
    }
    let last = match query.before {
        Some(before) => {
            filter.created.last.min(Timestamp::from_micros(before.created_at().as_micros() - 1))
        }
        None => filter.created.last,
    };
    require("v.at >=", filter.created.first.as_micros().into());
    require("v.at <=", last.as_micros().into());
    values.push(limit(query.limit).into());
    // A memory has fewer versions than a store, so its index is better. The unary plus keeps SQLite
    // from using the store's.
    let plus = if filter.memory.is_some() { "+" } else { "" };
    // So has a path; but SQLite takes the store's index if the limit is a parameter.
    let by_path = filter.path.is_some() && filter.memory.is_none();
    let index = if by_path { "INDEXED BY versions_by_path" } else { "" };
    let sql = format!(
        "{} WHERE {plus}v.store = {STORE_NUMBER} AND {} ORDER BY v.at DESC LIMIT ?{}",
        select_by(query.view, index),
        conditions.join(" AND "),
        values.len()
    );
    connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| from_row(row, store))?
        .collect()
}

pub(super) fn from_row(row: &Row<'_>, store: StoreId) -> Result<Version> {
    let redacted_at = row.optional_moment(8)?;
    Ok(Version {
        id: row.id(0)?,
        store,
        memory: row.id(1)?,
        operation: row.word(2)?,
        path: if row.is_null(3)? { None } else { Some(row.path(3)?) },
        content: if row.is_null(12)? { None } else { Some(row.content(12)?) },
        hash: if row.is_null(4)? { None } else { Some(row.hash(4)?) },
        size_bytes: if row.is_null(5)? { None } else { Some(row.count(5)?) },
        actor: row.word(6)?,
        created_at: row.moment(7)?,
        undone_to: row.optional_id(10)?,
        reason: if row.is_null(11)? { None } else { Some(row.reason(11)?) },
        redaction: match redacted_at {
            Some(at) => Some(Redaction { at, by: row.word(9)? }),
            None => None,
        },
    })
}

/// Returns when a version of a store was last made; 1970 if none is kept.
pub(super) fn changed_at(connection: &Connection, store: StoreId) -> Result<Timestamp> {
    let sql = format!("SELECT ifnull(max(at), 0) FROM versions WHERE store = {STORE_NUMBER}");
    connection.prepare_cached(&sql)?.query_row([blob(store)], |row| row.moment(0))
}

pub(super) fn commit(connection: &Connection, commit: &Commit) -> Result<()> {
    let version = &commit.version;
    let sql = "INSERT INTO versions
            (store, at, id, memory, operation, path, hash, size_bytes, actor, undone_to, reason)
        VALUES ((SELECT num FROM stores WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    connection.prepare_cached(sql)?.execute(params![
        blob(version.store),
        version.created_at.as_micros(),
        blob(version.id),
        blob(version.memory),
        version.operation.as_str(),
        version.path.as_ref().map(MemoryPath::as_str),
        version.hash.as_ref().map(ContentHash::as_bytes),
        version.size_bytes,
        version.actor.to_string(),
        version.undone_to.map(blob),
        version.reason.as_ref().map(Reason::as_str),
    ])?;
    if let Some(content) = commit.content() {
        connection
            .prepare_cached("INSERT INTO texts (at, content) VALUES (?1, ?2)")?
            .execute(params![version.created_at.as_micros(), content.as_str()])?;
    }
    memories::replace(connection, commit.before.as_ref(), commit.after.as_ref())?;
    update_usage(connection, commit)?;
    changes::record(
        connection,
        &Change {
            sequence: commit.sequence,
            transaction: commit.transaction,
            at: version.created_at,
            store: version.store,
            event: Event::Version(version.id),
        },
    )
}

/// Updates the store's usage by the difference that a change makes.
fn update_usage(connection: &Connection, commit: &Commit) -> Result<()> {
    let (before, after) = (commit.before.as_ref(), commit.after.as_ref());
    let size = |memory: Option<&Memory>| {
        memory.map_or(0, |memory| i64::try_from(memory.size_bytes).unwrap_or(i64::MAX))
    };
    let memories_added = i64::from(after.is_some()) - i64::from(before.is_some());
    let bytes_added = size(after) - size(before);
    if memories_added == 0 && bytes_added == 0 {
        return Ok(());
    }
    let sql = "UPDATE stores SET memories_count = memories_count + ?2, size_bytes = size_bytes + ?3
        WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![blob(commit.version.store), memories_added, bytes_added])
        .map(drop)
}

pub(super) fn redact(
    connection: &Connection,
    store: StoreId,
    id: VersionId,
    redaction: &Redaction,
) -> Result<()> {
    let at = id.created_at().as_micros();
    let version = version(connection, store, id, View::Basic)?;
    if version.is_some() {
        let sql = "DELETE FROM refusals
            WHERE (store, path) = (SELECT store, path FROM versions WHERE at = ?1)";
        connection.prepare_cached(sql)?.execute([at])?;
    }
    let sql = format!(
        "UPDATE versions SET path = NULL, hash = NULL, size_bytes = NULL, reason = NULL,
            redacted_at = ?4, redacted_by = ?5
         WHERE at = ?2 AND id = ?3 AND store = {STORE_NUMBER}"
    );
    let redacted_count = connection.prepare_cached(&sql)?.execute(params![
        blob(store),
        at,
        blob(id),
        redaction.at.as_micros(),
        redaction.by.to_string(),
    ])?;
    if redacted_count > 0 {
        connection.prepare_cached("DELETE FROM texts WHERE at = ?1")?.execute([at])?;
        erase::set_pending(connection, store, version.map(|version| version.memory))?;
    }
    Ok(())
}

/// A version is given up if its memory has enough newer versions, or was deleted long ago.
const GIVEN_UP: &str = "v.at < ?1
    AND ((SELECT count(*) FROM
           (SELECT 1 FROM versions n WHERE n.memory = v.memory AND n.at > v.at LIMIT ?2)
         ) >= ?2
         OR (NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = v.memory)
             AND NOT EXISTS
               (SELECT 1 FROM versions n WHERE n.memory = v.memory AND n.at >= ?1)))";

pub(super) fn prunable(
    connection: &Connection,
    rule: &PruneRule,
    after: Option<PrunePlace>,
    at_most: usize,
) -> Result<Prunable> {
    let sql = format!(
        "SELECT s.id, v.id, v.at FROM versions v
         JOIN (SELECT id, num FROM stores UNION ALL SELECT id, num FROM restorable_stores) s
            ON s.num = v.store
         WHERE v.at > ?3 AND {GIVEN_UP} ORDER BY v.at LIMIT ?4"
    );
    let keep_newest = i64::try_from(rule.keep_newest).unwrap_or(i64::MAX);
    let after = after.map_or(i64::MIN, |PrunePlace([at, ..])| at);
    let values = params![rule.before.as_micros(), keep_newest, after, limit(at_most)];
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let (mut versions, mut last) = (Vec::new(), after);
    while let Some(row) = rows.next()? {
        versions.push((row.id(0)?, row.id(1)?));
        last = row.get(2)?;
    }
    let next = (versions.len() >= at_most).then_some(PrunePlace([last, 0, 0]));
    // As neighbors, for those that are removed together.
    versions.sort_by_key(|(store, _)| *store);
    Ok(Prunable { versions, next })
}

pub(super) fn prune(
    connection: &Connection,
    rule: &PruneRule,
    store: StoreId,
    ids: &[VersionId],
) -> Result<usize> {
    let sql = format!(
        "SELECT v.at FROM versions v WHERE v.at = ?3 AND v.id = ?4 AND {GIVEN_UP}
            AND v.store = (SELECT num FROM stores WHERE id = ?5
                UNION ALL SELECT num FROM restorable_stores WHERE id = ?5)"
    );
    let keep_newest = i64::try_from(rule.keep_newest).unwrap_or(i64::MAX);
    let mut pruned_count = 0;
    for id in ids {
        let at = id.created_at().as_micros();
        let values = params![rule.before.as_micros(), keep_newest, at, blob(*id), blob(store)];
        let found = connection.prepare_cached(&sql)?.exists(values)?;
        if !found {
            continue;
        }
        past::raise_horizon(connection, at)?;
        connection.prepare_cached("DELETE FROM texts WHERE at = ?1")?.execute([at])?;
        connection.prepare_cached("DELETE FROM versions WHERE at = ?1")?.execute([at])?;
        pruned_count += 1;
    }
    Ok(pruned_count)
}
