//! A primary with a synchronous standby.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::Backend as _;
use quipu_core::model::View;
use quipu_postgres::{PostgresBackend, PostgresSettings};

use crate::cluster::{Cluster, Options};
use crate::support::{Server, path};

const DATABASE: &str = "memory";

/// Longer than anything here should take.
const SOON: Duration = Duration::from_secs(20);

/// A primary whose commits wait for its standby.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start() -> Self {
        let primary = Cluster::start(&Options::default());
        primary.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let standby = primary.standby(&Options::default());
        primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        primary.sql("postgres", "SELECT pg_reload_conf()");
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while primary.sql("postgres", sql) != "1" {
            thread::yield_now();
        }
        Self { primary, standby }
    }

    /// Lets the standby receive nothing any more.
    fn disconnect(&self) {
        self.standby.sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
        self.standby.sql("postgres", "SELECT pg_reload_conf()");
        while self.primary.sql("postgres", "SELECT count(*) FROM pg_stat_replication") != "0" {
            thread::yield_now();
        }
    }

    fn settings(&self) -> PostgresSettings {
        PostgresSettings {
            lock_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(1),
            ..PostgresSettings::new(self.primary.url(DATABASE))
        }
    }
}

/// Somebody loses patience with a commit that waits for the standby. It has happened on the primary, and
/// nowhere else: what is said to be stored would be gone after the next failover.
fn impatient(function: &str) {
    let pair = Pair::start();
    let server = Server::open(&pair.settings());
    let store = server.new_store("tests");
    server.put(store, "/before", "text").expect("it is written");
    pair.disconnect();
    let (done, is_done) = mpsc::channel();
    let written = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let written = server.put(store, "/impatient", "text").map(drop);
            done.send(()).expect("somebody listens");
            written
        });
        let waiting = "pg_stat_activity WHERE wait_event = 'SyncRep'";
        while is_done.try_recv().is_err() {
            pair.primary.sql(DATABASE, &format!("SELECT {function}(pid) FROM {waiting}"));
        }
        writing.join().expect("no panic")
    });
    let error = written.expect_err("the standby does not have it");
    assert!(error.message().contains("could not be determined"), "{error:?}");
    drop(server);
    // The primary is lost, and the standby has to do.
    let Pair { primary, standby } = pair;
    primary.signal("KILL");
    standby.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
    standby.promote();
    standby.sql("postgres", "SELECT pg_reload_conf()");
    let server = Server::open(&PostgresSettings::new(standby.url(DATABASE)));
    server.engine.memory_at(store, &path("/before"), View::Full).expect("it was acknowledged");
    assert!(server.engine.memory_at(store, &path("/impatient"), View::Full).is_err());
    server.put(store, "/after", "text").expect("it is written");
    assert_eq!(server.engine.check().expect("it is checked").problems, []);
}

#[test]
fn a_commit_that_is_terminated_before_the_standby_has_it_is_not_acknowledged() {
    impatient("pg_terminate_backend");
}

#[test]
fn a_commit_that_is_cancelled_before_the_standby_has_it_is_not_acknowledged() {
    impatient("pg_cancel_backend");
}

/// Reads go on, and nothing can be written: a server says so, and that it is over.
#[test]
fn a_server_is_not_ready_while_no_standby_takes_commits() {
    let pair = Pair::start();
    let server = Server::open(&pair.settings());
    let store = server.new_store("tests");
    server.put(store, "/note", "text").expect("it is written");
    server.backend.condition().expect("it can be written");
    pair.standby.signal("STOP");
    let start = Instant::now();
    while server.backend.condition().is_ok() {
        assert!(start.elapsed() < SOON, "a write that is not answered is noticed");
        thread::yield_now();
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    server.engine.memory_at(store, &path("/note"), View::Full).expect("it is read");
    pair.standby.signal("CONT");
    let start = Instant::now();
    while server.backend.condition().is_err() {
        assert!(start.elapsed() < SOON, "it can be written again");
        thread::yield_now();
    }
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    assert_eq!(pair.primary.sql("postgres", waiting), "0", "no heartbeat is left waiting");
}

/// With the URL that the documentation recommends.
#[test]
fn hosts_that_cannot_be_written_are_told_apart_from_hosts_that_cannot_be_reached() {
    let primary = Cluster::start(&Options::default());
    primary.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    let standby = primary.standby(&Options::default());
    let opened = |url: String| {
        let opened = PostgresBackend::open(&PostgresSettings::new(url));
        opened.map(drop).map_err(|error| error.message().to_owned())
    };
    let writable =
        |cluster: &Cluster| format!("{}?target_session_attrs=read-write", cluster.url(DATABASE));
    let both = |one: &Cluster, other: &Cluster| {
        let host = |cluster: &Cluster| cluster.host();
        format!(
            "postgres://postgres@{},{}/{DATABASE}?target_session_attrs=read-write",
            host(one),
            host(other)
        )
    };
    opened(writable(&primary)).expect("it can be written");
    opened(both(&standby, &primary)).expect("one of them can be written");
    let refused = opened(writable(&standby)).expect_err("it cannot be written");
    assert!(refused.contains("read-only replica"), "{refused}");
    primary.signal("KILL");
    let refused = opened(both(&primary, &standby)).expect_err("none can be written");
    assert!(refused.contains("none of the hosts"), "{refused}");
    let refused = opened(writable(&primary)).expect_err("nobody is there");
    assert!(refused.contains("cannot be reached"), "{refused}");
}
