//! Recent activity: the last change of each memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_core::ErrorKind;
use quipu_core::model::{Operation, StoreId, Timestamp, VersionId};
use quipu_knowledge::{RecentChange, RecentRequest};
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{actor, library, put, rename, with};

fn request(stores: &[StoreId]) -> RecentRequest {
    RecentRequest {
        stores: stores.to_vec(),
        since: Timestamp::MIN,
        operations: Vec::new(),
        kinds: Vec::new(),
        before: None,
        limit: 100,
    }
}

fn recent(library: &Library, request: &RecentRequest) -> (Vec<RecentChange>, Option<VersionId>) {
    let page = library.engine.recent(request).expect("it lists");
    (page.items, page.next)
}

fn shown(changes: &[RecentChange]) -> String {
    let one = |it: &RecentChange| {
        let path = it.version.path.as_ref().map_or("?", |path| path.as_str());
        format!("{path} {}", it.changes_count)
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_memory_is_listed_once_with_the_number_of_its_changes() {
    let library = with(&[("/a.md", "1"), ("/b.md", "1"), ("/a.md", "2"), ("/a.md", "3")]);
    let (changes, next) = recent(&library, &request(&[library.store]));
    assert_eq!((shown(&changes).as_str(), next), ("/a.md 3, /b.md 1", None));
    assert_eq!(changes[0].version.operation, Operation::Modified);
    assert!(changes.iter().all(|change| change.version.content.is_none()), "without texts");
}

/// Writing the same text again is no change.
#[test]
fn a_write_that_changes_nothing_is_not_recent() {
    let library = with(&[("/a.md", "1"), ("/b.md", "1"), ("/a.md", "1")]);
    let (changes, _) = recent(&library, &request(&[library.store]));
    assert_eq!(shown(&changes), "/b.md 1, /a.md 1");
}

#[test]
fn a_moved_memory_is_listed_at_its_new_path() {
    let library = with(&[("/a.md", "# Tea"), ("/b.md", "x")]);
    rename(&library, "/a.md", "/c/d.md");
    let (changes, _) = recent(&library, &request(&[library.store]));
    assert_eq!(shown(&changes), "/c/d.md 2, /b.md 1");
    assert_eq!(changes[0].title, "Tea");
}

/// The title of a deleted memory is the last that it had.
#[test]
fn a_deleted_memory_keeps_its_title_and_type() {
    let library = with(&[("/a.md", "---\ntype: recipe\n---\n# Tea"), ("/b.md", "x")]);
    library.put("/a.md", "---\ntype: recipe\n---\n# Green tea");
    library.delete("/a.md");
    let (changes, _) = recent(&library, &request(&[library.store]));
    let gone = &changes[0];
    assert_eq!((gone.title.as_str(), gone.kind.as_deref()), ("Green tea", Some("recipe")));
    assert_eq!((gone.version.operation, gone.changes_count), (Operation::Deleted, 3));
    let of_kind = |kind: &str| {
        let kinds = vec![kind.to_owned()];
        shown(&recent(&library, &RecentRequest { kinds, ..request(&[library.store]) }).0)
    };
    assert_eq!(of_kind("RECIPE"), "/a.md 3");
    assert_eq!(of_kind("note"), "/b.md 1");
    assert_eq!(of_kind("other"), "");
}

/// Redacted text is not told again as a title.
#[test]
fn the_title_of_a_redacted_memory_is_not_shown() {
    let library = library();
    let version = library.put("/secret-plan.md", "# The secret plan").version;
    library.delete("/secret-plan.md");
    library.engine.redact(&actor(), library.store, &[version]).expect("it redacts");
    let (changes, _) = recent(&library, &request(&[library.store]));
    assert!(changes.iter().all(|change| !change.title.contains("The secret")), "{changes:?}");
}

#[test]
fn the_time_of_the_request_is_inclusive() {
    let library = library();
    let first = library.put("/a.md", "1").updated_at;
    library.put("/b.md", "1");
    let since = |since| RecentRequest { since, ..request(&[library.store]) };
    assert_eq!(shown(&recent(&library, &since(first)).0), "/b.md 1, /a.md 1");
    assert_eq!(shown(&recent(&library, &since(first.next())).0), "/b.md 1");
    // A memory counts if its last change is recent, with the changes that are.
    library.put("/a.md", "2");
    assert_eq!(shown(&recent(&library, &since(first.next())).0), "/a.md 1, /b.md 1");
}

#[test]
fn only_wanted_operations_are_listed_and_counted() {
    let library = with(&[("/a.md", "1"), ("/a.md", "2"), ("/a.md", "3"), ("/b.md", "1")]);
    library.delete("/b.md");
    let of = |operations: &[Operation]| {
        let operations = operations.to_vec();
        shown(&recent(&library, &RecentRequest { operations, ..request(&[library.store]) }).0)
    };
    assert_eq!(of(&[Operation::Created]), "/b.md 1, /a.md 1");
    assert_eq!(of(&[Operation::Modified]), "/a.md 2");
    assert_eq!(of(&[Operation::Deleted]), "/b.md 1");
    assert_eq!(of(&[Operation::Created, Operation::Deleted]), "/b.md 2, /a.md 1");
}

#[test]
fn several_stores_are_listed_as_one() {
    let library = with(&[("/a.md", "1")]);
    let other = new_store(&library.engine, "other");
    put(&library, other, "/b.md", "1");
    library.put("/c.md", "1");
    put(&library, other, "/d.md", "1");
    let both = request(&[library.store, other]);
    assert_eq!(shown(&recent(&library, &both).0), "/d.md 1, /c.md 1, /b.md 1, /a.md 1");
    assert_eq!(shown(&recent(&library, &request(&[other])).0), "/d.md 1, /b.md 1");
    let twice = request(&[other, other]);
    assert_eq!(shown(&recent(&library, &twice).0), "/d.md 1, /b.md 1", "named twice, listed once");
    let gone = new_store(&library.engine, "gone");
    library.engine.erase_store(gone).expect("it is erased");
    let error = library.engine.recent(&request(&[library.store, gone])).expect_err("refused");
    assert_eq!(*error.kind(), ErrorKind::NotFound);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Pages of any size add up to the whole list: no memory twice, none missing.
    #[test]
    fn pages_add_up(
        writes in prop::collection::vec((0..2_usize, 0..9_usize), 1..40),
        size in 1..6_usize,
    ) {
        let library = library();
        let stores = [library.store, new_store(&library.engine, "other")];
        let mut last = BTreeMap::new();
        for (number, (store, place)) in writes.iter().enumerate() {
            let path = format!("/{place}.md");
            put(&library, stores[*store], &path, &format!("text {number}"));
            last.insert((*store, path), number);
        }
        let mut expected: Vec<_> = last.into_iter().map(|(place, at)| (at, place)).collect();
        expected.sort_by(|left, right| right.cmp(left));
        let (mut listed, mut before) = (Vec::new(), None);
        loop {
            let page = RecentRequest { before, limit: size, ..request(&stores) };
            let (changes, next) = recent(&library, &page);
            prop_assert!(changes.len() <= size);
            for change in &changes {
                let store = usize::from(change.version.store == stores[1]);
                listed.push((store, change.version.path.as_ref().expect("a path").to_string()));
            }
            before = next;
            if next.is_none() {
                break;
            }
        }
        let expected: Vec<_> = expected.into_iter().map(|(_, place)| place).collect();
        prop_assert_eq!(listed, expected);
    }
}
