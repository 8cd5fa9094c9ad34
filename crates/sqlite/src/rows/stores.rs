//! Workspaces and stores.

use quipu_core::backend::{Archived, StoreQuery, Usage};
use quipu_core::model::{
    DeletedStore, Store, StoreId, StorePolicy, Timestamp, Workspace, WorkspaceId,
};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob, json, limit};
use crate::erase;

pub(super) fn workspaces(connection: &Connection) -> Result<Vec<Workspace>> {
    let sql = "SELECT id, name, created_at, default_store FROM workspaces ORDER BY id";
    let workspace = |row: &Row<'_>| {
        Ok(Workspace {
            id: row.id(0)?,
            name: row.name(1)?,
            created_at: row.moment(2)?,
            default_store: row.optional_id(3)?,
        })
    };
    connection.prepare_cached(sql)?.query_map([], workspace)?.collect()
}

pub(super) fn put_workspace(connection: &Connection, workspace: &Workspace) -> Result<()> {
    let sql = "INSERT INTO workspaces (id, name, created_at, default_store)
        VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name,
            default_store = excluded.default_store";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(workspace.id),
            workspace.name.as_str(),
            workspace.created_at.as_micros(),
            workspace.default_store.map(blob),
        ])
        .map(drop)
}

/// The columns of a store, in the order of [`from_row`].
macro_rules! columns {
    () => {
        "id, workspace, name, description, metadata, secrets, expire_after_days, created_at,
            updated_at, archived_at, forgotten, writers"
    };
}

macro_rules! select {
    () => {
        concat!("SELECT ", columns!(), " FROM stores")
    };
}

pub(super) fn store(connection: &Connection, id: StoreId) -> Result<Option<Store>> {
    let mut statement = connection.prepare_cached(concat!(select!(), " WHERE id = ?1"))?;
    statement.query_row([blob(id)], from_row).optional()
}

pub(super) fn stores(connection: &Connection, query: &StoreQuery) -> Result<Vec<Store>> {
    let sql = concat!(
        select!(),
        " WHERE workspace = ?1 AND id < ?2 AND created_at BETWEEN ?3 AND ?4
            AND (?5 OR archived_at IS NULL)
         ORDER BY id DESC LIMIT ?6"
    );
    let before = query.before.map_or([u8::MAX; 16], blob);
    connection
        .prepare_cached(sql)?
        .query_map(
            params![
                blob(query.workspace),
                before,
                query.created.first.as_micros(),
                query.created.last.as_micros(),
                query.archived == Archived::Show,
                limit(query.limit),
            ],
            from_row,
        )?
        .collect()
}

fn from_row(row: &Row<'_>) -> Result<Store> {
    Ok(Store {
        id: row.id(0)?,
        workspace: row.id(1)?,
        name: row.name(2)?,
        description: row.description(3)?,
        metadata: row.metadata(4)?,
        policy: StorePolicy {
            secrets: row.word(5)?,
            expire_after_days: row.get(6)?,
            forgotten: row.word(10)?,
            writers: row.word(11)?,
        },
        created_at: row.moment(7)?,
        updated_at: row.moment(8)?,
        archived_at: row.optional_moment(9)?,
    })
}

pub(super) fn usage(connection: &Connection, id: StoreId) -> Result<Usage> {
    let sql = "SELECT memories_count, size_bytes FROM stores WHERE id = ?1";
    let usage =
        |row: &Row<'_>| Ok(Usage { memories_count: row.count(0)?, size_bytes: row.count(1)? });
    let found = connection.prepare_cached(sql)?.query_row([blob(id)], usage).optional()?;
    Ok(found.unwrap_or_default())
}

pub(super) fn put_store(connection: &Connection, store: &Store) -> Result<()> {
    let sql = "INSERT INTO stores (id, workspace, name, description, metadata, secrets,
            expire_after_days, created_at, updated_at, archived_at, forgotten, writers)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
            metadata = excluded.metadata, secrets = excluded.secrets,
            expire_after_days = excluded.expire_after_days, updated_at = excluded.updated_at,
            archived_at = excluded.archived_at, forgotten = excluded.forgotten,
            writers = excluded.writers";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(store.id),
            blob(store.workspace),
            store.name.as_str(),
            store.description.as_str(),
            json(&store.metadata),
            store.policy.secrets.as_str(),
            store.policy.expire_after_days,
            store.created_at.as_micros(),
            store.updated_at.as_micros(),
            store.archived_at.map(Timestamp::as_micros),
            store.policy.forgotten.as_str(),
            store.policy.writers.as_str(),
        ])
        .map(drop)
}

