//! Keys and the stores that they open.

use std::collections::HashMap;

use quipu_core::Error;
use quipu_core::backend::KeyPruneRule;
use quipu_core::model::{Key, KeyId, KeyKind, SecretHash, Timestamp, WorkspaceId};
use tokio_postgres::Row;

use super::versions;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, Param, bits, number, params};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at,
                 kind, parent, family, used_at, payload, forwarding,
                 ARRAY(SELECT store FROM key_stores s WHERE s.key = keys.id ORDER BY store)
             FROM keys ",
            $rest
        )
    };
}

pub(super) fn key(transaction: &Transaction, id: KeyId) -> Result<Option<Key>, Error> {
    one(transaction, select!("WHERE id = $1"), params![bits(id)])
}

pub(super) fn key_with_secret(
    transaction: &Transaction,
    secret: &SecretHash,
) -> Result<Option<Key>, Error> {
    one(transaction, select!("WHERE secret = $1"), params![secret.as_bytes().as_slice()])
}

fn one(transaction: &Transaction, sql: &str, params: &[Param<'_>]) -> Result<Option<Key>, Error> {
    let row = transaction.query_one(sql, params)?;
    row.map(|row| from_row(&row)).transpose()
}

pub(super) fn keys(transaction: &Transaction, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
    let sql = select!("WHERE workspace = $1 ORDER BY id");
    transaction.query(sql, params![bits(workspace)])?.iter().map(from_row).collect()
}

pub(super) fn derived_keys(
    transaction: &Transaction,
    workspace: WorkspaceId,
    parent: Option<KeyId>,
) -> Result<Vec<Key>, Error> {
    let sql = select!(
        "WHERE workspace = $1 AND parent IS NOT DISTINCT FROM $2
           AND (kind <> 'key' OR parent IS NOT NULL OR family IS NOT NULL)
         ORDER BY id"
    );
    let values = params![bits(workspace), parent.map(bits)];
    transaction.query(sql, values)?.iter().map(from_row).collect()
}

fn from_row(row: &Row) -> Result<Key, Error> {
    let opens_all: bool = row.value(5)?;
    let stores: Vec<Bits> = row.value(15)?;
    let stores = stores.into_iter().map(|store| quipu_core::model::Id::from_bits(store.0));
    Ok(Key {
        id: row.id(0)?,
        workspace: row.id(1)?,
        name: row.name(2)?,
        role: row.word(3)?,
        stores: if opens_all { None } else { Some(stores.collect()) },
        secret: row.secret(4)?,
        created_at: row.moment(6)?,
        expires_at: row.optional_moment(7)?,
        revoked_at: row.optional_moment(8)?,
        kind: row.word(9)?,
        parent: row.optional_id(10)?,
        family: row.optional_id(11)?,
        used_at: row.optional_moment(12)?,
        payload: row.optional_raw_text(13)?,
        forwarding: row.word(14)?,
    })
}

pub(super) fn put_key(transaction: &Transaction, key: &Key) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO keys
            (id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at,
             kind, parent, family, used_at, payload, forwarding)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role,
            opens_all = excluded.opens_all, expires_at = excluded.expires_at,
            revoked_at = excluded.revoked_at, used_at = excluded.used_at,
            payload = excluded.payload, forwarding = excluded.forwarding";
    let values = params![
        bits(key.id),
        bits(key.workspace),
        key.name.as_str(),
        key.role.as_str(),
        key.secret.as_bytes().as_slice(),
        key.stores.is_none(),
        key.created_at.as_micros(),
        key.expires_at.map(Timestamp::as_micros),
        key.revoked_at.map(Timestamp::as_micros),
        key.kind.as_str(),
        key.parent.map(bits),
        key.family.map(bits),
        key.used_at.map(Timestamp::as_micros),
        key.payload.as_ref().map(String::as_bytes),
        key.forwarding.as_str(),
    ];
    transaction.execute(sql, values)?;
    transaction.execute("DELETE FROM key_stores WHERE key = $1", params![bits(key.id)])?;
    let stores: Vec<_> = key.stores.iter().flatten().map(|store| bits(*store)).collect();
    if stores.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO key_stores (key, store) SELECT $1, unnest($2::uuid[])
        ON CONFLICT DO NOTHING";
    transaction.execute(sql, params![bits(key.id), List(stores)]).map(drop)
}

