//! `/v1/sessions`, as far as memory needs it.

use axum::http::HeaderValue;
use axum::response::Response;
use quipu_core::Error;
use quipu_core::backend::{Order, SessionQuery};
use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionToken, SessionUpdate};
use quipu_core::model::{Access, Instructions, Metadata, Session, SessionId, StoreId, View};
use quipu_service::caller::Need;
use quipu_service::wire::{
    CreateSession, DeletedBody, ListBody, Object, ResourceParam, SessionBody, SessionDetails,
    UpdateSession,
};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::{no_such, parse_id};
use super::choices::{FOREIGN_ID_CHARS_MAX, VAULT_IDS_MAX};
use super::cursor::Cursors;
use super::query::Query;

const LIST: &str = "sessions";

/// No shape of the contract has a token, so it is in a header of the answer.
pub(super) const TOKEN_HEADER: &str = "quipu-session-token";
/// When the token expires.
const TOKEN_EXPIRY_HEADER: &str = "quipu-session-token-expires-at";

/// How many sessions are read in one query.
const SCAN: usize = 200;

pub(super) fn create(call: &Call<'_>) -> Answer {
    if matches!(call.caller.principal, Principal::Session(_)) || !call.caller.may(Need::Write) {
        return Err(call.caller.denied(Need::Manage).into());
    }
    let body: CreateSession = call.body()?;
    refuse_work_for_agents(&body)?;
    let details = details(&body)?;
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
        details: details.to_text(),
        attachments,
        token: SessionToken::Issue,
        key: call.caller.key(),
    };
    let (session, token) = call.engine.create_session(call.caller.workspace, &new)?;
    let mut response = shown(call, &session);
    let token = token.and_then(|token| HeaderValue::from_str(token.reveal()).ok());
    if let Some(mut token) = token {
        token.set_sensitive(true);
        response.headers_mut().insert(TOKEN_HEADER, token);
    }
    let expires_at = session.token_expires_at.map(|at| HeaderValue::from_str(&at.to_string()));
    if let Some(Ok(expires_at)) = expires_at {
        response.headers_mut().insert(TOKEN_EXPIRY_HEADER, expires_at);
    }
    Ok(response)
}

/// Rejects what only a host of agents could carry out; accepting and ignoring it would be a lie.
fn refuse_work_for_agents(body: &CreateSession) -> Result<(), Failure> {
    if body.initial_events.as_ref().is_some_and(|events| !events.is_empty()) {
        return Err(Failure::invalid(
            "initial_events: this server runs no agents that could process them; leave them out",
        ));
    }
    if body.budget.is_some() {
        return Err(Failure::invalid(
            "budget: this server runs no agents whose spending it could limit; leave it out",
        ));
    }
    Ok(())
}

/// Returns what is stored and echoed.
fn details(body: &CreateSession) -> Result<SessionDetails, Failure> {
    let vault_ids = body.vault_ids.clone().unwrap_or_default();
    if vault_ids.len() > VAULT_IDS_MAX {
        return Err(Failure::invalid(format!("vault_ids: must be at most {VAULT_IDS_MAX}")));
    }
    let details = SessionDetails::new(&body.agent, &body.environment_id, vault_ids);
    let ids = [
        ("agent.id", &details.agent_id),
        ("agent.model", &details.model_id),
        ("environment_id", &details.environment_id),
    ];
    let vaults = details.vault_ids.iter().map(|id| ("vault_ids", id));
    for (field, id) in ids.into_iter().chain(vaults) {
        if id.chars().nth(FOREIGN_ID_CHARS_MAX).is_some() {
            return Err(Failure::invalid(format!(
                "{field}: must have at most {FOREIGN_ID_CHARS_MAX} characters"
            )));
        }
    }
    Ok(details)
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

/// Returns the session that the path names, if the caller has this permission on it. One that the
/// caller may not see is reported as missing: it would name stores and instructions of others.
pub(super) fn session(call: &Call<'_>, need: Need) -> Result<Session, Failure> {
    let id: SessionId = parse_id(call.parameter("session"), "session")?;
    let session = call.engine.session(id)?;
    if !call.caller.sees(&session) {
        return Err(no_such("session", &id.to_string()));
    }
    if call.caller.may_with(need) { Ok(session) } else { Err(call.caller.denied(need).into()) }
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let Principal::Key(key) = &call.caller.principal else {
        return Err(call.caller.denied(Need::Manage).into());
    };
    let limit = call.query().limit(View::Basic)?;
    let order = match call.query().get("order")? {
        None | Some("desc") => Order::NewestFirst,
        Some("asc") => Order::OldestFirst,
        Some(_) => return Err(Failure::invalid("order: must be one of: asc, desc")),
    };
    let filter = DetailFilter::new(call.query())?;
    let cursors = Cursors::new(call, LIST);
    let mut query = SessionQuery {
        workspace: call.caller.workspace,
        store: None,
        archived: call.query().archived()?,
        created: call.query().created()?,
        viewer: Some(key.clone()),
        order,
        after: cursors.place(call.query())?,
        limit: SCAN,
    };
    if let Some(store) = call.query().get("memory_store_id")? {
        match store.parse::<StoreId>() {
            Ok(id) => query.store = Some(id),
            Err(_) => return Ok(json(&ListBody::<SessionBody>::complete(Vec::new()))),
        }
    }
    // One more than the page holds, so that the last page has no cursor.
    let mut found = Vec::new();
    while found.len() <= limit {
        let page = call.engine.sessions(&query)?;
        found.extend(page.items.into_iter().filter(|session| filter.accepts(session)));
        query.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|session| cursors.encode(session.id));
    let root = &call.settings().mount_root;
    let data = found.iter().map(|session| SessionBody::new(session, root)).collect();
    Ok(json(&ListBody { data, next_page: next }))
}

/// The filters on fields that the engine does not know.
struct DetailFilter<'q> {
    agent_id: Option<&'q str>,
    agent_version: Option<&'q str>,
    deployment_id: Option<&'q str>,
    statuses: Vec<&'q str>,
}

impl<'q> DetailFilter<'q> {
    fn new(query: &'q Query) -> Result<Self, Failure> {
        Ok(Self {
            agent_id: query.get("agent_id")?,
            agent_version: query.get("agent_version")?,
            deployment_id: query.get("deployment_id")?,
            statuses: query.all("statuses")?,
        })
    }

    fn accepts(&self, session: &Session) -> bool {
        let details = SessionDetails::of(session);
        let status = if session.archived_at.is_some() { "terminated" } else { "idle" };
        let version = details.agent_version.to_string();
        // `agent_version` is meaningless without `agent_id`.
        self.agent_id.is_none_or(|id| {
            id == details.agent_id && self.agent_version.is_none_or(|wanted| wanted == version)
        }) && self.deployment_id.is_none()
            && (self.statuses.is_empty() || self.statuses.contains(&status))
    }
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    Ok(shown(call, &session(call, Need::Read)?))
}

pub(super) fn update(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let body: UpdateSession = call.body()?;
    for (field, is_set) in [
        ("agent", body.agent.is_some()),
        ("budget", body.budget.is_some()),
        ("vault_ids", body.vault_ids.is_some()),
    ] {
        if is_set {
            let message = format!("{field}: cannot be changed here; leave it out");
            return Err(Failure::invalid(message));
        }
    }
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
