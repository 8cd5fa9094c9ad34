//! What a search finds.

use quipu_core::model::Directory;
use quipu_knowledge::SearchTarget;
use quipu_knowledge::{Found, SearchFilter, SearchMode, SearchRequest};
use quipu_notes::{Comparison, FieldFilter, Predicate, Value};

use super::{Library, actor, new_store, paths, put};
use crate::conformance::Fixture;

/// All words must be there, whatever their endings.
pub fn words_are_anded_after_stemming(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..30 {
        library.put(&format!("/filler/{number}"), "green tea is brewed with connections");
    }
    library.put("/both.md", "We were connecting the teapots");
    assert_eq!(library.find("teapot connection")[0], "/both.md");
    assert_eq!(library.find("TEAPOTS connected")[0], "/both.md");
    assert_eq!(library.find("brewing green").len(), 20);
}

/// The page is filled with what holds some of the words, after what holds all.
pub fn too_few_hits_are_filled_with_what_has_some_of_the_words(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/all.md", "kettle and whistle");
    library.put("/one.md", "kettle");
    library.put("/none.md", "nothing of it");
    let page = library.search(&library.request("kettle whistle"));
    assert_eq!(paths(&page), ["/all.md", "/one.md"]);
    assert_eq!(page.total.count, 2);
    assert!(page.hits[0].score >= page.hits[1].score);
}

/// A question has words that no note has; the others still count.
pub fn a_question_is_never_answered_with_nothing(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/deploy.md", "The server is deployed with a blue-green rollout on Fridays.");
    library.put("/lunch.md", "Soup on Mondays.");
    let found = library.find("When do we usually deploy the production server to customers?");
    assert_eq!(found[0], "/deploy.md");
    assert_eq!(library.find("what about rollouts?")[0], "/deploy.md");
    let unknown = (0..60).map(|number| format!("unknown{number}")).collect::<Vec<_>>().join(" ");
    assert_eq!(library.find(&format!("{unknown} soup"))[0], "/lunch.md");
    assert_eq!(library.find(&format!("{} soup", unknown.replace(' ', "-")))[0], "/lunch.md");
    library.put("/visa.md", "An appointment at the US embassy in May");
    for number in 0..20 {
        library.put(&format!("/noise/{number}.md"), "the embassy gave an appointment");
    }
    assert_eq!(library.find("US embassy appointment")[0], "/visa.md");
    assert_eq!(library.find("which appointment in May?")[0], "/visa.md");
}

/// `AND`, `OR`, `NOT`, quotes and stars are taken at their word.
pub fn operators_quotes_and_beginnings_mean_what_they_say(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "green tea");
    library.put("/b", "tea that is green");
    library.put("/c", "black coffee");
    library.put("/d", "the organization of teahouses");
    assert_eq!(library.find("\"green tea\""), ["/a"]);
    assert_eq!(library.find_sorted("green AND tea"), ["/a", "/b"]);
    assert_eq!(library.find("green AND coffee"), Vec::<String>::new());
    assert_eq!(library.find_sorted("coffee OR \"green tea\""), ["/a", "/c"]);
    assert_eq!(library.find("tea NOT \"green tea\""), ["/b", "/d"]);
    assert_eq!(library.find_sorted("tea* AND NOT green"), ["/d"]);
    assert_eq!(library.find("organiz*"), ["/d"]);
    assert_eq!(library.find_sorted("(coffee OR teahouse) AND NOT green"), ["/c", "/d"]);
}

/// `tag:`, `type:` and `path:` are exact.
pub fn filters_of_the_query_narrow_down(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/docs/a.md", "---\ntags: [Green-Tea, hot]\ntype: recipe\n---\nwater");
    library.put("/docs/deep/b.md", "water\n\n- [fact] it is #cold");
    library.put("/other.md", "---\ntags: green\n---\nwater");
    assert_eq!(library.find("tag:green-tea"), ["/docs/a.md"]);
    assert_eq!(library.find("water tag:cold"), ["/docs/deep/b.md"]);
    assert_eq!(library.find("water type:recipe"), ["/docs/a.md"]);
    assert_eq!(library.find_sorted("water path:docs"), ["/docs/a.md", "/docs/deep/b.md"]);
    assert_eq!(library.find("path:/docs/deep/*"), ["/docs/deep/b.md"]);
    assert_eq!(library.find("path:/*/a.md"), ["/docs/a.md"]);
    assert_eq!(library.find("water path:other"), ["/other.md"]);
    assert_eq!(library.find_sorted("water NOT path:docs"), ["/other.md"]);
    assert_eq!(library.find_sorted("water NOT tag:hot NOT tag:cold"), ["/other.md"]);
    assert_eq!(library.find("water tag:nothing"), Vec::<String>::new());
}

