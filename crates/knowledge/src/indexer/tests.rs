use std::fs;

use quipu_core::backend::{PendingErasure, Sequence};
use quipu_core::model::Id as _;
use quipu_testkit::InMemoryBackend;
use rusqlite::Connection;

use super::building::Lock;
use super::*;
use crate::fixture::{Fixture, actor, find, new_store, put};
use crate::index::INDEX_FILE;
use crate::{Knowledge, SearchRequest};

/// Reads what the index of a store lacks, as whoever catches up does before it writes.
fn read_changes(fixture: &Fixture, store: StoreId) -> (Cursor, Batch, Cursor) {
    let indexer = &fixture.knowledge.indexer;
    let from = indexer.registered(store, &Attempt::new(&|_| Ok(()))).unwrap();
    let changed = fixture.knowledge.engine.read(|reader| changed(reader, store, from)).unwrap();
    let Changed::Few { memories, removed, to } = changed else { panic!("there are few") };
    (from, batch(&memories, removed), to)
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

/// The store had no row that could say that something was erased, so what another process had read
/// before the redaction was written after it.
#[test]
fn a_first_batch_that_was_read_before_a_redaction_is_not_written_after_it() {
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

/// The same where the redaction could not write the index, and removed the file.
#[test]
fn a_batch_that_was_read_before_the_file_was_removed_is_not_written_after_it() {
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
fn a_batch_of_a_store_that_was_erased_is_not_written() {
    let fixture = Fixture::new();
    fixture.put("/leak.md", "canary37");
    let late = read_changes(&fixture, fixture.store);
    fixture.knowledge.erase_store(fixture.store).unwrap();
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
    // Nor does it get a row again by being looked at.
    let attempt = Attempt::new(&|_| Ok(()));
    fixture.knowledge.indexer.catch_up(fixture.store, &attempt).unwrap();
    assert_eq!(fixture.knowledge.indexer.row(fixture.store).unwrap(), None);
}

#[test]
fn a_batch_that_another_has_overtaken_is_not_written() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let late = read_changes(&fixture, fixture.store);
    fixture.put("/a.md", "coffee");
    assert_eq!(fixture.find("coffee"), ["/a.md"]);
    assert_eq!(apply(&fixture, &late), Applied::Outdated);
    assert_eq!(fixture.find("tea"), Vec::<String>::new());
    fixture.assert_sound();
}

/// A backup was restored, and then written to: the same sequences are other changes.
#[test]
fn an_index_of_a_history_that_was_undone_is_not_trusted() {
    let fixture = Fixture::new();
    fixture.put("/kept.md", "tea");
    fixture.put("/a.md", "tea lost");
    fixture.find("tea");
    fixture.clock.advance(Duration::from_hours(1));
    // The same number of changes, of which one is another.
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

/// The last change was a deletion, of which pruning left no version, and it has left the feed: nothing
/// of the store is newer than the index.
#[test]
fn a_deletion_that_nothing_tells_of_any_more_is_not_missed() {
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

/// Every store would have waited for the same stopped process.
#[test]
fn who_cannot_write_finds_it_out_once_for_all_stores() {
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

/// A process that is stopped while it builds one store kept everybody from every store that is new.
#[test]
fn a_small_store_does_not_wait_for_another_that_is_built() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    // The feed does not reach back, so the store must be built.
    fixture.clock.advance(Duration::from_hours(24 * 400));
    put(&fixture.knowledge, new_store(&fixture.knowledge, "other"), "/x.md", "x");
    fixture.knowledge.prune().unwrap();
    let Lock::Mine(lock) = fixture.knowledge.indexer.try_lock() else { panic!("nobody has it") };
    assert_eq!(fixture.find("tea"), ["/a.md"]);
    fixture.put("/b.md", "tea");
    assert_eq!(fixture.find("tea"), ["/a.md", "/b.md"]);
    drop(lock);
    assert_eq!(fixture.find("tea"), ["/a.md", "/b.md"]);
    assert!(fixture.knowledge.indexer.is_reached(fixture.store).unwrap());
}

#[test]
fn what_is_searched_in_memory_has_a_bound() {
    let attempt = Attempt::new(&|_| Ok(()));
    let overlay = || Batch::default().overlay(quipu_core::model::Timestamp::MIN);
    let of = |size_bytes| attempt.in_memory(Cursor::START, size_bytes, overlay);
    assert!(matches!(of(OVERLAYS_SIZE_BYTES_MAX - 1), CaughtUp::InMemory(..)));
    assert!(matches!(of(2), CaughtUp::Behind));
    assert!(matches!(of(1), CaughtUp::InMemory(..)));
}

#[test]
fn long_texts_are_not_read_all_at_once() {
    let fixture = Fixture::new();
    let long = "word ".repeat(20_000);
    for number in 0..100 {
        fixture.put(&format!("/{number}.md"), &long);
    }
    let from = Cursor::START;
    let changed = fixture.knowledge.engine.read(|reader| changed(reader, fixture.store, from));
    assert!(matches!(changed.unwrap(), Changed::Many(ids, _) if ids.len() == 100));
}

/// Whoever searches after each write leaves nothing to catch up with, but segments to merge.
#[test]
fn the_follower_merges_what_searches_took_in() {
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

/// What is left of a store that is being removed is nobody's, also if nothing can be written.
#[test]
fn a_store_that_was_restored_while_it_was_removed_shows_nothing_old() {
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
fn nothing_is_kept_of_a_store_that_does_not_exist() {
    let fixture = Fixture::new();
    let unknown = StoreId::from_bits(77);
    let attempt = Attempt::new(&|_| Ok(()));
    fixture.knowledge.indexer.catch_up(unknown, &attempt).unwrap();
    assert_eq!(fixture.knowledge.indexer.row(unknown).unwrap(), None);
    assert!(fixture.knowledge.search(&SearchRequest::new(vec![unknown], "tea")).is_err());
}

/// The erasing of one process is finished by another one.
#[test]
fn an_erasing_that_is_done_twice_harms_nothing() {
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

/// Several threads bring the same stores to the present at once.
#[test]
fn threads_that_catch_up_at_once_agree() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
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
