use std::fs;
use std::thread;

use quipu_core::backend::{PendingErasure, Sequence};
use quipu_core::model::Id as _;
use quipu_testkit::InMemoryBackend;
use rusqlite::Connection;

use super::building::Lock;
use super::*;
use crate::fixture::{Fixture, actor, find, new_store, put};
use crate::index::INDEX_FILE;
use crate::{Knowledge, SearchRequest};

mod following;
mod freshness;
mod turns;

/// Reads the changes that the index of a store lacks, as catching up does before it writes.
fn read_changes(fixture: &Fixture, store: StoreId) -> (Cursor, Batch, Cursor) {
    let indexer = &fixture.knowledge.indexer;
    let from = indexer.registered(store, &Attempt::new(&|_| Ok(()))).unwrap();
    let changed = fixture.knowledge.engine.read(|reader| changed(reader, store, from)).unwrap();
    let Changed::Few { memories, removed, to } = changed else { panic!("there are few") };
    (from, batch(&memories, removed, &mut Lexicon::default()), to)
}

fn apply(fixture: &Fixture, (from, batch, to): &(Cursor, Batch, Cursor)) -> Applied {
    let indexer = &fixture.knowledge.indexer;
    let applied = indexer
        .file
        .write(|connection| batch.apply(connection, fixture.store, (*from, *to), to.sequence));
    applied.unwrap()
}

fn leak(fixture: &Fixture) -> quipu_core::model::VersionId {
    let version = fixture.put("/leak.md", "canary37").version;
    fixture.put("/leak.md", "clean");
    version
}

/// Regression: without a row, nothing recorded the redaction, so a batch that another process had
/// read before it was written after it.
#[test]
fn a_first_batch_read_before_a_redaction_is_not_applied_after_it() {
    let fixture = Fixture::new();
    let leaked = fixture.put("/leak.md", "canary37").version;
    let late = read_changes(&fixture, fixture.store);
    fixture.put("/leak.md", "clean");
    fixture.knowledge.redact(&actor(), fixture.store, &[leaked]).unwrap();
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
    assert_eq!(fixture.find("clean"), ["/leak.md"]);
    fixture.assert_sound();
}

/// The same, if the redaction could not write the index and removed the file.
#[test]
fn a_batch_read_before_the_file_was_removed_is_not_applied_after_it() {
    let fixture = Fixture::new();
    let leaked = fixture.put("/leak.md", "canary37").version;
    let late = read_changes(&fixture, fixture.store);
    fixture.put("/leak.md", "clean");
    fixture.knowledge.discard_index().unwrap();
    fixture.knowledge.redact(&actor(), fixture.store, &[leaked]).unwrap();
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
}

#[test]
fn a_batch_of_an_erased_store_is_not_applied() {
    let fixture = Fixture::new();
    fixture.put("/leak.md", "canary37");
    let late = read_changes(&fixture, fixture.store);
    fixture.knowledge.erase_store(fixture.store).unwrap();
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
    // Catching up does not bring its row back either.
    let attempt = Attempt::new(&|_| Ok(()));
    fixture.knowledge.indexer.catch_up(fixture.store, &attempt).unwrap();
    assert_eq!(fixture.knowledge.indexer.row(fixture.store).unwrap(), None);
}

#[test]
fn an_outdated_batch_is_not_applied() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let late = read_changes(&fixture, fixture.store);
    fixture.put("/a.md", "coffee");
    assert_eq!(fixture.find("coffee"), ["/a.md"]);
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.find("tea"), Vec::<String>::new());
    fixture.assert_sound();
}

/// A restored backup that was then written to: the same sequences are other changes.
#[test]
fn an_index_of_a_rolled_back_history_is_not_trusted() {
    let fixture = Fixture::new();
    fixture.put("/kept.md", "tea");
    fixture.put("/a.md", "tea lost");
    fixture.find("tea");
    fixture.clock.advance(Duration::from_hours(1));
    // As many changes as before, but a different one among them.
    let restored = Fixture::new();
    let store = restored.store;
    assert_eq!(store, fixture.store, "the clock of a test makes the same ids");
    restored.put("/kept.md", "tea");
    restored.clock.advance(Duration::from_secs(1));
    restored.put("/b.md", "tea instead");
    fixture.knowledge.close().unwrap();
    let name = |it: &Fixture| it.directory.path().join(INDEX_FILE);
    fs::copy(name(&fixture), name(&restored)).unwrap();
    assert_eq!(restored.find("tea"), ["/b.md", "/kept.md"]);
    assert_eq!(restored.find("lost"), Vec::<String>::new());
    restored.assert_sound();
}

