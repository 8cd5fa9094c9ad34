//! What names and links mean.

use quipu_core::ErrorKind;
use quipu_core::model::{Operation, Timestamp, View};
use quipu_knowledge::{ContextRequest, Direction, RecentRequest, Scope};

use super::{Library, actor, at, new_store, put};
use crate::conformance::Fixture;

impl Library {
    fn resolved(&self, identifier: &str) -> Result<String, ErrorKind> {
        let found = self.engine.resolve(&self.scope(), identifier, View::Basic);
        found.map(|memory| memory.path.to_string()).map_err(|error| error.kind().clone())
    }

    /// Returns the paths that the links of a memory mean, `?` for none.
    fn links_of(&self, path: &str, scope: &Scope) -> Vec<String> {
        let memory = self.engine.memory_at(self.store, &at(path), View::Basic).expect("it exists");
        let links = self.engine.links(scope, memory.id, 100).expect("they are listed");
        let to = |link: &quipu_knowledge::NoteLink| {
            link.to.as_ref().map_or_else(|| "?".to_owned(), |to| to.path.to_string())
        };
        links.iter().map(to).collect()
    }

    fn backlinks_of(&self, path: &str) -> Vec<String> {
        let memory = self.engine.memory_at(self.store, &at(path), View::Basic).expect("it exists");
        let links = self.engine.backlinks(&self.scope(), memory.id, 100).expect("they are listed");
        let mut from: Vec<_> = links.iter().map(|link| link.from.path.to_string()).collect();
        from.sort();
        from
    }
}

/// Id, path, permalink, title, alias.
pub fn names_mean_memories_in_a_strict_order(fixture: &Fixture) {
    let library = Library::of(fixture);
    let tea = library.put("/docs/Tea House.md", "# The Tea House");
    library.put("/other.md", "---\ntitle: docs/tea-house\npermalink: special/name\n---\n");
    let tea_path = Ok("/docs/Tea House.md".to_owned());
    let other = Ok("/other.md".to_owned());
    for name in [
        &tea.id.to_string(),
        "/docs/Tea House.md",
        "docs/Tea House",
        "docs/tea-house",
        "The Tea House",
        "the_tea-house",
        "tea house",
        "memory://docs/tea-house",
        "memory://tests/docs/tea-house",
        "memory://docs/Tea%20House.md",
        "[[The Tea House]]",
        "[[tests::The Tea House]]",
    ] {
        assert_eq!(library.resolved(name), tea_path, "{name}");
    }
    // The permalink of one comes before the title of the other.
    assert_eq!(library.resolved("docs/tea-house"), tea_path);
    for name in ["other", "special/name", "memory://special/name", "memory://spec*"] {
        assert_eq!(library.resolved(name), other, "{name}");
    }
    for name in ["nothing", "", "/", "../..", "memory://", "[[none::The Tea House]]", "spec*"] {
        assert_eq!(library.resolved(name), Err(ErrorKind::NotFound), "{name}");
    }
    // What can only be a path means no memory at another one.
    library.put("/old/Plan.md", "---\npermalink: the-plan\n---\n# Plan");
    for name in ["/Plan.md", "Plan.md", "memory://Plan.md", "/plan", "/the-plan.md"] {
        assert_eq!(library.resolved(name), Err(ErrorKind::NotFound), "{name}");
    }
}

/// "never a silent pick"
pub fn names_that_several_have_are_reported(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a/x.md", "# Tea");
    library.put("/b/y.md", "# Tea");
    let error = library.engine.resolve(&library.scope(), "Tea", View::Basic).expect_err("refused");
    assert_eq!(*error.kind(), ErrorKind::Ambiguous);
    let hint = error.hint().expect("a hint");
    assert!(hint.contains("/a/x.md") && hint.contains("/b/y.md"), "{hint}");
    assert_eq!(library.resolved("tea"), Err(ErrorKind::Ambiguous));
    assert_eq!(library.resolved("a/x"), Ok("/a/x.md".to_owned()));
}

/// A miss tells what is near.
pub fn a_miss_suggests_near_names(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/projects/tea-house.md", "# Opening the tea house");
    library.put("/unrelated.md", "# Something else");
    let error =
        library.engine.resolve(&library.scope(), "tea hou", View::Basic).expect_err("refused");
    assert!(error.hint().is_some_and(|hint| hint.contains("/projects/tea-house.md")), "{error:?}");
    let near = library.engine.similar(&library.scope(), "tea-houses.md", 5).expect("suggestions");
    assert_eq!(near[0].path.as_str(), "/projects/tea-house.md");
    assert_eq!(library.engine.similar(&library.scope(), "!?", 5).expect("none"), []);
}

