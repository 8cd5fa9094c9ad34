//! The answers to a batch, as one stream of events.

use std::convert::Infallible;
use std::vec;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::request::Parts;
use http::{Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Collected, Empty, Full, StreamBody};
use quipu_service::endpoint::ResponseBody;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use super::{EVENTS, Protocol, is_stream, run, status};

/// The messages of a batch and the answer that is being read.
///
/// Answers are produced on demand: the next message runs when the client has read the answers
/// before it. Running all of them up front would let one request of a slow reader buffer a hundred
/// answers.
pub(super) struct Answers {
    protocol: Protocol,
    parts: Parts,
    messages: vec::IntoIter<Value>,
    current: Option<ResponseBody>,
}

impl Answers {
    pub(super) fn new(protocol: Protocol, mut parts: Parts, messages: Vec<Value>) -> Self {
        // It is the length of the whole batch.
        parts.headers.remove(header::CONTENT_LENGTH);
        Self { protocol, parts, messages: messages.into_iter(), current: None }
    }

    /// Returns all answers as one stream of events, or the single answer that rejects the headers.
    pub(super) async fn response(mut self) -> Response<ResponseBody> {
        if let Some((message, response)) = self.run().await {
            if matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::NOT_ACCEPTABLE) {
                return response;
            }
            self.current = Some(events(&message, response).await);
        }
        let Some(first) = self.events().await else { return status(StatusCode::ACCEPTED) };
        let others = stream::unfold(self, async |mut answers| {
            let events = answers.events().await?;
            Some((events, answers))
        });
        let events = stream::once(async { first }).chain(others);
        let frames = events.map(|events| Ok::<_, Infallible>(Frame::data(events)));
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, EVENTS);
        response
    }

    /// Returns the next events, or a part of them; `None` when everything is answered.
    async fn events(&mut self) -> Option<Bytes> {
        loop {
            let Some(body) = &mut self.current else {
                let (message, response) = self.run().await?;
                self.current = Some(events(&message, response).await);
                continue;
            };
            let frame = body.frame().await.and_then(Result::ok);
            match frame.map(Frame::into_data) {
                Some(Ok(events)) => return Some(events),
                Some(Err(_trailers)) => {}
                None => self.current = None,
            }
        }
    }

    /// Runs the next message.
    async fn run(&mut self) -> Option<(Value, Response<ResponseBody>)> {
        let message = self.messages.next()?;
        let request = Request::from_parts(self.parts.clone(), message.to_string().into());
        Some((message, run(&self.protocol, request).await))
    }
}

/// Returns the events of the response to a message.
async fn events(message: &Value, response: Response<ResponseBody>) -> ResponseBody {
    if is_stream(&response) {
        return response.into_body();
    }
    if response.status().is_success() {
        return Empty::new().boxed_unsync();
    }
    let Ok(reason) = response.into_body().collect().await.map(Collected::to_bytes);
    Full::from(rejected(message, &reason)).boxed_unsync()
}

/// Returns the event that reports that a message of a batch was rejected.
fn rejected(message: &Value, body: &[u8]) -> String {
    let reason = String::from_utf8_lossy(body);
    let error = json!({"code": ErrorCode::INVALID_REQUEST, "message": reason});
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": message.get("id"), "error": error}))
}
