use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::model::{MemoryPath, StoreId};
use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use super::super::changes::ids_between;
use super::super::{Attempt, CaughtUp, FEW_MAX, newest};
use crate::fixture::{Fixture, actor, find, new_store, put};
use crate::index::{Cursor, INDEX_FILE, IndexError};
use crate::{Knowledge, SearchRequest};

fn at(path: &str) -> MemoryPath {
    MemoryPath::parse(path).unwrap()
}

/// Returns another handle on the same memories and the same file, as another process has.
fn other(fixture: &Fixture) -> Knowledge {
    Knowledge::new(fixture.knowledge.engine.clone(), fixture.directory.path())
}

fn total(knowledge: &Knowledge, store: StoreId, text: &str) -> usize {
    knowledge.search(&SearchRequest::new(vec![store], text)).unwrap().total.count
}

fn put_many(fixture: &Fixture, count: usize) {
    for number in 0..count {
        fixture.put(&format!("/{number}.md"), "tea");
    }
}

/// Both sides of the number of changes that are read at once.
#[test]
fn few_and_many_changes_are_indexed_alike() {
    for count in [FEW_MAX, FEW_MAX + 1] {
        let fixture = Fixture::new();
        put_many(&fixture, count);
        assert_eq!(total(&fixture.knowledge, fixture.store, "tea"), count);
        assert!(fixture.knowledge.indexer.is_reached(fixture.store).unwrap());
        fixture.assert_sound();
    }
}

/// Indexes everything as if it were more than is indexed in parts.
fn build(fixture: &Fixture, progress: &dyn Fn(f64) -> Result<(), Error>) -> Result<(), Error> {
    let (indexer, store) = (&fixture.knowledge.indexer, fixture.store);
    let attempt = Attempt::new(progress);
    let from = indexer.registered(store, &attempt)?;
    let (ids, to) = fixture.knowledge.engine.read(|reader| {
        let to = newest(reader)?;
        Ok((ids_between(reader, store, (from, to))?, to))
    })?;
    let built = indexer.apply_changes(store, &ids, (from, to), &attempt);
    built.map(drop).map_err(IndexError::into_error)
}

/// A build that was stopped leaves the cursor where it was, and the next one goes on.
#[test]
fn work_that_was_aborted_is_continued() {
    let fixture = Fixture::new();
    put_many(&fixture, FEW_MAX + 200);
    let stop = |share: f64| {
        let error = Error::new(ErrorKind::StorageBusy, "stopped");
        if share > 0.0 { Err(error) } else { Ok(()) }
    };
    let stopped = build(&fixture, &stop);
    assert_eq!(stopped.unwrap_err().to_string(), "stopped");
    let row = fixture.knowledge.indexer.row(fixture.store).unwrap().unwrap();
    assert_eq!(row.cursor, Cursor::START, "the rest is still to come");
    assert_eq!(row.totals.counts[0], u64::try_from(FEW_MAX).unwrap(), "one batch is stored");
    fixture.put("/0.md", "coffee");
    assert_eq!(total(&fixture.knowledge, fixture.store, "tea"), FEW_MAX + 199);
    assert_eq!(fixture.find("coffee"), ["/0.md"]);
    fixture.assert_sound();
}

#[test]
fn progress_is_told_and_never_goes_back() {
    let fixture = Fixture::new();
    put_many(&fixture, FEW_MAX + 1);
    let shares = std::cell::RefCell::new(Vec::new());
    let tell = |share| {
        shares.borrow_mut().push(share);
        Ok(())
    };
    build(&fixture, &tell).unwrap();
    let shares = shares.into_inner();
    assert!(shares.len() >= 2 && shares.is_sorted(), "{shares:?}");
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
}

