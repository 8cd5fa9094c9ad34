//! Admission control: what a request may cost before its credential has proved valid.
//!
//! Anyone can send invalid keys as fast as connections allow. So a credential that was not valid
//! the last time it was presented is looked up in a narrow lane, which leaves the reader threads to
//! callers with valid ones, and the answer to a peer that sends many invalid ones is delayed.
//!
//! The delay comes after the lookup. Delaying, or locking out, before it would be cheaper, but many
//! clients share an address behind a proxy or NAT: one of them could then keep the others from
//! being served. A valid key is never delayed, whatever else comes from its address.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{Extensions, HeaderMap, StatusCode};
use quipu_core::model::SecretHash;
use quipu_knowledge::Knowledge;
use quipu_service::pool::PoolError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::App;
use super::answer::Failure;
use super::caller;
use super::slots::Slot;

/// How many unproven credentials are looked up concurrently; a lookup takes some 50 µs.
const LANE_WIDTH: usize = 4;

/// How many valid credentials are remembered. When there are more, the set is cleared and all of
/// them take the lane once; evicting them one by one would need an order, for a case that is rare.
const PROVEN_MAX: usize = 10_000;

/// The token bucket of each peer: how many invalid credentials are answered without a delay, and how
/// fast this allowance is refilled.
const WRONG_MAX: f64 = 50.0;
const WRONG_PER_SECOND: f64 = 1.0;

/// How long the answer to an invalid credential is delayed when the bucket is empty.
const DELAY: Duration = Duration::from_millis(200);

/// How many peers are remembered. When there are more, all are forgotten, so an attacker with
/// thousands of addresses escapes the delay, but not the lane.
const PEERS_MAX: usize = 4096;

/// The state of admission control.
#[derive(Debug)]
pub(super) struct Admission {
    lane: Semaphore,
    /// Credentials that were valid the last time they were presented. Invalid ones are never added,
    /// so they cannot crowd out valid ones.
    proven: Mutex<HashSet<[u8; 32]>>,
    wrong: Mutex<HashMap<IpAddr, Allowance>>,
    wrong_count: AtomicU64,
    /// Bounds the requests of valid callers that are processed concurrently.
    requests: Arc<Semaphore>,
}

#[derive(Debug)]
struct Allowance {
    left: f64,
    counted_at: Instant,
}

/// The sender of a request, as far as it is known without a lookup.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    credential: Option<[u8; 32]>,
    slot: Option<Arc<Slot>>,
}

impl Visitor {
    pub(super) fn new(headers: &HeaderMap, extensions: &Extensions) -> Self {
        Self::with_secret(caller::credential(headers).ok(), extensions)
    }

    /// Returns the sender of a request that carries its secret elsewhere.
    pub(super) fn with_secret(secret: Option<&str>, extensions: &Extensions) -> Self {
        let credential = secret.map(|secret| *SecretHash::of(secret).as_bytes());
        Self { credential, slot: extensions.get::<Arc<Slot>>().cloned() }
    }

    fn protect(&self) {
        if let Some(slot) = &self.slot {
            slot.protect();
        }
    }
}

impl Admission {
    pub(super) fn new(requests_max: usize) -> Self {
        Self {
            lane: Semaphore::new(LANE_WIDTH),
            proven: Mutex::default(),
            wrong: Mutex::default(),
            wrong_count: AtomicU64::new(0),
            requests: Arc::new(Semaphore::new(requests_max)),
        }
    }

    /// Returns how many invalid credentials were presented.
    pub(super) fn wrong_count(&self) -> u64 {
        self.wrong_count.load(Ordering::Relaxed)
    }

