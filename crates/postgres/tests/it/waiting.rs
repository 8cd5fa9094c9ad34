//! Who waits for whom, and who does not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::ErrorKind;
use quipu_core::model::{Id as _, StoreId, View};
use quipu_postgres::PostgresSettings;

use crate::cluster::cluster;
use crate::support::{Fixture, Server, actor, fixture, path};

/// How many partitions the tables with texts have.
const PARTITIONS: i64 = 16;

/// Generous: these tests are about waiting for locks of seconds, on a machine that does other things.
const SOON: Duration = Duration::from_secs(5);

fn patient(fixture: &Fixture, lock_timeout: Duration) -> Server {
    Server::open(&PostgresSettings { lock_timeout, ..fixture.database.settings() })
}

/// Returns a store in each partition, in order.
fn store_in_each_partition(server: &Server) -> Vec<StoreId> {
    let stores: Vec<_> =
        (0..PARTITIONS).map(|number| server.new_store(&format!("store {number}"))).collect();
    let mut placed: Vec<_> =
        stores.into_iter().map(|store| (partition(server, store), store)).collect();
    placed.sort_unstable();
    assert!(placed.iter().map(|(partition, _)| *partition).eq(0..PARTITIONS));
    placed.into_iter().map(|(_, store)| store).collect()
}

fn partition(server: &Server, store: StoreId) -> i64 {
    let sql = format!("SELECT num % {PARTITIONS} FROM quipu.stores WHERE id = '{}'", uuid(store));
    cluster().sql(&server.database, &sql).parse().expect("a number")
}

fn uuid(store: StoreId) -> String {
    format!("{:032x}", store.bits())
}

/// As `VACUUM FULL` does for minutes.
const REWRITE: &str = "LOCK TABLE quipu.versions_3 IN ACCESS EXCLUSIVE MODE";

#[test]
fn a_rewrite_makes_only_the_stores_of_its_partition_wait() {
    let fixture = fixture();
    let server = patient(&fixture, Duration::from_secs(2));
    let stores = store_in_each_partition(&server);
    for store in &stores {
        server.put(*store, "/note", "text").expect("it is written");
    }
    let rewriting = cluster().hold(fixture.database.name(), REWRITE);
    let start = Instant::now();
    thread::scope(|scope| {
        // More of them than there are connections.
        for _ in 0..16 {
            scope.spawn(|| {
                for refused in [
                    server.put(stores[3], "/note", "other").map(drop),
                    server.engine.memory_at(stores[3], &path("/note"), View::Full).map(drop),
                ] {
                    let error = refused.expect_err("its tables are locked");
                    assert_eq!(*error.kind(), ErrorKind::StorageBusy, "{error:?}");
                    assert!(error.message().contains("a redaction rewrites"), "{error:?}");
                }
            });
        }
        for (partition, store) in stores.iter().enumerate().filter(|(number, _)| *number != 3) {
            let server = &server;
            scope.spawn(move || {
                for turn in 0..5 {
                    let start = Instant::now();
                    server.put(*store, "/note", &format!("{turn}")).expect("it is written");
                    let memory = server.engine.memory_at(*store, &path("/note"), View::Full);
                    memory.expect("it is read");
                    let taken = start.elapsed();
                    assert!(taken < server.settings.lock_timeout, "{partition}: {taken:?}");
                }
            });
        }
        scope.spawn(|| server.new_store("made meanwhile"));
    });
    assert!(start.elapsed() < server.settings.lock_timeout * 2 + SOON, "{:?}", start.elapsed());
    drop(rewriting);
    server.put(stores[3], "/note", "at last").expect("it is free");
}

#[test]
fn a_write_waits_for_the_end_of_a_rewrite() {
    let fixture = fixture();
    let server = patient(&fixture, Duration::from_secs(30));
    let stores = store_in_each_partition(&server);
    let rewriting = cluster().hold(fixture.database.name(), REWRITE);
    thread::scope(|scope| {
        let writing = scope.spawn(|| server.put(stores[3], "/note", "text").map(drop));
        let reading = scope.spawn(|| server.engine.usage(stores[3]).map(drop));
        let others = scope.spawn(|| server.put(stores[4], "/note", "text").map(drop));
        others.join().expect("no panic").expect("it is written");
        drop(rewriting);
        reading.join().expect("no panic").expect("it is read");
        writing.join().expect("no panic").expect("it is written");
    });
}

