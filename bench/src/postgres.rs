//! The backend over PostgreSQL against PostgreSQL itself, on a cluster that lives as long as the run.

mod bare;
#[path = "../../crates/postgres/tests/it/cluster.rs"]
#[expect(dead_code, reason = "the tests of the backend use more of it")]
mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_core::Engine;
use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryId, Name, PrincipalName, StoreId, View};
use quipu_core::settings::Limits;
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_postgres::{PostgresBackend, PostgresSettings};
use tempfile::TempDir;

use crate::engine::{self, path, rate, scratch, text};
use crate::table::{median, micros_each, number, print, processor_time, row};
use bare::Bare;
use cluster::Database;

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// How many memories each measurement of writing creates
    #[arg(long, default_value_t = 8_000)]
    writes: u64,
    /// How many writers there are
    #[arg(long, default_value_t = 32)]
    writers: u64,
    /// How often each measurement is repeated; the median is shown
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

pub(crate) fn run(arguments: &Arguments) {
    println!("PostgreSQL and Quipu in turns on one machine, texts of 2 KB, fsync on.");
    creates(arguments);
    servers(arguments);
    reads(arguments);
    round_trips();
    sizes();
    searches(arguments);
}

/// One server's engine on a database.
struct Server {
    backend: Arc<PostgresBackend>,
    engine: Engine,
    store: StoreId,
}

impl Server {
    fn open(database: &Database, store: &str) -> Self {
        let settings = PostgresSettings { connections_max: 16, ..database.settings() };
        let backend = Arc::new(PostgresBackend::open(&settings).expect("it opens"));
        let limits = Limits {
            memories_per_store_max: u64::MAX,
            store_size_bytes_max: u64::MAX,
            ..Limits::default()
        };
        let engine = Engine::new(Arc::clone(&backend) as _, Arc::new(SystemClock), limits);
        let workspace = engine.default_workspace().expect("a workspace").id;
        let new = NewStore::named(Name::new(store).expect("a name"));
        let store = engine.create_store(workspace, &new).expect("a store").id;
        Self { backend, engine, store }
    }

    fn create(&self, memory: u64) -> MemoryId {
        let content = Content::new(text(memory)).expect("a text");
        let written = self.engine.create(&actor(), self.store, &path(memory), &content);
        written.expect("it is written").memory.id
    }
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("bench"))
}

fn creates(arguments: &Arguments) {
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let database = Database::new();
        let writer = Bare::open(&database);
        bare.push(rate(arguments.writers, arguments.writes, |memory| writer.create(memory)));
        let database = Database::new();
        let server = Server::open(&database, "bench");
        ours.push(rate(arguments.writers, arguments.writes, |memory| {
            server.create(memory);
        }));
    }
    let (bare, ours) = (median(bare), median(ours));
    print(
        &format!("Durable creates by {} writers", arguments.writers),
        &[
            row(&[&"PostgreSQL, same rows, grouped, in order", &"Quipu", &"of PostgreSQL"]),
            row(&[&per_second(bare), &per_second(ours), &number(ours / bare)]),
        ],
    );
}

fn per_second(rate: f64) -> String {
    format!("{}/s", number(rate))
}

/// Servers share two cores with the database and the load, so the CPU time of each operation is shown too.
fn servers(arguments: &Arguments) {
    let (mut one, mut two, mut spent) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let database = Database::new();
        let server = Server::open(&database, "bench");
        let cpu = processor_time(|| {
            one.push(rate(arguments.writers, arguments.writes, |memory| {
                server.create(memory);
            }));
        });
        spent.push(cpu.as_secs_f64() * 1e6 / number_of(arguments.writes));
        let database = Database::new();
        let servers = [Server::open(&database, "one"), Server::open(&database, "two")];
        let [first, second] = &servers;
        two.push(rate(arguments.writers, arguments.writes, |memory| {
            let server = if memory % 2 == 0 { first } else { second };
            server.create(memory);
        }));
    }
    let (one, two) = (median(one), median(two));
    print(
        "Creates through one server and through two, to different stores",
        &[
            row(&[&"one", &"two", &"two of one", &"CPU of the server for each"]),
            row(&[
                &per_second(one),
                &per_second(two),
                &number(two / one),
                &format!("{} µs", number(median(spent))),
            ]),
        ],
    );
}

