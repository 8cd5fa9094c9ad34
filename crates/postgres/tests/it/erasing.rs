//! What is redacted leaves the tables, and what cannot be reached is said.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::Backend as _;
use quipu_core::engine::{Heads, Pattern, Scope, Selection, Terms};
use quipu_core::model::View;
use quipu_postgres::PostgresSettings;

use crate::cluster::cluster;
use crate::support::{Fixture, Server, actor, fixture, path};

/// A text that occurs nowhere else.
fn canary(name: &str) -> String {
    format!("canary-{name}-{}", std::process::id())
}

/// Writes a text and replaces it, and returns the version that still has it.
fn replaced(fixture: &Fixture, text: &str) -> quipu_core::model::VersionId {
    let first = fixture.server.put(fixture.store, "/note", text).expect("it is written");
    fixture.server.put(fixture.store, "/note", "something else").expect("it is written");
    first.memory.version
}

#[test]
fn redacted_text_is_in_no_table() {
    let fixture = fixture();
    let (text, path) = (canary("text"), canary("path"));
    let version = replaced(&fixture, &text);
    let other = fixture.server.put(fixture.store, &format!("/{path}"), "x").expect("it is written");
    let deleted = fixture
        .server
        .engine
        .delete(&actor(), fixture.store, other.memory.id, quipu_core::engine::Precondition::None)
        .expect("it is deleted");
    // The planner's statistics would keep samples.
    cluster().sql(fixture.database.name(), "ANALYZE");
    assert!(!cluster().files_with(&text).is_empty());
    fixture
        .server
        .engine
        .redact(&actor(), fixture.store, &[version, other.memory.version, deleted.id])
        .expect("it is redacted");
    assert_eq!(cluster().files_with(&text), Vec::<String>::new());
    assert_eq!(cluster().files_with(&path), Vec::<String>::new());
    let unreachable = fixture.server.backend.unreachable().expect("it is known");
    assert!(
        unreachable.iter().any(|sentence| sentence.contains("write-ahead log")),
        "{unreachable:?}"
    );
}

#[test]
fn erasing_is_incomplete_while_somebody_reads_an_old_snapshot() {
    let fixture = fixture();
    let settings = PostgresSettings {
        statement_timeout: Duration::from_secs(2),
        ..fixture.database.settings()
    };
    let server = Server::open(&settings);
    let text = canary("snapshot");
    let version = replaced(&fixture, &text);
    let sql =
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT id FROM quipu.administration";
    let reader = cluster().hold(fixture.database.name(), sql);
    let redacted = server.engine.redact(&actor(), fixture.store, &[version]);
    let error = redacted.expect_err("the text is still there");
    assert_eq!(*error.kind(), ErrorKind::EraseIncomplete, "{error:?}");
    assert!(!cluster().files_with(&text).is_empty());
    drop(reader);
    fixture.server.engine.prune().expect("it finishes the erasing");
    assert_eq!(cluster().files_with(&text), Vec::<String>::new());
}

#[test]
fn a_user_who_may_not_rewrite_the_tables_is_told() {
    let fixture = fixture();
    let name = fixture.database.name();
    let sql = "CREATE ROLE server LOGIN;
        GRANT USAGE ON SCHEMA quipu TO server;
        GRANT ALL ON ALL TABLES IN SCHEMA quipu TO server;
        GRANT ALL ON ALL SEQUENCES IN SCHEMA quipu TO server";
    cluster().sql(name, sql);
    let url = cluster().url(name).replacen("postgres@", "server@", 1);
    let server = Server::open(&PostgresSettings::new(url));
    let version = replaced(&fixture, "text");
    let redacted = server.engine.redact(&actor(), fixture.store, &[version]);
    let error = redacted.expect_err("it is not the owner");
    assert_eq!(*error.kind(), ErrorKind::EraseIncomplete, "{error:?}");
    fixture.server.engine.prune().expect("the owner finishes it");
    assert_eq!(
        fixture.server.engine.read(|reader| reader.pending_erasures()).expect("they are read"),
        []
    );
}

/// A writer that had begun before the redaction is committed while that waits for it.
#[test]
fn a_redaction_sees_what_was_written_while_it_waited() {
    let fixture = fixture();
    let text = canary("overlapping");
    fixture.server.put(fixture.store, "/leak", &format!("it is {text}")).expect("it is written");
    let other = Server::open(&fixture.database.settings());
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let receipt = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let (begun, may_go) = (begun, may_go);
            let add = |_: &_, found: &str| {
                begun.send(()).expect("somebody waits");
                may_go.recv().expect("it is told");
                Ok::<_, quipu_core::Error>(format!("{found}, and again {text}"))
            };
            other.engine.edit(&actor(), fixture.store, &path("/leak"), add)
        });
        has_begun.recv().expect("it begins");
        let redacting = scope.spawn(|| {
            let workspace = fixture.server.engine.default_workspace().expect("there is one").id;
            let pattern = Pattern::text(&text).expect("it is not empty");
            let selection = Selection { pattern: Some(pattern), ..Selection::default() };
            let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
            fixture.server.engine.redact_selected(
                &actor(),
                &Scope::all(workspace),
                &selection,
                &terms,
            )
        });
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = '{}' AND wait_event_type = 'Lock'",
            fixture.database.name()
        );
        while cluster().sql("postgres", &waiting) == "0" {
            thread::yield_now();
        }
        go.send(()).expect("it waits");
        writing.join().expect("no panic").expect("it is written");
        redacting.join().expect("no panic").expect("it is redacted")
    });
    assert_eq!(receipt.proof.and_then(|proof| proof.hits_left), Some(0));
    let head = fixture.server.engine.memory_at(fixture.store, &path("/leak"), View::Full);
    let head = head.expect("it is there").content.expect("it is full");
    assert!(head.as_str().contains("and again") && !head.as_str().contains(&text), "{head:?}");
    assert_eq!(cluster().files_with(&text), Vec::<String>::new());
}

/// Both lock the same stores, one after the other.
#[test]
fn redactions_of_many_stores_and_their_writers_do_not_wait_for_each_other_in_a_circle() {
    const STORES: usize = 12;
    let fixture = fixture();
    let servers = [&fixture.server, &Server::open(&fixture.database.settings())];
    let new = (0..STORES).map(|number| servers[0].new_store(&format!("{number}")));
    let stores: Vec<_> = new.collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (writer, server) in servers.iter().cycle().take(12).enumerate() {
            let (stores, is_over) = (&stores, &is_over);
            scope.spawn(move || {
                let mut turn = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let store = stores[(turn * 5 + writer) % STORES];
                    server.put(store, &format!("/{writer}"), &format!("{turn}")).expect("written");
                    turn += 1;
                }
            });
        }
        for round in 0..4 {
            let text = canary(&format!("round-{round}"));
            for store in &stores {
                servers[round % 2].put(*store, "/leak", &text).expect("it is written");
            }
            let workspace = servers[0].engine.default_workspace().expect("there is one").id;
            let pattern = Pattern::text(&text).expect("it is not empty");
            let selection = Selection { pattern: Some(pattern), ..Selection::default() };
            let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
            let engine = &servers[(round + 1) % 2].engine;
            let redacted =
                engine.redact_selected(&actor(), &Scope::all(workspace), &selection, &terms);
            assert_eq!(redacted.expect("it is redacted").stores.len(), STORES + 1);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(fixture.server.engine.check().expect("it is checked").problems, []);
}
