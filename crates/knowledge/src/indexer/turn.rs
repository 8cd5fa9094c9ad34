//! Which thread of this process writes the index.
//!
//! Catching up is a group commit: the leader indexes everything that was written before it began, and
//! the searches that come meanwhile wait for it, because mostly it indexes what they need too. Letting
//! each of them index the same changes in memory looks cheaper, since nobody waits. But it multiplies the
//! work by the number of threads, and then writers and searches compete for the processor: with eight
//! threads and one search among twenty calls, writes fell to an eighth of their speed.

use std::time::Duration;

use crate::sync::{Condvar, Instant, Mutex, MutexGuard, PoisonError};

/// Lets one thread at a time write the index.
#[derive(Debug, Default)]
pub(super) struct Turn {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    holder: Holder,
    /// How often the turn was given back. A follower that asked for the holder instead could wait for one
    /// leader after the other: when it runs, the next one may lead already.
    ended_count: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    /// A thread that indexes a few changes: milliseconds.
    Leader,
    /// A thread that builds the index of a store: up to minutes, so nobody waits for it.
    Builder,
}

/// How asking for the turn ended.
#[derive(Debug)]
pub(super) enum Asked<'t> {
    /// The caller leads.
    Leads(TurnGuard<'t>),
    /// Another thread has led in the meantime.
    Followed,
    /// Waiting for the other thread takes too long.
    GaveUp,
}

/// Gives the turn back when it is dropped.
#[derive(Debug)]
pub(super) struct TurnGuard<'t>(&'t Turn);

impl Turn {
    /// Takes the turn, or waits for the thread that has it.
    pub(super) fn lead_or_follow(&self, patience: Duration) -> Asked<'_> {
        let mut state = self.state();
        match state.holder {
            Holder::Nobody => {
                state.holder = Holder::Leader;
                return Asked::Leads(TurnGuard(self));
            }
            Holder::Builder => return Asked::GaveUp,
            Holder::Leader => {}
        }
        let (deadline, before) = (Instant::now() + patience, state.ended_count);
        while state.ended_count == before {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Asked::GaveUp;
            }
            let waited = self.released.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Asked::Followed
    }

    /// Waits for the turn and takes it for long.
    ///
    /// The caller holds `index.lock`, so there is no other builder, and a leader is done within the time
    /// of one batch.
    pub(super) fn build(&self) -> TurnGuard<'_> {
        let mut state = self.state();
        while state.holder != Holder::Nobody {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.holder = Holder::Builder;
        TurnGuard(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.holder = Holder::Nobody;
        state.ended_count += 1;
        drop(state);
        self.0.released.notify_all();
    }
}
