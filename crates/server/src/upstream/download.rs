//! The body of an answer on its way to the caller: read as fast as the caller takes it, and ended when
//! the caller may not have it anymore.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};

use super::Upstream;
use super::streams::StreamPermit;
use super::tally::Outcome;
use super::watch::{Ended, Watch};
use crate::answer::Failure;

/// What becomes of an answer that does not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Events, between which an event can say why it ends.
    Events,
    /// Anything else, which just breaks off.
    Other,
}

/// Why an answer does not reach its end.
#[derive(Debug)]
pub(super) enum Cut {
    Ended(Ended),
    Silent,
    Broken(hyper::Error),
}

/// The frames of an answer.
#[derive(Debug)]
pub(super) struct Download {
    body: Incoming,
    idle_timeout: Duration,
}

impl Download {
    pub(super) fn new(body: Incoming, idle_timeout: Duration) -> Self {
        Self { body, idle_timeout }
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) async fn next(&mut self, watch: &mut Watch) -> Option<Result<Bytes, Cut>> {
        loop {
            let frame = tokio::time::timeout(self.idle_timeout, self.body.frame());
            match watch.run(frame).await {
                Err(ended) => return Some(Err(Cut::Ended(ended))),
                Ok(Err(_elapsed)) => return Some(Err(Cut::Silent)),
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(Err(error)))) => return Some(Err(Cut::Broken(error))),
                Ok(Ok(Some(Ok(frame)))) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
            }
        }
    }

    /// Returns the whole body, if it has at most `size_bytes_max` bytes.
    pub(super) async fn collected(
        self,
        watch: &mut Watch,
        size_bytes_max: usize,
    ) -> Result<Vec<u8>, Failure> {
        self.collected_if(watch, size_bytes_max, |_size_bytes| Ok(())).await
    }

    /// Returns the whole body, if it has at most `size_bytes_max` bytes, and room for each length that it has
    /// on the way.
    pub(super) async fn collected_if(
        mut self,
        watch: &mut Watch,
        size_bytes_max: usize,
        mut has_room: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next(watch).await {
            bytes.extend_from_slice(&chunk.map_err(|cut| cut.failure())?);
            if bytes.len() > size_bytes_max {
                return Err(bad_gateway("the answer of the upstream is too long"));
            }
            has_room(bytes.len())?;
        }
        Ok(bytes)
    }
}

/// Returns the failure for an upstream that does not answer as it should.
pub(super) fn bad_gateway(message: &str) -> Failure {
    Failure::new(axum::http::StatusCode::BAD_GATEWAY, "api_error", message)
}

impl Cut {
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Ended(_) => Outcome::Abandoned,
            Self::Silent => Outcome::TimedOut,
            Self::Broken(_) => Outcome::CutOff,
        }
    }

    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Ended(ended) => (*ended).into(),
            Self::Silent => Failure::new(
                axum::http::StatusCode::GATEWAY_TIMEOUT,
                "timeout_error",
                "the upstream stopped answering",
            ),
            Self::Broken(error) => {
                let mut failure = bad_gateway("the answer of the upstream ended early");
                failure.cause = Some(error.to_string());
                failure
            }
        }
    }

    /// Returns the event that says why events end. An answer that the upstream has broken off breaks off
    /// for the caller, too: that is what the caller would see without this server.
    pub(super) fn event(&self, request_id: &str) -> Option<Bytes> {
        match self {
            Self::Broken(_) | Self::Ended(Ended::Gone) => None,
            Self::Silent | Self::Ended(Ended::Revoked) => {
                Some(error_event(&self.failure(), request_id))
            }
        }
    }
}

/// Returns a failure as an event. The line breaks before it end an event that was cut in the middle.
pub(super) fn error_event(failure: &Failure, request_id: &str) -> Bytes {
    format!("\n\nevent: error\ndata: {}\n\n", failure.body(request_id)).into()
}

/// What a body that is being passed on holds on to.
pub(super) struct Passing {
    pub(super) upstream: Arc<Upstream>,
    pub(super) watch: Watch,
    /// Counts the request until its body has ended.
    pub(super) _permit: StreamPermit,
    pub(super) request_id: String,
}

enum State {
    Reading(Box<(Download, Passing)>),
    /// The last bytes were delivered; the caller must not take this for the end of the answer.
    Cut,
    Done,
}

/// Returns a body for the caller, byte for byte that of the upstream.
pub(super) fn passed_on(download: Download, passing: Passing, shape: Shape) -> Body {
    let state = State::Reading(Box::new((download, passing)));
    let frames = stream::unfold(state, move |state| async move {
        let mut reading = match state {
            State::Reading(reading) => reading,
            State::Cut => {
                return Some((Err(io::Error::from(io::ErrorKind::UnexpectedEof)), State::Done));
            }
            State::Done => return None,
        };
        let (download, passing) = &mut *reading;
        match download.next(&mut passing.watch).await? {
            Ok(bytes) => Some((Ok(Frame::data(bytes)), State::Reading(reading))),
            Err(cut) => {
                passing.upstream.tally.count(cut.outcome());
                tracing::info!(request_id = passing.request_id, ?cut, "a forwarded answer was cut");
                let event = cut.event(&passing.request_id).filter(|_| shape == Shape::Events);
                match event {
                    Some(event) => Some((Ok(Frame::data(event)), State::Cut)),
                    None => Some((Err(io::Error::from(io::ErrorKind::UnexpectedEof)), State::Done)),
                }
            }
        }
    });
    Body::new(StreamBody::new(frames))
}
