//! The tools for notes.

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

fn with_note() -> (Quipu, Host) {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let note = json!({
        "title": "Green Tea",
        "content": "# Green Tea\n\n## Brewing\n- [method] 80 °C #hot (two minutes)\n\n## Links\n- part_of [[Tea]]\n",
        "folder": "drinks",
        "tags": "hot, [\"x\"]",
        "metadata": "{\"priority\": 3}",
    });
    host.ok("write_note", note);
    (quipu, host)
}

fn read(host: &mut Host, identifier: &str) -> Value {
    host.ok("read_note", json!({"identifier": identifier, "output_format": "json"})).data
}

#[test]
fn a_note_is_written_once_unless_it_may_be_replaced() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let note = |content: &str| json!({"title": "Tea", "content": content, "directory": "/drinks/"});
    let card = host.ok("write_note", note("green")).data;
    assert_eq!(card["action"], "created");
    assert_eq!(card["file_path"], "/drinks/Tea.md");
    assert_eq!(card["permalink"], "drinks/tea");
    // The text is stored as given: nothing is added to it.
    assert_eq!(read(&mut host, "drinks/Tea.md")["content"], "green");

    let refusal = host.refusal("write_note", note("black"));
    assert!(refusal.contains("edit_note") && refusal.contains("overwrite"), "{refusal}");
    let mut again = note("black");
    again["overwrite"] = json!("true");
    assert_eq!(host.ok("write_note", again.clone()).data["action"], "updated");
    assert_eq!(host.ok("write_note", again.clone()).data["action"], "unchanged");
    again["expected_checksum"] = card["checksum"].clone();
    again["content"] = json!("white");
    assert!(host.refusal("write_note", again).contains("changed since"));
    assert_eq!(read(&mut host, "Tea")["content"], "black");
}

#[test]
fn tags_type_and_fields_become_frontmatter() {
    let (_quipu, mut host) = with_note();
    let text = host.ok("read_note", json!({"identifier": "Green Tea"})).text;
    assert!(text.starts_with("---\n") && text.contains("priority: 3\n"), "{text}");
    let body = json!({"identifier": "Green Tea", "include_frontmatter": false});
    assert!(host.ok("read_note", body).text.starts_with("# Green Tea\n"));
    let typed = json!({"title": "Plan", "content": "x", "note_type": "project", "tags": ["#a"]});
    host.ok("write_note", typed);
    let found = host.ok("search_notes", json!({"note_types": "project", "tags": "a"}));
    assert_eq!(found.data["results"][0]["title"], "Plan");
    assert_eq!(found.data["total"], 1);
}

#[test]
fn a_note_is_found_by_every_name() {
    let (_quipu, mut host) = with_note();
    let id = read(&mut host, "Green Tea")["id"].as_str().unwrap().to_owned();
    let names = [
        id.as_str(),
        "drinks/Green Tea.md",
        "/drinks/Green Tea",
        "drinks/green-tea",
        "green_tea",
        "[[Green Tea]]",
        "memory://drinks/green-tea",
        "memory://notes/drinks/Green%20Tea.md",
    ];
    for name in names {
        assert_eq!(read(&mut host, name)["id"], id.as_str(), "{name}");
    }
    let missing = host.refusal("read_note", json!({"identifier": "Green Teas"}));
    assert!(missing.contains("Green Tea"), "{missing}");
}

#[test]
fn long_notes_are_read_in_parts() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let lines: Vec<_> = (1..=10).map(|number| format!("line {number}\n")).collect();
    let lines = lines.concat();
    host.ok("write_note", json!({"title": "Long", "content": lines}));
    let part = json!({"identifier": "Long", "start_line": "3", "end_line": 4});
    let part = host.ok("read_note", part);
    assert!(part.text.starts_with("line 3\nline 4\n"), "{}", part.text);
    assert!(part.text.contains("start_line=5"), "{}", part.text);
    assert_eq!(part.data["content"], "line 3\nline 4\n");
    let page = json!({"identifier": "Long", "page": 3, "page_size": 4});
    assert_eq!(host.ok("read_note", page).data["content"], "line 9\nline 10\n");
    host.refusal("read_note", json!({"identifier": "Long", "start_line": 11}));
}

