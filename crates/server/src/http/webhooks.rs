//! Webhooks: tells other servers when a store is created, archived or deleted.
//!
//! Deliveries follow the change feed from where the last one has got, so a restart loses none; a
//! receiver may get one twice and knows it by its id. They are signed as Standard Webhooks are.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::{Id as _, Timestamp, VersionId, WorkspaceId};
use quipu_core::{Engine, Error};
use serde_json::json;
use sha2::Sha256;

/// A server that wants to be told.
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
    /// Returns an endpoint with a secret of the form `whsec_` and base64; `None` if it is none.
    pub fn new(url: &str, secret: &str) -> Option<Self> {
        let encoded = secret.strip_prefix("whsec_")?;
        let secret = STANDARD.decode(encoded).ok().filter(|secret| !secret.is_empty())?;
        Some(Self { url: url.to_owned(), secret })
    }

    /// Returns the signature of a delivery: `v1,` and base64.
    fn sign(&self, id: &str, at: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any key length fits");
        mac.update(format!("{id}.{at}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// How a delivery went.
enum Delivery {
    Accepted,
    Failed(String),
    /// The endpoint has moved, and whoever set it up must say where to.
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
/// How long to sleep before asking again whether to stop.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait for a change before asking the same.
const QUIET: Duration = Duration::from_secs(10);
const BATCH: usize = 100;

/// Delivers to one endpoint until `stop` says so. Blocks its thread.
pub fn deliver(
    engine: &Engine,
    workspace: WorkspaceId,
    endpoint: &Endpoint,
    pauses: Pauses,
    stop: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let follower = format!("webhook {}", endpoint.url);
    let mut seen = match engine.cursor(&follower)? {
        Some(seen) => seen,
        // What happened before anybody asked is not told.
        None => engine.newest_sequence()?,
    };
    engine.keep_cursor(&follower, seen)?;
    while !stop() {
        let changes = engine.changes(seen, BATCH)?;
        if changes.is_empty() {
            engine.wait(seen, QUIET)?;
            continue;
        }
        for change in &changes {
            if let Some(name) = told(change.event) {
                let message = message(change, name, workspace);
                match attempt(engine, endpoint, pauses, &message, stop) {
                    Delivery::Accepted => {}
                    Delivery::Moved => {
                        tracing::error!(
                            url = endpoint.url,
                            "a webhook was redirected and is disabled"
                        );
                        return Ok(());
                    }
                    Delivery::Failed(reason) => {
                        tracing::error!(url = endpoint.url, reason, "a webhook was given up");
                    }
                }
            }
            seen = change.sequence;
        }
        engine.keep_cursor(&follower, seen)?;
    }
    Ok(())
}

/// Returns the name of an event that is told.
fn told(event: Event) -> Option<&'static str> {
    match event {
        Event::StoreCreated => Some("memory_store.created"),
        Event::StoreArchived => Some("memory_store.archived"),
        Event::StoreDeleted => Some("memory_store.deleted"),
        Event::StoreUpdated | Event::Version(_) | Event::Redacted(_) => None,
    }
}

/// One thing to tell.
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

/// Sleeps, but not longer than the server lives.
fn wait(pause: Duration, stop: &dyn Fn() -> bool) {
    let mut left = pause;
    while !left.is_zero() && !stop() {
        let step = left.min(PATIENCE);
        std::thread::sleep(step);
        left -= step;
    }
}

/// Posts once. Receivers refuse a signature that is minutes old, so each attempt has its own.
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
    fn deliveries_are_signed_as_the_standard_says() {
        let secret = ["whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"].concat();
        let endpoint = Endpoint::new("https://example.com", &secret).unwrap();
        let signature =
            endpoint.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_must_have_the_standard_form() {
        assert!(Endpoint::new("https://example.com", "plain").is_none());
        assert!(Endpoint::new("https://example.com", "whsec_").is_none());
        assert!(Endpoint::new("https://example.com", "whsec_!").is_none());
    }
}