/// A filter counts where it stands, in parentheses and on either side of `OR` too.
pub fn filters_of_the_query_nest(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/tea.md", "---\ntags: drink\n---\ntea");
    library.put("/bean.md", "---\ntags: bean\n---\ncoffee");
    library.put("/x/cup.md", "---\ntags: drink\n---\ncoffee with milk");
    library.put("/x/cow.md", "---\ntype: dairy\n---\nmilk");
    let all = ["/bean.md", "/tea.md", "/x/cow.md", "/x/cup.md"];
    for (query, expected) in [
        ("tag:drink OR coffee", &["/bean.md", "/tea.md", "/x/cup.md"][..]),
        ("tag:drink AND coffee", &["/x/cup.md"]),
        ("(tea AND tag:drink) OR (coffee AND tag:bean)", &["/bean.md", "/tea.md"]),
        ("tag:bean OR type:dairy", &["/bean.md", "/x/cow.md"]),
        ("coffee OR NOT tag:drink", &["/bean.md", "/x/cow.md", "/x/cup.md"]),
        ("coffee OR NOT milk", &["/bean.md", "/tea.md", "/x/cup.md"]),
        ("NOT (milk tag:drink)", &["/bean.md", "/tea.md", "/x/cow.md"]),
        ("NOT (tag:drink OR type:dairy)", &["/bean.md"]),
        ("tea OR path:/x/c*", &["/tea.md", "/x/cow.md", "/x/cup.md"]),
        ("tea OR path:/y/c*", &["/tea.md"]),
        ("path:*tea* OR path:/x/*w.md", &["/tea.md", "/x/cow.md"]),
        ("NOT (milk path:/x/*p.md)", &["/bean.md", "/tea.md", "/x/cow.md"]),
        ("NOT path:/*/c*", &["/bean.md", "/tea.md"]),
        ("tag:drink NOT (path:*c* tag:drink)", &["/tea.md"]),
        ("tag:drink AND (path:*cup* OR nothing)", &["/x/cup.md"]),
        ("(milk path:*cup*) OR (tea NOT path:*cup*)", &["/tea.md", "/x/cup.md"]),
        ("(path:/x/* path:*w.md) OR (path:*t* NOT path:/x/*)", &["/tea.md", "/x/cow.md"]),
        ("NOT (path:*e* OR (milk path:*w*))", &["/x/cup.md"]),
        ("path:*cup* NOT path:*cup*", &[]),
        ("path:/*/c* milk tag:drink", &["/x/cup.md"]),
        ("NOT tag:none", &all),
    ] {
        assert_eq!(library.find_sorted(query), expected, "{query}");
    }
}

/// What fits a pattern in an `OR` is ranked by the words, and without words by its last change.
pub fn patterns_of_paths_do_not_spoil_the_order(fixture: &Fixture) {
    let library = Library::of(fixture);
    for path in ["/x/a.md", "/b.md", "/x/c.md", "/d.md"] {
        library.put(path, "---\ntags: drink\n---\ncup");
    }
    library.put("/x/e.md", "tea");
    assert_eq!(library.find("tea OR path:*x*")[0], "/x/e.md");
    let newest = ["/x/e.md", "/d.md", "/x/c.md", "/b.md", "/x/a.md"];
    assert_eq!(library.find("tag:drink OR path:*x*"), newest);
    assert_eq!(library.search(&library.request("tag:drink OR path:*x*")).total.count, 5);
}

/// However patterns of paths are combined, they mean what they say.
pub fn many_patterns_of_paths_are_exact(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..10 {
        library.put(&format!("/{number}.md"), "tea");
    }
    let find = |text: &str| {
        let page = library.search(&library.request(text));
        (page.total.count, page.total.is_lower_bound)
    };
    let each =
        |glue: &str, make: fn(usize) -> String| (0..10).map(make).collect::<Vec<_>>().join(glue);
    assert_eq!(find(&each(" OR ", |it| format!("path:*{it}.m*"))), (10, false));
    assert_eq!(
        find(&format!("none OR {}", each(" OR ", |it| format!("path:*{it}.m*")))),
        (10, false)
    );
    assert_eq!(find(&each(" ", |it| format!("NOT path:*{it}.m*"))), (0, false));
    assert_eq!(find(&each(" OR ", |it| format!("(tea path:*{it}.m*)"))), (10, false));
    assert_eq!(find(&each(" ", |it| format!("NOT (tea path:*{it}.m*)"))), (0, false));
}

