//! The sessions that changes are attributed to.
//!
//! A connection that begins with `initialize` is one session, titled by the client's name. Newer
//! clients name themselves in each request; those of one name and key share a session. Either is
//! recorded with its first change: a client that only reads causes no write.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use quipu_core::engine::{NewSession, SessionToken};
use quipu_core::model::{Actor, KeyId, SessionId, WorkspaceId};
use rmcp::model::{ErrorData, Implementation};

use super::access::{Client, Grant};

const TITLE_CHARS_MAX: usize = 200;

/// The maximum length of each name in `clientInfo`.
const CLIENT_NAME_CHARS_MAX: usize = 256;

/// How many clients are remembered, least recently used first out. A forgotten client gets another
/// session with its next change, so one that renames itself with every request costs rows, not
/// memory.
const CLIENTS_MAX: usize = 1000;

/// The sessions of clients that name themselves in each request, the latest last.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<VecDeque<(Owner, SessionId)>>);

/// What identifies a client across requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    workspace: WorkspaceId,
    /// Its key, or what it has in common with those that the client gets in exchange for it.
    grant: Option<KeyId>,
    title: String,
}

impl Sessions {
    /// Returns the session for the next change of a client that never sent `initialize`.
    pub(super) fn of(&self, client: &Client, title: &str) -> Result<Actor, Error> {
        let key = match &client.identity.grant {
            Grant::Key(key) => Some(key),
            Grant::Everything | Grant::Session(_) => None,
        };
        let workspace = client.identity.workspace;
        let grant = key.map(|key| key.grant());
        let owner = Owner { workspace, grant, title: title.to_owned() };
        // Held while the session is created, so that two concurrent first requests share one.
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.iter().position(|(known, _)| *known == owner);
        let session = match known.and_then(|place| sessions.remove(place)) {
            Some((_, session)) => session,
            None => {
                let titled = NewSession::titled(title, Vec::new(), SessionToken::None);
                let new = NewSession { key: key.map(|key| key.id), ..titled };
                client.engine.create_session(workspace, &new)?.0.id
            }
        };
        sessions.push_back((owner, session));
        if sessions.len() > CLIENTS_MAX {
            sessions.pop_front();
        }
        Ok(Actor::Session(session))
    }
}

/// Fails if a name in `clientInfo` is too long to store.
pub(super) fn require_short_names(client: Option<&Implementation>) -> Result<(), ErrorData> {
    let Some(client) = client else { return Ok(()) };
    let names = [
        ("name", Some(&client.name)),
        ("title", client.title.as_ref()),
        ("version", Some(&client.version)),
    ];
    for (field, text) in names {
        if text.is_some_and(|text| text.chars().nth(CLIENT_NAME_CHARS_MAX).is_some()) {
            let message =
                format!("clientInfo.{field}: must have at most {CLIENT_NAME_CHARS_MAX} characters");
            return Err(ErrorData::invalid_params(message, None));
        }
    }
    Ok(())
}

/// Returns the title for the session of a client.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

    use super::super::McpSettings;
    use super::super::access::Identity;
    use super::*;

    #[test]
    fn the_least_recently_used_client_is_forgotten_first() {
        let clock = Arc::new(ManualClock::default());
        let backend = Arc::new(InMemoryBackend::default());
        let engine = knowledge_over(backend, clock);
        let workspace = engine.default_workspace().unwrap().id;
        let settings = McpSettings::default();
        let identity = Identity { workspace, grant: Grant::Everything, settings };
        let client = Client { engine, identity };
        let sessions = Sessions::default();
        let first = sessions.of(&client, "first").unwrap();
        for number in 1..CLIENTS_MAX {
            sessions.of(&client, &number.to_string()).unwrap();
        }
        assert_eq!(sessions.of(&client, "first").unwrap(), first, "it was used last");
        let second = sessions.of(&client, "1").unwrap();
        for number in 0..CLIENTS_MAX - 1 {
            sessions.of(&client, &format!("new {number}")).unwrap();
        }
        assert_eq!(sessions.0.lock().unwrap().len(), CLIENTS_MAX);
        assert_eq!(sessions.of(&client, "1").unwrap(), second);
        assert_ne!(sessions.of(&client, "first").unwrap(), first, "it was forgotten");
    }
}
