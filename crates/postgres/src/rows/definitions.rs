//! Agents and environments.

use quipu_core::Error;
use quipu_core::backend::{Archived, DefinitionQuery};
use quipu_core::model::{Definition, DefinitionId, DefinitionKind, Timestamp, WorkspaceId};
use tokio_postgres::Row;

use crate::error::damaged;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, bits, json, number, params};

const SELECT: &str =
    "SELECT kind, id, version, workspace, name, metadata, body, created_at, updated_at,
    archived_at FROM definitions";

fn from_row(row: &Row) -> Result<Definition, Error> {
    let kind: DefinitionKind = row.word(0)?;
    let id: Bits = row.value(1)?;
    Ok(Definition {
        id: DefinitionId::from_bits(kind, id.0),
        version: row.count(2)?,
        workspace: row.id(3)?,
        name: row.name(4)?,
        metadata: row.metadata(5)?,
        body: row.optional_content(6)?.ok_or_else(damaged)?,
        created_at: row.moment(7)?,
        updated_at: row.moment(8)?,
        archived_at: row.optional_moment(9)?,
    })
}

pub(super) fn definition(
    transaction: &Transaction,
    id: DefinitionId,
) -> Result<Option<Definition>, Error> {
    Ok(versions(transaction, id, None, 1)?.pop())
}

pub(super) fn definitions(
    transaction: &Transaction,
    query: &DefinitionQuery,
) -> Result<Vec<Definition>, Error> {
    let sql = format!(
        "{SELECT} WHERE is_newest AND workspace = $1 AND kind = $2 AND id < $3
            AND created_at BETWEEN $4 AND $5 AND ($6 OR archived_at IS NULL)
         ORDER BY id DESC LIMIT $7"
    );
    let values = params![
        bits(query.workspace),
        query.kind.as_str(),
        query.before.map_or(Bits::MAX, |before| Bits(before.bits())),
        query.created.first.as_micros(),
        query.created.last.as_micros(),
        query.archived == Archived::Show,
        number(query.limit),
    ];
    transaction.query(&sql, values)?.iter().map(from_row).collect()
}

pub(super) fn versions(
    transaction: &Transaction,
    id: DefinitionId,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Definition>, Error> {
    let sql = format!(
        "{SELECT} WHERE kind = $1 AND id = $2 AND version < $3 ORDER BY version DESC LIMIT $4"
    );
    let before = before.map_or(i64::MAX, number);
    let values = params![id.kind().as_str(), Bits(id.bits()), before, number(limit)];
    transaction.query(&sql, values)?.iter().map(from_row).collect()
}

pub(super) fn count(
    transaction: &Transaction,
    workspace: WorkspaceId,
    kind: DefinitionKind,
) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM definitions WHERE is_newest AND workspace = $1 AND kind = $2";
    let row = transaction.query_one(sql, params![bits(workspace), kind.as_str()])?;
    row.map_or(Ok(0), |row| row.count(0))
}

pub(super) fn size_bytes(transaction: &Transaction, workspace: WorkspaceId) -> Result<u64, Error> {
    let sql =
        "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM definitions WHERE workspace = $1";
    let row = transaction.query_one(sql, params![bits(workspace)])?;
    row.map_or(Ok(0), |row| row.count(0))
}

pub(super) fn put(transaction: &Transaction, definition: &Definition) -> Result<(), Error> {
    transaction.require_administration()?;
    let (kind, id) = (definition.id.kind().as_str(), Bits(definition.id.bits()));
    let sql = "SELECT version FROM definitions WHERE kind = $1 AND id = $2 AND is_newest";
    let newest = transaction.query_one(sql, params![kind, id])?;
    let newest = newest.map(|row| row.count(0)).transpose()?;
    let is_newest = newest.is_none_or(|newest| newest <= definition.version);
    if is_newest {
        let sql = "UPDATE definitions SET is_newest = FALSE
            WHERE kind = $1 AND id = $2 AND is_newest";
        transaction.execute(sql, params![kind, id])?;
    }
    let sql =
        "INSERT INTO definitions (kind, id, version, workspace, name, metadata, body, created_at,
            updated_at, archived_at, is_newest)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (kind, id, version) DO UPDATE SET name = excluded.name,
            metadata = excluded.metadata, body = excluded.body, updated_at = excluded.updated_at,
            archived_at = excluded.archived_at, is_newest = excluded.is_newest
        RETURNING xmax <> 0";
    let values = params![
        kind,
        id,
        number(definition.version),
        bits(definition.workspace),
        definition.name.as_str(),
        json(&definition.metadata),
        definition.body.as_str(),
        definition.created_at.as_micros(),
        definition.updated_at.as_micros(),
        definition.archived_at.map(Timestamp::as_micros),
        is_newest,
    ];
    transaction.execute_replacing("definitions", sql, values)
}

pub(super) fn remove(transaction: &Transaction, id: DefinitionId) -> Result<(), Error> {
    transaction.require_administration()?;
    transaction.lose("definitions");
    let sql = "DELETE FROM definitions WHERE kind = $1 AND id = $2";
    transaction.execute(sql, params![id.kind().as_str(), Bits(id.bits())]).map(drop)
}
