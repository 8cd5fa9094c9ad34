//! The engine and its embedded storage against bare SQLite.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_core::clock::SystemClock;
use quipu_core::engine::{ListQuery, NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Directory, MemoryId, MemoryPath, Name, PrincipalName, StoreId, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_knowledge::Knowledge;
use quipu_sqlite::{OpenMode, SqliteBackend};
use tempfile::TempDir;

use crate::bare::{Bare, Rows};
use crate::table::{median, micros_each, number, print, processor_time, row, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many versions each measurement of writing makes
    #[arg(long, default_value_t = 16_000)]
    writes: u64,
    /// How often each measurement is repeated; the median is shown
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The largest number of memories in one store
    #[arg(long, default_value_t = 100_000)]
    memories: u64,
}

/// How many memories are written repeatedly.
const REWRITTEN: u64 = 1000;
const SIZE_BYTES: usize = 2048;

pub(crate) fn run(arguments: &Arguments) {
    println!("Bare SQLite and Quipu in turns, texts of 2 KB, WAL with synchronous=FULL.");
    writes(arguments);
    reads_and_edits(arguments);
    growth(arguments);
}

pub(crate) struct Opened {
    pub(crate) engine: Knowledge,
    pub(crate) store: StoreId,
    pub(crate) actor: Actor,
    pub(crate) directory: TempDir,
}

pub(crate) fn scratch() -> TempDir {
    // Next to the build, which is on a disk; the system's temporary directory may be in memory.
    tempfile::tempdir_in("target").expect("a directory can be made in `target`")
}

fn engine(directory: &TempDir) -> Knowledge {
    let backend = SqliteBackend::open(directory.path(), OpenMode::Create).expect("it opens");
    let limits = Limits {
        memories_per_store_max: u64::MAX,
        store_size_bytes_max: u64::MAX,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), limits);
    Knowledge::new(engine, directory.path())
}

pub(crate) fn open() -> Opened {
    let directory = scratch();
    let engine = engine(&directory);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore::named(Name::new("bench").expect("a name"));
    let store = engine.create_store(workspace, &new).expect("a store").id;
    Opened { engine, store, actor: Actor::User(PrincipalName::from_host("bench")), directory }
}

impl Opened {
    pub(crate) fn put(&self, memory: u64, text: String) -> MemoryId {
        let target = (&path(memory), &Content::new(text).expect("a text"));
        let written = self.engine.put(&self.actor, self.store, target, Precondition::None);
        written.expect("it is written").memory.id
    }

    /// Puts this many memories, with eight writers.
    pub(crate) fn fill(&self, memories: u64, text: impl Fn(u64) -> String + Sync) {
        let next = AtomicU64::new(0);
        let left = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < memories);
        let write = || {
            while let Some(memory) = left() {
                self.put(memory, text(memory));
            }
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(write))));
    }

    /// Creates another store, which receives memories from now on.
    pub(crate) fn add_store(&mut self, name: &str) {
        let workspace = self.engine.default_workspace().expect("a workspace").id;
        let new = NewStore::named(Name::new(name).expect("a name"));
        self.store = self.engine.create_store(workspace, &new).expect("a store").id;
    }

    pub(crate) fn stored(&self, memory: u64) -> String {
        let stored = self.engine.memory_at(self.store, &path(memory), View::Full);
        let content = stored.expect("it is there").content.expect("it was asked for");
        content.as_str().to_owned()
    }
}

pub(crate) fn text(seed: u64) -> String {
    let line = format!("- [fact] note {seed} says that the kettle boils at ninety degrees #tea\n");
    let mut text = line.repeat(SIZE_BYTES / line.len() + 1);
    text.truncate(SIZE_BYTES);
    text
}

pub(crate) fn path(memory: u64) -> MemoryPath {
    MemoryPath::parse(&format!("/notes/{memory:06}.md")).expect("a valid path")
}

/// Returns the total number of writes per second by this many concurrent writers.
pub(crate) fn rate(writers: u64, writes: u64, write: impl Fn(u64) + Sync) -> f64 {
    let next = AtomicU64::new(0);
    let numbers = || {
        std::iter::repeat_with(|| next.fetch_add(1, Ordering::SeqCst))
            .take_while(|number| *number < writes)
    };
    let elapsed = time(|| {
        std::thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| numbers().for_each(&write));
            }
        });
    });
    f64::from(u32::try_from(writes).unwrap_or(u32::MAX)) / elapsed.as_secs_f64()
}

