//! What is granted to the session that a command acts as, or that it starts another one for.

use quipu_core::model::{Access, Session, SessionId, Store};
use quipu_core::{Error, ErrorKind};

use crate::context::Data;
use crate::failure::Failure;

impl Data {
    /// Fails unless a command that starts a session of its own may have this access to a store.
    pub(crate) fn require_granted(&self, store: &Store, access: Access) -> Result<(), Failure> {
        match self.acting()? {
            Some(session) => require_attached(&session, store, access),
            None => Ok(()),
        }
    }

    /// Returns the session that `QUIPU_SESSION` names, which must not be archived.
    pub(crate) fn acting(&self) -> Result<Option<Session>, Failure> {
        self.session.map(|id| self.open_session(id)).transpose()
    }

    /// Returns a session that can still write.
    pub(crate) fn open_session(&self, id: SessionId) -> Result<Session, Failure> {
        let session = self.engine.session(id)?;
        if session.archived_at.is_none() {
            return Ok(session);
        }
        Err(denied(format!("the session `{id}` is archived, so nothing can write as it"))
            .with_hint("`quipu session list` shows the sessions that can"))
    }
}

/// Fails unless the store is attached to the session with this access.
pub(crate) fn require_attached(
    session: &Session,
    store: &Store,
    access: Access,
) -> Result<(), Failure> {
    let id = session.id;
    match (session.attachment(store.id).map(|attachment| attachment.access), access) {
        (Some(Access::ReadWrite), _) | (Some(Access::ReadOnly), Access::ReadOnly) => Ok(()),
        (Some(Access::ReadOnly), Access::ReadWrite) => Err(denied(format!(
            "the store `{}` is attached to the session `{id}` for reading only",
            store.name
        ))
        .with_hint("create a session that may write with `quipu session create --store NAME`")),
        (None, _) => {
            Err(denied(format!("the store `{}` is not attached to the session `{id}`", store.name))
                .with_hint(format!("`quipu session show {id}` lists its stores")))
        }
    }
}

fn denied(message: String) -> Failure {
    Failure::from(Error::new(ErrorKind::AccessDenied, message))
}
