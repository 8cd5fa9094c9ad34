//! A bounded pool of connections.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::connect::{Connector, Heard};
use crate::error::{self, Failure};
use crate::settings::{PostgresSettings, PreparedStatements};

/// Connections that several threads take turns with.
pub(crate) struct Pool {
    connector: Connector,
    prober: Arc<Prober>,
    prepared: PreparedStatements,
    connections_max: usize,
    timeout: Duration,
    state: Mutex<State>,
    freed: Condvar,
    round_trips: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    idle: Vec<Client>,
    /// How many connections there are, in use or idle.
    count: usize,
    is_closed: bool,
}

/// Tells hosts that are slow from hosts that are gone.
pub(crate) struct Prober {
    connector: Connector,
    /// What the last probe has found, of which host and when.
    found: Mutex<Option<(usize, Instant, bool)>>,
}

/// How long a probe holds for everybody who waits for the same host.
const PROBE_AGE_MAX: Duration = Duration::from_secs(2);

impl Prober {
    /// Returns whether a host takes connections. One caller at a time asks it: a host under load must not get
    /// a connection of each one who waits for it.
    pub(crate) fn is_answering(&self, host: usize) -> bool {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match *found {
            Some((of, at, is_answering)) if of == host && at.elapsed() < PROBE_AGE_MAX => {
                is_answering
            }
            _ => {
                let is_answering = self.connector.is_answering(host);
                *found = Some((host, Instant::now(), is_answering));
                is_answering
            }
        }
    }
}

impl Pool {
    pub(crate) fn new(connector: Connector, settings: &PostgresSettings) -> Self {
        let prober = Arc::new(Prober { connector: connector.clone(), found: Mutex::default() });
        Self {
            connector,
            prober,
            prepared: settings.prepared_statements,
            connections_max: settings.connections_max.max(1),
            timeout: settings.pool_timeout,
            state: Mutex::default(),
            freed: Condvar::new(),
            round_trips: Arc::default(),
        }
    }

    /// Returns a connection that nobody else uses; waits for one if all are in use.
    pub(crate) fn get(self: &Arc<Self>) -> Result<Pooled, Failure> {
        self.get_by(Instant::now() + self.timeout)
    }

    /// Returns a connection that nobody else uses; waits for one until a deadline if all are in use.
    pub(crate) fn get_by(self: &Arc<Self>, deadline: Instant) -> Result<Pooled, Failure> {
        let start = Instant::now();
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return Err(Failure::refused(error::closed()));
            }
            while let Some(client) = state.idle.pop() {
                if client.is_usable() {
                    return Ok(Pooled { pool: Arc::clone(self), client: Some(client) });
                }
                state.count -= 1;
            }
            if state.count < self.connections_max {
                state.count += 1;
                drop(state);
                return self.connect();
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                let exhausted = error::pool_exhausted(self.connections_max, start.elapsed());
                return Err(Failure::refused(exhausted));
            }
            let waited = self.freed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a connection outside of the pool.
    pub(crate) fn separate(&self) -> Result<Client, Failure> {
        self.client_of(&self.connector)
    }

    /// Returns a connection outside of the pool, whose session has settings of its own.
    pub(crate) fn separate_of(&self, connector: &Connector) -> Result<Client, Failure> {
        self.client_of(connector)
    }

    /// Fails every later call, and closes what is idle.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.idle.clear();
        self.freed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Returns how often this process has waited for an answer of the database.
    pub(crate) fn round_trips_count(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Closes the idle connections: after a failover they lead to a server that is gone.
    pub(crate) fn drop_idle(&self) {
        let mut state = self.lock();
        state.count -= state.idle.len();
        let idle = std::mem::take(&mut state.idle);
        self.freed.notify_all();
        drop(state);
        drop(idle);
    }

    fn connect(self: &Arc<Self>) -> Result<Pooled, Failure> {
        // Counted as in use until here, and given back by the guard if connecting fails.
        let mut pooled = Pooled { pool: Arc::clone(self), client: None };
        pooled.client = Some(self.separate()?);
        Ok(pooled)
    }

    fn client_of(&self, connector: &Connector) -> Result<Client, Failure> {
        let heard = Heard::default();
        let connected = connector.connect(&heard)?;
        let (prober, round_trips) = (Arc::clone(&self.prober), Arc::clone(&self.round_trips));
        Ok(Client::new(connected, heard, (self.prepared, prober, round_trips)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

/// A connection of the pool, for as long as this exists.
pub(crate) struct Pooled {
    pool: Arc<Pool>,
    client: Option<Client>,
}

impl Deref for Pooled {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("a connection is there until the guard is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.client.take() {
            Some(client) if client.is_usable() && !state.is_closed => state.idle.push(client),
            Some(_) | None => state.count -= 1,
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}
