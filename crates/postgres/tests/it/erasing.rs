//! What is redacted leaves the tables, and what cannot be reached is said.

use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::Backend as _;
use quipu_postgres::PostgresSettings;

use crate::cluster::cluster;
use crate::support::{Fixture, Server, actor, fixture};

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
