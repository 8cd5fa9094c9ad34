//! Workspaces and stores.

use quipu_core::Error;
use quipu_core::backend::{Archived, StoreQuery, Usage};
use quipu_core::model::{
    DeletedStore, Description, Metadata, Name, Store, StoreId, StorePolicy, Timestamp, Workspace,
    WorkspaceId,
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

/// The columns of a store but for its texts, in the order of [`from_row`].
macro_rules! columns {
    () => {
        "id, workspace, secrets, expire_after_days, created_at, updated_at, archived_at, forgotten,
            writers"
    };
}
pub(crate) use columns;

/// The same with its texts, of a row `s` of stores and a row `t` of their texts.
const ALL_COLUMNS: &str =
    "s.id, s.workspace, s.secrets, s.expire_after_days, s.created_at, s.updated_at,
    s.archived_at, s.forgotten, s.writers, t.name, t.description, t.metadata";

/// The condition that lets the server look in one partition for the texts of a store.
const SAME_STORE: &str = "t.store = s.num AND t.store % 16 = s.num % 16";

pub(super) fn store(transaction: &Transaction, id: StoreId) -> Result<Option<Store>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.store(id).cloned()) {
        return Ok(Some(known));
    }
    let Some((num, part)) = transaction.place(id)? else { return Ok(None) };
    let sql = format!(
        "SELECT {ALL_COLUMNS} FROM stores s JOIN store_texts_{part} t ON t.store = s.num
         WHERE s.num = $1"
    );
    let row = transaction.query_one(&sql, params![num])?;
    row.map(|row| from_row(&row)).transpose()
}

pub(super) fn stores(transaction: &Transaction, query: &StoreQuery) -> Result<Vec<Store>, Error> {
    let sql = format!(
        "SELECT {ALL_COLUMNS} FROM
            (SELECT * FROM stores
             WHERE workspace = $1 AND id < $2 AND created_at BETWEEN $3 AND $4
                AND ($5 OR archived_at IS NULL)
             ORDER BY id DESC LIMIT $6) s
         JOIN store_texts t ON {SAME_STORE} ORDER BY s.id DESC"
    );
    let values = params![
        bits(query.workspace),
        query.before.map_or(Bits::MAX, bits),
        query.created.first.as_micros(),
        query.created.last.as_micros(),
        query.archived == Archived::Show,
        number(query.limit),
    ];
    transaction.query(&sql, values)?.iter().map(from_row).collect()
}

/// How people call a store.
pub(crate) struct Texts {
    name: Name,
    description: Description,
    metadata: Metadata,
}

/// Returns the texts in three columns, beginning with this one.
pub(crate) fn texts(row: &Row, first: usize) -> Result<Texts, Error> {
    Ok(Texts {
        name: row.name(first)?,
        description: row.description(first + 1)?,
        metadata: row.metadata(first + 2)?,
    })
}

fn from_row(row: &Row) -> Result<Store, Error> {
    from_parts(row, texts(row, 9)?)
}

pub(crate) fn from_parts(row: &Row, texts: Texts) -> Result<Store, Error> {
    let expire_after_days: Option<i64> = row.value(3)?;
    Ok(Store {
        id: row.id(0)?,
        workspace: row.id(1)?,
        name: texts.name,
        description: texts.description,
        metadata: texts.metadata,
        policy: StorePolicy {
            secrets: row.word(2)?,
            expire_after_days: expire_after_days
                .map(TryInto::try_into)
                .transpose()
                .map_err(misfit)?,
            forgotten: row.word(7)?,
            writers: row.word(8)?,
        },
        created_at: row.moment(4)?,
        updated_at: row.moment(5)?,
        archived_at: row.optional_moment(6)?,
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
    let sql =
        "INSERT INTO stores (id, workspace, secrets, expire_after_days, created_at, updated_at,
            archived_at, forgotten, writers)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (id) DO UPDATE SET secrets = excluded.secrets,
            expire_after_days = excluded.expire_after_days, updated_at = excluded.updated_at,
            archived_at = excluded.archived_at, forgotten = excluded.forgotten,
            writers = excluded.writers
        RETURNING num";
    let values = params![
        bits(store.id),
        bits(store.workspace),
        store.policy.secrets.as_str(),
        store.policy.expire_after_days.map(i64::from),
        store.created_at.as_micros(),
        store.updated_at.as_micros(),
        store.archived_at.map(Timestamp::as_micros),
        store.policy.forgotten.as_str(),
        store.policy.writers.as_str(),
    ];
    let rows = transaction.execute(sql, values)?;
    let num = rows.first().ok_or_else(crate::error::damaged)?.value(0)?;
    transaction.forget_number(store.id);
    put_texts(transaction, num, store)
}

fn put_texts(transaction: &Transaction, num: i64, store: &Store) -> Result<(), Error> {
    let (num, part) = transaction.place_of(num)?;
    let sql = format!(
        "INSERT INTO store_texts_{part} (store, name, description, metadata) VALUES ($1, $2, $3, $4)
         ON CONFLICT (store) DO UPDATE SET name = excluded.name,
            description = excluded.description, metadata = excluded.metadata"
    );
    let (name, description) = (store.name.as_str(), store.description.as_str());
    let values = params![num, name, description, json(&store.metadata)];
    transaction.execute(&sql, values).map(drop)
}

pub(super) fn deleted_stores(
    transaction: &Transaction,
    workspace: WorkspaceId,
) -> Result<Vec<DeletedStore>, Error> {
    let sql = format!(
        "SELECT {ALL_COLUMNS}, s.memories_count, s.deleted_at
         FROM restorable_stores s JOIN store_texts t ON {SAME_STORE}
         WHERE s.workspace = $1 ORDER BY s.deleted_at DESC, s.id"
    );
    let rows = transaction.query(&sql, params![bits(workspace)])?;
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
    // Of one that was deleted before, only the number is left.
    let sql = "SELECT num FROM stores WHERE id = $1
        UNION ALL SELECT num FROM restorable_stores WHERE id = $1";
    let row = transaction.query_one(sql, params![bits(id)])?;
    let number = row.map(|row| row.value(0)).transpose()?;
    forgetting::set_store_pending(transaction, (id, number))?;
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
