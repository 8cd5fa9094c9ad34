//! Sessions and their attachments.

use std::collections::HashSet;

use quipu_core::backend::{Archived, Order, SessionQuery};
use quipu_core::model::{
    Access, Actor, Attachment, KeyId, Role, SecretHash, Session, SessionId, Timestamp, WorkspaceId,
};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob, json, limit};
use super::events;

const COLUMNS: &str = "id, workspace, title, metadata, details, token, created_at, \
    updated_at, archived_at, token_expires_at, key";

/// What a key sees, as `Key::sees` says: ?8 is the key, ?9 whether it may write, ?10 whether it sees
/// sessions without stores, ?11 whether it is limited to some stores, ?12 the key that it was derived from.
const VISIBLE: &str = "(?8 IS NULL OR s.key = ?8 OR
    CASE WHEN EXISTS (SELECT 1 FROM attachments a WHERE a.session = s.id)
        THEN NOT EXISTS (SELECT 1 FROM attachments a WHERE a.session = s.id AND (
            a.access NOT IN ('read_only', iif(?9, 'read_write', 'read_only')) OR (?11 AND NOT EXISTS
            (SELECT 1 FROM key_stores k WHERE k.key = ?8 AND k.store = a.store))))
        ELSE ?10 OR s.key IS NOT NULL AND s.key IS ?12 END)";

pub(super) fn session(connection: &Connection, id: SessionId) -> Result<Option<Session>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1");
    let found = connection.prepare_cached(&sql)?.query_row([blob(id)], from_row).optional()?;
    found.map(|session| with_attachments(connection, session)).transpose()
}

pub(super) fn session_with_token(
    connection: &Connection,
    token: &SecretHash,
) -> Result<Option<Session>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE token = ?1");
    let found = connection.prepare_cached(&sql)?.query_row([token.as_bytes()], from_row);
    let found = found.optional()?.filter(|session: &Session| session.token == Some(*token));
    found.map(|session| with_attachments(connection, session)).transpose()
}

pub(super) fn sessions(connection: &Connection, query: &SessionQuery) -> Result<Vec<Session>> {
    let (comparison, direction, start) = match query.order {
        Order::NewestFirst => ("<", "DESC", [u8::MAX; 16]),
        Order::OldestFirst => (">", "ASC", [0; 16]),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s
         WHERE workspace = ?1 AND id {comparison} ?2 AND created_at BETWEEN ?3 AND ?4
           AND (?5 OR archived_at IS NULL)
           AND (?6 IS NULL OR EXISTS
                (SELECT 1 FROM attachments a WHERE a.store = ?6 AND a.session = s.id))
           AND {VISIBLE}
         ORDER BY id {direction} LIMIT ?7"
    );
    let viewer = query.viewer.as_ref();
    let is_limited = viewer.is_some_and(|key| key.stores.is_some());
    if viewer.is_some_and(|key| key.workspace != query.workspace) {
        return Ok(Vec::new());
    }
    let found = connection
        .prepare_cached(&sql)?
        .query_map(
            params![
                blob(query.workspace),
                query.after.map_or(start, blob),
                query.created.first.as_micros(),
                query.created.last.as_micros(),
                query.archived == Archived::Show,
                query.store.map(blob),
                limit(query.limit),
                viewer.map(|key| blob(key.id)),
                viewer.is_some_and(|key| key.role.covers(Access::ReadWrite)),
                viewer.is_some_and(|key| !is_limited || key.role == Role::Admin),
                is_limited,
                viewer.and_then(|key| key.parent).map(blob),
            ],
            from_row,
        )?
        .collect::<Result<Vec<_>>>()?;
    found.into_iter().map(|session| with_attachments(connection, session)).collect()
}

fn from_row(row: &Row<'_>) -> Result<Session> {
    Ok(Session {
        id: row.id(0)?,
        workspace: row.id(1)?,
        title: row.get(2)?,
        metadata: row.metadata(3)?,
        details: row.get(4)?,
        attachments: Vec::new(),
        token: if row.is_null(5)? { None } else { Some(row.secret(5)?) },
        created_at: row.moment(6)?,
        updated_at: row.moment(7)?,
        archived_at: row.optional_moment(8)?,
        token_expires_at: row.optional_moment(9)?,
        key: row.optional_id(10)?,
    })
}

fn with_attachments(connection: &Connection, session: Session) -> Result<Session> {
    let sql = "SELECT store, access, instructions, name, description, slug FROM attachments
        WHERE session = ?1 ORDER BY position";
    let attachment = |row: &Row<'_>| {
        Ok(Attachment {
            store: row.id(0)?,
            access: row.word(1)?,
            instructions: row.instructions(2)?,
            name: row.name(3)?,
            description: row.description(4)?,
            slug: row.get(5)?,
        })
    };
    let attachments = connection
        .prepare_cached(sql)?
        .query_map([blob(session.id)], attachment)?
        .collect::<Result<Vec<_>>>()?;
    Ok(Session { attachments, ..session })
}

