//! Context: walks along links, from one memory or from many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use quipu_core::ErrorKind;
use quipu_knowledge::{Context, ContextItem, ContextRequest, DEPTH_MAX, Direction, Related, Scope};
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{library, memory, put, scope, with};

fn context(library: &Library, name: &str, request: &ContextRequest) -> Context {
    library.engine.context(&scope(library), name, request).expect("it walks")
}

fn item(library: &Library, name: &str, request: &ContextRequest) -> ContextItem {
    let context = context(library, name, request);
    assert_eq!((context.items.len(), context.total_count, context.has_more), (1, 1, false));
    context.items.into_iter().next().expect("one item")
}

fn shown(related: &Related) -> String {
    let arrow = match related.direction {
        Direction::Outgoing => "→",
        Direction::Incoming => "←",
    };
    let title = related.note.as_ref().map_or("?", |note| note.title.as_str());
    format!("{}{arrow}{title}", related.depth)
}

fn related(library: &Library, name: &str, request: &ContextRequest) -> String {
    item(library, name, request).related.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn deep(depth: usize) -> ContextRequest {
    ContextRequest { depth, related_max: 200, ..ContextRequest::default() }
}

#[test]
fn a_chain_is_followed_as_far_as_asked_for_and_no_further() {
    let library = library();
    for number in 0..9 {
        library.put(&format!("/n{number}.md"), &format!("[[n{}]]", number + 1));
    }
    assert_eq!(related(&library, "n0", &deep(0)), "");
    assert_eq!(related(&library, "n0", &deep(1)), "1→n1");
    assert_eq!(related(&library, "n0", &deep(3)), "1→n1 2→n2 3→n3");
    let furthest = "1→n1 2→n2 3→n3 4→n4 5→n5";
    assert_eq!(related(&library, "n0", &deep(DEPTH_MAX)), furthest);
    assert_eq!(related(&library, "n0", &deep(usize::MAX)), furthest);
    assert_eq!(related(&library, "n8", &deep(2)), "1←n7 1→? 2←n6");
}

/// The memory that a step was taken from, so that a path can be drawn.
#[test]
fn each_step_says_where_it_came_from() {
    let library = with(&[("/a.md", "[[b]]"), ("/b.md", "- needs [[c]]"), ("/c.md", "")]);
    let item = item(&library, "a", &deep(2));
    let [first, second] = item.related.as_slice() else { panic!("{:?}", item.related) };
    assert_eq!(first.via, memory(&library, "/a.md").id);
    assert_eq!(second.via, memory(&library, "/b.md").id);
    assert_eq!(second.link.kind, "needs");
    assert_eq!(second.link.from, second.via);
}

#[test]
fn a_memory_that_links_itself_is_not_its_own_relative() {
    let library = with(&[("/a.md", "[[a]] [[A]] [[b]]"), ("/b.md", "[[a]]")]);
    assert_eq!(related(&library, "a", &deep(5)), "1→b 1←b");
}

/// What is not written yet comes last, and once, however often and however it is spelled.
#[test]
fn links_that_lead_nowhere_come_last() {
    let library =
        with(&[("/a.md", "[[Later]] [[later]] [[LATER]] [[b]] [[Never]]"), ("/b.md", "")]);
    assert_eq!(related(&library, "a", &deep(1)), "1→b 1→? 1→?");
}

#[test]
fn only_wanted_kinds_of_relations_are_followed_at_every_step() {
    let library = with(&[
        ("/a.md", "- needs [[b]]\n- likes [[c]]\n"),
        ("/b.md", "- needs [[d]]\n- likes [[e]]\n"),
        ("/c.md", "- needs [[f]]\n"),
        ("/d.md", ""),
        ("/e.md", ""),
        ("/f.md", ""),
    ]);
    let only = |kinds: &[&str]| ContextRequest {
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        ..deep(2)
    };
    assert_eq!(related(&library, "a", &only(&["needs"])), "1→b 2→d");
    assert_eq!(related(&library, "a", &only(&["likes"])), "1→c");
    assert_eq!(related(&library, "a", &only(&["needs", "likes"])), "1→b 1→c 2→d 2→e 2→f");
    assert_eq!(related(&library, "a", &only(&["hates"])), "");
    assert_eq!(related(&library, "d", &only(&["needs"])), "1←b 2←a");
}

/// An old memory is neither shown nor walked through.
#[test]
fn memories_that_did_not_change_end_a_walk() {
    let library = with(&[("/b.md", "[[c]]"), ("/c.md", "")]);
    let then = memory(&library, "/c.md").updated_at;
    library.put("/a.md", "[[b]]");
    let since = ContextRequest { changed_after: Some(then), ..deep(3) };
    assert_eq!(related(&library, "a", &since), "");
    library.put("/b.md", "[[c]] changed");
    assert_eq!(related(&library, "a", &since), "1→b");
    library.put("/c.md", "changed");
    assert_eq!(related(&library, "a", &since), "1→b 2→c");
}

#[test]
fn a_cut_walk_says_so() {
    let library =
        with(&[("/a.md", "[[b]] [[c]] [[d]]"), ("/b.md", ""), ("/c.md", ""), ("/d.md", "")]);
    for (related_max, is_cut) in [(0, true), (2, true), (3, false), (9, false)] {
        let request = ContextRequest { related_max, ..deep(1) };
        let item = item(&library, "a", &request);
        assert_eq!((item.related.len(), item.is_cut), (related_max.min(3), is_cut));
    }
}

/// At most 100 links of a memory are followed in each direction.
#[test]
fn a_memory_with_too_many_links_is_cut() {
    let library = library();
    for number in 0..101 {
        library.put(&format!("/n{number:03}.md"), if number < 100 { "[[in]]" } else { "" });
    }
    let out = (0..100).map(|it| format!("[[n{it:03}]]")).collect::<Vec<_>>().join(" ");
    library.put("/out.md", &out);
    library.put("/in.md", "");
    assert!(!item(&library, "out", &deep(1)).is_cut);
    assert!(!item(&library, "in", &deep(1)).is_cut);
    library.put("/out.md", &format!("{out} [[n100]]"));
    library.put("/n100.md", "[[in]]");
    let cut = item(&library, "out", &deep(1));
    assert_eq!((cut.related.len(), cut.is_cut), (100, true));
    let cut = item(&library, "in", &deep(1));
    assert_eq!((cut.related.len(), cut.is_cut), (100, true));
}

#[test]
fn observations_come_with_the_memory() {
    let library =
        with(&[("/tea.md", "# Tea\n\n- [fact] hot #x\n- [rule] @due:2026-01-01 brew it (soon)\n")]);
    let item = item(&library, "tea", &deep(0));
    let all: Vec<_> = item.observations.iter().map(ToString::to_string).collect();
    assert_eq!(all, ["[fact] hot #x", "[rule] @due:2026-01-01 brew it (soon)"]);
    assert_eq!(item.note.title, "Tea");
}

#[test]
fn a_shared_title_means_all_of_its_memories_by_path() {
    let library = with(&[("/b.md", "# Tea"), ("/a.md", "# Tea"), ("/c/x.md", "# Tea")]);
    let paths = |offset, limit| {
        let page = context(&library, "Tea", &ContextRequest { offset, limit, ..deep(0) });
        let paths = page.items.iter().map(|item| item.note.path.to_string()).collect::<Vec<_>>();
        (paths.join(" "), page.total_count, page.has_more)
    };
    assert_eq!(paths(0, 10), ("/a.md /b.md /c/x.md".to_owned(), 3, false));
    assert_eq!(paths(0, 2), ("/a.md /b.md".to_owned(), 3, true));
    assert_eq!(paths(2, 2), ("/c/x.md".to_owned(), 3, false));
    assert_eq!(paths(1, 0), (String::new(), 3, true));
    assert_eq!(paths(usize::MAX, usize::MAX), (String::new(), 3, false));
}

#[test]
fn a_name_without_a_memory_is_a_directory_or_unknown() {
    let library = with(&[("/docs/a.md", ""), ("/docs/b/c.md", ""), ("/docsx.md", "")]);
    let count = |name: &str| context(&library, name, &deep(0)).total_count;
    assert_eq!((count("docs"), count("/docs/"), count("docs/b"), count("docs/*")), (2, 2, 1, 2));
    let unknown = library.engine.context(&scope(&library), "doc", &deep(0));
    assert_eq!(*unknown.expect_err("unknown").kind(), ErrorKind::NotFound);
    // A memory of that name comes first.
    library.put("/docs.md", "");
    assert_eq!(count("docs"), 1);
}

#[test]
fn walks_cross_into_stores_in_scope_only() {
    let library = with(&[("/a.md", "[[other::b]]")]);
    let other = new_store(&library.engine, "other");
    put(&library, other, "/b.md", "[[c]] [[tests::a]]");
    put(&library, other, "/c.md", "");
    let both = Scope::new(library.store, [other]);
    let walk = |scope: &Scope| {
        let context = library.engine.context(scope, "/a.md", &deep(2)).expect("it walks");
        context.items[0].related.iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(walk(&both), "1→b 1←b 2→c");
    assert_eq!(walk(&scope(&library)), "1→?");
}

/// A graph of notes: the targets of each.
fn edges() -> impl Strategy<Value = Vec<BTreeSet<usize>>> {
    prop::collection::vec(prop::collection::btree_set(0_usize..9, 0..4), 9)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every memory within reach is found at its distance, whichever way its links point.
    #[test]
    fn a_walk_finds_every_memory_at_its_distance(edges in edges(), depth in 0..=DEPTH_MAX) {
        let library = library();
        for (from, targets) in edges.iter().enumerate() {
            let text = targets.iter().map(|to| format!("[[n{to}]]")).collect::<Vec<_>>().join(" ");
            library.put(&format!("/n{from}.md"), &text);
        }
        let mut distances = BTreeMap::from([(0, 0)]);
        let mut ahead = VecDeque::from([0]);
        while let Some(at) = ahead.pop_front() {
            let next = distances[&at] + 1;
            let is_near = |to: &usize| edges[at].contains(to) || edges[*to].contains(&at);
            for to in (0..9).filter(is_near) {
                if let std::collections::btree_map::Entry::Vacant(place) = distances.entry(to) {
                    place.insert(next);
                    ahead.push_back(to);
                }
            }
        }
        distances.remove(&0);
        distances.retain(|_, distance| *distance <= depth);
        let item = item(&library, "n0", &deep(depth));
        prop_assert!(item.related.is_sorted_by_key(|it| it.depth), "the nearest come first");
        let mut found = BTreeMap::new();
        for related in &item.related {
            let title = &related.note.as_ref().expect("every link resolves").title;
            let number: usize = title.trim_start_matches('n').parse().expect("a number");
            let known = found.insert(number, related.depth);
            prop_assert!(known.is_none_or(|known| known == related.depth && known == 1));
        }
        prop_assert_eq!(found, distances);
        prop_assert!(!item.is_cut);
    }
}
