//! Imports from other programs.

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

    let files = [
        ("one/memory/MEMORY.md", "m"),
        ("one/run.jsonl", "{}"),
        ("one/node_modules/x/README.md", "p"),
    ];
    let projects = folder(&quipu, "projects", &files);
    for source in [projects.clone(), projects.join("one")] {
        let report = import(&quipu, &source, &["--into", "projects", "--dry-run"]);
        assert_eq!((&report["kind"], numbers(&report)), (&"claude-code".into(), [1, 0, 0, 2]));
    }

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
            {"sender": "assistant", "text": "x", "content": [{"type": "text", "text": "Glass."}, {"type": "tool_use"}, {"type": null}]},
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
    assert_eq!((&report["kind"], numbers(&report)), (&"claude".into(), [5, 0, 0, 1]));
    assert_eq!(report["skipped"][0]["source"], "users.json");
    let kettle = quipu.ok(&["cat", "/claude/2026-02-03-kettle-11112222.md"]);
    assert!(kettle.ends_with("## User\n\nWhich?\n\n### Attachment list.txt\n\nsteel, glass\n\n## Assistant\n\nGlass.\n"), "{kettle}");
    assert_eq!(quipu.ok(&["cat", "/claude/projects/tea-shop-99998888/menu.md"]), "# Menu\n");
    assert!(
        quipu
            .ok(&["cat", "/claude/projects/tea-shop-99998888/project.md"])
            .contains("## Instructions\n\nBe brief.\n")
    );
    assert_eq!(quipu.ok(&["cat", "/claude/memory/project-99998888.md"]), "Opens in May.");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 5, 1]);
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

#[test]
fn the_files_of_an_export_tell_its_kind() {
    let quipu = Quipu::with_store();
    let kind = |name: &str, files: &[(&str, &str)]| {
        let source = folder(&quipu, name, files);
        let report = import(&quipu, &source, &["--dry-run"]);
        (report["kind"].as_str().expect("a kind").to_owned(), numbers(&report))
    };
    let said =
        json!([{"uuid": "1", "name": "x", "chat_messages": [{"sender": "human", "text": "y"}]}]);
    let said = said.to_string();
    let asked =
        json!([{"id": "1", "title": "t", "mapping": {"a": node(None, "user", "hi")}}]).to_string();
    let project = json!({"uuid": "99998888", "name": "Shop", "docs": []}).to_string();
    let memories = json!([{"conversations_memory": "Likes tea."}]).to_string();

    let files = [("conversations.json", "[]"), ("memories.json", &memories)];
    assert_eq!(kind("a", &files), ("claude".to_owned(), [1, 0, 0, 0]));
    assert_eq!(kind("b", &[("memories.json", &memories)]), ("claude".to_owned(), [1, 0, 0, 0]));
    let files = [("projects/99998888.json", project.as_str()), ("conversations.json", &said)];
    assert_eq!(kind("c", &files), ("claude".to_owned(), [2, 0, 0, 0]));
    let files = [
        ("conversations-000.json", asked.as_str()),
        ("conversations-001.json", &asked.replace("\"1\"", "\"2\"")),
        ("user.json", "{}"),
        ("chat.html", "<html>"),
    ];
    assert_eq!(kind("d", &files), ("chatgpt".to_owned(), [2, 0, 0, 2]));
    let files = [("conversations.json", "{\"x\": 1}"), (".obsidian/app.json", "{}"), ("n.md", "n")];
    assert_eq!(kind("e", &files), ("obsidian".to_owned(), [2, 0, 0, 0]));
}

