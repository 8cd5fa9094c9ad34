//! The rate limit of each caller, as token buckets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use quipu_core::model::Actor;

use super::answer::Failure;

/// A token bucket per caller.
#[derive(Debug)]
pub(super) struct RateLimiter {
    per_minute: Option<f64>,
    buckets: Mutex<HashMap<Actor, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    counted_at: Instant,
}

/// When there are this many buckets, full ones are dropped: they are the same as new ones.
const BUCKETS_MAX: usize = 10_000;

impl RateLimiter {
    pub(super) fn new(per_minute: Option<u32>) -> Self {
        Self { per_minute: per_minute.map(f64::from), buckets: Mutex::default() }
    }

    /// Takes one token, or fails with the time to wait.
    pub(super) fn admit(&self, actor: &Actor) -> Result<(), Failure> {
        self.count(actor, 1.0)
    }

    /// Takes the remaining tokens for a batch of `requests`, of which [`RateLimiter::admit`] has taken
    /// the first: all of them or none.
    pub(super) fn admit_rest(&self, actor: &Actor, requests: u32) -> Result<(), Failure> {
        let requests = f64::from(requests);
        match self.per_minute {
            Some(per_minute) if requests > per_minute => Err(Failure::invalid(format!(
                "{requests} requests are more than the {per_minute} of a minute; send fewer at once"
            ))),
            _ => self.count(actor, requests - 1.0),
        }
    }

    fn count(&self, actor: &Actor, requests: f64) -> Result<(), Failure> {
        let Some(per_minute) = self.per_minute else { return Ok(()) };
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let refilled = |bucket: &Bucket| {
            let minutes = now.duration_since(bucket.counted_at).as_secs_f64() / 60.0;
            (bucket.left + minutes * per_minute).min(per_minute)
        };
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, bucket| refilled(bucket) < per_minute);
        }
        let bucket =
            buckets.entry(actor.clone()).or_insert(Bucket { left: per_minute, counted_at: now });
        bucket.left = refilled(bucket);
        bucket.counted_at = now;
        if bucket.left >= requests {
            bucket.left -= requests;
            return Ok(());
        }
        let seconds = ((requests - bucket.left) * 60.0 / per_minute).ceil().max(1.0);
        Err(Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            format!("more than {per_minute} requests in a minute; wait {seconds} s"),
        )
        .with_header("retry-after", &seconds.to_string()))
    }
}