/// "A frontmatter permalink wins if free; a taken one gets `-1`, `-2`."
pub fn taken_permalinks_get_numbers(fixture: &Fixture) {
    let library = Library::of(fixture);
    for path in ["/one.md", "/two.md", "/three.md"] {
        library.put(path, "---\npermalink: same\n---\n");
    }
    library.put("/same.md", "made of its path");
    library.put("/same-1.md", "a number that is taken");
    let permalink = |path: &str| {
        let memory = library.engine.memory_at(library.store, &at(path), View::Basic).expect("it");
        library.engine.card(library.store, memory.id).expect("a card").permalink
    };
    assert_eq!(permalink("/one.md"), "same");
    assert_eq!(permalink("/same-1.md"), "same-1");
    assert_eq!(permalink("/two.md"), "same-2");
    assert_eq!(permalink("/three.md"), "same-3");
    assert_eq!(permalink("/same.md"), "same-4");
    for (name, path) in [("same-2", "/two.md"), ("same-3", "/three.md"), ("same-1", "/same-1.md")] {
        assert_eq!(library.resolved(&format!("memory://{name}")), Ok(path.to_owned()), "{name}");
    }
    library.delete("/one.md");
    assert_eq!(permalink("/two.md"), "same");
}

/// A permalink that a memory has is taken for all that come later, whoever asks for it.
pub fn later_notes_take_no_permalink_away(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/My Note.md", "made of its path");
    for number in 0..150 {
        library.put(&format!("/late/{number:03}.md"), "---\npermalink: my-note\n---\n");
    }
    assert_eq!(library.resolved("my-note"), Ok("/My Note.md".to_owned()));
    assert_eq!(library.resolved("my-note-1"), Ok("/late/000.md".to_owned()));
    assert_eq!(library.resolved("my-note-150"), Ok("/late/149.md".to_owned()));
    let orphans = library.engine.orphans(&library.scope(), 1000).expect("they are listed").notes;
    let mut permalinks: Vec<_> = orphans.iter().map(|note| note.permalink.as_str()).collect();
    permalinks.sort_unstable();
    permalinks.dedup();
    assert_eq!(permalinks.len(), 151);
}

/// "Unresolved targets are kept and resolve when the target appears; they become unresolved again
/// when it goes."
pub fn links_resolve_when_their_target_appears_and_not_when_it_goes(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "- needs [[Hot Water]]\n\nsee [[b|the other]] and [[b#Section]]");
    let scope = library.scope();
    assert_eq!(library.links_of("/a.md", &scope), ["?", "?", "?"]);
    library.put("/water.md", "# Hot Water");
    library.put("/b.md", "x");
    assert_eq!(library.links_of("/a.md", &scope), ["/water.md", "/b.md", "/b.md"]);
    assert_eq!(library.backlinks_of("/water.md"), ["/a.md"]);
    library.engine.rename(&actor(), library.store, &at("/b.md"), &at("/c/b.md")).expect("it moves");
    assert_eq!(library.links_of("/a.md", &scope), ["/water.md", "/c/b.md", "/c/b.md"]);
    library.put("/water.md", "# Cold Water");
    assert_eq!(library.links_of("/a.md", &scope), ["?", "/c/b.md", "/c/b.md"]);
    library.delete("/c/b.md");
    assert_eq!(library.links_of("/a.md", &scope), ["?", "?", "?"]);
}

