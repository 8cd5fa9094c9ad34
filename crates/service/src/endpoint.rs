//! The seam between the HTTP server and a protocol that it carries.
//!
//! The HTTP server authenticates a caller, reads the body within its limits and hands both to an
//! [`Endpoint`]; it knows nothing of the protocol. The protocol, in turn, knows nothing of rate
//! limits, request ids or error envelopes. A bare `tower` service would need no trait, but would
//! pass the caller through untyped request extensions, where forgetting it fails only at run time.

use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use quipu_core::engine::Principal;
use quipu_core::model::Actor;
use tokio::sync::OwnedSemaphorePermit;

use crate::credential::Credential;
use crate::pool::PoolError;

/// The body of an answer, which may be a stream of events.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// What an endpoint answers.
pub type Answer = Result<Response<ResponseBody>, Refusal>;

/// A protocol that the HTTP server carries beside its own routes.
pub trait Endpoint: fmt::Debug + Send + Sync {
    /// Returns how many requests a body counts as for the caller's rate limit. At least one; more
    /// if the protocol has batches.
    fn requests_count(&self, body: &[u8]) -> u32;

    /// Answers one HTTP request of a caller. The body has arrived completely.
    ///
    /// The implementer must let no caller use a connection of another, and hold on to `caller` for
    /// as long as it works on the answer: its permit bounds the requests of the whole server.
    fn answer(&self, caller: Admitted, request: Request<Bytes>) -> BoxFuture<'_, Answer>;

    /// Returns how many connections are open, for the metrics.
    fn connections_count(&self) -> usize;
}

/// A caller whose credential is valid and whose request may be worked on.
#[derive(Debug)]
pub struct Admitted {
    /// Who calls.
    pub principal: Principal,
    /// The credential of the request, which ends its streams when it becomes invalid.
    pub credential: Credential,
    /// Released when the answer begins.
    pub permit: OwnedSemaphorePermit,
}

/// Why an endpoint does not answer a request. The HTTP server chooses status and envelope.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The request does not make sense.
    Invalid(String),
    /// The connection that the request names does not exist, or belongs to another caller.
    NotFound(String),
    /// The caller uses too much already.
    TooMany(String),
    /// The endpoint could not run.
    Failed(PoolError),
}

/// Returns the actor whose limits a principal counts against.
///
/// A session made by a key counts as the key, and a key that was derived from another one as that one:
/// both are free, so a key could otherwise multiply its limits by making more of them.
pub fn payer(principal: &Principal) -> Actor {
    match principal {
        Principal::Key(key) => Actor::ApiKey(key.root()),
        Principal::Session(session) => {
            session.key.map_or(Actor::Session(session.id), Actor::ApiKey)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use quipu_core::engine::{Derivation, NewDerivedKey, NewKey, NewSession, SessionToken};
    use quipu_core::model::{Forwarding, KeyKind, Name, Role};
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

    use super::*;

    #[test]
    fn a_key_pays_for_what_was_derived_from_it() {
        let backend = Arc::new(InMemoryBackend::default());
        let engine = knowledge_over(backend, Arc::new(ManualClock::default()));
        let workspace = engine.default_workspace().unwrap().id;
        let (name, role) = (Name::new("test").unwrap(), Role::Admin);
        let new = NewKey {
            name: name.clone(),
            role,
            stores: None,
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        let (root, secret) = engine.create_key(workspace, &new).unwrap();
        let token = NewDerivedKey {
            kind: KeyKind::Key,
            name,
            role,
            stores: None,
            expires_at: engine.now().plus(Duration::from_mins(1)),
            payload: None,
        };
        let (key, token) = engine.derive_key(Derivation::Key(root.id), &token).unwrap();
        let session = NewSession::titled("a run", Vec::new(), SessionToken::Issue);
        let session = NewSession { key: Some(key.id), ..session };
        let (_, of_session) = engine.create_session(workspace, &session).unwrap();
        for secret in [secret, token, of_session.unwrap()] {
            let principal = engine.principal(secret.reveal()).unwrap().unwrap();
            assert_eq!(payer(&principal), Actor::ApiKey(root.id));
        }
    }
}