    /// Returns the permit to process a request of a valid caller. The request must have arrived
    /// completely: a client that sends slowly must not hold a permit meanwhile.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = Arc::clone(&self.requests).try_acquire_owned();
        permit.map_err(|_full| PoolError::Overloaded.into())
    }

    /// Returns whether the credential was valid the last time it was presented, and protects the
    /// connection from eviction if so.
    pub(super) fn is_proven(&self, visitor: &Visitor) -> bool {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        let is_proven = visitor.credential.is_some_and(|hash| proven.contains(&hash));
        if is_proven {
            visitor.protect();
        }
        is_proven
    }

    /// Records whether the credential of a request proved valid.
    pub(super) fn note<T>(&self, visitor: &Visitor, result: &Result<T, Failure>) {
        let Some(hash) = visitor.credential else { return };
        let is_wrong = matches!(result, Err(failure) if failure.status == StatusCode::UNAUTHORIZED);
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if is_wrong {
            proven.remove(&hash);
            self.wrong_count.fetch_add(1, Ordering::Relaxed);
        } else if result.is_ok() && !proven.contains(&hash) {
            if proven.len() >= PROVEN_MAX {
                proven.clear();
            }
            proven.insert(hash);
        }
    }

    /// Takes a token from the bucket of a peer, and returns how long its answer is delayed.
    fn delay(&self, peer: IpAddr) -> Duration {
        let now = Instant::now();
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() >= PEERS_MAX && !wrong.contains_key(&peer) {
            wrong.clear();
        }
        let full = Allowance { left: WRONG_MAX, counted_at: now };
        let allowance = wrong.entry(peer).or_insert(full);
        let seconds = now.duration_since(allowance.counted_at).as_secs_f64();
        allowance.left = (allowance.left + seconds * WRONG_PER_SECOND).min(WRONG_MAX);
        allowance.counted_at = now;
        if allowance.left < 1.0 {
            return DELAY;
        }
        allowance.left -= 1.0;
        Duration::ZERO
    }
}

impl App {
    pub(super) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// Runs `authenticate` in the lane, for a visitor whose credential is unproven.
    pub(super) async fn prove<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        authenticate: impl Fn(&Knowledge) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let lane = match visitor.credential {
            Some(_) => self.admission().lane.acquire().await.ok(),
            // Without a credential there is nothing to look up, so nothing to bound.
            None => None,
        };
        let result = self.pool().read(authenticate).await?;
        drop(lane);
        self.admission().note(visitor, &result);
        match &result {
            Ok(_) => visitor.protect(),
            Err(failure) if failure.status == StatusCode::UNAUTHORIZED => {
                if let Some(slot) = visitor.slot.as_ref().filter(|_| visitor.credential.is_some()) {
                    tokio::time::sleep(self.admission().delay(slot.peer())).await;
                }
            }
            Err(_) => {}
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn visitor(credential: u64) -> Visitor {
        let hash = *SecretHash::of(&credential.to_string()).as_bytes();
        Visitor { credential: Some(hash), slot: None }
    }

    fn wrong() -> Result<(), Failure> {
        Err(Failure::unauthenticated("no"))
    }

    #[test]
    fn invalid_credentials_do_not_crowd_out_valid_ones() {
        let admission = Admission::new(1);
        admission.note(&visitor(0), &Ok(()));
        for number in 1..=2 * PROVEN_MAX as u64 {
            admission.note(&visitor(number), &wrong());
        }
        assert!(admission.is_proven(&visitor(0)));
        assert_eq!(admission.wrong_count(), 2 * PROVEN_MAX as u64);
        assert_eq!(admission.proven.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_credential_that_becomes_invalid_is_no_longer_proven() {
        let admission = Admission::new(1);
        admission.note(&visitor(0), &Ok(()));
        admission.note(&visitor(0), &wrong());
        assert!(!admission.is_proven(&visitor(0)));
    }

    #[test]
    fn only_peers_that_send_many_invalid_credentials_are_delayed() {
        let admission = Admission::new(1);
        let [ada, bob] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last)));
        let delays: Vec<_> = (0..100).map(|_| admission.delay(ada)).collect();
        assert_eq!(delays.first(), Some(&Duration::ZERO));
        assert_eq!(delays.last(), Some(&DELAY));
        assert_eq!(admission.delay(bob), Duration::ZERO);
    }

    #[test]
    fn the_table_of_peers_is_bounded() {
        let admission = Admission::new(1);
        for number in (0..).take(3 * PEERS_MAX) {
            admission.delay(Ipv4Addr::from_bits(number).into());
        }
        assert!(admission.wrong.lock().unwrap().len() <= PEERS_MAX);
    }
}