/// A note is stemmed in its own language, and what is looked for in those of the store.
pub fn inflected_forms_are_found_in_the_language_of_a_note(fixture: &Fixture) {
    let library = Library::of(fixture);
    let notes = [
        ("/de.md", "Die Unterlagen sind nicht vollständig, und wir haben die Rechnungen gesucht."),
        ("/fr.md", "Nous avons cherché les factures, mais elles ne sont pas dans le bureau."),
        ("/es.md", "Las facturas no están en la oficina, pero las hemos buscado con cuidado."),
        ("/ru.md", "Мы искали счета за квартиру, но они не были на столе у окна."),
        ("/en.md", "The invoices were not in the office, and we have searched everywhere."),
    ];
    for (path, text) in notes {
        library.put(path, text);
    }
    for (query, path) in [
        ("Rechnung", "/de.md"),
        ("vollständige", "/de.md"),
        ("bureaux", "/fr.md"),
        ("buscar", "/es.md"),
        ("квартиры", "/ru.md"),
        ("searching", "/en.md"),
    ] {
        assert_eq!(library.find(query).first().map(String::as_str), Some(path), "{query}");
    }
}

/// What stands in quotes must be there, also where words may be missing, unless nothing has it.
pub fn quotes_are_no_suggestion(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/quoted.md", "green tea from a pot");
    library.put("/words.md", "tea that is green, from a kettle");
    assert_eq!(library.find("\"green tea\" kettle"), ["/quoted.md"]);
    assert_eq!(library.find("pot kettle \"green tea\""), ["/quoted.md"]);
    let question = "who makes a pot of \"purple tea\"?";
    assert_eq!(library.find(question), ["/quoted.md", "/words.md"], "no memory has the phrase");
    assert_eq!(library.find("\"purple tea\""), Vec::<String>::new());
    library.put("/other.md", "hot water for a tea");
    for query in ["pot \"hot water\" \"green tea\"", "pot \"green tea\" \"hot water\""] {
        assert_eq!(library.find(query), Vec::<String>::new(), "no memory has both: {query}");
    }
    for query in ["pot \"purple tea\" \"hot water\"", "\"hot water\" pot \"purple tea\""] {
        assert_eq!(library.find(query), ["/other.md"], "{query}");
    }
    assert_eq!(library.find("(whistle OR water) pot"), ["/other.md"]);
}

/// A word in the title or a tag weighs more than in the text, and in a heading as much.
pub fn titles_and_tags_count_more_than_the_text(fixture: &Fixture) {
    let library = Library::of(fixture);
    let filler = "lorem ipsum dolor sit amet ".repeat(10);
    library.put("/title.md", &format!("# Kettle\n\n{filler}"));
    library.put("/tag.md", &format!("---\ntags: kettle\n---\n# Three\n\n{filler}"));
    library.put("/body.md", &format!("# One\n\n{filler} kettle"));
    library.put("/heading.md", &format!("# Two\n\n## Kettle\n\n{filler}"));
    let found = library.find("kettle");
    assert_eq!(found, ["/tag.md", "/title.md", "/heading.md", "/body.md"]);
}

/// What agents write is full of these.
pub fn identifiers_paths_digits_and_scripts_without_spaces_are_found(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/code.md", "call `parseJsonValue()` in src/net/http-client.rs, error E0382");
    library.put("/japan.md", "これは日本語のテキストです。");
    library.put("/korea.md", "한국어 텍스트");
    library.put("/accent.md", "Die Größe des Cafés");
    for query in [
        "parseJsonValue",
        "json",
        "parse_json_value",
        "src/net/http-client.rs",
        "http-client",
        "E0382",
        "client.rs",
    ] {
        assert_eq!(library.find(query).first().map(String::as_str), Some("/code.md"), "{query}");
    }
    assert_eq!(library.find("日本語"), ["/japan.md"]);
    assert_eq!(library.find("テキスト"), ["/japan.md"]);
    assert_eq!(library.find("한국어"), ["/korea.md"]);
    assert_eq!(library.find("cafe"), ["/accent.md"]);
    library.put("/north.md", "Smørrebrød in Łódź, at James's, near l'école");
    for query in ["Größe", "GRÖSSE", "grosse"] {
        assert_eq!(library.find(query), ["/accent.md"], "{query}");
    }
    for query in ["smorrebrod", "Lodz", "łódź", "James", "école", "ecole"] {
        assert_eq!(library.find(query), ["/north.md"], "{query}");
    }
    assert_eq!(library.find("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"), ["/korea.md"]);
}

