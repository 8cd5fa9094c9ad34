//! The events of sessions.
//!
//! A session is locked by its own row. The workspace's row is changed last: it is shared by all sessions.

use std::collections::BTreeMap;

use quipu_core::Error;
use quipu_core::backend::{Order, SessionEventQuery};
use quipu_core::model::{
    Content, EventType, EventUsage, Redaction, SessionEvent, SessionId, Timestamp, View,
    WorkspaceId,
};
use tokio_postgres::Row;

use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, bits, misfit, number, params};

const COLUMNS: &str = "session, number, id, at, kind, actor, size_bytes, redacted_at, redacted_by";

fn from_row(row: &Row) -> Result<SessionEvent, Error> {
    let redaction = match row.optional_moment(7)? {
        Some(at) => Some(Redaction { at, by: row.word(8)? }),
        None => None,
    };
    Ok(SessionEvent {
        session: row.id(0)?,
        number: row.count(1)?,
        id: row.id(2)?,
        at: row.moment(3)?,
        kind: EventType::new(row.value(4)?).map_err(misfit)?,
        actor: row.word(5)?,
        size_bytes: row.count(6)?,
        redaction,
        body: row.optional_content(9)?,
    })
}

pub(super) fn events(
    transaction: &Transaction,
    session: SessionId,
    query: &SessionEventQuery,
) -> Result<Vec<SessionEvent>, Error> {
    let (comparison, direction, start) = match query.order {
        Order::NewestFirst => ("<", "DESC", i64::MAX),
        Order::OldestFirst => (">", "ASC", 0),
    };
    let body = match query.view {
        View::Full => "body",
        View::Basic => "NULL::text",
    };
    let part = transaction.session_part(session)?;
    let sql = format!(
        "SELECT {COLUMNS}, {body} FROM session_events_{part}
         WHERE session = $1 AND number {comparison} $2 AND at BETWEEN $3 AND $4
           AND (cardinality($5::text[]) = 0 OR kind = ANY ($5))
         ORDER BY number {direction} LIMIT $6"
    );
    let kinds: Vec<_> = query.kinds.iter().map(EventType::as_str).collect();
    let kinds = [List(kinds)];
    let values = params![
        bits(session),
        query.after.map_or(start, number),
        query.recorded.first.as_micros(),
        query.recorded.last.as_micros(),
        kinds[0],
        number(query.limit),
    ];
    transaction.query(&sql, values)?.iter().map(from_row).collect()
}

pub(super) fn usage(transaction: &Transaction, session: SessionId) -> Result<EventUsage, Error> {
    let sql =
        "SELECT newest, newest_at, events_count, size_bytes FROM event_usage WHERE session = $1";
    let Some(row) = transaction.query_one(sql, params![bits(session)])? else {
        return Ok(EventUsage::default());
    };
    Ok(EventUsage {
        newest: row.count(0)?,
        newest_at: Some(row.moment(1)?),
        events_count: row.count(2)?,
        size_bytes: row.count(3)?,
    })
}

pub(super) fn size_bytes(transaction: &Transaction, workspace: WorkspaceId) -> Result<u64, Error> {
    let sql = "SELECT events_size_bytes FROM workspaces WHERE id = $1";
    let row = transaction.query_one(sql, params![bits(workspace)])?;
    row.map_or(Ok(0), |row| row.count(0))
}

