//! The fixture of the tests inside of this crate.

use std::fs;
use std::sync::Arc;

use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Memory, MemoryPath, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine};
use quipu_testkit::{InMemoryBackend, ManualClock};
use tempfile::TempDir;

use crate::{Knowledge, SearchRequest};

/// An engine with one store, and its index in a directory.
pub(crate) struct Fixture {
    pub(crate) knowledge: Knowledge,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) directory: TempDir,
    pub(crate) store: StoreId,
}

pub(crate) fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(InMemoryBackend::default()))
    }

    pub(crate) fn over(backend: Arc<dyn Backend>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::new(backend, Arc::clone(&clock) as _, Limits::default());
        let knowledge = Knowledge::new(engine, directory.path());
        let store = new_store(&knowledge, "tests");
        Self { knowledge, clock, directory, store }
    }

    pub(crate) fn put(&self, path: &str, text: &str) -> Memory {
        put(&self.knowledge, self.store, path, text)
    }

    /// Returns the paths of all hits.
    pub(crate) fn find(&self, text: &str) -> Vec<String> {
        find(&self.knowledge, self.store, text)
    }

    /// Returns the names of the files that contain a word.
    pub(crate) fn files_with(&self, word: &str) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(word.len()).any(|window| window == word.as_bytes()) {
                names.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
        names
    }

    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.knowledge.check().unwrap().problems, []);
    }
}

pub(crate) fn new_store(engine: &Engine, name: &str) -> StoreId {
    let workspace = engine.default_workspace().unwrap().id;
    let policy = StorePolicy { secrets: SecretPolicy::Off, ..StorePolicy::default() };
    let new = NewStore { policy, ..NewStore::named(Name::new(name).unwrap()) };
    engine.create_store(workspace, &new).unwrap().id
}

pub(crate) fn put(engine: &Engine, store: StoreId, path: &str, text: &str) -> Memory {
    let (path, content) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
    engine.put(&actor(), store, (&path, &content), Precondition::None).unwrap().memory
}

pub(crate) fn find(knowledge: &Knowledge, store: StoreId, text: &str) -> Vec<String> {
    let request = SearchRequest { limit: 500, ..SearchRequest::new(vec![store], text) };
    let page = knowledge.search(&request).unwrap();
    assert!(!page.is_behind);
    let mut paths: Vec<_> =
        page.hits.into_iter().map(|hit| hit.note.path.as_str().to_owned()).collect();
    paths.sort();
    paths
}
