//! Selecting a store and a note: never a different one than requested.

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

fn write(host: &mut Host, store: &str, path: &str) {
    let (directory, title) = path.rsplit_once('/').unwrap_or(("", path));
    let note = json!({"title": title, "content": "text", "directory": directory, "project": store});
    host.ok("write_note", note);
}

fn stores(host: &mut Host) -> Vec<String> {
    let projects = host.ok("list_memory_projects", json!({})).data["projects"].take();
    let name = |project: &Value| project["name"].as_str().map(str::to_owned);
    projects.as_array().into_iter().flatten().filter_map(name).collect()
}

#[test]
fn deleting_a_store_again_deletes_no_other_one() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &["--tools", "all,admin"]);
    for name in ["Archive", "archive"] {
        host.ok("create_memory_project", json!({"project_name": name}));
    }
    host.ok("delete_project", json!({"project_name": "Archive"}));
    let refusal = host.refusal("delete_project", json!({"project_name": "Archive"}));
    assert!(refusal.contains("no store is named `Archive`"), "{refusal}");
    assert_eq!(stores(&mut host), ["archive"]);
}

#[test]
fn a_repeated_change_of_a_path_changes_no_other_note() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("create_memory_project", json!({"project_name": "notes"}));
    write(&mut host, "notes", "Plan");
    write(&mut host, "notes", "old/Plan");
    for name in ["/Plan.md", "memory://notes/Plan.md"] {
        host.call("delete_note", json!({"identifier": name}));
        let refusal = host.refusal("delete_note", json!({"identifier": name}));
        assert!(refusal.contains("/old/Plan.md"), "{refusal}");
    }
    for pattern in ["old/*", "memory://old/*", "memory://notes/old/*"] {
        host.refusal("delete_note", json!({"identifier": pattern}));
        host.refusal("move_note", json!({"identifier": pattern, "destination": "new/"}));
    }
    assert_eq!(
        host.ok("read_note", json!({"identifier": "Plan"})).data["file_path"],
        "/old/Plan.md"
    );
}

#[test]
fn without_a_default_no_store_is_picked_silently() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for store in ["work", "home"] {
        host.ok("create_memory_project", json!({"project_name": store}));
        write(&mut host, store, "Todo");
    }
    write(&mut host, "home", "Only");
    let edit = json!({"identifier": "Todo", "operation": "append", "content": "x"});
    for (tool, arguments) in [
        ("edit_note", edit),
        ("delete_note", json!({"identifier": "Todo"})),
        ("restore_note", json!({"identifier": "Todo"})),
        ("move_note", json!({"identifier": "Todo", "destination": "x"})),
        ("read_note", json!({"identifier": "Todo"})),
    ] {
        let refusal = host.refusal(tool, arguments);
        assert!(refusal.contains("`/Todo.md` of `work` or `/Todo.md` of `home`"), "{refusal}");
    }
    host.refusal("list_directory", json!({}));
    let said = host.ok("delete_note", json!({"identifier": "Todo", "project": "home"}));
    assert!(said.text.contains("in `home`"), "{}", said.text);
    assert_eq!(host.ok("read_note", json!({"identifier": "Only"})).data["project"], "home");
    let missing = host.refusal("read_note", json!({"identifier": "Onl", "project": "work"}));
    assert!(missing.contains("`memory://home/Only.md`"), "{missing}");
    host.ok("read_note", json!({"identifier": "memory://home/Only.md", "project": "work"}));
}

