//! What was read, for as long as a count stands still.
//!
//! The reader's half of a seqlock. Whoever writes makes the count odd before, and another even number
//! afterwards. What was read between two equal looks at an even count is still true when a third look
//! finds the same.

use crate::sync::{PoisonError, RwLock};

/// Answers of one count.
pub(crate) struct Kept<T> {
    state: RwLock<State<T>>,
}

struct State<T> {
    count: Option<u64>,
    answers: T,
}

impl<T: Default> Default for Kept<T> {
    fn default() -> Self {
        Self { state: RwLock::new(State { count: None, answers: T::default() }) }
    }
}

impl<T: Default> Kept<T> {
    /// Runs `work` with the answers, if they are those of the present count.
    ///
    /// `count` returns `None` while somebody writes. It is asked while the answers cannot be replaced:
    /// asked before, it might be the count of older ones.
    pub(crate) fn with<R>(
        &self,
        count: impl FnOnce() -> Option<u64>,
        work: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let count = count()?;
        (state.count == Some(count)).then(|| work(&state.answers))
    }

    /// Adds answers that were read while the count was this one, in place of those of another.
    pub(crate) fn add(&self, count: u64, add: impl FnOnce(&mut T)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.count != Some(count) {
            *state = State { count: Some(count), answers: T::default() };
        }
        add(&mut state.answers);
    }
}