/// All of a text is searchable, however long.
pub fn the_end_of_the_longest_text_is_found(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/long.md", &format!("{}zebrafinch", "word ".repeat(20_000)));
    library.put("/line.md", &format!("{} tapir", "x".repeat(100_000)));
    assert_eq!(library.find("zebrafinch"), ["/long.md"]);
    assert_eq!(library.find("tapir"), ["/line.md"]);
    let hit = &library.search(&library.request("zebrafinch")).hits[0];
    assert!(hit.snippet.text.contains("zebrafinch"));
}

/// Directory, types, tags, categories and time.
pub fn filters_of_the_request_narrow_down(fixture: &Fixture) {
    let library = Library::of(fixture);
    let first = library.put("/a/one.md", "---\ntype: decision\ntags: [x, y]\n---\ntea");
    library.put("/b/two.md", "---\ntags: [x]\n---\ntea\n- [Risk] too hot");
    let find = |filter: SearchFilter| {
        let mut found = paths(&library.search(&SearchRequest { filter, ..library.request("tea") }));
        found.sort();
        found
    };
    let filter = SearchFilter::default;
    let directory = Some(Directory::parse("/a/").expect("a directory"));
    assert_eq!(find(SearchFilter { directory, ..filter() }), ["/a/one.md"]);
    let kinds = vec!["Decision".to_owned(), "other".to_owned()];
    assert_eq!(find(SearchFilter { kinds, ..filter() }), ["/a/one.md"]);
    let tags = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>();
    assert_eq!(find(SearchFilter { tags: tags(&["x"]), ..filter() }), ["/a/one.md", "/b/two.md"]);
    assert_eq!(find(SearchFilter { tags: tags(&["X", "y"]), ..filter() }), ["/a/one.md"]);
    let categories = vec!["risk".to_owned()];
    assert_eq!(find(SearchFilter { categories, ..filter() }), ["/b/two.md"]);
    assert_eq!(
        find(SearchFilter { changed_after: Some(first.updated_at), ..filter() }),
        ["/b/two.md"]
    );
}

/// Every predicate, with dots into maps.
pub fn fields_of_the_frontmatter_are_compared(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/a", "---\npriority: 2\nstatus: Done\nauthor:\n  name: Ada\n---\ntea");
    library.put("/b", "---\npriority: 10\nstatus: open\nteams: [red, blue]\n---\ntea");
    library.put("/c", "tea");
    let find = |key: &str, predicate: Predicate| {
        let fields = vec![FieldFilter { key: key.to_owned(), predicate }];
        let filter = SearchFilter { fields, ..SearchFilter::default() };
        let mut found = paths(&library.search(&SearchRequest { filter, ..library.request("tea") }));
        found.sort();
        found
    };
    let is = |comparison, value: &str| Predicate::Is(comparison, value.to_owned());
    let text = |text: &str| text.to_owned();
    assert_eq!(find("priority", is(Comparison::Greater, "9")), ["/b"]);
    assert_eq!(find("priority", is(Comparison::LessOrEqual, "2")), ["/a"]);
    assert_eq!(find("priority", Predicate::Between(text("1"), text("10"))), ["/a", "/b"]);
    assert_eq!(find("status", is(Comparison::Equal, "done")), ["/a"]);
    assert_eq!(find("status", is(Comparison::NotEqual, "done")), ["/b", "/c"]);
    assert_eq!(find("status", Predicate::In(vec![text("open"), text("x")])), ["/b"]);
    assert_eq!(find("author.name", is(Comparison::Equal, "Ada")), ["/a"]);
    assert_eq!(find("teams", Predicate::Contains(vec![text("red"), text("blue")])), ["/b"]);
    assert_eq!(find("teams", Predicate::Exists), ["/b"]);
    assert_eq!(find("teams", Predicate::Absent), ["/a", "/c"]);
    assert_eq!(find("author", Predicate::Exists), ["/a"]);
}

