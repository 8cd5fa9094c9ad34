//! The change feed.

use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::{Timestamp, VersionId};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns as _, blob, limit};

pub(super) fn changes(
    connection: &Connection,
    after: Sequence,
    at_most: usize,
) -> Result<Vec<Change>> {
    let sql = "SELECT sequence, at, store, event, version, ifnull(first, sequence) FROM changes
        WHERE sequence > ?1 ORDER BY sequence LIMIT ?2";
    let change = |row: &Row<'_>| {
        Ok(Change {
            sequence: Sequence(row.count(0)?),
            transaction: Sequence(row.count(5)?),
            at: row.moment(1)?,
            store: row.id(2)?,
            event: event(row)?,
        })
    };
    connection.prepare_cached(sql)?.query_map(params![after.0, limit(at_most)], change)?.collect()
}

pub(super) fn newest(connection: &Connection) -> Result<(Sequence, Timestamp)> {
    let sql = "SELECT sequence, at FROM changes ORDER BY sequence DESC LIMIT 1";
    let newest = |row: &Row<'_>| Ok((Sequence(row.count(0)?), row.moment(1)?));
    let found = connection.prepare_cached(sql)?.query_row([], newest).optional()?;
    Ok(found.unwrap_or((Sequence(0), Timestamp::MIN)))
}

pub(super) fn oldest(connection: &Connection) -> Result<Option<(Sequence, Timestamp)>> {
    let sql = "SELECT sequence, at FROM changes ORDER BY sequence LIMIT 1";
    let oldest = |row: &Row<'_>| Ok((Sequence(row.count(0)?), row.moment(1)?));
    connection.prepare_cached(sql)?.query_row([], oldest).optional()
}

/// Returns the sequence of the newest change.
pub(crate) fn newest_sequence(connection: &Connection) -> Result<Sequence> {
    newest(connection).map(|(sequence, _)| sequence)
}

pub(super) fn record(connection: &Connection, change: &Change) -> Result<()> {
    let (word, version) = words(change.event);
    let sql = "INSERT INTO changes (sequence, at, store, event, version, first)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection
        .prepare_cached(sql)?
        .execute(params![
            change.sequence.0,
            change.at.as_micros(),
            blob(change.store),
            word,
            version.map(blob),
            change.transaction.0,
        ])
        .map(drop)
}

pub(super) fn cursor(connection: &Connection, name: &str) -> Result<Option<Sequence>> {
    let sql = "SELECT sequence FROM cursors WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([name], |row| row.count(0).map(Sequence)).optional()
}

pub(super) fn put_cursor(connection: &Connection, name: &str, sequence: Sequence) -> Result<()> {
    let sql = "INSERT INTO cursors (name, sequence) VALUES (?1, ?2)
        ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence";
    connection.prepare_cached(sql)?.execute(params![name, sequence.0]).map(drop)
}

/// Removes the changes made before a moment, except the newest, so that the sequence goes on.
pub(super) fn trim(connection: &Connection, before: Timestamp, at_most: usize) -> Result<usize> {
    // Moments grow with the sequence, so the oldest come first.
    let sql = "DELETE FROM changes WHERE sequence IN (
        SELECT sequence FROM (SELECT sequence, at FROM changes ORDER BY sequence LIMIT ?2)
            WHERE at < ?1 AND sequence < (SELECT max(sequence) FROM changes))";
    let values = rusqlite::params![before.as_micros(), limit(at_most)];
    let trimmed_count = connection.prepare_cached(sql)?.execute(values)?;
    // The deletion itself is the change after the one that was the newest then.
    let sql = "DELETE FROM deleted_stores
        WHERE sequence + 1 < (SELECT min(sequence) FROM changes)";
    connection.prepare_cached(sql)?.execute([])?;
    Ok(trimmed_count)
}

fn words(event: Event) -> (&'static str, Option<VersionId>) {
    match event {
        Event::Version(version) => ("version", Some(version)),
        Event::Redacted(version) => ("redacted", Some(version)),
        Event::StoreCreated => ("store_created", None),
        Event::StoreUpdated => ("store_updated", None),
        Event::StoreArchived => ("store_archived", None),
        Event::StoreDeleted => ("store_deleted", None),
        Event::Restarted => ("restarted", None),
    }
}

fn event(row: &Row<'_>) -> Result<Event> {
    let version = row.optional_id(4)?;
    let word: String = row.get(3)?;
    match (word.as_str(), version) {
        ("version", Some(version)) => Ok(Event::Version(version)),
        ("redacted", Some(version)) => Ok(Event::Redacted(version)),
        ("store_created", None) => Ok(Event::StoreCreated),
        ("store_updated", None) => Ok(Event::StoreUpdated),
        ("store_archived", None) => Ok(Event::StoreArchived),
        ("store_deleted", None) => Ok(Event::StoreDeleted),
        ("restarted", None) => Ok(Event::Restarted),
        _ => Err(Error::InvalidColumnType(3, "event".to_owned(), Type::Text)),
    }
}
