//! Connections that break, at any moment.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::backend::{Sequence, VersionFilter, VersionQuery};
use quipu_core::model::{StoreId, View};
use quipu_postgres::PostgresSettings;

use crate::cluster::cluster;
use crate::proxy::{self, Cut, Packet, Proxy, Side};
use crate::support::{Fixture, Server, fixture, path};

/// Returns the moments at which a connection may break, apart from the packet's number.
fn moments(server: proxy::Server) -> impl Iterator<Item = Cut> {
    let cut = move |from, packet| Cut { from, at: 1, packet, server };
    [
        cut(Side::Client, Packet::Lost),
        cut(Side::Client, Packet::Half),
        cut(Side::Client, Packet::Delivered),
        cut(Side::Server, Packet::Lost),
        cut(Side::Server, Packet::Half),
    ]
    .into_iter()
}

/// Writes a memory while connections break, and checks that it is there once.
fn write_through(proxy: &Proxy, fixture: &Fixture, server: &Server, cuts: &[Cut]) -> usize {
    // Whatever broke before is connected again.
    proxy.arm(&[]);
    server.put(fixture.store, "/warm", &format!("{cuts:?}")).expect("it is written");
    proxy.arm(cuts);
    let at = format!("/{}", fixture.server.engine.newest_sequence().expect("it is read").0);
    let written = server.put(fixture.store, &at, "text");
    let broken_count = proxy.broken_count();
    proxy.arm(&[]);
    assert!(written.is_ok(), "{cuts:?}: {:?}", written.err());
    assert_eq!(versions_count(&fixture.server, fixture.store, &at), 1, "{cuts:?}");
    broken_count
}

pub(crate) fn versions_count(server: &Server, store: StoreId, at: &str) -> usize {
    let filter = VersionFilter { path: Some(path(at)), ..VersionFilter::default() };
    let query = VersionQuery { filter, before: None, limit: 10, view: View::Basic };
    server.engine.read(|reader| Ok(reader.versions(store, &query)?.len())).expect("they are read")
}

pub(crate) fn assert_sound(server: &Server) {
    let changes = server.engine.changes(Sequence(0), 100_000).expect("they are read").items;
    let expected: Vec<_> = (1..).take(changes.len()).collect();
    assert_eq!(changes.iter().map(|change| change.sequence.0).collect::<Vec<_>>(), expected);
    assert_eq!(server.engine.check().expect("it is checked").problems, []);
}

#[test]
fn a_connection_that_breaks_anywhere_loses_and_duplicates_nothing() {
    let fixture = fixture();
    let proxy = Proxy::start();
    let settings = PostgresSettings {
        lock_timeout: Duration::from_millis(1500),
        ..proxy.settings(fixture.database.name())
    };
    let server = Server::open(&settings);
    let mut breaks_count = 0;
    for cut in moments(proxy::Server::Waiting) {
        for at in 1.. {
            if write_through(&proxy, &fixture, &server, &[Cut { at, ..cut }]) == 0 {
                break;
            }
            breaks_count += 1;
        }
    }
    assert!(breaks_count >= 15, "only {breaks_count} moments were tried");
    assert_sound(&fixture.server);
}

/// The commit breaks, so its outcome is looked up; then that breaks, or what is done after it.
#[test]
fn a_look_up_that_breaks_anywhere_loses_and_invents_nothing() {
    /// A write takes three round trips, the last of which commits.
    const COMMIT: usize = 3;
    let fixture = fixture();
    let proxy = Proxy::start();
    let server = Server::open(&proxy.settings(fixture.database.name()));
    let mut breaks_count = 0;
    for first in moments(proxy::Server::Told) {
        let first = Cut { at: COMMIT, ..first };
        assert_eq!(write_through(&proxy, &fixture, &server, &[first]), 1);
        for second in moments(proxy::Server::Told).filter(|cut| cut.packet != Packet::Half) {
            for at in 1.. {
                let second = Cut { at, ..second };
                if write_through(&proxy, &fixture, &server, &[first, second]) < 2 {
                    break;
                }
                breaks_count += 1;
            }
        }
    }
    assert!(breaks_count >= 50, "only {breaks_count} moments were tried");
    assert_sound(&fixture.server);
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
    server.engine.rebuild().expect("the usage is counted again");
    assert_eq!(server.engine.check().expect("it is checked").problems, []);
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
