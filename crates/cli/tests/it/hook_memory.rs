//! The memory folders of hosts, synced with stores.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hook::Home;

/// Returns the name of a directory that Claude Code makes of a path.
fn name_of(path: &Path) -> String {
    let text = path.to_str().expect("a text");
    text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect()
}

impl Home {
    /// Returns the directory that Claude Code keeps for a directory.
    fn project(&self, directory: &Path) -> PathBuf {
        self.path().join(".claude/projects").join(name_of(directory))
    }

    fn remember(folder: &Path, text: &str) {
        fs::create_dir_all(folder).expect("it can be made");
        fs::write(folder.join("MEMORY.md"), text).expect("it is written");
    }

    /// Runs a hook of a session in a directory.
    fn in_directory(&self, host: &str, name: &str, directory: &Path) {
        let mut input = self.fixture(host, name);
        input["cwd"] = json!(directory);
        if host == "claude-code" {
            input["transcript_path"] = json!(self.project(directory).join("abc123.jsonl"));
        }
        let arguments = ["hook", "run", "--host", host, "--memory-folder"];
        let mut command = self.quipu.command(&arguments);
        command.env("CODEX_HOME", self.path().join("codex-home"));
        let ran = crate::support::run(command, input.to_string().as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    /// Waits until a text is found. The sync is a process of its own, which the hook does not wait for.
    #[track_caller]
    fn require_found(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !self.quipu.ok(&["--json", "search", "--all", text]).contains("/MEMORY.md") {
            assert!(Instant::now() < deadline, "{text} is synced");
        }
    }
}

#[test]
fn all_directories_and_worktrees_of_a_repository_share_one_folder() {
    let home = Home::new();
    let app = home.path().join("app");
    let worktree = home.path().join("worktree");
    for directory in [app.join("server/src"), app.join(".git/worktrees/worktree"), worktree.clone()]
    {
        fs::create_dir_all(directory).expect("it can be made");
    }
    let write = |path: PathBuf, text: String| fs::write(path, text).expect("it is written");
    write(worktree.join(".git"), format!("gitdir: {}/.git/worktrees/worktree\n", app.display()));
    write(app.join(".git/worktrees/worktree/commondir"), "../..\n".to_owned());
    let folder = home.project(&app).join("memory");
    for (number, directory) in [app.clone(), app.join("server/src"), worktree].iter().enumerate() {
        let word = ["copper", "enamel", "granite"][number];
        Home::remember(&folder, &format!("# Memory\n\nThe kettle is of {word}.\n"));
        home.in_directory("claude-code", "session-start", directory);
        home.require_found(word);
    }
    let stores = home.quipu.ok(&["store", "list"]);
    assert_eq!(stores.matches("memory of").count(), 1, "{stores}");
}

#[test]
fn it_is_synced_at_the_start_before_a_compaction_and_at_the_end() {
    let home = Home::new();
    let directory = home.path().join("plain");
    fs::create_dir_all(&directory).expect("it can be made");
    // No repository: the folder is beside the transcript.
    let folder = home.project(&directory).join("memory");
    for (name, word) in
        [("session-start", "copper"), ("pre-compact", "enamel"), ("session-end", "granite")]
    {
        Home::remember(&folder, &format!("# Memory\n\nThe kettle is of {word}.\n"));
        home.in_directory("claude-code", name, &directory);
        home.require_found(word);
    }
}

#[test]
fn a_folder_that_settings_name_is_taken() {
    let home = Home::new();
    let app = home.path().join("app");
    let set = |file: PathBuf, folder: &str| {
        fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
        let text = format!("{{\n  // Mine.\n  \"autoMemoryDirectory\": \"{folder}\"\n}}\n");
        fs::write(file, text).expect("it is written");
    };
    set(home.path().join(".claude/settings.json"), "~/notes-of-claude");
    Home::remember(&home.path().join("notes-of-claude"), "# Memory\n\nThe kettle is of copper.\n");
    home.in_directory("claude-code", "session-start", &app);
    home.require_found("copper");
    // Those of the project are stronger.
    let own = home.path().join("own");
    set(app.join(".claude/settings.local.json"), own.to_str().expect("a text"));
    Home::remember(&own, "# Memory\n\nThe kettle is of enamel.\n");
    let other = home.path().join("app/other");
    fs::create_dir_all(&other).expect("it can be made");
    home.quipu.ok(&["store", "delete", &format!("memory of {}", name_of(&app)), "--yes"]);
    home.in_directory("claude-code", "session-start", &other);
    home.require_found("enamel");
}

#[test]
fn codex_has_one_folder_for_all_projects() {
    let home = Home::new();
    Home::remember(
        &home.path().join("codex-home/memories"),
        "# Memory\n\nThe kettle is of copper.\n",
    );
    home.in_directory("codex", "session-start", &home.path().join("app"));
    home.require_found("copper");
    assert!(home.quipu.ok(&["store", "list"]).contains("memory of codex"));
}

#[test]
fn install_writes_that_it_is_wanted() {
    let home = Home::new();
    home.quipu.ok(&["hook", "install", "claude-code", "--memory-folder"]);
    let settings = fs::read_to_string(home.path().join(".claude/settings.json")).expect("settings");
    let settings: serde_json::Value = serde_json::from_str(&settings).expect("it is JSON");
    for (event, list) in settings["hooks"].as_object().expect("hooks") {
        let wanted = list.to_string().contains("--memory-folder");
        assert_eq!(wanted, event != "PreToolUse", "{event}: {list}");
    }
}
