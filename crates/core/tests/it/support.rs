//! What several tests of the engine need.

use std::sync::Arc;

use quipu_core::engine::{NewStore, Precondition, Written};
use quipu_core::model::{
    Actor, Content, Memory, MemoryPath, Name, PrincipalName, Store, StoreId, StorePolicy, View,
    WorkspaceId,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine, Error, ErrorKind};
use quipu_testkit::{InMemoryBackend, ManualClock};

/// An engine with one store in it.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) store: StoreId,
}

pub(crate) fn fixture() -> Fixture {
    fixture_with(Limits::default())
}

pub(crate) fn fixture_with(limits: Limits) -> Fixture {
    fixture_over(Arc::new(InMemoryBackend::default()), limits)
}

pub(crate) fn fixture_over(backend: Arc<dyn Backend>, limits: Limits) -> Fixture {
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::new(backend, Arc::clone(&clock) as _, limits);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let store = engine.create_store(workspace, &NewStore::named(name("tests"))).expect("a store");
    Fixture { engine, clock, workspace, store: store.id }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

pub(crate) fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

pub(crate) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a valid path")
}

pub(crate) fn content(text: &str) -> Content {
    Content::new(text).expect("valid content")
}

pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("it is refused").kind().clone()
}

impl Fixture {
    pub(crate) fn new_store(&self, text: &str, policy: StorePolicy) -> Store {
        let new = NewStore { policy, ..NewStore::named(name(text)) };
        self.engine.create_store(self.workspace, &new).expect("a store")
    }

    pub(crate) fn create(&self, at: &str, text: &str) -> Result<Written, Error> {
        self.engine.create(&actor(), self.store, &path(at), &content(text))
    }

    pub(crate) fn put(&self, at: &str, text: &str) -> Memory {
        let target = (&path(at), &content(text));
        let written = self.engine.put(&actor(), self.store, target, Precondition::None);
        written.expect("it is written").memory
    }

    pub(crate) fn text(&self, at: &str) -> Option<String> {
        let memory = self.engine.memory_at(self.store, &path(at), View::Full).ok()?;
        memory.content.map(|content| content.as_str().to_owned())
    }

    /// Returns the operations and paths of all versions, the oldest first.
    pub(crate) fn history(&self) -> Vec<String> {
        let query = quipu_core::backend::VersionQuery {
            filter: quipu_core::backend::VersionFilter::default(),
            before: None,
            limit: usize::MAX,
            view: View::Basic,
        };
        let mut versions = self.engine.versions(self.store, &query).expect("they are listed").items;
        versions.reverse();
        let line = |version: &quipu_core::model::Version| {
            let path = version.path.as_ref().map_or("(redacted)", MemoryPath::as_str);
            format!("{} {path}", version.operation)
        };
        versions.iter().map(line).collect()
    }
}
