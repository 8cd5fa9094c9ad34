//! Waiting for changes.
//!
//! The tables are the truth. A notification is only a wake-up: it says that something may have happened, and
//! waiters look for themselves. One connection listens, from the first wait on. While it is broken, or where
//! a pooler makes listening impossible, waiters look at an interval instead, and nobody looks while nobody
//! waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::WatchWork;
use tokio::runtime::Handle;

use crate::connect::{Connector, Heard};
use crate::error::Failure;
use crate::retry::{Backoff, random_bits};

/// Wakes the threads that wait for changes.
pub(crate) struct Feed {
    bell: Arc<Bell>,
    /// `None` if nobody listens.
    listener: Option<Listener>,
    started: Once,
}

/// What the connection that listens needs.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) connector: Connector,
    pub(crate) runtime: Handle,
    /// The name of the schema, which is also that of the channel.
    pub(crate) schema: String,
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

/// How long a notification may take to arrive before nobody counts on any, and how often to look for it.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(2);
const TRIAL_INTERVAL: Duration = Duration::from_millis(5);

/// How long to wait before trying again where notifications do not arrive.
const UNHEARD_PAUSE: Duration = Duration::from_mins(5);

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
        let Some(listener) = &self.listener else { return };
        listener.runtime.spawn(listen_forever(listener.clone(), Arc::clone(&self.bell)));
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

/// Listens for as long as the backend is open.
async fn listen_forever(listener: Listener, bell: Arc<Bell>) {
    let mut backoff = Backoff::new(RECONNECT_PAUSE_MAX);
    while !bell.is_closed.load(Ordering::Acquire) {
        let listened = listen(&listener, &bell).await;
        if bell.is_listening.swap(false, Ordering::AcqRel) {
            backoff = Backoff::new(RECONNECT_PAUSE_MAX);
        }
        // What was committed since the connection broke has rung nowhere; and waiters must learn that they
        // have to look by themselves.
        bell.ring();
        let pause = match listened {
            Ok(()) => backoff.pause(),
            Err(Deaf::Lost(failure)) => {
                tracing::warn!(%failure, "lost the LISTEN connection; falling back to polling");
                backoff.pause()
            }
            Err(Deaf::Unheard) => {
                tracing::warn!(
                    "notifications do not arrive through this address, which may be that of a pooler; \
                     falling back to polling: set `listen_url` to an address past it"
                );
                UNHEARD_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Why nobody listens.
enum Deaf {
    /// The connection broke, or could not be made.
    Lost(Failure),
    /// The server took `LISTEN`, and what was notified then did not arrive.
    Unheard,
}

impl From<Failure> for Deaf {
    fn from(failure: Failure) -> Self {
        Self::Lost(failure)
    }
}

impl From<tokio_postgres::Error> for Deaf {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Lost(error.into())
    }
}

/// Rings at each notification, until the connection breaks.
async fn listen(listener: &Listener, bell: &Arc<Bell>) -> Result<(), Deaf> {
    let Listener { connector, schema, .. } = listener;
    let trial = format!("{:x}", random_bits());
    let heard = {
        let (bell, trial) = (Arc::clone(bell), trial.clone());
        Heard::calling(move |payload| {
            if payload == trial {
                bell.is_listening.store(true, Ordering::Release);
            }
            bell.ring();
        })
    };
    let client = connector.connect_any(heard).await?.client;
    client.batch_execute(&format!("LISTEN {schema}")).await?;
    // A pooler that gives each transaction another connection takes the statement too, and nothing is ever
    // heard. By another connection, because a server tells its own client at once.
    let other = connector.connect_any(Heard::default()).await?.client;
    other.batch_execute(&format!("NOTIFY {schema}, '{trial}'")).await?;
    drop(other);
    let since = tokio::time::Instant::now();
    while !bell.is_listening.load(Ordering::Acquire) {
        if since.elapsed() > TRIAL_TIMEOUT {
            return Err(Deaf::Unheard);
        }
        tokio::time::sleep(TRIAL_INTERVAL).await;
    }
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        if bell.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        // A firewall that forgets idle connections drops their packets in silence.
        match tokio::time::timeout(PROBE_INTERVAL, client.check_connection()).await {
            Ok(alive) => alive?,
            Err(_) => return Err(Deaf::Lost(Failure::HostGone)),
        }
    }
}
