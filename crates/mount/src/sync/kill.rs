//! Where a sync may be killed, for tests that kill it at every one of these points.

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use tests::{READS, kill_point};

/// Marks a moment between two changes.
#[cfg(not(test))]
pub(super) fn kill_point(_: &'static str) {}
