//! Redaction is real: no byte of the text in any file.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_core::engine::{ListQuery, Precondition};
use quipu_core::model::{Directory, Memory, View};
use quipu_core::settings::Limits;
use quipu_core::{Backend as _, Engine};
use quipu_knowledge::{INDEX_FILE, Knowledge, SearchRequest};
use quipu_sqlite::{DATABASE_FILE, OpenMode, SqliteBackend};
use quipu_testkit::ManualClock;
use rusqlite::Connection;

use crate::support::{Files, Fixture, actor, content, engine, fixture, new_store, path};

/// Returns 32 characters that are nowhere else.
fn canary() -> String {
    format!("{:032x}", SystemClock.random())
}

/// Brings the index up to date, so that it holds all that is there.
fn index(knowledge: &Knowledge) {
    knowledge.follow(None).expect("it indexes");
}

fn assert_gone(fixture: &Fixture, token: &str) {
    // The index writes only what differs from the term before, so a beginning may be missing.
    let tail = token.get(8..).expect("a long token");
    assert_eq!(Files::read(fixture.directory.path()).with(tail), Vec::<&str>::new());
    let report = fixture.engine.check().expect("the check runs");
    assert_eq!(report.problems, []);
}

#[test]
fn the_scan_finds_what_is_there() {
    let fixture = fixture();
    let token = canary();
    fixture.put("/a", &token);
    assert!(!Files::read(fixture.directory.path()).with(&token).is_empty());
}

#[test]
fn a_redacted_version_is_in_no_file() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/a", &format!("the key is {token}, keep it"));
    fixture.put("/a", "the key is elsewhere");
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    assert_gone(&fixture, &token);
}

#[test]
fn long_texts_are_redacted_too() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/a", &format!("{token}\n").repeat(3000));
    fixture.put("/a", "short");
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    assert_gone(&fixture, &token);
}

/// Returns a note that has a token wherever the index keeps something, as a word of its own.
fn note_with(token: &str) -> String {
    format!(
        "---\ntitle: {token}t\ntags: [{token}g]\nkey{token}: {token}v\npermalink: {token}p\n---\n\
         # {token}h\n\n{token} body camelCase{token}\n- [{token}c] {token}o #{token}u ({token}x)\n\
         - {token}r [[{token}l]] ({token}y)\n"
    )
}

#[test]
fn a_redacted_note_is_in_no_part_of_the_index() {
    let fixture = fixture();
    let (token, other) = (canary(), canary());
    for number in 0..50 {
        fixture.put(&format!("/{number}"), &note_with(&format!("{number}{other}")));
    }
    let leaked = fixture.put("/leak", &note_with(&token));
    index(&fixture.engine);
    fixture.put("/leak", "clean");
    // The index is behind: it still holds what is redacted.
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    assert_gone(&fixture, &token);
    assert!(!Files::read(fixture.directory.path()).with(&other).is_empty());
}

#[test]
fn an_index_of_another_format_is_redacted_too() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/leak", &note_with(&token));
    fixture.put("/kept", "# Kept");
    index(&fixture.engine);
    let raw = Connection::open(fixture.directory.path().join(INDEX_FILE));
    let changed = raw.and_then(|raw| raw.pragma_update(None, "user_version", 999));
    changed.expect("the index can be changed");
    let engine = engine(fixture.directory.path());
    fixture.put("/leak", "clean");
    engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    assert_gone(&fixture, &token);
    let found = engine.search(&SearchRequest::new(vec![fixture.store], "kept"));
    assert_eq!(found.expect("it searches").hits.len(), 1);
}

#[test]
fn a_note_that_left_the_index_long_ago_is_redacted_too() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/leak", &note_with(&token));
    index(&fixture.engine);
    for number in 0..200 {
        fixture.put(&format!("/{}", number % 20), &note_with(&canary()));
        if number == 50 {
            fixture.put("/leak", "clean");
        }
        if number % 10 == 0 {
            index(&fixture.engine);
        }
    }
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    assert_gone(&fixture, &token);
}

#[test]
fn a_deleted_store_is_in_no_part_of_the_index() {
    let fixture = fixture();
    let token = canary();
    fixture.put("/kept", &note_with(&canary()));
    let doomed = new_store(&fixture.engine, "doomed");
    for number in 0..50 {
        let at = path(&format!("/{token}/{number}"));
        let text = content(&note_with(&token));
        fixture.engine.create(&actor(), doomed, &at, &text).expect("it creates");
        if number == 25 {
            index(&fixture.engine);
        }
    }
    fixture.engine.erase_store(doomed).expect("it deletes");
    assert_gone(&fixture, &token);
}

#[test]
fn a_backup_of_an_index_does_not_hold_redacted_text() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/a", &note_with(&token));
    index(&fixture.engine);
    fixture.put("/a", "clean");
    index(&fixture.engine);
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    let backend =
        SqliteBackend::open(fixture.directory.path(), OpenMode::Existing).expect("it opens");
    backend.backup(&fixture.directory.path().join("backup.db")).expect("it copies");
    assert_gone(&fixture, &token);
}