/// "same folder first, then ancestors, descendants, elsewhere; ties: shortest path"
pub fn links_are_seen_from_their_folder(fixture: &Fixture) {
    let library = Library::of(fixture);
    let scope = library.scope();
    library.put("/x/y/from.md", "[[Tea]] [[./near.md]] [[../up]] [n](near.md)");
    library.put("/elsewhere/long/t.md", "# Tea");
    assert_eq!(library.links_of("/x/y/from.md", &scope)[0], "/elsewhere/long/t.md");
    library.put("/else/t.md", "# Tea");
    assert_eq!(library.links_of("/x/y/from.md", &scope)[0], "/else/t.md");
    library.put("/x/y/deep/t.md", "# Tea");
    assert_eq!(library.links_of("/x/y/from.md", &scope)[0], "/x/y/deep/t.md");
    library.put("/x/t.md", "# Tea");
    assert_eq!(library.links_of("/x/y/from.md", &scope)[0], "/x/t.md");
    library.put("/x/y/t.md", "# Tea");
    assert_eq!(library.links_of("/x/y/from.md", &scope)[0], "/x/y/t.md");
    library.put("/x/y/near.md", "near");
    library.put("/x/up.md", "up");
    let links = library.links_of("/x/y/from.md", &scope);
    assert_eq!(&links[1..], ["/x/y/near.md", "/x/up.md", "/x/y/near.md"]);
    // A link to a file may be meant from the root, but not if it says otherwise.
    library.put("/root.md", "root");
    library.put("/x/z.md", "[[./root.md]] [e](./root.md) [i](root.md) [[root.md]] [[../root]]");
    assert_eq!(library.links_of("/x/z.md", &scope), ["?", "?", "/root.md", "/root.md", "/root.md"]);
    assert_eq!(library.backlinks_of("/root.md"), ["/x/z.md"; 3]);
}

/// `[[store::Note]]`
pub fn links_lead_into_other_stores_in_scope_only(fixture: &Fixture) {
    let library = Library::of(fixture);
    let other = new_store(&library.engine, "Other Store");
    let target = put(&library.engine, other, "/t.md", "# Target");
    library.put("/a.md", "[[Other Store::Target]] [[other-store::t]] [[Target]]");
    let both = Scope::new(library.store, [other]);
    assert_eq!(library.links_of("/a.md", &both), ["/t.md", "/t.md", "?"]);
    assert_eq!(library.links_of("/a.md", &library.scope()), ["?", "?", "?"]);
    let from_other = Scope::new(other, [library.store]);
    let back = library.engine.backlinks(&from_other, target.id, 10).expect("they are listed");
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|link| link.from.path.as_str() == "/a.md"));
}

/// However a link is written, it is found from its target.
pub fn backlinks_find_every_way_to_write_a_link(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/docs/twin.md", "---\npermalink: docs/tea-house\n---\n");
    let target = library.put("/docs/Tea House.md", "# The Tea House");
    let ways = [
        format!("[[{}]]", target.id),
        "[[/docs/Tea House.md]]".to_owned(),
        "[[docs/Tea House]]".to_owned(),
        "[[The Tea House]]".to_owned(),
        "[[the-tea_HOUSE]]".to_owned(),
        "[[Tea House#Opening|hours]]".to_owned(),
        "![[Tea House]]".to_owned(),
        "[x](</docs/Tea House.md>)".to_owned(),
        "- part_of [[The Tea House]] (since today)".to_owned(),
        "[[docs/tea-house-1]]".to_owned(),
        "[[memory://docs/Tea House]]".to_owned(),
        "[x](memory://docs/Tea%20House.md)".to_owned(),
        "[[memory://tests/docs/Tea House]] ".to_owned(),
        "[x](memory://tests/docs/Tea%20House#opening)".to_owned(),
        "[[memory://The Tea House#Opening]]".to_owned(),
        format!("[[memory://{}]]", target.id),
        "[[/docs/Tea House/]]".to_owned(),
    ];
    for (number, way) in ways.iter().enumerate() {
        library.put(&format!("/from/{number:02}.md"), way);
    }
    library.put("/docs/near.md", "[[./Tea House.md]]");
    library.put("/from/zz.md", "[[../docs/Tea House]]");
    let mut expected: Vec<_> = (0..ways.len()).map(|n| format!("/from/{n:02}.md")).collect();
    expected.extend(["/docs/near.md".to_owned(), "/from/zz.md".to_owned()]);
    expected.sort();
    assert_eq!(library.backlinks_of("/docs/Tea House.md"), expected);
}

