//! Webhooks: notify other servers when a store is created, archived or deleted.
//!
//! Each endpoint has a durable cursor in the change feed, so a restart loses no delivery. Deliveries
//! are at least once; a receiver deduplicates them by id. They are signed as Standard Webhooks
//! specify.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::engine::Changes;
use quipu_core::model::{Id as _, Timestamp, VersionId, WorkspaceId};
use quipu_core::{Engine, Error};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use ureq::http::Uri;

/// A receiver of webhooks.
#[derive(Clone)]
pub struct Endpoint {
    /// Where to post to.
    pub url: String,
    /// The key that deliveries are signed with.
    secret: Vec<u8>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Returns an endpoint with an absolute address and a secret of the form `whsec_` and base64.
    pub fn new(url: &str, secret: &str) -> Result<Self, EndpointError> {
        let is_absolute = url.parse::<Uri>().is_ok_and(|url| {
            let is_http = matches!(url.scheme_str(), Some("http" | "https"));
            is_http && url.host().is_some_and(|host| !host.is_empty())
        });
        if !is_absolute {
            let message = "the address must begin with `https://` or `http://` and name a host";
            return Err(EndpointError(message.to_owned()));
        }
        let decoded = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
        match decoded.filter(|secret| !secret.is_empty()) {
            Some(secret) => Ok(Self { url: url.to_owned(), secret }),
            None => Err(EndpointError("the secret must be `whsec_` and base64".to_owned())),
        }
    }

    /// Returns the name of the file whose lock makes a server the only one to deliver here.
    pub fn lease_name(&self) -> String {
        let digest: [u8; 32] = Sha256::digest(self.url.as_bytes()).into();
        let start = digest.first_chunk().copied().unwrap_or_default();
        format!("webhook-{:016x}.lock", u64::from_be_bytes(start))
    }

    /// Returns the name of its cursor in the change feed.
    fn follower(&self) -> String {
        format!("webhook {}", self.url)
    }

    /// Returns the address without user name, password and query, which may be secret.
    pub(super) fn shown(&self) -> String {
        let Ok(url) = self.url.parse::<Uri>() else { return String::new() };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let (scheme, host) = (url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default());
        format!("{scheme}://{host}{port}{}", url.path())
    }

    /// Returns how many events wait to be delivered, of the next [`WAITING_MAX`] changes.
    pub(super) fn waiting_count(&self, engine: &Engine) -> Result<u64, Error> {
        let Some(seen) = engine.cursor(&self.follower())? else { return Ok(0) };
        let changes = engine.changes(seen, WAITING_MAX)?.items;
        let waiting = changes.iter().filter(|change| event_name(change.event).is_some());
        Ok(waiting.count() as u64)
    }