fn writes(arguments: &Arguments) {
    let heading: [&dyn Display; 6] = [
        &"writers",
        &"bare, text row only",
        &"bare, same rows",
        &"Quipu",
        &"of bare, same rows",
        &"of bare, text only",
    ];
    let mut rows = vec![row(&heading)];
    for writers in [1, 8] {
        let writes = if writers == 1 { arguments.writes / 4 } else { arguments.writes };
        let bare = |kind| {
            let directory = scratch();
            let bare = Bare::open(directory.path(), kind);
            rate(writers, writes, |number| bare.write(number % REWRITTEN, &text(number)))
        };
        let quipu = || {
            let opened = open();
            rate(writers, writes, |number| {
                opened.put(number % REWRITTEN, text(number));
            })
        };
        let (mut text_only, mut same, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            text_only.push(bare(Rows::TextOnly));
            same.push(bare(Rows::SameAsQuipu));
            ours.push(quipu());
        }
        let (text_only, same, ours) = (median(text_only), median(same), median(ours));
        rows.push(row(&[
            &writers,
            &format!("{}/s", number(text_only)),
            &format!("{}/s", number(same)),
            &format!("{}/s", number(ours)),
            &number(ours / same),
            &number(ours / text_only),
        ]));
    }
    print("Durable versions of 2 KB", &rows);
}

fn reads_and_edits(arguments: &Arguments) {
    let directory = scratch();
    let bare = Bare::open(directory.path(), Rows::TextOnly);
    let documents = (0..10_000).map(|memory| (path(memory).to_string(), text(memory)));
    bare.fill_documents(documents);
    let opened = open();
    let ids: Vec<_> = fill(&opened, 0, 10_000);
    let pick = |turn: u32| u64::from(turn) * 7919 % 10_000;

    let (mut select, mut by_path, mut by_id) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        select.push(micros_each(20_000, |turn| drop(bare.read(path(pick(turn)).as_str()))));
        by_path.push(micros_each(20_000, |turn| {
            let read = opened.engine.memory_at(opened.store, &path(pick(turn)), View::Full);
            drop(read.expect("it is there"));
        }));
        by_id.push(micros_each(20_000, |turn| {
            let id = ids.get(usize::try_from(pick(turn)).expect("small")).expect("it is known");
            drop(opened.engine.memory(opened.store, *id, View::Full).expect("it is there"));
        }));
    }
    let (mut bare_write, mut edit) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        bare_write.push(micros_each(1000, |turn| bare.write(pick(turn), &text(pick(turn)))));
        edit.push(micros_each(1000, |turn| {
            let append = |_: &_, old: &str| Ok::<_, Error>(format!("{old}{turn}\n"));
            let at = path(pick(turn));
            drop(opened.engine.edit(&opened.actor, opened.store, &at, append).expect("it edits"));
        }));
    }
    let select = median(select);
    let mut rows = vec![row(&[&"operation", &"µs", &"bare", &"of bare"])];
    let mut line = |name: &str, ours: Vec<f64>, bare: f64| {
        let ours = median(ours);
        rows.push(row(&[&name, &number(ours), &number(bare), &number(ours / bare)]));
    };
    line("read by path (bare: one prepared SELECT)", by_path, select);
    line("read by id (bare: one prepared SELECT)", by_id, select);
    line("edit of 2 KB, durable (bare: one durable INSERT)", edit, median(bare_write));
    print("Reads and edits, 10,000 memories", &rows);
}

/// Writes memories with these numbers from eight threads, and returns their ids in order.
pub(crate) fn fill(opened: &Opened, first: u64, end: u64) -> Vec<MemoryId> {
    let made = std::sync::Mutex::new(Vec::new());
    rate(8, end - first, |number| {
        let id = opened.put(first + number, text(number));
        made.lock().expect("no writer panics").push((number, id));
    });
    let mut made = made.into_inner().expect("no writer panics");
    made.sort_unstable();
    made.into_iter().map(|(_, id)| id).collect()
}

fn growth(arguments: &Arguments) {
    let opened = open();
    let mut rows = vec![row(&[
        &"memories",
        &"list 100, µs",
        &"list 100 children, µs",
        &"read by path, µs",
        &"open, CPU ms",
    ])];
    let mut filled = 0;
    for size in [1000, 10_000, 100_000].into_iter().filter(|size| *size <= arguments.memories) {
        fill(&opened, filled, size);
        filled = size;
        let list = |depth| {
            micros_each(300, |turn| {
                let after = path(u64::from(turn) * 7919 % size).to_string();
                let query = ListQuery {
                    directory: Directory::root(),
                    depth: std::num::NonZero::new(depth),
                    after: Some(after),
                    limit: 100,
                    view: View::Basic,
                };
                drop(opened.engine.list(opened.store, &query).expect("it lists"));
            })
        };
        let read = micros_each(5000, |turn| {
            let at = path(u64::from(turn) * 7919 % size);
            drop(opened.engine.memory_at(opened.store, &at, View::Full).expect("it is there"));
        });
        let opening = processor_time(|| {
            engine(&opened.directory).default_workspace().expect("it opens");
        });
        rows.push(row(&[
            &size,
            &number(list(0)),
            &number(list(2)),
            &number(read),
            &number(opening.as_secs_f64() * 1e3),
        ]));
    }
    print("Growth of one store", &rows);
}
