//! What has become of forwarded requests, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

/// What has become of a forwarded request.
#[derive(Clone, Copy, Debug)]
pub(in crate::upstream) enum Outcome {
    Success,
    ClientError,
    ServerError,
    /// It could not be reached, or it does not speak HTTP.
    Unreachable,
    TimedOut,
    /// The answer ended in the middle.
    CutOff,
    /// The caller went away, or its key was revoked.
    Abandoned,
}

impl Outcome {
    const ALL: [(Self, &str); 7] = [
        (Self::Success, "success"),
        (Self::ClientError, "client_error"),
        (Self::ServerError, "server_error"),
        (Self::Unreachable, "unreachable"),
        (Self::TimedOut, "timed_out"),
        (Self::CutOff, "cut_off"),
        (Self::Abandoned, "abandoned"),
    ];

    pub(in crate::upstream) fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            ..400 => Self::Success,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}

/// Counts of forwarded requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    memory_calls: [AtomicU64; 2],
}

impl Tally {
    pub(in crate::upstream) fn count(&self, outcome: Outcome) {
        if let Some(count) = self.outcomes.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a call of the memory tool that was answered here.
    pub(in crate::upstream) fn count_memory_call(&self, is_error: u8) {
        if let Some(count) = self.memory_calls.get(usize::from(is_error)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counts with their labels.
    pub(crate) fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let labels = Outcome::ALL.iter().map(|(_, label)| *label);
        labels.zip(&self.outcomes).map(|(label, at)| (label, at.load(Ordering::Relaxed))).collect()
    }

    /// Returns how many calls of the memory tool succeeded, and how many failed.
    pub(crate) fn memory_calls(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| {
            self.memory_calls.get(place).map_or(0, |count| count.load(Ordering::Relaxed))
        })
    }
}
