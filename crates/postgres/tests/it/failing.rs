//! Connections that break, at any moment.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use quipu_core::backend::{Backend as _, Sequence, VersionQuery};
use quipu_core::model::View;
use quipu_postgres::{Listening, PostgresSettings};

use crate::cluster::cluster;
use crate::support::{Server, fixture, path};

/// A proxy that breaks one connection at a chosen moment.
struct Proxy {
    port: u16,
    plan: Arc<Plan>,
}

/// When to break.
#[derive(Default)]
struct Plan {
    /// After how many packets of the client, counted over all connections; 0 never.
    after: AtomicUsize,
    packets_count: AtomicUsize,
    /// Whether the server still gets the packet.
    delivers: AtomicBool,
    has_broken: AtomicBool,
}

/// What becomes of the packet at which the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Packet {
    Lost,
    Delivered,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let plan = Arc::new(Plan::default());
        let shared = Arc::clone(&plan);
        // It ends with the process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(cluster().socket()).expect("the server listens");
                let back = server.try_clone().and_then(|it| Ok((it, client.try_clone()?)));
                let back = back.expect("descriptors are left");
                let plan = Arc::clone(&shared);
                thread::spawn(move || forward(client, server, &plan));
                thread::spawn(move || copy(back.0, back.1));
            }
        });
        Self { port, plan }
    }

    fn arm(&self, after: usize, packet: Packet) {
        self.plan.packets_count.store(0, Ordering::SeqCst);
        self.plan.delivers.store(packet == Packet::Delivered, Ordering::SeqCst);
        self.plan.has_broken.store(false, Ordering::SeqCst);
        self.plan.after.store(after, Ordering::SeqCst);
    }

    fn has_broken(&self) -> bool {
        self.plan.has_broken.load(Ordering::SeqCst)
    }
}

fn forward(mut client: TcpStream, mut server: UnixStream, plan: &Plan) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let number = plan.packets_count.fetch_add(1, Ordering::SeqCst) + 1;
        let breaks = number == plan.after.load(Ordering::SeqCst);
        let is_delivered = !breaks || plan.delivers.load(Ordering::SeqCst);
        let packet = buffer.get(..count).unwrap_or_default();
        if is_delivered && server.write_all(packet).is_err() {
            break;
        }
        if breaks {
            plan.has_broken.store(true, Ordering::SeqCst);
            // The answer is lost, and the server is not told.
            client.shutdown(Shutdown::Both).unwrap_or_default();
            return;
        }
    }
    client.shutdown(Shutdown::Both).unwrap_or_default();
    server.shutdown(Shutdown::Both).unwrap_or_default();
}

fn copy(mut from: UnixStream, mut to: TcpStream) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Both).unwrap_or_default();
    from.shutdown(Shutdown::Both).unwrap_or_default();
}

#[test]
fn a_connection_that_breaks_anywhere_loses_and_duplicates_nothing() {
    let fixture = fixture();
    let proxy = Proxy::start();
    let name = fixture.database.name();
    let settings = PostgresSettings {
        listening: Listening::Off,
        lock_timeout: std::time::Duration::from_secs(4),
        ..PostgresSettings::new(format!("postgres://postgres@127.0.0.1:{}/{name}", proxy.port))
    };
    let server = Server::open(&settings);
    server.put(fixture.store, "/warm", "up").expect("it is written");
    let mut breaks_count = 0;
    for packet in [Packet::Lost, Packet::Delivered] {
        for after in 1.. {
            let at = format!("/{packet:?}/{after}");
            proxy.arm(after, packet);
            let written = server.put(fixture.store, &at, "text");
            let has_broken = proxy.has_broken();
            proxy.arm(0, packet);
            written.unwrap_or_else(|error| panic!("cut after {after}, {packet:?}: {error:?}"));
            if !has_broken {
                break;
            }
            breaks_count += 1;
            let memory = server
                .engine
                .memory_at(fixture.store, &path(&at), View::Full)
                .expect("it is there");
            let query = VersionQuery {
                filter: quipu_core::backend::VersionFilter {
                    memory: Some(memory.id),
                    ..Default::default()
                },
                before: None,
                limit: 10,
                view: View::Basic,
            };
            let mut versions_count = 0;
            server
                .backend
                .read(&mut |reader| {
                    versions_count = reader.versions(fixture.store, &query)?.len();
                    Ok(())
                })
                .expect("they are read");
            assert_eq!(versions_count, 1, "cut after {after}, {packet:?}");
        }
    }
    assert!(breaks_count >= 6, "only {breaks_count} moments were tried");
    let changes = server.engine.changes(Sequence(0), 1_000).expect("they are read").items;
    let expected: Vec<_> = (1..).take(changes.len()).collect();
    assert_eq!(changes.iter().map(|change| change.sequence.0).collect::<Vec<_>>(), expected);
    assert_eq!(server.engine.check().expect("it is checked").problems, []);
}

