//! Links: what they lead to, what leads to a memory, what leads nowhere.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use quipu_core::ErrorKind;
use quipu_knowledge::Scope;
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{library, memory, put, rename, scope, targets, with};

fn sources(library: &Library, scope: &Scope, path: &str) -> Vec<String> {
    let links = library.engine.backlinks(scope, memory(library, path).id, 1_000).expect("links");
    assert!(links.iter().all(|link| link.to.as_ref().is_some_and(|to| to.path.as_str() == path)));
    links.iter().map(|link| link.from.path.to_string()).collect()
}

fn broken(library: &Library) -> Vec<String> {
    let links = library.engine.unresolved(&scope(library), 100).expect("links");
    assert!(links.iter().all(|link| link.to.is_none()));
    links.iter().map(|it| format!("{} {}", it.from.path, it.link.target.name)).collect()
}

fn orphans(library: &Library, scope: &Scope) -> Vec<String> {
    let orphans = library.engine.orphans(scope, 100).expect("orphans");
    assert_eq!(orphans.total_count, orphans.notes.len());
    orphans.notes.iter().map(|note| note.path.to_string()).collect()
}

#[test]
fn links_are_listed_in_the_order_of_the_text() {
    let library = with(&[
        ("/a.md", "[[c]]\n\n- needs [[b]] (soon)\n\n[[b#Part|shown]] ![[c]] [x](b.md)"),
        ("/b.md", "b"),
        ("/c.md", "c"),
    ]);
    let links = library.engine.links(&scope(&library), memory(&library, "/a.md").id, 9);
    let links = links.expect("links");
    assert!(links.iter().enumerate().all(|(place, it)| it.link.position == place));
    let needs = links.iter().find(|it| it.link.kind == "needs").expect("a relation");
    assert_eq!((needs.link.context.as_deref(), needs.link.line), (Some("soon"), 3));
    let part = links.iter().find(|it| it.link.target.section.is_some()).expect("a section");
    assert_eq!(part.link.target.section.as_deref(), Some("Part"));
    assert_eq!(part.link.target.alias.as_deref(), Some("shown"));
    assert_eq!(links.len(), 5);
    let first = library.engine.links(&scope(&library), memory(&library, "/a.md").id, 2);
    assert_eq!(first.expect("links"), links[..2]);
}

#[test]
fn an_unknown_memory_has_no_links_to_list() {
    let library = with(&[("/a.md", "[[b]]")]);
    let id = memory(&library, "/a.md").id;
    library.delete("/a.md");
    for found in [
        library.engine.links(&scope(&library), id, 9),
        library.engine.backlinks(&scope(&library), id, 9),
    ] {
        let error = found.expect_err("it is gone");
        assert_eq!(*error.kind(), ErrorKind::NotFound);
        assert!(error.hint().is_some_and(|hint| hint.contains("deleted")));
    }
}

/// Links to images and documents were never meant to be memories.
#[test]
fn attachments_are_not_listed_as_broken() {
    let library = with(&[(
        "/a.md",
        "![[scan.png]] [[report.pdf]] [[Missing]] [x](missing.md) [y](photo.jpg) [[v1.2]]",
    )]);
    assert_eq!(broken(&library), ["/a.md Missing", "/a.md missing.md", "/a.md v1.2"]);
}

#[test]
fn broken_links_are_limited_and_ordered() {
    let library = with(&[("/b.md", "[[x]] [[y]]"), ("/a.md", "[[z]]"), ("/c/d.md", "[[w]]")]);
    assert_eq!(broken(&library), ["/a.md z", "/b.md x", "/b.md y", "/c/d.md w"]);
    let two = library.engine.unresolved(&scope(&library), 2).expect("links");
    assert_eq!(two.len(), 2);
    library.put("/x.md", "here now");
    assert_eq!(broken(&library), ["/a.md z", "/b.md y", "/c/d.md w"]);
    library.delete("/b.md");
    assert_eq!(broken(&library), ["/a.md z", "/c/d.md w"]);
}

/// A name that several memories have, none of which is exact, is not guessed.
#[test]
fn a_link_by_an_ambiguous_alias_leads_nowhere() {
    let library = with(&[
        ("/one.md", "---\naliases: [brew]\n---\n"),
        ("/two.md", "---\naliases: [Brew]\n---\n"),
        ("/from.md", "[[brew]]"),
    ]);
    assert_eq!(targets(&library, &scope(&library), "/from.md"), ["?"]);
    assert_eq!(sources(&library, &scope(&library), "/one.md"), Vec::<String>::new());
    library.delete("/two.md");
    assert_eq!(targets(&library, &scope(&library), "/from.md"), ["/one.md"]);
    assert_eq!(sources(&library, &scope(&library), "/one.md"), ["/from.md"]);
}

