//! What is wrong with the database is said clearly, and nothing is written.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::ErrorKind;
use quipu_core::backend::Backend as _;
use quipu_postgres::{PostgresBackend, PostgresSettings};

use crate::cluster::{Database, cluster};
use crate::proxy::Proxy;
use crate::support::{Server, fixture};

/// Longer than any refusal should take.
const SOON: Duration = Duration::from_secs(20);

fn refusal(settings: &PostgresSettings) -> (ErrorKind, String) {
    let start = Instant::now();
    let error = PostgresBackend::open(settings).map(drop).expect_err("it is refused");
    assert!(start.elapsed() < SOON, "the refusal took {:?}", start.elapsed());
    assert!(error.hint().is_some(), "{error:?}");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    (error.kind().clone(), error.message().to_owned())
}

fn assert_refused(settings: &PostgresSettings, kind: &ErrorKind, message: &str) {
    let (found, text) = refusal(settings);
    assert_eq!((&found, text.contains(message)), (kind, true), "{text}");
}

#[test]
fn a_wrong_password_is_refused() {
    let database = Database::new();
    let sql = "SET password_encryption = 'scram-sha-256';
        CREATE ROLE guarded LOGIN PASSWORD 'right'";
    cluster().sql(database.name(), sql);
    let url = |user: &str| cluster().url(database.name()).replacen("postgres@", user, 1);
    let wrong = PostgresSettings::new(url("guarded:s3cret@"));
    let expected = "authentication failed";
    assert_refused(&wrong, &ErrorKind::StorageUnavailable, expected);
    let none = PostgresSettings::new(url("guarded@"));
    assert_refused(&none, &ErrorKind::StorageUnavailable, "requires a password");
    let right = PostgresSettings::new(url("guarded:right@"));
    // The password is right, and the rights are missing.
    assert_refused(&right, &ErrorKind::StorageUnavailable, "lacks a privilege");
}

#[test]
fn an_unreachable_host_is_refused() {
    let settings = PostgresSettings::new("postgres://ada:s3cret@127.0.0.1:1/memory");
    assert_refused(&settings, &ErrorKind::StorageUnavailable, "cannot be reached");
}

/// The system refuses a broadcast address, and that has nothing to do with the rights of a user.
#[test]
fn a_host_that_the_system_refuses_to_reach_is_not_taken_for_a_replica() {
    let settings = PostgresSettings::new("postgres://ada:s3cret@255.255.255.255/memory");
    assert_refused(&settings, &ErrorKind::StorageUnavailable, "cannot be reached");
}

#[test]
fn a_host_that_accepts_and_never_answers_does_not_keep_the_next_one_from_being_tried() {
    let database = Database::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let silent = silent.local_addr().expect("it is bound").port();
    let (proxy, name) = (Proxy::start(), database.name());
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(300),
        ..PostgresSettings::new(format!(
            "postgres://postgres@127.0.0.1:{silent},127.0.0.1:{}/{name}",
            proxy.port()
        ))
    };
    let start = Instant::now();
    let server = Server::open(&settings);
    assert!(start.elapsed() >= settings.connect_timeout);
    // From then on the host that has answered is tried first.
    let start = Instant::now();
    let store = server.new_store("tests");
    server.put(store, "/note", "text").expect("it is written");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    let alone = PostgresSettings {
        url: format!("postgres://postgres:s3cret@127.0.0.1:{silent}/{name}"),
        ..settings
    };
    assert_refused(&alone, &ErrorKind::StorageUnavailable, "does not answer");
}

/// Its connections stay open: only that nothing is answered tells that it is gone.
#[test]
fn a_host_that_stops_answering_is_left_for_the_next_one() {
    let database = Database::new();
    let (one, other, name) = (Proxy::start(), Proxy::start(), database.name());
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(300),
        ..PostgresSettings::new(format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/{name}",
            one.port(),
            other.port()
        ))
    };
    let server = Server::open(&settings);
    let store = server.new_store("tests");
    server.put(store, "/note", "text").expect("it is written");
    one.freeze();
    let start = Instant::now();
    server.put(store, "/other", "text").expect("it is written through the other host");
    let taken = start.elapsed();
    // Waiting for the answer would take this long.
    assert!(taken < settings.statement_timeout / 2, "{taken:?}");
    assert_eq!(server.engine.usage(store).expect("it is read").memories_count, 2);
}

#[test]
fn a_database_that_does_not_exist_is_refused() {
    let settings = PostgresSettings::new(cluster().url("nowhere"));
    assert_refused(&settings, &ErrorKind::StorageUnavailable, "no database of this name");
}

#[test]
fn a_schema_of_another_program_is_refused_and_left_alone() {
    let database = Database::new();
    cluster().sql(database.name(), "CREATE SCHEMA theirs; CREATE TABLE theirs.stores (id int)");
    let settings = PostgresSettings { schema: "theirs".to_owned(), ..database.settings() };
    assert_refused(&settings, &ErrorKind::StorageUnusable, "belongs to another program");
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace";
    assert_eq!(cluster().sql(database.name(), tables), "1");
}

#[test]
fn a_schema_of_a_newer_program_is_refused() {
    let database = Database::new();
    let newer = "UPDATE quipu.quipu_schema SET version = 99, compatible_from = 99";
    cluster().sql(database.name(), newer);
    assert_refused(&database.settings(), &ErrorKind::StorageUnusable, "has schema 99");
    // It says that programs of this version may go on.
    cluster().sql(database.name(), "UPDATE quipu.quipu_schema SET compatible_from = 1");
    PostgresBackend::open(&database.settings()).expect("it opens");
}

