//! The fixture of the sync tests: a folder and a store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::{ListQuery, NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Directory, Listing, Memory, MemoryPath, Name, PrincipalName, StoreId,
    StorePolicy, Version, View, WorkspaceId,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine, Error};
use quipu_mount::sync::{FolderSync, MassDeletion, Report};
use quipu_testkit::{InMemoryBackend, ManualClock};
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) workspace: WorkspaceId,
    pub(crate) store: StoreId,
    home: TempDir,
}

pub(crate) fn fixture() -> Fixture {
    fixture_with(StorePolicy::default(), Limits::default())
}

pub(crate) fn fixture_with(policy: StorePolicy, limits: Limits) -> Fixture {
    fixture_over(Arc::new(InMemoryBackend::default()), policy, limits)
}

pub(crate) fn fixture_over(
    backend: Arc<dyn Backend>,
    policy: StorePolicy,
    limits: Limits,
) -> Fixture {
    let engine = Engine::new(backend, Arc::new(ManualClock::default()), limits);
    let workspace = engine.default_workspace().unwrap().id;
    let new = NewStore { policy, ..NewStore::named(Name::new("notes").unwrap()) };
    let store = engine.create_store(workspace, &new).unwrap().id;
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("vault")).unwrap();
    Fixture { engine, workspace, store, home }
}

pub(crate) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).unwrap()
}

pub(crate) fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

impl Fixture {
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.path().join("vault")
    }

    pub(crate) fn sync_with(&self, mass_deletion: MassDeletion) -> Result<Report, Error> {
        let sync = FolderSync::new(self.engine.clone(), self.store, &self.folder(), mass_deletion)?;
        let report = sync.lock()?.run(&())?;
        Ok(report)
    }

    /// Syncs and returns what was done.
    #[track_caller]
    pub(crate) fn sync(&self) -> Vec<String> {
        let report = self.sync_with(MassDeletion::Refuse).unwrap();
        assert_eq!(report.failed, []);
        actions(&report)
    }

    pub(crate) fn preview(&self) -> Report {
        let sync =
            FolderSync::new(self.engine.clone(), self.store, &self.folder(), MassDeletion::Refuse);
        sync.unwrap().preview().unwrap()
    }

    pub(crate) fn write(&self, at: &str, bytes: impl AsRef<[u8]>) {
        let file = self.file(at);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    pub(crate) fn file(&self, at: &str) -> PathBuf {
        self.folder().join(at.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, at: &str) -> Option<String> {
        fs::read_to_string(self.file(at)).ok()
    }

    pub(crate) fn put(&self, at: &str, text: &str) -> Memory {
        let target = (&path(at), &Content::new(text).unwrap());
        self.engine.put(&ada(), self.store, target, Precondition::None).unwrap().memory
    }

    pub(crate) fn memory(&self, at: &str) -> Memory {
        self.engine.memory_at(self.store, &path(at), View::Full).unwrap()
    }

    pub(crate) fn text(&self, at: &str) -> Option<String> {
        let memory = self.engine.memory_at(self.store, &path(at), View::Full).ok()?;
        memory.content.map(|content| content.as_str().to_owned())
    }

    pub(crate) fn versions(&self) -> Vec<Version> {
        let query = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: usize::MAX,
            view: View::Full,
        };
        self.engine.versions(self.store, &query).unwrap().items
    }

    /// Returns all memories by path.
    pub(crate) fn memories(&self) -> BTreeMap<String, String> {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Full,
        };
        let items = self.engine.list(self.store, &query).unwrap().items;
        let entry = |line| match line {
            Listing::Memory(Memory { path, content, .. }) => {
                Some((path.to_string(), content.unwrap().as_str().to_owned()))
            }
            Listing::Directory(_) => None,
        };
        items.into_iter().filter_map(entry).collect()
    }

    /// Returns all files that are not hidden, by path.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.folder(), "", &mut files);
        files
    }

    #[track_caller]
    pub(crate) fn assert_equal(&self) {
        assert_eq!(self.files(), self.memories());
    }
}

fn collect(directory: &Path, above: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{above}/{name}");
        if name.starts_with('.') {
        } else if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &path, files);
        } else {
            files.insert(path, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

pub(crate) fn actions(report: &Report) -> Vec<String> {
    let line = |action: &quipu_mount::sync::Action| {
        let words: Vec<_> = action.to_string().split_whitespace().map(str::to_owned).collect();
        words.join(" ")
    };
    report.actions.iter().map(line).collect()
}
