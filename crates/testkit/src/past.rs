//! A random history by many actors, and what the store was at random moments of it.
//!
//! The reference is a log of what each operation answered, replayed up to a moment. The engine must give
//! the same tree, or declare that the moment lies below its horizon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::{ListQuery, NewStore, Past, Precondition, Written};
use quipu_core::model::{
    Actor, Content, Directory, Listing, MemoryId, MemoryPath, Name, PrincipalName, StoreId,
    Timestamp, VersionId, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine, Error, Moment};

use crate::ManualClock;

/// How large a history is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How many operations are tried; some of them are refused.
    pub operations_count: usize,
    /// At how many moments the store is compared.
    pub moments_count: usize,
}

/// One version: what its memory was from then on; `None` after a deletion.
struct Logged {
    at: Timestamp,
    /// The operation that made it; all of its versions are one transaction.
    operation: usize,
    version: VersionId,
    memory: MemoryId,
    state: Option<(MemoryPath, String)>,
}

/// The paths and texts of a store, and how many of its memories are redacted.
type Tree = (BTreeMap<String, String>, usize);

/// Runs a random history on an engine over the backend and compares its past with a replayed log. Returns
/// how many of the moments were complete.
pub fn run(backend: Arc<dyn Backend>, seed: u64, size: Size) -> usize {
    let mut history = History::new(backend, seed);
    for _ in 0..size.operations_count {
        // A refused operation changes nothing, and most refusals are paths that are not free.
        let _refused = history.operate().is_err();
    }
    (0..size.moments_count).filter(|_| history.is_right_at_a_random_moment()).count()
}

struct History {
    engine: Engine,
    clock: Arc<ManualClock>,
    store: StoreId,
    random: u64,
    log: Vec<Logged>,
    /// How many operations were tried.
    operations_count: usize,
    redacted: BTreeSet<VersionId>,
}

