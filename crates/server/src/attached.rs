//! `/v1/sessions/{session}/resources`. Stores are attached when a session is created, as the contract
//! says; files and repositories are kept and listed, and mounted by nobody here.

use quipu_core::Error;
use quipu_core::model::Session;
use quipu_service::caller::Need;
use quipu_service::wire::{
    DeletedBody, Fields, ListBody, RESOURCES_MAX, SessionDetails, has_id, kept_resource, resources,
};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::no_such;
use super::cursor::Cursors;
use super::sessions::session;

/// How many resources a page has at most.
const PAGE_MAX: usize = 1_000;

fn all(call: &Call<'_>, session: &Session) -> Vec<Value> {
    resources(session, &SessionDetails::of(session), &call.settings().mount_root)
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let cursors = Cursors::new(call, &format!("resources of {}", session.id));
    let limit = call.query().limit_up_to(PAGE_MAX, PAGE_MAX)?;
    let start: usize = cursors.place(call.query())?.unwrap_or_default();
    let mut data: Vec<_> =
        all(call, &session).into_iter().skip(start).take(limit.saturating_add(1)).collect();
    let next_page = (data.len() > limit).then(|| cursors.encode(start + limit));
    data.truncate(limit);
    Ok(json(&ListBody::<Value> { data, next_page }))
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    Ok(json(&named(call, &session)?))
}

/// Adds a file. A store cannot be added to a session that exists.
pub(super) fn add(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let sent: Fields = call.json()?;
    match sent.get("type").and_then(Value::as_str) {
        Some("file") => {}
        Some("memory_store") => {
            return Err(Failure::invalid(
                "type: a memory store is attached when a session is created; create another one",
            ));
        }
        Some(_) | None => return Err(Failure::invalid("type: must be `file`")),
    }
    let resource = kept_resource(&sent, call.engine.now(), call.engine.random());
    let resource = resource.map_err(Failure::invalid)?;
    change(call, &session, |resources| {
        if resources.len() >= RESOURCES_MAX {
            let message = format!("a session names at most {RESOURCES_MAX} files and repositories");
            return Err(Error::new(quipu_core::ErrorKind::LimitReached, message));
        }
        resources.push(resource.clone());
        Ok(())
    })?;
    Ok(json(&resource))
}

/// Takes a new token for a repository, and keeps nothing of it.
pub(super) fn update(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let sent: Fields = call.json()?;
    if sent.keys().any(|name| name != "authorization_token") {
        return Err(Failure::invalid("only `authorization_token` can be updated"));
    }
    if !sent.get("authorization_token").is_some_and(Value::is_string) {
        return Err(Failure::invalid("authorization_token: is required"));
    }
    let resource = named(call, &session)?;
    if resource.get("type").and_then(Value::as_str) != Some("github_repository") {
        return Err(Failure::invalid("only a `github_repository` has a token"));
    }
    let (id, at) = (call.parameter("resource"), call.engine.now().to_string());
    let changed = change(call, &session, |resources| {
        let resource = resources.iter_mut().find(|it| has_id(it, id));
        if let Some(fields) = resource.and_then(Value::as_object_mut) {
            fields.insert("updated_at".to_owned(), Value::String(at.clone()));
        }
        Ok(())
    })?;
    Ok(json(&named(call, &changed)?))
}

pub(super) fn delete(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let id = call.parameter("resource");
    if named(call, &session)?.get("id").is_none() {
        return Err(Failure::invalid(
            "a memory store stays attached as long as its session; archive the session instead",
        ));
    }
    change(call, &session, |resources| {
        resources.retain(|it| !has_id(it, id));
        Ok(())
    })?;
    Ok(json(&DeletedBody::resource(id)))
}

fn named(call: &Call<'_>, session: &Session) -> Result<Value, Failure> {
    let id = call.parameter("resource");
    let found = all(call, session).into_iter().find(|resource| has_id(resource, id));
    found.ok_or_else(|| no_such("resource", id))
}

fn change(
    call: &Call<'_>,
    session: &Session,
    change: impl Fn(&mut Vec<Value>) -> Result<(), Error>,
) -> Result<Session, Failure> {
    let changed = call.engine.change_session_details(session.id, |session| {
        let mut details = SessionDetails::of(session);
        change(&mut details.resources)?;
        Ok(details.to_text())
    })?;
    Ok(changed)
}