    /// Returns the signature of a delivery: `v1,` and base64.
    fn sign(&self, id: &str, at: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any key length fits");
        mac.update(format!("{id}.{at}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// Why an endpoint cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError(String);

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EndpointError {}

/// What was delivered to each endpoint since the server started.
#[derive(Debug, Default)]
pub struct Deliveries(Mutex<Vec<(Endpoint, Record)>>);

/// What was delivered to one endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) accepted_count: u64,
    pub(super) failed_count: u64,
    /// When a delivery was last abandoned, and why.
    pub(super) last_error: Option<(Timestamp, String)>,
    /// When the endpoint was last tested, and what failed, if anything did.
    pub(super) tested: Option<(Timestamp, Result<(), String>)>,
}

impl Deliveries {
    /// Adds an endpoint without deliveries. One with the same address stays as it is.
    pub fn add(&self, endpoint: &Endpoint) {
        self.note(endpoint, |_| ());
    }

    /// Returns how many deliveries were accepted, and how many were abandoned.
    pub fn counts(&self) -> (u64, u64) {
        self.endpoints().iter().fold((0, 0), |(accepted, failed), (_, record)| {
            (accepted + record.accepted_count, failed + record.failed_count)
        })
    }

    /// Returns all endpoints, in the order in which they were added.
    pub(super) fn all(&self) -> Vec<(Endpoint, Record)> {
        self.endpoints().clone()
    }

    /// Posts a test delivery to an endpoint once, and keeps the outcome.
    pub(super) fn test(&self, endpoint: &Endpoint, now: Timestamp) {
        let message = test_message(now);
        let outcome = match post(endpoint, &message, now) {
            Delivery::Accepted => Ok(()),
            Delivery::Failed(reason) => Err(reason),
            Delivery::Moved => Err("the answer was a redirect, which is never followed".to_owned()),
        };
        self.note(endpoint, |record| record.tested = Some((now, outcome)));
    }

    fn note(&self, endpoint: &Endpoint, change: impl FnOnce(&mut Record)) {
        let mut endpoints = self.endpoints();
        match endpoints.iter_mut().find(|(known, _)| known.url == endpoint.url) {
            Some((_, record)) => change(record),
            None => {
                let mut record = Record::default();
                change(&mut record);
                endpoints.push((endpoint.clone(), record));
            }
        }
    }

    fn failed(&self, endpoint: &Endpoint, at: Timestamp, reason: &str) {
        self.note(endpoint, |record| {
            record.failed_count += 1;
            record.last_error = Some((at, reason.to_owned()));
        });
    }

    fn endpoints(&self) -> MutexGuard<'_, Vec<(Endpoint, Record)>> {
        // Every change of a record is complete when it can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How to deliver.
#[derive(Clone, Debug)]
pub struct Delivering {
    /// The workspace that messages name.
    pub workspace: WorkspaceId,
    /// When to try again.
    pub pauses: Pauses,
    /// Where deliveries are counted.
    pub deliveries: Arc<Deliveries>,
}

/// The outcome of a delivery.
enum Delivery {
    Accepted,
    Failed(String),
    /// The endpoint redirects. Following it would send the signed event to an address that nobody
    /// configured.
    Moved,
}

/// The pauses before the second and the third attempt.
#[derive(Clone, Copy, Debug)]
pub struct Pauses(pub [Duration; 2]);

impl Default for Pauses {
    fn default() -> Self {
        Self([Duration::from_secs(5), Duration::from_mins(2)])
    }
}

const TIMEOUT: Duration = Duration::from_secs(15);
/// The interval at which a pause polls `stop`.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long one wait for changes lasts; `stop` is polled in between.
const QUIET: Duration = Duration::from_secs(10);
const BATCH: usize = 100;
/// How many changes are looked at to count what waits.
const WAITING_MAX: usize = 1_000;

/// Why deliveries have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// They were asked to.
    Stopped,
    /// The endpoint redirects, so nothing is delivered to it until the next start.
    Disabled,
}

/// Delivers to one endpoint until `stop` returns `true`. Blocks the calling thread.
pub fn deliver(
    engine: &Engine,
    endpoint: &Endpoint,
    how: &Delivering,
    stop: &dyn Fn() -> bool,
) -> Result<Delivered, Error> {
    let follower = endpoint.follower();
    let mut seen = match engine.cursor(&follower)? {
        Some(seen) => seen,
        // A new endpoint: earlier events are not delivered.
        None => engine.newest_sequence()?,
    };
    engine.keep_cursor(&follower, seen)?;
    while !stop() {
        let Changes { items: changes, has_gap } = engine.changes(seen, BATCH)?;
        if has_gap {
            tracing::warn!(
                url = endpoint.url,
                "a webhook has missed events that are no longer kept"
            );
        }
        if changes.is_empty() {
            if has_gap {
                // It is ahead of the feed, which is that of an older copy. Waiting for its place to come again
                // would miss all that come before.
                seen = engine.newest_sequence()?;
                engine.keep_cursor(&follower, seen)?;
            }
            engine.wait(seen, QUIET)?;
            continue;
        }
        for change in &changes {
            if let Some(name) = event_name(change.event) {
                let message = message(change, name, how.workspace);
                match attempt(engine, endpoint, how.pauses, &message, stop) {
                    Delivery::Accepted => {
                        how.deliveries.note(endpoint, |record| record.accepted_count += 1);
                    }
                    // The cursor stays before it, so it is delivered after the next start.
                    Delivery::Failed(_) if stop() => return Ok(Delivered::Stopped),
                    Delivery::Moved => {
                        how.deliveries.failed(
                            endpoint,
                            engine.now(),
                            "it was redirected, and is disabled until the next start",
                        );
                        tracing::error!(
                            url = endpoint.url,
                            "a webhook was redirected and is disabled"
                        );
                        return Ok(Delivered::Disabled);
                    }
                    Delivery::Failed(reason) => {
                        how.deliveries.failed(endpoint, engine.now(), &reason);
                        tracing::error!(
                            url = endpoint.url,
                            reason,
                            "a webhook delivery was abandoned"
                        );
                    }
                }
                // Stored after each delivery, not per batch: a server that takes over would repeat
                // the whole batch.
                engine.keep_cursor(&follower, change.sequence)?;
            }
            seen = change.sequence;
        }
        engine.keep_cursor(&follower, seen)?;
    }
    Ok(Delivered::Stopped)
}

/// Returns the name of an event; `None` if webhooks are not notified of it.
fn event_name(event: Event) -> Option<&'static str> {
    match event {
        Event::StoreCreated => Some("memory_store.created"),
        Event::StoreArchived => Some("memory_store.archived"),
        Event::StoreDeleted => Some("memory_store.deleted"),
        Event::StoreUpdated | Event::Version(_) | Event::Redacted(_) | Event::Restarted => None,
    }
}

/// The message of one event.
struct Message {
    id: String,
    body: String,
}

fn message(change: &Change, name: &str, workspace: WorkspaceId) -> Message {
    let Sequence(sequence) = change.sequence;
    let id = VersionId::new(change.at, u128::from(sequence)).to_string();
    let id = id.replace("memver_", "event_");
    let body = json!({
        "type": "event",
        "id": id,
        "created_at": change.at.to_string(),
        "data": {
            "type": name,
            "id": change.store.to_string(),
            "organization_id": "quipu",
            "workspace_id": workspace.to_string(),
        },
    });
    Message { id, body: body.to_string() }
}

/// Returns a message that announces nothing, for receivers to show that they work.
fn test_message(now: Timestamp) -> Message {
    let id = format!("event_test_{}", now.as_micros());
    let data = json!({"type": "quipu.test"});
    let body = json!({"type": "event", "id": id, "created_at": now.to_string(), "data": data});
    Message { id, body: body.to_string() }
}

fn attempt(
    engine: &Engine,
    endpoint: &Endpoint,
    pauses: Pauses,
    message: &Message,
    stop: &dyn Fn() -> bool,
) -> Delivery {
    let mut reason = String::new();
    for pause in [Duration::ZERO].into_iter().chain(pauses.0) {
        wait(pause, stop);
        match post(endpoint, message, engine.now()) {
            Delivery::Failed(again) => reason = again,
            settled @ (Delivery::Accepted | Delivery::Moved) => return settled,
        }
        if stop() {
            break;
        }
    }
    Delivery::Failed(reason)
}

/// Sleeps until the pause is over or `stop` returns `true`.
fn wait(pause: Duration, stop: &dyn Fn() -> bool) {
    let mut left = pause;
    while !left.is_zero() && !stop() {
        let step = left.min(PATIENCE);
        std::thread::sleep(step);
        left -= step;
    }
}

/// Posts once. Receivers reject a signature that is minutes old, so every attempt is signed again.
fn post(endpoint: &Endpoint, message: &Message, now: Timestamp) -> Delivery {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .http_status_as_error(false)
        .build()
        .into();
    let at = now.as_micros() / 1_000_000;
    let sent = agent
        .post(&endpoint.url)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", at.to_string())
        .header("webhook-signature", endpoint.sign(&message.id, at, &message.body))
        .send(&message.body);
    match sent {
        Ok(response) if response.status().is_success() => Delivery::Accepted,
        Ok(response) if response.status().is_redirection() => Delivery::Moved,
        Ok(response) => Delivery::Failed(format!("the answer was {}", response.status())),
        Err(error) => Delivery::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn deliveries_are_signed_as_the_standard_specifies() {
        let secret = ["whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"].concat();
        let endpoint = Endpoint::new("https://example.com", &secret).unwrap();
        let signature =
            endpoint.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_must_have_the_standard_form() {
        for secret in ["plain", "whsec_", "whsec_!"] {
            let error = Endpoint::new("https://example.com", secret).unwrap_err();
            assert!(error.to_string().contains("whsec_"), "{error}");
        }
    }

    #[test]
    fn an_address_must_be_absolute() {
        let secret = ["whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"].concat();
        for url in ["", "example.com/hook", "ftp://example.com", "http://", "https://a b", "/hook"]
        {
            let error = Endpoint::new(url, &secret).unwrap_err();
            assert!(error.to_string().contains("address"), "{url}: {error}");
        }
    }
}