#[test]
fn ordinary_folders_are_not_taken_for_exports() {
    let quipu = Quipu::with_store();
    let kind = |name: &str, files: &[(&str, &str)]| {
        let report = import(&quipu, &folder(&quipu, name, files), &["--dry-run"]);
        (report["kind"].as_str().expect("a kind").to_owned(), numbers(&report))
    };
    let is_folder = |count: u64| ("folder".to_owned(), [count, 0, 0, 0]);
    let site = r#"{"name": "site", "docs": [{"title": "Guide"}]}"#;
    let project = json!({"uuid": "1", "name": "Shop", "docs": []}).to_string();
    let conversation =
        json!([{"id": "1", "title": "t", "mapping": {"a": node(None, "user", "hi")}}]);
    let conversation = conversation.to_string();

    let files = [(".obsidian/app.json", "{}"), ("projects/site.json", &project), ("a.txt", "a")];
    assert_eq!(kind("vault", &files), ("obsidian".to_owned(), [2, 0, 0, 0]));
    let others = [
        ("projects/site.json", site),
        ("projects/es.json", r#"{"mapping": {"title": {"type": "text"}}}"#),
        ("projects/chat.json", &conversation),
        ("projects.json", r#"{"docs": {"a": "b"}}"#),
        ("projects.json", r#"[{"docs": "https://example.org"}]"#),
        ("conversations-old.json", r#"{"mapping": {}}"#),
        ("agent/memory/MEMORY.md", "m"),
    ];
    for (number, (name, text)) in others.into_iter().enumerate() {
        let files = [(name, text), ("plan.txt", "p")];
        assert_eq!(kind(&number.to_string(), &files), is_folder(2), "{name}");
    }
    let files = [("memory/MEMORY.md", "m"), ("plan.txt", "p")];
    assert_eq!(kind("agent", &files), is_folder(2));
    let files = [("conversations.json", conversation.as_str()), ("notes.md", "n")];
    assert_eq!(kind("beside", &files), is_folder(2));

    let files = [
        ("conversations.json", conversation.as_str()),
        ("file-1-notes.md", "given to the program"),
        ("images/a.png", "x"),
        ("chat.html", "<html>"),
    ];
    let report = import(&quipu, &folder(&quipu, "chatgpt", &files), &["--dry-run"]);
    assert_eq!((&report["kind"], numbers(&report)), (&"chatgpt".into(), [1, 0, 0, 3]));
    let left_out = report["skipped"].as_array().expect("a list").iter();
    let left_out: Vec<_> = left_out.filter_map(|it| it["source"].as_str()).collect();
    assert_eq!(left_out, ["chat.html", "file-1-notes.md", "images"]);
}

#[test]
fn json_from_the_wild_is_read() {
    let quipu = Quipu::with_store();
    let conversation = |id: &str, text: &str| {
        let text = text.replace('"', "\\\"");
        format!(
            "{{\"id\": \"{id}\", \"title\": \"T\", \"mapping\": {{\"a\": {{\"message\": \
             {{\"author\": {{\"role\": \"user\"}}, \"content\": {{\"parts\": [\"{text}\"]}}}}}}}}}}"
        )
    };
    let text = format!(
        "\u{feff}[{}, {}]",
        conversation("11111111", "cut \\ud83d emoji"),
        conversation("22222222", "terminal \\u0000 output")
    );
    let source = folder(&quipu, "x", &[("conversations.json", &text)]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [2, 0, 0, 0]);
    assert!(quipu.ok(&["cat", "/chatgpt/t-11111111.md"]).contains("cut \u{fffd} emoji"));
    assert!(quipu.ok(&["cat", "/chatgpt/t-22222222.md"]).contains("terminal \u{fffd} output"));

    let entity = "\u{feff}{\"type\": \"entity\", \"name\": \"A\", \"entityType\": \"t\"}\n";
    let source = folder(&quipu, "y", &[("memory.jsonl", entity)]).join("memory.jsonl");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);

    let source = folder(
        &quipu,
        "z",
        &[("conversations.json", "[{\"title\": \"t\", \"mapping\": {}}, oops]")],
    );
    let ran = quipu.run(&["import", source.to_str().expect("UTF-8")]);
    assert!(ran.code == 2 && ran.err.contains("conversations.json is no JSON"), "{ran:?}");
}

#[test]
fn spoken_and_broken_chatgpt_messages_are_kept() {
    let quipu = Quipu::with_store();
    let spoken = json!({"message": {"author": {"role": "user"}, "create_time": 1.0, "content": {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "audio_transcription", "text": "spoken words", "direction": "in"}]}}});
    let empty = json!({"parent": "a", "message": {"author": {"role": "assistant"}, "create_time": 2.0,
        "content": {"content_type": "text", "parts": null}}});
    let answer = json!({"parent": "b", "message": {"author": {"role": "assistant"}, "create_time": 3.0,
        "content": {"content_type": "text", "parts": ["answered"]}}});
    let conversations = json!([{"id": "12345678", "title": null, "current_node": "lost",
        "mapping": {"a": spoken, "b": empty, "c": answer}}]);
    let source = folder(&quipu, "x", &[("conversations.json", &conversations.to_string())]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
    let text = quipu.ok(&["cat", "/chatgpt/untitled-12345678.md"]);
    assert!(text.ends_with("## User\n\nspoken words\n\n## Assistant\n\nanswered\n"), "{text}");
}

#[test]
fn artifacts_and_documents_of_one_name_are_kept() {
    let quipu = Quipu::with_store();
    let artifact = json!({"type": "tool_use", "name": "artifacts", "input": {"title": "Poem",
        "language": "markdown", "content": "```\nwombat\n```\n"}});
    let conversations = json!([
        {"uuid": "aaaaaaaa-1", "name": null, "chat_messages": [
            {"sender": "human", "text": null, "content": [{"type": "text", "text": "write"}]},
            {"sender": "assistant", "text": "", "content": [{"type": "thinking", "thinking": "hm"},
                artifact, {"type": "text", "text": "done"}], "attachments": null}]},
    ]);
    let project = json!({"uuid": "99998888", "name": "Shop", "docs": [
        {"uuid": "d1", "filename": "notes.md", "content": "one"},
        {"uuid": "d2", "filename": "notes.md", "content": "two"},
        {"uuid": "d3", "filename": "project.md", "content": "three"},
        {"uuid": "d4", "filename": "", "content": "four"},
        {"uuid": "d5", "filename": null, "content": "five"}]});
    let files = [
        ("conversations.json", conversations.to_string()),
        ("projects/99998888.json", project.to_string()),
    ];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let source = folder(&quipu, "claude", &files);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [7, 0, 0, 0]);
    let text = quipu.ok(&["cat", "/claude/untitled-aaaaaaaa.md"]);
    let expected = "## User\n\nwrite\n\n## Assistant\n\n### Artifact Poem\n\n\
        ````markdown\n```\nwombat\n```\n````\n\ndone\n";
    assert!(text.ends_with(expected), "{text}");
    let shop = "/claude/projects/shop-99998888";
    for (name, text) in [
        ("notes-d1.md", "one"),
        ("notes-d2.md", "two"),
        ("project-d3.md", "three"),
        ("document-d5.md", "five"),
    ] {
        assert_eq!(quipu.ok(&["cat", &format!("{shop}/{name}")]), text);
    }
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 7, 0]);
}

