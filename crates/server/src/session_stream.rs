//! The event stream of a session.
//!
//! A follower is woken when its session has moved and reads what is new from the engine, a page at a time
//! and only when the page before was taken. So nothing is buffered for a slow reader, and what was redacted
//! meanwhile is redacted for it too. Each read checks the credential again, and that it still sees the
//! session.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use quipu_core::backend::SessionEventQuery;
use quipu_core::engine::{Page, SessionState};
use quipu_core::model::{EventId, Id as _, SessionEvent, SessionId};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::caller::{Caller, Need};
use quipu_service::credential::Credential;
use quipu_service::wire::{event_body, event_thread};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::App;
use super::answer::{Answer, Failure};
use super::call::{self, Call, Kind};
use super::caller::{self, parse_id};
use super::choices::EVENTS_PAGE_MAX;
use super::guard::guarded;
use super::recordings::{page, too_many_followers};
use super::sessions::session;
use super::threads;

/// The idle time after which a comment is sent, so that both sides notice a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Which events a stream has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selected {
    All,
    /// Those of a thread; `None` is the primary one.
    Thread(Option<String>),
}

/// One open stream.
struct Follower {
    app: App,
    session: SessionId,
    selected: Selected,
    credential: Credential,
    /// The number of the last event that was delivered or left out.
    seen: u64,
    states: watch::Receiver<SessionState>,
    step: Step,
    stop: CancellationToken,
    keep_alive_at: Instant,
}

/// What a stream does next.
enum Step {
    Read,
    Wait,
    End,
}

/// What one read has found.
enum Found {
    Events(Page<SessionEvent, u64>, SessionState),
    Gone,
}

/// Streams the events of a session from now on; after `after` or the header `Last-Event-ID`, if there is
/// one.
pub(super) async fn stream(State(app): State<App>, request: Request) -> Answer {
    open(app, request, |_, _| Ok(Selected::All)).await
}

/// Streams the events of one thread.
pub(super) async fn stream_of_thread(State(app): State<App>, request: Request) -> Answer {
    open(app, request, |call, session| threads::existing(call, session).map(Selected::Thread)).await
}

async fn open(
    app: App,
    request: Request,
    select: fn(&Call<'_>, &quipu_core::model::Session) -> Result<Selected, Failure>,
) -> Answer {
    let mut credential = {
        let secret = caller::credential(request.headers())?;
        Credential::new(app.pool(), app.feed(), secret)
    };
    let feed = app.feed().clone();
    let beginning = move |call: &Call<'_>| {
        // Whether the caller sees the session is decided before it counts as a follower.
        let found = session(call, Need::Read)?;
        let id: SessionId = parse_id(call.parameter("session"), "session")?;
        let states = feed.follow_session(id).ok_or_else(too_many_followers)?;
        let seen = match call.last_event_id("after")? {
            Some(seen) => seen,
            None => call.engine.event_usage(id)?.newest,
        };
        Ok((call.caller.clone(), id, select(call, &found)?, states, seen))
    };
    let (caller, session, selected, states, seen) =
        call::answer(app.clone(), request, Kind::Read, beginning).await?;
    credential.expires_with(&caller.principal);
    let follower = Follower {
        stop: app.0.service.stop().clone(),
        app,
        session,
        selected,
        credential: credential.clone(),
        seen,
        states,
        step: Step::Read,
        keep_alive_at: Instant::now() + KEEP_ALIVE,
    };
    let events = Body::from_stream(stream::unfold(follower, async |mut follower| {
        let chunk = follower.next().await?;
        Some((Ok::<_, Infallible>(chunk), follower))
    }));
    let mut response = Response::new(guarded(events, credential));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

impl Follower {
    /// Returns the next events, or a comment if none come for a while; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let text = match self.step {
                Step::Read => self.read().await?,
                Step::Wait => self.wait().await?,
                Step::End => return None,
            };
            if !text.is_empty() {
                self.keep_alive_at = Instant::now() + KEEP_ALIVE;
                return Some(text);
            }
        }
    }

    /// Reads the next page. If that fails, the stream ends, and the client resumes after the last id that
    /// it received.
    async fn read(&mut self) -> Option<Bytes> {
        self.states.mark_unchanged();
        let (session, seen, credential) = (self.session, self.seen, self.credential.clone());
        let read = move |engine: &Knowledge| {
            // The events are read first: one that was recorded after a revocation is never delivered.
            let state = engine.session_states(&[session])?;
            let query = SessionEventQuery::after(seen, EVENTS_PAGE_MAX);
            let page = page(engine, session, query)?;
            let Some(principal) = credential.principal_in(engine)? else { return Ok(None) };
            let sees = match engine.session(session) {
                Ok(session) => Caller::new(principal).sees(&session),
                Err(error) if *error.kind() == ErrorKind::NotFound => return Ok(Some(Found::Gone)),
                Err(error) => return Err(error),
            };
            let state = state.first().copied().unwrap_or(SessionState::Gone);
            Ok::<_, Error>(sees.then_some(Found::Events(page, state)))
        };
        match self.app.pool().read(read).await.ok()?.ok()?? {
            Found::Gone => {
                self.step = Step::End;
                Some(self.deleted())
            }
            Found::Events(page, state) => {
                // An archived session takes no further events.
                self.step = match (page.next, state) {
                    (Some(_), _) => Step::Read,
                    (None, SessionState::Open(_)) => Step::Wait,
                    (None, SessionState::Archived(_) | SessionState::Gone) => Step::End,
                };
                if let Some(last) = page.items.last() {
                    self.seen = last.number;
                }
                let selected = page.items.iter().filter(|event| self.selected.contains(event));
                Some(selected.map(text).collect::<String>().into())
            }
        }
    }

    /// Returns the last event of a session that was deleted.
    fn deleted(&self) -> Bytes {
        let now = self.app.pool().now();
        let id = EventId::new(now, self.app.pool().random());
        let event = json!({
            "id": id.to_string(), "type": "session.deleted", "processed_at": now.to_string(),
        });
        format!("event: message\ndata: {event}\n\n").into()
    }

    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            changed = self.states.changed() => changed.ok()?,
            () = self.stop.cancelled() => return None,
            () = tokio::time::sleep_until(self.keep_alive_at) => {
                return Some(Bytes::from_static(b": still here\n\n"));
            }
        }
        self.step = Step::Read;
        Some(Bytes::new())
    }
}

impl Selected {
    fn contains(&self, event: &SessionEvent) -> bool {
        match self {
            Self::All => true,
            Self::Thread(thread) => event_thread(event) == *thread,
        }
    }
}

/// Serializes an event. Its name is `message`, whatever its type: SDKs of all ages deliver that.
fn text(event: &SessionEvent) -> String {
    format!("id: {}\nevent: message\ndata: {}\n\n", event.number, event_body(event))
}
