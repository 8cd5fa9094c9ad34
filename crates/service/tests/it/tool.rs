//! The memory tool: what the recorded cases do not show.

use std::sync::Arc;

use quipu_core::Backend;
use quipu_core::clock::SystemClock;
use quipu_core::engine::NewStore;
use quipu_core::model::{Access, Actor, Name, PrincipalName, SecretPolicy, StoreId, StorePolicy};
use quipu_knowledge::Knowledge;
use quipu_service::tool::{MemoryTool, Strings, ToolSettings, stdio};
use quipu_testkit::{FaultyBackend, InMemoryBackend, knowledge_over};
use serde_json::{Value, json};

fn engine(backend: Arc<dyn Backend>) -> (Knowledge, StoreId) {
    let engine = knowledge_over(backend, Arc::new(SystemClock));
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewStore::named(Name::new("memories").expect("a name"));
    let store = engine.create_store(workspace, &new).expect("a store").id;
    (engine, store)
}

fn tool_with(settings: ToolSettings) -> MemoryTool {
    let (engine, store) = engine(Arc::new(InMemoryBackend::default()));
    MemoryTool::new(engine, store, actor(), settings)
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("tester"))
}

/// Returns the tool on an empty store.
pub(crate) fn tool() -> MemoryTool {
    tool_with(ToolSettings::default())
}

fn create(path: &str, text: &str) -> Value {
    json!({"command": "create", "path": path, "file_text": text})
}

fn view(path: &str) -> Value {
    json!({"command": "view", "path": path})
}

#[track_caller]
fn ok(tool: &MemoryTool, input: &Value) -> String {
    let answer = tool.call(input);
    assert!(!answer.is_error, "{input}: {answer:?}");
    answer.content
}

#[track_caller]
fn refused(tool: &MemoryTool, input: &Value) -> String {
    let answer = tool.call(input);
    assert!(answer.is_error, "{input}: {answer:?}");
    answer.content
}

/// Every path that must never be taken, in every command and both path arguments.
#[test]
fn no_command_accepts_a_path_outside_of_the_memory() {
    let paths = [
        "",
        "/",
        "memories/x",
        "/Memories",
        " /memories",
        "//memories",
        "/etc/passwd",
        "/memoriesfoo.txt",
        "file:///memories/x",
        "/memories/../x",
        "/memories/..",
        "/memories../x",
        "/memories/../memories_backup/x",
        "/memories/a/../../x",
        "/memories/../../../etc/passwd",
        "/memories/a/../b",
        "/memories/..\\..\\evil",
        "/memories/%2e%2e%2fevil",
        "/memories/%2E%2E/evil",
        "/memories/x%5cy",
        "/memories/a\0b",
        "/memories/a\nb",
        "/memories/\u{200b}",
        "/memories/e\u{301}",
    ];
    let tool = tool();
    ok(&tool, &create("/memories/f.txt", "secret text"));
    let before = ok(&tool, &view("/memories"));
    for path in paths {
        for input in [
            view(path),
            create(path, "x"),
            json!({"command": "str_replace", "path": path, "old_str": "s", "new_str": "x"}),
            json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"}),
            json!({"command": "delete", "path": path}),
            json!({"command": "rename", "old_path": path, "new_path": "/memories/z"}),
            json!({"command": "rename", "old_path": "/memories/f.txt", "new_path": path}),
        ] {
            let answer = refused(&tool, &input);
            assert!(!answer.contains("secret text"), "{answer}");
        }
    }
    assert_eq!(ok(&tool, &view("/memories")), before);
}

#[test]
fn listings_are_sorted_by_name_at_each_level() {
    let tool = tool();
    for path in
        ["/memories/a.md", "/memories/a/z", "/memories/a/b/deep", "/memories/B", "/memories/.h/x"]
    {
        ok(&tool, &create(path, "x"));
    }
    ok(&tool, &create("/memories/node_modules/x", "x"));
    let listing = ok(&tool, &view("/memories"));
    let lines: Vec<_> = listing.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "4.0K\t/memories",
            "1B\t/memories/B",
            "4.0K\t/memories/a/",
            "4.0K\t/memories/a/b/",
            "1B\t/memories/a/z",
            "1B\t/memories/a.md",
        ]
    );
    let python = ToolSettings { strings: Strings::Python, ..ToolSettings::default() };
    let python = tool_with(python);
    ok(&python, &create("/memories/node_modules/x", "x"));
    assert!(
        ok(&python, &view("/memories"))
            .ends_with("4K\t/memories/node_modules/\n1B\t/memories/node_modules/x")
    );
    assert!(ok(&tool, &view("/memories/.h")).ends_with("\n1B\t/memories/.h/x"));
}

