//! Quipu's own routes below `/quipu`: the memory tool, store policies, prompts, tokens.

use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionToken, StoreUpdate};
use quipu_core::model::{Access, Instructions, Role, Store, StorePolicy, VersionId};
use quipu_service::caller::Need;
use quipu_service::prompt::{Prompt, PromptStore};
use quipu_service::tool::{self, MEMORY_STORE, MemoryTool, Strings, ToolSettings};
use quipu_service::wire::{
    ListBody, PolicyBody, RedactVersions, StartToolSession, TokenBody, ToolSessionBody,
    UpdatePolicy, VersionBody,
};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::call::{Call, Kind};
use super::caller::parse_id;
use super::redactions::REDACTED_MAX;
use super::sessions::session;

/// Returns whether a command of the memory tool reads or writes.
pub(super) fn tool_kind(body: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Input {
        command: String,
    }
    match serde_json::from_slice(body) {
        Ok(Input { command }) if tool::writes(&command) => Kind::Write,
        // A malformed command is rejected without a write.
        Ok(_) | Err(_) => Kind::Read,
    }
}

/// Carries out one command of the memory tool; the body is the tool's input.
pub(super) fn tool(call: &Call<'_>) -> Answer {
    let store = named_store(call)?;
    let strings = match call.query().get("strings")? {
        None | Some("doc") => Strings::Doc,
        Some("python") => Strings::Python,
        Some(_) => return Err(Failure::invalid("strings: must be one of: doc, python")),
    };
    let wanted = call.query().parse("access")?.unwrap_or(Access::ReadWrite);
    let may_write = call.caller.may_in(store.id, Need::Write);
    let access = if may_write { wanted } else { Access::ReadOnly };
    let settings = ToolSettings { strings, access, ..call.settings().tool };
    let input: Value = call.json()?;
    let (engine, actor) = (call.engine.clone(), call.caller.actor.clone());
    Ok(json(&MemoryTool::new(engine, store.id, actor, settings).call(&input)))
}

/// Starts a run of the memory tool: a session with a token that writes to this store and to no
/// other. A caller that is a session already, or that may not write, keeps its credential.
pub(super) fn start_tool_session(call: &Call<'_>) -> Answer {
    let store = named_store(call)?;
    let body: StartToolSession = call.body()?;
    if let Principal::Session(session) = &call.caller.principal {
        return Ok(json(&ToolSessionBody {
            session_id: Some(session.id.to_string()),
            token: None,
            token_expires_at: session.token_expires_at.map(|at| at.to_string()),
        }));
    }
    if store.archived_at.is_some() || !call.caller.may_in(store.id, Need::Write) {
        return Ok(json(&ToolSessionBody::default()));
    }
    let attachment = NewAttachment {
        store: store.id,
        access: Access::ReadWrite,
        instructions: Instructions::default(),
    };
    let title = body.title.unwrap_or_else(|| "memory tool".to_owned());
    let new = NewSession {
        key: call.caller.key(),
        ..NewSession::titled(&title, vec![attachment], SessionToken::Issue)
    };
    let (session, token) = call.engine.create_session(call.caller.workspace, &new)?;
    Ok(json(&ToolSessionBody {
        session_id: Some(session.id.to_string()),
        token: token.map(|token| token.reveal().to_owned()),
        token_expires_at: session.token_expires_at.map(|at| at.to_string()),
    }))
}

/// Returns the store that the path names, if the caller may read it.
///
/// The memory tool's own store is created at its first use by a caller that may create stores. Any
/// other missing name may be a typo, so nothing is created for it.
fn named_store(call: &Call<'_>) -> Result<Store, Failure> {
    let name = call.parameter("store");
    if name == MEMORY_STORE && call.caller.require_workspace(Need::Manage).is_ok() {
        return Ok(call.engine.find_or_create_store(call.caller.workspace, name)?);
    }
    call.readable_store()
}

/// Returns the policy of a store.
pub(super) fn policy(call: &Call<'_>) -> Answer {
    Ok(json(&PolicyBody::from(call.named_store(Need::Read)?.policy)))
}

/// Changes the policy of a store.
pub(super) fn set_policy(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let body: UpdatePolicy = call.body()?;
    let secrets = body.secrets.as_deref().map(str::parse).transpose();
    let forgotten = body.forgotten.as_deref().map(str::parse).transpose();
    let writers = body.writers.as_deref().map(str::parse).transpose();
    let policy = StorePolicy {
        writers: writers
            .map_err(|error| Failure::invalid(format!("writers: {error}")))?
            .unwrap_or(store.policy.writers),
        secrets: secrets
            .map_err(|error| Failure::invalid(format!("secrets: {error}")))?
            .unwrap_or(store.policy.secrets),
        forgotten: forgotten
            .map_err(|error| Failure::invalid(format!("forgotten: {error}")))?
            .unwrap_or(store.policy.forgotten),
        expire_after_days: match body.expire_after_days {
            Some(0) => None,
            Some(days) => Some(days),
            None => store.policy.expire_after_days,
        },
    };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    let updated = call.engine.update_store(store.id, &update)?;
    Ok(json(&PolicyBody::from(updated.policy)))
}

/// Redacts several versions, all or none. The files are scanned once for all of them.
pub(super) fn redact(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let body: RedactVersions = call.body()?;
    let ids = &body.memory_version_ids;
    if ids.is_empty() || ids.len() > REDACTED_MAX {
        let message = format!("`memory_version_ids` names 1 to {REDACTED_MAX} versions");
        return Err(Failure::invalid(message));
    }
    let ids = ids.iter().map(|id| parse_id::<VersionId>(id, "memory version"));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let redacted = call.engine.redact(&call.caller.actor, store.id, &ids)?;
    Ok(json(&ListBody::complete(redacted.iter().map(VersionBody::from).collect())))
}

/// Returns the prompt that explains to a session's agent how to use its memory.
pub(super) fn prompt(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let root = &call.settings().mount_root;
    let stores =
        session.attachments.iter().map(|store| PromptStore::mounted(store, root)).collect();
    let topic = call.query().get("topic")?.map(str::to_owned);
    Ok(json(&serde_json::json!({ "prompt": Prompt { stores, topic }.text() })))
}

/// Issues a new token for a session and revokes the old one. The token acts as the session, so only
/// the key that created the session and admins may have it.
pub(super) fn new_token(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Write)?;
    let is_allowed = match &call.caller.principal {
        Principal::Key(key) => key.role == Role::Admin || session.key == Some(key.id),
        Principal::Session(_) => false,
    };
    if !is_allowed {
        return Err(Failure::forbidden(
            "the token of a session is renewed by the key that made the session or by an admin key",
        ));
    }
    let (session, token) = call.engine.renew_token(session.id, call.caller.key())?;
    Ok(json(&TokenBody {
        token: token.reveal().to_owned(),
        token_expires_at: session.token_expires_at.map(|at| at.to_string()),
    }))
}
