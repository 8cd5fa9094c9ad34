//! `quipu tool`, `init-project` and `prompt`.

use serde_json::{Value, json};

use crate::support::Quipu;

/// Runs `quipu tool` with these commands and returns its answers.
fn tool(quipu: &Quipu, arguments: &[&str], commands: &[Value]) -> Vec<Value> {
    let lines: Vec<_> = commands.iter().map(Value::to_string).collect();
    let input = lines.join("\n");
    let all: Vec<_> = ["tool"].into_iter().chain(arguments.iter().copied()).collect();
    let ran = quipu.run_with(&all, input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

fn create(path: &str, text: &str) -> Value {
    json!({"command": "create", "path": path, "file_text": text})
}

#[test]
fn the_store_is_made_on_first_use_and_each_run_is_a_session() {
    let quipu = Quipu::empty();
    let answers = tool(&quipu, &[], &[create("/memories/a.md", "x")]);
    let content = "File created successfully at: /memories/a.md";
    assert_eq!(answers, [json!({"content": content, "is_error": false})]);
    tool(&quipu, &["--title", "my agent"], &[create("/memories/b.md", "y")]);
    assert_eq!(quipu.ok(&["store", "list"]).lines().count(), 1);
    let log = quipu.json(&["-s", "memories", "log"]);
    let author = |version: usize| log["data"][version]["created_by"].clone();
    assert_eq!(author(0)["type"], "session_actor");
    assert_ne!(author(0), author(1));
    assert!(quipu.ok(&["session", "list"]).contains("my agent"));
    assert!(quipu.ok(&["-s", "memories", "log"]).contains("Actor:  my agent (sesn_"));
}

#[test]
fn processes_that_start_at_once_on_an_empty_directory_share_one_store() {
    let quipu = Quipu::empty();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let quipu = &quipu;
            scope.spawn(move || {
                tool(quipu, &[], &[create(&format!("/memories/{number}.md"), "x")]);
            });
        }
    });
    assert_eq!(quipu.ok(&["store", "list"]).lines().count(), 1);
    assert_eq!(quipu.ok(&["ls"]).lines().count(), 8);
    quipu.ok(&["check"]);
}

#[test]
fn a_long_log_is_printed_as_a_whole() {
    let quipu = Quipu::empty();
    let commands: Vec<_> =
        (0..600).map(|number| create(&format!("/memories/{number}"), "x")).collect();
    tool(&quipu, &[], &commands);
    let all = quipu.json(&["log"])["data"].as_array().cloned().expect("a list");
    let ids = |arguments: &[&str]| -> Vec<String> {
        let printed = quipu.ok(arguments);
        printed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let expected: Vec<_> = all.iter().filter_map(|version| version["id"].as_str()).collect();
    assert_eq!(expected.len(), 600);
    assert_eq!(ids(&["log", "--oneline"]), expected);
    assert_eq!(ids(&["log", "--oneline", "-n", "512"]), expected[..512]);
    assert_eq!(ids(&["log", "--oneline", "-n", "0"]).len(), 0);
}

#[test]
fn another_store_other_texts_and_read_only() {
    let quipu = Quipu::empty();
    tool(&quipu, &["--store", "team"], &[create("/memories/a.md", "x")]);
    let view = json!({"command": "view", "path": "/memories"});
    let answers =
        tool(&quipu, &["--store", "team", "--strings", "python"], std::slice::from_ref(&view));
    let listing = answers[0]["content"].as_str().expect("a text");
    assert!(listing.ends_with("excluding hidden items:\n4K\t/memories\n1B\t/memories/a.md"));
    let answers =
        tool(&quipu, &["--store", "team", "--read-only"], &[view, create("/memories/b", "y")]);
    assert_eq!(answers[0]["is_error"], false);
    assert_eq!(answers[1]["is_error"], true);
    assert_eq!(quipu.run(&["tool", "--store", "team", "--store", "other"]).code, 2);
}

#[test]
fn two_processes_inserting_150_lines_each_leave_300() {
    let quipu = Quipu::empty();
    tool(&quipu, &[], &[create("/memories/log.md", "")]);
    let insert = |text: String| {
        json!({
            "command": "insert", "path": "/memories/log.md", "insert_line": 0, "insert_text": text,
        })
    };
    std::thread::scope(|scope| {
        for process in 0..2 {
            let (quipu, insert) = (&quipu, &insert);
            scope.spawn(move || {
                let commands: Vec<_> =
                    (0..150).map(|number| insert(format!("{process} {number}"))).collect();
                let answers = tool(quipu, &[], &commands);
                assert!(answers.iter().all(|answer| answer["is_error"] == false));
            });
        }
    });
    let text = quipu.ok(&["-s", "memories", "cat", "/log.md"]);
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 300);
    assert_eq!(quipu.ok(&["-s", "memories", "log", "--oneline"]).lines().count(), 301);
}

#[test]
fn a_project_gets_its_log_checklist_and_start_up_notes() {
    let quipu = Quipu::empty();
    quipu.ok(&["init-project", "web", "--feature", "log in", "--script", "./run.sh"]);
    assert_eq!(quipu.ok(&["ls"]), "/features.md\n/progress.md\n/start.md\n");
    assert!(quipu.ok(&["cat", "/features.md"]).contains("\n- [ ] log in\n"));
    assert!(quipu.ok(&["cat", "/start.md"]).contains("Run `./run.sh` first"));
    let prompt = quipu.ok(&["prompt", "-s", "web", "--topic", "the web shop"]);
    for part in ["Look first.", "Record progress", "Assume interruption", "Keep it tidy"] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert!(prompt.contains("Remember only what concerns this: the web shop"));
    assert!(prompt.ends_with("- `/memories`: web (you may read and write).\n"));

    // A second run leaves existing memories unchanged.
    quipu.put("/progress.md", "my own log");
    let ran = quipu.run(&["init-project", "web"]);
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("`/progress.md` was left unchanged"), "{}", ran.err);
    assert_eq!(quipu.ok(&["cat", "/progress.md"]), "my own log");
}

#[test]
fn a_project_can_begin_as_a_copy_of_a_template_store() {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "template"]);
    quipu.put("/rules/style.md", "tabs");
    quipu.ok(&["init-project", "new", "--template", "template"]);
    assert_eq!(quipu.ok(&["-s", "new", "cat", "/rules/style.md"]), "tabs");
    assert_eq!(quipu.run(&["init-project", "x", "--template", "nowhere"]).code, 3);
    quipu.ok(&["init-project", "--store", "named"]);
    quipu.ok(&["init-project"]);
    for store in ["named", "memories"] {
        assert_eq!(quipu.ok(&["-s", store, "ls"]), "/features.md\n/progress.md\n/start.md\n");
    }
}
