//! Which thread of this process writes the index.
//!
//! Catching up is a group commit: the leader indexes everything that was written before it began, and
//! the searches that come meanwhile wait for it, because mostly it indexes what they need too. Letting
//! each of them index the same changes in memory looks cheaper, since nobody waits. But it multiplies the
//! work by the number of threads, and then writers and searches compete for the processor: with eight
//! threads and one search among twenty calls, writes fell to an eighth of their speed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lets one thread at a time write the index.
#[derive(Debug, Default)]
pub(super) struct Turn {
    holder: Mutex<Holder>,
    released: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    /// A thread that takes in a few changes: milliseconds.
    Leader,
    /// A thread that builds the index of a store: up to minutes, so nobody waits for it.
    Builder,
}

/// How asking for the turn ended.
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
        let mut holder = self.holder();
        match *holder {
            Holder::Nobody => {
                *holder = Holder::Leader;
                Asked::Leads(TurnGuard(self))
            }
            Holder::Builder => Asked::GaveUp,
            Holder::Leader => {
                let is_led = |holder: &mut Holder| *holder == Holder::Leader;
                let waited = self.released.wait_timeout_while(holder, patience, is_led);
                let (_holder, result) = waited.unwrap_or_else(PoisonError::into_inner);
                if result.timed_out() { Asked::GaveUp } else { Asked::Followed }
            }
        }
    }

    /// Waits for the turn and takes it for long.
    pub(super) fn build(&self) -> TurnGuard<'_> {
        let is_taken = |holder: &mut Holder| *holder != Holder::Nobody;
        let waited = self.released.wait_while(self.holder(), is_taken);
        *waited.unwrap_or_else(PoisonError::into_inner) = Holder::Builder;
        TurnGuard(self)
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.0.holder() = Holder::Nobody;
        self.0.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    #[test]
    fn a_follower_waits_for_its_leader() {
        let turn = Turn::default();
        let Asked::Leads(leader) = turn.lead_or_follow(PATIENCE) else { panic!("it is free") };
        thread::scope(|scope| {
            let follower = scope.spawn(|| turn.lead_or_follow(PATIENCE));
            while turn.holder.try_lock().is_err() {}
            drop(leader);
            let asked = follower.join().unwrap();
            // It may have come after the leader was gone.
            assert!(matches!(asked, Asked::Followed | Asked::Leads(_)));
        });
        assert!(matches!(turn.lead_or_follow(PATIENCE), Asked::Leads(_)));
    }

    #[test]
    fn a_leader_that_takes_long_is_given_up() {
        let turn = Turn::default();
        let _leader = turn.lead_or_follow(PATIENCE);
        assert!(matches!(turn.lead_or_follow(Duration::from_millis(1)), Asked::GaveUp));
    }

    #[test]
    fn nobody_waits_for_a_builder() {
        let turn = Turn::default();
        let _builder = turn.build();
        let begun = Instant::now();
        assert!(matches!(turn.lead_or_follow(PATIENCE), Asked::GaveUp));
        assert!(begun.elapsed() < PATIENCE);
    }

    #[test]
    fn a_panic_gives_the_turn_back() {
        let turn = Turn::default();
        let panicked = thread::scope(|scope| {
            let panics = || {
                let _leader = turn.lead_or_follow(PATIENCE);
                panic!("in the middle");
            };
            scope.spawn(panics).join().is_err()
        });
        assert!(panicked);
        assert!(matches!(turn.lead_or_follow(PATIENCE), Asked::Leads(_)));
    }
}
