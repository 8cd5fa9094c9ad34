//! The one source of time and randomness.
//!
//! Everything that depends on time or chance goes through a [`Clock`], so that tests can set the time
//! and know the next id.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use crate::model::Timestamp;

/// Provides the time and random bytes.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time. It may stand still or go back; the engine copes.
    fn now(&self) -> Timestamp;

    /// Fills the bytes with cryptographically secure randomness.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Returns 128 random bits.
    fn random(&self) -> u128 {
        let mut bytes = [0; 16];
        self.fill_random(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

/// How far the clock of this process is from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    micros: i64,
}

impl ClockSkew {
    /// A difference that is larger than this is worth a warning. Clocks that are set over a network differ by
    /// milliseconds.
    pub const MAX: Duration = Duration::from_mins(1);

    /// Returns the difference between two clocks, if it is larger than [`MAX`](Self::MAX).
    pub fn between(own: Timestamp, other: Timestamp) -> Option<Self> {
        let micros = own.as_micros().saturating_sub(other.as_micros());
        let is_large = Duration::from_micros(micros.unsigned_abs()) > Self::MAX;
        is_large.then_some(Self { micros })
    }
}

/// As in "the clock of this host is 61 s ahead of that of the storage".
impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.micros.unsigned_abs() / 1_000_000;
        let direction = if self.micros > 0 { "ahead of" } else { "behind" };
        write!(f, "the clock of this host is {seconds} s {direction} that of the storage")
    }
}

/// The clock and the random source of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else must use"
    )]
    fn now(&self) -> Timestamp {
        // A clock before 1970 reads as 1970.
        let since_epoch = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp::MIN.plus(since_epoch.unwrap_or_default())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system provides random bytes");
    }
}
