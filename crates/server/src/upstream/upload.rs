//! The body of a request on its way to the upstream: bounded in size, and in the time that its sender
//! may be silent.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::answer::Failure;

/// Why a body did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    TooLarge { size_bytes_max: usize },
    EndedEarly,
    Slow,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { size_bytes_max } => {
                write!(f, "the request body has more than {size_bytes_max} bytes")
            }
            Self::EndedEarly => f.write_str("the request body ended early"),
            Self::Slow => f.write_str("the request body did not arrive in time"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        let (status, error_type) = match broken {
            Broken::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
            Broken::EndedEarly => (StatusCode::BAD_REQUEST, "invalid_request_error"),
            Broken::Slow => (StatusCode::REQUEST_TIMEOUT, "timeout_error"),
        };
        Self::new(status, error_type, broken.to_string())
    }
}

/// A body that is read as fast as the upstream takes it.
#[derive(Debug)]
pub(super) struct Upload {
    body: Body,
    size_bytes_max: usize,
    left: usize,
    timeout: Duration,
    /// Runs while the sender is silent.
    waiting: Option<Pin<Box<Sleep>>>,
    broken: Arc<OnceLock<Broken>>,
}

impl Upload {
    pub(super) fn new(body: Body, size_bytes_max: usize, timeout: Duration) -> Self {
        let broken = Arc::default();
        Self { body, size_bytes_max, left: size_bytes_max, timeout, waiting: None, broken }
    }

    /// Returns the cell that receives the reason if the body is incomplete.
    pub(super) fn broken(&self) -> Arc<OnceLock<Broken>> {
        Arc::clone(&self.broken)
    }

    fn fail(&self, why: Broken) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Poll::Ready(Some(Err(*self.broken.get_or_init(|| why))))
    }
}

impl hyper::body::Body for Upload {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(_cut))) => return self.fail(Broken::EndedEarly),
                Poll::Ready(Some(Ok(frame))) => {
                    self.waiting = None;
                    // Trailers are headers, and none of those are on the list.
                    let Ok(data) = frame.into_data() else { continue };
                    let Some(left) = self.left.checked_sub(data.len()) else {
                        let size_bytes_max = self.size_bytes_max;
                        return self.fail(Broken::TooLarge { size_bytes_max });
                    };
                    self.left = left;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Pending => {
                    let until = Instant::now() + self.timeout;
                    let sleep = || Box::pin(tokio::time::sleep_until(until));
                    ready!(self.waiting.get_or_insert_with(sleep).as_mut().poll(cx));
                    return self.fail(Broken::Slow);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
