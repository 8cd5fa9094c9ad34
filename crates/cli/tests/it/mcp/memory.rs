//! The tool `memory`: the memory tool inside a knowledge base.

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

const NOTE: &str = "\
# Tea shop
- [decision] Prices are kept in cents #money (floats lost a cent)
- depends_on [[Payment provider]]
";

fn remembered(host: &mut Host) {
    let path = "/memories/projects/tea-shop.md";
    host.ok("memory", json!({"command": "create", "path": path, "file_text": NOTE}));
}

#[test]
fn every_command_works_with_the_strings_of_the_memory_tool() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let mut say = |arguments| host.ok("memory", arguments).text;
    let path = "/memories/a.md";
    let created = say(json!({"command": "create", "path": path, "file_text": "one\ntwo\n"}));
    assert_eq!(created, "File created successfully at: /memories/a.md");
    let viewed = say(json!({"command": "view", "path": path, "view_range": ["2", "2"]}));
    assert_eq!(viewed, "Here's the content of /memories/a.md with line numbers:\n     2\ttwo");
    say(json!({"command": "str_replace", "path": path, "old_str": "one", "new_str": "1"}));
    let inserted =
        say(json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "0"}));
    assert_eq!(inserted, "The file /memories/a.md has been edited.");
    say(json!({"command": "rename", "old_path": path, "new_path": "/memories/b.md"}));
    // The leading slash is optional.
    let listed = say(json!({"command": "view", "path": "memories"}));
    assert!(listed.ends_with("\n8B\tmemories/b.md") || listed.contains("/b.md"), "{listed}");
    let text = say(json!({"command": "view", "path": "memories/b.md"}));
    assert!(text.ends_with("     1\t0\n     2\t1\n     3\ttwo\n     4\t"), "{text}");
    let deleted = say(json!({"command": "delete", "path": "/memories/b.md"}));
    assert_eq!(deleted, "Successfully deleted /memories/b.md");
}

#[test]
fn numbers_may_be_strings() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let text = json!({"command": "create", "path": "memories/a.md", "file_text": "1\n2\n3\n"});
    host.ok("memory", text);
    let view =
        |range: Value| json!({"command": "view", "path": "/memories/a.md", "view_range": range});
    let wanted = host.ok("memory", view(json!([2, 2]))).text;
    assert!(wanted.contains('2') && !wanted.contains('3'), "{wanted}");
    for range in ["[2, 2]", "2, 2"] {
        assert_eq!(host.ok("memory", view(json!(range))).text, wanted);
    }
    let insert = json!({"command": "insert", "path": "/memories/a.md", "insert_line": "1", "insert_text": "x"});
    host.ok("memory", insert);
}

#[test]
fn errors_are_marked_and_worded_as_the_memory_tool_words_them() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let missing = host.refusal("memory", json!({"command": "view", "path": "/memories/none.md"}));
    assert_eq!(missing, "The path /memories/none.md does not exist. Please provide a valid path.");
    let escaping = json!({"command": "view", "path": "/memories/../etc/passwd"});
    assert!(host.refusal("memory", escaping).contains("would escape /memories directory"));
}

#[test]
fn the_schema_is_that_of_the_memory_tool() {
    let quipu = Quipu::empty();
    let tools = Host::new(&quipu, &[]).ask("tools/list", json!({}));
    let memory = tools["tools"].as_array().unwrap().iter().find(|it| it["name"] == "memory");
    let schema = &memory.unwrap()["inputSchema"];
    let commands = json!(["view", "create", "str_replace", "insert", "delete", "rename"]);
    assert_eq!(schema["properties"]["command"]["enum"], commands);
    assert_eq!(schema["required"], json!(["command"]));
    let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "command",
        "file_text",
        "insert_line",
        "insert_text",
        "new_path",
        "new_str",
        "old_path",
        "old_str",
        "path",
        "view_range",
    ];
    assert_eq!(names, expected);
}

