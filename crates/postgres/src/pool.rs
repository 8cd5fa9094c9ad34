//! A bounded pool of connections.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use tokio::runtime::Handle;
use tokio_postgres::error::DbError;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Connection, NoTls, Socket};

use crate::client::{Client, block_on};
use crate::error::{self, Failure};
use crate::settings::{Endpoint, PostgresSettings, PreparedStatements, Security};
use crate::tls::Tls;

/// Connections that several threads take turns with.
pub(crate) struct Pool {
    connector: Connector,
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

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    endpoint: Endpoint,
    tls: Option<Tls>,
    runtime: Handle,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(
        endpoint: Endpoint,
        runtime: Handle,
        connect_timeout: Duration,
    ) -> Result<Self, Error> {
        let tls = match endpoint.security {
            Security::Disable => None,
            Security::Prefer | Security::Require | Security::VerifyCa | Security::VerifyFull => {
                Some(Tls::new(&endpoint)?)
            }
        };
        // Each host may use up its own timeout, and so may looking at what it is.
        let hosts_count = u32::try_from(endpoint.config.get_hosts().len().max(1)).unwrap_or(1);
        let timeout = connect_timeout.saturating_mul(2).saturating_mul(hosts_count);
        Ok(Self { endpoint, tls, runtime, timeout })
    }

    /// Connects, and drives the connection on the runtime until it is dropped.
    fn connect(&self) -> Result<(tokio_postgres::Client, Notices), Error> {
        let this = self.clone();
        let connecting = self.runtime.spawn(async move {
            match this.tls.clone() {
                None => this.connect_by(NoTls).await,
                Some(tls) => this.connect_by(tls).await,
            }
        });
        let timeout = Instant::now() + self.timeout;
        let abort = connecting.abort_handle();
        let Some(Ok(connected)) = block_on(timeout, connecting) else {
            abort.abort();
            return Err(error::unreachable_host());
        };
        connected.map_err(error::unconnected)
    }

    async fn connect_by<T>(
        &self,
        tls: T,
    ) -> Result<(tokio_postgres::Client, Notices), tokio_postgres::Error>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = self.endpoint.config.connect(tls).await?;
        let notices = Notices::default();
        self.runtime.spawn(drive(connection, notices.clone()));
        Ok((client, notices))
    }

    /// Connects, and returns what has to be polled together with the client.
    pub(crate) async fn connect_with<R>(
        &self,
        with_plain: impl AsyncFnOnce(
            tokio_postgres::Client,
            Connection<Socket, tokio_postgres::tls::NoTlsStream>,
        ) -> R,
        with_tls: impl AsyncFnOnce(
            tokio_postgres::Client,
            Connection<Socket, crate::tls::Stream<Socket>>,
        ) -> R,
    ) -> Result<R, tokio_postgres::Error> {
        match self.tls.clone() {
            None => {
                let (client, connection) = self.endpoint.config.connect(NoTls).await?;
                Ok(with_plain(client, connection).await)
            }
            Some(tls) => {
                let (client, connection) = self.endpoint.config.connect(tls).await?;
                Ok(with_tls(client, connection).await)
            }
        }
    }
}

/// What the server has said on a connection beside its answers.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<Vec<DbError>>>);

/// How many notices are kept; the rest of a flood is dropped.
const NOTICES_MAX: usize = 100;

impl Notices {
    fn add(&self, notice: DbError) {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(notice);
        }
    }

    pub(crate) fn take(&self) -> Vec<DbError> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Drives a connection until its client is dropped or it breaks.
async fn drive<S, T>(mut connection: Connection<S, T>, notices: Notices)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => notices.add(notice),
            Ok(_) => {}
            Err(error) => {
                // Whoever uses the connection gets an error of its own.
                tracing::debug!(%error, "a connection to the database has ended");
                return;
            }
        }
    }
}

impl Pool {
    pub(crate) fn new(connector: Connector, settings: &PostgresSettings) -> Self {
        Self {
            connector,
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
        let start = Instant::now();
        let deadline = start + self.timeout;
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return Err(Failure::Unconnected(error::closed()));
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
                return Err(Failure::Unconnected(exhausted));
            }
            let waited = self.freed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a connection outside of the pool, for what changes its settings.
    pub(crate) fn separate(&self) -> Result<(Client, Notices), Error> {
        let (inner, notices) = self.connector.connect()?;
        Ok((Client::new(inner, self.prepared, Arc::clone(&self.round_trips)), notices))
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
        pooled.client = Some(self.client().map_err(Failure::Unconnected)?);
        Ok(pooled)
    }

    fn client(&self) -> Result<Client, Error> {
        let (inner, _) = self.connector.connect()?;
        Ok(Client::new(inner, self.prepared, Arc::clone(&self.round_trips)))
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