/// `#` and `::` belong to a title that has them; only otherwise they are signs.
pub fn signs_in_titles_are_part_of_them(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/c.md", "# C");
    library.put("/sharp.md", "# C# tips");
    library.put("/vector.md", "# std::vector");
    library.put("/issue.md", "# Issue #12");
    library.put("/only.md", "# F#");
    library.put("/hosts.md", "---\ntitle: /etc/hosts\n---\n");
    library.put(
        "/from.md",
        "[[C# tips]] [[C#tricks]] [[std::vector#Use]] [[Issue #12|it]] [[F#]] [[/etc/hosts]]",
    );
    let expected = ["/sharp.md", "/c.md", "/vector.md", "/issue.md", "/only.md", "/hosts.md"];
    assert_eq!(library.links_of("/from.md", &library.scope()), expected);
    for path in expected {
        assert_eq!(library.backlinks_of(path), ["/from.md"], "{path}");
    }
    for (name, path) in [
        ("C# tips", "/sharp.md"),
        ("[[C# tips]]", "/sharp.md"),
        ("[[std::vector]]", "/vector.md"),
        ("[[tests::std::vector]]", "/vector.md"),
        ("memory://c#tips", "/sharp.md"),
        ("memory://c#else", "/c.md"),
        ("memory://tests/c#else", "/c.md"),
    ] {
        assert_eq!(library.resolved(name), Ok(path.to_owned()), "{name}");
    }
    let context = |name: &str| {
        let request = ContextRequest::default();
        let context = library.engine.context(&library.scope(), name, &request).expect("it walks");
        context.items[0].note.path.to_string()
    };
    assert_eq!(context("memory://c#else"), "/c.md");
    assert_eq!(context("[[C# tips]]"), "/sharp.md");
    // The exact title comes before names that differ in spaces only, and the nearest before others.
    library.put("/spaced.md", "# C #tips");
    library.put("/rust.md", "# Rust :: notes");
    library.put("/trail.md", "# trail::");
    library
        .put("/a/from.md", "[[C# tips]] [[C #tips]] [[Rust :: notes]] [[trail::]] [[tests :: C]]");
    let expected = ["/sharp.md", "/spaced.md", "/rust.md", "/trail.md", "/c.md"];
    assert_eq!(library.links_of("/a/from.md", &library.scope()), expected);
    library.put("/a/C# tips.md", "near");
    library.put("/b/C# tips.md", "far");
    library.put("/a/from.md", "[[C# tips]] [[./C# tips]] [[C# tips.md]] [[../b/C# tips#x]]");
    let near = "/a/C# tips.md";
    let expected = [near, near, near, "/b/C# tips.md"];
    assert_eq!(library.links_of("/a/from.md", &library.scope()), expected);
    assert_eq!(library.backlinks_of(near), ["/a/from.md"; 3]);
    library.delete(near);
    library.put("/a/from.md", "[[C# more]] [[C# tips.md]] [x](C%23%20tips.md)");
    let expected = ["/c.md", "?", "?"];
    assert_eq!(library.links_of("/a/from.md", &library.scope()), expected);
}

/// What is missing, and what nobody links.
pub fn unresolved_links_and_orphans_are_listed(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "[[b]] [[Missing]]");
    library.put("/b.md", "text");
    library.put("/alone.md", "[[Missing]] and itself [[alone]]");
    let unresolved = library.engine.unresolved(&library.scope(), 10).expect("they are listed");
    let unresolved: Vec<_> =
        unresolved.iter().map(|it| (it.from.path.as_str(), it.link.target.name.as_str())).collect();
    assert_eq!(unresolved, [("/a.md", "Missing"), ("/alone.md", "Missing")]);
    let orphans = library.engine.orphans(&library.scope(), 10).expect("they are listed");
    assert_eq!(orphans.total_count, 1);
    assert_eq!(orphans.notes[0].path.as_str(), "/alone.md");
}

