//! Quipu's own routes below `/quipu`: the memory tool, store policies, undo, prompts, tokens.

use quipu_core::Error;
use quipu_core::engine::{NewAttachment, NewSession, Principal, StoreUpdate, TokenWish};
use quipu_core::model::{Access, Instructions, MemoryPath, Store, StorePolicy, VersionId};
use quipu_core::prompt::{Prompt, PromptStore};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::caller::{Call, Need, Path, parse_id};
use super::sessions::session;
use crate::tool::{MemoryTool, Strings, ToolSettings};
use crate::wire::{
    MemoryBody, PolicyBody, RestoreVersion, StartToolSession, ToolSessionBody, UpdatePolicy,
};

/// Carries out one command of the memory tool; the body is the tool's input.
pub(super) async fn tool(Path(name): Path<String>, call: Call) -> Answer {
    let store = named_store(&call, &name)?;
    let strings = match call.query.get("strings") {
        None | Some("doc") => Strings::Doc,
        Some("python") => Strings::Python,
        Some(_) => return Err(Failure::invalid("strings: must be one of: doc, python")),
    };
    let wanted = call.query.parse("access")?.unwrap_or(Access::ReadWrite);
    let may_write = call.caller.may_in(store.id, Need::Write);
    let access = if may_write { wanted } else { Access::ReadOnly };
    let settings = ToolSettings { strings, access, ..call.app.settings().tool };
    let input: Value = call.json()?;
    let answered = call.blocking(move |call| {
        let (engine, actor) = (call.engine().clone(), call.caller.actor.clone());
        Ok(MemoryTool::new(engine, store.id, actor, settings).call(&input))
    });
    Ok(json(&answered.await?))
}

/// Starts a run of the memory tool: a session with a token that writes to this store and to no
/// other. A caller that is a session already, or that may not write, goes on as it is.
pub(super) async fn start_tool_session(Path(name): Path<String>, call: Call) -> Answer {
    let store = named_store(&call, &name)?;
    let body: StartToolSession = call.body()?;
    if let Principal::Session(session) = &call.caller.principal {
        return Ok(json(&ToolSessionBody {
            session_id: Some(session.id.to_string()),
            token: None,
        }));
    }
    if store.archived_at.is_some() || !call.caller.may_in(store.id, Need::Write) {
        return Ok(json(&ToolSessionBody { session_id: None, token: None }));
    }
    let attachment = NewAttachment {
        store: store.id,
        access: Access::ReadWrite,
        instructions: Instructions::default(),
    };
    let title = body.title.unwrap_or_else(|| "memory tool".to_owned());
    let new = NewSession::titled(&title, vec![attachment], TokenWish::Issue);
    let workspace = call.caller.workspace;
    let created = call.blocking(move |call| call.engine().create_session(workspace, &new));
    let (session, token) = created.await?;
    Ok(json(&ToolSessionBody {
        session_id: Some(session.id.to_string()),
        token: token.map(|token| token.reveal().to_owned()),
    }))
}

/// Returns the store with this name, slug or id that the caller may read; a caller that may make
/// stores gets a new one.
fn named_store(call: &Call, name: &str) -> Result<Store, Failure> {
    if let Principal::Session(session) = &call.caller.principal {
        let attached = session.attachments.iter().find(|attachment| {
            attachment.slug == name
                || attachment.name.as_str() == name
                || attachment.store.to_string() == name
        });
        let attached = attached.ok_or_else(|| call.caller.denied(Need::Read))?;
        return Ok(call.engine().store(attached.store)?);
    }
    let workspace = call.caller.workspace;
    let store = if call.caller.require_workspace(Need::Manage).is_ok() {
        call.engine().find_or_create_store(workspace, name)?
    } else {
        call.engine().find_store(workspace, name)?
    };
    if call.caller.may_in(store.id, Need::Read) {
        Ok(store)
    } else {
        Err(call.caller.denied(Need::Read))
    }
}

/// Returns what Quipu does by itself in a store.
pub(super) async fn policy(Path(id): Path<String>, call: Call) -> Answer {
    Ok(json(&PolicyBody::from(call.store(&id, Need::Read)?.policy)))
}

/// Changes what Quipu does by itself in a store.
pub(super) async fn set_policy(Path(id): Path<String>, call: Call) -> Answer {
    let store = call.store(&id, Need::Manage)?;
    let body: UpdatePolicy = call.body()?;
    let secrets = body.secrets.as_deref().map(str::parse).transpose();
    let policy = StorePolicy {
        secrets: secrets
            .map_err(|error| Failure::invalid(format!("secrets: {error}")))?
            .unwrap_or(store.policy.secrets),
        expire_after_days: match body.expire_after_days {
            Some(0) => None,
            Some(days) => Some(days),
            None => store.policy.expire_after_days,
        },
    };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    let updated = call.blocking(move |call| call.engine().update_store(store.id, &update)).await?;
    Ok(json(&PolicyBody::from(updated.policy)))
}

/// Writes an old version again.
pub(super) async fn restore(Path(id): Path<String>, call: Call) -> Answer {
    let store = call.store(&id, Need::Write)?;
    let body: RestoreVersion = call.body()?;
    let version: VersionId = parse_id(&body.memory_version_id, "memory version")?;
    let to = body.path.as_deref().map(MemoryPath::parse).transpose().map_err(Error::from)?;
    let restored = call.blocking(move |call| {
        call.engine().restore(&call.caller.actor, store.id, version, to.as_ref())
    });
    Ok(json(&MemoryBody::from(&restored.await?.memory)))
}

/// Returns the text that tells the agent of a session how to use its memory.
pub(super) async fn prompt(Path(id): Path<String>, call: Call) -> Answer {
    let session = session(&call, &id, Need::Read)?;
    let root = &call.app.settings().mount_root;
    let stores =
        session.attachments.iter().map(|store| PromptStore::mounted(store, root)).collect();
    let topic = call.query.get("topic").map(str::to_owned);
    Ok(json(&serde_json::json!({ "prompt": Prompt { stores, topic }.text() })))
}

/// Gives a session a new token; the old one stops to work.
pub(super) async fn new_token(Path(id): Path<String>, call: Call) -> Answer {
    let session = session(&call, &id, Need::Write)?;
    let token = call.blocking(move |call| call.engine().renew_token(session.id)).await?;
    Ok(json(&serde_json::json!({ "token": token.reveal() })))
}
