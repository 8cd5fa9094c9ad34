//! `/v1/sessions`, as far as memory needs it.

use axum::http::HeaderValue;
use quipu_core::backend::{Order, SessionQuery};
use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionToken, SessionUpdate};
use quipu_core::model::{
    Access, Definition, DefinitionId, Instructions, Metadata, Session, SessionId, StoreId, View,
};
use quipu_core::{Error, ErrorKind};
use quipu_service::caller::Need;
use quipu_service::wire::{
    CreateSession, DeletedBody, Fields, ListBody, RESOURCES_MAX, SessionBody, SessionDetails,
    UpdateSession, initial_event, kept_resource, overrides,
};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::{no_such, parse_id};
use super::choices::{FOREIGN_ID_CHARS_MAX, INITIAL_EVENTS_MAX, VAULT_IDS_MAX};
use super::cursor::Cursors;
use super::query::Query;
use super::recordings::new_events;

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
    if body.budget.is_some() {
        // Accepting and ignoring it would be a lie.
        return Err(Failure::invalid(
            "budget: this server runs no agents whose spending it could limit; leave it out",
        ));
    }
    let outcome_id = || format!("outc_{:032x}", call.engine.random());
    let events = body.initial_events.as_deref().unwrap_or_default();
    if events.len() > INITIAL_EVENTS_MAX {
        return Err(Failure::invalid(format!(
            "initial_events: must be at most {INITIAL_EVENTS_MAX}"
        )));
    }
    let events = new_events("initial_events", events, |event| initial_event(event, &outcome_id()))?;
    let mut details = details(call, &body)?;
    let mut attachments = Vec::new();
    for resource in body.resources.unwrap_or_default() {
        if resource.get("type").and_then(Value::as_str) == Some("memory_store") {
            attachments.push(attachment(call, &resource)?);
        } else {
            let kept = kept_resource(&resource, call.engine.now(), call.engine.random());
            details.resources.push(kept.map_err(|it| Failure::invalid(format!("resources.{it}")))?);
        }
    }
    let stores_max = call.engine.limits().stores_per_session_max;
    if attachments.len() > stores_max {
        return Err(Failure::invalid(format!(
            "resources cannot contain more than {stores_max} memory_store entries"
        )));
    }
    if details.resources.len() > RESOURCES_MAX {
        return Err(Failure::invalid(format!(
            "resources cannot contain more than {RESOURCES_MAX} files and repositories"
        )));
    }
    let new = NewSession {
        title: body.title.unwrap_or_default(),
        metadata: Metadata::new(body.metadata.unwrap_or_default()).map_err(Error::from)?,
        details: details.to_text(),
        attachments,
        token: SessionToken::Issue,
        key: call.caller.key(),
    };
    let (session, token) = call.engine.create_session_with_events(
        call.caller.workspace,
        &new,
        (&call.caller.actor, &events),
    )?;
    let mut response = shown(call, &session)?;
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

/// Returns what is stored and echoed. An agent or an environment that is kept here must not be archived;
/// one that is not may be kept by another service.
fn details(call: &Call<'_>, body: &CreateSession) -> Result<SessionDetails, Failure> {
    let vault_ids = body.vault_ids.clone().unwrap_or_default();
    if vault_ids.len() > VAULT_IDS_MAX {
        return Err(Failure::invalid(format!("vault_ids: must be at most {VAULT_IDS_MAX}")));
    }
    let mut details = agent(call, &body.agent)?;
    details.environment_id.clone_from(&body.environment_id);
    details.vault_ids = vault_ids;
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
    let environment = body.environment_id.parse().map(DefinitionId::Environment);
    if let Ok(id) = environment
        && let Some(environment) = kept(call, id)?
        && environment.archived_at.is_some()
    {
        return Err(Failure::invalid(format!("environment_id: `{id}` is archived")));
    }
    Ok(details)
}