/// Depth, kinds, time and budget.
pub fn context_walks_the_graph(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/old.md", "# Old\n\n[[A]]");
    let moment = library.put("/a.md", "# A\n\n- [fact] one\n- needs [[B]]\n- likes [[Nobody]]");
    library.put("/b.md", "# B\n\n- needs [[C]]");
    library.put("/c.md", "# C");
    let context = |request: ContextRequest| {
        let context = library.engine.context(&library.scope(), "A", &request).expect("it walks");
        assert_eq!(context.items.len(), 1);
        let item = context.items.into_iter().next().expect("one item");
        assert_eq!(item.observations.len(), 1);
        let name = |it: &quipu_knowledge::Related| {
            it.note.as_ref().map_or_else(|| "?".to_owned(), |note| note.title.clone())
        };
        let related: Vec<_> =
            item.related.iter().map(|it| (name(it), it.depth, it.direction)).collect();
        (related, item.is_cut)
    };
    let request = ContextRequest::default;
    let (out, back) = (Direction::Outgoing, Direction::Incoming);
    let step = |name: &str, depth, direction| (name.to_owned(), depth, direction);
    let near = vec![step("B", 1, out), step("Old", 1, back), step("?", 1, out)];
    assert_eq!(context(request()), (near.clone(), false));
    assert_eq!(context(ContextRequest { depth: 0, ..request() }), (vec![], false));
    let far = [near.clone(), vec![step("C", 2, out)]].concat();
    assert_eq!(context(ContextRequest { depth: 2, ..request() }), (far.clone(), false));
    assert_eq!(context(ContextRequest { depth: 99, ..request() }), (far, false));
    let kinds = vec!["needs".to_owned()];
    let needed = vec![step("B", 1, out), step("C", 2, out)];
    assert_eq!(context(ContextRequest { depth: 2, kinds, ..request() }), (needed, false));
    let changed_after = Some(moment.updated_at);
    let new = vec![step("B", 1, out), step("?", 1, out)];
    assert_eq!(context(ContextRequest { changed_after, ..request() }), (new, false));
    let first = vec![step("B", 1, out)];
    assert_eq!(context(ContextRequest { related_max: 1, ..request() }), (first, true));
}

/// Every kind of link of the memory itself, once; what is not written yet crowds nothing out.
pub fn context_tells_each_kind_of_link_once(fixture: &Fixture) {
    let library = Library::of(fixture);
    let missing = "[[Missing]] ".repeat(12);
    library.put(
        "/hub.md",
        &format!("{missing}\n\n- one [[leaf]]\n- two [[leaf]]\n\n[[leaf]] [[leaf]]"),
    );
    library.put("/leaf.md", "- back [[hub]]\n- other [[far]]");
    library.put("/far.md", "[[leaf]] [[hub]]");
    let related = |depth, related_max| {
        let request = ContextRequest { depth, related_max, ..ContextRequest::default() };
        let context = library.engine.context(&library.scope(), "hub", &request).expect("it walks");
        let item = context.items.into_iter().next().expect("one item");
        let kinds = item.related.into_iter().map(|it| it.link.kind).collect::<Vec<_>>();
        (kinds.join(" "), item.is_cut)
    };
    let all = "one two links_to back links_to links_to";
    assert_eq!(related(1, 10), (all.to_owned(), false));
    assert_eq!(related(2, 6), (all.to_owned(), false));
    assert_eq!(related(1, 5), ("one two links_to back links_to".to_owned(), true));
}

/// Cycles end, and a memory that everything links is no trouble.
pub fn context_is_bounded_in_cycles_and_crowds(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "[[b]] [[a]]");
    library.put("/b.md", "[[a]] [[b]]");
    for number in 0..300 {
        library.put(&format!("/crowd/{number}.md"), "[[hub]] [[a]]");
    }
    library
        .put("/hub.md", &(0..300).map(|n| format!("[[crowd/{n}]]")).collect::<Vec<_>>().join(" "));
    let request = ContextRequest { depth: 5, related_max: 1000, ..ContextRequest::default() };
    let context = library.engine.context(&library.scope(), "hub", &request).expect("it walks");
    let item = &context.items[0];
    assert!((100..=200).contains(&item.related.len()), "{}", item.related.len());
    assert!(item.is_cut);
    let request = ContextRequest { depth: 5, related_max: 50, ..ContextRequest::default() };
    let context = library.engine.context(&library.scope(), "/b.md", &request).expect("it walks");
    let related = context.items[0].related.iter();
    let mut seen: Vec<_> = related.map(|it| (it.note.clone(), it.direction)).collect();
    let count = seen.len();
    seen.dedup();
    assert_eq!((seen.len(), count), (50, 50));
}

