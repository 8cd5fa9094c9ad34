//! What names mean: "Names and links" of `docs/search.md`, sentence by sentence.

use quipu_core::ErrorKind;
use quipu_core::model::View;
use quipu_knowledge::Scope;
use quipu_testkit::knowledge::new_store;

use crate::shelf::{library, memory, put, rename, resolved, scope, with};

fn assert_means(library: &quipu_testkit::knowledge::Library, name: &str, path: &str) {
    assert_eq!(resolved(library, &scope(library), name), Ok(path.to_owned()), "{name}");
}

fn assert_unknown(library: &quipu_testkit::knowledge::Library, name: &str) {
    assert_eq!(resolved(library, &scope(library), name), Err(ErrorKind::NotFound), "{name}");
}

/// Each step of the order beats all that follow.
#[test]
fn a_path_comes_before_a_permalink_before_a_title_before_an_alias() {
    let library = with(&[
        ("/alias.md", "---\naliases: [tea]\ntitle: Four\n---\n"),
        ("/title.md", "---\ntitle: tea\n---\n"),
        ("/link.md", "---\npermalink: tea\ntitle: Two\n---\n"),
        ("/tea.md", "# One"),
    ]);
    assert_means(&library, "tea", "/tea.md");
    library.delete("/tea.md");
    assert_means(&library, "tea", "/link.md");
    library.delete("/link.md");
    assert_means(&library, "tea", "/title.md");
    library.delete("/title.md");
    assert_means(&library, "tea", "/alias.md");
    library.delete("/alias.md");
    assert_unknown(&library, "tea");
}

/// A file without an extension and one with it are two memories.
#[test]
fn a_path_means_itself_before_the_same_with_an_extension() {
    let library = with(&[("/tea.md", "with"), ("/tea", "without")]);
    assert_means(&library, "/tea", "/tea");
    assert_means(&library, "tea", "/tea");
    assert_means(&library, "tea.md", "/tea.md");
    library.delete("/tea");
    assert_means(&library, "/tea", "/tea.md");
    assert_means(&library, "tea", "/tea.md");
}

#[test]
fn a_name_follows_its_memory() {
    let library = with(&[("/a/Tea House.md", "# Opening hours")]);
    let id = memory(&library, "/a/Tea House.md").id;
    rename(&library, "/a/Tea House.md", "/b/Coffee House.md");
    assert_means(&library, &id.to_string(), "/b/Coffee House.md");
    assert_means(&library, "Opening hours", "/b/Coffee House.md");
    assert_means(&library, "b/coffee-house", "/b/Coffee House.md");
    for old in ["/a/Tea House.md", "a/tea-house", "Tea House"] {
        assert_unknown(&library, old);
    }
    rename(&library, "/b/Coffee House.md", "/a/Tea House.md");
    assert_means(&library, "Tea House", "/a/Tea House.md");
    assert_unknown(&library, "b/coffee-house");
}

/// The text is the same, but it is another memory: the old id does not mean it.
#[test]
fn a_memory_that_is_written_again_after_its_deletion_is_another() {
    let library = with(&[("/tea.md", "# Tea")]);
    let old = memory(&library, "/tea.md").id.to_string();
    library.delete("/tea.md");
    assert_unknown(&library, &old);
    library.put("/tea.md", "# Tea");
    assert_unknown(&library, &old);
    assert_means(&library, "Tea", "/tea.md");
}

/// macOS writes names decomposed, everyone else composed.
#[test]
fn composed_and_decomposed_names_are_the_same() {
    let library = with(&[("/Caf\u{e9}.md", "# Th\u{e9} vert"), ("/x.md", "# Cre\u{300}me")]);
    for name in ["Café", "Cafe\u{301}", "/Cafe\u{301}.md", "cafe\u{301}", "CAFÉ"] {
        assert_means(&library, name, "/Caf\u{e9}.md");
    }
    assert_means(&library, "The\u{301} vert", "/Caf\u{e9}.md");
    assert_means(&library, "Crème", "/x.md");
    assert_means(&library, "crème", "/x.md");
}

#[test]
fn case_and_separators_of_a_name_do_not_matter_in_any_script() {
    let library = with(&[
        ("/greek.md", "# Πράσινο Τσάι"),
        ("/russian.md", "# Зелёный-Чай"),
        ("/german.md", "# Große Straße"),
        ("/japanese.md", "# 緑茶 ノート"),
    ]);
    for (name, path) in [
        ("πράσινο τσάι", "/greek.md"),
        ("ЗЕЛЁНЫЙ чай", "/russian.md"),
        ("зелёный_чай", "/russian.md"),
        ("GROßE STRAßE", "/german.md"),
        ("große-straße", "/german.md"),
        ("緑茶-ノート", "/japanese.md"),
        ("緑茶_ノート", "/japanese.md"),
    ] {
        assert_means(&library, name, path);
    }
    assert_unknown(&library, "緑茶ノート");
}

