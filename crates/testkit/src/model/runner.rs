//! Runs operations on the reference and on an engine, side by side.

use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::{Backend, Usage, VersionFilter, VersionQuery};
use quipu_core::engine::{ListQuery, MemoryUpdate, NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Directory, Id as _, Listing, MemoryId, MemoryPath, Name, PrincipalName,
    StoreId, VersionId, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Clock as _, Engine, Error, ErrorKind};

use super::reference::{
    KEPT_DAYS, KEPT_MIN, LiveMemory, MEMORIES_MAX, PastVersion, Predicted, Prediction, Refusal,
    STORE_BYTES_MAX, TEXT_BYTES_MAX,
};
use super::{Operation, Reference};
use crate::ManualClock;

const DAY: Duration = Duration::from_hours(24);

/// Applies the operations one by one and panics at the first difference.
///
/// `open` opens the same data each time it is called.
pub fn run(open: &dyn Fn() -> Arc<dyn Backend>, operations: &[Operation]) {
    let mut runner = Runner::new(open);
    for operation in operations {
        runner.step(operation);
        runner.compare(operation);
    }
    let report = runner.engine.check().expect("the check runs");
    assert_eq!(report.problems, [], "after {operations:?}");
}

struct Runner<'a> {
    open: &'a dyn Fn() -> Arc<dyn Backend>,
    clock: Arc<ManualClock>,
    engine: Engine,
    actor: Actor,
    store: StoreId,
    reference: Reference,
}

fn engine(open: &dyn Fn() -> Arc<dyn Backend>, clock: &Arc<ManualClock>) -> Engine {
    let limits = Limits {
        content_size_bytes_max: u64::try_from(TEXT_BYTES_MAX).expect("small"),
        memories_per_store_max: u64::try_from(MEMORIES_MAX).expect("small"),
        store_size_bytes_max: u64::try_from(STORE_BYTES_MAX).expect("small"),
        versions_kept_for: Duration::from_hours(24 * KEPT_DAYS),
        versions_kept_min: u64::try_from(KEPT_MIN).expect("small"),
        ..Limits::default()
    };
    let clock = Arc::clone(clock);
    Engine::new(open(), clock, limits)
}

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("the paths are valid")
}

fn content(text: &str) -> Content {
    Content::new(text).expect("the texts are valid")
}

fn precondition(expected: Option<&str>) -> Precondition {
    expected.map_or(Precondition::None, |text| Precondition::ContentIs(content(text).hash()))
}

impl<'a> Runner<'a> {
    fn new(open: &'a dyn Fn() -> Arc<dyn Backend>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let engine = engine(open, &clock);
        let workspace = engine.default_workspace().expect("a workspace").id;
        let new = NewStore::named(Name::new("model").expect("a name"));
        let store = engine.create_store(workspace, &new).expect("a store").id;
        let actor = Actor::User(PrincipalName::from_host("model"));
        Self { open, clock, engine, actor, store, reference: Reference::default() }
    }

    /// Returns the id of a memory that exists or existed, or one that never did.
    fn memory(&self, number: usize) -> MemoryId {
        let known: Vec<_> = self.reference.versions.iter().map(|version| version.memory).collect();
        match known.len() {
            0 => MemoryId::from_bits(1),
            count => known[number % count],
        }
    }

    fn step(&mut self, operation: &Operation) {
        let (engine, actor, store) = (self.engine.clone(), self.actor.clone(), self.store);
        let was = &self.reference;
        match *operation {
            Operation::Create { path: at, text } => {
                let done = engine.create(&actor, store, &path(at), &content(text));
                self.settle(was.create(at, text, None), done.map(drop));
            }
            Operation::Put { path: at, text } => {
                let target = (&path(at), &content(text));
                let done = engine.put(&actor, store, target, Precondition::None);
                self.settle(was.put(at, text), done.map(drop));
            }
            Operation::Update { memory, text, path: to, expected } => {
                let id = self.memory(memory);
                let update = MemoryUpdate {
                    content: text.map(content),
                    path: to.map(path),
                    precondition: precondition(expected),
                };
                let done = engine.update(&actor, store, id, &update);
                self.settle(was.update(id, text, to, expected), done.map(drop));
            }
            Operation::Append { path: at, text } => {
                let append = |_: &_, old: &str| Ok::<_, Error>(format!("{old}{text}"));
                let done = engine.edit(&actor, store, &path(at), append);
                self.settle(was.append(at, text), done.map(drop));
            }
            Operation::Rename { from, to } => {
                let done = engine.rename(&actor, store, &path(from), &path(to));
                self.settle(was.rename(from, to), done.map(drop));
            }
            Operation::Delete { memory, expected } => {
                let id = self.memory(memory);
                let done = engine.delete(&actor, store, id, precondition(expected));
                self.settle(was.delete(id, expected), done.map(drop));
            }
            Operation::DeleteAt { path: at } => {
                let done = engine.delete_at(&actor, store, &path(at));
                self.settle(was.delete_at(at), done.map(drop));
            }
            Operation::Restore { version, to } => self.restore(version, to),
            Operation::Redact { version } => self.redact(version),
            Operation::Prune => {
                engine.prune().expect("pruning succeeds");
                self.reference.prune(self.clock.now().minus(DAY * 30));
            }
            Operation::PassDays { days } if days < 0 => {
                let back = DAY * u32::from(days.unsigned_abs());
                self.clock.set(self.clock.now().minus(back));
            }
            Operation::PassDays { days } => {
                self.clock.advance(DAY * u32::from(days.unsigned_abs()));
            }
            Operation::Archive => {
                engine.archive_store(store).expect("archiving succeeds");
                self.reference.is_archived = true;
            }
            Operation::Reopen => {
                drop(engine);
                self.engine = self::engine(self.open, &self.clock);
            }
        }
    }

