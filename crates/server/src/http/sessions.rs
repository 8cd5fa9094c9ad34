//! `/v1/sessions`, as far as memory needs them.

use axum::http::HeaderValue;
use axum::response::Response;
use quipu_core::Error;
use quipu_core::backend::{Order, SessionQuery};
use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionUpdate, TokenWish};
use quipu_core::model::{Access, Instructions, Metadata, Session, SessionId, StoreId, View};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::{Need, no_such, parse_id};
use super::cursor;
use crate::wire::{
    CreateSession, DeletedBody, ListBody, Object, ResourceParam, SessionBody, SessionDetails,
    UpdateSession,
};

const LIST: &str = "sessions";

/// The token is in no shape of the contract, so it comes in a header of the answer.
pub(super) const TOKEN_HEADER: &str = "quipu-session-token";

pub(super) fn create(call: &Call<'_>) -> Answer {
    if matches!(call.caller.principal, Principal::Session(_)) || !call.caller.may(Need::Write) {
        return Err(call.caller.denied(Need::Manage));
    }
    let body: CreateSession = call.body()?;
    let resources = body.resources.unwrap_or_default();
    let stores_max = call.engine.limits().stores_per_session_max;
    if resources.len() > stores_max {
        return Err(Failure::invalid(format!(
            "resources cannot contain more than {stores_max} memory_store entries"
        )));
    }
    let attachments = resources
        .into_iter()
        .map(|Object(resource)| attachment(call, resource))
        .collect::<Result<_, _>>()?;
    let new = NewSession {
        title: body.title.unwrap_or_default(),
        metadata: Metadata::new(body.metadata.unwrap_or_default()).map_err(Error::from)?,
        details: SessionDetails::new(&body.agent, &body.environment_id).to_text(),
        attachments,
        token: TokenWish::Issue,
    };
    let (session, token) = call.engine.create_session(call.caller.workspace, &new)?;
    let mut response = shown(call, &session);
    let token = token.and_then(|token| HeaderValue::from_str(token.reveal()).ok());
    if let Some(mut token) = token {
        token.set_sensitive(true);
        response.headers_mut().insert(TOKEN_HEADER, token);
    }
    Ok(response)
}

fn attachment(call: &Call<'_>, resource: ResourceParam) -> Result<NewAttachment, Failure> {
    let ResourceParam::MemoryStore { memory_store_id, access, instructions } = resource;
    let access = match access {
        None => Access::default(),
        Some(word) => {
            word.parse().map_err(|error| Failure::invalid(format!("resources.access: {error}")))?
        }
    };
    let need = match access {
        Access::ReadWrite => Need::Write,
        Access::ReadOnly => Need::Read,
    };
    Ok(NewAttachment {
        store: call.store(&memory_store_id, need)?.id,
        access,
        instructions: Instructions::new(instructions.unwrap_or_default()).map_err(Error::from)?,
    })
}

/// Returns the session that the path names, of the caller's workspace; a session sees only itself.
pub(super) fn session(call: &Call<'_>, need: Need) -> Result<Session, Failure> {
    let id: SessionId = parse_id(call.parameter("session"), "session")?;
    let session = call.engine.session(id)?;
    let is_own = match &call.caller.principal {
        Principal::Key(_) => call.caller.may(need),
        Principal::Session(own) => own.id == id && need == Need::Read,
    };
    if session.workspace != call.caller.workspace {
        return Err(no_such("session", &id.to_string()));
    }
    if is_own { Ok(session) } else { Err(call.caller.denied(need)) }
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    if matches!(call.caller.principal, Principal::Session(_)) {
        return Err(call.caller.denied(Need::Manage));
    }
    let limit = call.query().limit(View::Basic)?;
    let order = match call.query().get("order") {
        None | Some("desc") => Order::NewestFirst,
        Some("asc") => Order::OldestFirst,
        Some(_) => return Err(Failure::invalid("order: must be one of: asc, desc")),
    };
    let mut query = SessionQuery {
        workspace: call.caller.workspace,
        store: None,
        archived: call.query().archived()?,
        created: call.query().created()?,
        order,
        after: cursor::decode(LIST, call.query().get("page"))?,
        limit,
    };
    if let Some(store) = call.query().get("memory_store_id") {
        match store.parse::<StoreId>() {
            Ok(id) => query.store = Some(id),
            Err(_) => return Ok(json(&ListBody::<SessionBody>::complete(Vec::new()))),
        }
    }
    let mut data = Vec::new();
    let next = loop {
        let page = call.engine.sessions(&query)?;
        let wanted = page.items.iter().filter(|session| is_wanted(call, session));
        let root = &call.settings().mount_root;
        data.extend(wanted.map(|session| SessionBody::new(session, root)));
        query.after = page.next;
        query.limit = limit - data.len().min(limit);
        if page.next.is_none() || query.limit == 0 {
            break page.next;
        }
    };
    Ok(json(&ListBody { data, next_page: next.map(|id| cursor::encode(LIST, id)) }))
}

/// Applies the filters that look at what the engine does not know.
fn is_wanted(call: &Call<'_>, session: &Session) -> bool {
    let details = SessionDetails::of(session);
    let status = if session.archived_at.is_some() { "terminated" } else { "idle" };
    let statuses = call.query().all("statuses");
    let version = details.agent_version.to_string();
    // A version means nothing without the agent that it is a version of.
    call.query().get("agent_id").is_none_or(|id| {
        id == details.agent_id
            && call.query().get("agent_version").is_none_or(|wanted| wanted == version)
    }) && call.query().get("deployment_id").is_none()
        && (statuses.is_empty() || statuses.contains(&status))
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    Ok(shown(call, &session(call, Need::Read)?))
}

pub(super) fn update(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let body: UpdateSession = call.body()?;
    let update = SessionUpdate { title: body.title, metadata: body.metadata.unwrap_or_default() };
    Ok(shown(call, &call.engine.update_session(session.id, &update)?))
}

pub(super) fn archive(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    Ok(shown(call, &call.engine.archive_session(session.id)?))
}

pub(super) fn delete(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    call.engine.delete_session(session.id)?;
    Ok(json(&DeletedBody::session(session.id)))
}

fn shown(call: &Call<'_>, session: &Session) -> Response {
    json(&SessionBody::new(session, &call.settings().mount_root))
}