/// Another server is in the middle of a long change of one store, such as a redaction.
#[test]
fn a_store_that_is_held_holds_up_no_other() {
    let fixture = fixture();
    let server = patient(&fixture, Duration::from_secs(20));
    let others: Vec<_> = (0..8).map(|number| server.new_store(&format!("{number}"))).collect();
    for store in others.iter().chain([&fixture.store]) {
        server.put(*store, "/note", "text").expect("it is written");
    }
    let sql =
        format!("SELECT num FROM quipu.stores WHERE id = '{}' FOR UPDATE", uuid(fixture.store));
    let held = cluster().hold(fixture.database.name(), &sql);
    let (is_free, waiting_count) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..8)
            .map(|number| {
                let (server, is_free, waiting_count) = (&server, &is_free, &waiting_count);
                let store = fixture.store;
                scope.spawn(move || {
                    waiting_count.fetch_add(1, Ordering::SeqCst);
                    let written = server.put(store, &format!("/{number}"), "text");
                    assert!(is_free.load(Ordering::SeqCst), "nobody else may write it");
                    written.map(drop)
                })
            })
            .collect();
        while waiting_count.load(Ordering::SeqCst) < waiting.len() {
            thread::yield_now();
        }
        let writing = others.iter().map(|store| {
            let server = &server;
            scope.spawn(move || {
                let start = Instant::now();
                for turn in 0..10 {
                    server.put(*store, "/note", &format!("{turn}")).expect("it is written");
                }
                start.elapsed()
            })
        });
        let writing: Vec<_> = writing.collect();
        for thread in writing {
            let taken = thread.join().expect("no panic");
            assert!(taken < SOON, "{taken:?}");
        }
        is_free.store(true, Ordering::SeqCst);
        drop(held);
        for thread in waiting {
            thread.join().expect("no panic").expect("it is written when the store is free");
        }
    });
}

/// Sixteen writers of one store on each of three servers, and one of another store on each.
#[expect(clippy::print_stdout, reason = "how evenly turns are shared is worth a look")]
#[test]
fn nobody_starves() {
    const WRITERS: usize = 16;
    const FOR: Duration = Duration::from_secs(4);
    let fixture = fixture();
    let servers: Vec<_> = (0..3).map(|_| Server::open(&fixture.database.settings())).collect();
    let quiet = fixture.server.new_store("quiet");
    let waits = Mutex::new(Vec::new());
    let counts: Vec<_> = (0..3 * WRITERS).map(|_| AtomicUsize::new(0)).collect();
    let quiet_count = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for (writer, (server, count)) in servers.iter().cycle().zip(&counts).enumerate() {
            let (waits, store) = (&waits, fixture.store);
            scope.spawn(move || {
                while start.elapsed() < FOR {
                    let begun = Instant::now();
                    let text = count.fetch_add(1, Ordering::SeqCst).to_string();
                    server.put(store, &format!("/{writer}"), &text).expect("written");
                    waits.lock().expect("no panic").push(begun.elapsed());
                }
            });
        }
        let server = &servers[0];
        let quiet_count = &quiet_count;
        scope.spawn(move || {
            while start.elapsed() < FOR {
                let text = quiet_count.fetch_add(1, Ordering::SeqCst).to_string();
                server.put(quiet, "/note", &text).expect("it is written");
            }
        });
    });
    let counts: Vec<_> = counts.into_iter().map(AtomicUsize::into_inner).collect();
    let mean = counts.iter().sum::<usize>() / counts.len();
    let least = counts.iter().min().expect("there are some");
    assert!(least * 10 >= mean, "one writer had {least} turns, and all had {mean} on average");
    let mut waits = waits.into_inner().expect("no panic");
    waits.sort_unstable();
    let late = waits[waits.len() * 99 / 100];
    assert!(late < Duration::from_secs(3), "one write in a hundred took more than {late:?}");
    let quiet_count = quiet_count.into_inner();
    assert!(quiet_count >= 10, "the other store was written {quiet_count} times");
    println!(
        "{} writes, {least} to {} each, p99 {late:?}; {quiet_count} to the other store",
        waits.len(),
        counts.iter().max().expect("there are some")
    );
}

/// What a redaction rewrites takes as long as it takes; nobody else notices.
#[test]
fn redactions_hold_up_no_writer_of_another_partition() {
    let fixture = fixture();
    let server = &fixture.server;
    let stores = store_in_each_partition(server);
    let longest = Mutex::new(Duration::ZERO);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for store in &stores[8..] {
            let (longest, is_over) = (&longest, &is_over);
            scope.spawn(move || {
                let mut turn = 0;
                while !is_over.load(Ordering::SeqCst) {
                    turn += 1;
                    let start = Instant::now();
                    server.put(*store, "/note", &format!("{turn}")).expect("it is written");
                    let mut longest = longest.lock().expect("no panic");
                    *longest = start.elapsed().max(*longest);
                }
            });
        }
        for turn in 0..4 {
            for store in &stores[..4] {
                let leak = server.put(*store, "/leak", &format!("leak {turn}")).expect("written");
                server.put(*store, "/leak", "nothing").expect("it is written");
                let redacted = server.engine.redact(&actor(), *store, &[leak.memory.version]);
                redacted.expect("it is redacted, although others write");
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let longest = longest.into_inner().expect("no panic");
    assert!(longest < SOON, "{longest:?}");
    let left = server.engine.read(|reader| reader.pending_erasures()).expect("they are read");
    assert_eq!(left, []);
}
