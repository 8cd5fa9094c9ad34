//! A clock that moves only by hand.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use quipu_core::Clock;
use quipu_core::model::Timestamp;

/// A clock for tests: its time moves only by hand, and its randomness is a counter.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
    drawn: AtomicU64,
}

impl ManualClock {
    /// Returns a clock that shows the given RFC 3339 time.
    pub fn at(text: &str) -> Self {
        let now: Timestamp = text.parse().expect("the test gives a valid time");
        Self { micros: AtomicI64::new(now.as_micros()), drawn: AtomicU64::new(0) }
    }

    /// Moves the time forward.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().plus(span));
    }

    /// Sets the time, also back.
    pub fn set(&self, now: Timestamp) {
        self.micros.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at("2026-01-01T00:00:00Z")
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst))
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.drawn.fetch_add(1, Ordering::SeqCst) + 1;
            // An odd factor spreads the counter over all bits and never repeats.
            let spread = drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            chunk.iter_mut().zip(spread).for_each(|(byte, random)| *byte = random);
        }
    }
}
