//! An answer in one piece, put together of all turns.

use axum::body::Body;
use axum::http::header;
use serde_json::{Map, Value, json};

use super::super::download::{Download, bad_gateway};
use super::super::pass::head;
use super::ANSWER_SIZE_BYTES_MAX;
use super::conversation::{Conversation, Ending, Next};
use super::turn::Turn;
use crate::answer::Answer;

/// Answers a request whose answer is not streamed.
pub(super) async fn answer(mut conversation: Conversation) -> Answer {
    let mut content = Vec::new();
    let mut id = None;
    loop {
        let response = conversation.ask().await?;
        if !response.status().is_success() {
            // What the model has remembered stays remembered; the app may try again.
            return conversation.forwarding.respond(response);
        }
        let (parts, body) = response.into_parts();
        let (forwarding, held) = (&mut conversation.forwarding, &mut conversation.held);
        let download = Download::new(body, forwarding.upstream.settings.idle_timeout);
        let before = held.size_bytes();
        let has_room = |size_bytes| held.grow_to(before + size_bytes);
        let watch = &mut forwarding.watch;
        let bytes = download.collected_if(watch, ANSWER_SIZE_BYTES_MAX, has_room).await?;
        let mut message: Map<String, Value> = serde_json::from_slice(&bytes)
            .map_err(|_invalid| bad_gateway("the answer of the upstream is no message"))?;
        conversation.count(message.get("usage").unwrap_or(&Value::Null));
        let turn = Turn::of(&message);
        content.extend(turn.shown().cloned());
        let id = id.get_or_insert_with(|| message.get("id").cloned());
        let Next::Done(ending) = conversation.after(turn).await? else { continue };
        if ending == Ending::TurnLimitReached {
            message.insert("stop_reason".to_owned(), json!("end_turn"));
        }
        if let Some(id) = id.take() {
            message.insert("id".to_owned(), id);
        }
        message.insert("content".to_owned(), Value::Array(content));
        message.insert("usage".to_owned(), conversation.usage);
        let mut answer = head(&parts)?;
        answer.headers_mut().remove(header::CONTENT_LENGTH);
        let bytes = serde_json::to_vec(&message).expect("JSON can be written");
        *answer.body_mut() = Body::from(bytes);
        return Ok(answer);
    }
}
