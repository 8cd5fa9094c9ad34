//! Waiting for changes.
//!
//! The tables are the truth. A notification is only a bell: it says that something may have happened, and
//! waiters look for themselves. One connection listens, from the first wait on. While it is broken, or where
//! a pooler makes listening impossible, waiters look at an interval instead, and nobody looks while nobody
//! waits.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::WatchWork;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio_postgres::{AsyncMessage, Client, Connection};

use crate::pool::Connector;
use crate::retry::Backoff;

/// Wakes the threads that wait for changes.
pub(crate) struct Feed {
    bell: Arc<Bell>,
    /// `None` if nobody listens.
    listener: Option<Listener>,
    started: Once,
}

/// What the connection that listens needs.
pub(crate) struct Listener {
    pub(crate) connector: Connector,
    pub(crate) runtime: Handle,
    /// The statement that begins to listen.
    pub(crate) listen: String,
}

/// Counts wake-ups, so that one that comes while nobody waits is not lost.
#[derive(Default)]
struct Bell {
    count: Mutex<u64>,
    rung: Condvar,
    /// Whether commits of other processes ring.
    is_listening: AtomicBool,
    is_closed: AtomicBool,
}

/// How often waiters look while nobody listens.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How often waiters look while somebody listens, in case a notification was lost with a connection that
/// nobody has noticed to be broken.
const SAFETY_INTERVAL: Duration = Duration::from_secs(10);

/// How often the connection that listens is tried for a sign of life.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The longest pause before connecting again.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(5);

impl Feed {
    pub(crate) fn new(listener: Option<Listener>) -> Self {
        Self { bell: Arc::default(), listener, started: Once::new() }
    }

    /// Wakes the waiters of this process after a commit.
    pub(crate) fn notify(&self) {
        self.bell.ring();
    }

    /// Wakes all waiters, for the last time.
    pub(crate) fn close(&self) {
        self.bell.is_closed.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Calls `is_done` now and after every commit, until it returns `true` or the timeout passes.
    pub(crate) fn watch(
        &self,
        timeout: Duration,
        is_done: &mut WatchWork<'_>,
    ) -> Result<(), Error> {
        // A timeout that is too long to add means to wait forever.
        let deadline = Instant::now().checked_add(timeout);
        self.started.call_once(|| self.start());
        // Counted before the check: a commit during the check must lead to another one.
        let mut seen = self.bell.count();
        loop {
            let is_over = is_done()?;
            let remaining = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if is_over || remaining.is_some_and(|remaining| remaining.is_zero()) {
                return Ok(());
            }
            let is_listening = self.bell.is_listening.load(Ordering::Acquire);
            let interval = if is_listening { SAFETY_INTERVAL } else { POLL_INTERVAL };
            let longest = remaining.map_or(interval, |remaining| remaining.min(interval));
            seen = self.bell.wait(seen, longest);
        }
    }

    fn start(&self) {
        let Some(Listener { connector, runtime, listen }) = &self.listener else { return };
        let listening = listen_forever(connector.clone(), listen.clone(), Arc::clone(&self.bell));
        runtime.spawn(listening);
    }
}

impl Bell {
    fn ring(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.rung.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the count differs from `seen`, at most for `longest`, and returns it.
    fn wait(&self, seen: u64, longest: Duration) -> u64 {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = |count: &mut u64| *count == seen;
        let waited = self.rung.wait_timeout_while(count, longest, unchanged);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

async fn listen_forever(connector: Connector, listen: String, bell: Arc<Bell>) {
    let mut backoff = Backoff::new(RECONNECT_PAUSE_MAX);
    while !bell.is_closed.load(Ordering::Acquire) {
        let listened = connector
            .connect_with(
                async |client, connection| {
                    ring_on_notifications(client, connection, &listen, &bell).await
                },
                async |client, connection| {
                    ring_on_notifications(client, connection, &listen, &bell).await
                },
            )
            .await;
        if bell.is_listening.swap(false, Ordering::AcqRel) {
            backoff = Backoff::new(RECONNECT_PAUSE_MAX);
        }
        // What was committed since the connection broke has rung nowhere; and waiters must learn that they
        // have to look by themselves.
        bell.ring();
        match listened {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => {
                tracing::warn!(%error, "the database is not listened to; changes are polled for");
            }
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}

/// Rings at each notification, until the connection breaks.
async fn ring_on_notifications<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    listen: &str,
    bell: &Bell,
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let messages = async {
        loop {
            match poll_fn(|cx| connection.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(_))) => bell.ring(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            }
        }
    };
    let probes = async {
        client.batch_execute(listen).await?;
        bell.is_listening.store(true, Ordering::Release);
        // What was committed before this took effect has not rung.
        bell.ring();
        loop {
            tokio::time::sleep(PROBE_INTERVAL).await;
            if bell.is_closed.load(Ordering::Acquire) {
                return Ok(());
            }
            // A firewall that forgets idle connections drops their packets in silence.
            match tokio::time::timeout(PROBE_INTERVAL, client.check_connection()).await {
                Ok(alive) => alive?,
                Err(_) => return Ok(()),
            }
        }
    };
    tokio::select! {
        ended = messages => ended,
        ended = probes => ended,
    }
}
