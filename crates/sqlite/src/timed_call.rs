//! A deadline for a blocking call that has none, such as `flock`.
//!
//! A thread of its own makes the call. A caller that gives up leaves the thread behind, and the next
//! caller takes it over, so there is never more than one. A result that nobody waits for is dropped.
//!
//! Polling with the non-blocking call would need no thread, but then the kernel's queue does not know of
//! the waiter, and one that polls starves behind those that block. A signal to interrupt the call is not
//! an option inside a library: signal handlers belong to the whole process.

use std::io;

use crate::sync::{Arc, Condvar, Instant, Mutex, PoisonError, thread};

/// Waits for a `T`, for one caller at a time.
#[derive(Debug)]
pub(crate) struct TimedCall<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    delivered: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// Whether a thread is making the call.
    is_calling: bool,
    /// Whether a caller waits for the result.
    is_awaited: bool,
    result: Option<io::Result<T>>,
}

impl<T> Default for TimedCall<T> {
    fn default() -> Self {
        let state = State { is_calling: false, is_awaited: false, result: None };
        Self(Arc::new(Shared { state: Mutex::new(state), delivered: Condvar::new() }))
    }
}

impl<T: Send + 'static> TimedCall<T> {
    /// Returns the result of `call`, or `None` at the deadline. A call that an earlier caller gave up on
    /// is taken over, so all calls must be for the same thing.
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
            thread::spawn(move || shared.deliver(call()));
        }
        loop {
            if let Some(result) = state.result.take() {
                state.is_awaited = false;
                return Some(result);
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                state.is_awaited = false;
                return None;
            }
            let waited = shared.delivered.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Shared<T> {
    fn deliver(&self, result: io::Result<T>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_calling = false;
        // Keeping it for the next caller would be wrong: what is delivered is a lock that is held.
        if state.is_awaited {
            state.result = Some(result);
            self.delivered.notify_all();
        }
    }
}
