//! Sessions and their attachments.

use std::collections::HashMap;

use quipu_core::Error;
use quipu_core::backend::{Archived, Order, SessionQuery};
use quipu_core::model::{
    Access, Actor, Attachment, KeyId, Role, SecretHash, Session, SessionId, Timestamp, WorkspaceId,
};
use tokio_postgres::Row;

use super::{events, versions};
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, Param, bits, json, number, params};

const COLUMNS: &str = "id, workspace, title, metadata, details, token, created_at, \
    updated_at, archived_at, token_expires_at, key";

/// What a key sees, as `Key::sees` says: $8 is the key, $9 whether it may write, $10 whether it sees
/// sessions without stores, $11 whether it is limited to some stores, $12 the key that it was derived from.
const VISIBLE: &str = "($8::uuid IS NULL OR s.key = $8 OR
    CASE WHEN EXISTS (SELECT 1 FROM attachments a WHERE a.session = s.id)
        THEN NOT EXISTS (SELECT 1 FROM attachments a WHERE a.session = s.id AND (
            NOT (a.access = 'read_only' OR $9 AND a.access = 'read_write')
            OR ($11 AND NOT EXISTS
            (SELECT 1 FROM key_stores k WHERE k.key = $8 AND k.store = a.store))))
        ELSE $10 OR s.key IS NOT NULL AND s.key = $12 END)";

pub(super) fn session(transaction: &Transaction, id: SessionId) -> Result<Option<Session>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1");
    Ok(found(transaction, &sql, params![bits(id)])?.into_iter().next())
}

pub(super) fn session_with_token(
    transaction: &Transaction,
    token: &SecretHash,
) -> Result<Option<Session>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE token = $1");
    Ok(found(transaction, &sql, params![token.as_bytes().as_slice()])?.into_iter().next())
}

pub(super) fn sessions(
    transaction: &Transaction,
    query: &SessionQuery,
) -> Result<Vec<Session>, Error> {
    let (comparison, direction, start) = match query.order {
        Order::NewestFirst => ("<", "DESC", Bits::MAX),
        Order::OldestFirst => (">", "ASC", Bits(0)),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions s
         WHERE workspace = $1 AND id {comparison} $2 AND created_at BETWEEN $3 AND $4
           AND ($5 OR archived_at IS NULL)
           AND ($6::uuid IS NULL OR EXISTS
                (SELECT 1 FROM attachments a WHERE a.store = $6 AND a.session = s.id))
           AND {VISIBLE}
         ORDER BY id {direction} LIMIT $7"
    );
    let viewer = query.viewer.as_ref();
    let is_limited = viewer.is_some_and(|key| key.stores.is_some());
    if viewer.is_some_and(|key| key.workspace != query.workspace) {
        return Ok(Vec::new());
    }
    let values = params![
        bits(query.workspace),
        query.after.map_or(start, bits),
        query.created.first.as_micros(),
        query.created.last.as_micros(),
        query.archived == Archived::Show,
        query.store.map(bits),
        number(query.limit),
        viewer.map(|key| bits(key.id)),
        viewer.is_some_and(|key| key.role.covers(Access::ReadWrite)),
        viewer.is_some_and(|key| !is_limited || key.role == Role::Admin),
        is_limited,
        viewer.and_then(|key| key.parent).map(bits),
    ];
    found(transaction, &sql, values)
}