/// A model passes on the lines of a hit, with or without the frontmatter.
#[test]
fn the_lines_of_a_hit_are_those_that_read_note_returns() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let paragraphs: Vec<_> = (1..=20).map(|number| format!("paragraph w{number}\n\n")).collect();
    let text = format!("---\ntitle: Long\ntags: [a]\nstate: new\n---\n\n{}", paragraphs.concat());
    host.ok("write_note", json!({"title": "Long", "content": &text}));
    for word in ["w1", "w7", "w20"] {
        let hit = host.ok("search_notes", json!({"query": word}));
        let passage = &hit.data["results"][0]["passage"];
        for with_frontmatter in [true, false] {
            let part = json!({
                "identifier": "Long",
                "start_line": passage["start_line"],
                "end_line": passage["end_line"],
                "include_frontmatter": with_frontmatter,
            });
            let part = host.ok("read_note", part).data;
            let line = |name: &str| usize::try_from(passage[name].as_u64().unwrap()).unwrap();
            let lines: Vec<_> = text.split_inclusive('\n').collect();
            let expected = lines[line("start_line") - 1..line("end_line")].concat();
            assert!(expected.contains(word), "{passage}");
            assert_eq!(part["content"], expected, "{passage}");
            assert_eq!(part["start_line"], passage["start_line"]);
        }
    }
    let body = |rest: Value| {
        let mut all = json!({"identifier": "Long", "include_frontmatter": false});
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        all
    };
    let whole = host.ok("read_note", body(json!({}))).data;
    assert!(whole["content"].as_str().unwrap().starts_with("paragraph w1\n"), "{whole}");
    assert_eq!((&whole["start_line"], &whole["total_lines"]), (&json!(7), &json!(46)));
    let above = host.ok("read_note", body(json!({"start_line": 1, "end_line": 7}))).data;
    assert_eq!(above["content"], "paragraph w1\n");
    let page = host.ok("read_note", body(json!({"page": 2, "page_size": 4}))).data;
    assert_eq!(
        (&page["content"], &page["start_line"]),
        (&json!("paragraph w3\n\nparagraph w4\n\n"), &json!(11))
    );
    host.ok("write_note", json!({"title": "Empty", "content": "---\na: b\n---\n"}));
    let empty = json!({"identifier": "Empty", "include_frontmatter": false});
    assert_eq!(host.ok("read_note", empty).data["content"], "");
}

