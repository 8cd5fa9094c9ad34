//! An index on demand: only what is searched is indexed, within a size.

use std::path::Path;
use std::sync::Arc;

use quipu_core::clock::SystemClock;
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{Actor, Content, MemoryPath, Name, PrincipalName, StoreId};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Engine};
use quipu_knowledge::{Knowledge, SearchRequest};
use quipu_testkit::InMemoryBackend;

const LARGE: u64 = 1 << 30;

fn engine(backend: &Arc<dyn Backend>) -> Engine {
    Engine::new(Arc::clone(backend), Arc::new(SystemClock), Limits::default())
}

fn on_demand(backend: &Arc<dyn Backend>, directory: &Path, size_bytes_max: u64) -> Knowledge {
    Knowledge::on_demand(engine(backend), directory, size_bytes_max)
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("tester"))
}

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a valid path")
}

fn new_store(engine: &Engine, name: &str) -> StoreId {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore::named(Name::new(name).expect("a name"));
    engine.create_store(workspace, &new).expect("a store").id
}

fn put(engine: &Engine, store: StoreId, at: &str, text: &str) {
    let content = Content::new(text).expect("valid content");
    let put = engine.put(&actor(), store, (&path(at), &content), Precondition::None);
    put.expect("it is written");
}

fn found(knowledge: &Knowledge, store: StoreId, query: &str) -> usize {
    let request = SearchRequest::new(vec![store], query);
    knowledge.search(&request).expect("the search runs").hits.len()
}

fn holds(directory: &Path, word: &str) -> bool {
    std::fs::read_dir(directory).expect("the directory can be listed").any(|entry| {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("the file can be read");
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    })
}

#[test]
fn a_store_is_indexed_when_it_is_first_searched() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let knowledge = on_demand(&backend, directory.path(), LARGE);
    let (one, other) = (new_store(&knowledge, "one"), new_store(&knowledge, "other"));
    put(&knowledge, one, "/a.md", "zinnia");
    put(&knowledge, other, "/b.md", "begonia");
    knowledge.follow(None).expect("it follows");
    assert!(!holds(directory.path(), "zinnia"));
    assert_eq!(found(&knowledge, one, "zinnia"), 1);
    put(&knowledge, one, "/c.md", "zinnia again");
    knowledge.follow(None).expect("it follows");
    assert_eq!(found(&knowledge, one, "zinnia"), 2);
    assert!(holds(directory.path(), "zinnia") && !holds(directory.path(), "begonia"));
}

/// A word of each store that begins like no other, so that the index has all of its bytes in one place.
const NAMES: [&str; 8] =
    ["aardvark", "buffalo", "coyote", "dolphin", "echidna", "flamingo", "gazelle", "hedgehog"];

/// Fills some stores with words of their own.
fn fill(knowledge: &Knowledge) -> Vec<StoreId> {
    let filled = NAMES.iter().enumerate().map(|(number, name)| {
        let store = new_store(knowledge, &format!("store{number}"));
        put(knowledge, store, "/name.md", name);
        for note in 0..40 {
            let words = (0..100).map(|word| format!("w{number}x{note}x{word}"));
            let words: Vec<_> = words.collect();
            put(knowledge, store, &format!("/{note}.md"), &format!("common {}", words.join(" ")));
        }
        store
    });
    filled.collect()
}

/// Returns how much of the index is in use.
fn used_bytes(knowledge: &Knowledge) -> u64 {
    knowledge.compact_index().expect("it is compacted");
    knowledge.index_size_bytes()
}

#[test]
fn the_stores_that_were_not_searched_for_longest_leave_a_full_index() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let [whole, part] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
    let knowledge = on_demand(&backend, whole.path(), LARGE);
    let stores = fill(&knowledge);
    for &store in &stores {
        assert_eq!(found(&knowledge, store, "common"), 10, "a page is full");
    }
    let whole_bytes = used_bytes(&knowledge);

    let knowledge = on_demand(&backend, part.path(), whole_bytes / 2);
    for &store in &stores {
        assert_eq!(found(&knowledge, store, "common"), 10, "a page is full");
        // The first one is searched all the time, so it stays.
        assert_eq!(found(&knowledge, stores[0], "w0x1x1"), 1);
    }
    let part_bytes = used_bytes(&knowledge);
    assert!(part_bytes <= whole_bytes / 2, "{part_bytes} of {whole_bytes}");
    assert!(holds(part.path(), "aardvark"), "the one that is searched all the time");
    assert!(!holds(part.path(), "coyote"), "one that is not");
    // What has left is found all the same.
    for (number, &store) in stores.iter().enumerate() {
        assert_eq!(found(&knowledge, store, &format!("w{number}x7x7")), 1);
    }
}