/// More changes than are searched in memory, and a file that cannot be written.
#[test]
fn a_search_that_lacks_changes_says_so() {
    let fixture = Fixture::new();
    fixture.put("/old.md", "tea old");
    fixture.find("tea");
    let holder = Connection::open(fixture.directory.path().join(INDEX_FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    put_many(&fixture, FEW_MAX + 1);
    let page = fixture.knowledge.search(&SearchRequest::new(vec![fixture.store], "tea")).unwrap();
    assert_eq!((page.total.count, page.is_behind), (1, true));
    // Another store, which lacks nothing, is complete.
    let small = new_store(&fixture.knowledge, "small");
    put(&fixture.knowledge, small, "/a.md", "tea");
    assert_eq!(find(&fixture.knowledge, small, "tea"), ["/a.md"]);
    holder.execute_batch("ROLLBACK").unwrap();
    let page = fixture.knowledge.search(&SearchRequest::new(vec![fixture.store], "tea")).unwrap();
    assert_eq!((page.total.count, page.is_behind), (FEW_MAX + 2, false));
}

#[test]
fn a_memory_that_moves_back_and_forth_is_where_it_is() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let (here, there) = (at("/a.md"), at("/b/c.md"));
    for round in 0..6 {
        let (from, to) = if round % 2 == 0 { (&here, &there) } else { (&there, &here) };
        fixture.knowledge.rename(&actor(), fixture.store, from, to).unwrap();
        // Some moves are seen together, so that the memory is where the index has it.
        if round % 3 == 0 {
            assert_eq!(fixture.find("tea"), [to.as_str()]);
            assert_eq!(fixture.find("path:/b").len(), usize::from(round % 2 == 0));
        }
    }
    assert_eq!(fixture.find("tea"), ["/a.md"]);
    fixture.assert_sound();
}

#[test]
fn the_same_text_written_again_after_its_deletion_is_found_once() {
    let fixture = Fixture::new();
    for round in 0..5 {
        let memory = fixture.put("/a.md", "# Tea\n\n- [fact] hot\n- needs [[Water]]");
        if round % 2 == 0 {
            assert_eq!(fixture.find("tea"), ["/a.md"]);
        }
        fixture.knowledge.delete_at(&actor(), fixture.store, &at("/a.md")).unwrap();
        if round % 3 == 0 {
            assert_eq!(fixture.find("tea"), Vec::<String>::new());
        }
        assert!(fixture.knowledge.card(fixture.store, memory.id).is_err());
    }
    fixture.assert_sound();
}

/// Every search sees what its own thread has written, through whichever handle.
#[test]
fn writers_and_searches_of_two_handles_agree() {
    let fixture = Fixture::new();
    let handles = [fixture.knowledge.clone(), other(&fixture)];
    let write = &|number: usize| {
        let handle = &handles[number % 2];
        for round in 0..20 {
            let (word, path) =
                (format!("w{number}x{round}"), format!("/{number}/{}.md", round % 4));
            put(handle, fixture.store, &path, &format!("tea {word}"));
            assert_eq!(find(handle, fixture.store, &word), [path]);
        }
    };
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || write(number));
        }
    });
    for handle in &handles {
        assert_eq!(total(handle, fixture.store, "tea"), 16);
    }
    fixture.assert_sound();
}

/// A store is erased while others search it and write to another one.
#[test]
fn a_store_that_is_erased_under_searches_is_gone() {
    let fixture = Fixture::new();
    let doomed = new_store(&fixture.knowledge, "doomed");
    for number in 0..40 {
        put(&fixture.knowledge, doomed, &format!("/{number}.md"), "tea canary91");
    }
    let is_erased = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (fixture, is_erased) = (&fixture, &is_erased);
            scope.spawn(move || {
                for round in 0..20 {
                    let was_erased = is_erased.load(Ordering::SeqCst);
                    match fixture.knowledge.search(&SearchRequest::new(vec![doomed], "tea")) {
                        Ok(page) => assert!(!was_erased && page.total.count == 40),
                        Err(error) => assert_eq!(*error.kind(), ErrorKind::NotFound, "{error:?}"),
                    }
                    put(
                        &fixture.knowledge,
                        fixture.store,
                        &format!("/{thread}.md"),
                        &format!("x{round}"),
                    );
                    assert!(!fixture.find(&format!("x{round}")).is_empty());
                }
            });
        }
        fixture.knowledge.erase_store(doomed).unwrap();
        is_erased.store(true, Ordering::SeqCst);
    });
    assert_eq!(fixture.files_with("canary91"), Vec::<String>::new());
    assert_eq!(fixture.knowledge.indexer.row(doomed).unwrap(), None);
    fixture.assert_sound();
}

/// Texts are redacted while other threads index and merge them.
#[test]
fn text_that_is_redacted_under_indexers_stays_gone() {
    let fixture = Fixture::new();
    let second = other(&fixture);
    thread::scope(|scope| {
        for handle in [&fixture.knowledge, &second] {
            let store = fixture.store;
            scope.spawn(move || {
                for round in 0..15 {
                    put(handle, store, &format!("/busy/{round}.md"), "tea");
                    drop(handle.search(&SearchRequest::new(vec![store], "tea")).unwrap());
                    handle.follow(None).unwrap();
                }
            });
        }
        for round in 0..5 {
            let leaked = fixture.put("/leak.md", &format!("canary37 {round}")).version;
            fixture.put("/leak.md", &format!("clean {round}"));
            fixture.knowledge.redact(&actor(), fixture.store, &[leaked]).unwrap();
        }
    });
    assert_eq!(fixture.find("canary37"), Vec::<String>::new());
    assert_eq!(fixture.files_with("canary37"), Vec::<String>::new());
    assert_eq!(fixture.find("clean"), ["/leak.md"]);
    fixture.assert_sound();
}