pub(super) fn sessions_of_key(connection: &Connection, key: KeyId) -> Result<Vec<SessionId>> {
    let sql = "SELECT session FROM session_keys WHERE key = ?1 ORDER BY session";
    connection.prepare_cached(sql)?.query_map([blob(key)], |row| row.id(0))?.collect()
}

pub(super) fn put_session(connection: &Connection, session: &Session) -> Result<()> {
    let sql = "INSERT INTO sessions
            (id, workspace, title, metadata, details, token, created_at, updated_at, archived_at,
             token_expires_at, key)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (id) DO UPDATE SET title = excluded.title, metadata = excluded.metadata,
            details = excluded.details, token = excluded.token,
            updated_at = excluded.updated_at, archived_at = excluded.archived_at,
            token_expires_at = excluded.token_expires_at, key = excluded.key";
    connection.prepare_cached(sql)?.execute(params![
        blob(session.id),
        blob(session.workspace),
        session.title,
        json(&session.metadata),
        session.details,
        session.token.as_ref().map(SecretHash::as_bytes),
        session.created_at.as_micros(),
        session.updated_at.as_micros(),
        session.archived_at.map(Timestamp::as_micros),
        session.token_expires_at.map(Timestamp::as_micros),
        session.key.map(blob),
    ])?;
    if let Some(key) = session.key {
        // Together with the parent of the key, which is known only as long as the key is kept.
        let sql = "INSERT OR IGNORE INTO session_keys VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute([blob(key), blob(session.id)])?;
        let sql = "INSERT OR IGNORE INTO session_keys
            SELECT parent, ?2 FROM keys WHERE id = ?1 AND parent IS NOT NULL";
        connection.prepare_cached(sql)?.execute([blob(key), blob(session.id)])?;
    }
    detach_all(connection, session.id)?;
    let sql = "INSERT INTO attachments
            (session, position, store, access, instructions, name, description, slug)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    for (position, attachment) in (0_i64..).zip(&session.attachments) {
        connection.prepare_cached(sql)?.execute(params![
            blob(session.id),
            position,
            blob(attachment.store),
            attachment.access.as_str(),
            attachment.instructions.as_str(),
            attachment.name.as_str(),
            attachment.description.as_str(),
            attachment.slug,
        ])?;
    }
    Ok(())
}

pub(super) fn sessions_count(connection: &Connection, workspace: WorkspaceId) -> Result<u64> {
    let sql = "SELECT count(*) FROM sessions WHERE workspace = ?1";
    connection.prepare_cached(sql)?.query_row([blob(workspace)], |row| row.count(0))
}

/// Removes ended sessions that no version names.
pub(super) fn prune(connection: &Connection, before: Timestamp, at_most: usize) -> Result<usize> {
    let sql = "SELECT id FROM sessions s WHERE updated_at < ?1 AND (archived_at < ?1
        OR archived_at IS NULL AND (token IS NULL OR token_expires_at < ?1 OR EXISTS
            (SELECT 1 FROM keys k WHERE k.id = s.key AND k.revoked_at < ?1)))";
    let over = connection
        .prepare_cached(sql)?
        .query_map([before.as_micros()], |row| row.id(0))?
        .collect::<Result<Vec<SessionId>>>()?;
    let sql = "SELECT DISTINCT session FROM session_keys
        WHERE session NOT IN (SELECT id FROM sessions)";
    let gone = connection
        .prepare_cached(sql)?
        .query_map([], |row| row.id(0))?
        .collect::<Result<Vec<SessionId>>>()?;
    if over.is_empty() && gone.is_empty() {
        return Ok(0);
    }
    // Versions are not indexed by their authors: one scan for all sessions costs less than an
    // index that every write maintains.
    let sql = "SELECT actor FROM versions WHERE actor GLOB 'sesn_*'
        UNION SELECT redacted_by FROM versions WHERE redacted_by GLOB 'sesn_*'";
    let named = connection
        .prepare_cached(sql)?
        .query_map([], |row| row.get(0))?
        .collect::<Result<HashSet<String>>>()?;
    let is_unnamed = |id: &SessionId| !named.contains(&Actor::Session(*id).to_string());
    let pruned: Vec<_> = over.into_iter().filter(is_unnamed).take(at_most).collect();
    pruned.iter().try_for_each(|id| remove_session(connection, *id))?;
    for id in gone.iter().filter(|id| is_unnamed(id)).chain(&pruned) {
        let sql = "DELETE FROM session_keys WHERE session = ?1";
        connection.prepare_cached(sql)?.execute([blob(*id)])?;
    }
    Ok(pruned.len())
}

pub(super) fn remove_session(connection: &Connection, id: SessionId) -> Result<()> {
    events::remove_all(connection, id)?;
    detach_all(connection, id)?;
    connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([blob(id)]).map(drop)
}

fn detach_all(connection: &Connection, id: SessionId) -> Result<()> {
    let sql = "DELETE FROM attachments WHERE session = ?1";
    connection.prepare_cached(sql)?.execute([blob(id)]).map(drop)
}
