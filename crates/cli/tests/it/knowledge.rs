//! `search`, `suggest`, `recent`, `context`, `links`, `graph` and `check --rebuild`.

use serde_json::Value;

use crate::support::Quipu;

/// Returns a home with a few notes.
fn library() -> Quipu {
    let quipu = Quipu::with_store();
    let tea = "---\ntags: [hot]\nstatus: open\npriority: 2\n---\n# Green tea\n\n\
        Put the leaves into a kettle.\n\n- [fact] steamed in Japan #leaf\n- needs [[Kettle]]\n- \
        needs [[Cup]]\n";
    quipu.put("/drinks/tea.md", tea);
    quipu.put("/things/kettle.md", "# Kettle\n\nboils water");
    quipu.put("/other.md", "nothing to do with it");
    quipu
}

fn paths(quipu: &Quipu, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["search"];
    all.extend(arguments);
    let found = quipu.json(&all);
    let results = found.get("results").and_then(Value::as_array).expect("a list").iter();
    let path = |hit: &Value| hit.get("path").and_then(Value::as_str).map(str::to_owned);
    results.map(|hit| path(hit).expect("a path")).collect()
}

#[test]
fn search_ranks_hits_and_shows_snippets() {
    let quipu = library();
    let text = quipu.ok(&["search", "kettles"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("/things/kettle.md  Kettle  "), "{text}");
    assert!(lines[0].contains("user_ada"));
    assert!(text.contains("    # Green tea Put the leaves into a kettle."), "{text}");
    assert_eq!(quipu.ok(&["search", "zebra"]), "no matches\n");
    let beyond = quipu.ok(&["search", "kettle", "--offset", "5"]);
    assert_eq!(beyond, "no matches left: 2 in all, 5 skipped\n");
    let none = quipu.ok(&["search", "kettle", "--limit", "0"]);
    assert!(none.starts_with("0 of ") && none.ends_with("2\n"), "{none}");
    let found = quipu.json(&["search", "leaves kettle", "-n", "1"]);
    let hit = &found["results"][0];
    assert_eq!(hit["path"], "/drinks/tea.md");
    assert_eq!(hit["title"], "Green tea");
    assert_eq!(hit["permalink"], "drinks/tea");
    assert_eq!(hit["metadata"]["status"], "open");
    assert_eq!(hit["created_by"]["user_id"], "user_ada");
    assert!(hit["score"].as_f64().expect("a number") > 0.0);
    assert_eq!((&found["total"], &found["has_more"]), (&2.into(), &true.into()));
}

#[test]
fn search_explains_its_scores() {
    let quipu = library();
    let found = quipu.json(&["search", "leaves kettle", "--explain"]);
    for hit in found["results"].as_array().expect("a list") {
        let parts = hit["explanation"].as_array().expect("a list").iter();
        let sum: f64 = parts.map(|part| part["score"].as_f64().expect("a number")).sum();
        assert!((sum - hit["score"].as_f64().expect("a number")).abs() < 1e-9, "{hit}");
    }
    let text = quipu.ok(&["search", "leaves kettle", "--explain"]);
    assert!(text.contains("  kettl: in 2, idf 0.47; body 2 × 1, of 17 words"), "{text}");
    assert!(text.contains("  bonus for 100 % of the words"), "{text}");
    assert!(!quipu.ok(&["search", "leaves"]).contains("idf"));
}

#[test]
fn search_takes_every_filter() {
    let quipu = library();
    assert_eq!(paths(&quipu, &["kettle", "--tag", "hot"]), ["/drinks/tea.md"]);
    assert_eq!(paths(&quipu, &["kettle", "--path", "things"]), ["/things/kettle.md"]);
    assert_eq!(paths(&quipu, &["--where", "priority>=2"]), ["/drinks/tea.md"]);
    assert_eq!(paths(&quipu, &["--where", "priority>2"]), Vec::<String>::new());
    assert_eq!(paths(&quipu, &["--type", "note", "--category", "fact"]), ["/drinks/tea.md"]);
    assert_eq!(paths(&quipu, &["--by", "title", "tea"]), ["/drinks/tea.md"]);
    assert_eq!(paths(&quipu, &["--by", "permalink", "things/*"]), ["/things/kettle.md"]);
    assert_eq!(paths(&quipu, &["kettle", "--after", "1h"]).len(), 2);
    let facts = quipu.json(&["search", "--what", "observations", "japan"]);
    assert_eq!(facts["results"][0]["observation"]["category"], "fact");
    let ran = quipu.run(&["search", "x", "--after", "soon"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`soon` is not a time"), "{}", ran.err);
    let ran = quipu.run(&["search", "x", "--where", "=1"]);
    assert!(ran.code == 2 && ran.err.contains("priority>=2"), "{}", ran.err);
}

#[test]
fn search_looks_into_all_stores_or_those_named() {
    let quipu = library();
    quipu.ok(&["store", "create", "second"]);
    quipu.run_with(&["put", "-s", "second", "/x.md"], b"kettle");
    assert_eq!(paths(&quipu, &["kettle", "--all"]).len(), 3);
    assert_eq!(paths(&quipu, &["kettle", "-s", "second"]), ["/x.md"]);
    assert_eq!(paths(&quipu, &["kettle", "-s", "second", "-s", "notes"]).len(), 3);
    let text = quipu.ok(&["search", "kettle", "--all"]);
    assert!(
        text.contains("second  /x.md  ") && text.contains("notes  /things/kettle.md"),
        "{text}"
    );
    let twice = quipu.json(&["search", "kettle", "-s", "second", "-s", "second"]);
    assert_eq!(twice["total"], 1);
    let ran = quipu.run(&["search", "kettle"]);
    assert!(ran.code == 3 && ran.err.contains("--store"), "{}", ran.err);
}

#[test]
fn recent_includes_deleted_memories() {
    let quipu = library();
    quipu.ok(&["rm", "/other.md"]);
    let text = quipu.ok(&["recent"]);
    assert!(text.lines().next().is_some_and(|line| line.contains("deleted   /other.md")), "{text}");
    assert_eq!(text.lines().count(), 3);
    let list = quipu.json(&["recent", "1h", "-n", "2"]);
    assert_eq!(list["data"][0]["operation"], "deleted");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["has_more"], true);
    assert_eq!(quipu.json(&["recent", "-n", "3"])["has_more"], false);
    let ran = quipu.run(&["recent", "-n", "1"]);
    assert!(ran.err.contains("there are more; `--limit` shows them"), "{ran:?}");
    assert_eq!(quipu.ok(&["recent", "2999-01-01"]), "no changes\n");
    assert_eq!(quipu.ok(&["recent", "-n", "0"]), "`--limit 0` shows nothing\n");
}

#[test]
fn context_shows_what_is_around_a_memory() {
    let quipu = library();
    let text = quipu.ok(&["context", "Green tea", "--depth", "2"]);
    let expected = "/drinks/tea.md  Green tea\n  [fact] steamed in Japan #leaf\n  \
        → needs  /things/kettle.md  Kettle\n  → needs  [[Cup]] (unresolved)\n";
    assert_eq!(text, expected);
    let back = quipu.ok(&["context", "memory://things/kettle"]);
    assert!(back.contains("← needs  /drinks/tea.md  Green tea"), "{back}");
    let all = quipu.json(&["context", "drinks/*"]);
    assert_eq!(all["results"][0]["related_results"][0]["direction"], "outgoing");
    let ran = quipu.run(&["context", "green te"]);
    assert!(ran.code == 3 && ran.err.contains("/drinks/tea.md"), "{}", ran.err);
}

#[test]
fn links_show_both_directions_and_what_is_missing() {
    let quipu = library();
    let text = quipu.ok(&["links", "drinks/tea"]);
    assert!(text.contains("needs [[Kettle]] → /things/kettle.md"), "{text}");
    assert!(text.contains("needs [[Cup]] → (unresolved)"), "{text}");
    let back = quipu.json(&["links", "Kettle", "--back"]);
    assert_eq!(back["data"][0]["from"]["path"], "/drinks/tea.md");
    let missing = quipu.json(&["links", "--unresolved"]);
    assert_eq!(missing["data"][0]["target"], "Cup");
    assert_eq!(missing["data"][0]["to"], Value::Null);
    assert_eq!(missing["has_more"], false);
    let cut = quipu.json(&["links", "drinks/tea", "-n", "1"]);
    assert_eq!((cut["data"].as_array().map(Vec::len), &cut["has_more"]), (Some(1), &true.into()));
    assert_eq!(quipu.ok(&["links", "--orphans"]), "/other.md  other\n1 memory without links\n");
    assert_eq!(quipu.run(&["links"]).code, 2);
}

#[test]
fn the_graph_is_drawn_as_dot_and_svg() {
    let quipu = library();
    let dot = quipu.ok(&["graph"]);
    assert!(
        dot.starts_with("digraph quipu {") && dot.contains("n0 -> n2 [label=\"needs\"]"),
        "{dot}"
    );
    let svg = quipu.ok(&["graph", "--form", "svg"]);
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<circle").count(), 3);
    assert_eq!(svg.matches("<line").count(), 1);
    assert_eq!(svg, quipu.ok(&["graph", "--form", "svg"]), "the drawing is always the same");
    quipu.put("/strange.md", "---\ntitle: '<script>\"&\"'\n---\n");
    let svg = quipu.ok(&["graph", "--form", "svg"]);
    assert!(svg.contains("&lt;script&gt;&quot;&amp;&quot;") && !svg.contains("<script>"));
    quipu.put("/control.md", "---\ntitle: \"a\\eb\\u0001c\"\n---\n");
    let svg = quipu.ok(&["graph", "--form", "svg"]);
    assert!(svg.contains("a\u{fffd}b\u{fffd}c"), "{svg}");
    let ran = quipu.run(&["graph", "-n", "1"]);
    assert!(ran.code == 0 && ran.err.contains("only the first 1"), "{}", ran.err);
}

#[test]
fn the_index_is_checked_and_rebuilt() {
    let quipu = library();
    assert_eq!(paths(&quipu, &["kettle"]).len(), 2);
    quipu.ok(&["check", "--rebuild"]);
    assert_eq!(paths(&quipu, &["kettle"]).len(), 2);
    quipu.ok(&["check"]);
}

#[test]
fn search_says_what_is_over() {
    let quipu = library();
    quipu.put("/old.md", "---\nsuperseded_by: '[[Kettle]]'\n---\n# Old kettle\n\nboils water");
    let text = quipu.ok(&["search", "kettle", "--explain"]);
    assert!(text.contains("\n    superseded by [[Kettle]]\n"), "{text}");
    assert!(text.contains("  expired: × 0.25\n"), "{text}");
    let found = quipu.json(&["search", "kettle"]);
    let hits = found["results"].as_array().expect("a list");
    let last = hits.last().expect("a hit");
    assert_eq!(
        (&last["path"], &last["freshness"]["state"]),
        (&"/old.md".into(), &"expired".into())
    );
    assert_eq!(paths(&quipu, &["--where", "superseded_by"]), ["/old.md"]);
}

#[test]
fn suggest_prints_markdown_for_a_model() {
    let quipu = library();
    let text = quipu.ok(&["suggest", "how", "do", "I", "steam", "green", "tea", "leaves?"]);
    assert!(text.contains("\n/drinks/tea.md · by user_ada · "), "{text}");
    assert!(text.contains("\n> Put the leaves into a kettle.\n"), "{text}");
    let found = quipu.json(&["suggest", "green tea leaves"]);
    let first = &found["suggestions"][0];
    assert_eq!((&first["path"], &first["title"]), (&"/drinks/tea.md".into(), &"Green tea".into()));
    assert_eq!(found["markdown"].as_str().map(|it| it.contains("> Put the leaves")), Some(true));
    let id = first["memory_id"].as_str().expect("an id");
    let rest = quipu.json(&["suggest", "green tea leaves", "--exclude", id, "--all"]);
    assert_eq!(rest["suggestions"], serde_json::json!([]));
}

#[test]
fn suggest_reads_files_and_standard_input() {
    let quipu = library();
    let none = quipu.run(&["suggest", "hello, how are you?"]);
    assert_eq!((none.out.as_str(), none.code), ("", 0));
    assert!(none.err.contains("no relevant memories"), "{}", none.err);
    let file = quipu.home.path().join("task.bin");
    std::fs::write(&file, b"\xff\x00 green tea leaves \xfe").expect("it is written");
    let path = file.to_str().expect("a path");
    assert!(quipu.ok(&["suggest", "--file", path]).contains("/drinks/tea.md"));
    let piped = quipu.run_with(&["suggest", "-"], b"which leaves for green tea?");
    assert!(piped.out.contains("/drinks/tea.md"), "{}", piped.out);
    for wrong in [
        &["suggest"][..],
        &["suggest", "x", "--file", path],
        &["suggest", "--file", "/nowhere"],
        &["suggest", "x", "--budget", "0"],
        &["suggest", "x", "--limit", "51"],
        &["suggest", "x", "--exclude", "y"],
    ] {
        assert_eq!(quipu.run(wrong).code, 2, "{wrong:?}");
    }
}
