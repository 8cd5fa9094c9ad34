use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use quipu_core::Engine;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, StoreId};
use quipu_core::settings::Limits;
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
        let parts = Parts {
            writer: self.backend.writer().unwrap(),
            readers: &self.backend.readers,
            lock_timeout: Duration::from_secs(10),
        };
        let frozen = parts.empty_log(Instant::now() + READERS_TIMEOUT, |_| {
            Frozen::new(self.backend.readers.open()?)
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
    fixture.redact(leaked);
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

/// What a random database goes through.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16, usize),
    Delete(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..400_u16, prop_oneof![0..200_usize, 0..9000_usize]).prop_map(|(k, n)| Step::Insert(k, n)),
        1 => (0..400_u16).prop_map(Step::Delete),
    ]
}

/// Returns everything in a database, as text.
fn contents(connection: &Connection) -> Vec<String> {
    let sql = "SELECT 'a ' || key || ' ' || value FROM plain
        UNION ALL SELECT 'b ' || name || ' ' || value FROM named ORDER BY 1";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Clearing what belongs to nothing changes nothing, and leaves nothing.
    #[test]
    fn only_unused_room_is_cleared(steps in vec(step(), 1..300), bits in 9..14_u32) {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("random.db")).unwrap();
        connection.pragma_update(None, "page_size", 1 << bits).unwrap();
        connection.pragma_update(None, "secure_delete", true).unwrap();
        connection.execute_batch(
            "CREATE TABLE plain (key INTEGER PRIMARY KEY, value TEXT);
             CREATE TABLE named (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
             CREATE INDEX by_value ON named (value);",
        ).unwrap();
        for step in steps {
            match step {
                Step::Insert(key, size) => {
                    let value = "x".repeat(size);
                    connection.execute("REPLACE INTO plain VALUES (?1, ?2)", (key, &value)).unwrap();
                    let name = format!("{}{key}", "n".repeat(usize::from(key % 97)));
                    connection.execute("REPLACE INTO named VALUES (?1, ?2)", (name, &value)).unwrap();
                }
                Step::Delete(key) => {
                    connection.execute("DELETE FROM plain WHERE key = ?1", [key]).unwrap();
                }
            }
        }
        let before = contents(&connection);
        let Remains::InPages(pages) = remains(&connection).unwrap() else {
            panic!("every page is understood");
        };
        clear_pages(&connection, &pages.into_iter().collect()).unwrap();
        prop_assert_eq!(remains(&connection).unwrap(), Remains::InPages(Vec::new()));
        prop_assert_eq!(contents(&connection), before);
        let integrity: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        prop_assert_eq!(integrity, "ok");
    }

    /// Whatever a page holds, reading it neither panics nor takes long.
    #[test]
    fn any_page_can_be_read(page in vec(any::<u8>(), 512..=512), kind in 0..4_usize) {
        let mut page = page;
        page[0] = [2, 5, 10, 13][kind];
        for number in [PageNumber(1), PageNumber(2)] {
            if let Ok(tree) = Tree::read(number, &page) {
                tree.clear(&mut page);
                prop_assert!(!tree.has_remains(&page));
            }
        }
    }
}