#[test]
fn a_move_into_itself_names_the_path_as_it_was_sent() {
    let tool = tool();
    ok(&tool, &create("/memories/d/f", "x"));
    let rename = |old: &str, new: &str| {
        refused(&tool, &json!({"command": "rename", "old_path": old, "new_path": new}))
    };
    let answer = rename("/memories/d/", "/memories/d/e");
    assert_eq!(answer, "Error: The path /memories/d/ cannot be moved into itself");
    let answer = rename("/memories/d/f", "/memories/d/f/g");
    assert_eq!(answer, "Error: The path /memories/d/f cannot be moved into itself");
}

#[test]
fn a_directory_disappears_with_its_last_memory() {
    let tool = tool();
    ok(&tool, &create("/memories/d/f", "x"));
    ok(&tool, &json!({"command": "delete", "path": "/memories/d/f"}));
    let answer = refused(&tool, &view("/memories/d"));
    assert_eq!(answer, "The path /memories/d does not exist. Please provide a valid path.");
}

#[test]
fn a_rejected_write_is_explained_and_changes_nothing() {
    let tool = tool();
    let long = "x".repeat(102_401);
    let answer = refused(&tool, &create("/memories/f", &long));
    assert!(answer.starts_with("Error: the text has 102401 bytes"), "{answer}");
    let answer = refused(&tool, &create("/memories/f", "a\0b"));
    assert!(answer.contains("NUL character"), "{answer}");
    ok(&tool, &create("/memories/f", &"x".repeat(102_400)));
    let insert =
        json!({"command": "insert", "path": "/memories/f", "insert_line": 0, "insert_text": "y"});
    assert!(refused(&tool, &insert).contains("at most 102400"));
    assert!(ok(&tool, &view("/memories")).ends_with("100.0K\t/memories/f"));
}

#[test]
fn a_file_of_one_letter_is_searched_in_linear_time() {
    // A quadratic search would take minutes here.
    let tool = tool();
    ok(&tool, &create("/memories/f", &"a".repeat(100_000)));
    for old in ["a".to_owned(), "a".repeat(50_000)] {
        let replace = json!({"command": "str_replace", "path": "/memories/f", "old_str": old, "new_str": "b"});
        assert!(refused(&tool, &replace).contains("Multiple occurrences"));
    }
}

#[test]
fn a_long_view_is_truncated_unless_the_texts_are_those_of_python() {
    let text = "line\n".repeat(10_000);
    let settings = ToolSettings { view_max_chars: 1000, ..ToolSettings::default() };
    let tool = tool_with(settings);
    ok(&tool, &create("/memories/f", &text));
    let shown = ok(&tool, &view("/memories/f"));
    assert!(shown.ends_with("with \"view_range\": [84, 10001].]"), "{shown}");
    assert!(shown.chars().count() < 1300);
    let rest = json!({"command": "view", "path": "/memories/f", "view_range": [9990, 10001]});
    assert!(ok(&tool, &rest).ends_with(" 10000\tline\n 10001\t"));
    let python = tool_with(ToolSettings { strings: Strings::Python, ..settings });
    ok(&python, &create("/memories/f", &text));
    assert!(ok(&python, &view("/memories/f")).ends_with("\n 10001\t"));
}

#[test]
fn a_read_only_tool_rejects_everything_but_views() {
    let settings = ToolSettings { access: Access::ReadOnly, ..ToolSettings::default() };
    let tool = tool_with(settings);
    ok(&tool, &view("/memories"));
    for command in ["create", "str_replace", "insert", "delete", "rename"] {
        let answer = refused(&tool, &json!({"command": command, "path": "/memories/x"}));
        assert_eq!(answer, "Error: This memory is read-only; only view is possible");
    }
    assert!(refused(&tool, &json!({"command": "append"})).contains("unknown command"));
}

#[test]
fn common_mistakes_of_models_are_accepted_or_explained() {
    let tool = tool();
    ok(&tool, &create("/memories/f", "a\nb\n"));
    let line = |line: Value| json!({"command": "insert", "path": "/memories/f", "insert_line": line, "insert_text": "x"});
    for value in [json!("1"), json!(1.0), json!(1)] {
        ok(&tool, &line(value));
    }
    assert!(refused(&tool, &line(json!(1.5))).contains("`insert_line` must be a whole number"));
    ok(&tool, &json!({"command": "rename", "path": "/memories/f", "new_path": "/memories/g"}));
    let slip =
        json!({"command": "insert", "path": "/memories/g", "insert_line": 0, "new_str": "x"});
    ok(&tool, &slip);
    let neither = json!({"command": "insert", "path": "/memories/g", "insert_line": 0});
    assert!(refused(&tool, &neither).contains("`insert_text` is missing"));
    for (input, part) in [
        (json!({"command": "view"}), "`path` is missing"),
        (json!({"command": "view", "path": 3}), "`path` must be a string"),
        (json!({"command": 3}), "`command` must be a string"),
        (json!({"path": "/memories"}), "`command` is missing"),
        (json!([]), "must be a JSON object"),
        (json!({"command": "rename", "old_path": "/memories/g"}), "`new_path` is missing"),
    ] {
        let answer = refused(&tool, &input);
        assert!(answer.contains(part), "{input}: {answer}");
    }
}

