//! No wait is without a bound, and none keeps a reader waiting.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::engine::Precondition;
use quipu_core::model::View;
use quipu_core::{Engine, Error, ErrorKind};
use quipu_knowledge::{INDEX_FILE, Knowledge, SearchRequest};
use quipu_sqlite::{OpenMode, OpenSettings, SqliteBackend};
use rusqlite::Connection;

use crate::support::{Fixture, actor, content, fixture, knowledge, path};

/// Much longer than anything here takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(10);

fn impatient(directory: &Path, lock_timeout: Duration) -> Knowledge {
    let settings = OpenSettings {
        program: "quipu test".to_owned(),
        lock_timeout,
        ..OpenSettings::new(OpenMode::Existing)
    };
    let backend = SqliteBackend::open_with(directory, &settings).expect("it opens");
    knowledge(Arc::new(backend), directory)
}

fn put(engine: &Engine, fixture: &Fixture, text: &str) -> Result<(), Error> {
    let target = (&path("/a"), &content(text));
    engine.put(&actor(), fixture.store, target, Precondition::None).map(drop)
}

/// Refused writes joined the open transaction and kept it open: a good one beside eight threads
/// whose creations were refused took 85 s.
#[test]
fn refused_writes_do_not_hold_up_a_good_one() {
    let fixture = fixture();
    fixture.put("/taken", "x");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let taken = path("/taken");
                    fixture
                        .engine
                        .create(&actor(), fixture.store, &taken, &content("y"))
                        .unwrap_err();
                }
            });
        }
        let start = Instant::now();
        for number in 0..20 {
            fixture.put("/good", &number.to_string());
        }
        let took = start.elapsed();
        is_done.store(true, Ordering::Relaxed);
        assert!(took < LONG, "20 writes took {took:?}");
    });
}

#[test]
fn a_held_lock_ends_in_an_error_and_reading_goes_on() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let engine = impatient(fixture.directory.path(), Duration::from_millis(300));
    assert_eq!(
        engine.search(&SearchRequest::new(vec![fixture.store], "text")).unwrap().hits.len(),
        1
    );
    let lock = File::open(fixture.directory.path().join("quipu.lock")).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        // Those who wait inside of this process have the same deadline.
        for _ in 0..4 {
            scope.spawn(|| {
                let error = put(&engine, &fixture, "new").unwrap_err();
                assert_eq!(*error.kind(), ErrorKind::StorageBusy, "{error:?}");
                assert!(error.hint().is_some());
            });
        }
    });
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(start.elapsed() < LONG);
    let memory = engine.memory_at(fixture.store, &path("/a"), View::Full).unwrap();
    assert_eq!(memory.content.unwrap().as_str(), "text");
    assert_eq!(
        engine.search(&SearchRequest::new(vec![fixture.store], "text")).unwrap().hits.len(),
        1
    );
    let another = impatient(fixture.directory.path(), LONG);
    assert!(another.memory_at(fixture.store, &path("/a"), View::Full).is_ok());
    lock.unlock().unwrap();
    put(&engine, &fixture, "new").unwrap();
}

/// The thread that waited in the kernel's queue gets the lock after everybody has given up, and
/// must give it back.
#[test]
fn a_lock_that_comes_too_late_is_given_back() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let lock = File::open(fixture.directory.path().join("quipu.lock")).unwrap();
    let impatient = impatient(fixture.directory.path(), Duration::from_millis(50));
    for _ in 0..20 {
        lock.lock().unwrap();
        put(&impatient, &fixture, "late").unwrap_err();
        lock.unlock().unwrap();
        fixture.put("/a", "in time");
    }
    put(&impatient, &fixture, "now").unwrap();
}

#[test]
fn an_error_names_who_holds_the_lock() {
    let fixture = fixture();
    let engine = impatient(fixture.directory.path(), Duration::from_millis(200));
    let is_inside = AtomicBool::new(false);
    thread::scope(|scope| {
        fixture.put("/a", "text");
        scope.spawn(|| {
            let slow = |_: &_, _: &str| {
                is_inside.store(true, Ordering::SeqCst);
                thread::sleep(Duration::from_secs(1));
                Ok::<_, Error>("slow".to_owned())
            };
            fixture.engine.edit(&actor(), fixture.store, &path("/a"), slow).unwrap();
        });
        while !is_inside.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let error = put(&engine, &fixture, "new").unwrap_err();
        let holder = format!("process {} (`quipu`)", std::process::id());
        assert!(error.message().contains(&holder), "{error}");
    });
}

/// Behind a process that was stopped while it waited for its turn, nobody gets in.
#[test]
fn a_held_turnstile_is_noticed_like_a_held_lock() {
    let fixture = fixture();
    fixture.put("/a", "text");
    assert!(fixture.engine.condition().unwrap().lock.is_none());
    let turnstile = File::open(fixture.directory.path().join("quipu.queue")).unwrap();
    turnstile.lock().unwrap();
    assert!(fixture.engine.condition().unwrap().lock.is_some());
    turnstile.unlock().unwrap();
    assert!(fixture.engine.condition().unwrap().lock.is_none());
}

/// The index is behind, and cannot be written.
#[test]
fn what_was_never_indexed_is_found_while_another_holds_the_lock() {
    let fixture = fixture();
    for number in 0..300 {
        fixture.put(&format!("/{number}.md"), "zebra");
    }
    fixture.put("/first.md", "okapi");
    fixture.put("/last.md", "ibex");
    let engine = impatient(fixture.directory.path(), LONG);
    let lock = File::open(fixture.directory.path().join("quipu.lock")).unwrap();
    lock.lock().unwrap();
    let find = |words: &str| {
        let start = Instant::now();
        let hits = engine.search(&SearchRequest::new(vec![fixture.store], words)).unwrap().hits;
        (hits.len(), start.elapsed())
    };
    let (count, took) = find("okapi");
    assert_eq!(count, 1);
    assert!(took < LONG / 2, "{took:?}");
    assert_eq!(find("ibex").0, 1);
    lock.unlock().unwrap();
    fixture.put("/later.md", "giraffe");
    assert_eq!(find("giraffe").0, 1);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

/// Another process writes the index and is stopped: its lock stays.
#[test]
fn everything_is_found_while_another_holds_the_index() {
    let fixture = fixture();
    fixture.put("/a.md", "okapi");
    let find = |words: &str| {
        let request = SearchRequest::new(vec![fixture.store], words);
        fixture.engine.search(&request).unwrap().hits.len()
    };
    assert_eq!(find("okapi"), 1);
    let other = Connection::open(fixture.directory.path().join(INDEX_FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    for number in 0..20 {
        fixture.put("/a.md", &format!("zebra word{number}"));
        assert_eq!(find("zebra"), 1);
        assert_eq!(find(&format!("word{number}")), 1);
        assert_eq!(find("okapi"), 0);
    }
    assert!(start.elapsed() < 2 * LONG, "{:?}", start.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(find("word19"), 1);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}
