//! `/v1/agents` and `/v1/environments`: kept with their versions, run by somebody else.
//!
//! They belong to the workspace. Every key of it may read them; to change them takes a key that may write
//! and is not limited to some stores, since everybody's sessions name them.

use quipu_core::Error;
use quipu_core::backend::DefinitionQuery;
use quipu_core::engine::{DefinitionContent, Principal};
use quipu_core::model::{AgentId, Definition, DefinitionId, DefinitionKind, EnvironmentId, View};
use quipu_service::caller::Need;
use quipu_service::wire::{
    DeletedBody, Fields, ListBody, agent_body, agent_content, environment_body, environment_content,
};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::{no_such, parse_id};
use super::cursor::Cursors;

/// The field by which the sender of a change says which version it has seen.
const VERSION: &str = "version";

pub(super) fn list_agents(call: &Call<'_>) -> Answer {
    list(call, DefinitionKind::Agent)
}

pub(super) fn list_environments(call: &Call<'_>) -> Answer {
    list(call, DefinitionKind::Environment)
}

pub(super) fn create_agent(call: &Call<'_>) -> Answer {
    create(call, DefinitionKind::Agent)
}

pub(super) fn create_environment(call: &Call<'_>) -> Answer {
    create(call, DefinitionKind::Environment)
}

pub(super) fn retrieve_agent(call: &Call<'_>) -> Answer {
    let agent = named(call, DefinitionKind::Agent, Need::Read)?;
    let Some(version) = call.query().parse::<u64>(VERSION)? else { return Ok(shown(&agent)) };
    let at = call.engine.definition_version(agent.id, version)?;
    Ok(json(&agent_body(&at, agent.archived_at)))
}

pub(super) fn retrieve_environment(call: &Call<'_>) -> Answer {
    Ok(shown(&named(call, DefinitionKind::Environment, Need::Read)?))
}

pub(super) fn versions(call: &Call<'_>) -> Answer {
    let agent = named(call, DefinitionKind::Agent, Need::Read)?;
    let cursors = Cursors::new(call, &format!("versions of {}", agent.id));
    let limit = call.query().limit(View::Basic)?;
    let page = call.engine.definition_versions(agent.id, cursors.place(call.query())?, limit)?;
    let data = page.items.iter().map(|it| agent_body(it, agent.archived_at)).collect();
    let next_page = page.next.map(|number| cursors.encode(number));
    Ok(json(&ListBody::<Value> { data, next_page }))
}

pub(super) fn update_agent(call: &Call<'_>) -> Answer {
    update(call, DefinitionKind::Agent)
}

pub(super) fn update_environment(call: &Call<'_>) -> Answer {
    update(call, DefinitionKind::Environment)
}

pub(super) fn archive_agent(call: &Call<'_>) -> Answer {
    archive(call, DefinitionKind::Agent)
}

pub(super) fn archive_environment(call: &Call<'_>) -> Answer {
    archive(call, DefinitionKind::Environment)
}

pub(super) fn delete_environment(call: &Call<'_>) -> Answer {
    let environment = named(call, DefinitionKind::Environment, Need::Write)?;
    call.engine.delete_definition(environment.id)?;
    Ok(json(&DeletedBody::environment(environment.id)))
}

fn list(call: &Call<'_>, kind: DefinitionKind) -> Answer {
    require(call, Need::Read)?;
    let cursors = Cursors::new(call, kind.as_str());
    let before = cursors.place::<String>(call.query())?;
    let page = call.engine.definitions(&DefinitionQuery {
        workspace: call.caller.workspace,
        kind,
        archived: call.query().archived()?,
        created: call.query().created()?,
        before: before.map(|id| definition_id(kind, &id)).transpose()?,
        limit: call.query().limit(View::Basic)?,
    })?;
    let data = page.items.iter().map(body).collect();
    let next_page = page.next.map(|id| cursors.encode(id));
    Ok(json(&ListBody::<Value> { data, next_page }))
}

