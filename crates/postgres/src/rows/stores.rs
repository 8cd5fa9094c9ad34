//! Workspaces and stores.

use quipu_core::Error;
use quipu_core::backend::{Archived, StoreQuery, Usage};
use quipu_core::model::{
    DeletedStore, Store, StoreId, StorePolicy, Timestamp, Workspace, WorkspaceId,
};
use tokio_postgres::Row;

use super::forgetting;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, bits, json, misfit, number, params};

pub(super) fn workspaces(transaction: &Transaction) -> Result<Vec<Workspace>, Error> {
    let sql = "SELECT id, name, created_at, default_store FROM workspaces ORDER BY id";
    let rows = transaction.query(sql, &[])?;
    let workspaces = rows.iter().map(|row| {
        Ok(Workspace {
            id: row.id(0)?,
            name: row.name(1)?,
            created_at: row.moment(2)?,
            default_store: row.optional_id(3)?,
        })
    });
    workspaces.collect()
}

pub(super) fn put_workspace(transaction: &Transaction, workspace: &Workspace) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO workspaces (id, name, created_at, default_store)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name,
            default_store = excluded.default_store";
    let values = params![
        bits(workspace.id),
        workspace.name.as_str(),
        workspace.created_at.as_micros(),
        workspace.default_store.map(bits),
    ];
    transaction.execute(sql, values).map(drop)
}

/// The columns of a store, in the order of [`from_row`].
macro_rules! columns {
    () => {
        "id, workspace, name, description, metadata, secrets, expire_after_days, created_at,
            updated_at, archived_at, forgotten, writers"
    };
}
pub(crate) use columns;

pub(super) fn store(transaction: &Transaction, id: StoreId) -> Result<Option<Store>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.store(id).cloned()) {
        return Ok(Some(known));
    }
    if transaction.is_writing() && transaction.number(id)?.is_none() {
        return Ok(None);
    }
    let sql = concat!("SELECT ", columns!(), ", num FROM stores WHERE id = $1");
    let row = transaction.query_one(sql, params![bits(id)])?;
    let num = row.as_ref().map(|row| row.value(12)).transpose()?;
    transaction.note_number(id, num);
    row.map(|row| from_row(&row)).transpose()
}

pub(super) fn stores(transaction: &Transaction, query: &StoreQuery) -> Result<Vec<Store>, Error> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM stores
         WHERE workspace = $1 AND id < $2 AND created_at BETWEEN $3 AND $4
            AND ($5 OR archived_at IS NULL)
         ORDER BY id DESC LIMIT $6"
    );
    let values = params![
        bits(query.workspace),
        query.before.map_or(Bits::MAX, bits),
        query.created.first.as_micros(),
        query.created.last.as_micros(),
        query.archived == Archived::Show,
        number(query.limit),
    ];
    transaction.query(sql, values)?.iter().map(from_row).collect()
}

pub(crate) fn from_row(row: &Row) -> Result<Store, Error> {
    let expire_after_days: Option<i64> = row.value(6)?;
    Ok(Store {
        id: row.id(0)?,
        workspace: row.id(1)?,
        name: row.name(2)?,
        description: row.description(3)?,
        metadata: row.metadata(4)?,
        policy: StorePolicy {
            secrets: row.word(5)?,
            expire_after_days: expire_after_days
                .map(TryInto::try_into)
                .transpose()
                .map_err(misfit)?,
            forgotten: row.word(10)?,
            writers: row.word(11)?,
        },
        created_at: row.moment(7)?,
        updated_at: row.moment(8)?,
        archived_at: row.optional_moment(9)?,
    })
}

pub(super) fn usage(transaction: &Transaction, id: StoreId) -> Result<Usage, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.usage(id)) {
        return Ok(known);
    }
    let Some(num) = transaction.number(id)? else { return Ok(Usage::default()) };
    let sql = "SELECT memories_count, size_bytes FROM stores WHERE num = $1";
    let row = transaction.query_one(sql, params![num])?;
    let usage =
        row.map(|row| Ok(Usage { memories_count: row.count(0)?, size_bytes: row.count(1)? }));
    usage.transpose().map(Option::unwrap_or_default)
}

