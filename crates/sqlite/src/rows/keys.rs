//! Keys and the stores that they open.

use quipu_core::model::{Key, KeyId, SecretHash, Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at
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
            (id, workspace, name, role, secret, opens_all, created_at, expires_at, revoked_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role,
            opens_all = excluded.opens_all, expires_at = excluded.expires_at,
            revoked_at = excluded.revoked_at";
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
    ])?;
    connection.prepare_cached("DELETE FROM key_stores WHERE key = ?1")?.execute([blob(key.id)])?;
    let sql = "INSERT OR IGNORE INTO key_stores (key, store) VALUES (?1, ?2)";
    for &store in key.stores.iter().flatten() {
        connection.prepare_cached(sql)?.execute(params![blob(key.id), blob(store)])?;
    }
    Ok(())
}
