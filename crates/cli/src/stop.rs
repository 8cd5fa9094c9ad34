//! Stopping threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A stop signal that threads can wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Signals all threads to stop.
    pub(crate) fn set(&self) {
        let (is_set, changed) = &*self.0;
        *is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Returns whether the signal was given.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set_within(Duration::ZERO)
    }

    /// Waits for the signal, at most `span`, and returns whether it was given.
    pub(crate) fn is_set_within(&self, span: Duration) -> bool {
        let (is_set, changed) = &*self.0;
        let is_set = is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(is_set, span, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
