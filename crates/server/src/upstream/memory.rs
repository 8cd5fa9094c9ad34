//! Memory in messages: `POST /v1/messages` with the header `quipu-store`.
//!
//! The store's prompt goes into the system text and the memory tool among the tools; the model's calls
//! of it are carried out here, and the conversation goes on until the model has said what is for the
//! app. [`conversation`] asks turn by turn, [`whole`] and [`streamed`] put the turns together to one
//! answer, [`recall`] remembers what was left out of it.
//!
//! `docs/decisions/0030-memory-in-messages.md` says what the client sees, and why.

mod assembly;
mod budget;
mod conversation;
mod events;
mod opened;
mod recall;
mod request;
mod sessions;
mod streamed;
mod turn;
mod whole;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use serde_json::{Map, Value};

use super::pass::Forwarding;
use crate::answer::{Answer, Failure};
use crate::body::Incoming;
pub(super) use budget::Budget;
use conversation::Conversation;
use opened::Opened;
pub(super) use recall::Recall;
pub(super) use sessions::Sessions;

/// Names the store.
const STORE: &str = "quipu-store";
/// Names the session that writes; without it, there is one for each key, app and store.
const SESSION: &str = "quipu-session";
/// Names the app, for the title of its session.
const APP: &str = "quipu-app";

const MESSAGES: &str = "/v1/messages";
const COUNT: &str = "/v1/messages/count_tokens";

/// The longest answer of the upstream to one turn.
const ANSWER_SIZE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Returns whether a request is for a model with memory.
pub(super) fn is_wanted(parts: &Parts) -> bool {
    let path = parts.uri.path();
    parts.method == Method::POST
        && (path == MESSAGES || path == COUNT)
        && parts.headers.contains_key(STORE)
}

/// Answers a request for a model with memory.
pub(super) async fn answer(mut forwarding: Forwarding, body: Body) -> Answer {
    let mut incoming = Incoming::new(body);
    let size_max = forwarding.upstream.settings.body_size_bytes_max;
    // A body whose length is not known yet may become as long as any.
    let length = incoming.length_max().map_or(size_max, |length| length.min(size_max));
    let mut held = match forwarding.upstream.budget.hold(forwarding.key, length) {
        Ok(held) => held,
        Err(full) => {
            incoming.discard().await;
            return Err(full);
        }
    };
    let reading = incoming.read_up_to(size_max, forwarding.app.settings());
    forwarding.watch.run(reading).await??;
    let bytes = incoming.into_bytes();
    held.shrink_to(bytes.len());
    let mut body: Map<String, Value> = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::invalid(format!("request body: {error}")))?;
    let opened = Opened::new(&forwarding).await?;
    request::restore(&forwarding, &opened, &mut body).await?;
    request::equip(&opened, &mut body)?;
    request::ask_for_beta(&mut forwarding.headers);
    // Turns are read here, so they must not be compressed.
    forwarding.headers.remove(header::ACCEPT_ENCODING);
    forwarding.headers.remove(header::CONTENT_ENCODING);
    forwarding.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if forwarding.parts.uri.path() == COUNT {
        return counted(forwarding, &body).await;
    }
    let is_streamed = body.get("stream").and_then(Value::as_bool).unwrap_or_default();
    let conversation = Conversation::new((forwarding, held), opened, body);
    if is_streamed {
        streamed::answer(conversation).await
    } else {
        whole::answer(conversation).await
    }
}

/// Counts the tokens of a request with everything that memory adds to it.
async fn counted(mut forwarding: Forwarding, body: &Map<String, Value>) -> Answer {
    let headers = forwarding.headers.clone();
    let body = serde_json::to_vec(body).expect("JSON can be written");
    match forwarding.send(&headers, Body::from(body)).await {
        Ok(response) => forwarding.respond(response),
        Err(unsent) => Err(forwarding.failure(unsent)),
    }
}