/// Everything that can be asked for.
pub fn context_takes_patterns_directories_and_urls(fixture: &Fixture) {
    let library = Library::of(fixture);
    for path in ["/docs/a.md", "/docs/b.md", "/docs/deep/c.md", "/other.md"] {
        library.put(path, "text");
    }
    let count = |identifier: &str| {
        let request = ContextRequest::default();
        let context = library.engine.context(&library.scope(), identifier, &request);
        context.map(|context| context.items.len()).map_err(|error| error.kind().clone())
    };
    assert_eq!(count("memory://docs/*"), Ok(3));
    assert_eq!(count("docs"), Ok(3));
    assert_eq!(count("/docs/deep/"), Ok(1));
    assert_eq!(count("memory://tests/docs/a"), Ok(1));
    assert_eq!(count("*"), Ok(4));
    library.put("/starred.md", "# C* algebra");
    assert_eq!(count("memory://docs/deep*"), Ok(1));
    assert_eq!(count("C* algebra"), Ok(1));
    let resolved = |name| library.engine.resolve(&library.scope(), name, View::Basic);
    assert_eq!(resolved("C* algebra").expect("a title").path.as_str(), "/starred.md");
    let error = resolved("docs/deep/*").expect_err("a pattern names no memory");
    assert_eq!(*error.kind(), ErrorKind::NotFound);
    library.delete("/starred.md");
    assert_eq!(count("nothing/*"), Err(ErrorKind::NotFound));
    let request = ContextRequest { offset: 2, limit: 2, ..ContextRequest::default() };
    let page = library.engine.context(&library.scope(), "docs/*", &request).expect("it walks");
    assert_eq!((page.items.len(), page.total_count, page.has_more), (1, 3, false));
}

/// "what changed, newest first, with operation and actor (deleted memories too)"
pub fn recent_activity_has_deleted_memories_too(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "# Tea\n\none");
    library.put("/b.md", "---\ntype: recipe\n---\n");
    library.put("/a.md", "# Tea\n\ntwo");
    library.put("/gone.md", "---\ntitle: Gone\ntype: Recipe\n---\n");
    library.delete("/gone.md");
    let request = |since, before, limit| RecentRequest {
        stores: vec![library.store],
        since,
        operations: Vec::new(),
        kinds: Vec::new(),
        before,
        limit,
    };
    let all = library.engine.recent(&request(Timestamp::MIN, None, 10)).expect("it lists");
    let lines: Vec<_> = all
        .items
        .iter()
        .map(|it| (it.title.as_str(), it.version.operation, it.changes_count))
        .collect();
    assert_eq!(
        lines,
        [
            ("Gone", Operation::Deleted, 2),
            ("Tea", Operation::Modified, 2),
            ("b", Operation::Created, 1)
        ]
    );
    assert!(all.items.iter().all(|it| it.version.actor == actor()));
    let first = library.engine.recent(&request(Timestamp::MIN, None, 2)).expect("it lists");
    let rest = library.engine.recent(&request(Timestamp::MIN, first.next, 2)).expect("it lists");
    assert_eq!((first.items.len(), rest.items.len(), rest.next), (2, 1, None));
    let late = all.items[0].version.created_at;
    assert_eq!(library.engine.recent(&request(late, None, 9)).expect("it lists").items.len(), 1);
    let kinds = vec!["recipe".to_owned()];
    let recipes = RecentRequest { kinds, ..request(Timestamp::MIN, None, 9) };
    assert_eq!(library.engine.recent(&recipes).expect("it lists").items.len(), 2);
    let operations = vec![Operation::Created];
    let created = RecentRequest { operations, ..request(Timestamp::MIN, None, 9) };
    let created = library.engine.recent(&created).expect("it lists").items;
    let titles: Vec<_> = created.iter().map(|it| (it.title.as_str(), it.changes_count)).collect();
    assert_eq!(titles, [("Gone", 1), ("b", 1), ("Tea", 1)]);
}

/// Nodes and edges, and no more than asked for.
pub fn the_graph_has_every_note_and_link(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a.md", "- needs [[b]]\n\n[[c]] [[missing]]");
    library.put("/b.md", "[[a]]");
    library.put("/c.md", "x");
    let graph = library.engine.graph(library.store, 10).expect("it draws");
    let paths: Vec<_> = graph.notes.iter().map(|note| note.path.as_str()).collect();
    assert_eq!(paths, ["/a.md", "/b.md", "/c.md"]);
    let link = |from, to, kind: &str| (from, to, kind.to_owned());
    let links = [link(0, 1, "needs"), link(0, 2, "links_to"), link(1, 0, "links_to")];
    assert_eq!(graph.links, links);
    let part = library.engine.graph(library.store, 2).expect("it draws");
    assert_eq!((part.notes.len(), part.links.len(), part.is_cut), (2, 2, true));
}
