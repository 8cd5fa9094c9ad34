use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_core::backend::Writer;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, Redaction, StoreId};
use quipu_core::settings::Limits;
use quipu_core::{Backend as _, Engine};
use tempfile::TempDir;

use super::*;
use crate::{OpenMode, SqliteBackend};

struct Fixture {
    directory: TempDir,
    backend: Arc<SqliteBackend>,
    engine: Engine,
    store: StoreId,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let backend = Arc::new(SqliteBackend::open(directory.path(), OpenMode::Create).unwrap());
        let shared = Arc::clone(&backend) as Arc<dyn quipu_core::Backend>;
        let engine = Engine::new(shared, Arc::new(SystemClock), Limits::default());
        let workspace = engine.default_workspace().unwrap().id;
        let new = NewStore::named(Name::new("tests").unwrap());
        let store = engine.create_store(workspace, &new).unwrap().id;
        Self { directory, backend, engine, store }
    }

    fn put(&self, path: &str, text: &str) -> quipu_core::model::VersionId {
        let (path, text) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
        let actor = Actor::User(PrincipalName::from_host("tester"));
        let target = (&path, &text);
        let written = self.engine.put(&actor, self.store, target, Precondition::None).unwrap();
        written.memory.version
    }

    /// Fills the store in an order that splits and merges pages.
    fn shuffle(&self, count: usize) {
        for number in 0..count {
            let number = number * 7919 % count;
            let path = format!("/{number:04}/{}", "long name ".repeat(number % 20).trim());
            self.put(path.trim_end_matches('/'), &"some text ".repeat(number % 90));
        }
    }

    /// Returns what is left of removed rows, with all changes in the database file.
    fn remains(&self) -> Remains {
        let access = Access {
            writer: self.backend.writer().unwrap(),
            readers: &self.backend.readers,
            lock_timeout: Duration::from_secs(10),
        };
        let frozen = access.truncate_log(Instant::now() + READERS_TIMEOUT, |_| {
            FrozenFile::new(self.backend.readers.open()?)
        });
        frozen.unwrap().remains().unwrap()
    }

    fn redact(&self, version: quipu_core::model::VersionId) {
        let actor = Actor::User(PrincipalName::from_host("tester"));
        self.engine.redact(&actor, self.store, &[version]).unwrap();
    }
}

/// If this fails, the test below proves nothing.
#[test]
fn moved_rows_leave_remains() {
    let fixture = Fixture::new();
    fixture.shuffle(400);
    let Remains::InPages(pages) = fixture.remains() else {
        panic!("remains are found in B-tree pages only");
    };
    assert!(!pages.is_empty());
}

#[test]
fn after_a_redaction_every_byte_belongs_to_a_row() {
    let fixture = Fixture::new();
    let leaked = fixture.put("/leak", "secret");
    fixture.put("/leak", "clean");
    fixture.shuffle(400);
    // Not by the engine: it writes the proof of its receipt after the erasure, and that moves rows as any
    // other write does.
    let by = Actor::User(PrincipalName::from_host("tester"));
    let redaction = Redaction { at: leaked.created_at().next(), by };
    let redactions = [(leaked, redaction)];
    let mut redact = |writer: &mut dyn Writer| writer.redact(fixture.store, &redactions);
    fixture.backend.write(Purpose::Removal, &mut redact).unwrap();
    fixture.backend.erase().unwrap();
    assert_eq!(fixture.remains(), Remains::InPages(Vec::new()));
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn what_is_written_meanwhile_stays_and_what_was_removed_goes() {
    let fixture = Fixture::new();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
                fixture.put(&format!("/{}", number * 7919 % 1000), &"other ".repeat(number % 300));
            }
        });
        for round in 0..15 {
            let token = format!("{:032x}", fixture.engine.random());
            let leaked = fixture.put("/leak", &token.repeat(1 + round * 20));
            fixture.put("/leak", "clean");
            fixture.redact(leaked);
            for entry in std::fs::read_dir(fixture.directory.path()).unwrap() {
                let path = entry.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                let is_there = bytes.windows(16).any(|window| window == &token.as_bytes()[..16]);
                assert!(!is_there, "round {round}: the text is in {}", path.display());
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}
