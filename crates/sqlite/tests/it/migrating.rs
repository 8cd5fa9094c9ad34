//! Data that earlier programs wrote opens, and nothing of it is lost.
//!
//! Each file in `tests/fixtures` was written by the last program with that schema, and is never
//! written again.

use std::fs;
use std::time::Duration;

use quipu_core::backend::{
    Archived, Order, Sequence, SessionQuery, Span, VersionFilter, VersionQuery,
};
use quipu_core::engine::{Derivation, NewDerivedKey, NewStore, Principal};
use quipu_core::model::{EventUsage, Forwarding, KeyKind, MemoryPath, Name, Operation, Role, View};
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_sqlite::DATABASE_FILE;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{Files, engine, path};

const SCHEMA_5: &[u8] = include_bytes!("../fixtures/schema-5.db");
const SCHEMA_6: &[u8] = include_bytes!("../fixtures/schema-6.db");
const SCHEMA_7: &[u8] = include_bytes!("../fixtures/schema-7.db");
const SCHEMA_8: &[u8] = include_bytes!("../fixtures/schema-8.db");
const SCHEMA_8_KEYS: &[u8] = include_bytes!("../fixtures/schema-8-keys.db");

fn opened(database: &[u8]) -> (TempDir, Knowledge) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join(DATABASE_FILE), database).expect("it is written");
    let engine = engine(directory.path());
    (directory, engine)
}

/// The index was in the database, and moved into a file of its own.
#[test]
fn schema_5_opens_with_everything_in_it() {
    let (directory, engine) = opened(SCHEMA_5);
    let workspace = engine.default_workspace().unwrap().id;
    let notes = engine.find_store(workspace, "notes").unwrap().id;
    let memory = engine.memory_at(notes, &path("/tea.md"), View::Full).unwrap();
    assert!(memory.content.unwrap().as_str().contains("brewed at 75 degrees"));
    let all = VersionQuery {
        filter: VersionFilter::default(),
        before: None,
        limit: 99,
        view: View::Full,
    };
    let versions = engine.versions(notes, &all).unwrap().items;
    assert_eq!(versions.len(), 6);
    assert_eq!(versions.iter().filter(|it| it.redaction.is_some()).count(), 1);
    assert_eq!(versions.iter().filter(|it| it.operation == Operation::Deleted).count(), 1);
    assert!(engine.find_store(workspace, "archive").unwrap().archived_at.is_some());
    assert_eq!(engine.keys(workspace).unwrap().len(), 1);

    let found = |text: &str| {
        let page = engine.search(&SearchRequest::new(vec![notes], text)).unwrap();
        page.hits.into_iter().map(|hit| hit.note.path).collect::<Vec<MemoryPath>>()
    };
    assert_eq!(found("brewing"), [path("/tea.md")]);
    assert_eq!(found("zebra"), [path("/late.md")]);
    assert_eq!(found("water"), []);
    let gone = engine.restore_store(workspace, "gone", None).unwrap().id;
    assert_eq!(engine.memory_at(gone, &path("/gone.md"), View::Basic).unwrap().size_bytes, 2);
    assert_eq!(engine.check().unwrap().problems, []);
    assert_eq!(Files::read(directory.path()).with("hunter2"), Vec::<&str>::new());
}

/// What was pruned before horizons were kept is not taken for complete.
#[test]
fn schema_6_opens_with_horizons() {
    let (_directory, engine) = opened(SCHEMA_6);
    let workspace = engine.default_workspace().unwrap().id;
    let store = |name| engine.find_store(workspace, name).unwrap().id;
    let notes = store("notes");
    let tea = engine.history(notes, &path("/tea.md"), 9).unwrap();
    assert_eq!(tea.len(), 3);
    let horizon = |store| engine.read(|reader| reader.horizon(store)).unwrap();
    // `/gone.md` was deleted and pruned after the versions of the tea, and left no trace of its own.
    assert!(horizon(notes) > Some(tea[1].created_at));
    assert!(horizon(notes) < Some(tea[0].created_at));
    assert_eq!(horizon(store("still")), horizon(notes));
    let new =
        engine.create_store(workspace, &NewStore::named(Name::new("new").unwrap())).unwrap().id;
    assert_eq!(horizon(new), None);
    assert_eq!(engine.check().unwrap().problems, []);
}

