//! The events of sessions.

use quipu_core::backend::{Order, SessionEventQuery};
use quipu_core::model::{
    Content, EventType, EventUsage, Redaction, SessionEvent, SessionId, Timestamp, View,
    WorkspaceId,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params, params_from_iter};

use super::columns::{Columns as _, blob, limit};

const COLUMNS: &str = "session, number, id, at, kind, actor, size_bytes, redacted_at, redacted_by";

fn from_row(row: &Row<'_>) -> Result<SessionEvent> {
    let redaction = match row.optional_moment(7)? {
        Some(at) => Some(Redaction { at, by: row.word(8)? }),
        None => None,
    };
    Ok(SessionEvent {
        session: row.id(0)?,
        number: row.count(1)?,
        id: row.id(2)?,
        at: row.moment(3)?,
        kind: row.event_type(4)?,
        actor: row.word(5)?,
        size_bytes: row.count(6)?,
        redaction,
        body: if row.is_null(9)? { None } else { Some(row.content(9)?) },
    })
}

pub(super) fn events(
    connection: &Connection,
    session: SessionId,
    query: &SessionEventQuery,
) -> Result<Vec<SessionEvent>> {
    let (comparison, direction, start) = match query.order {
        Order::NewestFirst => ("<", "DESC", i64::MAX),
        Order::OldestFirst => (">", "ASC", 0),
    };
    let body = match query.view {
        View::Full => "body",
        View::Basic => "NULL",
    };
    let kinds = match query.kinds.len() {
        0 => String::new(),
        count => format!("AND kind IN ({})", vec!["?"; count].join(", ")),
    };
    let sql = format!(
        "SELECT {COLUMNS}, {body} FROM session_events
         WHERE session = ? AND number {comparison} ? AND at BETWEEN ? AND ? {kinds}
         ORDER BY number {direction} LIMIT ?"
    );
    let after = query.after.map_or(start, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let values = [
        Value::Blob(blob(session).to_vec()),
        Value::Integer(after),
        Value::Integer(query.recorded.first.as_micros()),
        Value::Integer(query.recorded.last.as_micros()),
    ];
    let kinds = query.kinds.iter().map(|kind| Value::Text(kind.as_str().to_owned()));
    let values = values.into_iter().chain(kinds).chain([Value::Integer(limit(query.limit))]);
    connection.prepare_cached(&sql)?.query_map(params_from_iter(values), from_row)?.collect()
}

pub(super) fn usage(connection: &Connection, session: SessionId) -> Result<EventUsage> {
    let sql =
        "SELECT newest, newest_at, events_count, size_bytes FROM event_usage WHERE session = ?1";
    let usage = |row: &Row<'_>| {
        Ok(EventUsage {
            newest: row.count(0)?,
            newest_at: Some(row.moment(1)?),
            events_count: row.count(2)?,
            size_bytes: row.count(3)?,
        })
    };
    let found = connection.prepare_cached(sql)?.query_row([blob(session)], usage).optional()?;
    Ok(found.unwrap_or_default())
}

pub(super) fn size_bytes(connection: &Connection, workspace: WorkspaceId) -> Result<u64> {
    let sql = "SELECT events_size_bytes FROM workspaces WHERE id = ?1";
    let found = connection.prepare_cached(sql)?.query_row([blob(workspace)], |row| row.count(0));
    Ok(found.optional()?.unwrap_or_default())
}

