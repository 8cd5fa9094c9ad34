//! A tree over an in-memory store, called the way a kernel calls it.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{
    Access, Actor, Content, Id as _, Memory, MemoryPath, Name, PrincipalName, SessionId, StoreId,
    Version, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine};
use quipu_mount::{
    Attributes, Ino, Invalidation, Making, NameRules, NewFile, OpenMode, Overwrite, Position,
    ProcessId, ROOT, Start, Tree, TreeError, TreeSettings, Writing,
};
use quipu_testkit::{InMemoryBackend, ManualClock};

/// The process that all calls come from.
pub(crate) const ME: ProcessId = ProcessId(1);

pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: StoreId,
    pub(crate) tree: Tree,
    pub(crate) invalidations: Receiver<Invalidation>,
}

pub(crate) fn fixture() -> Fixture {
    fixture_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, Limits::default())
}

pub(crate) fn fixture_over(backend: Arc<dyn Backend>, access: Access, limits: Limits) -> Fixture {
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::new(backend, Arc::clone(&clock) as _, limits);
    let workspace = engine.default_workspace().unwrap().id;
    let new = NewStore::named(Name::new("tests").unwrap());
    let store = engine.create_store(workspace, &new).unwrap().id;
    let actor = Actor::Session(SessionId::from_bits(7));
    let settings = TreeSettings { store, actor, access, names: NameRules::default() };
    let (tree, invalidations) = Tree::new(engine.clone(), settings).unwrap();
    Fixture { engine, clock, store, tree, invalidations }
}

pub(crate) fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).unwrap()
}

fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

/// How a file is opened.
pub(crate) const READ: OpenMode = OpenMode::Read;
pub(crate) const WRITE: OpenMode = writing(Start::Kept, Position::Anywhere);
pub(crate) const APPEND: OpenMode = writing(Start::Kept, Position::AtEnd);
pub(crate) const EMPTY: OpenMode = writing(Start::Emptied, Position::Anywhere);
pub(crate) const EMPTY_APPEND: OpenMode = writing(Start::Emptied, Position::AtEnd);

const fn writing(start: Start, position: Position) -> OpenMode {
    OpenMode::Write(Writing { start, position })
}

