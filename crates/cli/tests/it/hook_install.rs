//! `quipu hook install` and `uninstall`: settings of other programs, edited with care.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::Quipu;

const FILES: [(&str, &str); 3] = [
    ("claude-code", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("cursor", ".cursor/hooks.json"),
];

fn file(quipu: &Quipu, name: &str) -> PathBuf {
    quipu.home.path().join(name)
}

fn write(quipu: &Quipu, name: &str, text: &str) {
    let path = file(quipu, name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::write(path, text).expect("it can be written");
}

fn read(quipu: &Quipu, name: &str) -> String {
    fs::read_to_string(file(quipu, name)).expect("it can be read")
}

#[test]
fn a_host_without_settings_gets_all_hooks() {
    let quipu = Quipu::with_store();
    for (host, name) in FILES {
        quipu.ok(&["hook", "install", host]);
        let settings: Value = serde_json::from_str(&read(&quipu, name)).expect("it is JSON");
        let hooks = settings["hooks"].as_object().expect("hooks");
        assert!(hooks.len() >= 6, "{settings}");
        for (event, list) in hooks {
            let text = list.to_string();
            let verb = if event.to_lowercase().contains("tooluse") || event.ends_with("Execution") {
                "decide"
            } else {
                "run"
            };
            assert!(text.contains(&format!("hook {verb} --host {host}")), "{event}: {text}");
            // Codex warns at each start about more at the end of a session.
            let seconds = if (host, event.as_str()) == ("codex", "SessionEnd") { 3 } else { 5 };
            assert!(text.contains(&format!("\"timeout\":{seconds}")), "{event}: {text}");
        }
        let again = quipu.ok(&["hook", "install", host]);
        assert!(again.contains("already up to date"), "{again}");
        quipu.ok(&["hook", "uninstall", host]);
        assert!(!read(&quipu, name).contains("quipu hook"));
        assert!(quipu.ok(&["hook", "uninstall", host]).contains("no hooks of this program"));
    }
}

const OTHERS: &str = r#"{
  // Mine.
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "check.sh" }] } // first
    ],
    "Notification": [{ "hooks": [{ "type": "command", "command": "beep" }] }]
  }
}
"#;

#[test]
fn hooks_of_others_comments_and_layout_stay() {
    let quipu = Quipu::with_store();
    write(&quipu, ".claude/settings.json", OTHERS);
    let shown = quipu.ok(&["hook", "install", "claude-code", "--dry-run"]);
    assert!(shown.contains("hook decide --host claude-code"), "{shown}");
    assert_eq!(read(&quipu, ".claude/settings.json"), OTHERS);
    quipu.ok(&["hook", "install", "claude-code", "--fail", "closed", "--store", "notes"]);
    let new = read(&quipu, ".claude/settings.json");
    for part in [
        "// Mine.",
        "\"model\": \"opus\"",
        "check.sh",
        "// first",
        "beep",
        "--fail closed",
        "--store notes",
    ] {
        assert!(new.contains(part), "{part}: {new}");
    }
    // Installed again otherwise, ours are replaced and not doubled.
    quipu.ok(&["hook", "install", "claude-code"]);
    let other = read(&quipu, ".claude/settings.json");
    assert_eq!(other.matches("hook decide").count(), 1, "{other}");
    assert!(!other.contains("--fail"), "{other}");
    quipu.ok(&["hook", "uninstall", "claude-code"]);
    assert_eq!(read(&quipu, ".claude/settings.json"), OTHERS);
    let folder = fs::read_dir(file(&quipu, ".claude")).expect("the folder");
    assert!(folder.count() > 1, "the old settings are kept");
}

#[test]
fn a_hook_of_ours_in_a_group_of_others_is_found() {
    let quipu = Quipu::with_store();
    let mixed = r#"{"hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": "other"},
        {"type": "command", "command": "/old/quipu hook run --host claude-code"}
    ]}]}}"#;
    write(&quipu, ".claude/settings.json", mixed);
    quipu.ok(&["hook", "uninstall", "claude-code"]);
    let left: Value =
        serde_json::from_str(&read(&quipu, ".claude/settings.json")).expect("it is JSON");
    let hooks = left["hooks"]["Stop"][0]["hooks"].as_array().expect("a list");
    assert_eq!(hooks.len(), 1);
    assert_eq!(hooks[0]["command"], "other");
}

#[test]
fn settings_that_cannot_be_parsed_are_left_alone() {
    let quipu = Quipu::with_store();
    for text in ["{", "[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 7}}"] {
        write(&quipu, ".codex/hooks.json", text);
        let ran = quipu.run(&["hook", "install", "codex"]);
        assert_ne!(ran.code, 0, "{text}: {ran:?}");
        assert!(ran.err.contains("by hand"), "{ran:?}");
        assert_eq!(read(&quipu, ".codex/hooks.json"), text);
    }
}

#[test]
fn what_is_installed_in_a_project_names_nothing_of_this_machine() {
    let quipu = Quipu::with_store();
    let project = file(&quipu, "project");
    fs::create_dir(&project).expect("it can be made");
    let mut command = quipu.command(&["hook", "install", "cursor", "--project"]);
    command.current_dir(&project);
    let ran = crate::support::run(command, b"");
    // The data directory is outside of the project.
    assert_ne!(ran.code, 0, "{ran:?}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.env_clear().env("HOME", quipu.home.path()).current_dir(&project);
    command.args(["hook", "install", "cursor", "--project", "--fail", "closed"]);
    let ran = crate::support::run(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    let settings = fs::read_to_string(project.join(".cursor/hooks.json")).expect("it was written");
    assert!(settings.contains("\"quipu hook decide --host cursor --fail closed\""), "{settings}");
    assert!(
        settings.contains("\"failClosed\": true") && settings.contains("\"version\": 1"),
        "{settings}"
    );
    assert!(!settings.contains(&quipu.home.path().display().to_string()));
}

#[test]
fn hosts_that_keep_their_settings_elsewhere_find_them_there() {
    let quipu = Quipu::with_store();
    for (host, variable, hooks, servers) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json", ".claude.json"),
        ("codex", "CODEX_HOME", "hooks.json", "config.toml"),
    ] {
        let directory = quipu.home.path().join(format!("{host}-elsewhere"));
        for what in ["hook", "mcp"] {
            let mut command = quipu.command(&[what, "install", host]);
            command.env(variable, &directory);
            let ran = crate::support::run(command, b"");
            assert_eq!(ran.code, 0, "{ran:?}");
        }
        let read = |name: &str| fs::read_to_string(directory.join(name)).expect("it is there");
        assert!(read(hooks).contains("hook run"), "{host}");
        assert!(read(servers).contains("quipu"), "{host}");
        assert!(!quipu.home.path().join(format!(".{host}")).exists());
    }
}
