//! The bodies of requests.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::StatusCode;
use http_body_util::BodyExt as _;

use super::HttpSettings;
use super::answer::Failure;

/// Bodies up to this size are read before their sender is admitted. Most memories are smaller.
const EARLY_SIZE_BYTES_MAX: usize = 64 * 1024;

/// How long to wait for such a body. Most arrive in the same packet as the head of the request.
const EARLY_TIMEOUT: Duration = Duration::from_millis(100);

/// How much of a rejected body is read and discarded.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a rejected body is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Incoming {
    body: Body,
    frames: Vec<Bytes>,
    size_bytes: usize,
}

/// Why a body could not be read completely.
enum Broken {
    TooLarge,
    EndedEarly,
}

impl Incoming {
    pub(super) fn new(body: Body) -> Self {
        Self { body, frames: Vec::new(), size_bytes: 0 }
    }

    /// Returns how long the body can become at most; `None` if its sender has not said so.
    pub(super) fn length_max(&self) -> Option<usize> {
        let upper = self.body.size_hint().upper()?;
        Some(usize::try_from(upper).unwrap_or(usize::MAX))
    }

    /// Reads a short body if it arrives immediately, and returns whether it is complete.
    pub(super) async fn is_complete_soon(&mut self, settings: &HttpSettings) -> bool {
        if self.body.is_end_stream() {
            return true;
        }
        let size_max = settings.body_size_bytes_max.min(EARLY_SIZE_BYTES_MAX);
        let size = self.body.size_hint().exact().map(usize::try_from);
        if !matches!(size, Some(Ok(size)) if size <= size_max) {
            return false;
        }
        let reading = tokio::time::timeout(EARLY_TIMEOUT, self.collect(size_max));
        matches!(reading.await, Ok(Ok(())))
    }

    /// Reads the rest, if it is not too large and arrives in time.
    pub(super) async fn read_rest(&mut self, settings: &HttpSettings) -> Result<(), Failure> {
        self.read_up_to(settings.body_size_bytes_max, settings).await
    }

    /// Reads the rest of a body that may have only so many bytes.
    pub(super) async fn read_up_to(
        &mut self,
        size_max: usize,
        settings: &HttpSettings,
    ) -> Result<(), Failure> {
        match tokio::time::timeout(settings.body_timeout, self.collect(size_max)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Broken::TooLarge)) => {
                self.discard().await;
                Err(Failure::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "request_too_large",
                    format!("the request body has more than {size_max} bytes"),
                ))
            }
            Ok(Err(Broken::EndedEarly)) => Err(Failure::invalid("the request body ended early")),
            Err(_) => Err(Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout_error",
                "the request body did not arrive in time",
            )),
        }
    }

    /// Reads to the end. Cancel safe: what was read is kept.
    async fn collect(&mut self, size_bytes_max: usize) -> Result<(), Broken> {
        while let Some(frame) = self.body.frame().await {
            let Ok(frame) = frame else { return Err(Broken::EndedEarly) };
            let Ok(data) = frame.into_data() else { continue };
            self.size_bytes += data.len();
            if self.size_bytes > size_bytes_max {
                return Err(Broken::TooLarge);
            }
            self.frames.push(data);
        }
        Ok(())
    }

    /// Reads and discards the rest of a body, within limits. Closing the connection while the client
    /// still sends would reset it, and the client would never see the answer.
    pub(super) async fn discard(&mut self) {
        self.frames.clear();
        let reading = async {
            let mut size = 0;
            while let Some(Ok(frame)) = self.body.frame().await {
                size += frame.data_ref().map_or(0, Bytes::len);
                if size > DISCARDED_BYTES_MAX {
                    break;
                }
            }
        };
        if tokio::time::timeout(DISCARD_TIMEOUT, reading).await.is_err() {
            tracing::debug!("a rejected body was cut off");
        }
    }

    /// Returns what was read.
    pub(super) fn into_bytes(self) -> Bytes {
        match <[Bytes; 1]>::try_from(self.frames) {
            Ok([only]) => only,
            Err(frames) => frames.concat().into(),
        }
    }
}