#[test]
fn an_older_schema_waits_for_its_migration() {
    let database = Database::new();
    cluster().sql(database.name(), "UPDATE quipu.quipu_schema SET version = 0");
    let error = PostgresBackend::open(&database.settings()).map(drop).expect_err("it is refused");
    assert!(error.hint().is_some_and(|hint| hint.contains("quipu migrate")), "{error:?}");
}

#[test]
fn many_servers_may_start_on_an_empty_database_at_once() {
    let database = Database::new();
    cluster().sql(database.name(), "DROP SCHEMA quipu CASCADE");
    let settings = PostgresSettings { connections_max: 1, ..database.settings() };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| PostgresBackend::open(&settings).map(drop).expect("it opens"));
        }
    });
    assert_eq!(
        quipu_postgres::schema_version(&settings).expect("it reads"),
        quipu_postgres::schema_known()
    );
}

#[test]
fn a_schema_may_have_any_name() {
    let database = Database::new();
    let settings =
        PostgresSettings { schema: "Ada's \"own\" schema".to_owned(), ..database.settings() };
    let server = Server::open(&settings);
    let store = server.new_store("tests");
    server.put(store, "/note", "text").expect("it is written");
    assert_eq!(server.engine.usage(store).expect("it is read").memories_count, 1);
    let other = Server::open(&database.settings());
    assert_eq!(other.engine.newest_sequence().expect("it is read").0, 0);
}

#[test]
fn a_read_only_database_can_be_read_and_says_why_it_cannot_be_written() {
    let fixture = fixture();
    fixture.server.put(fixture.store, "/note", "text").expect("it is written");
    let name = fixture.database.name();
    let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    cluster().sql(name, &sql);
    let settings =
        PostgresSettings { lock_timeout: Duration::from_secs(1), ..fixture.database.settings() };
    let server = Server::open(&settings);
    assert_eq!(server.engine.usage(fixture.store).expect("it is read").memories_count, 1);
    for refused in [
        server.put(fixture.store, "/other", "text").map(drop),
        server.backend.condition().map(drop),
    ] {
        let error = refused.expect_err("it cannot be written");
        assert_eq!(*error.kind(), ErrorKind::StorageUnavailable);
        assert!(error.message().contains("read-only"), "{error:?}");
    }
}

#[test]
fn a_reader_waits_for_a_connection_for_a_bounded_time() {
    let database = Database::new();
    let settings = PostgresSettings {
        connections_max: 1,
        pool_timeout: Duration::from_millis(200),
        ..database.settings()
    };
    let backend = PostgresBackend::open(&settings).expect("it opens");
    let (held, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let backend = &backend;
        scope.spawn(move || {
            backend.read(&mut |reader| {
                reader.workspaces()?;
                held.send(()).expect("somebody waits");
                released.recv().expect("it is released");
                Ok(())
            })
        });
        is_held.recv().expect("the connection is in use");
        let start = Instant::now();
        let error =
            backend.read(&mut |reader| reader.workspaces().map(drop)).expect_err("none is free");
        assert!(start.elapsed() < SOON);
        assert_eq!(*error.kind(), ErrorKind::StorageBusy);
        assert!(error.message().contains("all 1 connections"), "{error:?}");
        release.send(()).expect("it waits");
    });
    backend.read(&mut |reader| reader.workspaces().map(drop)).expect("it is free again");
}

#[test]
fn waiting_for_the_locks_of_others_is_bounded() {
    let fixture = fixture();
    let settings = PostgresSettings {
        lock_timeout: Duration::from_millis(300),
        statement_timeout: Duration::from_millis(600),
        ..fixture.database.settings()
    };
    let server = Server::open(&settings);
    server.put(fixture.store, "/note", "text").expect("it is written");
    for (lock, writes) in [
        ("SELECT * FROM quipu.stores FOR UPDATE", true),
        ("SELECT * FROM quipu.counter FOR UPDATE", true),
        ("LOCK TABLE quipu.memories", false),
    ] {
        let holder = cluster().hold(fixture.database.name(), lock);
        let start = Instant::now();
        let refused = if writes {
            server.put(fixture.store, "/other", "text").map(drop)
        } else {
            server
                .engine
                .memory_at(
                    fixture.store,
                    &crate::support::path("/note"),
                    quipu_core::model::View::Full,
                )
                .map(drop)
        };
        assert_eq!(*refused.expect_err("it is locked").kind(), ErrorKind::StorageBusy, "{lock}");
        assert!(start.elapsed() < SOON);
        drop(holder);
        server.put(fixture.store, "/note", lock).expect("it is free again");
    }
}

/// The clock of one server is an hour ahead: moments still grow, on each server.
#[test]
fn clocks_that_differ_do_not_turn_the_order_around() {
    use std::sync::Arc;

    use quipu_core::Engine;
    use quipu_core::backend::Sequence;
    use quipu_core::settings::Limits;
    use quipu_testkit::ManualClock;

    let fixture = fixture();
    let behind = Arc::new(ManualClock::default());
    let ahead = Arc::new(ManualClock::default());
    ahead.advance(Duration::from_hours(1));
    let database = Database::new();
    let servers = [ahead, behind].map(|clock| {
        let backend = PostgresBackend::open(&database.settings()).expect("it opens");
        Engine::new(Arc::new(backend), clock, Limits::default())
    });
    let workspace = servers[0].default_workspace().expect("a workspace").id;
    for number in 0..6 {
        let name = quipu_core::model::Name::new(format!("store {number}")).expect("a name");
        let new = quipu_core::engine::NewStore::named(name);
        servers[number % 2].create_store(workspace, &new).expect("it is made");
    }
    let changes = servers[1].changes(Sequence(0), 100).expect("they are read").items;
    assert_eq!(changes.len(), 6);
    assert!(changes.is_sorted_by(|left, right| left.at < right.at));
    drop(fixture);
}