pub(super) fn add(transaction: &Transaction, event: &SessionEvent) -> Result<(), Error> {
    transaction.require_session(event.session)?;
    let part = transaction.session_part(event.session)?;
    let sql = format!(
        "INSERT INTO session_events_{part}
            (session, number, id, at, kind, actor, size_bytes, redacted_at, redacted_by, body)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let values = params![
        bits(event.session),
        number(event.number),
        bits(event.id),
        event.at.as_micros(),
        event.kind.as_str(),
        event.actor.to_string(),
        number(event.size_bytes),
        event.redaction.as_ref().map(|redaction| redaction.at.as_micros()),
        event.redaction.as_ref().map(|redaction| redaction.by.to_string()),
        event.body.as_ref().map(Content::as_str),
    ];
    transaction.execute(&sql, values)?;
    let sql = "INSERT INTO event_usage VALUES ($1, $2, $3, 1, $4)
        ON CONFLICT (session) DO UPDATE SET newest = excluded.newest,
            newest_at = excluded.newest_at, events_count = event_usage.events_count + 1,
            size_bytes = event_usage.size_bytes + excluded.size_bytes";
    let values = params![
        bits(event.session),
        number(event.number),
        event.at.as_micros(),
        number(event.size_bytes),
    ];
    transaction.execute(sql, values)?;
    grow(transaction, event.session, number(event.size_bytes))
}

/// Changes what the workspace of a session holds.
fn grow(transaction: &Transaction, session: SessionId, size_bytes: i64) -> Result<(), Error> {
    let sql = "UPDATE workspaces SET events_size_bytes = events_size_bytes + $2
        WHERE id = (SELECT workspace FROM sessions WHERE id = $1)";
    transaction.execute(sql, params![bits(session), size_bytes]).map(drop)
}

pub(super) fn redact(
    transaction: &Transaction,
    session: SessionId,
    event_number: u64,
    redaction: &Redaction,
) -> Result<(), Error> {
    transaction.require_session(session)?;
    let part = transaction.session_part(session)?;
    let sql =
        format!("SELECT size_bytes FROM session_events_{part} WHERE session = $1 AND number = $2");
    let found = transaction.query_one(&sql, params![bits(session), number(event_number)])?;
    let Some(size_bytes) = found.map(|row| row.value::<i64>(0)).transpose()? else {
        return Ok(());
    };
    transaction.lose(format!("session_events_{part}"));
    let sql = format!(
        "UPDATE session_events_{part}
        SET body = NULL, size_bytes = 0, redacted_at = $3, redacted_by = $4
        WHERE session = $1 AND number = $2"
    );
    let values = params![
        bits(session),
        number(event_number),
        redaction.at.as_micros(),
        redaction.by.to_string(),
    ];
    transaction.execute(&sql, values)?;
    let sql = "UPDATE event_usage SET size_bytes = size_bytes - $2 WHERE session = $1";
    transaction.execute(sql, params![bits(session), size_bytes])?;
    grow(transaction, session, -size_bytes)
}

pub(super) fn prune(
    transaction: &Transaction,
    before: Timestamp,
    limit: usize,
) -> Result<usize, Error> {
    transaction.require_administration()?;
    transaction.enter_all_sessions()?;
    // Moments grow with the numbers of a session, so this order takes the oldest of each first. The
    // sessions are locked in the order of their ids, as nobody else locks several.
    let sql = "SELECT DISTINCT session FROM
            (SELECT session FROM session_events WHERE at < $1 ORDER BY at, number LIMIT $2) old
        ORDER BY session";
    let rows = transaction.query(sql, params![before.as_micros(), number(limit)])?;
    let sessions = rows.iter().map(|row| row.value(0)).collect::<Result<Vec<Bits>, _>>()?;
    if sessions.is_empty() {
        return Ok(0);
    }
    let sessions = [List(sessions)];
    let sql = "SELECT id FROM sessions WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    transaction.query(sql, params![sessions[0]])?;
    let sql = "WITH old AS (
            SELECT session, number FROM session_events
                WHERE at < $1 AND session = ANY ($3) ORDER BY at, number LIMIT $2),
        gone AS (
            DELETE FROM session_events e USING old
                WHERE e.session = old.session AND e.number = old.number
                RETURNING e.session, e.size_bytes),
        sums AS (
            SELECT session, count(*) AS events_count, sum(size_bytes)::bigint AS size_bytes
                FROM gone GROUP BY session),
        used AS (
            UPDATE event_usage u SET events_count = u.events_count - s.events_count,
                    size_bytes = u.size_bytes - s.size_bytes
                FROM sums s WHERE u.session = s.session RETURNING u.session),
        held AS (
            UPDATE workspaces w SET events_size_bytes = w.events_size_bytes - h.size_bytes
                FROM (SELECT n.workspace, sum(s.size_bytes)::bigint AS size_bytes
                    FROM sums s JOIN sessions n ON n.id = s.session GROUP BY n.workspace) h
                WHERE w.id = h.workspace RETURNING w.id)
        SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM used), (SELECT count(*) FROM held)";
    let values = params![before.as_micros(), number(limit), sessions[0]];
    let rows = transaction.execute(sql, values)?;
    let count = rows.first().map_or(Ok(0), |row| row.count(0))?;
    usize::try_from(count).map_err(misfit)
}

/// Removes everything of sessions that are about to be removed.
pub(super) fn remove_all(transaction: &Transaction, sessions: &[SessionId]) -> Result<(), Error> {
    let mut parts: BTreeMap<u8, Vec<Bits>> = BTreeMap::new();
    for session in sessions {
        parts.entry(transaction.session_part(*session)?).or_default().push(bits(*session));
    }
    let sessions = [List(sessions.iter().map(|id| bits(*id)).collect::<Vec<_>>())];
    // Whoever records an event of the session holds its row and then wants that of the workspace.
    let sql = "SELECT id FROM sessions WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
    transaction.query(sql, params![sessions[0]])?;
    for (part, sessions) in parts {
        let table = format!("session_events_{part}");
        let sql = format!("DELETE FROM {table} WHERE session = ANY ($1)");
        transaction.lose(table);
        transaction.execute(&sql, params![List(sessions)])?;
    }
    for sql in [
        "UPDATE workspaces w SET events_size_bytes = w.events_size_bytes - h.size_bytes
            FROM (SELECT s.workspace, sum(u.size_bytes)::bigint AS size_bytes
                FROM event_usage u JOIN sessions s ON s.id = u.session
                WHERE u.session = ANY ($1) GROUP BY s.workspace) h
            WHERE w.id = h.workspace",
        "DELETE FROM event_usage WHERE session = ANY ($1)",
    ] {
        transaction.execute(sql, params![sessions[0]])?;
    }
    Ok(())
}

/// Recomputes what is kept of each session and of each workspace.
pub(super) fn rebuild(transaction: &Transaction) -> Result<(), Error> {
    for sql in [
        "UPDATE event_usage u SET
            events_count = (SELECT count(*) FROM session_events e WHERE e.session = u.session),
            size_bytes = (SELECT coalesce(sum(e.size_bytes), 0)::bigint FROM session_events e
                WHERE e.session = u.session)",
        "UPDATE workspaces w SET events_size_bytes =
            (SELECT coalesce(sum(u.size_bytes), 0)::bigint FROM event_usage u
                JOIN sessions s ON s.id = u.session WHERE s.workspace = w.id)",
    ] {
        transaction.execute(sql, &[])?;
    }
    Ok(())
}
