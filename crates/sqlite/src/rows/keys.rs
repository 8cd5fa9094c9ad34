//! Keys and the stores that they open.

use std::collections::HashSet;

use quipu_core::backend::KeyPruneRule;
use quipu_core::model::{Key, KeyId, KeyKind, SecretHash, Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at,
                 kind, parent, family, used_at, payload, forwarding
             FROM keys ",
            $rest
        )
    };
}

pub(super) fn key(connection: &Connection, id: KeyId) -> Result<Option<Key>> {
    let sql = select!("WHERE id = ?1");
    let found = connection.prepare_cached(sql)?.query_row([blob(id)], from_row).optional()?;
    found.map(|key| with_stores(connection, key)).transpose()
}

pub(super) fn key_with_secret(connection: &Connection, secret: &SecretHash) -> Result<Option<Key>> {
    let sql = select!("WHERE secret = ?1");
    let found = connection.prepare_cached(sql)?.query_row([secret.as_bytes()], from_row);
    let found = found.optional()?.filter(|key: &Key| key.secret == *secret);
    found.map(|key| with_stores(connection, key)).transpose()
}

pub(super) fn keys(connection: &Connection, workspace: WorkspaceId) -> Result<Vec<Key>> {
    let sql = select!("WHERE workspace = ?1 ORDER BY id");
    let found = connection
        .prepare_cached(sql)?
        .query_map([blob(workspace)], from_row)?
        .collect::<Result<Vec<_>>>()?;
    found.into_iter().map(|key| with_stores(connection, key)).collect()
}

pub(super) fn derived_keys(
    connection: &Connection,
    workspace: WorkspaceId,
    parent: Option<KeyId>,
) -> Result<Vec<Key>> {
    let sql = select!(
        "WHERE workspace = ?1 AND parent IS ?2
           AND (kind <> 'key' OR parent IS NOT NULL OR family IS NOT NULL)
         ORDER BY id"
    );
    let found = connection
        .prepare_cached(sql)?
        .query_map(params![blob(workspace), parent.map(blob)], from_row)?
        .collect::<Result<Vec<_>>>()?;
    found.into_iter().map(|key| with_stores(connection, key)).collect()
}

/// Reads a key; an empty list stands for the stores that are still to be read.
fn from_row(row: &Row<'_>) -> Result<Key> {
    let opens_all: bool = row.get(5)?;
    Ok(Key {
        id: row.id(0)?,
        workspace: row.id(1)?,
        name: row.name(2)?,
        role: row.word(3)?,
        stores: if opens_all { None } else { Some(Vec::new()) },
        secret: row.secret(4)?,
        created_at: row.moment(6)?,
        expires_at: row.optional_moment(7)?,
        revoked_at: row.optional_moment(8)?,
        kind: row.word(9)?,
        parent: row.optional_id(10)?,
        family: row.optional_id(11)?,
        used_at: row.optional_moment(12)?,
        payload: row.get(13)?,
        forwarding: row.word(14)?,
    })
}

fn with_stores(connection: &Connection, key: Key) -> Result<Key> {
    if key.stores.is_none() {
        return Ok(key);
    }
    let sql = "SELECT store FROM key_stores WHERE key = ?1 ORDER BY store";
    let stores = connection
        .prepare_cached(sql)?
        .query_map([blob(key.id)], |row| row.id(0))?
        .collect::<Result<Vec<_>>>()?;
    Ok(Key { stores: Some(stores), ..key })
}

pub(super) fn put_key(connection: &Connection, key: &Key) -> Result<()> {
    let sql = "INSERT INTO keys
            (id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at,
             kind, parent, family, used_at, payload, forwarding)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role,
            opens_all = excluded.opens_all, expires_at = excluded.expires_at,
            revoked_at = excluded.revoked_at, used_at = excluded.used_at,
            payload = excluded.payload, forwarding = excluded.forwarding";
    connection.prepare_cached(sql)?.execute(params![
        blob(key.id),
        blob(key.workspace),
        key.name.as_str(),
        key.role.as_str(),
        key.secret.as_bytes(),
        key.stores.is_none(),
        key.created_at.as_micros(),
        key.expires_at.map(Timestamp::as_micros),
        key.revoked_at.map(Timestamp::as_micros),
        key.kind.as_str(),
        key.parent.map(blob),
        key.family.map(blob),
        key.used_at.map(Timestamp::as_micros),
        key.payload,
        key.forwarding.as_str(),
    ])?;
    connection.prepare_cached("DELETE FROM key_stores WHERE key = ?1")?.execute([blob(key.id)])?;
    let sql = "INSERT OR IGNORE INTO key_stores (key, store) VALUES (?1, ?2)";
    for &store in key.stores.iter().flatten() {
        connection.prepare_cached(sql)?.execute(params![blob(key.id), blob(store)])?;
    }
    Ok(())
}

/// Removes derived keys that have ended and that no version needs.
pub(super) fn prune(connection: &Connection, rule: &KeyPruneRule, at_most: usize) -> Result<usize> {
    let sql = select!(
        "WHERE (kind <> 'key' OR parent IS NOT NULL OR family IS NOT NULL)
           AND min(expires_at, ifnull(revoked_at, expires_at)) < iif(kind = 'browser', ?2, ?1)"
    );
    let moments = [rule.before.as_micros(), rule.browsers_before.as_micros()];
    let ended = connection
        .prepare_cached(sql)?
        .query_map(moments, from_row)?
        .collect::<Result<Vec<_>>>()?;
    // Only keys that open something are authors, and the scan for authors reads all versions.
    let has_authors = ended.iter().any(|key| key.kind.opens());
    let named = if has_authors { named(connection)? } else { HashSet::new() };
    let mut pruned_count = 0;
    for key in ended {
        if pruned_count == at_most {
            break;
        }
        if named.contains(&key.actor().to_string()) && !is_superseded(connection, &key)? {
            continue;
        }
        for sql in ["DELETE FROM key_stores WHERE key = ?1", "DELETE FROM keys WHERE id = ?1"] {
            connection.prepare_cached(sql)?.execute([blob(key.id)])?;
        }
        pruned_count += 1;
    }
    Ok(pruned_count)
}

/// Returns the keys and the people that versions name.
fn named(connection: &Connection) -> Result<HashSet<String>> {
    let sql = "SELECT actor FROM versions WHERE actor GLOB 'apikey_*' OR actor GLOB 'user_*'
        UNION SELECT redacted_by FROM versions
            WHERE redacted_by GLOB 'apikey_*' OR redacted_by GLOB 'user_*'";
    connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns whether a newer browser's key stands for the same person.
fn is_superseded(connection: &Connection, key: &Key) -> Result<bool> {
    if key.kind != KeyKind::Browser {
        return Ok(false);
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM keys
        WHERE workspace = ?1 AND parent IS ?2 AND kind = 'browser' AND name = ?3 AND id > ?4)";
    let values =
        params![blob(key.workspace), key.parent.map(blob), key.name.as_str(), blob(key.id)];
    connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
}
