//! Quipu's backend for many servers: one PostgreSQL that they share.
//!
//! Rules live in `quipu-core`; this crate only stores rows. [`transaction`] says what a write locks and in
//! which order changes are counted, [`feed`] wakes followers of the change feed, [`erase`] takes removed text
//! out of the tables, and [`migrate()`] keeps the schema. The driver is asynchronous and runs on a small runtime
//! of its own; callers block on their own threads, as they do on a file.

mod ahead;
mod buffer;
mod client;
mod connect;
mod endpoint;
mod erase;
mod error;
mod feed;
mod generation;
mod group;
mod migrate;
mod outcome;
mod overlay;
mod partition;
mod password_file;
mod pool;
mod presence;
mod queue;
mod remains;
mod retry;
mod rows;
mod runtime;
mod settings;
mod sync;
mod tls;
mod transaction;
mod transfer;
mod values;
mod write;

use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::{
    Backend, Condition, Erasure, PendingErasure, Purpose, ReadWork, Remains, Sequence, WatchWork,
    WriteWork,
};
use quipu_core::model::Timestamp;

use connect::Connector;
use error::{Consequence, Failure};
use feed::{Feed, Listener};
use group::{Database, Groups, Refused, Retry};
use outcome::Marker;
use pool::Pool;
use presence::Presence;
use retry::Backoff;
use rows::Rows;
use rows::upkeep::{self, Totals};
use runtime::Background;
use transaction::{Scope, Shared, Terms, Transaction};
use write::{Ended, Pause, Route, Write};

pub use migrate::{Migrated, Step};
pub use settings::{
    DEFAULT_SCHEMA, Listening, PostgresSettings, PreparedStatements, without_password,
};

/// How old the cached counts of stores, memories and versions may be, and estimates of them.
const TOTALS_AGE_MAX: Duration = Duration::from_secs(5);
const ESTIMATE_AGE_MAX: Duration = Duration::from_mins(1);

/// The longest pause before a transaction is repeated.
const REPEAT_PAUSE_MAX: Duration = Duration::from_millis(500);

/// A database that is open.
pub struct PostgresBackend {
    settings: PostgresSettings,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    /// Makes connections past a pooler.
    direct: Connector,
    groups: Groups,
    feed: Feed,
    presence: Arc<Presence>,
    totals: Mutex<Option<(Instant, Totals)>>,
    /// Last, so that the connections are dropped while it still runs.
    _runtime: Background,
}

/// Brings the schema of a database up to date.
pub fn migrate(settings: &PostgresSettings) -> Result<Migrated, Error> {
    with_connection(settings, |client| migrate::migrate(client, settings))
}

/// Migrates as a later program would, which knows more steps. Only tests do that.
#[doc(hidden)]
pub fn migrate_further(settings: &PostgresSettings, further: &[Step]) -> Result<Migrated, Error> {
    with_connection(settings, |client| migrate::migrate_further(client, settings, further))
}

/// Returns the version of the schema in a database; 0 if there is none.
pub fn schema_version(settings: &PostgresSettings) -> Result<i64, Error> {
    with_connection(settings, |client| migrate::version(client, settings))
}

/// Returns the version of the schema that this program makes.
pub fn schema_known() -> i64 {
    migrate::known()
}