#[test]
fn an_edit_changes_what_it_says_and_shows_it() {
    let (_quipu, mut host) = with_note();
    let edit = |operation: &str, content: &str| json!({"identifier": "Green Tea", "operation": operation, "content": content});
    let said = host.ok("edit_note", edit("append", "- [note] more\n"));
    assert!(said.data["diff"].as_str().unwrap().contains("+- [note] more"), "{}", said.text);
    let mut replace = edit("find_replace", "75 °C");
    replace["find_text"] = json!("80 °C");
    host.ok("edit_note", replace.clone());
    assert!(host.refusal("edit_note", replace).contains("nothing was written"));
    let mut section = edit("replace_section", "- [method] cold #slow\n");
    section["section"] = json!("## Brewing");
    host.ok("edit_note", section.clone());
    section["section"] = json!("Missing");
    assert!(host.refusal("edit_note", section).contains("Brewing"));
    let mut before = edit("insert_before_section", "Before.");
    before["section"] = json!("Links");
    host.ok("edit_note", before);
    let text = read(&mut host, "Green Tea")["content"].as_str().unwrap().to_owned();
    assert!(text.contains("cold #slow") && text.contains("Before.\n\n## Links"), "{text}");

    // Fields change without the body.
    let fields =
        json!({"identifier": "Green Tea", "metadata": {"status": "done", "priority": null}});
    let diff = host.ok("edit_note", fields).data["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("+status: done") && diff.contains("-priority: 3"), "{diff}");
    let found = host.ok("search_notes", json!({"status": "done"}));
    assert_eq!(found.data["total"], 1);
}

#[test]
fn a_stale_checksum_or_an_ambiguous_title_changes_nothing() {
    let (_quipu, mut host) = with_note();
    let stale = json!({"identifier": "Green Tea", "operation": "append", "content": "x",
        "expected_checksum": "0".repeat(64)});
    assert!(host.refusal("edit_note", stale).contains("read it again"));
    host.ok("write_note", json!({"title": "Green Tea", "content": "another", "directory": "shop"}));
    let ambiguous = json!({"identifier": "Green Tea", "operation": "append", "content": "x"});
    let refusal = host.refusal("edit_note", ambiguous);
    assert!(refusal.contains("/shop/Green Tea.md") && refusal.contains("/drinks/"), "{refusal}");
    assert_eq!(read(&mut host, "shop/Green Tea.md")["content"], "another");
    host.refusal("delete_note", json!({"identifier": "Green Tea"}));
}

#[test]
fn moving_and_deleting_keep_the_history() {
    let (_quipu, mut host) = with_note();
    let id = read(&mut host, "Green Tea")["id"].clone();
    let moved = json!({"identifier": "Green Tea", "destination": "archive/old tea"});
    assert_eq!(host.ok("move_note", moved).data["to"], "/archive/old tea.md");
    assert_eq!(read(&mut host, "archive/old tea")["id"], id);
    let whole = json!({"identifier": "archive", "is_directory": true, "destination": "attic"});
    host.ok("move_note", whole);
    host.ok("write_note", json!({"title": "New", "content": "x"}));
    host.refusal("move_note", json!({"identifier": "New", "destination": "attic/old tea.md"}));
    let deleted = host.ok("delete_note", json!({"identifier": "attic/", "project": "notes"}));
    assert_eq!(deleted.data["notes"], json!(["/attic/old tea.md"]));

    let history = host.ok("note_history", json!({"identifier": "/attic/old tea.md"}));
    let operations: Vec<_> =
        history.data["versions"].as_array().unwrap().iter().map(|it| &it["operation"]).collect();
    assert_eq!(operations, ["deleted", "modified", "modified", "created"]);
    let recent = host.ok("recent_activity", json!({"type": "deleted"}));
    assert_eq!(recent.data["results"][0]["file_path"], "/attic/old tea.md");
    host.ok("restore_note", json!({"identifier": "attic/old tea"}));
    assert_eq!(read(&mut host, "attic/old tea")["id"], id);
    host.refusal("delete_note", json!({"identifier": "/", "is_directory": true}));
}

#[test]
fn an_old_version_can_be_seen_and_written_again() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "Tea", "content": "one\n"}));
    host.ok("write_note", json!({"title": "Tea", "content": "two\n", "overwrite": true}));
    host.ok("write_note", json!({"title": "Tea", "content": "three\n", "overwrite": true}));
    let history = host.ok("note_history", json!({"identifier": "Tea", "page_size": 2}));
    assert_eq!(history.data["has_more"], true);
    assert_eq!(history.data["versions"][0]["diff"], "@@ -1 +1 @@\n-two\n+three");
    let last = host.ok("note_history", json!({"identifier": "Tea", "page_size": 2, "page": 2}));
    let first = &last.data["versions"][0]["version_id"];
    let shown = host.ok("note_history", json!({"identifier": "Tea", "version": first}));
    assert_eq!(shown.data["content"], "one\n");
    host.ok("restore_note", json!({"identifier": "Tea", "version": first}));
    assert_eq!(read(&mut host, "Tea")["content"], "one\n");
    host.ok("restore_note", json!({"identifier": "Tea"}));
    assert_eq!(read(&mut host, "Tea")["content"], "three\n");
    host.refusal("restore_note", json!({"identifier": "Tea", "version": "memver_x"}));
}

#[test]
fn searches_take_lists_and_numbers_in_every_form() {
    let (_quipu, mut host) = with_note();
    for entity_types in [json!(["observation"]), json!("observation"), json!("[\"observation\"]")] {
        let search = json!({"query": "80", "entity_types": entity_types, "page_size": "5"});
        let found = host.ok("search_notes", search);
        assert_eq!(found.data["results"][0]["type"], "observation", "{}", found.text);
    }
    let numbers = json!({"metadata_filters": {"priority": {"$between": [2, "4"]}}, "compact": 1});
    let found = host.ok("search_notes", numbers);
    assert_eq!(found.data["total"], 1);
    assert!(found.data["results"][0].get("snippet").is_none());
    let none = host.ok("search_notes", json!({"query": "green", "after_date": "2999-01-01"}));
    assert_eq!(none.data["results"], json!([]));
    let title = host.ok("search_notes", json!({"query": "green", "search_type": "title"}));
    assert_eq!(title.data["total"], 1);
    let all = json!({"query": "green", "projects": "notes", "output_format": "json"});
    let said = host.ok("search_notes", all);
    assert_eq!(serde_json::from_str::<Value>(&said.text).unwrap(), said.data);
}

