//! `/readyz`: whether the storage can be read and written.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use quipu_core::Error;
use quipu_core::backend::{Condition, LockHeld};
use quipu_core::clock::ClockSkew;
use quipu_core::model::Timestamp;
use quipu_knowledge::Knowledge;
use quipu_service::pool::PoolError;

use super::App;
use super::answer::{Answer, Failure};

/// A server that cannot read its storage within this time is not ready.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// What is remembered between two readiness checks.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// The turn of the writer that held the lock at the last check, and when it was first seen.
    held: Mutex<Option<(u64, Instant)>>,
}

impl Readiness {
    /// Returns how long the same writer has been observed to hold the lock.
    ///
    /// A server under load sees the lock held at nearly every check, by ever different writers; only
    /// one that keeps its turn is stuck.
    fn held_for(&self, held: Option<&LockHeld>, now: Instant) -> Duration {
        let mut seen = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = held.map(|held| match *seen {
            Some((turn, since)) if turn == held.turn => (turn, since),
            _ => (held.turn, now),
        });
        seen.map_or(Duration::ZERO, |(_, since)| now.duration_since(since))
    }
}

/// Reports whether the storage can be read and written, and if not, why.
pub(super) async fn ready(State(app): State<App>) -> Answer {
    let read = |knowledge: &Knowledge| Ok::<_, Error>((knowledge.condition()?, knowledge.now()));
    let reading = app.pool().read(read);
    let mut failure = match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(Ok((condition, now)))) => match problem(&app, &condition, now) {
            None => return Ok("ready\n".into_response()),
            Some(message) => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", message),
        },
        Ok(Ok(Err(error))) => Failure::from(error),
        Ok(Err(PoolError::Panicked)) => Failure::from(PoolError::Panicked),
        Ok(Err(PoolError::Overloaded)) | Err(_) => {
            let message = "the storage could not be read in time";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", message)
        }
    };
    failure.status = StatusCode::SERVICE_UNAVAILABLE;
    Err(failure)
}

fn problem(app: &App, condition: &Condition, now: Timestamp) -> Option<String> {
    let skew = condition.clock.and_then(|clock| ClockSkew::between(now, clock));
    if let Some(skew) = skew {
        return Some(skew.to_string());
    }
    let lock = condition.lock.as_ref();
    let held_for = app.0.readiness.held_for(lock, Instant::now());
    if let Some(lock) = lock.filter(|_| held_for > app.settings().lock_held_max) {
        let seconds = held_for.as_secs();
        return Some(format!(
            "nothing can be written: the write lock has been held for {seconds} s by {}",
            lock.holder
        ));
    }
    let minimum = app.settings().disk_free_bytes_min;
    let free = condition.disk_free_bytes.filter(|free| *free < minimum)?;
    Some(format!(
        "the disk is nearly full: {free} bytes are free, and less than {minimum} is not enough"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_writer_that_keeps_its_turn_is_stuck() {
        let readiness = Readiness::default();
        let start = Instant::now();
        let held = |turn| LockHeld { turn, holder: String::new() };
        let seen = |turn, seconds| {
            let now = start + Duration::from_secs(seconds);
            readiness.held_for(Some(&held(turn)), now).as_secs()
        };
        assert_eq!([seen(1, 0), seen(1, 5), seen(3, 9), seen(3, 20)], [0, 5, 0, 11]);
        assert_eq!(readiness.held_for(None, start), Duration::ZERO);
        assert_eq!(seen(3, 30), 0);
    }
}