/// Returns an agent or an environment of the caller's workspace, if it is kept here.
fn kept(call: &Call<'_>, id: DefinitionId) -> Result<Option<Definition>, Failure> {
    match call.engine.definition(id) {
        Ok(it) => Ok(Some(it).filter(|it| it.workspace == call.caller.workspace)),
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the agent of a request: an id, or an object with an id and maybe a version or overrides.
fn agent(call: &Call<'_>, sent: &Value) -> Result<SessionDetails, Failure> {
    let (id, fields) = match sent {
        Value::String(id) => (id.as_str(), None),
        Value::Object(fields) => {
            let id = fields.get("id").and_then(Value::as_str);
            (id.ok_or_else(|| Failure::invalid("agent.id: is required"))?, Some(fields))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(Failure::invalid("agent: must be an id, or an object with one"));
        }
    };
    let version = match fields.and_then(|fields| fields.get("version")) {
        None | Some(Value::Null) => None,
        Some(version) => {
            let number = version.as_u64().filter(|number| *number > 0);
            Some(number.ok_or_else(|| Failure::invalid("agent.version: must be at least 1"))?)
        }
    };
    let overrides = match fields {
        Some(fields) => overrides(fields).map_err(Failure::invalid)?,
        None => Fields::new(),
    };
    let mut details = SessionDetails {
        agent_id: id.to_owned(),
        agent_version: version.unwrap_or(1),
        model_id: "unknown".to_owned(),
        overrides,
        ..SessionDetails::default()
    };
    if let Ok(id) = id.parse().map(DefinitionId::Agent)
        && let Some(agent) = kept(call, id)?
    {
        if agent.archived_at.is_some() {
            return Err(Failure::invalid(format!("agent: `{id}` is archived")));
        }
        details.agent_version = match version {
            Some(version) => call.engine.definition_version(id, version)?.version,
            None => agent.version,
        };
    } else if let Some(Value::Object(model)) = details.overrides.remove("model") {
        // Nothing else is known of its model.
        let id = model.get("id").and_then(Value::as_str).unwrap_or_default();
        id.clone_into(&mut details.model_id);
    }
    Ok(details)
}

fn attachment(call: &Call<'_>, resource: &Fields) -> Result<NewAttachment, Failure> {
    let known = ["type", "memory_store_id", "access", "instructions"];
    if let Some(unknown) = resource.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::invalid(format!("resources: unknown field `{unknown}`")));
    }
    let text = |field: &str| match resource.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(Failure::invalid(format!("resources.{field}: must be a text"))),
    };
    let access = match text("access")? {
        None => Access::default(),
        Some(word) => {
            word.parse().map_err(|error| Failure::invalid(format!("resources.access: {error}")))?
        }
    };
    let need = match access {
        Access::ReadWrite => Need::Write,
        Access::ReadOnly => Need::Read,
    };
    let store = text("memory_store_id")?
        .ok_or_else(|| Failure::invalid("resources.memory_store_id: is required"))?;
    let instructions = text("instructions")?.unwrap_or_default();
    Ok(NewAttachment {
        store: call.store(store, need)?.id,
        access,
        instructions: Instructions::new(instructions).map_err(Error::from)?,
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
    let data = found.iter().map(|session| body(call, session)).collect::<Result<_, _>>()?;
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
    shown(call, &session(call, Need::Read)?)
}

pub(super) fn update(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let body: UpdateSession = call.body()?;
    for (field, is_set) in
        [("budget", body.budget.is_some()), ("vault_ids", body.vault_ids.is_some())]
    {
        if is_set {
            let message = format!("{field}: cannot be changed here; leave it out");
            return Err(Failure::invalid(message));
        }
    }
    if let Some(agent) = &body.agent {
        override_agent(call, &session, agent)?;
    }
    let update = SessionUpdate { title: body.title, metadata: body.metadata.unwrap_or_default() };
    shown(call, &call.engine.update_session(session.id, &update)?)
}

/// Gives a session other tools or servers than its agent has.
fn override_agent(call: &Call<'_>, session: &Session, sent: &Fields) -> Result<(), Failure> {
    let is_known = |name: &String| ["tools", "mcp_servers"].contains(&name.as_str());
    if let Some(unknown) = sent.keys().find(|name| !is_known(name)) {
        return Err(Failure::invalid(format!("agent.{unknown}: cannot be changed in a session")));
    }
    let sent = overrides(sent).map_err(Failure::invalid)?;
    call.engine.change_session_details(session.id, |session| {
        let mut details = SessionDetails::of(session);
        details.overrides.extend(sent.clone());
        Ok(details.to_text())
    })?;
    Ok(())
}

pub(super) fn archive(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    shown(call, &call.engine.archive_session(session.id)?)
}

pub(super) fn delete(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    call.engine.delete_session(session.id)?;
    Ok(json(&DeletedBody::session(session.id)))
}

fn shown(call: &Call<'_>, session: &Session) -> Answer {
    Ok(json(&body(call, session)?))
}

/// Returns a session with its agent as it was when the session was created: versions never change.
pub(super) fn body(call: &Call<'_>, session: &Session) -> Result<SessionBody, Failure> {
    let details = SessionDetails::of(session);
    let agent = match details.agent_id.parse().map(DefinitionId::Agent) {
        Ok(id) => match call.engine.definition_version(id, details.agent_version) {
            Ok(agent) => Some(agent).filter(|agent| agent.workspace == session.workspace),
            Err(error) if *error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        },
        Err(_) => None,
    };
    Ok(SessionBody::new(session, agent.as_ref(), &call.settings().mount_root))
}
