//! The events of sessions: recorded as they are sent and reported, and read back in order.
//!
//! Quipu answers none of them: who runs the agent reads what was sent and reports what happened. Events are
//! seen by whoever sees the session. They are recorded by keys that may write with it, and by the session
//! itself.

use quipu_core::backend::{Order, SessionEventQuery};
use quipu_core::engine::{EVENTS_PER_CALL_MAX, NewSessionEvent, Page, Principal};
use quipu_core::model::{EventType, Session, SessionEvent, SessionId, View};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::caller::Need;
use quipu_service::feed::FOLLOWERS_PER_SESSION_MAX;
use quipu_service::wire::{
    ListBody, RecordedEventBody, SendEvents, event_body, event_holds, reported_event, sent_event,
};
use serde_json::{Value, json as object};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::choices::{EVENTS_PAGE_DEFAULT, EVENTS_PAGE_MAX};
use super::cursor::Cursors;
use super::sessions::session;

/// How many events are read in the first query of a page, and at most in a later one, when it is known how
/// long they are.
const FIRST_BATCH: usize = 4;
const BATCH_MAX: usize = 32;

/// When a page has enough bytes to be sent without more.
const PAGE_SIZE_BYTES: u64 = 1024 * 1024;

/// How many events one request searches.
const SEARCHED_MAX: usize = 10_000;

/// Returns the session that the path names, if the caller may record its events.
fn recordable(call: &Call<'_>) -> Result<Session, Failure> {
    let found = session(call, Need::Read)?;
    let may = match &call.caller.principal {
        Principal::Key(_) => call.caller.may(Need::Write),
        Principal::Session(own) => own.id == found.id,
    };
    if may { Ok(found) } else { Err(call.caller.denied(Need::Write).into()) }
}

/// Records what an app sends, and answers with it.
pub(super) fn send(call: &Call<'_>) -> Answer {
    let outcome_id = || format!("outc_{:032x}", call.engine.random());
    let recorded = record(call, |event| sent_event(event, &outcome_id()))?;
    Ok(json(&object!({"data": recorded.iter().map(event_body).collect::<Vec<_>>()})))
}

/// Records what a harness reports, of any type.
pub(super) fn report(call: &Call<'_>) -> Answer {
    let recorded = record(call, reported_event)?;
    let data = recorded.iter().map(RecordedEventBody::from).collect();
    Ok(json(&ListBody::<RecordedEventBody>::complete(data)))
}

fn record(
    call: &Call<'_>,
    read: impl Fn(&Value) -> Result<NewSessionEvent, String>,
) -> Result<Vec<SessionEvent>, Failure> {
    let session = recordable(call)?;
    let SendEvents { events } = call.body()?;
    let events = new_events("events", &events, read)?;
    Ok(call.engine.record_events(&call.caller.actor, session.id, &events)?)
}

/// Reads events of a request, and names the one that is wrong.
pub(super) fn new_events(
    field: &str,
    events: &[Value],
    read: impl Fn(&Value) -> Result<NewSessionEvent, String>,
) -> Result<Vec<NewSessionEvent>, Failure> {
    if events.len() > EVENTS_PER_CALL_MAX {
        return Err(Failure::invalid(format!("{field}: must be at most {EVENTS_PER_CALL_MAX}")));
    }
    let numbered = events.iter().enumerate();
    numbered
        .map(|(at, event)| {
            read(event).map_err(|reason| Failure::invalid(format!("{field}.{at}.{reason}")))
        })
        .collect()
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let cursors = Cursors::new(call, &format!("events of {}", session.id));
    let page = page(call.engine, session.id, query(call, &cursors)?)?;
    let data = page.items.iter().map(event_body).collect();
    let next_page = page.next.map(|number| cursors.encode(number));
    Ok(json(&ListBody::<Value> { data, next_page }))
}

/// Lists events with what Quipu knows of them; `grep` searches their texts, which nothing else does.
pub(super) fn recorded(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let cursors = Cursors::new(call, &format!("recorded events of {}", session.id));
    let query = query(call, &cursors)?;
    let page = match call.query().get("grep")? {
        None => page(call.engine, session.id, query)?,
        Some(text) => {
            let found = searched(call.engine, session.id, query, &|event| event_holds(event, text));
            found?
        }
    };
    let data = page.items.iter().map(RecordedEventBody::from).collect();
    let next_page = page.next.map(|number| cursors.encode(number));
    Ok(json(&ListBody::<RecordedEventBody> { data, next_page }))
}

fn query(call: &Call<'_>, cursors: &Cursors) -> Result<SessionEventQuery, Failure> {
    let order = match call.query().get("order")? {
        None | Some("asc") => Order::OldestFirst,
        Some("desc") => Order::NewestFirst,
        Some(_) => return Err(Failure::invalid("order: must be one of: asc, desc")),
    };
    let kinds = call.query().all("types")?.into_iter().map(EventType::new);
    let kinds = kinds.collect::<Result<Vec<_>, _>>();
    Ok(SessionEventQuery {
        kinds: kinds.map_err(|error| Failure::invalid(format!("types: {error}")))?,
        recorded: call.query().created()?,
        order,
        after: match cursors.place(call.query())? {
            Some(place) => Some(place),
            None => call.query().parse("after")?,
        },
        limit: call.query().limit_up_to(EVENTS_PAGE_MAX, EVENTS_PAGE_DEFAULT)?,
        view: View::Full,
    })
}

/// Reads a page of events that ends early when it has enough bytes.
pub(super) fn page(
    engine: &Knowledge,
    session: SessionId,
    query: SessionEventQuery,
) -> Result<Page<SessionEvent, u64>, Error> {
    searched(engine, session, query, &|_| true)
}

/// Reads a page of the events that `wants` wants. It ends early when enough were looked at.
pub(super) fn searched(
    engine: &Knowledge,
    session: SessionId,
    mut query: SessionEventQuery,
    wants: &dyn Fn(&SessionEvent) -> bool,
) -> Result<Page<SessionEvent, u64>, Error> {
    let (wanted_count, mut searched_count, mut read_bytes) = (query.limit, 0, 0);
    let (mut batch, mut size_bytes) = (FIRST_BATCH, 0);
    let mut items = Vec::new();
    loop {
        query.limit = batch.min(wanted_count - items.len()).max(1);
        let page = engine.session_events(session, &query)?;
        searched_count += page.items.len();
        for event in page.items {
            read_bytes += event.size_bytes;
            if wants(&event) {
                size_bytes += event.size_bytes;
                items.push(event);
            }
        }
        let mean_bytes = read_bytes / u64::try_from(searched_count).unwrap_or(1).max(1);
        let fitting = PAGE_SIZE_BYTES.saturating_sub(size_bytes) / mean_bytes.max(1);
        batch = usize::try_from(fitting).unwrap_or(BATCH_MAX).clamp(1, BATCH_MAX);
        let is_full = items.len() >= wanted_count
            || size_bytes >= PAGE_SIZE_BYTES
            || searched_count >= SEARCHED_MAX;
        match page.next {
            Some(next) if !is_full => query.after = Some(next),
            next => return Ok(Page { items, next }),
        }
    }
}

/// Returns the error for a session with too many followers.
pub(super) fn too_many_followers() -> Failure {
    Failure::from(Error::new(
        ErrorKind::LimitReached,
        format!("the session has reached its limit of {FOLLOWERS_PER_SESSION_MAX} followers"),
    ))
}
