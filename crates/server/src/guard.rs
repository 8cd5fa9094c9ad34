//! Streams that end when the credential of their request becomes invalid.

use axum::body::{Body, Bytes};
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use quipu_service::credential::Credential;

/// Ends a body as soon as the credential becomes invalid.
///
/// Whenever any credential is revoked, this one is checked again, and no frame is delivered until
/// the check is done: a change made after the revocation must not slip through before it.
pub(super) fn guarded(body: Body, credential: Credential) -> Body {
    let frames = stream::unfold((body, credential), async |(mut body, mut credential)| {
        let frame = next(&mut body, &mut credential).await?;
        Some((frame, (body, credential)))
    });
    Body::new(StreamBody::new(frames))
}

async fn next(
    body: &mut Body,
    credential: &mut Credential,
) -> Option<Result<Frame<Bytes>, axum::Error>> {
    loop {
        tokio::select! {
            biased;
            () = credential.in_doubt() => {
                let principal = credential.principal().await?;
                credential.expires_with(&principal);
            }
            frame = body.frame() => return frame,
        }
    }
}
