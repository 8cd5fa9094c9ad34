//! The event stream: changes as they happen, resumable by sequence.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::model::{StoreId, View};
use quipu_core::{Engine, Error};
use tokio::sync::watch;

use super::App;
use super::answer::{Answer, Failure};
use super::call::{self, Call, Kind};
use super::caller::{Caller, Need};
use crate::wire::{ChangeBody, VersionBody};

/// A comment is sent when nothing else was for so long, so that both sides notice a dead line.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const BATCH: usize = 100;

/// One open stream.
struct Follower {
    app: App,
    caller: Caller,
    store: Option<StoreId>,
    seen: Sequence,
    newest: watch::Receiver<Sequence>,
    is_stopping: watch::Receiver<bool>,
}

/// Streams changes. `after` or the header `Last-Event-ID` says where to go on; without either the
/// stream begins now. `store` restricts it to one store.
pub(super) async fn stream(State(app): State<App>, request: Request) -> Answer {
    let (caller, store, seen) = call::answer(app.clone(), request, Kind::Read, beginning).await?;
    let follower = Follower {
        newest: app.0.newest.subscribe(),
        is_stopping: app.0.is_stopping.subscribe(),
        app,
        caller,
        store,
        seen,
    };
    let body = Body::from_stream(stream::unfold(follower, |mut follower| async {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn beginning(call: &Call<'_>) -> Result<(Caller, Option<StoreId>, Sequence), Failure> {
    let store = match call.query().get("store") {
        None => None,
        Some(id) => Some(call.store(id, Need::Read)?.id),
    };
    let last_seen = call.headers().get("last-event-id").and_then(|value| value.to_str().ok());
    let seen = match call.query().get("after").or(last_seen).map(str::parse) {
        Some(Ok(after)) => Sequence(after),
        Some(Err(_)) => return Err(Failure::invalid("after: must be a sequence number")),
        None => call.engine.newest_sequence()?,
    };
    Ok((call.caller.clone(), store, seen))
}

impl Follower {
    /// Returns the next events, or a comment if none come for a while; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let (seen, store, caller) = (self.seen, self.store, self.caller.clone());
            let look = move |engine: &Engine| {
                let changes = engine.changes(seen, BATCH)?;
                let gap = gap(seen, &changes);
                let wanted =
                    changes.iter().filter(|change| store.is_none_or(|it| it == change.store));
                let events: String =
                    wanted.filter_map(|change| event(engine, &caller, change)).collect();
                Ok::<_, Error>((changes.last().map(|last| last.sequence), gap + &events))
            };
            let (last, text) = self.app.pool().read(look).await.ok()?.ok()?;
            if let Some(last) = last {
                self.seen = last;
                if !text.is_empty() {
                    return Some(text.into());
                }
                continue;
            }
            tokio::select! {
                more = self.newest.wait_for(|newest| *newest > self.seen) => drop(more.ok()?),
                _ = self.is_stopping.wait_for(|is_stopping| *is_stopping) => return None,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    return Some(Bytes::from_static(b": still here\n\n"));
                }
            }
        }
    }
}

/// Tells that changes are missing because they are no longer kept.
fn gap(seen: Sequence, changes: &[Change]) -> String {
    let is_gap = changes.first().is_some_and(|first| first.sequence.0 > seen.0 + 1);
    if is_gap { "event: gap\ndata: {}\n\n".to_owned() } else { String::new() }
}

/// Writes a change as an event, if the caller may know of it.
fn event(engine: &Engine, caller: &Caller, change: &Change) -> Option<String> {
    if !may_know(engine, caller, change) {
        return None;
    }
    let mut body = ChangeBody::from(change);
    if let Event::Version(id) = change.event {
        let version = engine.version(change.store, id, View::Basic);
        body.memory_version = version.ok().as_ref().map(VersionBody::from);
    }
    let data = serde_json::to_string(&body).ok()?;
    Some(format!("id: {}\nevent: {}\ndata: {data}\n\n", body.sequence, body.event))
}

fn may_know(engine: &Engine, caller: &Caller, change: &Change) -> bool {
    if !caller.may_in(change.store, Need::Read) {
        return false;
    }
    match engine.store(change.store) {
        Ok(store) => store.workspace == caller.workspace,
        // It is deleted; only callers of the whole workspace hear of that.
        Err(_) => caller.require_workspace(Need::Read).is_ok(),
    }
}
