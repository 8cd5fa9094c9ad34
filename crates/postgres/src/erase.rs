//! Takes removed text out of the tables.
//!
//! A deleted or replaced row stays in its page until the space is used again, so erasing rewrites the tables
//! that held text: `VACUUM FULL` copies the rows that are left into a new file and drops the old one. The
//! large tables are partitioned by store, so only the partitions of the stores concerned are rewritten, and
//! only their writers and readers wait.
//!
//! What the server has copied elsewhere is out of reach: its write-ahead log, replicas, archives and base
//! backups. [`unreachable()`] says so, and how to finish.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::{Erasure, PendingErasure};
use quipu_core::model::ScannedFile;
use tokio_postgres::error::DbError;

use crate::PostgresBackend;
use crate::client::Client;
use crate::error::{self, Consequence, Failure, Refuser};
use crate::rows::upkeep;
use crate::transaction::{Scope, Transaction};
use crate::values::{Bits, Columns as _, List, bits, number, params};

/// How long rewriting one table may take.
const REWRITE_TIMEOUT: Duration = Duration::from_mins(30);

/// How long each attempt to lock a table may take, and how long others are left alone before the next one.
const LOCK_TRY: Duration = Duration::from_millis(500);
const OTHERS_PAUSE: Duration = Duration::from_millis(500);

/// Tables with text that are not partitioned, because they stay small or are pruned.
const SMALL_TABLES: [&str; 9] = [
    "stores",
    "restorable_stores",
    "refusals",
    "sessions",
    "attachments",
    "tombstones",
    "erasures",
    "session_events",
    "definitions",
];

/// The partitioned tables, and how many partitions each has.
const PARTITIONED_TABLES: [&str; 2] = ["versions", "memories"];
const PARTITIONS_COUNT: i64 = 16;

/// Returns the copies of removed text that a server cannot reach.
pub(crate) fn unreachable(transaction: &Transaction) -> Result<Vec<String>, Error> {
    let sql = "SELECT current_setting('archive_mode') <> 'off',
        (SELECT count(*) FROM pg_replication_slots)";
    let row = transaction.query_one(sql, &[])?.ok_or_else(error::damaged)?;
    let mut sentences = vec![
        "the write-ahead log of the database keeps the text until its segments are removed: set \
         `wal_recycle = off`, then run `SELECT pg_switch_wal()` and `CHECKPOINT` as an administrator"
            .to_owned(),
        "base backups and dumps of the database that were made before keep the text: delete them".to_owned(),
    ];
    if row.value(0)? {
        sentences.push(
            "the archive of the write-ahead log keeps the text: delete the segments from before the \
             redaction, with the base backups that need them"
                .to_owned(),
        );
    }
    if row.count(1)? > 0 {
        sentences.push(
            "replication slots keep the write-ahead log for replicas that have not read it yet: look at \
             `pg_replication_slots`, and drop those that nobody uses with `pg_drop_replication_slot`"
                .to_owned(),
        );
    }
    Ok(sentences)
}

impl PostgresBackend {
    /// Erases everything that was removed before this is called.
    pub(crate) fn erase_all(&self) -> Result<Erasure, Error> {
        let numbers = self.pending_numbers()?;
        let mut erasure = Erasure::default();
        if !numbers.is_empty() {
            self.remove_rows()?;
            erasure.scanned = self.rewrite(&self.tables_of(&numbers)?)?;
        }
        // Listed even if nothing was erased: what is unreachable does not depend on it.
        erasure.unreachable = self.reading(&mut unreachable)?;
        Ok(erasure)
    }