/// Keys could not be derived from others, and nobody knew when they were used.
#[test]
fn schema_7_opens_with_its_keys() {
    let (_directory, engine) = opened(SCHEMA_7);
    let workspace = engine.default_workspace().unwrap().id;
    let notes = engine.find_store(workspace, "notes").unwrap().id;
    let keys = engine.keys(workspace).unwrap();
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["admin (QUIPU_ADMIN_KEY)", "reporting", "old"]);
    for key in &keys {
        assert!(!key.is_derived() && key.used_at.is_none() && key.payload.is_none(), "{key:?}");
    }
    assert_eq!(keys[1].stores, Some(vec![notes]));
    assert!(keys[1].expires_at.is_some() && keys[2].revoked_at.is_some());
    let principal = engine.principal("correct horse battery").unwrap();
    assert!(matches!(principal, Some(Principal::Key(key)) if key.id == keys[0].id));
    assert_eq!(engine.actors_of_key(keys[0].id).unwrap().len(), 2, "the key and its session");
    let browser = NewDerivedKey {
        kind: KeyKind::Browser,
        name: Name::new("ada").unwrap(),
        role: Role::ReadOnly,
        stores: None,
        expires_at: engine.now().plus(Duration::from_hours(1)),
        payload: None,
    };
    let (_, secret) = engine.derive_key(Derivation::Key(keys[0].id), &browser).unwrap();
    assert!(engine.principal(secret.reveal()).unwrap().is_some());
    assert_eq!(engine.prune().unwrap().keys_count, 0, "no key of its own is ever pruned");
    assert_eq!(engine.check().unwrap().problems, []);
}

/// Sessions had no events, and agents were names that nobody kept.
#[test]
fn schema_8_opens_with_its_sessions() {
    let (_directory, engine) = opened(SCHEMA_8);
    let workspace = engine.default_workspace().unwrap().id;
    let query = SessionQuery {
        workspace,
        store: None,
        archived: Archived::Show,
        created: Span::default(),
        viewer: None,
        order: Order::OldestFirst,
        after: None,
        limit: 9,
    };
    let sessions = engine.sessions(&query).unwrap().items;
    let titles: Vec<_> = sessions.iter().map(|session| session.title.as_str()).collect();
    assert_eq!(titles, ["brewing", "old"]);
    assert!(sessions[0].details.contains("agent_elsewhere") && sessions[1].archived_at.is_some());
    let (usage, size_bytes) = engine
        .read(|reader| {
            Ok((reader.event_usage(sessions[0].id)?, reader.events_size_bytes(workspace)?))
        })
        .unwrap();
    assert_eq!((usage, size_bytes), (EventUsage::default(), 0));
    assert_eq!(engine.check().unwrap().problems, []);
}

/// Nobody could forward requests, so no key of then may.
#[test]
fn schema_8_opens_with_keys_that_forward_nothing() {
    let (_directory, engine) = opened(SCHEMA_8_KEYS);
    let workspace = engine.default_workspace().unwrap().id;
    let keys = engine.keys(workspace).unwrap();
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["app", "reporting", "ada"]);
    assert!(keys.iter().all(|key| key.forwarding == Forwarding::Denied), "{keys:?}");
    let principal = engine.principal("correct horse battery").unwrap();
    assert!(matches!(principal, Some(Principal::Key(key)) if key.id == keys[0].id));
    let notes = engine.find_store(workspace, "notes").unwrap().id;
    let tea = engine.memory_at(notes, &path("/tea.md"), View::Full).unwrap();
    assert_eq!(tea.content.unwrap().as_str(), "green tea, 75 degrees");
    assert_eq!(engine.check().unwrap().problems, []);
}

/// Nothing of the old index is left in the database.
#[test]
fn the_index_of_schema_5_is_gone() {
    let (directory, engine) = opened(SCHEMA_5);
    engine.finish_erasing().unwrap();
    drop(engine);
    let database = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    let sql = "SELECT group_concat(name) FROM sqlite_schema
        WHERE name LIKE '%note%' OR name LIKE '%fact%' OR name LIKE '%link%'";
    let left: Option<String> = database.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(left, None);
}

/// Before schema 4 nothing said whose a deleted store was.
#[test]
fn stores_that_were_deleted_before_schema_4_belong_to_the_only_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let older = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    for migration in [
        include_str!("../../migrations/0001.sql"),
        include_str!("../../migrations/0002.sql"),
        include_str!("../../migrations/0003.sql"),
        "INSERT INTO workspaces (id, name, created_at) VALUES (zeroblob(16), 'default', 1);
        INSERT INTO changes VALUES (1, 1, randomblob(16), 'store_deleted', NULL);
        PRAGMA application_id = 0x51697075; PRAGMA user_version = 3;",
    ] {
        older.execute_batch(migration).unwrap();
    }
    drop(older);
    let engine = engine(directory.path());
    let workspace = engine.default_workspace().unwrap().id;
    let news = engine.feed_entries(Sequence(0), 10).unwrap().items;
    assert_eq!(news.iter().map(|it| it.workspace).collect::<Vec<_>>(), [Some(workspace)]);
}
