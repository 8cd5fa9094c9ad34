//! The reader's half of a seqlock, with a cache in it.
//!
//! Whoever writes makes the count odd before, and the next even number afterwards. What was read between
//! two looks at the same even count is consistent, and it is still true whenever a later look finds that
//! count again. So a reader that finds the count unchanged needs no lock and no I/O.

use crate::sync::{PoisonError, RwLock};

/// Values that were read at one count.
pub(crate) struct SeqlockCache<T> {
    state: RwLock<State<T>>,
}

struct State<T> {
    count: Option<u64>,
    values: T,
}

impl<T: Default> Default for SeqlockCache<T> {
    fn default() -> Self {
        Self { state: RwLock::new(State { count: None, values: T::default() }) }
    }
}

impl<T: Default> SeqlockCache<T> {
    /// Runs `work` with the values, if they are those of the current count.
    ///
    /// `count` returns `None` while somebody writes. It is called with the lock held, and so is `work`:
    /// the values that were compared are the ones that are used, and all of them belong to one count.
    pub(crate) fn with<R>(
        &self,
        count: impl FnOnce() -> Option<u64>,
        work: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let count = count()?;
        (state.count == Some(count)).then(|| work(&state.values))
    }

    /// Adds values that were read while the count was this one; those of another count are dropped.
    pub(crate) fn add(&self, count: u64, add: impl FnOnce(&mut T)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.count != Some(count) {
            *state = State { count: Some(count), values: T::default() };
        }
        add(&mut state.values);
    }
}
