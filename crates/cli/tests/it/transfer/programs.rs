//! Imports of what other programs keep.

use serde_json::json;

use super::{folder, import, numbers};
use crate::support::Quipu;

#[test]
fn vaults_and_memory_folders_are_detected() {
    let quipu = Quipu::with_store();
    let vault = folder(&quipu, "vault", &[(".obsidian/app.json", "{}"), ("Note.md", "[[Other]]")]);
    let report = import(&quipu, &vault, &[]);
    assert_eq!((&report["kind"], numbers(&report)), (&"obsidian".into(), [1, 0, 0, 0]));

    let files = [
        ("MEMORY.md", "- [x](topic.md)"),
        ("topic.md", "t"),
        (".claude/rules/a.md", "r"),
        ("b.json", "{}"),
    ];
    let memory = folder(&quipu, "memory", &files);
    let report = import(&quipu, &memory, &["--into", "code"]);
    assert_eq!((&report["kind"], numbers(&report)), (&"claude-code".into(), [3, 0, 0, 1]));
    assert_eq!(quipu.ok(&["cat", "/code/.claude/rules/a.md"]), "r");

    let project = folder(&quipu, "project", &[("a.md", "---\ntitle: A\n---\n")]);
    let report = import(&quipu, &project, &["--from", "basic-memory"]);
    assert_eq!((&report["kind"], numbers(&report)), (&"basic-memory".into(), [1, 0, 0, 0]));
    assert_eq!(quipu.ok(&["cat", "a.md"]), "---\ntitle: A\n---\n");
}

#[test]
fn a_knowledge_graph_becomes_notes() {
    let quipu = Quipu::with_store();
    let lines = [
        json!({"type": "entity", "name": "Tea House", "entityType": "place", "observations": ["Open daily", "Two\nlines"]}),
        json!({"type": "entity", "name": "C# Club", "entityType": "group", "observations": []}),
        json!({"type": "relation", "from": "Tea House", "to": "C# Club", "relationType": "hosts"}),
        json!({"type": "relation", "from": "Tea House", "to": "River", "relationType": "lies near"}),
        json!({"type": "relation", "from": "Nobody", "to": "River", "relationType": "knows"}),
        json!({"type": "entity", "name": "Tea House", "entityType": "place", "observations": ["Open daily", "Green"]}),
        json!({"type": "entity", "observations": [1]}),
    ];
    let text = lines.map(|line| line.to_string()).join("\n");
    let source = folder(&quipu, "x", &[("memory.jsonl", &text)]).join("memory.jsonl");
    let report = import(&quipu, &source, &[]);
    assert_eq!((&report["kind"], numbers(&report)), (&"mcp-memory".into(), [2, 0, 0, 2]));
    assert_eq!(
        quipu.ok(&["cat", "/place/tea-house.md"]),
        "---\ntitle: Tea House\ntype: place\n---\n\n# Tea House\n\n## Observations\n\n- [observation] Open daily\n\
         - [observation] Two\n  lines\n- [observation] Green\n\n## Relations\n\n- hosts [[/group/c-club.md|C# Club]]\n\
         - \"lies near\" [[River]]\n"
    );
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 2, 2]);
    let hits = quipu.json(&["search", "opens every day"]);
    assert_eq!(hits["results"][0]["path"], "/place/tea-house.md", "{hits}");
    assert!(quipu.ok(&["links", "--back", "/group/c-club.md"]).contains("/place/tea-house.md"));

    let whole = json!({"entities": [{"name": "One", "entityType": "", "observations": ["x"]}], "relations": []});
    let source = folder(&quipu, "y", &[("memory.json", &whole.to_string())]).join("memory.json");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
    assert!(quipu.ok(&["cat", "/entity/one.md"]).contains("- [observation] x\n"));
}

fn node(parent: Option<&str>, role: &str, text: &str) -> serde_json::Value {
    json!({"parent": parent, "message": {"author": {"role": role}, "create_time": 1.0,
        "content": {"content_type": "text", "parts": [text]}}})
}