/// Moving a note changes what is near it.
#[test]
fn a_link_is_seen_from_where_its_note_is_now() {
    let library = with(&[
        ("/x/tea.md", "# Tea"),
        ("/y/tea.md", "# Tea"),
        ("/x/from.md", "[[Tea]] [[./tea.md]]"),
    ]);
    assert_eq!(targets(&library, &scope(&library), "/x/from.md"), ["/x/tea.md", "/x/tea.md"]);
    assert_eq!(sources(&library, &scope(&library), "/x/tea.md").len(), 2);
    rename(&library, "/x/from.md", "/y/from.md");
    assert_eq!(targets(&library, &scope(&library), "/y/from.md"), ["/y/tea.md", "/y/tea.md"]);
    assert_eq!(sources(&library, &scope(&library), "/x/tea.md"), Vec::<String>::new());
    rename(&library, "/y/from.md", "/from.md");
    assert_eq!(targets(&library, &scope(&library), "/from.md"), ["/x/tea.md", "?"]);
}

#[test]
fn decomposed_links_lead_to_composed_names() {
    let library = with(&[
        ("/Café.md", "# Crème brûlée"),
        ("/from.md", "[[Cafe\u{301}]] [[cre\u{300}me bru\u{302}le\u{301}e]] [x](Cafe%CC%81.md)"),
    ]);
    let expected = ["/Café.md", "/Café.md", "/Café.md"];
    assert_eq!(targets(&library, &scope(&library), "/from.md"), expected);
    assert_eq!(sources(&library, &scope(&library), "/Café.md"), ["/from.md"; 3]);
    assert_eq!(broken(&library), Vec::<String>::new());
}

#[test]
fn a_note_that_links_only_itself_is_an_orphan() {
    let library = with(&[
        ("/self.md", "[[self]]"),
        ("/broken.md", "[[nothing]]"),
        ("/a.md", "[[b]]"),
        ("/b.md", ""),
    ]);
    assert_eq!(orphans(&library, &scope(&library)), ["/broken.md", "/self.md"]);
    let one = library.engine.orphans(&scope(&library), 1).expect("orphans");
    assert_eq!((one.notes.len(), one.total_count), (1, 2));
    library.delete("/a.md");
    assert_eq!(orphans(&library, &scope(&library)), ["/b.md", "/broken.md", "/self.md"]);
}

/// What `backlinks` lists in a scope is a link in that scope.
#[test]
fn a_memory_that_another_store_links_is_no_orphan() {
    let library = with(&[("/tea.md", "# Tea"), ("/cup.md", "[[other::far]]")]);
    let other = new_store(&library.engine, "other");
    put(&library, other, "/far.md", "# Far");
    put(&library, other, "/from.md", "[[tests::Tea]]");
    let both = Scope::new(library.store, [other]);
    assert_eq!(sources(&library, &both, "/tea.md"), ["/from.md"]);
    assert_eq!(orphans(&library, &both), Vec::<String>::new());
    // Within the store alone, neither link leads anywhere.
    assert_eq!(orphans(&library, &scope(&library)), ["/cup.md", "/tea.md"]);
}

#[test]
fn a_graph_has_the_links_between_the_notes_it_shows() {
    let library =
        with(&[("/a.md", "[[b]] [[b]] [[c]]"), ("/b.md", "- likes [[a]]"), ("/c.md", "")]);
    let graph = library.engine.graph(library.store, 2).expect("a graph");
    let kind = |kind: &str| kind.to_owned();
    let links = [(0, 1, kind("links_to")), (0, 1, kind("links_to")), (1, 0, kind("likes"))];
    assert_eq!(graph.links, links);
    assert!(graph.is_cut);
    let graph = library.engine.graph(library.store, 3).expect("a graph");
    assert_eq!((graph.notes.len(), graph.links.len(), graph.is_cut), (3, 4, false));
    let nothing = library.engine.graph(library.store, 0).expect("a graph");
    assert_eq!((nothing.notes.len(), nothing.links.len(), nothing.is_cut), (0, 0, true));
}

