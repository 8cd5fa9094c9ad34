//! What ends a forwarded request before its time: its caller goes away, or may not forward anymore.

use std::pin::pin;
use std::sync::Arc;

use quipu_service::caller::Caller;
use quipu_service::credential::Credential;

use crate::answer::Failure;
use crate::socket::Socket;

/// Why a request has ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The caller may not forward anymore.
    Revoked,
    /// The caller has closed its connection.
    Gone,
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Revoked => Self::unauthenticated(
                "the API key was revoked or has expired while the request was forwarded",
            ),
            // Nobody reads this.
            Ended::Gone => Self::invalid("the caller has closed the connection"),
        }
    }
}

/// Watches the caller of one request.
#[derive(Debug)]
pub(super) struct Watch {
    credential: Credential,
    socket: Option<Arc<Socket>>,
}

impl Watch {
    pub(super) fn new(credential: Credential, socket: Option<Arc<Socket>>) -> Self {
        Self { credential, socket }
    }

    /// Runs some work to its end, or until the request ends.
    ///
    /// Whenever any credential is revoked, this one is checked again, and the work goes on only after
    /// that: nothing that comes after the revocation is delivered.
    pub(super) async fn run<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Ended> {
        let Self { credential, socket } = self;
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = credential.in_doubt() => {
                    let principal = credential.principal().await.ok_or(Ended::Revoked)?;
                    credential.expires_with(&principal);
                    if Caller::new(principal).forwarding_key().is_err() {
                        return Err(Ended::Revoked);
                    }
                }
                done = &mut work => return Ok(done),
                () = closed(socket.as_ref()) => return Err(Ended::Gone),
            }
        }
    }
}

async fn closed(socket: Option<&Arc<Socket>>) {
    match socket {
        Some(socket) => socket.closed().await,
        // Nothing is known of the connection; a write will fail when the caller is gone.
        None => std::future::pending().await,
    }
}