impl History {
    fn new(backend: Arc<dyn Backend>, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::default());
        let limits = Limits {
            versions_kept_for: Duration::from_hours(10),
            versions_kept_min: 3,
            ..Limits::default()
        };
        let engine = Engine::new(backend, Arc::clone(&clock) as _, limits);
        let workspace = engine.default_workspace().expect("a workspace").id;
        let name = Name::new("past").expect("a short name");
        let store = engine.create_store(workspace, &NewStore::named(name)).expect("a store").id;
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (log, redacted) = (Vec::new(), BTreeSet::new());
        Self { engine, clock, store, random, log, operations_count: 0, redacted }
    }

    /// Returns a number below `end` (xorshift).
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).expect("31 bits fit") % end.max(1)
    }

    fn actor(&mut self) -> Actor {
        Actor::User(PrincipalName::from_host(&format!("actor-{}", self.below(16))))
    }

    fn path(&mut self) -> MemoryPath {
        let (directory, name) = (self.below(6), self.below(8));
        let text =
            if directory == 0 { format!("/{name}") } else { format!("/d{directory}/{name}") };
        MemoryPath::parse(&text).expect("a valid path")
    }

    /// Returns a directory that may be empty, so that another one can be moved there.
    fn directory(&mut self) -> MemoryPath {
        MemoryPath::parse(&format!("/d{}", 1 + self.below(9))).expect("a valid path")
    }

    fn operate(&mut self) -> Result<(), Error> {
        let micros = u64::try_from(self.below(3)).expect("it is small");
        self.clock.advance(Duration::from_micros(micros));
        self.operations_count += 1;
        let (actor, path) = (self.actor(), self.path());
        match self.below(100) {
            0..50 => {
                let text = format!("text {}", self.below(1_000_000));
                let text = Content::new(text).expect("a short text");
                let target = (&path, &text);
                let written = self.engine.put(&actor, self.store, target, Precondition::None)?;
                self.note(&written);
            }
            50..65 => {
                let is_directory = self.below(2) == 0;
                let (path, to) = if is_directory {
                    (self.directory(), self.directory())
                } else {
                    (path, self.path())
                };
                for written in self.engine.rename(&actor, self.store, &path, &to)? {
                    self.note(&written);
                }
            }
            65..80 => {
                let removed = self.engine.delete_at(&actor, self.store, &path)?;
                let gone = removed.versions.into_iter().map(|version| Logged {
                    at: version.created_at,
                    operation: self.operations_count,
                    version: version.id,
                    memory: version.memory,
                    state: None,
                });
                self.log.extend(gone);
            }
            80..90 => {
                let Some(version) = self.any_version() else { return Ok(()) };
                let written = self.engine.restore(&actor, self.store, version, None)?;
                self.note(&written);
            }
            90..98 => {
                let Some(version) = self.any_version() else { return Ok(()) };
                self.engine.redact(&actor, self.store, &[version])?;
                self.redacted.insert(version);
            }
            _ => {
                self.clock.advance(Duration::from_hours(1));
                self.engine.prune()?;
            }
        }
        Ok(())
    }

    fn any_version(&mut self) -> Option<VersionId> {
        let place = self.below(self.log.len());
        self.log.get(place).map(|logged| logged.version)
    }

    fn note(&mut self, written: &Written) {
        let memory = &written.memory;
        let text = memory.content.as_ref().expect("a write answers with the text").as_str();
        if written.effect.has_changed() {
            self.log.push(Logged {
                at: memory.updated_at,
                operation: self.operations_count,
                version: memory.version,
                memory: memory.id,
                state: Some((memory.path.clone(), text.to_owned())),
            });
        }
    }

    /// Returns whether the moment is complete; fails if it is, and wrong.
    fn is_right_at_a_random_moment(&mut self) -> bool {
        let place = self.below(self.log.len());
        let kind = self.below(3);
        let logged = self.log.get(place).expect("there were operations");
        // At a change and right after it, named in different ways.
        let moment = match kind {
            0 => Moment::Time(logged.at.next()),
            1 => Moment::Time(logged.at),
            _ => Moment::Version(logged.version),
        };
        let at = match moment {
            Moment::Time(at) => self.whole(at),
            Moment::Resolved(at) => at,
            Moment::Sequence(_) | Moment::Version(_) => logged.at,
        };
        let Ok(past) = self.engine.moment(self.store, &moment) else {
            // The version is pruned.
            return false;
        };
        if !past.is_complete() {
            return false;
        }
        let engine = self.engine.at(&past).expect("the past can be read");
        assert_eq!(self.seen(&engine, &past), self.replayed(at), "at {moment}");
        self.compare_lookups(&engine, at);
        true
    }

    /// Returns a time up to which no operation is logged in part, if the feed can tell: the time, or the
    /// one right before such an operation.
    fn whole(&self, at: Timestamp) -> Timestamp {
        let end = self.log.partition_point(|logged| logged.at <= at);
        let (done, rest) = self.log.split_at(end);
        let half = match (done.last(), rest.first()) {
            (Some(last), Some(next)) if last.operation == next.operation => last.operation,
            _ => return at,
        };
        let start = done.partition_point(|logged| logged.operation < half);
        let first = done.get(start).expect("the last one is of this operation").at;
        let oldest = self.engine.read(|reader| reader.oldest_change()).expect("the feed is read");
        if oldest.is_none_or(|(_, oldest)| oldest >= first) {
            return at;
        }
        done.get(..start).and_then(<[_]>::last).map_or(Timestamp::MIN, |before| before.at)
    }

    /// Returns the tree that the log says.
    fn replayed(&self, at: Timestamp) -> Tree {
        let mut newest: BTreeMap<MemoryId, &Logged> = BTreeMap::new();
        for logged in self.log.iter().filter(|logged| logged.at <= at) {
            newest.insert(logged.memory, logged);
        }
        let mut tree = (BTreeMap::new(), 0);
        for logged in newest.into_values() {
            match &logged.state {
                Some(_) if self.redacted.contains(&logged.version) => tree.1 += 1,
                Some((path, text)) => {
                    tree.0.insert(path.to_string(), text.clone());
                }
                None => {}
            }
        }
        tree
    }

    /// Returns the tree that the engine of the past lists.
    fn seen(&self, engine: &Engine, past: &Past) -> Tree {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Full,
        };
        let items = engine.list(self.store, &query).expect("the past is listed").items;
        let texts = items.into_iter().map(|item| match item {
            Listing::Memory(memory) => {
                let text = memory.content.expect("it was asked for").as_str().to_owned();
                (memory.path.to_string(), text)
            }
            Listing::Directory(_) => panic!("nothing is rolled up"),
        });
        let tree = texts.collect();
        // By its name for the next page, it is the same.
        let again = self.engine.moment(self.store, &Moment::Resolved(past.at));
        assert_eq!(again.expect("it was resolved"), *past);
        (tree, self.engine.redacted_at(past).expect("they are listed").len())
    }

    /// Point lookups answer as the list does, and no version is newer than the moment.
    fn compare_lookups(&mut self, engine: &Engine, at: Timestamp) {
        let tree = self.replayed(at).0;
        for _ in 0..4 {
            let path = self.path();
            let found = engine.memory_at(self.store, &path, View::Full).ok();
            let text = found.as_ref().and_then(|memory| memory.content.as_ref());
            let expected = tree.get(path.as_str()).map(String::as_str);
            assert_eq!(text.map(Content::as_str), expected, "{path} at {at}");
            if let Some(memory) = found {
                let by_id = engine.memory(self.store, memory.id, View::Full).expect("it is there");
                assert_eq!(by_id, memory);
            }
        }
        let newest = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: 1,
            view: View::Basic,
        };
        let newest = engine.versions(self.store, &newest).expect("they are listed").items;
        assert!(newest.iter().all(|version| version.created_at <= at));
    }
}
