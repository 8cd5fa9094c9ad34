//! Backoff with jitter.

use std::time::Duration;

/// Pauses that double up to a maximum. Each is between half of itself and all of it, so that those who
/// failed together do not come back together.
pub(crate) struct Backoff {
    next: Duration,
    max: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_millis(5);

impl Backoff {
    pub(crate) fn new(max: Duration) -> Self {
        Self { next: FIRST_PAUSE, max }
    }

    /// Returns how long to pause now.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.next.min(self.max);
        self.next = whole.saturating_mul(2);
        whole / 2 + whole.mul_f64(f64::from(random_byte()) / 512.0)
    }
}

fn random_byte() -> u8 {
    let mut byte = [0];
    // Without randomness there is no jitter, which only makes a collision likelier.
    if getrandom::fill(&mut byte).is_err() {
        return 0;
    }
    byte[0]
}

/// Returns an id that nobody else has.
pub(crate) fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    u128::from_le_bytes(bytes)
}
