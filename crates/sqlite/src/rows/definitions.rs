//! Agents and environments.

use quipu_core::backend::{Archived, DefinitionQuery};
use quipu_core::model::{Definition, DefinitionId, DefinitionKind, Timestamp, WorkspaceId};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob, json, limit};

const SELECT: &str =
    "SELECT kind, id, version, workspace, name, metadata, body, created_at, updated_at,
    archived_at FROM definitions";

fn bytes(id: DefinitionId) -> [u8; 16] {
    id.bits().to_be_bytes()
}

fn from_row(row: &Row<'_>) -> Result<Definition> {
    let kind: DefinitionKind = row.word(0)?;
    Ok(Definition {
        id: DefinitionId::from_bits(kind, u128::from_be_bytes(row.get(1)?)),
        version: row.count(2)?,
        workspace: row.id(3)?,
        name: row.name(4)?,
        metadata: row.metadata(5)?,
        body: row.content(6)?,
        created_at: row.moment(7)?,
        updated_at: row.moment(8)?,
        archived_at: row.optional_moment(9)?,
    })
}

pub(super) fn definition(connection: &Connection, id: DefinitionId) -> Result<Option<Definition>> {
    Ok(versions(connection, id, None, 1)?.pop())
}

pub(super) fn definitions(
    connection: &Connection,
    query: &DefinitionQuery,
) -> Result<Vec<Definition>> {
    let sql = format!(
        "{SELECT} WHERE is_newest AND workspace = ?1 AND kind = ?2 AND id < ?3
            AND created_at BETWEEN ?4 AND ?5 AND (?6 OR archived_at IS NULL)
         ORDER BY id DESC LIMIT ?7"
    );
    connection
        .prepare_cached(&sql)?
        .query_map(
            params![
                blob(query.workspace),
                query.kind.as_str(),
                query.before.map_or([u8::MAX; 16], bytes),
                query.created.first.as_micros(),
                query.created.last.as_micros(),
                query.archived == Archived::Show,
                limit(query.limit),
            ],
            from_row,
        )?
        .collect()
}

pub(super) fn versions(
    connection: &Connection,
    id: DefinitionId,
    before: Option<u64>,
    limit_count: usize,
) -> Result<Vec<Definition>> {
    let sql = format!(
        "{SELECT} WHERE kind = ?1 AND id = ?2 AND version < ?3 ORDER BY version DESC LIMIT ?4"
    );
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    connection
        .prepare_cached(&sql)?
        .query_map(params![id.kind().as_str(), bytes(id), before, limit(limit_count)], from_row)?
        .collect()
}

pub(super) fn count(
    connection: &Connection,
    workspace: WorkspaceId,
    kind: DefinitionKind,
) -> Result<u64> {
    let sql = "SELECT count(*) FROM definitions WHERE is_newest AND workspace = ?1 AND kind = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row(params![blob(workspace), kind.as_str()], |row| row.count(0))
}

pub(super) fn size_bytes(connection: &Connection, workspace: WorkspaceId) -> Result<u64> {
    let sql = "SELECT ifnull(sum(octet_length(body)), 0) FROM definitions WHERE workspace = ?1";
    connection.prepare_cached(sql)?.query_row([blob(workspace)], |row| row.count(0))
}

pub(super) fn put(connection: &Connection, definition: &Definition) -> Result<()> {
    let (kind, id) = (definition.id.kind().as_str(), bytes(definition.id));
    let sql = "SELECT version FROM definitions WHERE kind = ?1 AND id = ?2 AND is_newest";
    let newest: Option<u64> = connection
        .prepare_cached(sql)?
        .query_row(params![kind, id], |row| row.count(0))
        .optional()?;
    let is_newest = newest.is_none_or(|newest| newest <= definition.version);
    if is_newest {
        let sql = "UPDATE definitions SET is_newest = 0 WHERE kind = ?1 AND id = ?2 AND is_newest";
        connection.prepare_cached(sql)?.execute(params![kind, id])?;
    }
    let sql =
        "INSERT INTO definitions (kind, id, version, workspace, name, metadata, body, created_at,
            updated_at, archived_at, is_newest)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (kind, id, version) DO UPDATE SET name = excluded.name,
            metadata = excluded.metadata, body = excluded.body, updated_at = excluded.updated_at,
            archived_at = excluded.archived_at, is_newest = excluded.is_newest";
    connection
        .prepare_cached(sql)?
        .execute(params![
            kind,
            id,
            definition.version,
            blob(definition.workspace),
            definition.name.as_str(),
            json(&definition.metadata),
            definition.body.as_str(),
            definition.created_at.as_micros(),
            definition.updated_at.as_micros(),
            definition.archived_at.map(Timestamp::as_micros),
            is_newest,
        ])
        .map(drop)
}

pub(super) fn remove(connection: &Connection, id: DefinitionId) -> Result<()> {
    let sql = "DELETE FROM definitions WHERE kind = ?1 AND id = ?2";
    connection.prepare_cached(sql)?.execute(params![id.kind().as_str(), bytes(id)]).map(drop)
}
