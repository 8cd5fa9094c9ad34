//! The change feed.

use quipu_core::Error;
use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::Timestamp;
use tokio_postgres::Row;

use crate::error::damaged;
use crate::outcome;
use crate::transaction::{Counter, Transaction};
use crate::values::{Columns as _, misfit, number, params};

pub(super) fn changes(
    transaction: &Transaction,
    after: Sequence,
    limit: usize,
) -> Result<Vec<Change>, Error> {
    let sql = "SELECT sequence, first, at, store, event, version FROM changes
        WHERE sequence > $1 ORDER BY sequence LIMIT $2";
    let rows = transaction.query(sql, params![number(after.0), number(limit)])?;
    rows.iter().map(change).collect()
}

fn change(row: &Row) -> Result<Change, Error> {
    Ok(Change {
        sequence: Sequence(row.count(0)?),
        transaction: Sequence(row.count(1)?),
        at: row.moment(2)?,
        store: row.id(3)?,
        event: event(row)?,
    })
}

/// Removals are few, and have an index of their own.
pub(super) fn removals(
    transaction: &Transaction,
    after: Sequence,
    limit: usize,
) -> Result<Vec<Change>, Error> {
    let sql = "SELECT sequence, first, at, store, event, version FROM changes
        WHERE event IN ('redacted', 'store_deleted') AND sequence > $1 ORDER BY sequence LIMIT $2";
    let rows = transaction.query(sql, params![number(after.0), number(limit)])?;
    rows.iter().map(change).collect()
}

pub(super) fn counter(transaction: &Transaction) -> Result<Counter, Error> {
    if let Some(held) = transaction.counter() {
        return Ok(held);
    }
    let sql = "SELECT sequence, at, generation, first FROM counter";
    let row = transaction.query_one(sql, &[])?.ok_or_else(damaged)?;
    let counter = Counter::of(&row)?;
    transaction.note_counter(counter);
    Ok(counter)
}

pub(super) fn newest(transaction: &Transaction) -> Result<(Sequence, Timestamp), Error> {
    let counter = counter(transaction)?;
    Ok((counter.sequence, counter.at))
}

/// Returns the oldest change that a follower may continue from.
///
/// Changes of an earlier generation are still there, but a follower of that generation may have seen others
/// under the same numbers and after them: it starts over.
pub(super) fn oldest(transaction: &Transaction) -> Result<Option<(Sequence, Timestamp)>, Error> {
    let sql = "SELECT sequence, at FROM changes ORDER BY sequence LIMIT 1";
    let row = transaction.query_one(sql, &[])?;
    let oldest = match row {
        Some(row) => Some((Sequence(row.count(0)?), row.moment(1)?)),
        None => None,
    };
    let counter = counter(transaction)?;
    let is_of_generation = |oldest: &(Sequence, Timestamp)| oldest.0 >= counter.first;
    if counter.first.0 == 0 || oldest.as_ref().is_some_and(is_of_generation) {
        return Ok(oldest);
    }
    Ok(Some((counter.first, counter.at)))
}

pub(super) fn record(transaction: &Transaction, change: &Change) -> Result<(), Error> {
    transaction.add_change(change)
}

pub(super) fn cursor(transaction: &Transaction, name: &str) -> Result<Option<Sequence>, Error> {
    let row =
        transaction.query_one("SELECT sequence FROM cursors WHERE name = $1", params![name])?;
    row.map(|row| row.count(0).map(Sequence)).transpose()
}

pub(super) fn put_cursor(
    transaction: &Transaction,
    name: &str,
    sequence: Sequence,
) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO cursors (name, sequence) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence";
    transaction.execute(sql, params![name, number(sequence.0)]).map(drop)
}

/// Removes changes made before a moment, except the newest, so that the feed never looks empty.
pub(super) fn trim(
    transaction: &Transaction,
    before: Timestamp,
    limit: usize,
) -> Result<usize, Error> {
    let sql = "WITH gone AS (
            DELETE FROM changes WHERE sequence IN (
                SELECT sequence FROM changes
                WHERE at < $1 AND sequence < (SELECT max(sequence) FROM changes)
                ORDER BY sequence LIMIT $2)
            RETURNING 1)
        SELECT count(*) FROM gone";
    let rows = transaction.execute(sql, params![before.as_micros(), number(limit)])?;
    let count = rows.first().map_or(Ok(0), |row| row.count(0))?;
    // The deletion itself is the change after the one that was the newest then.
    let sql = "DELETE FROM deleted_stores
        WHERE sequence + 1 < (SELECT min(sequence) FROM changes)";
    transaction.execute(sql, &[])?;
    outcome::prune(transaction)?;
    usize::try_from(count).map_err(misfit)
}

fn event(row: &Row) -> Result<Event, Error> {
    match (row.value(4)?, row.optional_id(5)?) {
        ("version", Some(version)) => Ok(Event::Version(version)),
        ("redacted", Some(version)) => Ok(Event::Redacted(version)),
        ("store_created", None) => Ok(Event::StoreCreated),
        ("store_updated", None) => Ok(Event::StoreUpdated),
        ("store_archived", None) => Ok(Event::StoreArchived),
        ("store_deleted", None) => Ok(Event::StoreDeleted),
        ("restarted", None) => Ok(Event::Restarted),
        _ => Err(damaged()),
    }
}
