//! What several tests of this crate need.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Written};
use quipu_core::model::{
    Actor, Content, MemoryPath, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine};
use quipu_knowledge::Knowledge;
use quipu_sqlite::{OpenMode, SqliteBackend};
use tempfile::TempDir;

/// A data directory with an engine and a store in it.
pub(crate) struct Fixture {
    pub(crate) directory: TempDir,
    pub(crate) engine: Knowledge,
    pub(crate) store: StoreId,
}

pub(crate) fn fixture() -> Fixture {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let engine = engine(directory.path());
    let store = new_store(&engine, "tests");
    Fixture { directory, engine, store }
}

pub(crate) fn engine(directory: &Path) -> Knowledge {
    let backend = SqliteBackend::open(directory, OpenMode::Create).expect("it opens");
    knowledge(Arc::new(backend), directory)
}

pub(crate) fn knowledge(backend: Arc<dyn Backend>, directory: &Path) -> Knowledge {
    let engine = Engine::new(backend, Arc::new(SystemClock), Limits::default());
    Knowledge::new(engine, directory)
}

pub(crate) fn new_store(engine: &Engine, name: &str) -> StoreId {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore {
        policy: StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() },
        ..NewStore::named(Name::new(name).expect("a name"))
    };
    engine.create_store(workspace, &new).expect("a store").id
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

impl Fixture {
    pub(crate) fn put(&self, at: &str, text: &str) -> Written {
        let target = (&path(at), &content(text));
        self.engine
            .put(&actor(), self.store, target, quipu_core::engine::Precondition::None)
            .expect("the write succeeds")
    }
}

/// Every file of a data directory, byte for byte.
pub(crate) struct Files(Vec<(String, String)>);

impl Files {
    pub(crate) fn read(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).expect("the directory can be listed");
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("the file can be read");
            // Tokens are ASCII, so they survive this, and searching a text is fast.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)
        };
        Self(entries.map(file).collect())
    }

    /// Returns the names of the files that hold the token.
    pub(crate) fn with(&self, token: &str) -> Vec<&str> {
        let holding = self.0.iter().filter(|(_, bytes)| bytes.contains(token));
        holding.map(|(name, _)| name.as_str()).collect()
    }
}
