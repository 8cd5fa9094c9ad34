//! Many stores in one file: each has an index of its own, whatever happens to the others.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;
use quipu_core::ErrorKind;
use quipu_core::model::StoreId;
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{actor, at, library, put};

/// Returns the paths and scores of all hits in some stores.
fn found(library: &Library, stores: &[StoreId], text: &str) -> Vec<(String, u64)> {
    let request = SearchRequest { limit: 500, ..SearchRequest::new(stores.to_vec(), text) };
    let page = library.engine.search(&request).expect("it searches");
    assert!(!page.is_behind);
    page.hits.iter().map(|hit| (hit.note.path.to_string(), hit.score.to_bits())).collect()
}

fn has_on_disk(library: &Library, word: &str) -> bool {
    let files = fs::read_dir(library.directory.path()).expect("a directory");
    let has = |bytes: Vec<u8>| bytes.windows(word.len()).any(|it| it == word.as_bytes());
    files.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file")).any(has)
}

/// Returns the word of a store. It shares no letter with the terms before it and has no parts, so that
/// it is on the disk as it is.
fn own(number: usize) -> String {
    let letter = |place: usize| char::from(b'a' + u8::try_from(place % 26).expect("a letter"));
    format!("zq{}{}k", letter(number / 26), letter(number))
}

/// A library with some stores of three notes each, of which one has a word of its own.
fn shelves(count: usize) -> (Library, Vec<StoreId>) {
    let library = library();
    let stores: Vec<_> =
        (0..count).map(|number| new_store(&library.engine, &format!("s{number}"))).collect();
    for (number, store) in stores.iter().enumerate() {
        for note in 0..3 {
            let own = if note == 0 { own(number) } else { "other".to_owned() };
            put(&library, *store, &format!("/{number}/{note}.md"), &format!("tea {own}"));
        }
    }
    (library, stores)
}

#[test]
fn a_search_over_many_stores_finds_what_is_in_each() {
    let (library, stores) = shelves(60);
    assert_eq!(found(&library, &stores, "tea").len(), 180);
    for number in [0, 31, 59] {
        let word = own(number);
        let path = format!("/{number}/0.md");
        assert_eq!(found(&library, &stores, &word)[0].0, path);
        assert_eq!(found(&library, &stores[number..=number], &word)[0].0, path);
        assert_eq!(found(&library, &stores[(number + 1) % 60..][..1], &word), []);
    }
    // One file with its log, and two lock files, however many stores there are.
    assert!(fs::read_dir(library.directory.path()).expect("a directory").count() <= 5);
}