/// Observations and relations are hits of their own.
pub fn observations_and_relations_are_found_by_themselves(fixture: &Fixture) {
    let library = Library::of(fixture);
    let text = "# Tea\n\n- [fact] green tea is steamed #green (Japan)\n\
        - [opinion] black tea is strong\n- depends_on [[Hot Water]] (every day)\n\
        - [task] @due:2026-07-27 buy leaves\n- [expiry] @valid[2026-01,2026-09)\n";
    library.put("/tea.md", text);
    let find = |target: SearchTarget, text: &str, categories: &[&str]| {
        let categories = categories.iter().map(|&it| it.to_owned()).collect();
        let filter = SearchFilter { categories, ..SearchFilter::default() };
        let request = SearchRequest { targets: vec![target], filter, ..library.request(text) };
        library.search(&request).hits.into_iter().map(|hit| hit.found).collect::<Vec<_>>()
    };
    let steamed = find(SearchTarget::Observations, "steamed tea japan", &[]);
    assert!(matches!(&steamed[0], Found::Observation(it) if it.category == "fact"));
    let opinions = find(SearchTarget::Observations, "tea", &["opinion"]);
    assert!(matches!(opinions.as_slice(), [Found::Observation(it)] if it.category == "opinion"));
    for query in ["2026-07-27", "due leaves"] {
        let due = find(SearchTarget::Observations, query, &[]);
        assert!(matches!(&due[0], Found::Observation(it) if it.category == "task"), "{query}");
    }
    let expiry = find(SearchTarget::Observations, "2026-09 valid", &[]);
    assert!(matches!(&expiry[0], Found::Observation(it) if it.text.is_empty()));
    // A tag of one observation does not mark the others, but the note's title speaks of all.
    let green = find(SearchTarget::Observations, "tag:green", &[]);
    assert!(matches!(green.as_slice(), [Found::Observation(it)] if it.tags == ["green"]));
    let leaves = find(SearchTarget::Observations, "tea AND leaves", &[]);
    assert!(matches!(leaves.as_slice(), [Found::Observation(it)] if it.category == "task"));
    assert_eq!(library.find("tag:green"), ["/tea.md"]);
    let water = find(SearchTarget::Relations, "water", &[]);
    assert!(matches!(water.as_slice(), [Found::Relation(it)] if it.kind == "depends_on"));
    assert_eq!(find(SearchTarget::Relations, "steamed", &[]), []);
    let all = vec![SearchTarget::Memories, SearchTarget::Observations, SearchTarget::Relations];
    let page = library.search(&SearchRequest { targets: all, ..library.request("tea") });
    assert_eq!((page.hits.len(), page.total.count), (6, 6));
}

/// `search_type` title and permalink.
pub fn titles_and_permalinks_can_be_searched_alone(fixture: &Fixture) {
    let library = Library::of(fixture);
    library.put("/docs/Tea House.md", "# Green tea\n\nkettle");
    library.put("/docs/kettle.md", "# Kettle\n\ntea");
    let find = |mode, text: &str| {
        let mut found = paths(&library.search(&SearchRequest { mode, ..library.request(text) }));
        found.sort();
        found
    };
    assert_eq!(find(SearchMode::Title, "tea"), ["/docs/Tea House.md"]);
    assert_eq!(find(SearchMode::Title, "kettle"), ["/docs/kettle.md"]);
    library.put("/code/parser.md", "# The organization of parseJson");
    for query in ["organiz*", "organization", "json", "parse_json", "pars*", "parseJ*"] {
        assert_eq!(find(SearchMode::Title, query), ["/code/parser.md"], "{query}");
    }
    assert_eq!(find(SearchMode::Title, "tea*"), ["/docs/Tea House.md"]);
    assert_eq!(find(SearchMode::Permalink, "docs/tea-house"), ["/docs/Tea House.md"]);
    assert_eq!(find(SearchMode::Permalink, "docs/*").len(), 2);
    library.put("/a.md", "---\npermalink: Special/Name\n---\n");
    library.put("/b.md", "---\npermalink: Special/Name\n---\n");
    assert_eq!(find(SearchMode::Permalink, "special/name"), ["/a.md", "/b.md"]);
    assert_eq!(find(SearchMode::Permalink, "Special/Name-1"), ["/b.md"]);
    assert_eq!(find(SearchMode::Permalink, "nothing"), Vec::<String>::new());
}

