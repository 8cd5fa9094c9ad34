//! Takes removed text out of the tables.
//!
//! A deleted or replaced row stays in its page until the space is used again, so erasing rewrites the tables
//! that held text: `VACUUM FULL` copies the rows that are left into a new file and drops the old one. Only the
//! tables of the [partitions](crate::partition) that have lost text are rewritten, and only the writers and
//! readers of their stores wait. Which tables that are is noted, in `rewrites`, by the transaction that removes
//! text, so an erasure that was interrupted goes on where it stopped.
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
use crate::partition::{self, Partition};
use crate::rows::upkeep;
use crate::transaction::{Scope, Transaction};
use crate::values::{Bits, Columns as _, List, bits, number, params};

/// How long rewriting one table may take.
const REWRITE_TIMEOUT: Duration = Duration::from_mins(30);

/// How long each attempt to lock a table may take, and how long others are left alone before the next one.
const LOCK_TRY: Duration = Duration::from_millis(500);
const OTHERS_PAUSE: Duration = Duration::from_millis(500);

/// Tables with text that are not partitioned. They are rewritten only if they have lost some.
const SHARED_TABLES: [&str; 5] =
    ["sessions", "attachments", "definitions", "receipts", "copies_made"];

/// Tables without text that grow and shrink.
const OTHER_TABLES: [&str; 6] =
    ["stores", "restorable_stores", "changes", "counter", "commits", "tombstones"];

