//! Kill points, at each of which tests kill a sync.

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use tests::{READS, kill_point};

/// Marks a point between two changes at which a test may kill the sync.
#[cfg(not(test))]
pub(super) fn kill_point(_: &'static str) {}