/// How many keys are looked at in one transaction.
const LOOKED_AT_MAX: usize = 10_000;

/// Removes derived keys that have ended and that no version needs.
pub(super) fn prune(
    transaction: &Transaction,
    rule: &KeyPruneRule,
    limit: usize,
) -> Result<usize, Error> {
    transaction.require_administration()?;
    let (mut pruned, mut last) = (Vec::new(), Bits(0));
    while pruned.len() < limit {
        // `least` leaves out what is NULL, unlike the comparison: a key that never expires does not end.
        let sql = select!(
            "WHERE (kind <> 'key' OR parent IS NOT NULL OR family IS NOT NULL) AND id > $3
               AND expires_at IS NOT NULL AND least(expires_at, revoked_at) <
                   CASE WHEN kind = 'browser' THEN $2::bigint ELSE $1::bigint END
             ORDER BY id LIMIT $4"
        );
        let (before, browsers) = (rule.before.as_micros(), rule.browsers_before.as_micros());
        let rows =
            transaction.query(sql, params![before, browsers, last, number(LOOKED_AT_MAX)])?;
        let ended = rows.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
        let Some(newest) = ended.last() else { break };
        last = bits(newest.id);
        pruned.extend(unneeded(transaction, &ended)?);
        if ended.len() < LOOKED_AT_MAX {
            break;
        }
    }
    pruned.truncate(limit);
    let pruned_count = pruned.len();
    let pruned = [List(pruned)];
    for sql in [
        "DELETE FROM key_stores WHERE key = ANY ($1::uuid[])",
        "DELETE FROM keys WHERE id = ANY ($1::uuid[])",
    ] {
        transaction.execute(sql, params![pruned[0]])?;
    }
    Ok(pruned_count)
}

/// Returns those ended keys that no version needs.
fn unneeded(transaction: &Transaction, ended: &[Key]) -> Result<Vec<Bits>, Error> {
    // Only keys that open something are authors.
    let authors = ended.iter().filter(|key| key.kind.opens());
    let authors = authors.map(|key| key.actor().to_string()).collect();
    let named = versions::named(transaction, authors)?;
    let newest = newest_browsers(transaction, ended)?;
    let is_superseded = |key: &Key| {
        key.kind == KeyKind::Browser
            && newest.get(&person(key)).is_some_and(|newest| *newest > key.id)
    };
    let is_needed = |key: &&Key| named.contains(&key.actor().to_string()) && !is_superseded(key);
    Ok(ended.iter().filter(|key| !is_needed(key)).map(|key| bits(key.id)).collect())
}

/// Whom a browser's key stands for.
type Person = (WorkspaceId, Option<KeyId>, String);

fn person(key: &Key) -> Person {
    (key.workspace, key.parent, key.name.to_string())
}

/// Returns the newest browser's key of each person.
fn newest_browsers(
    transaction: &Transaction,
    ended: &[Key],
) -> Result<HashMap<Person, KeyId>, Error> {
    if !ended.iter().any(|key| key.kind == KeyKind::Browser) {
        return Ok(HashMap::new());
    }
    let sql = "SELECT DISTINCT ON (workspace, parent, name) workspace, parent, name, id FROM keys
        WHERE kind = 'browser' ORDER BY workspace, parent, name, id DESC";
    let rows = transaction.query(sql, &[])?;
    let newest = rows
        .iter()
        .map(|row| Ok(((row.id(0)?, row.optional_id(1)?, row.name(2)?.to_string()), row.id(3)?)));
    newest.collect()
}