    fn restore(&mut self, number: usize, to: Option<&'static str>) {
        let versions = &self.reference.versions;
        let Some(version) = versions.get(number % versions.len().max(1)).cloned() else { return };
        let done = self.engine.restore(&self.actor, self.store, version.id, to.map(path).as_ref());
        self.settle(self.reference.restore(&version, to), done.map(drop));
    }

    fn redact(&mut self, number: usize) {
        let count = self.reference.versions.len();
        if count == 0 {
            return;
        }
        let number = number % count;
        let id = self.reference.versions[number].id;
        let done = self.engine.redact(&self.actor, self.store, &[id]);
        let expected = self.reference.redact(number);
        assert_eq!(done.map(drop).map_err(|error| refusal(&error)), expected);
    }

    /// Compares an answer with its prediction and takes over the new versions.
    fn settle(&mut self, prediction: Prediction, done: Result<(), Error>) {
        let newest_known = self.reference.versions.iter().map(|version| version.id).max();
        let new = self.versions_after(newest_known);
        match (prediction, done) {
            (Ok(predicted), Ok(())) => {
                let made: Vec<_> = new.iter().map(as_predicted).collect();
                let expected: Vec<_> = predicted
                    .into_iter()
                    .zip(&new)
                    .map(|(change, version)| Predicted {
                        memory: change.memory.or(Some(version.memory)),
                        ..change
                    })
                    .collect();
                assert_eq!(made, expected);
                for version in new {
                    self.reference.apply(version);
                }
            }
            (Err(expected), Err(error)) => {
                assert_eq!(refusal(&error), expected, "{error:?}");
                assert_eq!(new, [], "a refused change left versions");
            }
            (predicted, done) => panic!("expected {predicted:?}, but got {done:?}"),
        }
    }

    fn versions_after(&self, known: Option<VersionId>) -> Vec<PastVersion> {
        let all = self.versions();
        all.into_iter().filter(|version| known.is_none_or(|known| version.id > known)).collect()
    }

    /// Returns every version of the engine, the oldest first, read in small pages.
    fn versions(&self) -> Vec<PastVersion> {
        let mut versions = Vec::new();
        let mut before = None;
        loop {
            let filter = VersionFilter::default();
            let query = VersionQuery { filter, before, limit: 3, view: View::Full };
            let page = self.engine.versions(self.store, &query).expect("versions are listed");
            versions.extend(page.items.into_iter().map(|version| PastVersion {
                id: version.id,
                memory: version.memory,
                operation: version.operation,
                path: version.path.map(|path| path.to_string()),
                text: version.content.map(|content| content.as_str().to_owned()),
                is_redacted: version.redaction.is_some(),
                at: version.created_at,
            }));
            before = page.next;
            if before.is_none() {
                versions.reverse();
                return versions;
            }
        }
    }

    /// Compares the whole store.
    fn compare(&self, operation: &Operation) {
        assert_eq!(self.versions(), self.reference.versions, "after {operation:?}");
        let mut expected = self.reference.memories.clone();
        expected.sort_by(|left, right| left.path.cmp(&right.path));
        assert_eq!(self.memories(), expected, "after {operation:?}");
        let size: usize = expected.iter().map(|memory| memory.text.len()).sum();
        let usage = Usage {
            memories_count: u64::try_from(expected.len()).expect("few"),
            size_bytes: u64::try_from(size).expect("small"),
        };
        assert_eq!(self.engine.usage(self.store).expect("usage is read"), usage);
    }

    fn memories(&self) -> Vec<LiveMemory> {
        let mut memories = Vec::new();
        let mut after = None;
        loop {
            let directory = Directory::root();
            let query = ListQuery { directory, depth: None, after, limit: 2, view: View::Full };
            let page = self.engine.list(self.store, &query).expect("memories are listed");
            memories.extend(page.items.into_iter().map(|listing| match listing {
                Listing::Memory(memory) => LiveMemory {
                    id: memory.id,
                    path: memory.path.to_string(),
                    text: memory.content.expect("a full view").as_str().to_owned(),
                },
                Listing::Directory(directory) => panic!("`{directory}` was not asked for"),
            }));
            after = page.next;
            if after.is_none() {
                return memories;
            }
        }
    }
}

fn as_predicted(version: &PastVersion) -> Predicted {
    Predicted {
        memory: Some(version.memory),
        operation: version.operation,
        path: version.path.clone().unwrap_or_default(),
        text: version.text.clone(),
    }
}

fn refusal(error: &Error) -> Refusal {
    match error.kind() {
        ErrorKind::InvalidInput => Refusal::InvalidInput,
        ErrorKind::NotFound => Refusal::NotFound,
        ErrorKind::PathConflict { .. } => Refusal::PathConflict,
        ErrorKind::PreconditionFailed => Refusal::PreconditionFailed,
        ErrorKind::StoreArchived => Refusal::StoreArchived,
        ErrorKind::ContentTooLarge => Refusal::ContentTooLarge,
        ErrorKind::LimitReached => Refusal::LimitReached,
        ErrorKind::HeadNotRedactable => Refusal::HeadNotRedactable,
        ErrorKind::Ambiguous
        | ErrorKind::SecretRefused
        | ErrorKind::AccessDenied
        | ErrorKind::EraseIncomplete
        | ErrorKind::StorageFull
        | ErrorKind::StorageBusy
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable => panic!("no operation should fail so: {error:?}"),
    }
}