#[test]
fn credentials_are_reported_according_to_the_policy() {
    let token: String = (0..36_u32).filter_map(|n| char::from_digit(n * 7 % 36, 36)).collect();
    let text = format!("ghp_{token}\n");
    for (secrets, is_error, part) in [
        (SecretPolicy::Off, false, "File created successfully at: /memories/f"),
        (SecretPolicy::Warn, false, "\nNote: line 1 of the text holds a credential (GitHub token)"),
        (
            SecretPolicy::Redact,
            false,
            "). It was not stored; `[redacted: github-token]` stands in its",
        ),
        (SecretPolicy::Reject, true, "Error: the text holds a credential"),
    ] {
        let (engine, store) = engine(Arc::new(InMemoryBackend::default()));
        let policy = Some(StorePolicy { secrets, ..StorePolicy::default() });
        let update = quipu_core::engine::StoreUpdate { policy, ..Default::default() };
        engine.update_store(store, &update).expect("it is updated");
        let tool = MemoryTool::new(engine, store, actor(), ToolSettings::default());
        let answer = tool.call(&create("/memories/f", &text));
        assert_eq!(answer.is_error, is_error);
        assert!(answer.content.contains(part), "{answer:?}");
        assert!(!answer.content.contains(&token));
    }
}

#[test]
fn a_storage_error_does_not_end_the_tool() {
    let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
    let (engine, store) = engine(Arc::clone(&faulty) as _);
    let tool = MemoryTool::new(engine, store, actor(), ToolSettings::default());
    faulty.fail_at(1);
    assert_eq!(refused(&tool, &create("/memories/f", "x")), "Error: an injected fault");
    ok(&tool, &create("/memories/f", "x"));
}

#[test]
fn one_answer_for_each_line_whatever_it_holds() {
    let tool = tool();
    let mut input = Vec::new();
    for line in [
        &b"{\"command\": \"view\", \"path\": \"/memories\"}"[..],
        b"not json",
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b"{\"command\": \"view\", \"path\": \"/memories\", \"x\": \"\\ud800\"}",
        b"{\"command\": \"view\", \"path\": \"/memories\"}\r",
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    input.extend_from_slice(b"{\"command\": \"view\", \"path\": \"/memories\"}");
    let mut output = Vec::new();
    stdio::serve(&tool, input.as_slice(), &mut output).expect("it serves");
    let output = String::from_utf8(output).expect("UTF-8");
    let errors: Vec<bool> = output
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).expect("an answer is JSON");
            let fields = answer.as_object().expect("an object");
            assert_eq!(fields.len(), 2);
            assert!(fields["content"].is_string());
            fields["is_error"].as_bool().expect("a truth")
        })
        .collect();
    assert_eq!(errors, [false, true, true, true, true, true, false, false]);
}

#[test]
fn an_answer_is_one_line_for_every_reader_of_lines() {
    let tool = tool();
    let text = "a\u{85}b\u{2028}c\u{2029}d\u{b}e\rf é";
    ok(&tool, &create("/memories/f", text));
    let mut output = Vec::new();
    let input = view("/memories/f").to_string();
    stdio::serve(&tool, input.as_bytes(), &mut output).expect("it serves");
    let output = String::from_utf8(output).expect("it is UTF-8");
    let is_line_end =
        |character: char| character.is_control() || "\u{2028}\u{2029}".contains(character);
    assert_eq!(output.find(is_line_end), Some(output.len() - 1), "{output:?}");
    let answer: Value = serde_json::from_str(&output).expect("it is JSON");
    assert!(answer["content"].as_str().is_some_and(|content| content.ends_with(text)));
}

#[test]
fn a_line_that_is_far_too_long_is_skipped() {
    let tool = tool();
    let mut input = vec![b'x'; 17 * 1024 * 1024];
    input.extend_from_slice(b"\n{\"command\": \"view\", \"path\": \"/memories\"}\n");
    let mut output = Vec::new();
    stdio::serve(&tool, input.as_slice(), &mut output).expect("it serves");
    let answers: Vec<_> = output.split(|byte| *byte == b'\n').collect();
    assert_eq!(answers.len(), 3);
    assert!(String::from_utf8_lossy(answers[0]).contains("longer than"));
    assert!(!String::from_utf8_lossy(answers[1]).contains("longer than"));
}