#[test]
fn chatgpt_conversations_become_notes() {
    let quipu = Quipu::with_store();
    let conversations = json!([
        {
            "id": "abcdef12-3456", "conversation_id": "abcdef12-3456", "title": "Brewing: tea?",
            "create_time": 1_767_225_600.5, "update_time": 1_767_229_200.0, "current_node": "d",
            "mapping": {
                "r": {"parent": null, "message": null},
                "a": node(Some("r"), "system", "hidden"),
                "b": node(Some("a"), "user", "How hot?"),
                "c": node(Some("b"), "assistant", "An older answer"),
                "d": node(Some("b"), "assistant", "80 °C"),
            }
        },
        {"id": "empty", "title": "Empty", "mapping": {}},
        {"id": "broken"},
    ]);
    let source = folder(&quipu, "chatgpt", &[("conversations.json", &conversations.to_string())]);
    let report = import(&quipu, &source, &[]);
    assert_eq!((&report["kind"], numbers(&report)), (&"chatgpt".into(), [1, 0, 0, 2]));
    assert_eq!(
        quipu.ok(&["cat", "/chatgpt/2026-01-01-brewing-tea-abcdef12.md"]),
        "---\ntitle: \"Brewing: tea?\"\ntype: conversation\nsource: chatgpt\nconversation_id: abcdef12-3456\n\
         created: \"2026-01-01T00:00:00.500000Z\"\nmodified: \"2026-01-01T01:00:00.000000Z\"\n---\n\n\
         # Brewing: tea?\n\n## User\n\nHow hot?\n\n## Assistant\n\n80 °C\n"
    );
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 2]);
}

#[test]
fn claude_conversations_projects_and_memories_become_notes() {
    let quipu = Quipu::with_store();
    let conversations = json!([{
        "uuid": "11112222-3333", "name": "Kettle", "created_at": "2026-02-03T04:05:06.000000Z",
        "updated_at": "2026-02-03T05:00:00Z",
        "chat_messages": [
            {"sender": "human", "text": "Which?", "content": [], "attachments": [
                {"file_name": "list.txt", "extracted_content": "steel, glass"}]},
            {"sender": "assistant", "text": "x", "content": [{"type": "text", "text": "Glass."}, {"type": "tool_use"}]},
        ],
    }]);
    let projects = json!([{"uuid": "99998888", "name": "Tea Shop", "description": "Sells tea",
        "prompt_template": "Be brief.", "docs": [{"filename": "menu.md", "content": "# Menu\n"}]}]);
    let memories = json!([{"conversations_memory": "Likes tea.", "project_memories": {"99998888": "Opens in May."}}]);
    let files = [
        ("conversations.json", conversations.to_string()),
        ("projects.json", projects.to_string()),
        ("memories.json", memories.to_string()),
        ("users.json", "[]".to_owned()),
    ];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let source = folder(&quipu, "claude", &files);
    let report = import(&quipu, &source, &[]);
    assert_eq!((&report["kind"], numbers(&report)), (&"claude".into(), [5, 0, 0, 0]));
    let kettle = quipu.ok(&["cat", "/claude/2026-02-03-kettle-11112222.md"]);
    assert!(kettle.ends_with("## User\n\nWhich?\n\n### Attachment list.txt\n\nsteel, glass\n\n## Assistant\n\nGlass.\n"), "{kettle}");
    assert_eq!(quipu.ok(&["cat", "/claude/projects/tea-shop-99998888/menu.md"]), "# Menu\n");
    assert!(
        quipu
            .ok(&["cat", "/claude/projects/tea-shop-99998888/project.md"])
            .contains("## Instructions\n\nBe brief.\n")
    );
    assert_eq!(quipu.ok(&["cat", "/claude/memory/project-99998888.md"]), "Opens in May.");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 5, 0]);
}

#[test]
fn a_long_conversation_becomes_several_notes() {
    let quipu = Quipu::with_store();
    let said = |sender: &str, text: String| json!({"sender": sender, "text": text});
    let long = "a line of a long answer\n".repeat(10_000);
    let conversations = json!([{"uuid": "1", "name": "Long", "chat_messages":
        [said("human", "first".to_owned()), said("assistant", long), said("human", "last".to_owned())]}]);
    let source = folder(&quipu, "c", &[("conversations.json", &conversations.to_string())]);
    let report = import(&quipu, &source.join("conversations.json"), &[]);
    assert_eq!(report["skipped"], json!([]));
    let parts: Vec<_> = quipu.ok(&["ls", "claude"]).lines().map(str::to_owned).collect();
    assert!(parts.len() >= 3, "{parts:?}");
    let texts: String = parts.iter().map(|path| quipu.ok(&["cat", path])).collect();
    assert_eq!(texts.matches("a line of a long answer\n").count(), 10_000);
    assert!(texts.contains("first\n") && texts.contains("last\n"));
}