    pub(crate) fn note_all_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        if erased.is_empty() {
            return Ok(());
        }
        let stores: Vec<_> = erased.iter().map(|pending| bits(pending.store)).collect();
        let memory = |pending: &PendingErasure| pending.memory.map_or(Bits::MAX, bits);
        let memories: Vec<_> = erased.iter().map(memory).collect();
        let counts: Vec<_> = erased.iter().map(|pending| number(pending.count)).collect();
        let values = (List(stores), List(memories), List(counts));
        self.writing(Scope::Administration, &mut |transaction| {
            let sql = "DELETE FROM erasures e
                USING unnest($1::uuid[], $2::uuid[], $3::bigint[]) d (store, memory, count)
                WHERE e.store = d.store AND e.memory = d.memory AND e.count = d.count";
            transaction.execute(sql, params![values.0, values.1, values.2])?;
            crate::remains::note_position(transaction)
        })
    }

    /// Returns the space of removed rows to the system.
    pub(crate) fn compact_all(&self) -> Result<(), Error> {
        self.remove_rows()?;
        let partitions = |table: &str| {
            (0..PARTITIONS_COUNT).map(move |part| format!("{table}_{part}")).collect::<Vec<_>>()
        };
        let mut tables: Vec<_> =
            PARTITIONED_TABLES.iter().flat_map(|table| partitions(table)).collect();
        tables.extend(SMALL_TABLES.map(str::to_owned));
        tables.extend(["changes".to_owned(), "counter".to_owned(), "commits".to_owned()]);
        self.rewrite(&tables).map(drop)
    }

    fn pending_numbers(&self) -> Result<Vec<i64>, Error> {
        self.reading(&mut |transaction| {
            let rows = transaction.query("SELECT DISTINCT num FROM erasures", &[])?;
            rows.iter().map(|row| row.value(0)).collect()
        })
    }

    /// Removes the rows of removed stores in batches, so that others can write in between.
    fn remove_rows(&self) -> Result<(), Error> {
        let mut has_more = true;
        while has_more {
            self.writing(Scope::Administration, &mut |transaction| {
                has_more = upkeep::remove_deleted(transaction)?;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the tables that hold the text of these stores.
    fn tables_of(&self, numbers: &[i64]) -> Result<Vec<String>, Error> {
        let mut tables: Vec<_> = SMALL_TABLES.map(str::to_owned).to_vec();
        let sql = "SELECT DISTINCT part FROM unnest($1::bigint[]) num,
                generate_series(0, $2::bigint - 1) part
            WHERE satisfies_hash_partition('versions'::regclass, $2::int, part::int, num)";
        let values = [List(numbers.to_vec())];
        let parts = self.reading(&mut |transaction| {
            let rows = transaction.query(sql, params![values[0], PARTITIONS_COUNT])?;
            rows.iter().map(|row| row.value(0)).collect::<Result<Vec<i64>, _>>()
        })?;
        for part in parts {
            tables.extend(PARTITIONED_TABLES.map(|table| format!("{table}_{part}")));
        }
        Ok(tables)
    }

    /// Rewrites tables, one after the other, and returns their sizes.
    fn rewrite(&self, tables: &[String]) -> Result<Vec<ScannedFile>, Error> {
        let client = self.session()?;
        let schema = self.settings.quoted_schema()?;
        let deadline = Instant::now() + self.settings.statement_timeout;
        let rewrite = |table: &String| {
            let rewritten = rewrite(&client, (&schema, table), deadline);
            if rewritten.is_err() && !client.is_usable() {
                // The server does not notice that nobody waits any more.
                self.direct.cancel(client.inner());
            }
            rewritten
        };
        tables.iter().map(rewrite).collect()
    }

    /// Returns a session for what cannot run in a transaction.
    ///
    /// While a rewrite waits for somebody who reads the table, everybody else waits behind it. So it waits
    /// briefly, leaves, and comes back. A role may have a limit for statements that is too short for it.
    fn session(&self) -> Result<Client, Error> {
        let (lock_ms, statement_ms) = (LOCK_TRY.as_millis(), REWRITE_TIMEOUT.as_millis());
        let settings = format!("-c lock_timeout={lock_ms} -c statement_timeout={statement_ms}");
        let connected = self.pool.separate_of(&self.direct.with_session(&settings));
        let client = match connected {
            Ok(client) => client,
            // A pooler refuses what it does not know in the options of a connection.
            Err(failure) if failure.refuser() == Some(Refuser::Server) => {
                self.pool.separate_of(&self.direct).map_err(Failure::into_error)?;
                return Err(error::no_session().with_source(failure.into_error()));
            }
            Err(failure) => return Err(failure.into_error()),
        };
        let deadline = Instant::now() + self.terms.answer_timeout;
        let sql = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'";
        let rows = client.query(deadline, None, sql, &[]).map_err(Failure::into_error)?;
        let found: Option<String> = rows.first().map(|row| row.value(0)).transpose()?;
        if found != Some(lock_ms.to_string()) {
            return Err(error::no_session());
        }
        Ok(client)
    }
}

/// Rewrites a table until nothing of a removed row is left in it.
///
/// A row that was removed stays, in the new file too, for as long as anybody reads a snapshot from before its
/// removal: a long read, a backup, a replica that feeds back what it reads. The server says how many such rows
/// it had to keep.
fn rewrite(
    client: &Client,
    (schema, table): (&str, &str),
    deadline: Instant,
) -> Result<ScannedFile, Error> {
    let answer_deadline = Instant::now() + REWRITE_TIMEOUT;
    let vacuum = format!("VACUUM (FULL, VERBOSE) {schema}.{table}");
    loop {
        client.heard().take();
        if let Err(failure) = client.batch(answer_deadline, &vacuum) {
            if failure.consequence() == Consequence::Locked && Instant::now() < deadline {
                thread::sleep(OTHERS_PAUSE);
                continue;
            }
            return Err(failure.into_error());
        }
        match kept_rows(&client.heard().take()) {
            Some(0) => break,
            Some(_) if Instant::now() < deadline => thread::sleep(OTHERS_PAUSE),
            Some(_) => return Err(error::still_read()),
            // It only says that it has skipped the table.
            None => return Err(error::not_owner()),
        }
    }
    let sql = "SELECT pg_total_relation_size($1::text::regclass)";
    let name = format!("{schema}.{table}");
    let rows =
        client.query(answer_deadline, None, sql, params![name]).map_err(Failure::into_error)?;
    let row = rows.first().ok_or_else(error::damaged)?;
    Ok(ScannedFile { name: table.to_owned(), size_bytes: row.count(0)? })
}

/// Returns how many rows that were removed a rewrite has kept; `None` if it has not said so.
fn kept_rows(notices: &[DbError]) -> Option<u64> {
    // The words depend on the server's language; the first number of the detail is the one.
    let kept = notices.iter().filter_map(|notice| {
        let detail = notice.detail()?;
        let mut digits = detail.split(|letter: char| !letter.is_ascii_digit());
        digits.find_map(|digits| digits.parse::<u64>().ok())
    });
    kept.reduce(|sum, count| sum + count)
}
