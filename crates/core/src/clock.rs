//! The one source of time and randomness.
//!
//! Everything that depends on time or chance goes through a [`Clock`], so that tests can set the time
//! and know the next id.

use std::fmt;
use std::time::UNIX_EPOCH;

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