/// The last change was a deletion, of which pruning left no version, and it has left the feed:
/// nothing in the store is newer than the index.
#[test]
fn a_deletion_without_any_record_is_not_missed() {
    let fixture = Fixture::new();
    fixture.put("/gone.md", "# Gone\n\ntea");
    assert_eq!(fixture.find("tea"), ["/gone.md"]);
    let path = quipu_core::model::MemoryPath::parse("/gone.md").unwrap();
    fixture.knowledge.delete_at(&actor(), fixture.store, &path).unwrap();
    fixture.clock.advance(Duration::from_hours(24 * 400));
    let other = new_store(&fixture.knowledge, "other");
    put(&fixture.knowledge, other, "/a.md", "x");
    fixture.knowledge.prune().unwrap();
    let request = SearchRequest::new(vec![fixture.store], "tea");
    assert_eq!(fixture.knowledge.search(&request).unwrap().total.count, 0);
    fixture.assert_sound();
}

/// Regression: every store waited for the same stopped process.
#[test]
fn an_unwritable_file_is_detected_once_for_all_stores() {
    let fixture = Fixture::new();
    fixture.find("tea");
    let stores: Vec<_> = (0..40)
        .map(|number| {
            let store = new_store(&fixture.knowledge, &format!("store{number}"));
            put(&fixture.knowledge, store, "/a.md", "tea");
            store
        })
        .collect();
    let holder = Connection::open(fixture.directory.path().join(INDEX_FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let attempt = Attempt::new(&|_| Ok(()));
    let mut waits = 0;
    for &store in &stores {
        let was_blocked = attempt.is_blocked();
        let caught_up = fixture.knowledge.indexer.catch_up(store, &attempt).unwrap();
        assert!(matches!(caught_up, CaughtUp::InMemory(..)));
        waits += usize::from(!was_blocked);
    }
    assert_eq!(waits, 1);
    let request = SearchRequest { limit: 100, ..SearchRequest::new(stores.clone(), "tea") };
    let page = fixture.knowledge.search(&request).unwrap();
    assert_eq!((page.hits.len(), page.is_behind), (40, false));
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(find(&fixture.knowledge, stores[7], "tea"), ["/a.md"]);
}

/// Regression: a process that was stopped while building one store blocked every new store.
#[test]
fn a_small_store_does_not_wait_for_the_build_of_another() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    // The feed does not reach back, so the store must be built.
    fixture.clock.advance(Duration::from_hours(24 * 400));
    put(&fixture.knowledge, new_store(&fixture.knowledge, "other"), "/x.md", "x");
    fixture.knowledge.prune().unwrap();
    let Lock::Acquired(lock) = fixture.knowledge.indexer.try_lock() else {
        panic!("nobody has it")
    };
    assert_eq!(fixture.find("tea"), ["/a.md"]);
    fixture.put("/b.md", "tea");
    assert_eq!(fixture.find("tea"), ["/a.md", "/b.md"]);
    drop(lock);
    assert_eq!(fixture.find("tea"), ["/a.md", "/b.md"]);
    assert!(fixture.knowledge.indexer.is_reached(fixture.store).unwrap());
}

#[test]
fn the_size_of_overlays_is_bounded() {
    let attempt = Attempt::new(&|_| Ok(()));
    let overlay = || Batch::default().overlay(quipu_core::model::Timestamp::MIN);
    let of = |size_bytes| attempt.in_memory(Cursor::START, size_bytes, overlay);
    assert!(matches!(of(OVERLAYS_SIZE_BYTES_MAX - 1), CaughtUp::InMemory(..)));
    assert!(matches!(of(2), CaughtUp::Behind));
    assert!(matches!(of(1), CaughtUp::InMemory(..)));
}

#[test]
fn large_changes_are_not_read_at_once() {
    let fixture = Fixture::new();
    let long = "word ".repeat(20_000);
    for number in 0..100 {
        fixture.put(&format!("/{number}.md"), &long);
    }
    let from = Cursor::START;
    let changed = fixture.knowledge.engine.read(|reader| changed(reader, fixture.store, from));
    assert!(matches!(changed.unwrap(), Changed::Many(ids, _) if ids.len() == 100));
}

/// A search after each write leaves nothing to catch up with, but segments to merge.
#[test]
fn the_follower_merges_segments_that_searches_added() {
    let fixture = Fixture::new();
    for number in 0..600 {
        fixture.put(&format!("/{number}.md"), "tea");
        if number % 10 == 0 {
            fixture.find("tea");
        }
    }
    fixture.find("tea");
    fixture.knowledge.follow(Some(Sequence(0))).unwrap();
    let row = fixture.knowledge.indexer.row(fixture.store).unwrap().unwrap();
    let is_due = fixture.knowledge.indexer.read_file(|it| crate::index::is_due(it, row.num));
    assert!(!is_due.unwrap());
    assert_eq!(fixture.find("tea").len(), 500);
    fixture.assert_sound();
}

/// The remaining rows of a store that is being removed are ignored, even if nothing can be written.
#[test]
fn a_store_restored_during_its_removal_shows_nothing_old() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    fixture.find("tea");
    let indexer = &fixture.knowledge.indexer;
    let half_removed = indexer.write_file(|connection| {
        let row = store_row(connection, fixture.store)?.ok_or(IndexError::Damaged)?;
        crate::index::put_store(connection, &row.removed())
    });
    half_removed.unwrap();
    fixture.put("/a.md", "coffee");
    let holder = Connection::open(fixture.directory.path().join(INDEX_FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fixture.find("tea"), Vec::<String>::new());
    assert_eq!(fixture.find("coffee"), ["/a.md"]);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(fixture.find("coffee"), ["/a.md"]);
    assert_eq!(fixture.find("tea"), Vec::<String>::new());
    fixture.assert_sound();
}

#[test]
fn a_store_that_does_not_exist_gets_no_row() {
    let fixture = Fixture::new();
    let unknown = StoreId::from_bits(77);
    let attempt = Attempt::new(&|_| Ok(()));
    fixture.knowledge.indexer.catch_up(unknown, &attempt).unwrap();
    assert_eq!(fixture.knowledge.indexer.row(unknown).unwrap(), None);
    assert!(fixture.knowledge.search(&SearchRequest::new(vec![unknown], "tea")).is_err());
}

/// Another process finishes the erasure that one has begun.
#[test]
fn erasing_twice_is_harmless() {
    let backend = std::sync::Arc::new(InMemoryBackend::default());
    let fixture = Fixture::over(backend);
    for number in 0..400 {
        fixture.put(&format!("/{number}.md"), &format!("tea unique{number}"));
    }
    let version = leak(&fixture);
    fixture.find("tea");
    let memory = fixture.put("/leak.md", "clean again").id;
    let pending = [PendingErasure { store: fixture.store, memory: Some(memory), count: 1 }];
    fixture.knowledge.redact(&actor(), fixture.store, &[version]).unwrap();
    for _ in 0..3 {
        quipu_core::Derived::erase(&*fixture.knowledge.indexer, &pending).unwrap();
        assert_eq!(fixture.find("unique77"), ["/77.md"]);
    }
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
    fixture.assert_sound();
}

/// Several threads bring the same stores up to date at once.
#[test]
fn threads_that_catch_up_concurrently_agree() {
    let fixture = Fixture::new();
    thread::scope(|scope| {
        for thread in 0..4 {
            let knowledge: &Knowledge = &fixture.knowledge;
            let store = fixture.store;
            scope.spawn(move || {
                for number in 0..30 {
                    let word = format!("w{thread}x{number}");
                    put(knowledge, store, &format!("/{thread}/{}.md", number % 7), &word);
                    assert_eq!(find(knowledge, store, &word).len(), 1, "{word}");
                    knowledge.follow(Some(Sequence(number * 3))).unwrap();
                }
            });
        }
    });
    fixture.assert_sound();
}

#[test]
fn a_leader_that_takes_long_is_given_up() {
    let turn = Turn::default();
    let _leader = turn.lead_or_follow(Duration::from_mins(1));
    assert!(matches!(turn.lead_or_follow(Duration::from_millis(1)), Asked::GaveUp));
}

#[test]
fn a_panic_gives_the_turn_back() {
    let turn = Turn::default();
    let panicked = thread::scope(|scope| {
        let panics = || {
            let _leader = turn.lead_or_follow(Duration::from_mins(1));
            panic!("in the middle");
        };
        scope.spawn(panics).join().is_err()
    });
    assert!(panicked);
    assert!(matches!(turn.lead_or_follow(Duration::from_mins(1)), Asked::Leads(_)));
}

/// Each part is stored with its own cursor, so that two threads share the work of a burst instead of
/// both doing all of it.
#[test]
fn many_changes_are_indexed_in_parts() {
    let fixture = Fixture::new();
    fixture.find("warm");
    for number in 0..=2 * FEW_MAX {
        fixture.put(&format!("/{number}.md"), "tea");
    }
    let indexer = &fixture.knowledge.indexer;
    let attempt = Attempt::new(&|_| Ok(()));
    let newest = fixture.knowledge.newest_sequence().unwrap();
    let mut reached = indexer.cursor(fixture.store).unwrap().sequence;
    for _ in 0..2 {
        let part = indexer.lead_or_follow(fixture.store, &attempt).unwrap();
        assert!(matches!(part, CaughtUp::Followed), "a part does not complete the index");
        let cursor = indexer.cursor(fixture.store).unwrap().sequence;
        assert!(reached < cursor && cursor < newest);
        reached = cursor;
    }
    let rest = indexer.lead_or_follow(fixture.store, &attempt).unwrap();
    assert!(matches!(rest, CaughtUp::Stored));
    let request = SearchRequest::new(vec![fixture.store], "tea");
    assert_eq!(fixture.knowledge.search(&request).unwrap().total.count, 2 * FEW_MAX + 1);
    fixture.assert_sound();
}

/// Changes of other stores in between make no part without a memory, and a memory that changes all the
/// time is indexed once.
#[test]
fn parts_hold_memories_of_their_store() {
    let fixture = Fixture::new();
    fixture.find("warm");
    let other = new_store(&fixture.knowledge, "other");
    for number in 0..=FEW_MAX {
        for round in 0..3 {
            put(&fixture.knowledge, other, "/busy.md", &format!("{number} {round}"));
        }
        fixture.put(&format!("/{number}.md"), "tea");
    }
    let from = fixture.knowledge.indexer.cursor(fixture.store).unwrap();
    let engine = &fixture.knowledge.engine;
    let (ids, to) = engine.read(|reader| parts::first(reader, fixture.store, from)).unwrap();
    assert_eq!(ids.len(), FEW_MAX);
    let (rest, end) = engine.read(|reader| parts::first(reader, fixture.store, to)).unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(end.sequence, engine.newest_sequence().unwrap());
    let change = engine.changes(Sequence(to.sequence.0 - 1), 1).unwrap();
    assert_eq!((change.items[0].at, change.items[0].store), (to.at, fixture.store));
    let (busy, _) = engine.read(|reader| parts::first(reader, other, from)).unwrap();
    assert_eq!(busy.len(), 1);
    let request = SearchRequest::new(vec![fixture.store], "tea");
    assert_eq!(fixture.knowledge.search(&request).unwrap().total.count, FEW_MAX + 1);
    fixture.assert_sound();
}

/// Opening a named pipe waits for somebody to open its other end, and nobody ever does.
#[cfg(unix)]
#[test]
fn named_pipes_in_place_of_files_do_not_block_a_search() {
    for name in [INDEX_FILE, "index.db-lock", "index.lock"] {
        let fixture = Fixture::new();
        fixture.put("/a.md", "tea");
        let pipe = fixture.directory.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(fixture.find("tea"), ["/a.md"], "{name}");
    }
}

#[test]
fn a_compacted_index_is_smaller_and_holds_the_same() {
    let fixture = Fixture::new();
    let word = |number: usize| format!("w{number}");
    let text = |number: usize| (0..200).map(|it| word(it * number)).collect::<Vec<_>>().join(" ");
    for number in 0..100 {
        fixture.put(&format!("/{number}.md"), &text(number));
    }
    fixture.find("w1");
    for number in 1..100 {
        fixture.put(&format!("/{number}.md"), "tea");
    }
    fixture.find("tea");
    fixture.knowledge.tidy_index(fixture.store).unwrap();
    let before = fixture.knowledge.index_size_bytes();
    fixture.knowledge.compact_index().unwrap();
    assert!(fixture.knowledge.index_size_bytes() < before / 2);
    assert_eq!(fixture.find("tea").len(), 99);
    fixture.assert_sound();
}
