//! Names for the authors of versions: the title of a session, the name of a key.

use std::cell::RefCell;
use std::collections::HashMap;

use quipu_core::engine::Engine;
use quipu_core::model::{Actor, KeyId, Session, WorkspaceId};

use crate::caller::Caller;

/// Looks up the names of authors, each once.
#[derive(Debug)]
pub struct AuthorNames<'a> {
    engine: &'a Engine,
    workspace: WorkspaceId,
    viewer: Option<&'a Caller>,
    known: RefCell<HashMap<Actor, Option<String>>>,
}

impl<'a> AuthorNames<'a> {
    /// Looks up the authors of a workspace.
    pub fn new(engine: &'a Engine, workspace: WorkspaceId) -> Self {
        Self { engine, workspace, viewer: None, known: RefCell::default() }
    }

    /// Returns the same names for somebody who may not know of every session: the title of a session
    /// that the viewer does not see may name what the viewer has nothing to do with, so its id stands
    /// for it.
    #[must_use]
    pub fn for_viewer(self, viewer: &'a Caller) -> Self {
        Self { viewer: Some(viewer), ..self }
    }

    /// Returns the author's name, or its id if it has none.
    pub fn short(&self, actor: &Actor) -> String {
        self.name(actor).unwrap_or_else(|| actor.to_string())
    }

    /// Returns the author's name and its id.
    pub fn full(&self, actor: &Actor) -> String {
        match self.name(actor) {
            Some(name) => format!("{name} ({actor})"),
            None => actor.to_string(),
        }
    }

    fn name(&self, actor: &Actor) -> Option<String> {
        if let Some(name) = self.known.borrow().get(actor) {
            return name.clone();
        }
        let name = match actor {
            Actor::Session(id) => {
                let session = self.engine.session(*id).ok();
                let is_seen = |session: &Session| self.viewer.is_none_or(|it| it.sees(session));
                session.filter(is_seen).map(|session| session.title)
            }
            Actor::ApiKey(id) => self.key_name(*id),
            Actor::User(_) => actor.signed_in().and_then(|(person, key)| {
                let key = self.key_name(key)?;
                Some(format!("{person} with {key}"))
            }),
            Actor::ServiceAccount(_) => None,
        };
        let name = name.filter(|name| !name.is_empty());
        self.known.borrow_mut().insert(actor.clone(), name.clone());
        name
    }

    fn key_name(&self, id: KeyId) -> Option<String> {
        let keys = self.engine.keys(self.workspace).unwrap_or_default();
        keys.into_iter().find(|key| key.id == id).map(|key| key.name.to_string())
    }
}
