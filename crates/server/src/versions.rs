//! `/v1/memory_stores/{store}/memory_versions`.

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::model::{Actor, KeyId, MemoryId, PrincipalName, SessionId, VersionId, View};
use quipu_service::caller::Need;
use quipu_service::wire::{ListBody, VersionBody};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::parse_id;
use super::cursor::Cursors;
use super::query::Query;

const LIST: &str = "versions";

pub(super) fn list(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Read)?;
    let view = call.query().view(View::Basic)?;
    let cursors = Cursors::new(call, LIST);
    let before = cursors.place(call.query())?;
    let limit = call.query().limit(view)?;
    let Some(filter) = filter(call.query())? else {
        return Ok(json(&ListBody::<VersionBody>::complete(Vec::new())));
    };
    let page = call.engine.versions(store.id, &VersionQuery { filter, before, limit, view })?;
    Ok(json(&ListBody {
        data: page.items.iter().map(VersionBody::from).collect(),
        next_page: page.next.map(|id| cursors.encode(id)),
    }))
}

/// Parses the filters; `None` if one of them has a malformed id, which nothing can match.
fn filter(query: &Query) -> Result<Option<VersionFilter>, Failure> {
    let (operation, created) = (query.parse("operation")?, query.created()?);
    let memory = match query.get("memory_id")?.map(str::parse::<MemoryId>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Ok(None),
    };
    let session =
        query.get("session_id")?.map(|id| id.parse::<SessionId>().map(Actor::Session).ok());
    let key = query.get("api_key_id")?.map(|id| id.parse::<KeyId>().map(Actor::ApiKey).ok());
    let service = query.get("service_account_id")?.map(|id| {
        let name = id.strip_prefix("svac_")?;
        PrincipalName::parse(name).map(Actor::ServiceAccount).ok()
    });
    let actors: Option<Vec<Actor>> = [session, key, service].into_iter().flatten().collect();
    let Some(actors) = actors else { return Ok(None) };
    Ok(Some(VersionFilter { memory, path: None, operation, actors, created }))
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Read)?;
    let view = call.query().view(View::Full)?;
    let id: VersionId = parse_id(call.parameter("version"), "memory version")?;
    Ok(json(&VersionBody::from(&call.engine.version(store.id, id, view)?)))
}

pub(super) fn redact(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let id: VersionId = parse_id(call.parameter("version"), "memory version")?;
    let redacted = call.engine.redact(&call.caller.actor, store.id, &[id])?;
    let version = redacted.first().expect("one version was redacted");
    Ok(json(&VersionBody::from(version)))
}