pub(super) fn deleted_stores(
    connection: &Connection,
    workspace: WorkspaceId,
) -> Result<Vec<DeletedStore>> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", memories_count, deleted_at FROM restorable_stores
         WHERE workspace = ?1 ORDER BY deleted_at DESC, id"
    );
    let deleted = |row: &Row<'_>| {
        Ok(DeletedStore {
            store: from_row(row)?,
            memories_count: row.count(12)?,
            deleted_at: row.moment(13)?,
        })
    };
    connection.prepare_cached(sql)?.query_map([blob(workspace)], deleted)?.collect()
}

/// Records the workspace, so that followers that could see the store learn of its deletion.
const REMEMBER_WORKSPACE: &str = "INSERT OR REPLACE INTO deleted_stores
    SELECT id, workspace, (SELECT ifnull(max(sequence), 0) FROM changes)
    FROM stores WHERE id = ?1";

/// Every other row is found through the row in `stores`, so moving that row hides all of them.
pub(super) fn delete_store(connection: &Connection, id: StoreId, at: Timestamp) -> Result<()> {
    let sql = concat!(
        "INSERT INTO restorable_stores (num, memories_count, size_bytes, deleted_at, ",
        columns!(),
        ") SELECT num, memories_count, size_bytes, ?2, ",
        columns!(),
        " FROM stores WHERE id = ?1"
    );
    connection.execute(sql, params![blob(id), at.as_micros()])?;
    connection.execute(REMEMBER_WORKSPACE, [blob(id)])?;
    connection.execute("DELETE FROM stores WHERE id = ?1", [blob(id)]).map(drop)
}

pub(super) fn restore_store(connection: &Connection, id: StoreId) -> Result<()> {
    let sql = concat!(
        "INSERT INTO stores (num, memories_count, size_bytes, ",
        columns!(),
        ") SELECT num, memories_count, size_bytes, ",
        columns!(),
        " FROM restorable_stores WHERE id = ?1"
    );
    connection.execute(sql, [blob(id)])?;
    connection.execute("DELETE FROM restorable_stores WHERE id = ?1", [blob(id)]).map(drop)
}

pub(super) fn remove_store(connection: &Connection, id: StoreId) -> Result<()> {
    // All of its rows are found only through its own, so removing that one hides them. Removing
    // thousands of rows here would block other writers, and take as much space in the log as they have
    // in the database. Erasing removes them in batches.
    let of_store = [
        "INSERT INTO removed_stores SELECT num FROM stores WHERE id = ?1
            UNION ALL SELECT num FROM restorable_stores WHERE id = ?1",
        REMEMBER_WORKSPACE,
        "DELETE FROM key_stores WHERE store = ?1",
        "DELETE FROM stores WHERE id = ?1",
        "DELETE FROM restorable_stores WHERE id = ?1",
    ];
    for sql in of_store {
        connection.execute(sql, [blob(id)])?;
    }
    erase::set_pending(connection, id, None)
}

/// Returns the workspace of a store that was deleted.
pub(super) fn removed_store(connection: &Connection, id: StoreId) -> Result<Option<WorkspaceId>> {
    let sql = "SELECT workspace FROM deleted_stores WHERE id = ?1";
    connection.prepare_cached(sql)?.query_row([blob(id)], |row| row.id(0)).optional()
}

/// How many bytes of text of a deleted store one transaction removes.
const REMOVED_BYTES_MAX: i64 = 256 * 1024;

/// Removes at most `rows_max` rows of each table of a deleted store; returns whether there are more.
pub(crate) fn remove_deleted(connection: &Connection, rows_max: usize) -> Result<bool> {
    let sql = "SELECT num FROM removed_stores LIMIT 1";
    let removed = connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    let Some(store): Option<i64> = removed else { return Ok(false) };
    let sql = "SELECT at, ifnull(size_bytes, 0) FROM versions WHERE store = ?1 LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![store, limit(rows_max)])?;
    let (mut moments, mut bytes_count) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        moments.push(row.get(0)?);
        bytes_count += row.get::<_, i64>(1)?;
        if bytes_count >= REMOVED_BYTES_MAX {
            break;
        }
    }
    for at in &moments {
        let at: &i64 = at;
        connection.prepare_cached("DELETE FROM texts WHERE at = ?1")?.execute([at])?;
        connection.prepare_cached("DELETE FROM versions WHERE at = ?1")?.execute([at])?;
    }
    let sql = "DELETE FROM memories WHERE store = ?1 AND path IN
        (SELECT path FROM memories WHERE store = ?1 LIMIT ?2)";
    let removed = connection.prepare_cached(sql)?;
    let memories_count = { removed }.execute(params![store, limit(rows_max)])?;
    if moments.is_empty() && memories_count == 0 {
        connection.execute("DELETE FROM refusals WHERE store = ?1", [store])?;
        connection.execute("DELETE FROM tombstones WHERE store = ?1", [store])?;
        connection.execute("DELETE FROM horizons WHERE store = ?1", [store])?;
        connection.execute("DELETE FROM removed_stores WHERE num = ?1", [store])?;
    }
    Ok(true)
}