fn number_of(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn reads(arguments: &Arguments) {
    const MEMORIES: u64 = 2_000;
    const READS: u64 = 20_000;
    let database = Database::new();
    let server = Server::open(&database, "bench");
    let ids: Vec<_> = (0..MEMORIES).map(|memory| server.create(memory)).collect();
    let bare = Bare::open(&database);
    let pick = |turn: u64| {
        let place = usize::try_from(turn * 7919 % MEMORIES).expect("small");
        *ids.get(place).expect("it is known")
    };
    let (mut select, mut by_id) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        select.push(rate(8, READS, |turn| bare.read(pick(turn))));
        by_id.push(rate(8, READS, |turn| {
            let read = server.engine.memory(server.store, pick(turn), View::Full);
            drop(read.expect("it is there"));
        }));
    }
    let (select, by_id) = (median(select), median(by_id));
    print(
        "Reads by id, 8 readers",
        &[
            row(&[&"prepared SELECT", &"Quipu", &"of SELECT"]),
            row(&[&per_second(select), &per_second(by_id), &number(by_id / select)]),
        ],
    );
}

/// Counts how often a call waits for the database, after its statements were prepared.
fn round_trips() {
    const CALLS: u64 = 100;
    let database = Database::new();
    let server = Server::open(&database, "bench");
    let ids: Vec<_> = (0..CALLS).map(|memory| server.create(memory)).collect();
    let count = |work: &mut dyn FnMut()| {
        let before = server.backend.round_trips_count();
        work();
        number(number_of(server.backend.round_trips_count() - before) / number_of(CALLS))
    };
    let create = count(&mut || {
        for memory in CALLS..2 * CALLS {
            server.create(memory);
        }
    });
    let change = count(&mut || {
        for memory in 0..CALLS {
            let content = Content::new(text(memory + 1)).expect("a text");
            let target = (&path(memory), &content);
            let put = server.engine.put(&actor(), server.store, target, Precondition::None);
            put.expect("it is written");
        }
    });
    let read = count(&mut || {
        for id in &ids {
            drop(server.engine.memory(server.store, *id, View::Full).expect("it is there"));
        }
    });
    print(
        "Round trips of one call",
        &[row(&[&"create", &"change", &"read by id"]), row(&[&create, &change, &read])],
    );
}

/// What a version and a memory take in the database, for the model of scale.
fn sizes() {
    const MEMORIES: u64 = 4_000;
    let database = Database::new();
    let server = Server::open(&database, "bench");
    let log = |sql: &str| database.number(sql);
    let before = log("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint");
    for memory in 0..MEMORIES {
        server.create(memory);
    }
    let logged = log("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint") - before;
    let of = |tables: &str| {
        log(&format!(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                WHERE relnamespace = 'quipu'::regnamespace AND relkind = 'r' AND relname ~ '{tables}'"
        ))
    };
    let each = |bytes: f64| format!("{} B", number(bytes / number_of(MEMORIES)));
    print(
        "Bytes for each create of 2 KB",
        &[
            row(&[&"versions", &"memories", &"changes", &"write-ahead log"]),
            row(&[
                &each(of("^versions_")),
                &each(of("^memories_")),
                &each(of("^changes$")),
                &each(logged),
            ]),
        ],
    );
}

fn searches(arguments: &Arguments) {
    const MEMORIES: u64 = 2_000;
    let mut embedded = engine::open();
    embedded.add_store("search");
    embedded.fill(MEMORIES, text);
    let database = Database::new();
    let server = Server::open(&database, "search");
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(memory) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < MEMORIES)
                {
                    server.create(memory);
                }
            });
        }
    });
    let directory: TempDir = scratch();
    let knowledge = Knowledge::on_demand(server.engine.clone(), directory.path(), u64::MAX);
    let search = |knowledge: &Knowledge, store| {
        let request = SearchRequest::new(vec![store], "kettle boils 1234");
        assert!(!knowledge.search(&request).expect("it searches").hits.is_empty());
    };
    search(&knowledge, server.store);
    search(&embedded.engine, embedded.store);
    let (mut there, mut here) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        there.push(micros_each(200, |_| search(&embedded.engine, embedded.store)));
        here.push(micros_each(200, |_| search(&knowledge, server.store)));
    }
    let (there, here) = (median(there), median(here));
    print(
        "A warm search among 2,000 memories",
        &[
            row(&[&"embedded", &"PostgreSQL", &"speed of embedded", &"index of each memory"]),
            row(&[
                &format!("{} µs", number(there)),
                &format!("{} µs", number(here)),
                &number(there / here),
                &format!(
                    "{} B",
                    number(number_of(knowledge.index_size_bytes()) / number_of(MEMORIES))
                ),
            ]),
        ],
    );
}

impl Database {
    fn number(&self, sql: &str) -> f64 {
        cluster::cluster().sql(self.name(), sql).parse().expect("it is a number")
    }
}