pub(super) fn put_store(transaction: &Transaction, store: &Store) -> Result<(), Error> {
    transaction.number(store.id)?;
    let sql = "INSERT INTO stores (id, workspace, name, description, metadata, secrets,
            expire_after_days, created_at, updated_at, archived_at, forgotten, writers)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
            metadata = excluded.metadata, secrets = excluded.secrets,
            expire_after_days = excluded.expire_after_days, updated_at = excluded.updated_at,
            archived_at = excluded.archived_at, forgotten = excluded.forgotten,
            writers = excluded.writers";
    let values = params![
        bits(store.id),
        bits(store.workspace),
        store.name.as_str(),
        store.description.as_str(),
        json(&store.metadata),
        store.policy.secrets.as_str(),
        store.policy.expire_after_days.map(i64::from),
        store.created_at.as_micros(),
        store.updated_at.as_micros(),
        store.archived_at.map(Timestamp::as_micros),
        store.policy.forgotten.as_str(),
        store.policy.writers.as_str(),
    ];
    transaction.execute(sql, values)?;
    transaction.forget_number(store.id);
    Ok(())
}

pub(super) fn deleted_stores(
    transaction: &Transaction,
    workspace: WorkspaceId,
) -> Result<Vec<DeletedStore>, Error> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", memories_count, deleted_at FROM restorable_stores
         WHERE workspace = $1 ORDER BY deleted_at DESC, id"
    );
    let rows = transaction.query(sql, params![bits(workspace)])?;
    let deleted = rows.iter().map(|row| {
        Ok(DeletedStore {
            store: from_row(row)?,
            memories_count: row.count(12)?,
            deleted_at: row.moment(13)?,
        })
    });
    deleted.collect()
}

/// Records the workspace, so that followers that could see the store learn of its deletion.
const REMEMBER_WORKSPACE: &str = "INSERT INTO deleted_stores
    SELECT id, workspace, (SELECT sequence FROM counter) FROM stores WHERE id = $1
    ON CONFLICT (id) DO UPDATE SET workspace = excluded.workspace, sequence = excluded.sequence";

/// Every other row is found through the row in `stores`, so moving that row hides all of them.
pub(super) fn delete_store(
    transaction: &Transaction,
    id: StoreId,
    at: Timestamp,
) -> Result<(), Error> {
    transaction.require_administration()?;
    transaction.number(id)?;
    let sql = concat!(
        "INSERT INTO restorable_stores (num, memories_count, size_bytes, deleted_at, ",
        columns!(),
        ") SELECT num, memories_count, size_bytes, $2, ",
        columns!(),
        " FROM stores WHERE id = $1"
    );
    transaction.execute(sql, params![bits(id), at.as_micros()])?;
    transaction.execute(REMEMBER_WORKSPACE, params![bits(id)])?;
    transaction.execute("DELETE FROM stores WHERE id = $1", params![bits(id)])?;
    transaction.forget_number(id);
    Ok(())
}

pub(super) fn restore_store(transaction: &Transaction, id: StoreId) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = concat!(
        "INSERT INTO stores (num, memories_count, size_bytes, ",
        columns!(),
        ") SELECT num, memories_count, size_bytes, ",
        columns!(),
        " FROM restorable_stores WHERE id = $1"
    );
    transaction.execute(sql, params![bits(id)])?;
    transaction.execute("DELETE FROM restorable_stores WHERE id = $1", params![bits(id)])?;
    transaction.forget_number(id);
    Ok(())
}

pub(super) fn remove_store(transaction: &Transaction, id: StoreId) -> Result<(), Error> {
    transaction.require_administration()?;
    transaction.number(id)?;
    forgetting::set_store_pending(transaction, id)?;
    // All of its rows are found only through its own, so removing that one hides them. Removing
    // thousands of rows here would block other writers. Erasing removes them in batches.
    let of_store = [
        "INSERT INTO removed_stores SELECT num FROM stores WHERE id = $1
            UNION ALL SELECT num FROM restorable_stores WHERE id = $1",
        REMEMBER_WORKSPACE,
        "DELETE FROM key_stores WHERE store = $1",
        "DELETE FROM stores WHERE id = $1",
        "DELETE FROM restorable_stores WHERE id = $1",
    ];
    for sql in of_store {
        transaction.execute(sql, params![bits(id)])?;
    }
    transaction.forget_number(id);
    Ok(())
}

/// Returns the workspace of a store that was deleted.
pub(super) fn removed_store(
    transaction: &Transaction,
    id: StoreId,
) -> Result<Option<WorkspaceId>, Error> {
    let sql = "SELECT workspace FROM deleted_stores WHERE id = $1";
    let row = transaction.query_one(sql, params![bits(id)])?;
    row.map(|row| row.id(0)).transpose()
}