#[test]
fn hostile_searches_are_answered() {
    let (_quipu, mut host) = with_note();
    let many = "tea ".repeat(10_000);
    for query in ["\"unbalanced", "AND OR NOT (", "a\u{0}b", "*", "NEAR(", "col:x ^ -", &many] {
        host.ok("search_notes", json!({"query": query}));
    }
}

#[test]
fn context_follows_links_in_both_directions() {
    let (_quipu, mut host) = with_note();
    host.ok(
        "write_note",
        json!({"title": "Tea", "content": "- [fact] @2026-06 a leaf\n- grows_in [[Asia#East]]"}),
    );
    host.ok("write_note", json!({"title": "Asia", "content": "- [fact] large"}));
    let context = host.ok("build_context", json!({"url": "memory://tea", "depth": 1}));
    let related = context.data["results"][0]["related_results"].as_array().unwrap().clone();
    let titles: Vec<_> = related.iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert!(titles.contains(&"Asia") && titles.contains(&"Green Tea"), "{}", context.text);
    assert_eq!(related[0]["section"], "East");
    assert!(context.text.contains("- [fact] @2026-06 a leaf"), "{}", context.text);
    let facts = json!({"query": "2026-06", "entity_types": "observation"});
    let facts = host.ok("search_notes", facts);
    assert_eq!(facts.data["results"][0]["observation"]["times"], json!(["@2026-06"]));
    let far = host.ok("build_context", json!({"url": "drinks/*", "depth": "2"}));
    let related = far.data["results"][0]["related_results"].to_string();
    assert!(related.contains("Asia"), "{}", far.text);
    let few = json!({"url": "tea", "max_related": 1});
    let few = host.ok("build_context", few);
    assert_eq!(few.data["results"][0]["related_results"].as_array().unwrap().len(), 1);
    host.refusal("build_context", json!({"url": "memory://nothing/here"}));
}

#[test]
fn directories_are_listed_with_counts() {
    let (_quipu, mut host) = with_note();
    host.ok("write_note", json!({"title": "Black", "content": "x", "dir": "drinks/strong"}));
    let root = host.ok("list_directory", json!({}));
    assert_eq!(root.data["directories"], json!([{"path": "/drinks/", "notes_count": 2}]));
    let deep = host.ok("list_directory", json!({"dir_name": "drinks", "depth": 2}));
    assert_eq!((&deep.data["total"], deep.data["files"][1].is_null()), (&json!(3), false));
    let glob = json!({"dir_name": "/", "depth": 5, "file_name_glob": "Bl*.md"});
    let files = host.ok("list_directory", glob).data["files"].clone();
    assert_eq!(files[0]["file_path"], "/drinks/strong/Black.md");
    host.refusal("list_directory", json!({"dir_name": "/nowhere"}));
}

#[test]
fn stores_are_created_and_deleted() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &["--tools", "all,admin"]);
    host.ok("create_memory_project", json!({"project_name": "Work Notes", "description": "Work."}));
    let again = host.ok("create_memory_project", json!({"project_name": "Work Notes"}));
    assert_eq!(again.data["action"], "unchanged");
    let stores = host.ok("list_memory_projects", json!({}));
    assert_eq!(stores.data["projects"][0]["is_default"], true);
    assert_eq!(stores.data["projects"][0]["url"], "memory://work-notes/");
    host.ok("write_note", json!({"title": "Tea", "content": "x", "project": "work-notes"}));
    host.ok("create_memory_project", json!({"project_name": "home"}));
    let refusal = host.refusal("write_note", json!({"title": "Tea", "content": "x"}));
    assert!(refusal.contains("`Work Notes`") && refusal.contains("`home`"), "{refusal}");
    host.ok("delete_project", json!({"project_name": "Work Notes"}));
    host.refusal("read_note", json!({"identifier": "Tea", "project": "Work Notes"}));
    // An agent cannot erase a store: its owner can restore it.
    quipu.ok(&["store", "restore", "Work Notes"]);
    host.ok("read_note", json!({"identifier": "Tea", "project": "Work Notes"}));
}