/// The whole index is discarded again and again while it is searched.
#[test]
fn searches_survive_that_the_index_is_discarded() {
    let fixture = Fixture::new();
    for number in 0..10 {
        fixture.put(&format!("/{number}.md"), "tea");
    }
    let searches_count = AtomicUsize::new(0);
    thread::scope(|scope| {
        let searches = scope.spawn(|| {
            for _ in 0..30 {
                assert_eq!(fixture.find("tea").len(), 10);
                searches_count.fetch_add(1, Ordering::SeqCst);
            }
        });
        while !searches.is_finished() {
            // A search gives up after a hundred attempts, so it must not be disturbed in each of them.
            let before = searches_count.load(Ordering::SeqCst);
            for _ in 0..20 {
                fixture.knowledge.discard_index().unwrap();
                thread::yield_now();
            }
            while searches_count.load(Ordering::SeqCst) == before && !searches.is_finished() {
                thread::yield_now();
            }
        }
    });
    assert_eq!(fixture.find("tea").len(), 10);
    fixture.assert_sound();
}

#[test]
fn following_brings_every_changed_store_up_to_date() {
    let fixture = Fixture::new();
    let others: Vec<_> =
        (0..3).map(|it| new_store(&fixture.knowledge, &format!("s{it}"))).collect();
    for store in &others {
        put(&fixture.knowledge, *store, "/a.md", "tea");
    }
    let indexer = &fixture.knowledge.indexer;
    assert_eq!(fixture.knowledge.followed(), Sequence(0));
    let reached = fixture.knowledge.follow(None).unwrap();
    assert_eq!(fixture.knowledge.followed(), reached);
    assert!(others.iter().all(|store| indexer.is_reached(*store).unwrap()));
    // Only what changed since is looked at.
    put(&fixture.knowledge, others[1], "/b.md", "tea");
    let cursors = |store: &StoreId| indexer.cursor(*store).unwrap();
    let before: Vec<_> = others.iter().map(cursors).collect();
    assert!(fixture.knowledge.follow(Some(reached)).unwrap() > reached);
    let after: Vec<_> = others.iter().map(cursors).collect();
    assert_eq!((before[0], before[2]), (after[0], after[2]));
    assert!(indexer.is_reached(others[1]).unwrap());
}

/// A follower that was away for longer than the feed reaches back checks all stores.
#[test]
fn following_from_a_forgotten_place_misses_nothing() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let seen = fixture.knowledge.follow(None).unwrap();
    fixture.put("/b.md", "tea");
    fixture.clock.advance(Duration::from_hours(24 * 400));
    put(&fixture.knowledge, new_store(&fixture.knowledge, "other"), "/x.md", "x");
    fixture.knowledge.prune().unwrap();
    fixture.knowledge.follow(Some(seen)).unwrap();
    assert!(fixture.knowledge.indexer.is_reached(fixture.store).unwrap());
    assert_eq!(fixture.find("tea"), ["/a.md", "/b.md"]);
    fixture.assert_sound();
}

/// A deleted store needs no index, and following it is no error.
#[test]
fn following_ignores_stores_that_are_gone() {
    let fixture = Fixture::new();
    let gone = new_store(&fixture.knowledge, "gone");
    put(&fixture.knowledge, gone, "/a.md", "tea");
    fixture.knowledge.erase_store(gone).unwrap();
    fixture.knowledge.follow(Some(Sequence(0))).unwrap();
    fixture.knowledge.follow(None).unwrap();
    let attempt = Attempt::new(&|_| Ok(()));
    let caught_up = fixture.knowledge.indexer.catch_up(gone, &attempt).unwrap();
    assert!(matches!(caught_up, CaughtUp::InMemory(..)));
    fixture.knowledge.tidy_index(gone).unwrap();
}

/// A handle that must not block does not index, and says so by answering nothing.
#[test]
fn a_handle_that_must_not_wait_does_not_search() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    let request = SearchRequest::new(vec![fixture.store], "tea");
    assert!(fixture.knowledge.without_waiting(|it| it.search(&request)).is_none());
    let read_only = fixture.knowledge.without_writing(|it| it.search(&request));
    assert_eq!(read_only.unwrap().unwrap().total.count, 1, "indexing writes no memory");
}
