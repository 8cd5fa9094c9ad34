//! Names for the authors of versions: the title of a session, the name of a key.

use std::cell::RefCell;
use std::collections::HashMap;

use quipu_core::engine::Engine;
use quipu_core::model::{Actor, WorkspaceId};

/// Looks up the names of authors, each once.
#[derive(Debug)]
pub struct AuthorNames<'a> {
    engine: &'a Engine,
    workspace: WorkspaceId,
    known: RefCell<HashMap<Actor, Option<String>>>,
}

impl<'a> AuthorNames<'a> {
    /// Looks up the authors of a workspace.
    pub fn new(engine: &'a Engine, workspace: WorkspaceId) -> Self {
        Self { engine, workspace, known: RefCell::default() }
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
            Actor::Session(id) => self.engine.session(*id).ok().map(|session| session.title),
            Actor::ApiKey(id) => {
                let keys = self.engine.keys(self.workspace).unwrap_or_default();
                keys.into_iter().find(|key| key.id == *id).map(|key| key.name.to_string())
            }
            Actor::User(_) | Actor::ServiceAccount(_) => None,
        };
        let name = name.filter(|name| !name.is_empty());
        self.known.borrow_mut().insert(actor.clone(), name.clone());
        name
    }
}
