//! Hooks on disks that do not answer, and beside writers that do not end.

use std::fs;
use std::path::Path;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::hook::{Home, context};

/// Puts a named pipe in place of a file: whoever opens it waits for somebody at its other end.
fn replace_by_pipe(path: &Path) {
    drop(fs::remove_file(path));
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it can be made");
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

#[test]
fn a_disk_that_does_not_answer_does_not_hold_up_a_host() {
    let files = ["quipu.toml", "quipu.lock", "quipu.db", "hooks/rules.json", "hooks/log.jsonl"];
    thread::scope(|scope| {
        for file in files {
            scope.spawn(move || {
                let home = Home::new();
                // There is something to read, then the disk goes away.
                home.decide("claude-code", "pre-tool-use-write");
                replace_by_pipe(&home.quipu.data().join(file));
                for (verb, name) in
                    [("decide", "pre-tool-use-write"), ("run", "user-prompt-submit")]
                {
                    // `hook` checks how long it takes.
                    let input = home.fixture("claude-code", name).to_string();
                    let ran = home.hook(verb, "claude-code", input.as_bytes());
                    assert_eq!(ran.code, 0, "{file} {name}: {ran:?}");
                }
            });
        }
    });
}

#[test]
fn a_locked_database_does_not_hold_up_a_host_that_records() {
    let home = Home::new();
    let settings = "[hooks]\ntranscript = true\n";
    fs::write(home.quipu.data().join("quipu.toml"), settings).expect("the settings");
    let transcript = home.path().join("project/transcript.jsonl");
    fs::write(&transcript, "{\"type\":\"user\"}\n{\"type\":\"assistant\"}\n")
        .expect("it can be written");
    home.quipu.ok(&["search", "tea"]);
    let lock =
        fs::File::options().read(true).write(true).open(home.quipu.data().join("quipu.lock"));
    let lock = lock.expect("the lock file");
    lock.lock().expect("it is free");
    assert_ne!(home.decide("claude-code", "pre-tool-use-write"), Value::Null);
    assert!(!context(&home.run("claude-code", "session-start")).is_empty());
    for name in ["stop", "pre-compact", "session-end"] {
        home.run("claude-code", name);
    }
    drop(lock);
    // Nothing is lost: the next hook records it.
    home.run("claude-code", "stop");
    let listed = home.quipu.json(&["session", "list"]);
    let sessions = listed["data"].as_array().expect("sessions");
    let recorded: String = sessions
        .iter()
        .map(|session| home.quipu.ok(&["events", session["id"].as_str().expect("an id")]))
        .collect();
    assert_eq!(recorded.matches("  transcript.line  ").count(), 2, "{recorded}");
    assert_eq!(recorded.matches("  rule.decision  ").count(), 1, "{recorded}");
}
