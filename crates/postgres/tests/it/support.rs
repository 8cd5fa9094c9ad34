//! What several tests of this crate need.

use std::sync::Arc;

use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition, Written};
use quipu_core::model::{
    Actor, Content, MemoryPath, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy,
};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_postgres::{PostgresBackend, PostgresSettings};

use crate::cluster::Database;

/// A database with a server on it.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) store: StoreId,
    pub(crate) database: Database,
}

/// A server as Quipu runs them: an engine over a backend of its own.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) backend: Arc<PostgresBackend>,
    pub(crate) settings: PostgresSettings,
    /// The name of its database.
    pub(crate) database: String,
}

impl Server {
    pub(crate) fn open(settings: &PostgresSettings) -> Self {
        Self::try_open(settings).expect("it opens")
    }

    pub(crate) fn try_open(settings: &PostgresSettings) -> Result<Self, Error> {
        let backend = Arc::new(PostgresBackend::open(settings)?);
        let engine =
            Engine::new(Arc::clone(&backend) as _, Arc::new(SystemClock), Limits::default());
        let place = settings.url.split('?').next().unwrap_or_default();
        let database = place.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { engine, backend, settings: settings.clone(), database })
    }

    pub(crate) fn new_store(&self, name: &str) -> StoreId {
        let workspace = self.engine.default_workspace().expect("a workspace").id;
        let new = NewStore {
            policy: StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() },
            ..NewStore::named(Name::new(name).expect("a name"))
        };
        self.engine.create_store(workspace, &new).expect("a store").id
    }

    pub(crate) fn put(&self, store: StoreId, at: &str, text: &str) -> Result<Written, Error> {
        let target = (&path(at), &content(text));
        self.engine.put(&actor(), store, target, Precondition::None)
    }

    /// Adds one to the number in a memory.
    pub(crate) fn increment(&self, store: StoreId, at: &str) -> Result<(), Error> {
        let add_one = |_: &_, text: &str| {
            let count: u64 = text.parse().expect("a number");
            Ok::<_, Error>((count + 1).to_string())
        };
        self.engine.edit(&actor(), store, &path(at), add_one).map(drop)
    }
}

pub(crate) fn fixture() -> Fixture {
    let database = Database::new();
    let server = Server::open(&database.settings());
    let store = server.new_store("tests");
    Fixture { server, store, database }
}

pub(crate) fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("tester"))
}

pub(crate) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a valid path")
}

pub(crate) fn content(text: &str) -> Content {
    Content::new(text).expect("valid content")
}