fn with_connection<T>(
    settings: &PostgresSettings,
    work: impl FnOnce(&client::Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let runtime = Background::new()?;
    let handle = runtime.handle().clone();
    let connector = Connector::new(settings.direct_endpoint()?, handle)?;
    let pool = Pool::new(connector, settings);
    let client = pool.separate().map_err(Failure::into_error)?;
    work(&client)
}

impl PostgresBackend {
    /// Opens a database; makes the schema if it is missing or empty.
    pub fn open(settings: &PostgresSettings) -> Result<Self, Error> {
        let schema = settings.quoted_schema()?;
        let runtime = Background::new()?;
        let connect = |endpoint| Connector::new(endpoint, runtime.handle().clone());
        let direct = connect(settings.direct_endpoint()?)?;
        let pool = Arc::new(Pool::new(connect(settings.endpoint()?)?, settings));
        let listener = match settings.listening {
            Listening::On => Some(Listener {
                connector: direct.clone(),
                runtime: runtime.handle().clone(),
                schema: schema.clone(),
            }),
            Listening::Off => None,
        };
        let terms = Terms::new(&schema, (settings.statement_timeout, settings.lock_timeout));
        let shared = Arc::new(Shared { terms, seen: Arc::default(), rewriting: Arc::default() });
        // The others are for groups of free stores and for readers.
        let waiting_max = settings.connections_max / 2;
        migrate::require_current(&*pool.get().map_err(Failure::into_error)?, settings)?;
        let presence = Presence::new(Arc::clone(&pool), direct.clone(), schema.clone());
        presence.start(runtime.handle());
        Ok(Self {
            presence,
            settings: settings.clone(),
            groups: Groups::new(Arc::clone(&shared.rewriting), waiting_max),
            shared,
            pool,
            direct,
            feed: Feed::new(listener),
            totals: Mutex::default(),
            _runtime: runtime,
        })
    }

    /// Returns how often this process has waited for an answer of the database.
    pub fn round_trips_count(&self) -> u64 {
        self.pool.round_trips_count()
    }

    /// Runs `work` in a transaction that only reads.
    fn reading<T>(
        &self,
        work: &mut dyn FnMut(&Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = self.deadline();
        let mut backoff = Backoff::new(REPEAT_PAUSE_MAX);
        loop {
            let (worked, consequence) = match self.pool.get() {
                Ok(client) => {
                    let transaction = Transaction::read(client, Arc::clone(&self.shared));
                    let worked = work(&transaction);
                    if transaction.failure().is_none() {
                        transaction.end();
                    }
                    (worked, transaction.failure())
                }
                Err(failure) => (Err(failure.into_error()), None),
            };
            match consequence {
                Some(Consequence::Repeat | Consequence::Reconnect | Consequence::Rewritten)
                    if Instant::now() < deadline =>
                {
                    self.prepare_to_repeat(consequence);
                    thread::sleep(backoff.pause());
                }
                // The work may have swallowed the failure.
                Some(_) if worked.is_ok() => return Err(error::connection_lost()),
                Some(_) | None => return worked,
            }
        }
    }

    /// Runs `work` in a transaction of its own that may change rows, with the scope or a larger one.
    fn writing(
        &self,
        scope: Scope,
        work: &mut dyn FnMut(&Transaction) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.run_write(Route::Own(scope), &mut |write| work(write.transaction()?))
    }

    /// Runs `work` until it is committed, or refused for good.
    fn run_write(
        &self,
        mut route: Route,
        work: &mut dyn FnMut(&Write<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.require_open()?;
        let deadline = self.deadline();
        let mut backoff = Backoff::new(REPEAT_PAUSE_MAX);
        loop {
            let write = Write::new(self, route, deadline);
            let worked = work(&write);
            match write.end(worked) {
                Ended::Done(answer) => return answer,
                Ended::Again(.., error) if Instant::now() >= deadline => return Err(error),
                Ended::Again(next, pause, _) => {
                    route = next;
                    if pause == Pause::Backoff {
                        thread::sleep(backoff.pause());
                    }
                }
            }
        }
    }

    /// Returns a transaction that has not begun; waits for a connection until a deadline.
    fn begin(
        &self,
        scope: Scope,
        deadline: Instant,
    ) -> Result<Transaction, (Error, Option<Consequence>)> {
        match self.pool.get_by(deadline.min(Instant::now() + self.settings.pool_timeout)) {
            Ok(client) => Ok(Transaction::write(client, Arc::clone(&self.shared), scope)),
            Err(failure) => {
                let consequence = failure.consequence();
                Err((failure.into_error(), Some(consequence)))
            }
        }
    }

    fn prepare_to_repeat(&self, consequence: Option<Consequence>) {
        if consequence == Some(Consequence::Reconnect) {
            self.pool.drop_idle();
        }
    }

    /// Until when a transaction is repeated.
    fn deadline(&self) -> Instant {
        Instant::now() + self.settings.lock_timeout
    }

    fn require_open(&self) -> Result<(), Error> {
        if self.pool.is_closed() { Err(error::closed()) } else { Ok(()) }
    }

    /// Returns how many rows there are. Counting takes a while, so the result is cached, and whoever comes while
    /// somebody counts gets what was counted before.
    fn totals(&self) -> Totals {
        let mut cached = match self.totals.try_lock() {
            Ok(cached) => cached,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Totals::default(),
        };
        let age_max = |totals: &Totals| {
            if totals.is_exact { TOTALS_AGE_MAX } else { ESTIMATE_AGE_MAX }
        };
        if let Some((at, totals)) = &*cached
            && at.elapsed() < age_max(totals)
        {
            return *totals;
        }
        match self.reading(&mut upkeep::totals) {
            Ok(totals) => {
                *cached = Some((Instant::now(), totals));
                totals
            }
            Err(error) => {
                tracing::debug!(%error, "the rows could not be counted");
                cached.map(|(_, totals)| totals).unwrap_or_default()
            }
        }
    }
}

impl Database for PostgresBackend {
    fn transaction(&self, deadline: Instant) -> Result<Transaction, (Error, Option<Consequence>)> {
        self.begin(Scope::Store, deadline)
    }

    fn patience(&self) -> Duration {
        // Locks, a commit, and the look-up of its outcome.
        let longest = self.settings.lock_timeout + self.shared.terms.answer_timeout;
        longest.saturating_mul(3)
    }

    fn commit(&self, transaction: Transaction) -> Result<Result<(), Refused>, Error> {
        let (has_changed, counter) = (transaction.has_changed(), transaction.counter());
        let marker = Marker::new(&transaction);
        let committed = transaction.commit(marker);
        // The connection is free again, or closed, before anything else happens.
        drop(transaction);
        let committed = match committed {
            Ok(()) => Ok(Ok(())),
            Err(failure) if failure.is_certain() => Ok(Err(Refused::of(failure))),
            Err(failure) => self.look_up(marker, failure),
        };
        match &committed {
            Ok(Ok(())) if has_changed => {
                if let Some(counter) = counter {
                    self.shared.seen.note(counter);
                }
                self.feed.notify();
            }
            Ok(Err(refused)) => self.prepare_to_repeat(Some(refused.consequence)),
            Ok(Ok(())) | Err(_) => {}
        }
        committed
    }
}

impl Refused {
    fn of(failure: Failure) -> Self {
        Self { consequence: failure.consequence(), error: failure.into_error() }
    }
}

impl Backend for PostgresBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        let lacks_changes = Cell::new(false);
        let mut run = |transaction: &Transaction| {
            let worked = work(&Rows::new(transaction));
            lacks_changes.set(transaction.lacks_changes());
            worked
        };
        let worked = self.reading(&mut run);
        if !lacks_changes.get() {
            return worked;
        }
        // Taking the counter begins a new generation, unless the primary has the changes after all.
        let mut is_new = false;
        self.writing(Scope::Administration, &mut |transaction| {
            transaction.take_counter()?;
            is_new = transaction.has_changed();
            Ok(())
        })?;
        if is_new {
            tracing::warn!(
                "the database lost changes that had been delivered (failover to a lagging replica?); \
                 every follower must resynchronize"
            );
        }
        // The connections may lead to a replica behind the same name.
        self.pool.drop_idle();
        let worked = self.reading(&mut run);
        if lacks_changes.get() { Err(error::behind()) } else { worked }
    }

    /// Never answers: whether a row is still the row is known only to the database.
    fn read_now(&self, _: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        None
    }

    fn write(&self, _: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let route = Route::Grouped(Retry::Grouped);
        let written = self.run_write(route, &mut |write| work(&mut Rows::of_write(write)));
        self.presence.note(&written);
        written
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let mut newest = seen;
        self.watch(timeout, &mut || {
            self.read(&mut |reader| {
                newest = reader.newest_change()?.0;
                Ok(())
            })?;
            Ok(newest > seen)
        })?;
        Ok(newest)
    }

    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error> {
        self.feed.watch(timeout, &mut || {
            self.require_open()?;
            is_done()
        })
    }

    fn erase(&self) -> Result<Erasure, Error> {
        self.erase_all()
    }

    fn unreachable(&self) -> Result<Vec<String>, Error> {
        self.reading(&mut erase::unreachable)
    }

    fn remains(&self) -> Result<Remains, Error> {
        self.all_remains()
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.note_all_erased(erased)
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.require_open()?;
        // Tried each time, unlike the counts: whoever asks decides by it where to send requests.
        let beat = self.presence.beat()?;
        let totals = self.totals();
        let (groups_count, writes_count, waiting_count) = self.groups.counts();
        Ok(Condition {
            stores_count: totals.stores,
            memories_count: totals.memories,
            versions_count: totals.versions,
            database_size_bytes: totals.size_bytes,
            writers_waiting_count: waiting_count,
            groups_count,
            writes_count,
            clock: Some(beat.clock),
            ..Condition::default()
        })
    }

    fn clock(&self) -> Result<Option<Timestamp>, Error> {
        let mut clock = None;
        self.reading(&mut |transaction| {
            clock = Some(upkeep::clock(transaction)?);
            Ok(())
        })?;
        Ok(clock)
    }

    fn lease(&self, name: &str, duration: Duration) -> Result<bool, Error> {
        self.require_open()?;
        self.presence.lease(name, duration)
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.reading(&mut upkeep::verify)
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.writing(Scope::Exclusive, &mut upkeep::rebuild)
    }

    fn backup(&self, _: &Path) -> Result<(), Error> {
        Err(error::no_backup())
    }

    fn compact(&self) -> Result<(), Error> {
        self.compact_all()
    }

    fn close(&self) -> Result<(), Error> {
        self.presence.leave();
        self.pool.close();
        self.feed.close();
        Ok(())
    }
}

impl fmt::Debug for PostgresBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBackend").field("settings", &self.settings).finish_non_exhaustive()
    }
}
