//! The argument `as_of`: notes as they were.

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

/// A store whose notes were edited, moved and deleted after a moment.
struct Story {
    quipu: Quipu,
    host: Host,
    /// The last version before the changes.
    then: String,
    /// The version of the note that was edited.
    edited: String,
}

fn write(host: &mut Host, title: &str, content: &str) -> String {
    let note = json!({"title": title, "content": content, "overwrite": true});
    let written = host.ok("write_note", note).data;
    written["version_id"].as_str().expect("a version").to_owned()
}

fn story() -> Story {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let edited = write(&mut host, "Tea", "# Tea\n\n- [fact] green\n- needs [[Kettle]]\n");
    write(&mut host, "Kettle", "# Kettle\n\ncopper\n");
    let then = write(&mut host, "Cup", "# Cup\n\nporcelain\n");
    // Another client changes everything.
    let mut other = Host::new(&quipu, &[]);
    write(&mut other, "Tea", "# Tea\n\n- [fact] black\n");
    other.ok("move_note", json!({"identifier": "Kettle", "destination": "kitchen/pot.md"}));
    other.ok("delete_note", json!({"identifier": "Cup"}));
    write(&mut other, "Later", "# Later\n\ncopper and porcelain\n");
    Story { quipu, host, then, edited }
}

fn paths(listed: &Value) -> Vec<&str> {
    let files = listed.as_array().expect("a list").iter();
    files.map(|file| file["file_path"].as_str().expect("a path")).collect()
}

#[test]
fn a_note_is_read_as_it_was() {
    let Story { quipu: _quipu, mut host, then, .. } = story();
    let mut read = |identifier: &str| {
        host.ok("read_note", json!({"identifier": identifier, "as_of": then.as_str()}))
    };
    let tea = read("Tea");
    assert!(tea.text.starts_with("[as of 20"), "{}", tea.text);
    assert!(tea.text.contains("]\n# Tea\n\n- [fact] green\n"), "{}", tea.text);
    assert_eq!(tea.data["as_of"]["complete"], true);
    assert_eq!(tea.data["content"], "# Tea\n\n- [fact] green\n- needs [[Kettle]]\n");
    assert_eq!((&tea.data["permalink"], &tea.data["project"]), (&json!("tea"), &json!("notes")));
    assert_eq!(tea.data["actor"]["title"], "Test Host 1.2");
    // By its old path, by its title, by a URL with a store, and after it was deleted.
    assert_eq!(read("/Kettle.md").data["file_path"], "/Kettle.md");
    assert_eq!(read("memory://notes/Kettle.md").data["file_path"], "/Kettle.md");
    assert_eq!(read("Cup").data["content"], "# Cup\n\nporcelain\n");
    for missing in ["kitchen/pot.md", "Later"] {
        let request = json!({"identifier": missing, "as_of": then.as_str()});
        let refusal = host.refusal("read_note", request);
        assert!(refusal.contains("as of `20"), "{refusal}");
    }
    let now = host.ok("read_note", json!({"identifier": "Tea", "as_of": ""}));
    assert!(now.text.contains("black") && now.data.get("as_of").is_none(), "{}", now.text);
}

#[test]
fn a_directory_is_listed_as_it_was() {
    let Story { quipu, mut host, then, .. } = story();
    let list = json!({"as_of": then.as_str(), "page_size": 2});
    let listed = host.ok("list_directory", list.clone());
    assert!(listed.text.starts_with("[as of 20"), "{}", listed.text);
    assert_eq!(paths(&listed.data["files"]), ["/Cup.md", "/Kettle.md"]);
    // Another client writes between the pages.
    write(&mut Host::new(&quipu, &[]), "Bowl", "blue\n");
    let mut second = list;
    second["page"] = json!(2);
    let second = host.ok("list_directory", second);
    assert_eq!(paths(&second.data["files"]), ["/Tea.md"]);
    assert_eq!(second.data["as_of"], listed.data["as_of"]);
    let gone = json!({"dir_name": "kitchen", "as_of": then.as_str()});
    let refusal = host.refusal("list_directory", gone);
    assert!(refusal.contains("no directory `/kitchen/`") && refusal.contains("as of"), "{refusal}");
    host.ok("list_directory", json!({"dir_name": "kitchen"}));
}

