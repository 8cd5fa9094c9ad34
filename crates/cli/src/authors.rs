//! The authors that a command line means.

use quipu_core::backend::{Archived, Order, SessionQuery, Span, VersionFilter, VersionQuery};
use quipu_core::engine::Engine;
use quipu_core::model::{Actor, Key, KeyId, PrincipalName, Store, View, WorkspaceId};
use quipu_core::{Error, ErrorKind};
use quipu_service::authors::AuthorNames;

use crate::failure::Failure;

/// Finds authors by what people call them.
pub(crate) struct Authors<'a> {
    engine: &'a Engine,
    workspace: WorkspaceId,
    names: AuthorNames<'a>,
}

impl<'a> Authors<'a> {
    pub(crate) fn new(engine: &'a Engine, workspace: WorkspaceId) -> Self {
        Self { engine, workspace, names: AuthorNames::new(engine, workspace) }
    }

    /// Returns the author's name, or its id if it has none.
    pub(crate) fn short(&self, actor: &Actor) -> String {
        self.names.short(actor)
    }

    /// Returns the author's name and its id.
    pub(crate) fn full(&self, actor: &Actor) -> String {
        self.names.full(actor)
    }

    /// Returns all authors that a text may mean.
    pub(crate) fn matching(&self, wanted: Wanted<'_>) -> Result<Vec<Actor>, Failure> {
        let actors = match wanted {
            Wanted::Actor(text) => match text.parse() {
                Ok(actor) => vec![actor],
                Err(_) => self.named(text)?,
            },
            Wanted::User(text) => vec![user(text)?],
            Wanted::Key(text) => {
                let mut actors = Vec::new();
                for key in self.keys(text)? {
                    actors.extend(self.engine.actors_of_key(key)?);
                }
                actors
            }
            Wanted::Session(text) | Wanted::Host(text) => self.sessions(text)?,
        };
        if actors.is_empty() { Err(wanted.nobody()) } else { Ok(actors) }
    }

    /// Returns the one author that a text means, with the sessions of a key; fails if it may mean several.
    ///
    /// Users are not registered anywhere, so one counts only if the stores have a change by it.
    pub(crate) fn only(&self, wanted: Wanted<'_>, stores: &[Store]) -> Result<Vec<Actor>, Failure> {
        if let Wanted::Key(text) = wanted {
            return match self.keys(text)?.as_slice() {
                [] => Err(wanted.nobody()),
                [only] => Ok(self.engine.actors_of_key(*only)?),
                several => Err(self.ambiguous(text, several.iter().map(|id| Actor::ApiKey(*id)))),
            };
        }
        let mut actors = self.matching(wanted)?;
        if actors.len() > 1 {
            let mut known = Vec::new();
            for actor in actors {
                if !matches!(actor, Actor::User(_)) || self.has_changes(&actor, stores)? {
                    known.push(actor);
                }
            }
            actors = known;
        }
        match actors.as_slice() {
            [_] => Ok(actors),
            several => Err(self.ambiguous(wanted.text(), several.iter().cloned())),
        }
    }

    fn ambiguous(&self, text: &str, actors: impl Iterator<Item = Actor>) -> Failure {
        let mut names: Vec<_> = actors.map(|actor| self.full(&actor)).collect();
        let message = format!("`{text}` may mean {} authors", names.len());
        let rest_count = names.len().saturating_sub(SUGGESTIONS_MAX);
        names.truncate(SUGGESTIONS_MAX);
        if rest_count > 0 {
            names.push(format!("{rest_count} more"));
        }
        Failure::from(Error::new(ErrorKind::Ambiguous, message))
            .with_hint(format!("name one by its id: {}", names.join(", ")))
    }

    fn has_changes(&self, actor: &Actor, stores: &[Store]) -> Result<bool, Failure> {
        for store in stores {
            let filter = VersionFilter { actors: vec![actor.clone()], ..VersionFilter::default() };
            let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
            if !self.engine.versions(store.id, &query)?.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the user with this name, the keys with it, and the sessions with it in their titles.
    fn named(&self, text: &str) -> Result<Vec<Actor>, Failure> {
        let keys = self.keys(text)?.into_iter().map(Actor::ApiKey);
        // Users are not registered anywhere: only versions show whether one exists.
        Ok(user(text).into_iter().chain(keys).chain(self.sessions(text)?).collect())
    }

    fn keys(&self, text: &str) -> Result<Vec<KeyId>, Failure> {
        if let Ok(id) = text.parse() {
            return Ok(vec![id]);
        }
        let wanted = text.to_lowercase();
        let is_wanted = |key: &Key| key.name.as_str().to_lowercase() == wanted;
        // A key stands for those that were derived from it, whatever they are called.
        let keys = self.engine.keys(self.workspace)?.into_iter().filter(|key| !key.is_derived());
        Ok(keys.filter(is_wanted).map(|key| key.id).collect())
    }

    fn sessions(&self, text: &str) -> Result<Vec<Actor>, Failure> {
        if let Ok(id) = text.parse() {
            return Ok(vec![Actor::Session(id)]);
        }
        let wanted = text.to_lowercase();
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
        Ok(titled.map(|session| Actor::Session(session.id)).collect())
    }
}

/// How many authors an error suggests.
const SUGGESTIONS_MAX: usize = 5;

/// An author as the command line names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted<'a> {
    /// An id, the name of a user or key, or part of a session's title.
    Actor(&'a str),
    /// The id of a session, or part of its title.
    Session(&'a str),
    /// The id or the name of a key.
    Key(&'a str),
    /// The name of a user.
    User(&'a str),
    /// Part of the name of a program, which is the title of its sessions.
    Host(&'a str),
}

impl<'a> Wanted<'a> {
    pub(crate) fn text(self) -> &'a str {
        match self {
            Self::Actor(text)
            | Self::Session(text)
            | Self::Key(text)
            | Self::User(text)
            | Self::Host(text) => text,
        }
    }

    /// Returns the flag that names this kind of author.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Self::Actor(_) => "--actor",
            Self::Session(_) => "--session",
            Self::Key(_) => "--key",
            Self::User(_) => "--user",
            Self::Host(_) => "--host",
        }
    }

    fn nobody(self) -> Failure {
        let message = match self {
            Self::Actor(text) | Self::User(text) => format!("no author matches `{text}`"),
            Self::Session(text) | Self::Host(text) => format!("no session matches `{text}`"),
            Self::Key(text) => format!("no key is named `{text}`"),
        };
        Failure::from(Error::new(ErrorKind::NotFound, message))
            .with_hint("`quipu key list` and `quipu session list --all` show the names")
    }
}

fn user(text: &str) -> Result<Actor, Failure> {
    let name = PrincipalName::parse(text.strip_prefix("user_").unwrap_or(text));
    name.map(Actor::User).map_err(|error| Failure::usage(error.to_string()))
}