/// Path, title, permalink, snippet, score, actor, time, version, metadata.
pub fn a_hit_says_where_who_and_when(fixture: &Fixture) {
    let library = Library::of(fixture);
    let text = "---\ntags: [hot]\nstatus: open\n---\n# Green tea\n\nPut the leaves into a kettle.";
    let memory = library.put("/docs/tea.md", text);
    let hit = &library.search(&library.request("kettle")).hits[0];
    assert_eq!(hit.note.path, memory.path);
    assert_eq!(hit.note.version, memory.version);
    assert_eq!(hit.note.memory, memory.id);
    assert_eq!(hit.note.title, "Green tea");
    assert_eq!(hit.note.permalink, "docs/tea");
    assert_eq!(hit.note.updated_at, memory.updated_at);
    assert_eq!(hit.actor, actor());
    assert!(hit.score > 0.0);
    assert_eq!(hit.tags, ["hot"]);
    assert_eq!(hit.metadata, [("status".to_owned(), Value::from("open"))]);
    let shown: Vec<_> =
        hit.snippet.matches.iter().filter_map(|it| hit.snippet.text.get(it.clone())).collect();
    assert_eq!(shown, ["kettle"]);
    assert!(hit.snippet.text.contains("the leaves into a kettle"));
}

/// A search without words lists what fits the filters.
pub fn without_words_the_newest_come_first(fixture: &Fixture) {
    let library = Library::of(fixture);
    for path in ["/a", "/b", "/c"] {
        library.put(path, "---\ntags: x\n---\ntext");
    }
    library.put("/a", "---\ntags: x\n---\nchanged");
    library.put("/d", "no tag");
    assert_eq!(library.find(""), ["/d", "/a", "/c", "/b"]);
    assert_eq!(library.find("tag:x"), ["/a", "/c", "/b"]);
}

/// Pages do not overlap, and the last one says so.
pub fn pages_follow_each_other(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..25 {
        library.put(&format!("/{number:02}"), &format!("tea number{number}"));
    }
    let mut all = Vec::new();
    for offset in [0, 10, 20] {
        let request = SearchRequest { offset, limit: 10, ..library.request("tea") };
        let page = library.search(&request);
        assert_eq!(page.total.count, 25);
        // Words that begin with `tea` are only looked for when the page is not full.
        assert_eq!(page.total.is_lower_bound, offset < 20);
        assert_eq!(page.has_more, offset < 20);
        all.extend(paths(&page));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 25);
}

/// One list over several stores; a store that is not asked for is not searched.
pub fn several_stores_are_searched_together(fixture: &Fixture) {
    let library = Library::of(fixture);
    let other = new_store(&library.engine, "other");
    let third = new_store(&library.engine, "third");
    library.put("/a", "tea");
    put(&library.engine, other, "/b", "tea");
    put(&library.engine, third, "/c", "tea");
    let stores = vec![library.store, other];
    let page = library.search(&SearchRequest { stores, ..library.request("tea") });
    let mut found = paths(&page);
    found.sort();
    assert_eq!(found, ["/a", "/b"]);
    assert_eq!(page.total.count, 2);
    assert_eq!(library.find("tea"), ["/a"]);
}

/// There is no wrong query.
pub fn hostile_queries_are_answered(fixture: &Fixture) {
    let library = Library::of(fixture);
    for number in 0..50 {
        library.put(&format!("/{number}"), "tea and kettle or AND NOT marks any title : body");
    }
    let queries = [
        "\"unbalanced",
        "((((((((((((((((((((((((((((((tea",
        "tea) OR (",
        "NOT",
        "NOT tea",
        "AND OR NOT",
        "title : tea",
        "marks:any",
        "{title body} : tea",
        "NEAR(tea kettle, 5)",
        "^tea + kettle",
        "tea\0kettle",
        "\u{202e}tea",
        "*",
        "a*",
        "t*",
        "'; DROP TABLE notes; --",
        "tag:",
        "path:../../etc/passwd",
        "path:[*?*?*?*?*?",
    ];
    for query in queries {
        library.find(query);
    }
    assert_eq!(library.find("a0000000000000000"), Vec::<String>::new());
    library.find(&"tea ".repeat(10_000));
    library.find(&"(".repeat(100_000));
    library.find(&"tea OR ".repeat(10_000));
    library.find(&"\"".repeat(9_999));
    library.find(&"x".repeat(1_000_000));
    let words = (0..10_000).map(|number| format!("word{number}")).collect::<Vec<_>>();
    for glue in [" ", "-", "/", "_"] {
        library.find(&words.join(glue));
    }
    library.find(&format!("\"{}\"", words.join(" ")));
    library.find(&"日本語".repeat(10_000));
    library.find(&"aB1".repeat(10_000));
    let request = SearchRequest {
        offset: usize::MAX,
        limit: usize::MAX,
        ..SearchRequest::new(vec![library.store], "tea")
    };
    assert_eq!(library.search(&request).hits.len(), 0);
}