#[test]
fn memories_are_kept_apart_from_notes() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    remembered(&mut host);
    host.ok("write_note", json!({"title": "Elsewhere", "content": "x"}));
    let stores = host.ok("list_memory_projects", json!({}));
    let names: Vec<_> =
        stores.data["projects"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["memories", "notes"]);
    let view = host.ok("memory", json!({"command": "view", "path": "/memories"})).text;
    assert!(!view.contains("Elsewhere"), "{view}");
}

#[test]
fn what_is_remembered_is_searched_walked_and_listed_at_once() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    remembered(&mut host);
    let found = host.ok("search_notes", json!({"query": "price in cents"}));
    assert_eq!(found.data["results"][0]["file_path"], "/projects/tea-shop.md");
    let found = host.ok("search_notes", json!({"query": "cents", "entity_types": ["observation"]}));
    assert_eq!(found.data["results"][0]["observation"]["category"], "decision");
    let found = host.ok("search_notes", json!({"query": "cents", "explain": true}));
    assert_eq!(found.data["results"][0]["explanation"][0]["term"], "cent");
    assert!(found.text.contains("cent: in 1, idf "), "{}", found.text);

    let context = host.ok("build_context", json!({"url": "memory://projects/tea-shop"}));
    let result = &context.data["results"][0];
    assert_eq!(result["primary_result"]["title"], "Tea shop");
    assert_eq!(result["observations"][0]["category"], "decision");
    assert_eq!(result["related_results"][0]["relation_type"], "depends_on");
    assert_eq!(result["related_results"][0]["is_unresolved"], true);

    // The link resolves when its target appears, whichever tool writes it.
    let note =
        json!({"title": "Payment provider", "content": "- [fact] slow", "project": "memories"});
    host.ok("write_note", note);
    let context = host.ok("build_context", json!({"url": "memory://memories/projects/tea-shop"}));
    let related = &context.data["results"][0]["related_results"][0];
    assert_eq!(related["file_path"], "/Payment provider.md");

    let recent = host.ok("recent_activity", json!({}));
    assert_eq!(recent.data["results"][1]["title"], "Tea shop");
    assert_eq!(recent.data["results"][1]["operation"], "created");
}

#[test]
fn a_host_with_stores_of_its_own_remembers_there() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &["--store", "work"]);
    remembered(&mut host);
    assert!(quipu.ok(&["--store", "work", "ls", "-R"]).contains("/projects/tea-shop.md"));
    assert!(
        host.refusal("search_notes", json!({"query": "x", "project": "other"})).contains("work")
    );
    assert!(!host.tools().contains(&"create_memory_project".to_owned()));
}

#[test]
fn a_read_only_server_only_looks() {
    let quipu = Quipu::empty();
    remembered(&mut Host::new(&quipu, &[]));
    let mut host = Host::new(&quipu, &["--read-only"]);
    let tools = host.tools();
    assert!(tools.contains(&"memory".to_owned()) && tools.contains(&"search_notes".to_owned()));
    assert!(!tools.contains(&"write_note".to_owned()));
    host.ok("memory", json!({"command": "view", "path": "/memories/projects/tea-shop.md"}));
    host.refusal("memory", json!({"command": "delete", "path": "/memories/projects"}));
    let hidden = host.raw("tools/call", json!({"name": "write_note", "arguments": {}}));
    assert_eq!(hidden["error"]["code"], -32602);
}

#[test]
fn only_some_tools_can_be_offered() {
    let quipu = Quipu::empty();
    assert_eq!(Host::new(&quipu, &["--tools", "memory"]).tools(), ["memory"]);
    let some = Host::new(&quipu, &["--tools", "memory,search_notes"]).tools();
    assert_eq!(some, ["memory", "search_notes"]);
    let ran = quipu.run(&["mcp", "--tools", "reed"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("choose from all, read, notes, admin, memory"), "{}", ran.err);
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "x"]);
    std::fs::write(quipu.data().join("quipu.toml"), "[mcp]\ntools = 'memory'\n").unwrap();
    assert_eq!(Host::new(&quipu, &[]).tools(), ["memory"]);
}
