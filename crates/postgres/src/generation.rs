//! Noticing that changes were lost that had been delivered already.
//!
//! A replica that is promoted may lack the newest changes. Their numbers are given out again, so a follower
//! that has seen the lost ones would take the new ones for seen. Each server remembers the highest number that
//! it has ever read. When the counter turns out to be lower, the feed begins a new generation: the counter
//! jumps past everything that was seen, and [`oldest_change`](quipu_core::backend::Reader::oldest_change)
//! rises with it, so that every follower is told to start over.

use std::sync::{Mutex, PoisonError};

use quipu_core::backend::Sequence;
use quipu_core::model::Timestamp;

use crate::transaction::Counter;

/// The highest counter that this process has read.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Option<Counter>>);

impl Seen {
    /// Returns what was seen until now. A snapshot that is taken later has all of it, unless it was lost.
    pub(crate) fn highest(&self) -> Option<Counter> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a counter that is committed.
    pub(crate) fn note(&self, counter: Counter) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |counter: &Counter| (counter.generation, counter.sequence);
        // A snapshot may be older than the newest one that was read.
        if seen.as_ref().is_none_or(|highest| place(highest) < place(&counter)) {
            *seen = Some(counter);
        }
    }

    /// Returns the counter of the next generation if this one lacks changes that were seen.
    pub(crate) fn next_generation(&self, counter: Counter) -> Option<Counter> {
        let highest = self.highest().filter(|highest| lacks(counter, *highest))?;
        // This is the number of the change that says so.
        let sequence = Sequence(counter.sequence.max(highest.sequence).0 + 1);
        let at: Timestamp = counter.at.max(highest.at).next();
        let generation = counter.generation.max(highest.generation) + 1;
        Some(Counter { sequence, at, generation, first: sequence })
    }
}

/// Returns whether numbers that were seen are given out again, or will be.
pub(crate) fn lacks(counter: Counter, seen: Counter) -> bool {
    if counter.generation == seen.generation {
        counter.sequence < seen.sequence
    } else {
        // An earlier generation: the beginning of the next one was lost. A later one, of another server: it
        // may not have known of everything that was seen here.
        counter.generation < seen.generation || counter.first <= seen.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(generation: u64, sequence: u64, first: u64) -> Counter {
        let at = Timestamp::from_micros(i64::try_from(sequence).unwrap());
        Counter { sequence: Sequence(sequence), at, generation, first: Sequence(first) }
    }

    #[test]
    fn a_lower_counter_begins_a_generation_past_everything_seen() {
        let seen = Seen::default();
        seen.note(counter(1, 100, 0));
        assert_eq!(seen.next_generation(counter(1, 100, 0)), None);
        assert_eq!(seen.next_generation(counter(1, 120, 0)), None);
        let next = seen.next_generation(counter(1, 90, 0)).expect("ten changes were lost");
        assert_eq!((next.generation, next.sequence.0, next.first.0), (2, 101, 101));
        assert_eq!(next.at, Timestamp::from_micros(101));
    }

    #[test]
    fn the_generation_of_a_server_that_has_seen_less_is_not_enough() {
        let seen = Seen::default();
        seen.note(counter(1, 100, 0));
        assert_eq!(seen.next_generation(counter(2, 130, 101)), None);
        let next = seen.next_generation(counter(2, 105, 96)).expect("96 to 100 were seen");
        assert_eq!((next.generation, next.sequence.0, next.first.0), (3, 106, 106));
    }

    #[test]
    fn a_generation_that_was_lost_itself_is_noticed() {
        let seen = Seen::default();
        seen.note(counter(2, 110, 102));
        let next = seen.next_generation(counter(1, 108, 0)).expect("the jump was lost");
        assert_eq!((next.generation, next.sequence.0), (3, 111));
    }
}
