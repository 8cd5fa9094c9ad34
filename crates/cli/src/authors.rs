//! Names for the authors of versions: the title of a session, the name of a key.

use std::cell::RefCell;
use std::collections::HashMap;

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::Engine;
use quipu_core::model::{Actor, Key, WorkspaceId};
use quipu_core::{Error, ErrorKind};

use crate::failure::Failure;

/// Looks up the names of authors, each once.
pub(crate) struct Authors<'a> {
    engine: &'a Engine,
    workspace: WorkspaceId,
    known: RefCell<HashMap<Actor, Option<String>>>,
}

impl<'a> Authors<'a> {
    pub(crate) fn new(engine: &'a Engine, workspace: WorkspaceId) -> Self {
        Self { engine, workspace, known: RefCell::default() }
    }

    /// Returns the author's name, or its id if it has none.
    pub(crate) fn short(&self, actor: &Actor) -> String {
        self.name(actor).unwrap_or_else(|| actor.to_string())
    }

    /// Returns the author's name and its id.
    pub(crate) fn full(&self, actor: &Actor) -> String {
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

    /// Returns the authors that match a text: an id, the name of a user or key, or part of a session's
    /// title. Ignores case.
    pub(crate) fn matching(&self, text: &str) -> Result<Vec<Actor>, Failure> {
        if let Ok(actor) = text.parse() {
            return Ok(vec![actor]);
        }
        let wanted = text.to_lowercase();
        let mut actors = Vec::new();
        // Users are not registered anywhere: only versions show whether one exists.
        actors.extend(format!("user_{text}").parse::<Actor>().ok());
        let is_wanted = |key: &Key| key.name.as_str().to_lowercase() == wanted;
        let keys = self.engine.keys(self.workspace)?;
        actors.extend(keys.into_iter().filter(is_wanted).map(|key| Actor::ApiKey(key.id)));
        let query = SessionQuery {
            workspace: self.workspace,
            store: None,
            viewer: None,
            archived: Archived::Show,
            created: Span::default(),
            order: Order::NewestFirst,
            after: None,
            limit: usize::MAX,
        };
        let sessions = self.engine.sessions(&query)?.items;
        let titled = sessions.into_iter().filter(|it| it.title.to_lowercase().contains(&wanted));
        actors.extend(titled.map(|session| Actor::Session(session.id)));
        if actors.is_empty() {
            let message = format!("no author matches `{text}`");
            return Err(Failure::from(Error::new(ErrorKind::NotFound, message))
                .with_hint("`quipu key list` and `quipu session list --all` show the names"));
        }
        Ok(actors)
    }
}