/// Reads sessions, and then the attachments of all of them.
fn found(
    transaction: &Transaction,
    sql: &str,
    params: &[Param<'_>],
) -> Result<Vec<Session>, Error> {
    let rows = transaction.query(sql, params)?;
    let mut sessions = rows.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
    if sessions.is_empty() {
        return Ok(sessions);
    }
    let ids: Vec<_> = sessions.iter().map(|session| bits(session.id)).collect();
    let mut attachments = attachments(transaction, ids)?;
    for session in &mut sessions {
        session.attachments = attachments.remove(&session.id).unwrap_or_default();
    }
    Ok(sessions)
}

fn attachments(
    transaction: &Transaction,
    sessions: Vec<Bits>,
) -> Result<HashMap<SessionId, Vec<Attachment>>, Error> {
    let sql =
        "SELECT store, access, instructions, name, description, slug, session FROM attachments
        WHERE session = ANY ($1::uuid[]) ORDER BY session, position";
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for row in transaction.query(sql, params![List(sessions)])? {
        let attachment = Attachment {
            store: row.id(0)?,
            access: row.word(1)?,
            instructions: row.instructions(2)?,
            name: row.name(3)?,
            description: row.description(4)?,
            slug: row.raw_text(5)?,
        };
        found.entry(row.id(6)?).or_default().push(attachment);
    }
    Ok(found)
}

fn from_row(row: &Row) -> Result<Session, Error> {
    Ok(Session {
        id: row.id(0)?,
        workspace: row.id(1)?,
        title: row.raw_text(2)?,
        metadata: row.metadata(3)?,
        details: row.raw_text(4)?,
        attachments: Vec::new(),
        token: row.optional_secret(5)?,
        created_at: row.moment(6)?,
        updated_at: row.moment(7)?,
        archived_at: row.optional_moment(8)?,
        token_expires_at: row.optional_moment(9)?,
        key: row.optional_id(10)?,
    })
}

pub(super) fn sessions_of_key(
    transaction: &Transaction,
    key: KeyId,
) -> Result<Vec<SessionId>, Error> {
    let sql = "SELECT session FROM session_keys WHERE key = $1 ORDER BY session";
    transaction.query(sql, params![bits(key)])?.iter().map(|row| row.id(0)).collect()
}

pub(super) fn sessions_count(
    transaction: &Transaction,
    workspace: WorkspaceId,
) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM sessions WHERE workspace = $1";
    let row = transaction.query_one(sql, params![bits(workspace)])?;
    row.map_or(Ok(0), |row| row.count(0))
}

pub(super) fn put_session(transaction: &Transaction, session: &Session) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO sessions
            (id, workspace, title, metadata, details, token, created_at, updated_at, archived_at,
             token_expires_at, key)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (id) DO UPDATE SET title = excluded.title, metadata = excluded.metadata,
            details = excluded.details, token = excluded.token,
            updated_at = excluded.updated_at, archived_at = excluded.archived_at,
            token_expires_at = excluded.token_expires_at, key = excluded.key
        RETURNING xmax <> 0";
    let values = params![
        bits(session.id),
        bits(session.workspace),
        session.title.as_bytes(),
        json(&session.metadata),
        session.details.as_bytes(),
        session.token.as_ref().map(|token| SecretHash::as_bytes(token).as_slice()),
        session.created_at.as_micros(),
        session.updated_at.as_micros(),
        session.archived_at.map(Timestamp::as_micros),
        session.token_expires_at.map(Timestamp::as_micros),
        session.key.map(bits),
    ];
    transaction.execute_replacing("sessions", sql, values)?;
    if let Some(key) = session.key {
        // Together with the parent of the key, which is known only as long as the key is kept.
        let sql = "INSERT INTO session_keys (key, session)
            SELECT $1, $2 UNION SELECT parent, $2 FROM keys WHERE id = $1 AND parent IS NOT NULL
            ON CONFLICT DO NOTHING";
        transaction.execute(sql, params![bits(key), bits(session.id)])?;
    }
    detach_all(transaction, session.id)?;
    put_attachments(transaction, session)
}

