//! A streamed answer: the events of all turns as those of one message.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{Response, header};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Sender};

use super::super::download::{Download, bad_gateway, error_event};
use super::super::pass::{head, is_events};
use super::assembly::Assembly;
use super::conversation::{Conversation, Ending, Next};
use super::events::{Event, Events, Stop};
use super::turn::update_usage;
use crate::answer::{Answer, Failure};

/// How many events may wait for the app. More would be read from the upstream for an app that reads
/// nothing.
const WAITING_MAX: usize = 4;

type Piece = Result<Bytes, io::Error>;

/// Answers a request whose answer is streamed.
pub(super) async fn answer(mut conversation: Conversation) -> Answer {
    let first = conversation.ask().await?;
    if !first.status().is_success() || !is_events(first.headers()) {
        return conversation.forwarding.respond(first);
    }
    let (parts, body) = first.into_parts();
    let mut answer = head(&parts)?;
    answer.headers_mut().remove(header::CONTENT_LENGTH);
    let (sender, receiver) = mpsc::channel::<Piece>(WAITING_MAX);
    let first = Response::from_parts(parts, body);
    tokio::spawn(async move {
        let app_is_gone = sender.clone();
        tokio::select! {
            () = run(conversation, first, sender) => {}
            () = app_is_gone.closed() => {}
        }
    });
    let pieces =
        stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    *answer.body_mut() = Body::from_stream(pieces);
    Ok(answer)
}

/// The answer as far as the app has it.
struct Shown {
    sender: Sender<Piece>,
    /// The place of its next block.
    next: u64,
    has_started: bool,
}

impl Shown {
    async fn send(&self, event: Event) {
        self.pass(Ok(event.raw)).await;
    }

    /// Sends a piece. If the app is gone, nothing more is of use, and the task ends by that.
    async fn pass(&self, piece: Piece) {
        if self.sender.send(piece).await.is_err() {
            tracing::debug!("the reader of a stream is gone");
        }
    }
}

async fn run(
    mut conversation: Conversation,
    first: Response<hyper::body::Incoming>,
    sender: Sender<Piece>,
) {
    let mut shown = Shown { sender, next: 0, has_started: false };
    let Err(stop) = turns(&mut conversation, first, &mut shown).await else { return };
    let forwarding = &conversation.forwarding;
    let request_id = &forwarding.request_id;
    match stop {
        Stop::Failed(failure) => shown.pass(Ok(error_event(&failure, request_id))).await,
        Stop::Cut(cut) => {
            forwarding.upstream.tally.count(cut.outcome());
            tracing::info!(request_id, ?cut, "an answer with memory was cut");
            if let Some(event) = cut.event(request_id) {
                shown.pass(Ok(event)).await;
            }
            shown.pass(Err(io::ErrorKind::UnexpectedEof.into())).await;
        }
    }
}

async fn turns(
    conversation: &mut Conversation,
    first: Response<hyper::body::Incoming>,
    shown: &mut Shown,
) -> Result<(), Stop> {
    let mut response = first;
    loop {
        let (mut assembly, end) = turn(conversation, response, shown).await?;
        conversation.count(&assembly.usage);
        // The upstream has said itself what went wrong.
        let Some(end) = end else { return Ok(()) };
        let next = conversation.after(assembly.turn()).await.map_err(Stop::Failed)?;
        if let Next::Done(ending) = next {
            shown.send(last(end, conversation, ending)).await;
            shown.send(Event::of(json!({"type": "message_stop"}))).await;
            return Ok(());
        }
        response = conversation.ask().await.map_err(Stop::Failed)?;
        if !response.status().is_success() || !is_events(response.headers()) {
            return Err(refused(conversation, response).await);
        }
    }
}

/// Reads a turn and shows what is for the app. Returns the event that ends it, which is not shown yet;
/// `None` if the upstream ended the answer with an error.
async fn turn(
    conversation: &mut Conversation,
    response: Response<hyper::body::Incoming>,
    shown: &mut Shown,
) -> Result<(Assembly, Option<Event>), Stop> {
    let (forwarding, held) = (&mut conversation.forwarding, &mut conversation.held);
    let idle_timeout = forwarding.upstream.settings.idle_timeout;
    let mut events = Events::new(Download::new(response.into_body(), idle_timeout), held);
    let mut assembly = Assembly::default();
    let mut end = None;
    while let Some(event) = events.next(&mut forwarding.watch).await? {
        match event.kind() {
            "message_start" => {
                let usage = event.data.get("message").and_then(|message| message.get("usage"));
                update_usage(&mut assembly.usage, usage.unwrap_or(&Value::Null));
                if !shown.has_started {
                    shown.has_started = true;
                    shown.send(event).await;
                }
            }
            "message_delta" => {
                assembly.end(&event);
                end = Some(event);
            }
            "message_stop" => {
                let end = end.ok_or_else(|| {
                    Stop::Failed(bad_gateway("the upstream did not say how its answer ends"))
                })?;
                return Ok((assembly, Some(end)));
            }
            "error" => {
                shown.send(event).await;
                return Ok((assembly, None));
            }
            _ => {
                if let Some(event) = assembly.take(event, &mut shown.next) {
                    shown.send(event).await;
                }
            }
        }
    }
    Err(Stop::Failed(bad_gateway("the answer of the upstream ended early")))
}

/// Returns the event that ends the whole answer: as that of the last turn, with what all have used.
fn last(event: Event, conversation: &Conversation, ending: Ending) -> Event {
    let mut data = event.data;
    if let Some(data) = data.as_object_mut() {
        data.insert("usage".to_owned(), conversation.usage.clone());
    }
    if ending == Ending::TurnLimitReached
        && let Some(delta) = data.get_mut("delta").and_then(Value::as_object_mut)
    {
        delta.insert("stop_reason".to_owned(), json!("end_turn"));
    }
    Event::of(data)
}

/// Returns why the answer ends, if the upstream refuses to go on: in the upstream's own words.
async fn refused(
    conversation: &mut Conversation,
    response: Response<hyper::body::Incoming>,
) -> Stop {
    const SIZE_BYTES_MAX: usize = 64 * 1024;
    let forwarding = &mut conversation.forwarding;
    let idle_timeout = forwarding.upstream.settings.idle_timeout;
    let download = Download::new(response.into_body(), idle_timeout);
    let bytes = match download.collected(&mut forwarding.watch, SIZE_BYTES_MAX).await {
        Ok(bytes) => bytes,
        Err(failure) => return Stop::Failed(failure),
    };
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = |field: &str| {
        body.get("error").and_then(|error| error.get(field)?.as_str()).map(str::to_owned)
    };
    let message = text("message").unwrap_or_else(|| "the upstream did not go on".to_owned());
    let kind = match text("type").as_deref() {
        Some("overloaded_error") => "overloaded_error",
        Some("rate_limit_error") => "rate_limit_error",
        Some("invalid_request_error") => "invalid_request_error",
        Some("request_too_large") => "request_too_large",
        Some("timeout_error") => "timeout_error",
        Some(_) | None => "api_error",
    };
    Stop::Failed(Failure::new(axum::http::StatusCode::BAD_GATEWAY, kind, message))
}
