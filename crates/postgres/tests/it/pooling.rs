//! A pooler between the servers and the database.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::Sequence;
use quipu_core::model::View;
use quipu_core::{Error, ErrorKind};
use quipu_postgres::{Listening, PostgresSettings, PreparedStatements};
use tempfile::TempDir;

use crate::cluster::{Cluster, as_owner, cluster, owned_by_server};
use crate::support::{Fixture, Server, actor, fixture, path};

/// A running pgbouncer.
struct Bouncer {
    directory: TempDir,
    process: Child,
}

impl Bouncer {
    fn start(mode: &str, connections_count: usize) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let place = directory.path();
        let upstream = cluster().socket();
        let upstream = upstream.parent().expect("it is in a directory").display();
        fs::write(place.join("users"), "\"postgres\" \"\"\n").expect("it is written");
        let settings = format!(
            "[databases]\n* = host={upstream} port=5432\n
             [pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {place}\n
             auth_type = trust\nauth_file = {place}/users\npool_mode = {mode}\n
             default_pool_size = {connections_count}\nmax_client_conn = 200\nlogfile = {place}/log\n",
            place = place.display(),
        );
        fs::write(place.join("pgbouncer.ini"), settings).expect("it is written");
        owned_by_server(place);
        let process = as_owner("pgbouncer")
            .arg(place.join("pgbouncer.ini"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer is installed (Debian: apt-get install pgbouncer)");
        let bouncer = Self { directory, process };
        while !bouncer.directory.path().join(".s.PGSQL.6432").exists() {
            thread::yield_now();
        }
        bouncer
    }

    /// Runs a statement through the pooler and returns what `psql` prints.
    fn sql(&self, database: &str, sql: &str) -> String {
        Cluster::sql_at(self.directory.path(), (6432, database), sql)
    }

    fn url(&self, database: &str) -> String {
        let host = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{host}:6432/{database}")
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().map(drop).unwrap_or_default();
    }
}

/// Two servers with more writers than the pooler has connections, and a follower of the feed.
fn work_through(settings: &PostgresSettings, database: &str) {
    let servers = [Server::open(settings), Server::open(settings)];
    let store = servers[0].new_store("pooled");
    servers[0].put(store, "/counter", "0").expect("it is written");
    let start = servers[0].engine.newest_sequence().expect("it is read");
    thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut seen = start;
            while seen < Sequence(start.0 + 60) {
                seen = servers[1].engine.wait(seen, Duration::from_secs(30)).expect("it waits");
            }
        });
        for server in &servers {
            for _ in 0..6 {
                scope.spawn(|| {
                    (0..5)
                        .for_each(|_| server.increment(store, "/counter").expect("it is written"));
                });
            }
        }
        follower.join().expect("no panic");
    });
    let memory =
        servers[1].engine.memory_at(store, &path("/counter"), View::Full).expect("it is there");
    assert_eq!(memory.content.expect("it is full").as_str(), "60");
    assert_eq!(servers[0].engine.check().expect("it is checked").problems, []);
    // Nothing that was set for a transaction stays with a connection that others get.
    let path = cluster().sql(database, "SHOW search_path");
    assert!(!path.contains("quipu"), "{path}");
}

#[test]
fn a_pooler_that_gives_connections_for_sessions_needs_enough_of_them() {
    let fixture = fixture();
    let bouncer = Bouncer::start("session", 40);
    let database = fixture.database.name();
    let settings = PostgresSettings::new(bouncer.url(database));
    work_through(&settings, database);
    erase_through(settings, &fixture);
}

#[test]
fn a_pooler_that_gives_connections_for_transactions_needs_unprepared_statements() {
    let fixture = fixture();
    let bouncer = Bouncer::start("transaction", 4);
    let database = fixture.database.name();
    let settings = PostgresSettings {
        prepared_statements: PreparedStatements::Off,
        listening: Listening::Off,
        ..PostgresSettings::new(bouncer.url(database))
    };
    work_through(&settings, database);
    erase_through(settings, &fixture);
    // What is set for a session is set for none of the pooler's.
    let (sql, default) = ("SHOW lock_timeout", "0");
    assert_eq!(bouncer.sql(database, sql), default);
}

/// Erasing needs settings for its session, of which a pooler knows nothing.
fn erase_through(settings: PostgresSettings, fixture: &Fixture) {
    let error = redact_through(&settings).expect_err("it needs a session");
    assert_eq!(*error.kind(), ErrorKind::EraseIncomplete, "{error:?}");
    assert!(format!("{error:?}").contains("listen_url"), "{error:?}");
    let direct = PostgresSettings {
        listening: Listening::On,
        listen_url: Some(cluster().url(fixture.database.name())),
        ..settings
    };
    redact_through(&direct).expect("it has a way past the pooler");
    let left = fixture.server.engine.read(|reader| reader.pending_erasures());
    assert_eq!(left.expect("they are read"), []);
}

fn redact_through(settings: &PostgresSettings) -> Result<(), Error> {
    let server = Server::open(settings);
    let store = server.new_store("redacted");
    let leak = server.put(store, "/leak", "canary").expect("it is written");
    server.put(store, "/leak", "nothing").expect("it is written");
    server.engine.redact(&actor(), store, &[leak.memory.version]).map(drop)
}

/// `LISTEN` succeeds there, and nothing is ever heard.
#[test]
fn changes_are_polled_for_where_notifications_do_not_arrive() {
    let fixture = fixture();
    let bouncer = Bouncer::start("transaction", 4);
    let settings = PostgresSettings {
        prepared_statements: PreparedStatements::Off,
        ..PostgresSettings::new(bouncer.url(fixture.database.name()))
    };
    let follower = Server::open(&settings);
    let mut seen = follower.engine.newest_sequence().expect("it is read");
    for number in 0..3 {
        let start = Instant::now();
        seen = thread::scope(|scope| {
            let (follower, seen) = (&follower, seen);
            let waiting = scope.spawn(move || follower.engine.wait(seen, Duration::from_secs(30)));
            fixture.server.put(fixture.store, &format!("/{number}"), "x").expect("it is written");
            waiting.join().expect("no panic").expect("it waits")
        });
        // Who listens looks every ten seconds without being called.
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
}
