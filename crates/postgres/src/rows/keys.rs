//! Keys and the stores that they open.

use std::collections::{HashMap, HashSet};

use quipu_core::Error;
use quipu_core::backend::KeyPruneRule;
use quipu_core::model::{Key, KeyId, KeyKind, SecretHash, Timestamp, WorkspaceId};
use tokio_postgres::Row;

use crate::transaction::Transaction;
use crate::values::{Columns as _, List, Param, bits, params};

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
    let stores: Vec<crate::values::Bits> = row.value(15)?;
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

/// Removes derived keys that have ended and that no version needs.
pub(super) fn prune(
    transaction: &Transaction,
    rule: &KeyPruneRule,
    limit: usize,
) -> Result<usize, Error> {
    transaction.require_exclusive()?;
    // `least` leaves out what is NULL, unlike the comparison: a key that never expires does not end.
    let sql = select!(
        "WHERE (kind <> 'key' OR parent IS NOT NULL OR family IS NOT NULL)
           AND expires_at IS NOT NULL AND least(expires_at, revoked_at) <
               CASE WHEN kind = 'browser' THEN $2::bigint ELSE $1::bigint END
         ORDER BY id"
    );
    let moments = params![rule.before.as_micros(), rule.browsers_before.as_micros()];
    let ended =
        transaction.query(sql, moments)?.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
    // Only keys that open something are authors, and the scan for authors reads all versions.
    let has_authors = ended.iter().any(|key| key.kind.opens());
    let named = if has_authors { named(transaction)? } else { HashSet::new() };
    let newest = newest_browsers(transaction, &ended)?;
    let is_superseded = |key: &Key| {
        key.kind == KeyKind::Browser
            && newest.get(&person(key)).is_some_and(|newest| *newest > key.id)
    };
    let pruned: Vec<_> = ended
        .iter()
        .filter(|key| !named.contains(&key.actor().to_string()) || is_superseded(key))
        .map(|key| bits(key.id))
        .take(limit)
        .collect();
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

/// Returns the keys and the people that versions name.
fn named(transaction: &Transaction) -> Result<HashSet<String>, Error> {
    let sql = "SELECT actor FROM versions WHERE actor LIKE 'apikey\\_%' OR actor LIKE 'user\\_%'
        UNION SELECT redacted_by FROM versions
            WHERE redacted_by LIKE 'apikey\\_%' OR redacted_by LIKE 'user\\_%'";
    transaction.query(sql, &[])?.iter().map(|row| row.value(0)).collect()
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