/// A table that has lost text.
struct Rewrite {
    table: String,
    count: i64,
    /// The last transaction that removed text.
    transaction: i64,
}

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
        let mut erasure = Erasure::default();
        if self.has_removed()? {
            self.remove_rows()?;
        }
        let rewrites = self.pending_rewrites()?;
        if !rewrites.is_empty() {
            erasure.scanned = self.rewrite(&rewrites)?;
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
        let partitions = (0..partition::COUNT)
            .flat_map(|number| [Partition::Stores(number), Partition::Sessions(number)]);
        let tables = partitions.flat_map(Partition::tables);
        let others = SHARED_TABLES.iter().chain(&OTHER_TABLES).map(|name| (*name).to_owned());
        let client = self.session()?;
        for table in tables.chain(others) {
            self.rewrite_one(&client, &Rewrite { table, count: 0, transaction: 0 }, Kept::Any)?;
        }
        Ok(())
    }

    fn has_removed(&self) -> Result<bool, Error> {
        self.reading(&mut |transaction| {
            let row = transaction.query_one("SELECT EXISTS (SELECT 1 FROM removed_stores)", &[])?;
            row.ok_or_else(error::damaged)?.value(0)
        })
    }

    fn pending_rewrites(&self) -> Result<Vec<Rewrite>, Error> {
        self.reading(&mut |transaction| {
            let sql = "SELECT name, count, transaction FROM rewrites ORDER BY name";
            let rows = transaction.query(sql, &[])?;
            let rewrites = rows.iter().map(|row| {
                let (table, count) = (row.value(0)?, row.value(1)?);
                Ok(Rewrite { table, count, transaction: row.value(2)? })
            });
            rewrites.collect()
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

    /// Rewrites tables, one after the other, and returns their sizes. What is done stays done if a later one
    /// fails.
    fn rewrite(&self, rewrites: &[Rewrite]) -> Result<Vec<ScannedFile>, Error> {
        let client = self.session()?;
        let mut scanned = Vec::new();
        for rewrite in rewrites {
            scanned.push(self.rewrite_one(&client, rewrite, Kept::Later)?);
            self.writing(Scope::Administration, &mut |transaction| {
                let sql = "DELETE FROM rewrites WHERE name = $1 AND count = $2";
                transaction.execute(sql, params![rewrite.table, rewrite.count]).map(drop)
            })?;
        }
        Ok(scanned)
    }

    /// Rewrites a table until nothing of a removed row is left in it.
    ///
    /// A row that was removed stays, in the new file too, for as long as anybody reads a snapshot from before
    /// its removal: a long read, a backup, a replica that feeds back what it reads.
    fn rewrite_one(
        &self,
        client: &Client,
        rewrite: &Rewrite,
        kept: Kept,
    ) -> Result<ScannedFile, Error> {
        let name = format!("{}.{}", self.settings.quoted_schema()?, rewrite.table);
        let vacuum = format!("VACUUM (FULL, VERBOSE) {name}");
        let mut deadline = Instant::now() + self.settings.statement_timeout;
        let size = "SELECT pg_total_relation_size($1::text::regclass)";
        loop {
            // Asked before, so that a snapshot that is taken later does not count.
            let is_forgotten =
                kept == Kept::Any || is_forgotten(client, rewrite.transaction, deadline)?;
            client.heard().take();
            let answer_by = Instant::now() + REWRITE_TIMEOUT;
            if let Err(failure) = client.batch(answer_by, &vacuum) {
                if !client.is_usable() {
                    // The server does not notice that nobody waits any more.
                    self.direct.cancel(client.inner());
                }
                let is_locked = failure.consequence() == Consequence::Locked;
                if is_locked && is_being_rewritten(client, &name)? {
                    // By another server, which takes as long as it takes.
                    deadline = Instant::now() + self.settings.statement_timeout;
                } else if !is_locked || Instant::now() >= deadline {
                    return Err(failure.into_error());
                }
                thread::sleep(OTHERS_PAUSE);
                continue;
            }
            match kept_rows(&client.heard().take()) {
                // It only says that it has skipped the table.
                None => return Err(error::not_owner()),
                Some(0) => break,
                Some(_) if is_forgotten => break,
                Some(_) if Instant::now() < deadline => thread::sleep(OTHERS_PAUSE),
                Some(_) => return Err(error::still_read()),
            }
        }
        let rows = client.query(Instant::now() + REWRITE_TIMEOUT, None, size, params![name]);
        let rows = rows.map_err(Failure::into_error)?;
        let row = rows.first().ok_or_else(error::damaged)?;
        Ok(ScannedFile { name: rewrite.table.clone(), size_bytes: row.count(0)? })
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
        let deadline = Instant::now() + self.shared.terms.answer_timeout;
        let sql = "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'";
        let rows = client.query(deadline, None, sql, &[]).map_err(Failure::into_error)?;
        let found: Option<String> = rows.first().map(|row| row.value(0)).transpose()?;
        if found != Some(lock_ms.to_string()) {
            return Err(error::no_session());
        }
        Ok(client)
    }
}

/// Which removed rows a rewrite may keep for somebody who still reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Those that were removed after the text that is erased.
    Later,
    Any,
}

/// Returns whether certainly nobody can read the rows any more that a transaction has removed.
///
/// That is so if no transaction that began before it runs, and no snapshot is older. Of sessions of other users
/// nothing is shown; then this cannot be told.
fn is_forgotten(client: &Client, transaction: i64, deadline: Instant) -> Result<bool, Error> {
    let sql = "WITH place AS (
            SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
                pg_snapshot_xmax(pg_current_snapshot())::text::bigint - $1::bigint AS age)
        SELECT oldest > $1
            AND NOT EXISTS (SELECT 1 FROM pg_stat_activity
                WHERE age(backend_xmin) >= place.age
                    OR (state IS NULL AND backend_type = 'client backend'))
            AND NOT EXISTS (SELECT 1 FROM pg_replication_slots
                WHERE age(xmin) >= place.age OR age(catalog_xmin) >= place.age)
            AND NOT EXISTS (SELECT 1 FROM pg_stat_replication WHERE age(backend_xmin) >= place.age)
            AND NOT EXISTS (SELECT 1 FROM pg_prepared_xacts)
        FROM place";
    let rows = client.query(deadline, None, sql, params![transaction]);
    let rows = rows.map_err(Failure::into_error)?;
    rows.first().ok_or_else(error::damaged)?.value(0)
}

/// Returns whether somebody rewrites a table at the moment.
fn is_being_rewritten(client: &Client, name: &str) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_stat_progress_cluster
        WHERE relid = $1::text::regclass)";
    let deadline = Instant::now() + OTHERS_PAUSE.saturating_mul(20);
    let rows = client.query(deadline, None, sql, params![name]).map_err(Failure::into_error)?;
    rows.first().ok_or_else(error::damaged)?.value(0)
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