#[test]
fn a_directory_that_is_removed_is_made_again() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let home = tempfile::tempdir().expect("a directory can be made");
    let directory = home.path().join("cache");
    std::fs::create_dir(&directory).expect("it can be made");
    let knowledge = on_demand(&backend, &directory, LARGE);
    let store = new_store(&knowledge, "one");
    put(&knowledge, store, "/a.md", "zinnia");
    assert_eq!(found(&knowledge, store, "zinnia"), 1);
    std::fs::remove_dir_all(&directory).expect("it can be removed");
    assert_eq!(found(&knowledge, store, "zinnia"), 1);
    assert!(holds(&directory, "zinnia"));
}

#[test]
fn what_another_host_redacts_leaves_the_index_of_this_one() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
    let knowledge = on_demand(&backend, here.path(), LARGE);
    let store = new_store(&knowledge, "shared");
    put(&knowledge, store, "/leak.md", "xylograph");
    put(&knowledge, store, "/leak.md", "clean now");
    assert_eq!(found(&knowledge, store, "clean"), 1);
    put(&knowledge, store, "/other.md", "xylograph too");
    put(&knowledge, store, "/other.md", "xylograph three");
    assert_eq!(found(&knowledge, store, "xylograph"), 1);
    let seen = knowledge.follow(None).expect("it follows");

    let elsewhere = on_demand(&backend, there.path(), LARGE);
    put(&elsewhere, store, "/other.md", "clean too");
    let versions = elsewhere.history(store, &path("/other.md"), 9).expect("versions");
    let old: Vec<_> = versions.iter().skip(1).map(|version| version.id).collect();
    elsewhere.redact(&actor(), store, &old).expect("it is redacted");
    assert!(holds(here.path(), "xylograph"), "this host has not followed yet");
    knowledge.follow(Some(seen)).expect("it follows");
    assert!(!holds(here.path(), "xylograph"));
    assert_eq!(found(&knowledge, store, "clean"), 2);
}

/// This host is searched by commands only: nothing follows the feed between them.
#[test]
fn what_another_host_redacts_leaves_the_index_of_a_host_that_only_searches() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let [here, there] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
    let search = |store, query: &str| found(&on_demand(&backend, here.path(), LARGE), store, query);
    let elsewhere = on_demand(&backend, there.path(), LARGE);
    let [leaking, other] = ["leaking", "other"].map(|name| new_store(&elsewhere, name));
    put(&elsewhere, leaking, "/leak.md", "xylograph");
    put(&elsewhere, other, "/other.md", "begonia");
    assert_eq!((search(leaking, "xylograph"), search(other, "begonia")), (1, 1));

    put(&elsewhere, leaking, "/leak.md", "clean now");
    // The index of this host goes beyond the redaction with a search of the store.
    let versions = elsewhere.history(leaking, &path("/leak.md"), 9).expect("versions");
    elsewhere.redact(&actor(), leaking, &[versions[1].id]).expect("it is redacted");
    assert!(holds(here.path(), "xylograph"), "nobody has looked since");
    assert_eq!(search(leaking, "clean"), 1);
    assert!(!holds(here.path(), "xylograph"));

    // A search of another store erases it as well.
    put(&elsewhere, leaking, "/leak.md", "zinnia");
    assert_eq!(search(leaking, "zinnia"), 1);
    put(&elsewhere, leaking, "/leak.md", "clean again");
    let versions = elsewhere.history(leaking, &path("/leak.md"), 9).expect("versions");
    elsewhere.redact(&actor(), leaking, &[versions[1].id]).expect("it is redacted");
    assert!(holds(here.path(), "zinnia"), "nobody has looked since");
    assert_eq!(search(other, "begonia"), 1);
    assert!(!holds(here.path(), "zinnia"));
}

/// Two searches at once use more stores than fit; neither makes the other index its stores again and again.
#[test]
fn searches_that_are_larger_than_the_index_do_not_disturb_each_other() {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let directory = tempfile::tempdir().expect("a directory can be made");
    let knowledge = on_demand(&backend, directory.path(), 1);
    let stores = fill(&knowledge);
    let (one, other) = stores.split_at(4);
    std::thread::scope(|scope| {
        for searched in [one, other] {
            let knowledge = &knowledge;
            scope.spawn(move || {
                for _ in 0..5 {
                    let request = SearchRequest::new(searched.to_vec(), "common");
                    let hits = knowledge.search(&request).expect("the search runs").hits;
                    assert_eq!(hits.len(), 10, "a page is full");
                }
            });
        }
    });
}