#[test]
fn a_redacted_version_of_a_deleted_memory_is_in_no_file() {
    let fixture = fixture();
    let (token, secret_path) = (canary(), format!("/{}", canary()));
    let leaked = fixture.put(&secret_path, &token);
    let deleted = fixture
        .engine
        .delete(&actor(), fixture.store, leaked.memory.id, Precondition::None)
        .expect("it deletes");
    let versions = [leaked.memory.version, deleted.id];
    fixture.engine.redact(&actor(), fixture.store, &versions).expect("it redacts");
    assert_gone(&fixture, &token);
    assert_gone(&fixture, &secret_path);
}

#[test]
fn a_deleted_store_is_in_no_file() {
    let fixture = fixture();
    let token = canary();
    fixture.put("/kept", "stays");
    let doomed = new_store(&fixture.engine, "doomed");
    for number in 0..50 {
        let at = path(&format!("/{token}/{number}"));
        let text = content(&format!("{token} {number}"));
        fixture.engine.create(&actor(), doomed, &at, &text).expect("it creates");
    }
    fixture.engine.erase_store(doomed).expect("it deletes");
    assert_gone(&fixture, &token);
    assert!(fixture.engine.memory_at(fixture.store, &path("/kept"), View::Full).is_ok());
}

/// A memory whose path and text hold tokens that are nowhere else.
struct Leak {
    path_token: String,
    text_token: String,
    memory: Memory,
}

/// When SQLite splits or merges pages, it can leave a copy of a row in the unused part of one, and
/// deleting the row later does not reach that copy. So this makes and deletes many rows of many
/// sizes in no order, before some of those that are left are redacted.
#[test]
fn no_copy_is_left_where_pages_were_split_or_merged() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let backend = SqliteBackend::open(directory.path(), OpenMode::Create).expect("it opens");
    let clock = Arc::new(ManualClock::default());
    let engine = Engine::new(Arc::new(backend), Arc::clone(&clock) as _, Limits::default());
    let engine = Knowledge::new(engine, directory.path());
    let store = new_store(&engine, "tests");
    let create = |number: usize| {
        let (path_token, text_token) = (canary(), canary());
        let (before, after) = (number * 7919 % 800, number * 104_729 % 400);
        let text = content(&format!("{}{text_token}{}", "x".repeat(before), "y".repeat(after)));
        let at = path(&format!("/{path_token}"));
        let memory = engine.create(&actor(), store, &at, &text).expect("it creates").memory;
        Leak { path_token, text_token, memory }
    };
    let delete = |leak: &Leak| {
        engine.delete(&actor(), store, leak.memory.id, Precondition::None).expect("it deletes").id
    };
    let leaks = in_eight_threads(2000, create);
    index(&engine);
    let (pruned, rest) = leaks.split_at(800);
    let (redacted, alive) = rest.split_at(600);

    in_eight_threads(pruned.len(), |number| delete(&pruned[number]));
    clock.advance(Duration::from_hours(31 * 24));
    assert!(engine.prune().expect("it prunes").versions_count >= 2 * pruned.len());
    let mut versions = in_eight_threads(redacted.len(), |number| delete(&redacted[number]));
    index(&engine);
    versions.extend(redacted.iter().map(|leak| leak.memory.version));
    engine.redact(&actor(), store, &versions).expect("it redacts");

    let files = Files::read(directory.path());
    let left = redacted
        .iter()
        .flat_map(|leak| [&leak.path_token, &leak.text_token])
        .filter(|token| !files.with(token).is_empty());
    assert_eq!(left.count(), 0, "redacted paths and texts are left");
    assert!(alive.iter().all(|leak| !files.with(&leak.text_token).is_empty()));
}

