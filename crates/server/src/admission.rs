//! Admission: what a request costs before its credential has proved valid.
//!
//! Anybody can send a wrong key, as fast as connections allow. So a credential that was not valid
//! lately is looked up in a narrow lane, which leaves the threads to those with a valid one, and
//! the answer to a peer that sends many wrong ones is delayed. The delay comes after the lookup: a
//! valid key is never delayed, whatever else comes from its address.

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

/// How many valid credentials are remembered. When there are more, all have to prove themselves
/// again.
const PROVEN_MAX: usize = 10_000;

/// How many wrong credentials a peer may send before answers are delayed, and how fast this
/// allowance comes back.
const WRONG_MAX: f64 = 50.0;
const WRONG_PER_SECOND: f64 = 1.0;

/// How long the answer to a wrong credential is delayed then.
const DELAY: Duration = Duration::from_millis(200);

/// How many peers are remembered. When there are more, all are forgotten, so a delay can be
/// escaped with thousands of addresses; the lane is as narrow for them.
const PEERS_MAX: usize = 4096;

/// Decides how much a request may cost.
#[derive(Debug)]
pub(super) struct Admission {
    lane: Semaphore,
    /// Credentials that were valid when they were presented last. Wrong ones are never in it, so
    /// they cannot crowd out valid ones.
    proven: Mutex<HashSet<[u8; 32]>>,
    wrong: Mutex<HashMap<IpAddr, Allowance>>,
    wrong_count: AtomicU64,
    /// The requests of valid callers that are worked on.
    requests: Arc<Semaphore>,
}

#[derive(Debug)]
struct Allowance {
    left: f64,
    counted_at: Instant,
}

/// Who sends a request, as far as that is known without looking anything up.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    credential: Option<[u8; 32]>,
    slot: Option<Arc<Slot>>,
}

impl Visitor {
    pub(super) fn new(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let secret = caller::credential(headers).ok();
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

    /// Returns how many wrong credentials were presented.
    pub(super) fn wrong_count(&self) -> u64 {
        self.wrong_count.load(Ordering::Relaxed)
    }

    /// Lets a request of a valid caller be worked on for as long as the permit lives. It must have
    /// arrived completely: nobody may hold a permit while they send.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = Arc::clone(&self.requests).try_acquire_owned();
        permit.map_err(|_full| PoolError::Overloaded.into())
    }

    /// Returns whether the credential was valid when it was presented last, and protects the
    /// connection if so.
    pub(super) fn is_proven(&self, visitor: &Visitor) -> bool {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        let is_proven = visitor.credential.is_some_and(|hash| proven.contains(&hash));
        if is_proven {
            visitor.protect();
        }
        is_proven
    }

    /// Takes note of what became of a request.
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

    /// Returns how long the answer to another wrong credential of this peer is delayed.
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

    /// Runs `authenticate` for a visitor whose credential is unproven.
    pub(super) async fn prove<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        authenticate: impl Fn(&Knowledge) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let lane = match visitor.credential {
            Some(_) => self.admission().lane.acquire().await.ok(),
            // There is nothing to look up.
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
    fn wrong_credentials_do_not_crowd_out_valid_ones() {
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
    fn a_credential_that_is_no_longer_valid_is_proven_no_longer() {
        let admission = Admission::new(1);
        admission.note(&visitor(0), &Ok(()));
        admission.note(&visitor(0), &wrong());
        assert!(!admission.is_proven(&visitor(0)));
    }

    #[test]
    fn only_peers_that_send_many_wrong_credentials_are_delayed() {
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