#[test]
fn archived_stores_are_read_and_not_recreated() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "N", "content": "text"}));
    let create = json!({"command": "create", "path": "/memories/me.md", "file_text": "I am"});
    host.ok("memory", create.clone());
    for store in ["notes", "memories"] {
        quipu.ok(&["store", "archive", store]);
    }
    let named = json!({"identifier": "N", "project": "notes"});
    assert!(host.ok("read_note", named.clone()).text.contains("text"));
    assert!(host.refusal("delete_note", named).contains("archived"));
    host.ok("read_note", json!({"identifier": "N"}));
    let view = host.ok("memory", json!({"command": "view", "path": "/memories/me.md"}));
    assert!(view.text.contains("I am"), "{}", view.text);
    let again = json!({"title": "M", "content": "text"});
    assert!(host.refusal("write_note", again).contains("archived"));
    let create = json!({"command": "create", "path": "/memories/b.md", "file_text": "x"});
    assert!(host.refusal("memory", create).contains("archived"));
    let delete = json!({"command": "delete", "path": "/memories/me.md"});
    assert!(host.refusal("memory", delete).contains("archived"));
    let made = host.ok("create_memory_project", json!({"project_name": "notes"}));
    assert!(made.text.contains("archived"), "{}", made.text);
    assert_eq!(stores(&mut host).len(), 2);
    let found = host.ok("search_notes", json!({"query": "text", "project": "notes"}));
    assert_eq!(found.data["total"], 1);
    host.ok("create_memory_project", json!({"project_name": "work"}));
    let found = host.ok("search_notes", json!({"query": "text"}));
    assert_eq!(found.data["total"], 0);
    assert!(host.refusal("read_note", json!({"identifier": "N"})).contains("memory://notes/N.md"));
}

#[test]
fn undo_resolves_names_in_the_same_order_as_the_other_tools() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let create = json!({"command": "create", "path": "/memories/plan.md", "file_text": "one"});
    host.ok("memory", create);
    let replace = json!({
        "command": "str_replace", "path": "/memories/plan.md", "old_str": "one", "new_str": "two",
    });
    host.ok("memory", replace);
    host.ok("write_note", json!({"title": "plan", "content": "text"}));
    host.ok("delete_note", json!({"identifier": "plan"}));
    let undone = host.ok("restore_note", json!({"identifier": "plan"}));
    assert_eq!(undone.data["project"], "notes");
    let view = host.ok("memory", json!({"command": "view", "path": "/memories/plan.md"}));
    assert!(view.text.contains("two"), "{}", view.text);
}

#[test]
fn a_refused_write_creates_no_store() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.refusal("delete_note", json!({"identifier": "x/"}));
    host.refusal("move_note", json!({"identifier": "x/", "destination": "y"}));
    host.refusal("write_note", json!({"title": "..", "content": "x"}));
    assert_eq!(stores(&mut host), Vec::<String>::new());
}

#[test]
fn undo_reverts_a_move_and_says_when_there_is_nothing_to_undo() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "Mv", "content": "text"}));
    let moved = json!({"identifier": "Mv", "destination": "memory://notes/deep/v1.5"});
    assert_eq!(host.ok("move_note", moved).data["to"], "/deep/v1.5.md");
    let undone = host.ok("restore_note", json!({"identifier": "Mv"})).data;
    assert_eq!((&undone["action"], &undone["file_path"]), (&json!("restored"), &json!("/Mv.md")));
    let version = undone["version_id"].clone();
    let same = host.ok("restore_note", json!({"identifier": "Mv", "version": version})).data;
    assert_eq!(same["action"], "unchanged");
    host.ok("delete_note", json!({"identifier": "Mv"}));
    host.ok("restore_note", json!({"identifier": "/Mv.md"}));
    let refusal = host.refusal("restore_note", json!({"identifier": "Mv"}));
    assert!(refusal.contains("no change before this one"), "{refusal}");
}

#[test]
fn a_page_past_the_end_is_not_reported_as_no_results() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for number in 0..3 {
        write(&mut host, if number == 0 { "" } else { "notes" }, &format!("d{number}/tea"));
    }
    let past = json!({"query": "tea", "identifier": "d0/tea", "url": "d0/*", "page": u64::MAX});
    for tool in ["search_notes", "recent_activity", "note_history", "build_context"] {
        let said = host.ok(tool, past.clone());
        assert!(said.text.contains("There is no page"), "{tool}: {}", said.text);
    }
    let found = host.ok("search_notes", json!({"query": "tea", "projects": ["notes", "notes"]}));
    assert_eq!(found.data["total"], 3);
    let page = host.ok("list_directory", json!({"page_size": 2, "page": 2})).data;
    assert_eq!(page["directories"].as_array().map(Vec::len), Some(1));
    assert_eq!((&page["total"], &page["has_more"]), (&json!(3), &json!(false)));
    let created = host.ok("recent_activity", json!({"type": "Created"}));
    assert_eq!(created.data["results"].as_array().map(Vec::len), Some(3));
    let none = host.ok("recent_activity", json!({"type": "recipe"}));
    assert!(none.text.contains("of this type"), "{}", none.text);
}