/// A store that takes no new text keeps its names and links.
#[test]
fn an_archived_store_keeps_its_links() {
    let library = with(&[("/a.md", "[[b]]"), ("/b.md", "# Kettle")]);
    library.engine.archive_store(library.store).expect("it is archived");
    assert_eq!(targets(&library, &scope(&library), "/a.md"), ["/b.md"]);
    assert_eq!(library.find("kettle"), ["/b.md"]);
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

/// Two hundred ways to one memory are listed as far as asked for, the oldest notes first.
#[test]
fn backlinks_are_limited_and_ordered_by_age() {
    let library = with(&[("/hub.md", "# Hub")]);
    for number in (0..30).rev() {
        library.put(&format!("/{number:02}.md"), "[[Hub]] and again [[hub.md]]");
    }
    let all = sources(&library, &scope(&library), "/hub.md");
    assert_eq!(all.len(), 60);
    assert_eq!((all[0].as_str(), all[59].as_str()), ("/29.md", "/00.md"));
    let hub = memory(&library, "/hub.md").id;
    let few = library.engine.backlinks(&scope(&library), hub, 3).expect("links");
    assert_eq!(few.len(), 3);
    assert!(few.iter().zip(&all).all(|(link, path)| link.from.path.as_str() == path));
}

const PATHS: [&str; 7] =
    ["/a.md", "/b.md", "/x/a.md", "/x/b.md", "/x/y/a.md", "/Tea House.md", "/x/Tea_House.md"];
const TITLES: [&str; 5] = ["Tea House", "tea-house", "A", "b", "x/a"];
const LINKS: [&str; 16] = [
    "[[a]]",
    "[[A]]",
    "[[b]]",
    "[[x/a]]",
    "[[./a]]",
    "[[../a.md]]",
    "[[Tea House]]",
    "[[tea_house]]",
    "[t](a.md)",
    "[t](../b.md)",
    "- needs [[b]]",
    "[[/x/b.md]]",
    "[[x/y/a#Part|it]]",
    "[[a-1]]",
    "[t](memory://tests/x/a)",
    "[[nothing]]",
];

fn note() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        2 => Just(String::new()),
        1 => select(&TITLES[..]).prop_map(|title| format!("---\ntitle: {title}\n---\n")),
        1 => select(&TITLES[..]).prop_map(|name| format!("---\naliases: [{name}]\n---\n")),
        1 => select(&["a", "x/a", "tea-house"][..])
            .prop_map(|name| format!("---\npermalink: {name}\n---\n")),
    ];
    let links = prop::collection::vec(select(&LINKS[..]), 0..6);
    (head, links).prop_map(|(head, links)| format!("{head}{}\n", links.join("\n\n")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Backlinks are found by the names of their target, links by resolving each: both must agree,
    /// whatever the notes are called and however the links are written.
    #[test]
    fn backlinks_are_the_links_turned_round(
        notes in prop::collection::vec((select(&PATHS[..]), note()), 1..10),
        moved in prop::option::of((select(&PATHS[..]), select(&PATHS[..]))),
    ) {
        let library = library();
        for (path, text) in &notes {
            library.put(path, text);
        }
        if let Some((from, to)) = moved {
            let (from, to) = (crate::shelf::at(from), crate::shelf::at(to));
            drop(library.engine.rename(&crate::shelf::actor(), library.store, &from, &to));
        }
        let scope = scope(&library);
        let graph = library.engine.graph(library.store, 100).expect("a graph");
        let (mut there, mut back, mut broken) = (Vec::new(), Vec::new(), 0);
        for note in &graph.notes {
            for link in library.engine.links(&scope, note.memory, 100).expect("links") {
                match &link.to {
                    Some(to) => there.push((note.memory, link.link.position, to.memory)),
                    None => broken += usize::from(!link.link.target.is_attachment()),
                }
            }
            for link in library.engine.backlinks(&scope, note.memory, 1_000).expect("links") {
                back.push((link.from.memory, link.link.position, note.memory));
            }
        }
        there.sort_unstable();
        back.sort_unstable();
        prop_assert_eq!(&there, &back);
        prop_assert_eq!(library.engine.unresolved(&scope, 1_000).expect("links").len(), broken);
        prop_assert_eq!(graph.links.len(), there.len());
        let linked: BTreeSet<_> = there
            .iter()
            .filter(|(from, _, to)| from != to)
            .flat_map(|(from, _, to)| [*from, *to])
            .collect();
        let alone = library.engine.orphans(&scope, 100).expect("orphans").total_count;
        prop_assert_eq!(alone, graph.notes.len() - linked.len());
        let permalinks: BTreeSet<_> = graph.notes.iter().map(|note| &note.permalink).collect();
        prop_assert_eq!(permalinks.len(), graph.notes.len(), "permalinks are unique");
    }
}
