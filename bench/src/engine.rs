//! The engine and its embedded storage against bare SQLite.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_core::backend::{MemoryQuery, Sequence};
use quipu_core::clock::SystemClock;
use quipu_core::engine::{ListQuery, NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, Directory, MemoryPath, Name, PrincipalName, StoreId, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine};
use quipu_sqlite::{OpenMode, SqliteBackend};

use crate::bare::{self, Bare, Rows};
use crate::table::{median, number, print, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many versions each measurement of writing makes.
    #[arg(long, default_value_t = 8000)]
    writes: u64,
    /// How often each measurement is repeated; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

const MEMORIES: u64 = 1000;
const SIZE_BYTES: usize = 2048;

pub(crate) fn run(arguments: &Arguments) {
    if arguments.rounds == 99 {
        only_quipu(8, arguments.writes);
        return;
    }
    if arguments.rounds == 98 {
        only_quipu(1, arguments.writes);
        return;
    }
    writes(arguments);
}

struct Opened {
    engine: Engine,
    store: StoreId,
    _directory: tempfile::TempDir,
}

fn open() -> Opened {
    let directory = tempfile::tempdir_in(".").expect("a directory can be made here");
    let backend = SqliteBackend::open(directory.path(), OpenMode::Create).expect("it opens");
    let limits = Limits {
        memories_per_store_max: u64::MAX,
        store_size_bytes_max: u64::MAX,
        ..Limits::default()
    };
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), limits);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let store = engine
        .create_store(workspace, &NewStore::named(Name::new("bench").expect("a name")))
        .expect("a store");
    Opened { engine, store: store.id, _directory: directory }
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("bench"))
}

fn text(seed: u64) -> String {
    let line = format!("- [fact] note {seed} says that the kettle boils at ninety degrees #tea\n");
    let mut text = line.repeat(SIZE_BYTES / line.len() + 1);
    text.truncate(SIZE_BYTES);
    text
}

fn path(memory: u64) -> MemoryPath {
    MemoryPath::parse(&format!("/notes/{memory:06}.md")).expect("a valid path")
}

fn rate(writers: u64, writes: u64, write: impl Fn(u64) + Sync) -> f64 {
    let next = AtomicU64::new(0);
    let elapsed = time(|| {
        std::thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= writes {
                            break;
                        }
                        write(number);
                    }
                });
            }
        });
    });
    writes as f64 / elapsed.as_secs_f64()
}

fn writes(arguments: &Arguments) {
    let mut rows = vec![vec![
        "writers".into(),
        "bare text row/s".into(),
        "bare same rows/s".into(),
        "quipu/s".into(),
        "of bare same".into(),
        "of bare text".into(),
    ]];
    for writers in [1, 8] {
        let writes = if writers == 1 { arguments.writes / 4 } else { arguments.writes };
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        for _ in 0..arguments.rounds {
            for (kind, out) in [(Rows::TextOnly, &mut a), (Rows::SameAsQuipu, &mut b)] {
                let directory = tempfile::tempdir_in(".").unwrap();
                let bare = Bare::open(directory.path(), kind);
                out.push(rate(writers, writes, |n| bare.write(n % MEMORIES, &text(n))));
            }
            let opened = open();
            let who = actor();
            c.push(rate(writers, writes, |n| {
                opened
                    .engine
                    .put(
                        &who,
                        opened.store,
                        (&path(n % MEMORIES), &Content::new(text(n)).unwrap()),
                        Precondition::None,
                    )
                    .unwrap();
            }));
        }
        let (a, b, c) = (median(a), median(b), median(c));
        rows.push(vec![
            writers.to_string(),
            number(a),
            number(b),
            number(c),
            number(c / b),
            number(c / a),
        ]);
    }
    print("Durable writes of 2 KB", &rows);
}
#[allow(dead_code)]
pub(crate) fn only_quipu(writers: u64, writes: u64) {
    let opened = open();
    let who = actor();
    let r = rate(writers, writes, |n| {
        opened
            .engine
            .put(
                &who,
                opened.store,
                (&path(n % MEMORIES), &Content::new(text(n)).unwrap()),
                Precondition::None,
            )
            .unwrap();
    });
    println!("{r}");
}