#[test]
fn the_memories_of_two_accounts_stay_apart() {
    let quipu = Quipu::with_store();
    for (account, text) in [("aaaaaaaa-1", "Likes tea."), ("bbbbbbbb-2", "Likes coffee.")] {
        let memories = json!([{"account_uuid": account, "conversations_memory": text}]);
        let source = folder(&quipu, account, &[("memories.json", &memories.to_string())]);
        assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
    }
    assert_eq!(quipu.ok(&["cat", "/claude/memory/conversations-aaaaaaaa.md"]), "Likes tea.");
    assert_eq!(quipu.ok(&["cat", "/claude/memory/conversations-bbbbbbbb.md"]), "Likes coffee.");
}

#[test]
fn a_graph_of_any_form_is_imported_whole() {
    let quipu = Quipu::with_store();
    let many: Vec<_> =
        (0..2500).map(|number| format!("fact {number} {}", "x".repeat(80))).collect();
    let list = json!([
        {"type": "entity", "name": "C#", "entityType": "l", "observations": ["sharp"]},
        {"type": "entity", "name": "C++", "entityType": "l", "observations": ["plus"]},
        {"type": "entity", "name": "Long", "entityType": "l", "observations": many},
        {"type": "relation", "from": "Long", "to": "C#", "relationType": "knows"},
    ]);
    let source = folder(&quipu, "x", &[("memory.json", &list.to_string())]).join("memory.json");
    let report = import(&quipu, &source, &["--into", "graph"]);
    assert_eq!((&report["kind"], numbers(&report)), (&"mcp-memory".into(), [5, 0, 0, 0]));
    let paths = quipu.ok(&["ls", "-R"]);
    let names: Vec<_> = paths.lines().map(|path| path.trim_start_matches("/graph/l/")).collect();
    let [sharp, plus, parts @ ..] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(parts, ["long-part-2.md", "long-part-3.md", "long.md"]);
    assert!(sharp.starts_with("c-") && plus.starts_with("c-"), "{names:?}");
    let texts: String = paths.lines().map(|path| quipu.ok(&["cat", path])).collect();
    assert_eq!(texts.matches("- [observation] fact ").count(), 2500);
    assert_eq!(texts.matches("- part_of [[Long]]").count(), 2);
    assert_eq!(quipu.ok(&["links", "--unresolved"]), "no links\n");

    let endless =
        json!([{"type": "entity", "name": "Endless", "observations": ["word ".repeat(50_000)]}]);
    let other = folder(&quipu, "y", &[("memory.json", &endless.to_string())]).join("memory.json");
    assert_eq!(numbers(&import(&quipu, &other, &[])), [3, 0, 0, 0]);
    let texts = ["", "-part-2", "-part-3"]
        .map(|part| quipu.ok(&["cat", &format!("/entity/endless{part}.md")]));
    assert_eq!(texts.concat().matches("word").count(), 50_000);

    let mut turned = list.as_array().expect("a list").clone();
    turned.swap(0, 1);
    let turned = serde_json::Value::from(turned).to_string();
    std::fs::write(&source, turned).expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &["--into", "graph"])), [0, 0, 5, 0]);
}
