//! That this process is there: what it tells the database from time to time, and what the database tells it.
//!
//! A heartbeat is one write. It says that a write can be made now, which is what readiness is about; it says to
//! `quipu migrate` which servers are running, so that nothing is taken away from under them; and the answer has
//! the clock of the database. Only one is under way at a time. One that is not answered is cancelled: it may
//! be waiting for a standby that is gone, and the next one would wait for the first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use quipu_core::model::Timestamp;
use quipu_core::{Error, ErrorKind};
use tokio::runtime::Handle;

use crate::connect::Connector;
use crate::error::{self, Failure};
use crate::migrate;
use crate::pool::Pool;
use crate::retry::random_bits;
use crate::values::{Bits, Columns as _, number, params};

/// How often a process that stays says that it is there, and after how long one is taken for such a process.
const FIRST_BEAT_AFTER: Duration = Duration::from_secs(2);
const BEAT_EVERY: Duration = Duration::from_secs(15);

/// For how long a process is taken to be there after it has said so.
pub(crate) const PRESENT_FOR_SECONDS: u32 = 60;

/// How long a heartbeat may take.
const BEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// A heartbeat that takes longer than this is no sign of health.
const PATIENCE: Duration = Duration::from_secs(1);

/// For how long a write that found the disk full speaks for all.
const FULL_FOR: Duration = Duration::from_secs(30);

/// What this process says of itself, and what it was told.
pub(crate) struct Presence {
    id: Bits,
    pool: Arc<Pool>,
    direct: Connector,
    schema: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the heartbeat that is under way began.
    begun: Option<Instant>,
    /// What the last one found.
    last: Option<Result<Beat, Error>>,
    /// When a write found the disk full, and nothing was written since.
    full: Option<(Instant, Error)>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// What the clock of the database shows.
    pub(crate) clock: Timestamp,
}

impl Presence {
    pub(crate) fn new(pool: Arc<Pool>, direct: Connector, schema: String) -> Arc<Self> {
        let (id, state) = (Bits(random_bits()), Mutex::default());
        Arc::new(Self { id, pool, direct, schema, state })
    }

    /// Beats on a runtime, until the presence is dropped or the pool closed. A process that ends soon never
    /// does.
    pub(crate) fn start(self: &Arc<Self>, runtime: &Handle) {
        let this = Arc::downgrade(self);
        let beating = |this: &Weak<Self>| this.upgrade().filter(|this| !this.pool.is_closed());
        let blocking = runtime.clone();
        runtime.spawn(async move {
            let mut pause = FIRST_BEAT_AFTER;
            loop {
                tokio::time::sleep(std::mem::replace(&mut pause, BEAT_EVERY)).await;
                let Some(this) = beating(&this) else { return };
                // What it finds is for whoever asks next.
                let beaten = blocking.spawn_blocking(move || this.beat().map(drop)).await;
                if let Ok(Err(error)) = beaten {
                    tracing::debug!(%error, "the database has not taken a heartbeat");
                }
            }
        });
    }

    /// Returns the answer to a heartbeat, if the database can be written now.
    pub(crate) fn beat(&self) -> Result<Beat, Error> {
        {
            let mut state = self.state();
            if let Some((_, error)) = state.full.as_ref().filter(|(at, _)| at.elapsed() < FULL_FOR)
            {
                return Err(error.clone());
            }
            match state.begun {
                Some(begun) if begun.elapsed() > PATIENCE => {
                    return Err(error::unanswered(begun.elapsed()));
                }
                Some(_) => {
                    return state.last.clone().unwrap_or_else(|| Err(error::no_answer()));
                }
                None => state.begun = Some(Instant::now()),
            }
        }
        let beat = self.write();
        let mut state = self.state();
        state.begun = None;
        state.last = Some(beat.clone());
        beat
    }

    fn write(&self) -> Result<Beat, Error> {
        let deadline = Instant::now() + BEAT_TIMEOUT;
        let client = self.pool.get_by(deadline).map_err(Failure::into_error)?;
        let schema = &self.schema;
        let sql = format!(
            "INSERT INTO {schema}.servers (id, schema) VALUES ($1, $2)
             ON CONFLICT (id) DO UPDATE SET at = now()
             RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
                (SELECT version FROM {schema}.quipu_schema),
                (SELECT compatible_from FROM {schema}.quipu_schema)"
        );
        let rows = client.query(deadline, None, &sql, params![self.id, migrate::known()]);
        if !client.is_usable() {
            self.direct.cancel(client.inner());
        }
        let rows = rows.map_err(Failure::into_error)?;
        let row = rows.first().ok_or_else(error::damaged)?;
        let (version, compatible_from): (i64, i64) = (row.value(1)?, row.value(2)?);
        if compatible_from > migrate::known() {
            return Err(error::too_new(version, migrate::known()));
        }
        Ok(Beat { clock: row.moment(0)? })
    }

    /// Takes or renews a lease; returns whether this process has it.
    pub(crate) fn lease(&self, name: &str, duration: Duration) -> Result<bool, Error> {
        let deadline = Instant::now() + BEAT_TIMEOUT;
        let client = self.pool.get_by(deadline).map_err(Failure::into_error)?;
        let sql = format!(
            "INSERT INTO {0}.leases AS l (name, holder, until)
                VALUES ($1, $2, now() + $3 * interval '1 millisecond')
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
                WHERE l.holder = excluded.holder OR l.until < now()
             RETURNING 1",
            self.schema
        );
        let values = params![name, self.id, number(duration.as_millis())];
        let rows = client.query(deadline, None, &sql, values).map_err(Failure::into_error)?;
        Ok(!rows.is_empty())
    }

    /// Says that this process goes, so that nobody waits for its leases. That is a courtesy: they end by
    /// themselves.
    pub(crate) fn leave(&self) {
        if self.state().last.is_none() {
            return;
        }
        let Ok(client) = self.pool.get_by(Instant::now()) else { return };
        let schema = &self.schema;
        let sql = format!(
            "WITH gone AS (DELETE FROM {schema}.servers
                WHERE id = $1 OR at < now() - interval '1 day')
             DELETE FROM {schema}.leases WHERE holder = $1"
        );
        let left = client.query(Instant::now() + PATIENCE, None, &sql, params![self.id]);
        if let Err(failure) = left {
            tracing::debug!(%failure, "the database was not told that this process ends");
        }
    }

    /// Notes how a write has ended.
    pub(crate) fn note(&self, written: &Result<(), Error>) {
        match written {
            Ok(()) => {
                let mut state = self.state();
                state.full = None;
            }
            Err(error) if *error.kind() == ErrorKind::StorageFull => {
                self.state().full = Some((Instant::now(), error.clone()));
            }
            Err(_) => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
