//! Lists of memories and directories.

use std::num::NonZero;

use proptest::prelude::*;
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, View};

use crate::support::{Fixture, fixture};

fn list(fixture: &Fixture, directory: &str, depth: usize, page: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut after = None;
    loop {
        let query = ListQuery {
            directory: Directory::parse(directory).unwrap(),
            depth: NonZero::new(depth),
            after,
            limit: page,
            view: View::Basic,
        };
        let listed = fixture.engine.list(fixture.store, &query).unwrap();
        assert!(listed.items.len() <= page);
        assert!(listed.next.is_none() || !listed.items.is_empty(), "an empty page goes on");
        lines.extend(listed.items.iter().map(|item| item.sort_key().to_owned()));
        after = listed.next;
        if after.is_none() {
            return lines;
        }
    }
}

fn with(paths: &[&str]) -> Fixture {
    let fixture = fixture();
    for path in paths {
        fixture.put(path, "x");
    }
    fixture
}

#[test]
fn everything_in_byte_order() {
    let fixture = with(&["/b", "/a/1", "/a.md", "/a/2/3"]);
    assert_eq!(list(&fixture, "/", 0, 10), ["/a.md", "/a/1", "/a/2/3", "/b"]);
    assert_eq!(list(&fixture, "/a/", 0, 10), ["/a/1", "/a/2/3"]);
    assert_eq!(list(&fixture, "/none/", 0, 10), Vec::<String>::new());
}

#[test]
fn deeper_levels_are_rolled_up_at_their_place() {
    let fixture = with(&["/b", "/a/1", "/a/2", "/a.md", "/a0", "/a/2x/3"]);
    assert_eq!(list(&fixture, "/", 1, 10), ["/a.md", "/a/", "/a0", "/b"]);
    assert_eq!(list(&fixture, "/a/", 1, 10), ["/a/1", "/a/2", "/a/2x/"]);
    assert_eq!(list(&fixture, "/", 2, 10), ["/a.md", "/a/1", "/a/2", "/a/2x/", "/a0", "/b"]);
}

#[test]
fn a_directory_is_listed_once_however_small_the_pages() {
    let fixture = with(&["/a/1", "/a/2", "/a/3", "/b/1", "/b/2", "/c"]);
    for page in 1..5 {
        assert_eq!(list(&fixture, "/", 1, page), ["/a/", "/b/", "/c"]);
    }
}

#[test]
fn many_directories_and_many_memories() {
    let fixture = fixture();
    for number in 0..30 {
        fixture.put(&format!("/{number:02}/x"), "x");
        fixture.put(&format!("/{number:02}.md"), "x");
    }
    assert_eq!(list(&fixture, "/", 1, 7).len(), 60);
    assert_eq!(list(&fixture, "/", 0, 7).len(), 60);
}

proptest! {
    /// Pages of any size put together are the whole list, and the whole list is what rolling up
    /// the sorted paths by hand gives.
    #[test]
    fn pages_agree_with_a_list_made_by_hand(
        paths in prop::collection::btree_set("(/[ab.0]{1,2}){1,4}", 0..12),
        depth in 0_usize..4,
        page in 1_usize..5,
    ) {
        let fixture = fixture();
        for path in &paths {
            // A path that is taken by a directory, or breaks a rule, is left out.
            if quipu_core::model::MemoryPath::parse(path).is_ok() {
                drop(fixture.create(path, "x"));
            }
        }
        let all = list(&fixture, "/", 0, 100);
        let rolled_up = |path: &String| match path.match_indices('/').nth(depth) {
            Some((end, _)) if depth > 0 && end > 0 => path[..=end].to_owned(),
            _ => path.clone(),
        };
        let mut by_hand: Vec<String> = all.iter().map(rolled_up).collect();
        by_hand.dedup();
        prop_assert_eq!(list(&fixture, "/", depth, page), by_hand);
    }
}