pub(super) fn add(connection: &Connection, event: &SessionEvent) -> Result<()> {
    let sql = "INSERT INTO session_events
            (session, number, id, at, kind, actor, size_bytes, redacted_at, redacted_by, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    connection.prepare_cached(sql)?.execute(params![
        blob(event.session),
        event.number,
        blob(event.id),
        event.at.as_micros(),
        event.kind.as_str(),
        event.actor.to_string(),
        event.size_bytes,
        event.redaction.as_ref().map(|redaction| redaction.at.as_micros()),
        event.redaction.as_ref().map(|redaction| redaction.by.to_string()),
        event.body.as_ref().map(Content::as_str),
    ])?;
    let sql = "INSERT INTO event_usage VALUES (?1, ?2, ?3, 1, ?4)
        ON CONFLICT (session) DO UPDATE SET newest = excluded.newest,
            newest_at = excluded.newest_at, events_count = events_count + 1,
            size_bytes = size_bytes + excluded.size_bytes";
    connection.prepare_cached(sql)?.execute(params![
        blob(event.session),
        event.number,
        event.at.as_micros(),
        event.size_bytes,
    ])?;
    grow(connection, event.session, i64::try_from(event.size_bytes).unwrap_or(i64::MAX))
}

/// Changes what the workspace of a session holds.
fn grow(connection: &Connection, session: SessionId, size_bytes: i64) -> Result<()> {
    let sql = "UPDATE workspaces SET events_size_bytes = events_size_bytes + ?2
        WHERE id = (SELECT workspace FROM sessions WHERE id = ?1)";
    connection.prepare_cached(sql)?.execute(params![blob(session), size_bytes]).map(drop)
}

/// Takes events and bytes out of the usage of a session and of its workspace.
fn shrink(
    connection: &Connection,
    session: SessionId,
    (events_count, size_bytes): (i64, i64),
) -> Result<()> {
    let sql =
        "UPDATE event_usage SET events_count = events_count - ?2, size_bytes = size_bytes - ?3
        WHERE session = ?1";
    connection.prepare_cached(sql)?.execute(params![blob(session), events_count, size_bytes])?;
    grow(connection, session, -size_bytes)
}

pub(super) fn redact(
    connection: &Connection,
    session: SessionId,
    number: u64,
    redaction: &Redaction,
) -> Result<()> {
    let sql = "SELECT size_bytes FROM session_events WHERE session = ?1 AND number = ?2";
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![blob(session), number], |row| row.get::<_, i64>(0));
    let Some(size_bytes) = found.optional()? else { return Ok(()) };
    let sql = "UPDATE session_events
        SET body = NULL, size_bytes = 0, redacted_at = ?3, redacted_by = ?4
        WHERE session = ?1 AND number = ?2";
    connection.prepare_cached(sql)?.execute(params![
        blob(session),
        number,
        redaction.at.as_micros(),
        redaction.by.to_string(),
    ])?;
    shrink(connection, session, (0, size_bytes))
}

pub(super) fn prune(connection: &Connection, before: Timestamp, at_most: usize) -> Result<usize> {
    // Moments grow with the numbers of a session, so this order takes the oldest of each first.
    let sql = "SELECT num, session, size_bytes FROM session_events WHERE at < ?1
        ORDER BY at, number LIMIT ?2";
    let old = connection
        .prepare_cached(sql)?
        .query_map(params![before.as_micros(), limit(at_most)], |row| {
            Ok((row.get::<_, i64>(0)?, row.id(1)?, row.get(2)?))
        })?
        .collect::<Result<Vec<(i64, SessionId, i64)>>>()?;
    for (num, session, size_bytes) in &old {
        connection.prepare_cached("DELETE FROM session_events WHERE num = ?1")?.execute([num])?;
        shrink(connection, *session, (1, *size_bytes))?;
    }
    Ok(old.len())
}

/// Removes everything of a session that is about to be removed.
pub(super) fn remove_all(connection: &Connection, session: SessionId) -> Result<()> {
    let usage = usage(connection, session)?;
    grow(connection, session, -i64::try_from(usage.size_bytes).unwrap_or(i64::MAX))?;
    for sql in [
        "DELETE FROM session_events WHERE session = ?1",
        "DELETE FROM event_usage WHERE session = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([blob(session)])?;
    }
    Ok(())
}

/// Recomputes what is kept of each session and of each workspace.
pub(super) fn rebuild(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "UPDATE event_usage SET
            events_count = (SELECT count(*) FROM session_events e WHERE e.session = event_usage.session),
            size_bytes = (SELECT ifnull(sum(e.size_bytes), 0) FROM session_events e
                WHERE e.session = event_usage.session);
        UPDATE workspaces SET events_size_bytes =
            (SELECT ifnull(sum(u.size_bytes), 0) FROM event_usage u
                JOIN sessions s ON s.id = u.session WHERE s.workspace = workspaces.id)",
    )
}

/// Reads the type of an event.
trait EventColumn {
    fn event_type(&self, column: usize) -> Result<EventType>;
}

impl EventColumn for Row<'_> {
    fn event_type(&self, column: usize) -> Result<EventType> {
        let text = self.get_ref(column)?.as_str().unwrap_or_default();
        EventType::new(text).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                column,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })
    }
}
