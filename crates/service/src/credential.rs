//! The credentials of open streams, which must end when their credential becomes invalid.

use std::fmt;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::Sequence;
use quipu_core::engine::Principal;
use quipu_core::model::Timestamp;
use quipu_knowledge::Knowledge;
use tokio::sync::watch;

use crate::feed::Feed;
use crate::pool::Pool;

/// The pause before a credential is checked again after an error.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait for an expiry. Timers are monotonic, so a wall clock that was set forward is
/// noticed after this time at the latest.
const EXPIRY_CHECK_PERIOD: Duration = Duration::from_mins(1);

/// The secret of a request, with what is needed to notice that it becomes invalid.
#[derive(Clone)]
pub struct Credential {
    pool: Pool,
    secret: Arc<str>,
    expires_at: Option<Timestamp>,
    losses: watch::Receiver<Sequence>,
}

impl Credential {
    /// Starts watching a secret. Call this before checking it: a revocation after this call is
    /// noticed.
    pub fn new(pool: &Pool, feed: &Feed, secret: &str) -> Self {
        Self {
            pool: pool.clone(),
            secret: secret.into(),
            expires_at: None,
            losses: feed.credentials_lost(),
        }
    }

    /// Sets the expiry of the credential to that of its principal.
    pub fn expires_with(&mut self, principal: &Principal) {
        self.expires_at = principal.expires_at();
    }

    /// Waits until a credential was revoked, this one or another, or this one expires. Cancel safe.
    pub async fn in_doubt(&mut self) {
        let expired = async {
            match self.expires_at {
                Some(at) => tokio::time::sleep(until(at, self.pool.now())).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            changed = self.losses.changed() => if changed.is_err() {
                // The feed is gone, so the server is shutting down.
                future::pending::<()>().await;
            },
            () = expired => {}
        }
    }

    /// Returns whether the credential is valid now.
    pub fn is_valid(&self, engine: &Knowledge) -> Result<bool, Error> {
        Ok(self.principal_in(engine)?.is_some())
    }

    /// Returns the principal behind the credential now, or `None` if it is invalid.
    pub fn principal_in(&self, engine: &Knowledge) -> Result<Option<Principal>, Error> {
        engine.principal(&self.secret)
    }

    /// Returns the principal behind the credential, or `None` if it is invalid. Retries until the
    /// storage can be read.
    pub async fn principal(&self) -> Option<Principal> {
        loop {
            let secret = Arc::clone(&self.secret);
            match self.pool.read(move |engine: &Knowledge| engine.principal(&secret)).await {
                Ok(Ok(principal)) => return principal,
                Ok(Err(error)) => tracing::error!(%error, "a credential cannot be checked"),
                Err(error) => tracing::warn!(%error, "a credential cannot be checked"),
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    let micros = u64::try_from(at.as_micros().saturating_sub(now.as_micros())).unwrap_or(0);
    // At least a millisecond: the timer may fire slightly before the wall clock gets there.
    Duration::from_micros(micros).clamp(Duration::from_millis(1), EXPIRY_CHECK_PERIOD)
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::engine::NewKey;
    use quipu_core::model::{Forwarding, Key, Name, Role};
    use quipu_testkit::{FaultyBackend, InMemoryBackend, ManualClock, knowledge_over};

    use super::*;
    use crate::pool::PoolSettings;

    struct Fixture {
        backend: Arc<FaultyBackend>,
        engine: Knowledge,
        key: Key,
        credential: Credential,
    }

    fn fixture() -> Fixture {
        let backend = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let clock = Arc::new(ManualClock::default());
        let engine = knowledge_over(Arc::clone(&backend) as _, clock);
        let workspace = engine.default_workspace().unwrap().id;
        let (name, role) = (Name::new("test").unwrap(), Role::Admin);
        let new = NewKey {
            name,
            role,
            stores: None,
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        let (key, secret) = engine.create_key(workspace, &new).unwrap();
        let pool = Pool::new(engine.clone(), PoolSettings::SMALL);
        let credential = Credential::new(&pool, &Feed::new(), secret.reveal());
        Fixture { backend, engine, key, credential }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storage_error_does_not_invalidate_a_credential() {
        let fixture = fixture();
        fixture.backend.fail_at(1);
        assert!(fixture.credential.principal().await.is_some());
        assert!(!fixture.backend.disarm(), "the storage has failed");
        fixture.engine.revoke_key(fixture.key.id).unwrap();
        assert!(fixture.credential.principal().await.is_none());
    }

    #[test]
    fn the_wait_for_an_expiry_is_bounded() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(until(at(30), at(0)), Duration::from_secs(30));
        assert_eq!(until(at(3000), at(0)), EXPIRY_CHECK_PERIOD);
        assert_eq!(until(at(0), at(30)), Duration::from_millis(1));
    }
}
