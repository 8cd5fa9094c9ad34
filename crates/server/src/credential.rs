//! Credentials that outlive the moment at which they were checked, because an answer goes on.

use std::fmt;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::engine::Principal;
use quipu_core::model::Timestamp;
use quipu_core::{Engine, Error};
use tokio::sync::watch;

use crate::feed::Feed;
use crate::pool::Pool;

/// If nobody can tell whether a credential is valid, it is asked again after this time.
const PAUSE: Duration = Duration::from_secs(1);

/// A clock that was set is noticed at the latest after this time.
const LOOK_AT_CLOCK_EVERY: Duration = Duration::from_mins(1);

/// The secret that a request carried, and how to find out that it is not valid any more.
#[derive(Clone)]
pub(crate) struct Credential {
    pool: Pool,
    secret: Arc<str>,
    expires_at: Option<Timestamp>,
    losses: watch::Receiver<Sequence>,
}

impl Credential {
    /// Takes a secret that has not been checked yet: one that is lost after this is noticed.
    pub(crate) fn new(pool: &Pool, feed: &Feed, secret: &str) -> Self {
        Self {
            pool: pool.clone(),
            secret: secret.into(),
            expires_at: None,
            losses: feed.credentials_lost(),
        }
    }

    /// Notes when it expires, as far as that is known from who stands behind it.
    pub(crate) fn expires_with(&mut self, principal: &Principal) {
        self.expires_at = match principal {
            Principal::Key(key) => key.expires_at,
            Principal::Session(_) => None,
        };
    }

    /// Waits until it may have stopped to work. May be dropped at any time.
    pub(crate) async fn doubted(&mut self) {
        let expired = async {
            match self.expires_at {
                Some(at) => tokio::time::sleep(until(at, self.pool.now())).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            changed = self.losses.changed() => if changed.is_err() {
                // Nobody follows the changes any more: the server is about to end.
                future::pending::<()>().await;
            },
            () = expired => {}
        }
    }

    /// Returns whether it is valid now.
    pub(crate) fn is_valid(&self, engine: &Engine) -> Result<bool, Error> {
        Ok(engine.principal(&self.secret)?.is_some())
    }

    /// Returns who stands behind it now; `None` if it is not valid any more. Waits until that can be
    /// told.
    pub(crate) async fn principal(&self) -> Option<Principal> {
        loop {
            let secret = Arc::clone(&self.secret);
            match self.pool.read(move |engine: &Engine| engine.principal(&secret)).await {
                Ok(Ok(principal)) => return principal,
                Ok(Err(error)) => tracing::error!(%error, "a credential cannot be checked"),
                Err(error) => tracing::warn!(%error, "a credential cannot be checked"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    let micros = u64::try_from(at.as_micros().saturating_sub(now.as_micros())).unwrap_or(0);
    // Never nothing at all: the two clocks need not agree to the microsecond.
    Duration::from_micros(micros).clamp(Duration::from_millis(1), LOOK_AT_CLOCK_EVERY)
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::engine::NewKey;
    use quipu_core::model::{Key, Name, Role};
    use quipu_core::settings::Limits;
    use quipu_testkit::{FaultyBackend, InMemoryBackend, ManualClock};

    use super::*;
    use crate::PoolSettings;

    struct Fixture {
        backend: Arc<FaultyBackend>,
        engine: Engine,
        key: Key,
        credential: Credential,
    }

    fn fixture() -> Fixture {
        let backend = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let clock = Arc::new(ManualClock::default());
        let engine = Engine::new(Arc::clone(&backend) as _, clock, Limits::default());
        let workspace = engine.default_workspace().unwrap().id;
        let (name, role) = (Name::new("test").unwrap(), Role::Admin);
        let new = NewKey { name, role, stores: None, expires_at: None, secret: None };
        let (key, secret) = engine.create_key(workspace, &new).unwrap();
        let pool = Pool::new(engine.clone(), PoolSettings::SMALL);
        let credential = Credential::new(&pool, &Feed::new(), secret.reveal());
        Fixture { backend, engine, key, credential }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storage_that_fails_once_makes_no_credential_invalid() {
        let fixture = fixture();
        fixture.backend.fail_at(1);
        assert!(fixture.credential.principal().await.is_some());
        assert!(!fixture.backend.disarm(), "the storage has failed");
        fixture.engine.revoke_key(fixture.key.id).unwrap();
        assert!(fixture.credential.principal().await.is_none());
    }

    #[test]
    fn an_expiry_is_waited_for_but_the_clock_is_looked_at_in_between() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(until(at(30), at(0)), Duration::from_secs(30));
        assert_eq!(until(at(3000), at(0)), LOOK_AT_CLOCK_EVERY);
        assert_eq!(until(at(0), at(30)), Duration::from_millis(1));
    }
}
