//! Sessions: which host writes.
//!
//! A connection that begins with `initialize` is one session, titled by the client's name. Newer
//! clients name themselves in each request; those of one name and key share a session. Either is
//! recorded when it first changes something: a client that only reads needs no write.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use quipu_core::engine::{NewSession, TokenWish};
use quipu_core::model::{Actor, KeyId, SessionId, WorkspaceId};
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
    /// Returns the session of a client that never said `initialize`, for its next change.
    pub(super) fn of(&self, client: &Client, title: &str) -> Result<Actor, Error> {
        let key = match &client.identity.grant {
            Grant::Key(key) => Some(key.id),
            Grant::Everything | Grant::Session(_) => None,
        };
        let workspace = client.identity.workspace;
        let owner = Owner { workspace, key, title: title.to_owned() };
        // Held while the session is made, so that two first requests make one session.
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&session) = sessions.get(&owner) {
            return Ok(Actor::Session(session));
        }
        let new = NewSession::titled(title, Vec::new(), TokenWish::None);
        let session = client.engine.create_session(workspace, &new)?.0.id;
        sessions.insert(owner, session);
        Ok(Actor::Session(session))
    }
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
