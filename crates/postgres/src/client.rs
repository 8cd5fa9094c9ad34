//! One connection, for callers that block.
//!
//! `tokio-postgres` drives the socket on the backend's runtime; a caller polls the answer on its own thread
//! and parks in between. That works on any thread, also on the blocking threads of another runtime, and it
//! gives every wait a deadline without a timer.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use crate::connect::{Connected, Heard};
use crate::error::Failure;
use crate::pool::Prober;
use crate::retry::random_bits;
use crate::settings::PreparedStatements;
use crate::values::{Bits, Param};

/// How many prepared statements a connection keeps; there are fewer texts of statements than this.
const STATEMENTS_MAX: usize = 256;

/// How long whoever waits for an answer waits before it asks whether the host is still there. The connection
/// does not tell: a server that was stopped keeps it open.
const PROBE_EVERY: Duration = Duration::from_secs(3);

/// A connection to the database.
pub(crate) struct Client {
    inner: tokio_postgres::Client,
    /// The number of its host.
    host: usize,
    heard: Heard,
    prober: Arc<Prober>,
    /// An id that no other connection has.
    id: Bits,
    prepared: PreparedStatements,
    statements: Mutex<HashMap<String, Statement>>,
    /// Set when an answer was not waited for to its end, or when a transaction may still be open.
    is_dirty: AtomicBool,
    round_trips: Arc<AtomicU64>,
}

impl Client {
    pub(crate) fn new(
        Connected { client, host }: Connected,
        heard: Heard,
        (prepared, prober, round_trips): (PreparedStatements, Arc<Prober>, Arc<AtomicU64>),
    ) -> Self {
        let (statements, is_dirty) = (Mutex::default(), AtomicBool::new(false));
        let id = Bits(random_bits());
        Self { inner: client, host, heard, prober, id, prepared, statements, is_dirty, round_trips }
    }

    /// Returns an id that no other connection has.
    pub(crate) fn id(&self) -> Bits {
        self.id
    }

    /// Returns what the server has said beside its answers.
    pub(crate) fn heard(&self) -> &Heard {
        &self.heard
    }

    pub(crate) fn inner(&self) -> &tokio_postgres::Client {
        &self.inner
    }

    /// Returns whether another transaction may begin on this connection.
    pub(crate) fn is_usable(&self) -> bool {
        !self.inner.is_closed() && !self.is_dirty.load(Ordering::Acquire)
    }

    /// Gives the connection up, so that it is closed instead of being used again.
    pub(crate) fn discard(&self) {
        self.is_dirty.store(true, Ordering::Release);
    }

    /// Runs statements without parameters.
    pub(crate) fn batch(&self, deadline: Instant, sql: &str) -> Result<(), Failure> {
        self.wait(deadline, async { Ok(self.inner.batch_execute(sql).await?) })
    }

    /// Sends statements without waiting for their answer. What is sent later on this connection runs after
    /// them.
    pub(crate) fn send(&self, sql: &str) {
        let mut sent = pin!(self.inner.batch_execute(sql));
        let polled = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Err(_)) = polled {
            self.discard();
        }
    }

    /// Runs one statement, after `before` in the same round trip if there is something to run before it.
    pub(crate) fn query(
        &self,
        deadline: Instant,
        before: Option<&str>,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let rows = self.pipeline(deadline, before, &[(sql, params.to_vec())], None)?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    /// Runs `before`, several statements and then `last` in one round trip. The first failure is returned.
    pub(crate) fn pipeline(
        &self,
        deadline: Instant,
        before: Option<&str>,
        statements: &[(&str, Vec<Param<'_>>)],
        last: Option<&str>,
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let batch = async |sql: Option<&str>| match sql {
            Some(sql) => self.inner.batch_execute(sql).await,
            None => Ok(()),
        };
        self.wait(deadline, async {
            let runs = async {
                // A statement that is not prepared yet would be sent later than those after it.
                self.prepare_all(statements).await?;
                let runs = statements.iter().map(|(sql, params)| self.run(sql, params));
                let runs = futures_util::future::join_all(runs);
                // Polled in this order, so they are sent in this order.
                let (runs, ended) = futures_util::future::join(runs, batch(last)).await;
                let rows = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
                ended.map(|()| rows)
            };
            let (begun, rows) = futures_util::future::join(batch(before), runs).await;
            begun?;
            Ok(rows?)
        })
    }

    /// Prepares the statements that are not prepared yet, in one round trip.
    async fn prepare_all(
        &self,
        statements: &[(&str, Vec<Param<'_>>)],
    ) -> Result<(), tokio_postgres::Error> {
        if self.prepared == PreparedStatements::Off {
            return Ok(());
        }
        let missing: Vec<_> = {
            let known = self.lock();
            statements.iter().filter(|(sql, _)| !known.contains_key(*sql)).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let preparing = missing.iter().map(|(sql, params)| self.prepare_new(sql, params));
        let prepared = futures_util::future::join_all(preparing).await;
        prepared.into_iter().try_for_each(|prepared| prepared.map(drop))
    }

    async fn prepare_new(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Statement, tokio_postgres::Error> {
        let types: Vec<Type> = params.iter().map(|param| param.sql_type()).collect();
        let statement = self.inner.prepare_typed(sql, &types).await?;
        let mut statements = self.lock();
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    async fn prepare(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Statement>, tokio_postgres::Error> {
        if self.prepared == PreparedStatements::Off {
            return Ok(None);
        }
        if let Some(statement) = self.lock().get(sql) {
            return Ok(Some(statement.clone()));
        }
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.prepare_new(sql, params).await.map(Some)
    }

    async fn run(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self.prepare(sql, params).await? {
            Some(statement) => {
                let values: Vec<&(dyn ToSql + Sync)> =
                    params.iter().map(|param| param.value()).collect();
                self.inner.query(&statement, &values).await
            }
            None => {
                let typed: Vec<_> =
                    params.iter().map(|param| (param.value(), param.sql_type())).collect();
                self.inner.query_typed(sql, &typed).await
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer. A connection whose answer does not come in time is given up, and so is one to a
    /// host that is gone.
    fn wait<T>(
        &self,
        deadline: Instant,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let mut answer = pin!(answer);
        loop {
            let probe_at = Instant::now() + PROBE_EVERY;
            if let Some(answer) = block_on(deadline.min(probe_at), answer.as_mut()) {
                return answer;
            }
            let failure = if Instant::now() >= deadline {
                Failure::TimedOut
            } else if self.prober.is_answering(self.host) {
                continue;
            } else {
                Failure::HostGone
            };
            self.discard();
            return Err(failure);
        }
    }
}

/// Runs a future on this thread; `None` if it is not ready by the deadline.
pub(crate) fn block_on<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future: Pin<&mut _> = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return None;
        }
        thread::park_timeout(remaining);
    }
}

/// A thread that waits for a future.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
