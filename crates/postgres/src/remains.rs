//! Where erased text may still be, as far as a server can see.
//!
//! The write-ahead log has every text that was written, until its segments are removed. When an erasure is
//! complete, the position of the log is noted: no later segment has the text. So the log is clean when every
//! segment begins after that position, and no segment is a recycled one, whose old bytes are still in it.

use quipu_core::Error;
use quipu_core::backend::Remains;
use tokio_postgres::Row;

use crate::PostgresBackend;
use crate::transaction::{Scope, Transaction};
use crate::values::{Columns as _, params};

/// The mark with the position of the log when the last erasure was complete. It is about this database, so
/// no move carries it.
const ERASED: &str = "move.erased";

/// Notes the position of the log, by which all text is out of the tables.
pub(crate) fn note_position(transaction: &Transaction) -> Result<(), Error> {
    let sql = "INSERT INTO cursors (name, sequence)
            SELECT $1, (pg_current_wal_insert_lsn() - '0/0')::bigint
        ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence";
    transaction.execute(sql, params![ERASED]).map(drop)
}

impl PostgresBackend {
    pub(crate) fn all_remains(&self) -> Result<Remains, Error> {
        let mut remains = Remains::default();
        self.reading(&mut |transaction| {
            remains = Remains::default();
            let sql = "SELECT coalesce((SELECT sequence FROM cursors WHERE name = $1), 0)";
            let row = transaction.query_one(sql, params![ERASED])?;
            let erased: i64 = row.map(|row| row.value(0)).transpose()?.unwrap_or_default();
            slots(transaction, erased, &mut remains)?;
            elsewhere(transaction, erased, &mut remains)
        })?;
        // A server that may not look at its log refuses the statement, and with it the transaction.
        let log = self.writing_nothing(&mut |transaction| log(transaction));
        match log {
            Ok(found) => remains.seen.extend(found),
            Err(_) => remains.unseen.push(
                "the segments of the write-ahead log, which this user may not list: `GRANT pg_monitor TO` \
                 the user of the URL, or look with `SELECT * FROM pg_ls_waldir()` as an administrator"
                    .to_owned(),
            ),
        }
        Ok(remains)
    }

    fn writing_nothing(
        &self,
        work: &mut dyn FnMut(&Transaction) -> Result<Vec<String>, Error>,
    ) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        self.writing(Scope::Administration, &mut |transaction| {
            found = work(transaction)?;
            Ok(())
        })?;
        Ok(found)
    }
}

/// Names the slots that keep the log from before the erasure.
fn slots(transaction: &Transaction, erased: i64, remains: &mut Remains) -> Result<(), Error> {
    let sql = "SELECT slot_name::text FROM pg_replication_slots
        WHERE restart_lsn < '0/0'::pg_lsn + $1::bigint::numeric ORDER BY slot_name";
    for row in transaction.query(sql, params![erased])? {
        let name: &str = row.value(0)?;
        remains.seen.push(format!(
            "the replication slot `{name}` keeps the write-ahead log from before the erasure: let its \
             replica catch up, or `SELECT pg_drop_replication_slot('{name}')`"
        ));
    }
    Ok(())
}

/// Names what a server cannot look at.
fn elsewhere(transaction: &Transaction, erased: i64, remains: &mut Remains) -> Result<(), Error> {
    let sql = "SELECT current_setting('archive_mode') <> 'off',
            (SELECT count(*) FROM pg_stat_replication),
            to_hex($1 >> 32) || '/' || to_hex($1 & 4294967295)";
    let Some(row) = transaction.query_one(sql, params![erased])? else { return Ok(()) };
    let (is_archived, replicas_count) = (row.value::<bool>(0)?, row.count(1)?);
    let position: &str = row.value(2)?;
    if is_archived {
        remains.unseen.push(format!(
            "the archive of the write-ahead log: delete its segments from before {position}, with the base \
             backups that need them"
        ));
    }
    if replicas_count > 0 {
        remains.unseen.push(format!(
            "the logs of {replicas_count} replicas: run `CHECKPOINT` on each of them when it has replayed \
             {position}, with `wal_recycle = off`"
        ));
    }
    remains.unseen.push(
        "base backups, dumps and snapshots of disks from before the erasure: delete them"
            .to_owned(),
    );
    Ok(())
}

/// Looks at the segments of the log.
fn log(transaction: &Transaction) -> Result<Vec<String>, Error> {
    // A name is the timeline, then the position divided by the size of a segment, in two parts.
    let sql = "WITH erased AS (
            SELECT coalesce((SELECT sequence FROM cursors WHERE name = $1), 0) AS position
        ), segments AS (
            SELECT (('x' || substr(name, 9, 8))::bit(32)::bigint << 32)
                    + ('x' || substr(name, 17, 8))::bit(32)::bigint * size AS start, size
                FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'
        )
        SELECT count(*) FILTER (WHERE start < position),
            count(*) FILTER (WHERE start > (pg_current_wal_insert_lsn() - '0/0')::bigint),
            current_setting('wal_recycle') = 'on'
        FROM segments, erased";
    let Some(row) = transaction.query_one(sql, params![ERASED])? else { return Ok(Vec::new()) };
    segments(&row)
}

fn segments(row: &Row) -> Result<Vec<String>, Error> {
    let (older_count, spare_count) = (row.count(0)?, row.count(1)?);
    let is_recycling: bool = row.value(2)?;
    let mut found = Vec::new();
    if older_count > 0 {
        found.push(format!(
            "{older_count} segments of the write-ahead log are from before the end of the erasure: run \
             `SELECT pg_switch_wal()` and `CHECKPOINT` as an administrator, twice"
        ));
    }
    if spare_count > 0 && is_recycling {
        found.push(format!(
            "{spare_count} segments of the write-ahead log are kept to be used again, with their old bytes: \
             run `ALTER SYSTEM SET wal_recycle = off`, `SELECT pg_reload_conf()` and `CHECKPOINT`, and \
             delete those files while the server is stopped"
        ));
    }
    Ok(found)
}
