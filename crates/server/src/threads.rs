//! `/v1/sessions/{session}/threads`, as far as a recorder can answer: the primary thread is the session,
//! the others are those that a harness has reported.

use std::collections::HashMap;

use quipu_core::backend::{Order, SessionEventQuery, Span};
use quipu_core::model::{EventType, Session, Timestamp, View};
use quipu_service::caller::Need;
use quipu_service::wire::{
    ListBody, SessionBody, THREAD_FIELD, event_body, event_fields, event_thread,
};
use serde_json::{Value, json as object};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::no_such;
use super::choices::{EVENTS_PAGE_DEFAULT, EVENTS_PAGE_MAX};
use super::cursor::Cursors;
use super::recordings::searched;
use super::sessions::{body, session};

/// How many threads of a session are listed.
const THREADS_MAX: usize = 1_000;

/// How many reports are looked at, and how many at a time.
const REPORTS_MAX: usize = 10_000;
const REPORTS_PAGE: usize = 100;

/// The events that say what threads there are, and the status that each of them means.
const REPORTS: [(&str, &str); 5] = [
    ("session.thread_created", "idle"),
    ("session.thread_status_running", "running"),
    ("session.thread_status_idle", "idle"),
    ("session.thread_status_rescheduled", "rescheduling"),
    ("session.thread_status_terminated", "terminated"),
];

pub(super) fn list(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let statuses = call.query().all("statuses")?;
    let is_wanted = |thread: &Value| {
        let status = thread.get("status").and_then(Value::as_str).unwrap_or_default();
        statuses.is_empty() || statuses.contains(&status)
    };
    let cursors = Cursors::new(call, &format!("threads of {}", session.id));
    let limit = call.query().limit_up_to(THREADS_MAX, THREADS_MAX)?;
    let start: usize = cursors.place(call.query())?.unwrap_or_default();
    let threads = threads(call, &session)?.into_iter().filter(is_wanted);
    let mut data: Vec<_> = threads.skip(start).take(limit.saturating_add(1)).collect();
    let next_page = (data.len() > limit).then(|| cursors.encode(start + limit));
    data.truncate(limit);
    Ok(json(&ListBody::<Value> { data, next_page }))
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let id = call.parameter("thread");
    let found = threads(call, &session)?.into_iter().find(|thread| has_id(thread, id));
    found.map(|thread| json(&thread)).ok_or_else(|| no_such("thread", id))
}

pub(super) fn events(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let thread = existing(call, &session)?;
    let cursors = Cursors::new(call, &format!("events of {} {thread:?}", session.id));
    let query = SessionEventQuery {
        kinds: Vec::new(),
        recorded: Span::default(),
        order: Order::OldestFirst,
        after: cursors.place(call.query())?,
        limit: call.query().limit_up_to(EVENTS_PAGE_MAX, EVENTS_PAGE_DEFAULT)?,
        view: View::Full,
    };
    let page = searched(call.engine, session.id, query, &|event| event_thread(event) == thread)?;
    let data = page.items.iter().map(event_body).collect();
    let next_page = page.next.map(|number| cursors.encode(number));
    Ok(json(&ListBody::<Value> { data, next_page }))
}

/// Returns the thread that the path names, as events name it: the primary one is `None`.
pub(super) fn existing(call: &Call<'_>, session: &Session) -> Result<Option<String>, Failure> {
    let id = call.parameter("thread");
    if id == primary(session) {
        return Ok(None);
    }
    let is_known = threads(call, session)?.iter().any(|thread| has_id(thread, id));
    if is_known { Ok(Some(id.to_owned())) } else { Err(no_such("thread", id)) }
}

fn has_id(thread: &Value, id: &str) -> bool {
    thread.get("id").and_then(Value::as_str) == Some(id)
}

fn primary(session: &Session) -> String {
    session.id.to_string().replacen("sesn_", "sthr_", 1)
}

/// Returns all threads, the primary one first and the others as they were reported.
fn threads(call: &Call<'_>, session: &Session) -> Result<Vec<Value>, Failure> {
    let SessionBody { mut agent, status, created_at, updated_at, archived_at, .. } =
        body(call, session)?;
    agent.remove("multiagent");
    let primary = primary(session);
    let mut threads = vec![object!({
        "type": "session_thread", "id": primary, "session_id": session.id.to_string(),
        "agent": agent, "parent_thread_id": null, "status": status, "stats": null, "usage": null,
        "workflow_run_id": null, "created_at": created_at, "updated_at": updated_at,
        "archived_at": archived_at,
    })];
    for Reported { id, status, name, workflow_run_id, created_at, updated_at } in
        reported(call, session)?
    {
        let mut agent = agent.clone();
        agent.insert("name".to_owned(), name.unwrap_or_else(|| object!("unknown")));
        threads.push(object!({
            "type": "session_thread", "id": id, "session_id": session.id.to_string(),
            "agent": agent, "parent_thread_id": primary, "status": status, "stats": null,
            "usage": null, "workflow_run_id": workflow_run_id,
            "created_at": created_at.to_string(), "updated_at": updated_at.to_string(),
            "archived_at": null,
        }));
    }
    Ok(threads)
}

/// What is reported of a thread.
struct Reported {
    id: String,
    status: &'static str,
    name: Option<Value>,
    workflow_run_id: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Reads the reports, the newest first, and keeps of them what is said about each thread: reports come with
/// all that a harness has put into them, and there may be many.
///
/// Of very many, the last ones count. So the status of a thread is always right; one that was last heard of
/// long ago may be missing.
fn reported(call: &Call<'_>, session: &Session) -> Result<Vec<Reported>, Failure> {
    let kinds = REPORTS.iter().map(|(kind, _)| EventType::new(kind));
    let mut query = SessionEventQuery {
        kinds: kinds.filter_map(Result::ok).collect(),
        order: Order::NewestFirst,
        after: None,
        ..SessionEventQuery::after(0, REPORTS_PAGE)
    };
    let mut threads: Vec<Reported> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut read_count = 0;
    loop {
        let page = call.engine.session_events(session.id, &query)?;
        read_count += page.items.len();
        for event in page.items {
            let mut fields = event_fields(&event);
            let Some(Value::String(id)) = fields.remove(THREAD_FIELD) else { continue };
            let (name, run) = (fields.remove("agent_name"), fields.remove("workflow_run_id"));
            if let Some(thread) = places.get(&id).and_then(|place| threads.get_mut(*place)) {
                thread.created_at = event.at;
                thread.name = name.or(thread.name.take());
                thread.workflow_run_id = run.or(thread.workflow_run_id.take());
                continue;
            }
            if threads.len() >= THREADS_MAX - 1 {
                continue;
            }
            let is_meant = |(kind, _): &&(&str, &str)| *kind == event.kind.as_str();
            let status = REPORTS.iter().find(is_meant).map_or("idle", |(_, status)| *status);
            places.insert(id.clone(), threads.len());
            let (created_at, updated_at) = (event.at, event.at);
            let workflow_run_id = run;
            threads.push(Reported { id, status, name, workflow_run_id, created_at, updated_at });
        }
        match page.next {
            Some(next) if read_count < REPORTS_MAX => query.after = Some(next),
            Some(_) | None => break,
        }
    }
    threads.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    Ok(threads)
}
