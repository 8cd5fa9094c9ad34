//! Waiting for changes, without polling.
//!
//! A commit of this process wakes waiters directly. Other processes write the lock file of the
//! [`Gate`](crate::gate::Gate) at the end of each turn, so that file is watched (inotify and the like)
//! from the first wait on.
//!
//! A notification says only that something may have happened. It can come before the commit is visible,
//! it can be for a write that was refused, and several can be merged into one. So waiters never act on
//! it; they check their condition again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use quipu_core::Error;
use quipu_core::backend::WatchWork;

pub(crate) struct Feed {
    lock_file: PathBuf,
    wakes: Arc<Wakes>,
    watcher: OnceLock<Option<RecommendedWatcher>>,
}

/// Counts wake-ups, so that one that comes while nobody waits is not lost.
#[derive(Default)]
struct Wakes {
    count: Mutex<u64>,
    more: Condvar,
}

/// The lock file is also written when a turn begins. If there was a notification but nothing is new, the
/// writer is still busy, or it has died after its commit and will never write the file again. So waiters
/// check again with this backoff, and then sleep until the next notification.
const RECHECK_BACKOFF: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];

/// How often to check where files cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl Feed {
    /// Returns the feed of the data directory with this lock file.
    pub(crate) fn new(lock_file: &Path) -> Self {
        Self { lock_file: lock_file.to_owned(), wakes: Arc::default(), watcher: OnceLock::new() }
    }

    /// Wakes the waiters of this process after a commit.
    pub(crate) fn notify(&self) {
        self.wakes.wake();
    }

    /// Calls `is_done` now and after every commit, until it returns `true` or the timeout passes.
    pub(crate) fn watch(
        &self,
        timeout: Duration,
        is_done: &mut WatchWork<'_>,
    ) -> Result<(), Error> {
        // A timeout that is too long to add means to wait forever.
        let deadline = Instant::now().checked_add(timeout);
        let is_watched = self.watcher.get_or_init(|| watch(&self.lock_file, &self.wakes)).is_some();
        let mut backoff = RECHECK_BACKOFF.iter();
        // Counted before the check: a commit during the check must lead to another one.
        let mut wakes_seen = self.wakes.count();
        loop {
            let is_over = is_done()?;
            let remaining = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if is_over || remaining.is_some_and(|remaining| remaining.is_zero()) {
                return Ok(());
            }
            let pause = if is_watched { backoff.next() } else { Some(&POLL_INTERVAL) };
            let longest = match (pause, remaining) {
                (Some(&pause), Some(remaining)) => Some(pause.min(remaining)),
                (pause, remaining) => pause.copied().or(remaining),
            };
            let wakes_now = self.wakes.wait(wakes_seen, longest);
            if wakes_now != wakes_seen {
                backoff = RECHECK_BACKOFF.iter();
                wakes_seen = wakes_now;
            }
        }
    }
}

impl Wakes {
    fn wake(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.more.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the count differs from `seen`, at most for `longest`, and returns it.
    fn wait(&self, seen: u64, longest: Option<Duration>) -> u64 {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let unchanged = |count: &mut u64| *count == seen;
        match longest {
            Some(longest) => {
                let waited = self.more.wait_timeout_while(count, longest, unchanged);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.more.wait_while(count, unchanged);
                *waited.unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

/// Watches the lock file; `None` if this system cannot.
fn watch(lock_file: &Path, wakes: &Arc<Wakes>) -> Option<RecommendedWatcher> {
    let wakes = Arc::clone(wakes);
    let notified = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| event.kind.is_modify()) {
            wakes.wake();
        }
    };
    let mut watcher = notify::recommended_watcher(notified).ok()?;
    watcher.watch(lock_file, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}