fn in_eight_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let part = |thread: usize| (thread..count).step_by(8).map(&work).collect::<Vec<_>>();
    thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || part(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn other_handles_may_read_and_write_meanwhile() {
    let fixture = fixture();
    for number in 0..200 {
        fixture.put(&format!("/{number}"), &"text ".repeat(300));
    }
    let token = canary();
    let leaked = fixture.put("/leak", &token);
    fixture.put("/leak", "clean");
    let stop = AtomicBool::new(false);
    let all = ListQuery {
        directory: Directory::root(),
        depth: None,
        after: None,
        limit: usize::MAX,
        view: View::Full,
    };
    thread::scope(|scope| {
        for number in 0..3 {
            let (fixture, stop, all) = (&fixture, &stop, &all);
            scope.spawn(move || {
                let other = engine(fixture.directory.path());
                let at = path(&format!("/writer/{number}"));
                while !stop.load(Ordering::SeqCst) {
                    other.list(fixture.store, all).expect("it lists");
                    let text = content(&canary());
                    let target = (&at, &text);
                    other
                        .put(&actor(), fixture.store, target, Precondition::None)
                        .expect("it writes");
                }
            });
        }
        for _ in 0..3 {
            let redacted = fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]);
            redacted.expect("it redacts");
            assert!(Files::read(fixture.directory.path()).with(&token).is_empty());
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert_gone(&fixture, &token);
}

#[test]
fn a_backup_after_a_redaction_does_not_hold_the_text() {
    let fixture = fixture();
    let token = canary();
    let leaked = fixture.put("/a", &token);
    fixture.put("/a", "clean");
    fixture.engine.redact(&actor(), fixture.store, &[leaked.memory.version]).expect("it redacts");
    let backend =
        SqliteBackend::open(fixture.directory.path(), OpenMode::Existing).expect("it opens");
    backend.backup(&fixture.directory.path().join("backup.db")).expect("it copies");
    assert_gone(&fixture, &token);
}

/// An erasing of another process counted a store as done that was deleted after it had looked for
/// rows to remove.
#[test]
fn a_store_that_is_erased_beside_redactions_is_gone() {
    let fixture = fixture();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = engine(fixture.directory.path());
            while !is_over.load(Ordering::SeqCst) {
                let versions = ["one", "two"].map(|text| {
                    let target = (&path("/redacted"), &content(text));
                    let put = other.put(&actor(), fixture.store, target, Precondition::None);
                    put.unwrap().memory.version
                });
                other.redact(&actor(), fixture.store, &versions[..1]).unwrap();
            }
        });
        for number in 0..150 {
            let store = new_store(&fixture.engine, &format!("doomed {number}"));
            let text = content(&format!("doomed {number}"));
            fixture.engine.create(&actor(), store, &path("/a"), &text).unwrap();
            fixture.engine.erase_store(store).unwrap();
            let file = fixture.directory.path().join(DATABASE_FILE);
            let database = Connection::open(file).unwrap();
            let sql = "SELECT count(*) FROM texts WHERE content = ?1";
            let texts: i64 = database.query_row(sql, [text.as_str()], |row| row.get(0)).unwrap();
            if texts > 0 {
                is_over.store(true, Ordering::SeqCst);
            }
            assert_eq!(texts, 0, "store {number}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

/// Others read a text before it is redacted, and write what they made of it into the index later.
#[test]
fn no_redacted_word_comes_back_from_those_who_index_meanwhile() {
    let fixture = fixture();
    for number in 0..300 {
        fixture.put(&format!("/{number}"), &format!("filler {}", canary()));
    }
    let is_done = AtomicBool::new(false);
    let tokens: Vec<_> = (0..30).map(|_| canary()).collect();
    thread::scope(|scope| {
        let others: Vec<_> = (0..2).map(|_| engine(fixture.directory.path())).collect();
        for other in others {
            let (is_done, store) = (&is_done, fixture.store);
            scope.spawn(move || {
                let mut number = 0;
                while !is_done.load(Ordering::Relaxed) {
                    number += 1;
                    let text = content(&format!("filler {number}"));
                    let target = (&path(&format!("/{}", number % 300)), &text);
                    other.put(&actor(), store, target, Precondition::None).expect("it writes");
                    drop(other.search(&SearchRequest::new(vec![store], "filler")));
                    other.follow(None).expect("it follows");
                }
            });
        }
        for token in &tokens {
            let leaked = fixture.put("/leak", &note_with(token));
            drop(fixture.engine.search(&SearchRequest::new(vec![fixture.store], token.as_str())));
            fixture.put("/leak", "clean");
            fixture
                .engine
                .redact(&actor(), fixture.store, &[leaked.memory.version])
                .expect("redacted");
            let tail = token.get(8..).expect("a long token");
            let held = Files::read(fixture.directory.path());
            assert_eq!(held.with(tail), Vec::<&str>::new());
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for token in &tokens {
        assert_gone(&fixture, token);
    }
}

#[test]
fn an_erasure_names_what_restoring_backups_has_left() {
    let fixture = fixture();
    let backend = fixture.engine.backend();
    assert_eq!(backend.erase().unwrap().unreachable, [""; 0]);
    for name in ["replaced-2", "replaced-1", "replacement"] {
        fs::create_dir(fixture.directory.path().join(name)).unwrap();
    }
    fs::write(fixture.directory.path().join("quipu.db.unfinished"), "text").unwrap();
    let unreachable = backend.erase().unwrap().unreachable;
    assert_eq!(unreachable, backend.unreachable().unwrap());
    let expected = ["quipu.db.unfinished", "replaced-1", "replaced-2"];
    assert_eq!(unreachable.len(), expected.len(), "{unreachable:?}");
    for (sentence, name) in unreachable.iter().zip(expected) {
        let path = fixture.directory.path().join(name);
        assert!(sentence.contains(&format!("`{}`", path.display())), "{sentence}");
    }
}