#[test]
fn context_is_that_of_the_moment() {
    let Story { quipu: _quipu, mut host, then, .. } = story();
    let asked = json!({"url": "memory://tea", "as_of": then.as_str()});
    let context = host.ok("build_context", asked);
    assert!(context.text.contains("links to other stores are not followed"), "{}", context.text);
    assert!(context.text.contains("- [fact] green"), "{}", context.text);
    let related = &context.data["results"][0]["related_results"];
    assert_eq!(paths(related), ["/Kettle.md"]);
    let now = host.ok("build_context", json!({"url": "memory://tea"}));
    assert_eq!(now.data["results"][0]["related_results"], json!([]));
    let later = json!({"url": "memory://later", "as_of": then});
    assert!(host.refusal("build_context", later).contains("as of `20"));
}

#[test]
fn a_search_in_the_past_says_how_it_searched() {
    let Story { quipu: _quipu, mut host, then, .. } = story();
    let mut search =
        |query: &str| host.ok("search_notes", json!({"query": query, "as_of": then.as_str()}));
    let found = search("copper");
    assert!(found.text.contains("searched by reading every note"), "{}", found.text);
    assert_eq!(found.data["as_of"]["searched"], "scan");
    assert_eq!(paths(&found.data["results"]), ["/Kettle.md"]);
    assert_eq!(paths(&search("porcelain").data["results"]), ["/Cup.md"]);
    assert_eq!(search("black").data["total"], 0);
    // Several stores are merged, also page by page; one that did not exist yet is left out.
    host.ok("create_memory_project", json!({"project_name": "work"}));
    let note = json!({"title": "Pan", "content": "copper copper", "project": "work"});
    let pan = host.ok("write_note", note).data["version_id"].clone();
    let all = |as_of: &Value, page: usize| json!({"query": "copper", "search_all_projects": true, "as_of": as_of, "page_size": 1, "page": page});
    let early = host.ok("search_notes", all(&json!(then), 1));
    assert_eq!(paths(&early.data["results"]), ["/Kettle.md"]);
    let pages: Vec<_> = (1..=3).map(|page| host.ok("search_notes", all(&pan, page)).data).collect();
    let mut found: Vec<_> = pages.iter().flat_map(|page| paths(&page["results"])).collect();
    found.sort_unstable();
    assert_eq!(found, ["/Later.md", "/Pan.md", "/kitchen/pot.md"]);
    let more: Vec<_> = pages.iter().map(|page| page["has_more"] == true).collect();
    assert_eq!((more, &pages[0]["total"]), (vec![true, true, false], &json!(3)));
}

#[test]
fn bad_moments_teach() {
    let Story { quipu: _quipu, mut host, .. } = story();
    for (tool, mut arguments) in [
        ("read_note", json!({"identifier": "Tea"})),
        ("list_directory", json!({})),
        ("build_context", json!({"url": "memory://tea"})),
        ("search_notes", json!({"query": "green"})),
    ] {
        for (moment, words) in [
            ("soon", "`yesterday 14:00`"),
            ("2999-01-01", "is in the future"),
            ("#999999", "the newest change is `#"),
            ("2001-01-01", "did not exist at"),
        ] {
            arguments["as_of"] = json!(moment);
            let refusal = host.refusal(tool, arguments.clone());
            assert!(refusal.contains(words), "{tool}, {moment}: {refusal}");
        }
    }
}

#[test]
fn what_was_redacted_is_said_and_not_shown() {
    let Story { quipu, mut host, then, edited } = story();
    quipu.ok(&["redact", &edited, "--yes"]);
    let as_of = then.as_str();
    let refusal = host.refusal("read_note", json!({"identifier": "Tea", "as_of": as_of}));
    assert!(refusal.contains("redacted since then: 1"), "{refusal}");
    for (tool, arguments) in [
        ("list_directory", json!({"as_of": as_of})),
        ("build_context", json!({"url": "memory://kettle", "as_of": as_of})),
        ("search_notes", json!({"query": "green", "as_of": as_of})),
    ] {
        let said = host.ok(tool, arguments);
        assert!(said.text.contains("1 note cannot be shown: redacted since"), "{}", said.text);
        assert_eq!(said.data["as_of"]["redacted_count"], 1);
        assert!(!said.text.contains("Tea"), "{}", said.text);
    }
}

#[test]
fn too_many_stores_are_not_searched_as_they_were() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for number in 0..9 {
        host.ok("create_memory_project", json!({"project_name": format!("s{number}")}));
    }
    let search = json!({"query": "x", "search_all_projects": true, "as_of": "now"});
    let refusal = host.refusal("search_notes", search);
    assert!(refusal.contains("at most 8 stores") && refusal.contains("`projects`"), "{refusal}");
    host.ok("search_notes", json!({"query": "x", "projects": "s1, s2", "as_of": "now"}));
}
