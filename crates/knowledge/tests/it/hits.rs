//! Hits: their order, their pages, their counts and what is shown of them.

use quipu_core::ErrorKind;
use quipu_core::model::Directory;
use quipu_knowledge::{
    Found, SearchFilter, SearchHit, SearchMode, SearchPage, SearchRequest, SearchTarget,
};
use quipu_notes::{Comparison, FieldFilter, Predicate};
use quipu_testkit::knowledge::{Library, new_store};

use crate::shelf::{library, put, with};

fn request(library: &Library, text: &str) -> SearchRequest {
    SearchRequest { limit: 100, ..SearchRequest::new(vec![library.store], text) }
}

fn search(library: &Library, request: &SearchRequest) -> SearchPage {
    library.engine.search(request).expect("it searches")
}

fn paths(page: &SearchPage) -> Vec<&str> {
    page.hits.iter().map(|hit| hit.note.path.as_str()).collect()
}

/// Returns the parts of a snippet that are marked.
fn marked(hit: &SearchHit) -> Vec<&str> {
    let part = |range: &std::ops::Range<usize>| hit.snippet.text.get(range.clone());
    hit.snippet.matches.iter().map(|range| part(range).expect("a part of the text")).collect()
}

/// "Pages reach the best 500."
#[test]
fn pages_end_at_five_hundred_hits() {
    let library = library();
    for number in 0..520 {
        library.put(&format!("/{number:03}.md"), "tea");
    }
    let page = |offset, limit| {
        let page = search(&library, &SearchRequest { offset, limit, ..request(&library, "tea") });
        (page.hits.len(), page.total.count, page.has_more)
    };
    assert_eq!(page(0, 500), (500, 520, false));
    assert_eq!(page(0, 499), (499, 520, true));
    assert_eq!(page(490, 50), (10, 520, false));
    assert_eq!(page(500, 10), (0, 520, false));
    assert_eq!(page(0, 0), (0, 520, true));
}

/// Equal scores are ordered by the last change, so a page is the same every time.
#[test]
fn ties_are_ordered_by_the_last_change() {
    let library = library();
    for number in 0..30 {
        library.put(&format!("/{number:02}.md"), "tea");
    }
    library.put("/07.md", "tea ");
    let all = search(&library, &request(&library, "tea"));
    let found = paths(&all);
    assert_eq!((found[0], found[1], found[29]), ("/07.md", "/29.md", "/00.md"));
    for _ in 0..3 {
        assert_eq!(paths(&search(&library, &request(&library, "tea"))), found);
    }
    // Merging and rebuilding move documents, but not hits.
    library.engine.follow(None).expect("it merges");
    assert_eq!(paths(&search(&library, &request(&library, "tea"))), found);
    library.engine.rebuild().expect("it rebuilds");
    assert_eq!(paths(&search(&library, &request(&library, "tea"))), found);
}

