//! The store of a request: who may, and as whom the model writes.

use std::sync::Arc;

use axum::http::HeaderMap;
use quipu_core::backend::Sequence;
use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionToken};
use quipu_core::model::{
    Access, Actor, Instructions, KeyId, Role, Session, SessionId, Store, StoreId,
};
use quipu_knowledge::Knowledge;
use quipu_service::caller::{Caller, Need};
use quipu_service::credential::Credential;
use quipu_service::pool::Pool;
use quipu_service::prompt::{Prompt, PromptStore};
use quipu_service::tool::{self, MemoryTool, ToolSettings};
use quipu_service::{Author, DraftedSession};
use serde_json::Value;

use super::super::pass::Forwarding;
use super::{APP, SESSION, STORE};
use crate::answer::Failure;
use crate::call::find_store;
use crate::caller::parse_id;

/// How long the name of an app may be.
const APP_CHARS_MAX: usize = 64;

/// A store that a model may use.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) scope: Scope,
    /// The newest change when the request arrived.
    pub(super) sequence: Sequence,
    pub(super) prompt: String,
    author: Author,
    settings: ToolSettings,
    pool: Pool,
    credential: Credential,
}

/// Whose memory it is. Nothing that was remembered for one scope is ever used for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) key: KeyId,
    pub(super) store: StoreId,
}

/// What a tool answered.
pub(super) type ToolAnswer = tool::Answer;

impl Opened {
    /// Opens the store that a request names.
    pub(super) async fn new(forwarding: &Forwarding) -> Result<Self, Failure> {
        let headers = forwarding.parts.headers.clone();
        let (app, caller, key) =
            (forwarding.app.clone(), forwarding.caller.clone(), forwarding.key);
        let upstream = Arc::clone(&forwarding.upstream);
        let (pool, credential) = (app.pool().clone(), forwarding.credential.clone());
        let tool = app.settings().tool;
        let open = move |engine: &Knowledge| {
            let wanted = Wanted::new(&headers)?;
            let store = find_store(engine, &caller, wanted.store)?;
            if !caller.may_in(store.id, Need::Read) {
                return Err(caller.denied(Need::Read).into());
            }
            let may_write = caller.may_in(store.id, Need::Write) && store.archived_at.is_none();
            let access = if may_write { Access::ReadWrite } else { Access::ReadOnly };
            let scope = Scope { key, store: store.id };
            let mut shown = PromptStore::in_tool(&store, access);
            let author = if let Some(id) = wanted.session {
                let session = session(engine, &caller, id)?;
                let attachment = session.attachment(store.id).ok_or_else(|| {
                    Failure::invalid(format!("{SESSION}: the store is not attached to the session"))
                })?;
                if attachment.access == Access::ReadOnly {
                    shown.access = Access::ReadOnly;
                }
                shown.instructions = attachment.instructions.clone();
                Author::from(Actor::Session(session.id))
            } else if access == Access::ReadOnly {
                Author::from(caller.actor.clone())
            } else {
                let drafted = || draft(engine, &caller, key, &store, wanted.app);
                let (label, sessions) = (wanted.app.to_owned(), &upstream.sessions);
                Author::Drafted(sessions.get(engine, (scope, label), drafted)?)
            };
            let settings = ToolSettings { access: shown.access, ..tool };
            let prompt = Prompt { stores: vec![shown], topic: None }.text();
            let sequence = engine.newest_sequence()?;
            let (pool, credential) = (pool.clone(), credential.clone());
            Ok(Self { scope, sequence, prompt, author, settings, pool, credential })
        };
        app.pool().read(open).await?
    }

    /// Carries out a call of the memory tool. A problem of the store is an answer for the model.
    pub(super) async fn call(&self, input: Value) -> Result<ToolAnswer, Failure> {
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        let is_write = tool::writes(command);
        let opened = self.clone();
        let run = move |engine: &Knowledge| {
            // The key may have been revoked, or have lost the store, since the request began.
            let principal = opened.credential.principal_in(engine)?;
            let caller = principal.map(Caller::new);
            let need =
                if opened.settings.access == Access::ReadWrite { Need::Write } else { Need::Read };
            if !caller.is_some_and(|caller| caller.may_in(opened.scope.store, need)) {
                return Err(Failure::unauthenticated("the API key was revoked or has expired"));
            }
            let (store, author) = (opened.scope.store, opened.author.clone());
            Ok(MemoryTool::new(engine.clone(), store, author, opened.settings).call(&input))
        };
        if is_write { self.pool.write(run).await? } else { self.pool.read(run).await? }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// What the headers ask for.
struct Wanted<'a> {
    store: &'a str,
    session: Option<&'a str>,
    app: &'a str,
}

impl<'a> Wanted<'a> {
    fn new(headers: &'a HeaderMap) -> Result<Self, Failure> {
        let text = |name: &'static str| match headers.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.trim())),
            Some(Err(_)) => Err(Failure::invalid(format!("{name}: must be ASCII"))),
        };
        let store = text(STORE)?.filter(|name| !name.is_empty());
        let store =
            store.ok_or_else(|| Failure::invalid(format!("{STORE}: is empty; name a store")))?;
        let app = text(APP)?.unwrap_or_default();
        if app.len() > APP_CHARS_MAX {
            let message = format!("{APP}: must have at most {APP_CHARS_MAX} characters");
            return Err(Failure::invalid(message));
        }
        Ok(Self { store, session: text(SESSION)?, app })
    }
}

/// Returns a session that the caller may write as: whoever may renew its token.
fn session(engine: &Knowledge, caller: &Caller, id: &str) -> Result<Session, Failure> {
    let id: SessionId = parse_id(id, "session")?;
    let session = engine.session(id)?;
    if !caller.sees(&session) {
        return Err(crate::caller::no_such("session", &id.to_string()));
    }
    let is_own = match &caller.principal {
        Principal::Key(key) => key.role == Role::Admin || session.key == Some(key.id),
        Principal::Session(_) => false,
    };
    if !is_own {
        return Err(Failure::forbidden(format!(
            "{SESSION}: a session is used by the key that made it or by an admin key"
        )));
    }
    if session.archived_at.is_some() {
        return Err(Failure::invalid(format!("{SESSION}: the session is archived")));
    }
    Ok(session)
}

fn draft(
    engine: &Knowledge,
    caller: &Caller,
    key: KeyId,
    store: &Store,
    app: &str,
) -> Result<DraftedSession, Failure> {
    let attachment = NewAttachment {
        store: store.id,
        access: Access::ReadWrite,
        instructions: Instructions::default(),
    };
    let title = if app.is_empty() { "messages" } else { app };
    let titled = NewSession::titled(title, vec![attachment], SessionToken::None);
    let new = NewSession { key: Some(key), ..titled };
    Ok(DraftedSession::new(engine.draft_session(caller.workspace, &new)?))
}
