//! The authors of changes, for protocols whose sessions are recorded lazily.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_core::Error;
use quipu_core::model::{Actor, Session};
use quipu_knowledge::Knowledge;

/// The author of changes.
#[derive(Clone, Debug)]
pub enum Author {
    /// An actor that is recorded already.
    Actor(Actor),
    /// A session that is recorded before its first change.
    Drafted(Arc<DraftedSession>),
}

impl From<Actor> for Author {
    fn from(actor: Actor) -> Self {
        Self::Actor(actor)
    }
}

impl From<DraftedSession> for Author {
    fn from(session: DraftedSession) -> Self {
        Self::Drafted(Arc::new(session))
    }
}

impl Author {
    /// Returns the actor for a change that is about to be made, and records its session if needed.
    pub fn actor(&self, engine: &Knowledge) -> Result<Actor, Error> {
        match self {
            Self::Actor(actor) => Ok(actor.clone()),
            Self::Drafted(session) => session.actor(engine),
        }
    }
}

/// A session that is recorded before its first change.
///
/// An agent that only reads never writes a row, so it can read while the storage cannot be written.
#[derive(Debug)]
pub struct DraftedSession {
    session: Session,
    is_recorded: AtomicBool,
}

impl DraftedSession {
    /// Takes a session from [`draft_session`](quipu_core::Engine::draft_session).
    pub fn new(session: Session) -> Self {
        Self { session, is_recorded: AtomicBool::new(false) }
    }

    /// Returns the session, recorded or not.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether the session was recorded.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Acquire)
    }

    fn actor(&self, engine: &Knowledge) -> Result<Actor, Error> {
        // Concurrent first changes may both get here; recording is idempotent.
        if !self.is_recorded.load(Ordering::Acquire) {
            engine.record_session(&self.session)?;
            self.is_recorded.store(true, Ordering::Release);
        }
        Ok(Actor::Session(self.session.id))
    }
}
