//! Waiting for changes, without polling.
//!
//! A commit of this process wakes waiters directly. Commits of other processes ring the bell of
//! the [`Gate`](crate::gate::Gate), a file that is watched from the first wait on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use quipu_core::Error;
use quipu_core::backend::WatchWork;

pub(crate) struct Feed {
    bell: PathBuf,
    wakes: Arc<Wakes>,
    watcher: OnceLock<Option<RecommendedWatcher>>,
}

/// Counts the reasons to look again.
#[derive(Default)]
struct Wakes {
    count: Mutex<u64>,
    more: Condvar,
}

/// When a bell rang but nothing new is there, the writer is still busy or has died: look again
/// after these times, then wait for the next bell.
const LOOK_AGAIN: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];

/// How often to look where files cannot be watched.
const LOOK_UNWATCHED: Duration = Duration::from_millis(500);

impl Feed {
    /// Makes the feed of the data directory whose lock file is given.
    pub(crate) fn new(lock_file: &Path) -> Self {
        Self { bell: lock_file.to_owned(), wakes: Arc::default(), watcher: OnceLock::new() }
    }

    /// Says that this process has committed a change.
    pub(crate) fn changed(&self) {
        self.wakes.wake();
    }

    /// Looks now and after every commit, until `look` says that it has seen what it waits for, or
    /// until `patience` ends.
    pub(crate) fn watch(&self, patience: Duration, look: &mut WatchWork<'_>) -> Result<(), Error> {
        // A span too long to add means to wait for ever.
        let deadline = Instant::now().checked_add(patience);
        let is_watched = self.watcher.get_or_init(|| watch(&self.bell, &self.wakes)).is_some();
        let mut look_again = LOOK_AGAIN.iter();
        let mut wakes_seen = self.wakes.count();
        loop {
            let is_seen = look()?;
            let remaining = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if is_seen || remaining.is_some_and(|remaining| remaining.is_zero()) {
                return Ok(());
            }
            let pause = if is_watched { look_again.next() } else { Some(&LOOK_UNWATCHED) };
            let longest = match (pause, remaining) {
                (Some(&pause), Some(remaining)) => Some(pause.min(remaining)),
                (pause, remaining) => pause.copied().or(remaining),
            };
            let wakes_now = self.wakes.wait(wakes_seen, longest);
            if wakes_now != wakes_seen {
                look_again = LOOK_AGAIN.iter();
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

/// Watches the bell; `None` if this system cannot watch it.
fn watch(bell: &Path, wakes: &Arc<Wakes>) -> Option<RecommendedWatcher> {
    let wakes = Arc::clone(wakes);
    let rang = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| event.kind.is_modify()) {
            wakes.wake();
        }
    };
    let mut watcher = notify::recommended_watcher(rang).ok()?;
    watcher.watch(bell, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}
