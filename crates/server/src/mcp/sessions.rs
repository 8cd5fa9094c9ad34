//! Sessions: which host writes.
//!
//! A connection that begins with `initialize` is one session, titled by the client's name. Newer
//! clients name themselves in each request; those of one name and key share a session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use quipu_core::engine::{NewSession, TokenWish};
use quipu_core::model::{Actor, KeyId, SessionId, WorkspaceId};
use quipu_core::{Engine, Error};
use rmcp::model::Implementation;

use super::access::{Client, Grant};

const TITLE_CHARS_MAX: usize = 200;

/// The sessions of clients that name themselves in each request.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<Owner, SessionId>>);

/// What makes two requests those of one client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    workspace: WorkspaceId,
    key: Option<KeyId>,
    title: String,
}

impl Sessions {
    /// Returns the session of a client that never said `initialize`.
    pub(super) fn of(&self, client: &Client, title: &str) -> Result<Actor, Error> {
        let key = match &client.grant {
            Grant::Key(key) => Some(key.id),
            Grant::Everything | Grant::Session(_) => None,
        };
        let owner = Owner { workspace: client.workspace, key, title: title.to_owned() };
        // Held while the session is made, so that two first requests make one session.
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&session) = sessions.get(&owner) {
            return Ok(Actor::Session(session));
        }
        let session = begun(&client.engine, client.workspace, title)?;
        sessions.insert(owner, session);
        Ok(Actor::Session(session))
    }
}

/// Starts a session.
pub(super) fn begun(
    engine: &Engine,
    workspace: WorkspaceId,
    title: &str,
) -> Result<SessionId, Error> {
    let new = NewSession::titled(title, Vec::new(), TokenWish::None);
    Ok(engine.create_session(workspace, &new)?.0.id)
}

/// Returns what to call the session of a client.
pub(super) fn title(client: Option<&Implementation>) -> String {
    let Some(client) = client else { return "MCP client".to_owned() };
    let name = client.title.as_ref().unwrap_or(&client.name);
    let title: String = format!("{name} {}", client.version)
        .chars()
        .filter(|character| !character.is_control())
        .take(TITLE_CHARS_MAX)
        .collect();
    title.trim().to_owned()
}