/// Erasing a store removes its words from the file and changes nothing for the others.
#[test]
fn erasing_one_store_changes_no_other() {
    let (library, stores) = shelves(8);
    let others: Vec<_> = stores.iter().copied().filter(|store| *store != stores[3]).collect();
    let before: Vec<_> = others.iter().map(|store| found(&library, &[*store], "tea")).collect();
    found(&library, &stores, &own(3));
    assert!(has_on_disk(&library, &own(3)));
    library.engine.erase_store(stores[3]).expect("it is erased");
    assert!(!has_on_disk(&library, &own(3)) && !has_on_disk(&library, "/3/0.md"));
    let after: Vec<_> = others.iter().map(|store| found(&library, &[*store], "tea")).collect();
    assert_eq!(before, after);
    let error = library.engine.search(&SearchRequest::new(stores.clone(), "tea"));
    assert_eq!(*error.expect_err("one is gone").kind(), ErrorKind::NotFound);
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

/// A deleted store is gone at once, and complete when it is restored.
#[test]
fn a_restored_store_is_searched_as_before() {
    let (library, stores) = shelves(3);
    let before = found(&library, &stores[..1], "tea");
    for is_indexed in [true, false] {
        library.engine.delete_store(stores[0]).expect("it is deleted");
        let gone = library.engine.search(&SearchRequest::new(stores[..1].to_vec(), "tea"));
        assert_eq!(*gone.expect_err("it is gone").kind(), ErrorKind::NotFound);
        assert_eq!(found(&library, &stores[1..], "tea").len(), 6);
        if is_indexed {
            library.engine.follow(None).expect("it follows");
        } else {
            library.engine.discard_index().expect("it is discarded");
        }
        let workspace = library.engine.default_workspace().expect("a workspace").id;
        let restored = library.engine.restore_store(workspace, "s0", None);
        assert_eq!(restored.expect("it is restored").id, stores[0]);
        assert_eq!(found(&library, &stores[..1], "tea"), before);
        assert_eq!(library.engine.check().expect("it checks").problems, []);
    }
}

/// Pruning erases what was deleted long ago, from the index too.
#[test]
fn a_store_that_is_pruned_leaves_the_file() {
    let (library, stores) = shelves(2);
    found(&library, &stores, &own(1));
    library.engine.delete_store(stores[1]).expect("it is deleted");
    library.clock.advance(Duration::from_hours(24 * 30));
    library.engine.prune().expect("it prunes");
    assert!(!has_on_disk(&library, &own(1)));
    assert_eq!(found(&library, &stores[..1], &own(0)).len(), 1);
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

/// What happens to a store in a random run.
#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize),
    Delete(usize, usize),
    Search(usize),
    Follow,
    Redact(usize),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize, 0..6_usize).prop_map(|(store, note)| Step::Put(store, note)),
        2 => (0..4_usize, 0..6_usize).prop_map(|(store, note)| Step::Delete(store, note)),
        2 => (0..4_usize).prop_map(Step::Search),
        1 => Just(Step::Follow),
        1 => (0..4_usize).prop_map(Step::Redact),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Four stores in one file answer as four stores with a file each.
    #[test]
    fn stores_in_one_file_are_like_stores_of_their_own(
        steps in prop::collection::vec(step(), 1..50),
    ) {
        let mut library = library();
        let stores: Vec<_> =
            (0..4).map(|number| new_store(&library.engine, &format!("s{number}"))).collect();
        for (number, step) in steps.iter().enumerate() {
            take(&mut library, &stores, step, number);
        }
        for store in &stores {
            let alone = tempfile::tempdir().expect("a directory");
            let engine = Knowledge::new(library.engine.engine().clone(), alone.path());
            for text in ["tea", "w1", "w2 tea", "\"tea w3\"", "NOT w1"] {
                let request = SearchRequest { limit: 500, ..SearchRequest::new(vec![*store], text) };
                let page = engine.search(&request).expect("it searches");
                let expected: Vec<_> = page
                    .hits
                    .iter()
                    .map(|hit| (hit.note.path.to_string(), hit.score.to_bits()))
                    .collect();
                prop_assert_eq!(found(&library, &[*store], text), expected, "{}", text);
            }
        }
        prop_assert_eq!(library.engine.check().expect("it checks").problems, []);
    }
}

fn take(library: &mut Library, stores: &[StoreId], step: &Step, number: usize) {
    let path = |note: usize| format!("/{note}.md");
    match step {
        Step::Put(store, note) => {
            put(library, stores[*store], &path(*note), &format!("tea w{} n{number}", number % 4));
        }
        // It may not be there.
        Step::Delete(store, note) => {
            drop(library.engine.delete_at(&actor(), stores[*store], &at(&path(*note))));
        }
        Step::Search(store) => drop(found(library, &stores[*store..=*store], "tea")),
        Step::Follow => drop(library.engine.follow(None).expect("it follows")),
        Step::Redact(store) => {
            let leaked =
                put(library, stores[*store], "/leak.md", &format!("canary{number}x")).version;
            put(library, stores[*store], "/leak.md", &format!("clean {number}"));
            let redacted = library.engine.redact(&actor(), stores[*store], &[leaked]);
            redacted.expect("it redacts");
            assert!(!has_on_disk(library, &format!("canary{number}x")));
        }
        Step::Reopen => {
            let engine = library.engine.engine().clone();
            library.engine = Knowledge::new(engine, library.directory.path());
        }
    }
}