/// The exact title wins over one that differs in case only, so both can be reached.
#[test]
fn an_exact_title_is_not_ambiguous_with_a_similar_one() {
    let library =
        with(&[("/a.md", "# Tea Time"), ("/b.md", "# tea time"), ("/c.md", "# TEA_TIME")]);
    assert_means(&library, "Tea Time", "/a.md");
    assert_means(&library, "tea time", "/b.md");
    assert_means(&library, "TEA_TIME", "/c.md");
    let all = resolved(&library, &scope(&library), "tea-time");
    assert_eq!(all, Err(ErrorKind::Ambiguous));
}

/// The hint lists some of them, and says how many more there are.
#[test]
fn an_ambiguous_name_lists_paths_to_choose_from() {
    let library = library();
    for number in 0..7 {
        library.put(&format!("/{number}/x.md"), "# Tea");
    }
    let error = library.engine.resolve(&scope(&library), "Tea", View::Basic).expect_err("refused");
    assert_eq!(error.to_string(), "7 memories are called `Tea`");
    let hint = error.hint().expect("a hint");
    assert!(hint.starts_with("use a path instead: `/0/x.md` or `/1/x.md`"), "{hint}");
    assert!(hint.ends_with("`/4/x.md` or 2 more"), "{hint}");
    for number in 0..6 {
        library.delete(&format!("/{number}/x.md"));
    }
    assert_means(&library, "Tea", "/6/x.md");
}

#[test]
fn an_alias_is_given_in_the_frontmatter() {
    let library = with(&[
        ("/one.md", "---\naliases: [Green Tea, 'C#', \"v1.2\"]\n---\n"),
        ("/two.md", "---\naliases: Sencha\n---\n"),
    ]);
    for name in
        ["Green Tea", "green_tea", "C#", "c#", "v1.2", "[[Green Tea]]", "memory://green tea"]
    {
        assert_means(&library, name, "/one.md");
    }
    assert_means(&library, "sencha", "/two.md");
    library.put("/two.md", "no alias any more");
    assert_unknown(&library, "sencha");
    library.put("/three.md", "---\naliases: [green tea]\n---\n");
    assert_eq!(resolved(&library, &scope(&library), "green tea"), Err(ErrorKind::Ambiguous));
}

