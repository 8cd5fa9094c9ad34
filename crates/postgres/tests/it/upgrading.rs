//! Programs of two versions on one database: the schema goes on while the servers of the version before run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use quipu_core::ErrorKind;
use quipu_core::backend::Backend as _;
use quipu_core::model::View;
use quipu_postgres::{PostgresBackend, Step, migrate_further, schema_known, schema_version};

use crate::cluster::cluster;
use crate::support::{Server, fixture, path};

fn step(sql: &'static str, compatible_from: i64) -> Step {
    Step { sql: sql.into(), compatible_from }
}

/// Adds what a later program would, to a table that every write changes and to one with texts.
fn expand() -> Step {
    step(
        "ALTER TABLE stores ADD COLUMN colour text;
         ALTER TABLE versions ADD COLUMN mood text;
         CREATE TABLE moods (name text PRIMARY KEY);
         CREATE INDEX versions_by_mood ON versions (mood)",
        1,
    )
}

/// Removes what this program needs.
fn contract() -> Step {
    step("ALTER TABLE stores RENAME COLUMN writers TO authors", 3)
}

#[test]
fn servers_go_on_while_the_schema_is_expanded() {
    let fixture = fixture();
    let servers = [&fixture.server, &Server::open(&fixture.database.settings())];
    let (is_over, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (writer, server) in servers.iter().cycle().take(8).enumerate() {
            let (is_over, written, store) = (&is_over, &written, fixture.store);
            scope.spawn(move || {
                let mut turn = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let at = format!("/{writer}/{turn}");
                    server.put(store, &at, "text").expect("it is written");
                    let memory = server.engine.memory_at(store, &path(&at), View::Full);
                    memory.expect("it is read");
                    written.fetch_add(1, Ordering::SeqCst);
                    turn += 1;
                }
            });
        }
        let enough = |from: usize| {
            while written.load(Ordering::SeqCst) < from + 30 {
                thread::yield_now();
            }
        };
        enough(0);
        let migrated = migrate_further(&fixture.database.settings(), &[expand()]);
        let migrated = migrated.expect("it expands under load");
        assert_eq!((migrated.from, migrated.to), (schema_known(), schema_known() + 1));
        enough(written.load(Ordering::SeqCst));
        is_over.store(true, Ordering::SeqCst);
    });
    // A program of the version before still opens it, and migrates nothing back.
    let again = Server::open(&fixture.database.settings());
    again.put(fixture.store, "/again", "text").expect("it is written");
    let settings = fixture.database.settings();
    let migrated = quipu_postgres::migrate(&settings).expect("there is nothing to do");
    assert_eq!((migrated.from, migrated.to), (schema_known() + 1, schema_known() + 1));
    assert_eq!(again.engine.check().expect("it is checked").problems, []);
}

#[test]
fn a_schema_is_not_contracted_while_a_server_needs_what_is_removed() {
    let fixture = fixture();
    let settings = fixture.database.settings();
    // What a server says by itself after a while.
    fixture.server.backend.condition().expect("it can be written");
    let refused = migrate_further(&settings, &[expand(), contract()]).expect_err("it is refused");
    assert_eq!(*refused.kind(), ErrorKind::StorageBusy, "{refused:?}");
    assert!(refused.message().contains("1 server that knows only schema 1"), "{refused:?}");
    // What only adds has been done, and the server goes on.
    assert_eq!(schema_version(&settings).expect("it is read"), 2);
    fixture.server.put(fixture.store, "/note", "text").expect("it is written");
    // One that ends in order is forgotten at once; one that was killed, after a minute.
    fixture.server.backend.close().expect("it closes");
    let migrated = migrate_further(&settings, &[expand(), contract()]).expect("nobody is there");
    assert_eq!((migrated.from, migrated.to), (2, 3));
    let refused = PostgresBackend::open(&settings).map(drop).expect_err("it is too old");
    assert!(refused.message().contains("has schema 3"), "{refused:?}");
    let refused = quipu_postgres::migrate(&settings).expect_err("it is too old");
    assert!(refused.message().contains("has schema 3"), "{refused:?}");
}

/// Somebody has contracted the schema although a server runs, which was unheard of for a minute.
#[test]
fn a_server_that_is_too_old_for_the_schema_says_so() {
    let fixture = fixture();
    fixture.server.backend.condition().expect("it can be written");
    let forget = "UPDATE quipu.servers SET at = now() - interval '2 minutes'";
    cluster().sql(fixture.database.name(), forget);
    migrate_further(&fixture.database.settings(), &[expand(), contract()]).expect("it migrates");
    let error = fixture.server.backend.condition().expect_err("it is not ready");
    assert_eq!(*error.kind(), ErrorKind::StorageUnusable, "{error:?}");
    assert!(error.message().contains("has schema 3"), "{error:?}");
    fixture.server.put(fixture.store, "/note", "text").expect_err("it cannot be written");
}

#[test]
fn a_step_that_fails_leaves_the_schema_as_it_was() {
    let fixture = fixture();
    let settings = fixture.database.settings();
    let broken = step("CREATE TABLE moods (name text); SELECT 1 / 0", 1);
    migrate_further(&settings, &[broken]).expect_err("it fails");
    assert_eq!(schema_version(&settings).expect("it is read"), schema_known());
    let tables = "SELECT count(*) FROM pg_class WHERE relname = 'moods'";
    assert_eq!(cluster().sql(fixture.database.name(), tables), "0");
    migrate_further(&settings, &[expand()]).expect("it can be repeated");
}