impl Fixture {
    /// Returns the directory of a path, and the name in it.
    fn split<'p>(&self, at: &'p str) -> Result<(Ino, &'p OsStr), TreeError> {
        let mut parent = ROOT;
        let mut names = at.trim_start_matches('/').split('/').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return Ok((parent, name.as_ref()));
            }
            parent = self.tree.lookup(parent, name.as_ref())?.ino;
        }
        Ok((parent, "".as_ref()))
    }

    pub(crate) fn lookup(&self, at: &str) -> Result<Attributes, TreeError> {
        let (parent, name) = self.split(at)?;
        self.tree.lookup(parent, name)
    }

    /// Opens a file as a kernel does, creating it if it does not exist.
    pub(crate) fn open(&self, at: &str, mode: OpenMode) -> Result<u64, TreeError> {
        self.open_as(at, mode, Making::Openly)
    }

    pub(crate) fn open_as(
        &self,
        at: &str,
        mode: OpenMode,
        making: Making,
    ) -> Result<u64, TreeError> {
        match self.lookup(at) {
            Ok(found) => Ok(self.tree.open(found.ino, mode, ME)?.handle),
            Err(TreeError::NotFound) if mode != READ => {
                let (parent, name) = self.split(at)?;
                let is_exclusive = making == Making::Privately;
                let new = NewFile { mode, making, is_exclusive, creator: ME };
                Ok(self.tree.create(parent, name, new)?.1.handle)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn close(&self, handle: u64) -> Result<(), TreeError> {
        let closed = self.tree.flush(handle, ME);
        self.tree.release(handle);
        closed
    }

    /// Writes a whole file.
    pub(crate) fn write(&self, at: &str, bytes: &[u8]) -> Result<(), TreeError> {
        self.write_as(at, bytes, Making::Openly)
    }

    pub(crate) fn write_as(&self, at: &str, bytes: &[u8], making: Making) -> Result<(), TreeError> {
        let handle = self.open_as(at, EMPTY, making)?;
        let written = self.tree.write(handle, 0, bytes, ME);
        written.and(self.close(handle))
    }

    pub(crate) fn read(&self, at: &str) -> Result<Vec<u8>, TreeError> {
        let found = self.lookup(at)?;
        let handle = self.tree.open(found.ino, READ, ME)?.handle;
        let bytes = self.tree.read(found.ino, 0, usize::MAX);
        self.tree.release(handle);
        bytes
    }

    pub(crate) fn text(&self, at: &str) -> Option<String> {
        self.read(at).ok().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn make_directory(&self, at: &str) -> Result<(), TreeError> {
        let (parent, name) = self.split(at)?;
        self.tree.make_directory(parent, name).map(drop)
    }

    pub(crate) fn remove(&self, at: &str) -> Result<(), TreeError> {
        let (parent, name) = self.split(at)?;
        self.tree.remove_file(parent, name)
    }

    pub(crate) fn remove_directory(&self, at: &str) -> Result<(), TreeError> {
        let (parent, name) = self.split(at)?;
        self.tree.remove_directory(parent, name)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), TreeError> {
        let (from, to) = (self.split(from)?, self.split(to)?);
        self.tree.rename(from, to, Overwrite::Yes, ME)
    }

    /// Returns the names in a directory.
    pub(crate) fn list(&self, at: &str) -> Vec<String> {
        let ino = if at == "/" { ROOT } else { self.lookup(at).unwrap().ino };
        let handle = self.tree.open_directory(ino).unwrap();
        let (mut names, mut from) = (Vec::new(), 0);
        loop {
            let entries = self.tree.read_directory(handle, from).unwrap();
            let Some(last) = entries.last() else { break };
            from = last.next;
            names.extend(entries.into_iter().map(|entry| entry.name));
        }
        self.tree.release_directory(handle);
        names.sort();
        names
    }

    /// Makes the tree follow the feed.
    pub(crate) fn follow(&self) {
        self.tree.follow().unwrap();
    }

    /// Returns the invalidations since the last call.
    pub(crate) fn invalidations(&self) -> Vec<Invalidation> {
        self.invalidations.try_iter().collect()
    }

    /// Writes a memory through another door.
    pub(crate) fn put(&self, at: &str, text: &str) -> Memory {
        let content = Content::new(text).unwrap();
        let target = (&path(at), &content);
        self.engine.put(&ada(), self.store, target, Precondition::None).unwrap().memory
    }

    pub(crate) fn delete(&self, at: &str) {
        self.engine.delete_at(&ada(), self.store, &path(at)).unwrap();
    }

    pub(crate) fn move_elsewhere(&self, from: &str, to: &str) {
        self.engine.rename(&ada(), self.store, &path(from), &path(to)).unwrap();
    }

    /// Returns a text as it is stored.
    pub(crate) fn stored(&self, at: &str) -> Option<String> {
        let memory = self.engine.memory_at(self.store, &path(at), View::Full).ok()?;
        memory.content.map(|content| content.as_str().to_owned())
    }

    pub(crate) fn versions(&self) -> Vec<Version> {
        let filter = VersionFilter::default();
        let query = VersionQuery { filter, before: None, limit: usize::MAX, view: View::Full };
        let mut versions = self.engine.versions(self.store, &query).unwrap().items;
        versions.reverse();
        versions
    }

    /// Returns the operations and paths of all versions, the oldest first.
    pub(crate) fn history(&self) -> Vec<String> {
        let line =
            |version: &Version| format!("{} {}", version.operation, version.path.as_ref().unwrap());
        self.versions().iter().map(line).collect()
    }

    /// Returns how many memories occur in the history.
    pub(crate) fn memories_count(&self) -> usize {
        let ids = self.versions().into_iter().map(|version| version.memory);
        ids.collect::<std::collections::HashSet<_>>().len()
    }
}
