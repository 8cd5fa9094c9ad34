//! Pass-through: requests below `/v1` that no route serves are forwarded to a Messages API, the
//! upstream, if the settings name one.
//!
//! What is forwarded is streamed in both directions, with a bounded body, a bounded number of streams
//! and a deadline for every wait, so nothing here runs under the timeout of other requests. The
//! upstream never sees a key of this server, and callers never see the upstream's. [`memory`] is the
//! one thing that looks into a body.

mod client;
mod download;
mod headers;
mod links;
mod memory;
mod pass;
mod settings;
mod streams;
mod tally;
mod target;
mod upload;
mod watch;

use client::Client;
use memory::{Budget, Recall, Sessions};
pub(super) use pass::fallback;
pub use settings::{BaseUrl, UpstreamError, UpstreamKey, UpstreamSettings, UpstreamTls};
use streams::Streams;
pub(super) use tally::Tally;

/// What an answer carries if it was forwarded, so that the log and the metrics do not take its path
/// for a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forwarded;

impl Forwarded {
    /// The label of all forwarded requests.
    pub(super) const ROUTE: &str = "/v1/{forwarded}";
}

/// The upstream, as all requests share it.
#[derive(Debug)]
pub(super) struct Upstream {
    settings: UpstreamSettings,
    client: Client,
    streams: Streams,
    tally: Tally,
    recall: Recall,
    sessions: Sessions,
    budget: Budget,
}

impl Upstream {
    pub(super) fn new(settings: UpstreamSettings) -> Self {
        Self {
            client: Client::new(&settings),
            streams: Streams::new(settings.streams_max, settings.streams_per_key_max),
            tally: Tally::default(),
            recall: Recall::default(),
            sessions: Sessions::default(),
            budget: Budget::new(settings.memory_size_bytes_max),
            settings,
        }
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns how many requests are being forwarded.
    pub(super) fn streams_count(&self) -> usize {
        self.streams.count()
    }
}
