//! Waiting with a deadline for a call that knows none.
//!
//! A thread of its own makes the call. Whoever gives up leaves the thread behind; the next one who
//! comes takes it over, so that there is never more than one. What it brings when nobody waits any
//! more is dropped.

use std::io;

use crate::sync::{Arc, Condvar, Instant, Mutex, PoisonError, thread};

/// A place to wait for a `T`, for one thread at a time.
#[derive(Debug)]
pub(crate) struct Patience<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// Whether a thread is making the call.
    is_calling: bool,
    /// Whether somebody waits for what it brings.
    is_awaited: bool,
    brought: Option<io::Result<T>>,
}

impl<T> Default for Patience<T> {
    fn default() -> Self {
        let state = State { is_calling: false, is_awaited: false, brought: None };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }
}

impl<T: Send + 'static> Patience<T> {
    /// Returns what `call` brings, or `None` at the deadline. A call that somebody has given up on is
    /// taken over, so all calls must be for the same thing.
    pub(crate) fn wait_until(
        &self,
        deadline: Instant,
        call: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Option<io::Result<T>> {
        let shared = &*self.0;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_awaited = true;
        if !state.is_calling {
            state.is_calling = true;
            let shared = Arc::clone(&self.0);
            thread::spawn(move || shared.bring(call()));
        }
        loop {
            if let Some(brought) = state.brought.take() {
                state.is_awaited = false;
                return Some(brought);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                state.is_awaited = false;
                return None;
            }
            let waited = shared.changed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Shared<T> {
    fn bring(&self, brought: io::Result<T>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_calling = false;
        if state.is_awaited {
            state.brought = Some(brought);
            self.changed.notify_all();
        }
    }
}
