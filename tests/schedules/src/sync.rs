//! The lock types of the schedule checker, and a clock that it controls.

use std::cell::Cell;
use std::ops::Add;
use std::time::Duration;

use shuttle::rand::Rng as _;
use shuttle::sync::LockResult;
pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// When a wait with a timeout ends by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeouts {
    Never,
    Random,
}

thread_local! {
    // The checker runs all threads of a schedule on one.
    static TIMEOUTS: Cell<Timeouts> = const { Cell::new(Timeouts::Never) };
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Begins a schedule.
pub(crate) fn start(timeouts: Timeouts) {
    TIMEOUTS.set(timeouts);
    NOW.set(Duration::ZERO);
}

fn is_chosen() -> bool {
    shuttle::rand::thread_rng().gen_bool(0.2)
}

/// A moment of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(NOW.get())
    }

    pub(crate) fn elapsed(self) -> Duration {
        NOW.get().saturating_sub(self.0)
    }

    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0 + span)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    /// Waits for a notification or, if timeouts are random, until one is chosen to end.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        span: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        if TIMEOUTS.get() == Timeouts::Random && is_chosen() {
            // The time is up, and meanwhile others may have run.
            NOW.set(NOW.get() + span);
            return Ok((guard, true));
        }
        Ok((self.0.wait(guard).unwrap_or_else(PoisonError::into_inner), false))
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub(crate) mod thread {
    use std::time::Duration;

    pub(crate) use shuttle::thread::spawn;

    /// Lets the others run for as long as the checker likes.
    pub(crate) fn sleep(span: Duration) {
        super::NOW.set(super::NOW.get() + span);
        shuttle::thread::yield_now();
    }
}