/// The oldest keeps the name; what is freed goes to the next.
#[test]
fn permalinks_are_unique_and_stay_with_the_oldest() {
    let library = library();
    for number in 0..4 {
        library.put(&format!("/{number}.md"), "---\npermalink: tea\n---\n");
    }
    let permalinks = || {
        let link = |number: usize| {
            let memory =
                library.engine.resolve(&scope(&library), &format!("/{number}.md"), View::Basic);
            let memory = memory.ok()?;
            Some(library.engine.card(library.store, memory.id).expect("a card").permalink)
        };
        (0..4).map(|number| link(number).unwrap_or_default()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(permalinks(), "tea tea-1 tea-2 tea-3");
    // Editing a note does not make it younger.
    library.put("/0.md", "---\npermalink: tea\n---\nedited");
    assert_eq!(permalinks(), "tea tea-1 tea-2 tea-3");
    library.delete("/1.md");
    assert_eq!(permalinks(), "tea  tea-1 tea-2");
    library.put("/0.md", "---\npermalink: other\n---\n");
    assert_eq!(permalinks(), "other  tea tea-1");
    for (name, path) in [("tea", "/2.md"), ("tea-1", "/3.md"), ("other", "/0.md")] {
        assert_means(&library, name, path);
    }
    assert_unknown(&library, "tea-2");
    assert_unknown(&library, "tea-0");
    assert_unknown(&library, "tea-x");
}

#[test]
fn a_card_has_every_name_of_a_memory() {
    let library = with(&[("/Docs/Tea House.md", "---\ntype: place\n---\n# The tea house")]);
    let note = memory(&library, "/Docs/Tea House.md");
    let card = library.engine.card(library.store, note.id).expect("a card");
    assert_eq!((card.memory, card.version, card.store), (note.id, note.version, library.store));
    assert_eq!((card.title.as_str(), card.kind.as_str()), ("The tea house", "place"));
    assert_eq!(card.permalink, "docs/tea-house");
    assert_eq!((card.created_at, card.updated_at), (note.created_at, note.updated_at));
    library.delete("/Docs/Tea House.md");
    let error = library.engine.card(library.store, note.id).expect_err("it is gone");
    assert_eq!(*error.kind(), ErrorKind::NotFound);
}

/// A store is named by its name, the slug of it, or its id.
#[test]
fn a_name_may_begin_with_its_store() {
    let library = with(&[("/home.md", "# Home")]);
    let other = new_store(&library.engine, "Team Notes");
    put(&library, other, "/plan.md", "# The plan");
    let both = Scope::new(library.store, [other]);
    for name in [
        "[[Team Notes::The plan]]",
        "[[team-notes::plan]]",
        "memory://team-notes/plan",
        "memory://Team%20Notes/plan.md",
        &format!("memory://{other}/plan"),
    ] {
        assert_eq!(resolved(&library, &both, name), Ok("/plan.md".to_owned()), "{name}");
        assert_eq!(
            resolved(&library, &scope(&library), name),
            Err(ErrorKind::NotFound),
            "{name} is out of reach"
        );
    }
    assert_eq!(resolved(&library, &both, "The plan"), Err(ErrorKind::NotFound));
    assert_eq!(resolved(&library, &both, "memory://tests/home"), Ok("/home.md".to_owned()));
    // A folder of the same name as a store is hidden by it in URLs, and only there.
    library.put("/team-notes/plan.md", "mine");
    assert_eq!(resolved(&library, &both, "memory://team-notes/plan"), Ok("/plan.md".to_owned()));
    assert_eq!(resolved(&library, &both, "team-notes/plan"), Ok("/team-notes/plan.md".to_owned()));
}

/// An id is unique, so it needs no store; but it must be within reach.
#[test]
fn an_id_is_found_in_every_store_in_reach() {
    let library = library();
    let other = new_store(&library.engine, "other");
    let id = put(&library, other, "/far.md", "far").id.to_string();
    let both = Scope::new(library.store, [other]);
    assert_eq!(resolved(&library, &both, &id), Ok("/far.md".to_owned()));
    assert_unknown(&library, &id);
    assert_unknown(&library, "mem_00000000000000000000000000");
}

/// A name that looks like an id, but is none.
#[test]
fn a_title_may_look_like_an_id() {
    let library = with(&[("/odd.md", "---\ntitle: mem_not-an-id\n---\n")]);
    assert_means(&library, "mem_not-an-id", "/odd.md");
}

#[test]
fn a_pattern_in_a_url_means_a_single_memory_or_is_refused() {
    let library = with(&[("/a/one.md", "x"), ("/b/two.md", "y"), ("/b/three.md", "z")]);
    assert_means(&library, "memory://a/*", "/a/one.md");
    assert_means(&library, "memory://*/two", "/b/two.md");
    let several = resolved(&library, &scope(&library), "memory://b/*");
    assert_eq!(several, Err(ErrorKind::Ambiguous));
    assert_unknown(&library, "memory://c/*");
    assert_unknown(&library, "a/*");
}

#[test]
fn a_store_that_does_not_exist_is_reported_as_such() {
    let library = library();
    let gone = new_store(&library.engine, "gone");
    library.engine.erase_store(gone).expect("it is erased");
    let scope = Scope::only(gone);
    assert_eq!(resolved(&library, &scope, "tea"), Err(ErrorKind::NotFound));
    let error = library.engine.resolve(&scope, "tea", View::Basic).expect_err("refused");
    assert!(error.to_string().contains("store"), "{error}");
}

/// Ids and paths come from the canonical rows, whatever state the index is in.
#[test]
fn paths_resolve_without_any_index() {
    let library = with(&[("/tea.md", "# Tea")]);
    let id = memory(&library, "/tea.md").id.to_string();
    let file = library.directory.path().join(quipu_knowledge::INDEX_FILE);
    std::fs::create_dir(&file).expect("a directory is in the way");
    for name in ["/tea.md", "tea", "memory://tea.md", &id] {
        assert_means(&library, name, "/tea.md");
    }
}

#[test]
fn suggestions_are_similar_names_and_never_more_than_asked_for() {
    let library = with(&[
        ("/green-tea.md", "# Green tea"),
        ("/black-tea.md", "# Black tea"),
        ("/coffee.md", "# Coffee"),
    ]);
    let near = |name: &str, limit| {
        let near = library.engine.similar(&scope(&library), name, limit).expect("suggestions");
        near.into_iter().map(|card| card.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(near("green teas", 5)[0], "/green-tea.md");
    assert_eq!(near("memory://coffees.md", 5), ["/coffee.md"]);
    assert_eq!(near("tea", 1).len(), 1);
    assert_eq!(near("tea", 0).len(), 0);
    assert_eq!(near("", 5), Vec::<String>::new());
    assert_eq!(near(&"x ".repeat(10_000), 5), Vec::<String>::new());
}

/// A suggestion must work when it is used as it stands.
#[test]
fn what_a_hint_suggests_resolves() {
    let library = with(&[("/a/green-tea.md", "# Green tea")]);
    let other = new_store(&library.engine, "Other Store");
    put(&library, other, "/b/green-mug.md", "# Green mug");
    let both = Scope::new(library.store, [other]);
    let error = library.engine.resolve(&both, "greens", View::Basic).expect_err("unknown");
    let hint = error.hint().expect("a hint").to_owned();
    let names: Vec<_> = hint.split('`').skip(1).step_by(2).collect();
    assert_eq!(names.len(), 2, "{hint}");
    for name in names {
        assert!(library.engine.resolve(&both, name, View::Basic).is_ok(), "{name}");
    }
    let error = library.engine.resolve(&scope(&library), "zzz", View::Basic).expect_err("unknown");
    assert!(error.hint().is_some_and(|hint| hint.starts_with("list the store")), "{error:?}");
}