#[test]
fn deleting_stores_is_offered_only_on_request() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("create_memory_project", json!({"project_name": "work"}));
    assert!(!host.tools().contains(&"delete_project".to_owned()));
    let reply = host.raw(
        "tools/call",
        json!({"name": "delete_project", "arguments": {"project_name": "work"}}),
    );
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(quipu.ok(&["store", "list"]).contains("work"));
}

#[test]
fn the_configured_store_is_the_default_and_created_on_demand() {
    let quipu = Quipu::with_store();
    std::fs::write(quipu.data().join("quipu.toml"), "store = 'mine'\n").unwrap();
    let mut host = Host::new(&quipu, &[]);
    let card = host.ok("write_note", json!({"title": "Tea", "content": "green"})).data;
    assert_eq!(card["project"], "mine");
    assert_eq!(host.ok("read_note", json!({"identifier": "Tea"})).data["project"], "mine");
}

#[test]
fn credentials_are_reported() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let secret = format!("key: ghp_{}", "Ab1Cd2Ef3Gh4".repeat(3));
    let said = host.ok("write_note", json!({"title": "Keys", "content": secret.as_str()}));
    assert!(said.text.contains("holds a credential"), "{}", said.text);
    assert_eq!(said.data["findings"][0]["line"], 1);
    quipu.ok(&["store", "create", "clean", "--secrets", "redact"]);
    let keys = json!({"title": "Keys", "content": secret, "project": "clean"});
    let said = host.ok("write_note", keys);
    assert!(said.text.contains("was replaced before it was stored"), "{}", said.text);
}

#[test]
fn a_field_with_an_argument_of_its_own_is_written_once() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let note = json!({
        "title": "Y",
        "content": "b",
        "tags": ["x"],
        "note_type": "guide",
        "metadata": {"tags": ["q"], "type": "z", "title": "no", "status": "open"},
    });
    host.ok("write_note", note);
    host.ok("edit_note", json!({"identifier": "Y", "metadata": {"status": "done"}}));
    let text = read(&mut host, "Y")["content"].as_str().unwrap_or_default().to_owned();
    assert_eq!((text.matches("tags:").count(), text.matches("type:").count()), (1, 1), "{text}");
}

#[test]
fn notes_are_suggested_for_a_text() {
    let (_quipu, mut host) = with_note();
    let old = "---\nsuperseded_by: Green Tea\n---\n# Old tea\n\nBrewing of green tea.";
    host.ok("write_note", json!({"title": "Old tea", "content": old}));
    let asked = json!({"text": "How do I go about brewing green tea?", "budget": 500});
    let answer = host.ok("suggest_notes", asked);
    assert!(answer.text.contains("\n> - [method] 80 °C #hot (two minutes)\n"), "{}", answer.text);
    let item = &answer.data["suggestions"][0];
    assert_eq!(item["file_path"], "/drinks/Green Tea.md");
    assert_eq!(item["reasons"]["replaces"], json!(["/Old tea.md"]));
    assert_eq!(answer.data["left_out"][0]["freshness"]["state"], "expired");
    let found = host.ok("search_notes", json!({"query": "green tea"}));
    assert!(found.text.contains("superseded by [[Green Tea]]"), "{}", found.text);
    assert_eq!(found.data["results"][1]["freshness"]["field"], "superseded_by");
    let none = host.ok("suggest_notes", json!({"text": "hello, how are you?"}));
    assert_eq!((none.text.as_str(), &none.data["tokens"]), ("No relevant notes.", &json!(0)));
    assert!(host.refusal("suggest_notes", json!({})).contains("text"));
    let refusal = host.refusal("suggest_notes", json!({"text": "tea", "exclude": ["x"]}));
    assert!(refusal.contains("`x`"), "{refusal}");
}
