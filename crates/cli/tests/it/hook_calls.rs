//! What rules see of calls that hosts send in forms of their own.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::hook::Home;

fn home(rule: &str) -> Home {
    let home = Home::without_rules();
    home.quipu.ok(&["store", "create", "rules", "--writers", "people"]);
    home.rule("/r.md", &format!("---\nrule:\n  {}\n---\nNo.\n", rule.replace('\n', "\n  ")));
    home
}

impl Home {
    fn denies(&self, host: &str, input: &Value) -> bool {
        let answer = self.answer("decide", host, input);
        answer.to_string().contains("\"deny\"")
    }

    /// Returns a call of Codex's shell, with a transcript.
    fn codex(&self, command: &str, lines: &[Value]) -> Value {
        let transcript = self.path().join("rollout.jsonl");
        let text: Vec<_> = lines.iter().map(Value::to_string).collect();
        let text = text.join("\n");
        fs::write(&transcript, text).expect("it can be written");
        let mut call = self.fixture("codex", "pre-tool-use-bash");
        call["tool_input"] = json!({ "command": command });
        call["transcript_path"] = json!(transcript.display().to_string());
        call
    }
}

fn called(call_id: &str, arguments: &Value) -> Value {
    json!({"timestamp": "2026-11-01T00:00:00.000Z", "type": "response_item", "payload": {
        "type": "function_call", "name": "exec_command", "call_id": call_id,
        "arguments": arguments.to_string(),
    }})
}

#[test]
fn codex_commands_are_judged_where_they_run() {
    let home = home("tool: [edit, shell]\npath: migrations/**\ndecision: deny");
    let app = home.path().join("app").display().to_string();
    let command = "rm 0001.sql";
    let chosen = |workdir: &str| {
        home.codex(command, &[called("call_1", &json!({"cmd": command, "workdir": workdir}))])
    };
    assert!(home.denies("codex", &chosen("migrations")));
    assert!(home.denies("codex", &chosen(&format!("{app}/migrations"))));
    assert!(!home.denies("codex", &chosen("docs")));
    assert!(
        !home.denies("codex", &home.codex(command, &[called("call_1", &json!({"cmd": command}))]))
    );
    // In another repository, the rule holds below its root.
    fs::create_dir_all(home.path().join("other/.git")).expect("it can be made");
    let other = home.path().join("other/migrations").display().to_string();
    assert!(home.denies("codex", &chosen(&other)));
    // A program that calls tools: every directory that it names is tried.
    let program = "await tools.exec_command({cmd: 'rm 0001.sql', workdir: 'migrations'})";
    let line = json!({"type": "response_item", "payload": {
        "type": "custom_tool_call", "name": "exec", "call_id": "outer", "input": program,
    }});
    assert!(home.denies("codex", &home.codex(command, &[line])));
    // Without a transcript, it is judged where the session is.
    assert!(!home.denies("codex", &home.codex(command, &[])));
}

#[test]
fn a_patch_in_a_shell_is_an_edit() {
    let home = home("tool: edit\npath: migrations/**\ndecision: deny");
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: migrations/1.sql\n@@\n-a\n+b\n*** End Patch\nEOF";
    let mut call = home.fixture("codex", "pre-tool-use-bash");
    call["tool_input"] = json!({ "command": patch });
    assert!(home.denies("codex", &call));
    call["tool_input"] = json!({ "command": "cat migrations/1.sql" });
    assert!(!home.denies("codex", &call));
}

#[test]
fn a_pattern_holds_in_every_repository_that_a_command_names() {
    let home = home("tool: [edit, shell]\npath: migrations/**\ndecision: deny");
    fs::create_dir_all(home.path().join("other/.git")).expect("it can be made");
    let mut call = home.fixture("claude-code", "pre-tool-use-bash");
    let file = home.path().join("other/migrations/1.sql").display().to_string();
    call["tool_input"]["command"] = json!(format!("rm {file}"));
    assert!(home.denies("claude-code", &call));
    call["tool_input"]["command"] = json!("cd ../other && rm migrations/1.sql");
    assert!(home.denies("claude-code", &call));
    // A link leads there as well.
    std::os::unix::fs::symlink(home.path().join("other/migrations"), home.path().join("app/link"))
        .expect("a link");
    fs::create_dir_all(home.path().join("other/migrations")).expect("it can be made");
    call["tool_input"]["command"] = json!("rm link/1.sql");
    assert!(home.denies("claude-code", &call));
}

#[test]
fn a_home_directory_that_is_a_link_is_the_same() {
    let home = home("path: ~/.ssh/**\ndecision: deny");
    let linked = home.path().join("linked-home");
    std::os::unix::fs::symlink(home.path(), &linked).expect("a link");
    let decide = |home_directory: &Path, file: &str| {
        let mut call = home.fixture("claude-code", "pre-tool-use-read");
        call["tool_input"]["file_path"] = json!(file);
        let mut command = home.quipu.command(&["hook", "decide", "--host", "claude-code"]);
        command.env("HOME", home_directory);
        crate::support::run(command, call.to_string().as_bytes()).out.contains("\"deny\"")
    };
    let real = home.path().join(".ssh/id").display().to_string();
    assert!(decide(&linked, &real), "as the host has resolved it");
    assert!(decide(&linked, &linked.join(".ssh/id").display().to_string()));
    assert!(decide(&home.path(), &real));
}

#[test]
fn tools_of_cursor_have_the_names_of_their_servers() {
    let home = home("tool: 'mcp__github__*'\ndecision: deny");
    for (name, tool) in
        [("before-mcp-execution", "create_issue"), ("pre-tool-use-mcp", "MCP:create_issue")]
    {
        let mut call = home.fixture("cursor", name);
        call["tool_name"] = json!(tool);
        call["mcp_server_name"] = json!("github");
        assert!(home.denies("cursor", &call), "{name}");
        call["mcp_server_name"] = json!("gitlab");
        assert!(!home.denies("cursor", &call), "{name}");
    }
}

#[test]
fn paths_are_found_wherever_a_tool_of_mcp_has_them() {
    let home = home("tool: mcp\npath: migrations/**\ndecision: deny");
    let mut call = home.fixture("claude-code", "pre-tool-use-mcp");
    let app = home.path().join("app").display().to_string();
    for arguments in [
        json!({"source": "migrations/1.sql", "destination": "x"}),
        json!({"old_path": "x", "new_path": format!("{app}/migrations/1.sql")}),
        json!({"uri": format!("file://{app}/migrations/1.sql")}),
        json!({"operations": [{"kind": "move", "target_of": {"place": "migrations/1.sql"}}]}),
    ] {
        call["tool_input"] = arguments.clone();
        assert!(home.denies("claude-code", &call), "{arguments}");
    }
    for arguments in [
        json!({"source": "src/1.rs"}),
        json!({"url": "https://example.org/migrations/1.sql"}),
        json!({"text": "look at migrations/1.sql please"}),
    ] {
        call["tool_input"] = arguments.clone();
        assert!(!home.denies("claude-code", &call), "{arguments}");
    }
}