fn create(call: &Call<'_>, kind: DefinitionKind) -> Answer {
    require(call, Need::Write)?;
    let sent: Fields = call.json()?;
    let content = content(kind, None, &sent)?;
    Ok(shown(&call.engine.create_definition(call.caller.workspace, kind, &content)?))
}

fn update(call: &Call<'_>, kind: DefinitionKind) -> Answer {
    let definition = named(call, kind, Need::Write)?;
    let mut sent: Fields = call.json()?;
    let expected = match (kind, sent.get(VERSION)) {
        (DefinitionKind::Agent, Some(version)) => {
            let number = version.as_u64().filter(|number| *number > 0);
            let number = number.ok_or_else(|| Failure::invalid("version: must be at least 1"))?;
            sent.remove(VERSION);
            Some(number)
        }
        (DefinitionKind::Agent | DefinitionKind::Environment, _) => None,
    };
    // Checked before anything is stored, so that the reason is in words of this door.
    content(kind, Some(&definition), &sent)?;
    let changed = call.engine.change_definition(definition.id, |before| {
        if let Some(expected) = expected.filter(|expected| *expected != before.version) {
            return Err(Error::new(
                quipu_core::ErrorKind::Ambiguous,
                format!("version: the agent is at version {}, not {expected}", before.version),
            )
            .with_hint("retrieve it again and repeat the change"));
        }
        fields_content(kind, Some(before), &sent).map_err(Error::invalid)
    })?;
    Ok(shown(&changed))
}

fn archive(call: &Call<'_>, kind: DefinitionKind) -> Answer {
    let definition = named(call, kind, Need::Write)?;
    Ok(shown(&call.engine.archive_definition(definition.id)?))
}

fn content(
    kind: DefinitionKind,
    before: Option<&Definition>,
    sent: &Fields,
) -> Result<DefinitionContent, Failure> {
    fields_content(kind, before, sent).map_err(Failure::invalid)
}

fn fields_content(
    kind: DefinitionKind,
    before: Option<&Definition>,
    sent: &Fields,
) -> Result<DefinitionContent, String> {
    match kind {
        DefinitionKind::Agent => agent_content(before, sent),
        DefinitionKind::Environment => environment_content(before, sent),
    }
}

/// Fails unless the caller has this permission on agents and environments.
fn require(call: &Call<'_>, need: Need) -> Result<(), Failure> {
    match (&call.caller.principal, need) {
        (Principal::Key(_), Need::Read) if call.caller.may(Need::Read) => Ok(()),
        (Principal::Session(_), Need::Read) => Err(call.caller.denied(Need::Read).into()),
        (Principal::Key(_) | Principal::Session(_), _) => {
            Ok(call.caller.require_workspace(need)?)
        }
    }
}

/// Returns the agent or the environment that the path names, if the caller has this permission.
fn named(call: &Call<'_>, kind: DefinitionKind, need: Need) -> Result<Definition, Failure> {
    require(call, need)?;
    let id = definition_id(kind, call.parameter(kind.as_str()))?;
    let definition = call.engine.definition(id)?;
    if definition.workspace == call.caller.workspace {
        Ok(definition)
    } else {
        Err(no_such(kind.as_str(), &id.to_string()))
    }
}

fn definition_id(kind: DefinitionKind, text: &str) -> Result<DefinitionId, Failure> {
    Ok(match kind {
        DefinitionKind::Agent => DefinitionId::Agent(parse_id::<AgentId>(text, kind.as_str())?),
        DefinitionKind::Environment => {
            DefinitionId::Environment(parse_id::<EnvironmentId>(text, kind.as_str())?)
        }
    })
}

fn body(definition: &Definition) -> Value {
    match definition.id.kind() {
        DefinitionKind::Agent => agent_body(definition, definition.archived_at),
        DefinitionKind::Environment => environment_body(definition),
    }
}

fn shown(definition: &Definition) -> axum::response::Response {
    json(&body(definition))
}