fn put_attachments(transaction: &Transaction, session: &Session) -> Result<(), Error> {
    let attachments = &session.attachments;
    if attachments.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO attachments
            (session, position, store, access, instructions, name, description, slug)
        SELECT $1, a.* FROM unnest($2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[],
            $7::text[], $8::bytea[]) a";
    let texts = |text: fn(&Attachment) -> &str| List(attachments.iter().map(text).collect());
    let values = params![
        bits(session.id),
        List((0_i64..).take(attachments.len()).collect()),
        List(attachments.iter().map(|attachment| bits(attachment.store)).collect()),
        texts(|attachment| attachment.access.as_str()),
        texts(|attachment| attachment.instructions.as_str()),
        texts(|attachment| attachment.name.as_str()),
        texts(|attachment| attachment.description.as_str()),
        List(attachments.iter().map(|attachment| attachment.slug.as_bytes()).collect()),
    ];
    transaction.execute(sql, values).map(drop)
}

/// How many sessions are looked at in one transaction.
const LOOKED_AT_MAX: usize = 10_000;

/// Removes ended sessions that no version names.
///
/// A version that is made meanwhile names no session that ended long ago, so nobody is kept from writing.
pub(super) fn prune(
    transaction: &Transaction,
    before: Timestamp,
    limit: usize,
) -> Result<usize, Error> {
    transaction.require_administration()?;
    let (mut pruned, mut last) = (Vec::new(), Bits(0));
    while pruned.len() < limit {
        let sql = "SELECT id FROM sessions s WHERE id > $2 AND updated_at < $1
                AND (archived_at < $1 OR archived_at IS NULL
                    AND (token IS NULL OR token_expires_at < $1 OR EXISTS
                        (SELECT 1 FROM keys k WHERE k.id = s.key AND k.revoked_at < $1)))
            ORDER BY id LIMIT $3";
        let values = params![before.as_micros(), last, number(LOOKED_AT_MAX)];
        let over = ids(transaction, sql, values)?;
        let Some(newest) = over.last() else { break };
        last = bits(*newest);
        let is_last = over.len() < LOOKED_AT_MAX;
        pruned.extend(unnamed(transaction, over)?);
        if is_last {
            break;
        }
    }
    pruned.truncate(limit);
    events::remove_all(transaction, &pruned)?;
    let removed = [List(pruned.iter().map(|id| bits(*id)).collect::<Vec<_>>())];
    for sql in [
        "DELETE FROM attachments WHERE session = ANY ($1::uuid[])",
        "DELETE FROM sessions WHERE id = ANY ($1::uuid[])",
    ] {
        transaction.execute(sql, params![removed[0]])?;
    }
    let sql = "SELECT DISTINCT session FROM session_keys k
        WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = k.session) LIMIT $1";
    let gone = ids(transaction, sql, params![number(LOOKED_AT_MAX)])?;
    let forgotten = unnamed(transaction, gone)?.into_iter().map(bits);
    let sql = "DELETE FROM session_keys WHERE session = ANY ($1::uuid[])";
    transaction.execute(sql, params![List(forgotten.collect::<Vec<_>>())])?;
    Ok(pruned.len())
}

/// Returns those sessions that no version names.
fn unnamed(transaction: &Transaction, ids: Vec<SessionId>) -> Result<Vec<SessionId>, Error> {
    let actor = |id: &SessionId| Actor::Session(*id).to_string();
    let named = versions::named(transaction, ids.iter().map(actor).collect())?;
    Ok(ids.into_iter().filter(|id| !named.contains(&actor(id))).collect())
}

fn ids(
    transaction: &Transaction,
    sql: &str,
    params: &[Param<'_>],
) -> Result<Vec<SessionId>, Error> {
    transaction.query(sql, params)?.iter().map(|row| row.id(0)).collect()
}

pub(super) fn remove_session(transaction: &Transaction, id: SessionId) -> Result<(), Error> {
    transaction.require_administration()?;
    events::remove_all(transaction, &[id])?;
    detach_all(transaction, id)?;
    transaction.lose("sessions");
    transaction.execute("DELETE FROM sessions WHERE id = $1", params![bits(id)]).map(drop)
}

fn detach_all(transaction: &Transaction, id: SessionId) -> Result<(), Error> {
    transaction.lose("attachments");
    let sql = "DELETE FROM attachments WHERE session = $1";
    transaction.execute(sql, params![bits(id)]).map(drop)
}