/// A store that is named twice is one store: nothing is found or counted twice.
#[test]
fn a_store_that_is_named_twice_is_searched_once() {
    let library = with(&[("/a.md", "tea cup"), ("/b.md", "tea")]);
    for mode in [SearchMode::Text, SearchMode::Permalink] {
        for text in ["tea", "cup", "a", ""] {
            let once = SearchRequest { mode, ..request(&library, text) };
            let stores = vec![library.store, library.store];
            let (once, twice) = (
                search(&library, &once),
                search(&library, &SearchRequest { stores, ..once.clone() }),
            );
            assert_eq!(paths(&twice), paths(&once), "{mode:?} {text}");
            assert_eq!(twice.total, once.total, "{mode:?} {text}");
            let scores = |page: &SearchPage| {
                page.hits.iter().map(|hit| hit.score.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(scores(&twice), scores(&once), "{mode:?} {text}");
        }
    }
}

#[test]
fn a_target_that_is_named_twice_is_searched_once() {
    let library = with(&[("/a.md", "tea\n- [fact] tea")]);
    let targets = vec![SearchTarget::Memories, SearchTarget::Observations, SearchTarget::Memories];
    let page = search(&library, &SearchRequest { targets, ..request(&library, "tea") });
    assert_eq!((page.hits.len(), page.total.count), (2, 2));
}

#[test]
fn a_store_that_does_not_exist_is_an_error_and_not_an_empty_answer() {
    let library = with(&[("/a.md", "tea")]);
    let gone = new_store(&library.engine, "gone");
    library.engine.erase_store(gone).expect("it is erased");
    let stores = vec![library.store, gone];
    let found = library.engine.search(&SearchRequest { stores, ..request(&library, "tea") });
    assert_eq!(*found.expect_err("refused").kind(), ErrorKind::NotFound);
    let nothing = SearchRequest { stores: Vec::new(), ..request(&library, "tea") };
    assert_eq!(search(&library, &nothing).hits.len(), 0);
}

#[test]
fn an_empty_store_has_no_hits_and_no_average() {
    let library = library();
    for text in ["tea", "", "\"green tea\"", "te*", "NOT tea", "tag:x"] {
        let page = search(&library, &request(&library, text));
        assert_eq!((page.hits.len(), page.total.count, page.has_more), (0, 0, false), "{text}");
    }
    library.put("/empty.md", "");
    let page = search(&library, &request(&library, "NOT tea"));
    assert_eq!(paths(&page), ["/empty.md"]);
    assert!(page.hits[0].score.abs() < f64::EPSILON, "there is nothing to score by");
    let title = search(&library, &request(&library, "empty"));
    assert!(title.hits[0].score.is_finite() && title.hits[0].score > 0.0);
}

/// A change at exactly this time is not after it.
#[test]
fn the_time_of_a_filter_is_exclusive() {
    let library = library();
    let first = library.put("/a.md", "tea").updated_at;
    library.put("/b.md", "tea");
    let after = |changed_after| {
        let filter = SearchFilter { changed_after: Some(changed_after), ..SearchFilter::default() };
        let page = search(&library, &SearchRequest { filter, ..request(&library, "tea") });
        paths(&page).join(" ")
    };
    assert_eq!(after(first), "/b.md");
    assert_eq!(after(quipu_core::model::Timestamp::MIN), "/b.md /a.md");
    library.put("/a.md", "tea again");
    let page = search(&library, &request(&library, "tea"));
    assert_eq!(page.hits.iter().filter(|hit| hit.note.updated_at > first).count(), 2);
}

/// A directory is no prefix of a name.
#[test]
fn a_directory_has_what_is_below_it() {
    let library =
        with(&[("/x/a.md", "tea"), ("/x/y/b.md", "tea"), ("/xy/c.md", "tea"), ("/x.md", "tea")]);
    let within = |directory: &str| {
        let directory = Some(Directory::parse(directory).expect("a directory"));
        let filter = SearchFilter { directory, ..SearchFilter::default() };
        let page = search(&library, &SearchRequest { filter, ..request(&library, "tea") });
        let mut found = paths(&page).into_iter().map(str::to_owned).collect::<Vec<_>>();
        found.sort();
        found.join(" ")
    };
    assert_eq!(within("/x/"), "/x/a.md /x/y/b.md");
    assert_eq!(within("/x/y/"), "/x/y/b.md");
    assert_eq!(within("/"), "/x.md /x/a.md /x/y/b.md /xy/c.md");
    assert_eq!(within("/z/"), "");
}

#[test]
fn permalinks_are_found_by_any_part_the_nearest_first() {
    let library = with(&[
        ("/tea.md", ""),
        ("/drinks/tea.md", ""),
        ("/drinks/tea-house.md", "---\ntags: [x]\n---\n"),
        ("/drinks/coffee.md", ""),
    ]);
    let find = |text: &str, filter: SearchFilter| {
        let mode = SearchMode::Permalink;
        let page = search(&library, &SearchRequest { mode, filter, ..request(&library, text) });
        assert_eq!(page.total.count, page.hits.len());
        assert!(page.hits.is_sorted_by(|left, right| left.score >= right.score));
        paths(&page).join(" ")
    };
    let all = SearchFilter::default;
    assert_eq!(find("tea", all()), "/tea.md /drinks/tea.md /drinks/tea-house.md");
    assert_eq!(find("TEA", all()), find("tea", all()));
    assert_eq!(find("memory://drinks/tea", all()), "/drinks/tea.md /drinks/tea-house.md");
    assert_eq!(find("drinks/*e", all()), "/drinks/coffee.md /drinks/tea-house.md");
    let tagged = SearchFilter { tags: vec!["x".to_owned()], ..all() };
    assert_eq!(find("tea", tagged), "/drinks/tea-house.md");
    let mode = SearchMode::Permalink;
    let first = SearchRequest { mode, limit: 1, ..request(&library, "tea") };
    let second = SearchRequest { offset: 1, ..first.clone() };
    let (first, second) = (search(&library, &first), search(&library, &second));
    assert_eq!((paths(&first), first.total.count, first.has_more), (vec!["/tea.md"], 3, true));
    assert_eq!(paths(&second), ["/drinks/tea.md"]);
}

/// A title is searched alone: neither the text nor the path counts.
#[test]
fn the_mode_of_titles_ignores_everything_else() {
    let library = with(&[("/tea.md", "# Leaves\n\ntea"), ("/x.md", "# Tea time\n\nleaves")]);
    let find = |text: &str| {
        let mode = SearchMode::Title;
        let page = search(&library, &SearchRequest { mode, ..request(&library, text) });
        paths(&page).join(" ")
    };
    assert_eq!((find("tea").as_str(), find("leaves").as_str()), ("/x.md", "/tea.md"));
    assert_eq!(find("\"tea time\""), "/x.md");
    assert_eq!(find("\"time tea\""), "");
    assert_eq!(find("tea NOT time"), "");
    assert_eq!(find("path:/x.md"), "/x.md", "filters keep their meaning");
}

/// The passage shows why a memory was found, whatever was typed.
#[test]
fn snippets_mark_what_was_found() {
    let filler = "word ".repeat(300);
    let text = format!("# Title\n\n{filler} the kettles are connected to Łódź {filler}");
    let library = with(&[("/a.md", &text)]);
    for (query, expected) in [
        ("kettle", vec!["kettles"]),
        ("KETTLES connecting", vec!["kettles", "connected"]),
        ("\"kettles are\"", vec!["kettles are"]),
        ("kett*", vec!["kettles"]),
        ("lodz", vec!["Łódź"]),
        ("kettle NOT teapot", vec!["kettles"]),
        ("teapot OR kettle", vec!["kettles"]),
        ("path:a.md kettle", vec!["kettles"]),
        ("teapot kettle", vec!["kettles"]),
    ] {
        let page = search(&library, &request(&library, query));
        assert_eq!(marked(&page.hits[0]), expected, "{query}");
        assert!(page.hits[0].snippet.text.chars().count() < 300, "{query}");
    }
    let page = search(&library, &request(&library, "path:/a.md"));
    assert_eq!(marked(&page.hits[0]), Vec::<&str>::new());
    assert!(page.hits[0].snippet.text.starts_with("# Title word"), "the beginning");
}

#[test]
fn facts_and_relations_are_shown_as_they_are_written() {
    let library = with(&[(
        "/a.md",
        "- [fact] @due:2026-07-27 green tea #x (now)\n- needs [[Hot Water]] (every day)",
    )]);
    let hit = |target, text: &str| {
        let page =
            search(&library, &SearchRequest { targets: vec![target], ..request(&library, text) });
        page.hits.into_iter().next().expect("a hit")
    };
    let fact = hit(SearchTarget::Observations, "green");
    assert_eq!(fact.snippet.text, "@due:2026-07-27 green tea #x");
    assert!(matches!(&fact.found, Found::Observation(it) if it.context.as_deref() == Some("now")));
    let relation = hit(SearchTarget::Relations, "water");
    assert_eq!(relation.snippet.text, "needs [[Hot Water]] (every day)");
    assert!(matches!(&relation.found, Found::Relation(it) if it.target.name == "Hot Water"));
    assert_eq!(marked(&relation), ["Water"]);
}

/// Words of a language that the store has are stemmed in it, and no longer once its notes are gone.
#[test]
fn a_query_is_read_in_the_languages_of_the_store() {
    let german = "Die Häuser sind nicht alt, und wir haben sie mit der Zeit gesehen.";
    let library = with(&[("/de.md", german), ("/en.md", "an old house in town")]);
    assert_eq!(library.find("Haus"), ["/de.md"]);
    library.delete("/de.md");
    assert_eq!(library.find("Haus"), Vec::<String>::new());
    assert_eq!(library.find("houses"), ["/en.md"]);
}

/// The tags and fields that a hit shows are those of the version that was found.
#[test]
fn a_hit_shows_the_tags_and_fields_of_its_note() {
    let library = with(&[("/a.md", "---\ntags: [x, y/z]\nn: 5\nlist: [1, 2]\n---\ntea")]);
    let page = search(&library, &request(&library, "tea"));
    assert_eq!(page.hits[0].tags, ["x", "y/z"]);
    let keys: Vec<_> = page.hits[0].metadata.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["n", "list"]);
}

#[test]
fn the_same_note_in_two_stores_is_two_hits() {
    let library = with(&[("/a.md", "tea")]);
    let other = new_store(&library.engine, "other");
    put(&library, other, "/a.md", "tea");
    let stores = vec![other, library.store];
    let page = search(&library, &SearchRequest { stores, ..request(&library, "tea") });
    assert_eq!((page.hits.len(), page.total.count), (2, 2));
    assert_ne!(page.hits[0].note.store, page.hits[1].note.store);
    assert_eq!(page.hits[0].score.to_bits(), page.hits[1].score.to_bits());
    assert_eq!(page.hits[0].note.store, other, "the newest first");
}

/// Regression: `"a\0b": v` was found as a field `a` with the value `b\0v`.
#[test]
fn a_key_with_a_nul_byte_is_not_the_field_before_it() {
    let library = with(&[
        ("/odd.md", "---\n\"a\\0b\": v\n---\ntea"),
        ("/a.md", "---\na: \"b\\0v\"\n---\ntea"),
    ]);
    let having = |predicate| {
        let fields = vec![FieldFilter { key: "a".to_owned(), predicate }];
        let filter = SearchFilter { fields, ..SearchFilter::default() };
        let page = search(&library, &SearchRequest { filter, ..request(&library, "tea") });
        paths(&page).join(" ")
    };
    assert_eq!(having(Predicate::Exists), "/a.md");
    assert_eq!(having(Predicate::Absent), "/odd.md");
    assert_eq!(having(Predicate::Is(Comparison::Equal, "b\0v".to_owned())), "/a.md");
    assert_eq!(library.find("v").len(), 2, "its value is a word all the same");
}
