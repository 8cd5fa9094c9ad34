//! The event stream: changes as they happen, resumable by the ids of events.
//!
//! An id has the number of the change and its moment. The number alone would not do: after a failover that lost
//! the newest changes, their numbers belong to others, which the client would take for seen.
//!
//! A client that resumes first reads its past from the engine, page by page, and then joins the
//! feed that all clients share. A client that is too slow for the shared feed is sent back to the
//! engine; nothing is buffered for it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use quipu_core::Error;
use quipu_core::backend::{Event, Sequence};
use quipu_core::engine::{FeedEntry, FeedPlace};
use quipu_core::model::StoreId;
use quipu_knowledge::Knowledge;
use quipu_service::caller::{Caller, Need};
use quipu_service::credential::Credential;
use quipu_service::feed::{BATCH, Received, Tail};
use quipu_service::wire::{ChangeBody, VersionBody};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::App;
use super::answer::{Answer, Failure};
use super::call::{self, Call, Kind};
use super::caller;
use super::guard::guarded;

/// The idle time after which a comment is sent, so that both sides notice a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One open stream.
struct Follower {
    app: App,
    reader: Reader,
    credential: Credential,
    /// The last sequence that was delivered or filtered out.
    seen: Sequence,
    /// Whether what the client has seen is not in the feed.
    is_lost: bool,
    /// Whether the next changes have to be read from the engine.
    is_behind: bool,
    tail: Tail,
    stop: CancellationToken,
    /// When a comment is due.
    keep_alive_at: Instant,
}

/// The reader of a stream, and what it selects.
struct Reader {
    caller: Caller,
    store: Option<StoreId>,
}

/// Streams changes. `after` or the header `Last-Event-ID` is the id of the event to resume after, or the number
/// of a change; without either, earlier changes are not delivered. `store` restricts the stream to one store.
pub(super) async fn stream(State(app): State<App>, request: Request) -> Answer {
    // Subscribe before querying the engine, so that neither a change nor a revocation is missed.
    let tail = app.feed().tail();
    let mut credential = {
        let secret = caller::credential(request.headers())?;
        Credential::new(app.pool(), app.feed(), secret)
    };
    let (reader, seen, is_lost) = call::answer(app.clone(), request, Kind::Read, beginning).await?;
    credential.expires_with(&reader.caller.principal);
    let stop = app.0.service.stop().clone();
    let keep_alive_at = Instant::now() + KEEP_ALIVE;
    let follower = Follower {
        app,
        reader,
        credential: credential.clone(),
        seen,
        is_lost,
        is_behind: true,
        tail,
        stop,
        keep_alive_at,
    };
    let events = Body::from_stream(stream::unfold(follower, |mut follower| async {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    }));
    let mut response = Response::new(guarded(events, credential));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn beginning(call: &Call<'_>) -> Result<(Reader, Sequence, bool), Failure> {
    let store = match call.query().get("store")? {
        None => None,
        Some(id) => Some(call.store(id, Need::Read)?.id),
    };
    let (seen, is_lost) = match call.feed_place("after")? {
        Some(after) => (after.sequence, !call.engine.is_place_of_feed(after)?),
        None => (call.engine.newest_sequence()?, false),
    };
    Ok((Reader { caller: call.caller.clone(), store }, seen, is_lost))
}

impl Follower {
    /// Returns the next events, or a comment if none come for a while; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let text = if self.is_behind { self.missed().await? } else { self.received().await? };
            if !text.is_empty() {
                self.keep_alive_at = Instant::now() + KEEP_ALIVE;
                return Some(text);
            }
        }
    }

    /// Reads the next page from the engine. If that fails, the stream ends, and the client resumes
    /// with the last id that it received.
    async fn missed(&mut self) -> Option<Bytes> {
        let (seen, credential) = (self.seen, self.credential.clone());
        let read = move |engine: &Knowledge| {
            let news = engine.feed_entries(seen, BATCH)?;
            // Checked after reading: a change that follows a revocation is then never delivered.
            Ok::<_, Error>(credential.is_valid(engine)?.then_some(news))
        };
        let news = self.app.pool().read(read).await.ok()?.ok()??;
        let is_lost = std::mem::take(&mut self.is_lost);
        if is_lost || news.is_another_feed() {
            // What it reads from now on has everything before the newest change.
            self.seen = news.newest.sequence;
            self.is_behind = false;
            self.tail.resume_after(self.seen);
            return Some(format!("id: {}\n{GAP}", id(news.newest)).into());
        }
        self.is_behind = news.items.len() == BATCH;
        // Retention has removed changes that the client has not seen.
        let mut text = if news.has_gap { GAP.to_owned() } else { String::new() };
        if let Some(last) = news.items.last() {
            self.seen = last.change.sequence;
        }
        self.tail.resume_after(self.seen);
        let known = news.items.iter().filter(|news| self.reader.is_subscribed(news));
        text.extend(known.map(event));
        Some(text.into())
    }

    /// Waits for the shared feed.
    async fn received(&mut self) -> Option<Bytes> {
        tokio::select! {
            received = self.tail.next() => match received? {
                Received::Missed => self.is_behind = true,
                Received::Changes(changes)
                    if changes.items().any(|item| item.news.change.event == Event::Restarted) =>
                {
                    self.is_behind = true;
                }
                Received::Changes(changes) => {
                    self.seen = changes.reached();
                    return Some(changes.texts(|news| self.reader.is_subscribed(news), event));
                }
            },
            () = self.stop.cancelled() => return None,
            () = tokio::time::sleep_until(self.keep_alive_at) => {
                return Some(Bytes::from_static(b": still here\n\n"));
            }
        }
        Some(Bytes::new())
    }
}

impl Reader {
    /// Returns whether a change is selected by the query and visible to the caller.
    fn is_subscribed(&self, news: &FeedEntry) -> bool {
        let store = news.change.store;
        let is_wanted = self.store.is_none_or(|wanted| wanted == store);
        // A deleted store still has a workspace: other workspaces must not see its deletion.
        is_wanted
            && news.workspace == Some(self.caller.workspace)
            && self.caller.may_in(store, Need::Read)
    }
}

/// The event for a client that has to start over, without its id.
const GAP: &str = "event: gap\ndata: {}\n\n";

/// Returns the id of an event.
fn id(place: FeedPlace) -> String {
    match place.at {
        Some(at) => format!("{}-{}", place.sequence.0, at.as_micros()),
        None => place.sequence.0.to_string(),
    }
}

/// Serializes a change as an event.
fn event(news: &FeedEntry) -> String {
    let mut body = ChangeBody::from(&news.change);
    body.memory_version = news.version.as_ref().map(VersionBody::from);
    let data = serde_json::to_string(&body).expect("our shapes can be written as JSON");
    let place = FeedPlace { sequence: news.change.sequence, at: Some(news.change.at) };
    format!("id: {}\nevent: {}\ndata: {data}\n\n", id(place), body.event)
}