#[test]
fn a_storm_of_terminated_connections_loses_and_duplicates_nothing() {
    const WRITERS: usize = 6;
    const INCREMENTS: usize = 15;
    let fixture = fixture();
    fixture.server.put(fixture.store, "/counter", "0").expect("it is written");
    let is_over = AtomicBool::new(false);
    let acknowledged = AtomicUsize::new(0);
    let terminated: usize = thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let sql = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE datname = '{}' AND application_name = 'quipu'",
                fixture.database.name()
            );
            let mut count = 0;
            while !is_over.load(Ordering::SeqCst) {
                count += cluster().sql("postgres", &sql).parse::<usize>().expect("a number");
            }
            count
        });
        let write = || {
            for _ in 0..INCREMENTS {
                let is_written = fixture.server.increment(fixture.store, "/counter").is_ok();
                acknowledged.fetch_add(usize::from(is_written), Ordering::SeqCst);
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        is_over.store(true, Ordering::SeqCst);
        storm.join().expect("no panic")
    });
    let memory = fixture.server.engine.memory_at(fixture.store, &path("/counter"), View::Full);
    let memory = memory.expect("it is there");
    let found: usize = memory.content.expect("it is full").as_str().parse().expect("a number");
    let acknowledged = acknowledged.into_inner();
    assert!(terminated > 0, "nothing was terminated");
    assert!(acknowledged > 0, "nothing was written in the storm");
    assert_eq!(found, acknowledged, "{terminated} connections were terminated");
    assert_eq!(fixture.server.engine.check().expect("it is checked").problems, []);
}

/// A replica that lacks the newest changes was promoted: here their rows are taken out.
#[test]
fn followers_start_over_when_changes_that_they_saw_are_lost() {
    let fixture = fixture();
    let server = &fixture.server;
    for number in 0..10 {
        server.put(fixture.store, &format!("/{number}"), "text").expect("it is written");
    }
    let seen = server.engine.newest_sequence().expect("it is read");
    assert_eq!(seen, Sequence(11));
    let lose = "BEGIN;
        DELETE FROM quipu.memories WHERE updated_at IN (SELECT at FROM quipu.changes WHERE sequence > 8);
        DELETE FROM quipu.versions WHERE at IN (SELECT at FROM quipu.changes WHERE sequence > 8);
        DELETE FROM quipu.changes WHERE sequence > 8;
        UPDATE quipu.counter SET sequence = 8, at = (SELECT max(at) FROM quipu.changes);
        COMMIT";
    cluster().sql(fixture.database.name(), lose);
    // A server without a memory: it notices a follower that is ahead of the feed.
    let other = Server::open(&fixture.database.settings());
    assert!(other.engine.changes(seen, 10).expect("they are read").has_gap);
    // A server that remembers begins a new generation, past everything that was seen.
    let start = server.engine.newest_sequence().expect("it is read");
    assert!(start > seen, "{start:?}");
    server.put(fixture.store, "/new", "text").expect("it is written");
    for follower in [server, &other] {
        for cursor in [Sequence(3), Sequence(8), Sequence(9), seen] {
            assert!(
                follower.engine.changes(cursor, 10).expect("they are read").has_gap,
                "{cursor:?}"
            );
        }
        let next = follower.engine.changes(start, 10).expect("they are read");
        assert_eq!((next.has_gap, next.items.len()), (false, 1));
    }
}
