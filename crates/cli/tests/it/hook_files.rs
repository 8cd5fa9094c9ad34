//! The files of hooks: decisions on their way into the database, and what redactions leave in them.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hook::Home;
use crate::server::{KEY, Server};

const CURL: &str = "---\nrule:\n  tool: shell\n  command: curl\n  decision: deny\n---\nNo.\n";

fn home() -> Home {
    let home = Home::new();
    home.rule("/curl.md", CURL);
    home
}

impl Home {
    fn decide_about(&self, host: &str, command: &str) {
        let mut call = self.fixture(host, "pre-tool-use-bash");
        call["tool_input"]["command"] = json!(command);
        self.answer("decide", host, &call);
    }

    fn hook_files(&self) -> PathBuf {
        self.quipu.data().join("hooks")
    }

    /// Returns the events of each session, by its title.
    fn events(&self) -> Vec<(String, Vec<Value>)> {
        let engine = self.quipu.engine(0);
        let list = self.quipu.json(&["session", "list"]);
        let sessions = list["data"].as_array().expect("a list").iter();
        let events = sessions.map(|session| {
            let id = session["id"].as_str().expect("an id").parse().expect("an id");
            let query = quipu_core::backend::SessionEventQuery::after(0, 1000);
            let events = engine.session_events(id, &query).expect("they are read").items;
            let body = |event: &quipu_core::model::SessionEvent| {
                event.body.as_ref().map_or(Value::Null, |body| {
                    serde_json::from_str(body.as_str()).expect("it is JSON")
                })
            };
            (
                session["title"].as_str().expect("a title").to_owned(),
                events.iter().map(body).collect(),
            )
        });
        events.filter(|(_, events): &(String, Vec<Value>)| !events.is_empty()).collect()
    }
}

/// Returns the files below a directory that hold a text.
fn files_with(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("it is listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        let bytes = fs::read(&path).expect("it is read");
        let is_named = path.to_string_lossy().contains(text);
        if is_named || bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn each_decision_becomes_an_event_of_a_session_that_is_named_after_that_of_the_host() {
    let home = home();
    home.decide_about("claude-code", "curl https://example.org/1");
    home.decide_about("codex", "curl https://example.org/2");
    home.decide_about("claude-code", "ls");
    // A decision does not wait for a writer.
    assert_eq!(home.events(), []);
    // Transcripts are recorded on request only, decisions always; those of other sessions, too.
    home.run("claude-code", "stop");
    let events = home.events();
    assert_eq!(events.len(), 2, "{events:?}");
    for (title, call) in [("claude-code abc123", "/1"), ("codex 0199a213", "/2")] {
        let (_, events) =
            events.iter().find(|(found, _)| found.starts_with(title)).expect("a session");
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((&event["type"], &event["decision"]), (&json!("rule.decision"), &json!("deny")));
        assert!(event["call"].as_str().expect("a call").ends_with(call), "{event}");
        assert!(event["rules"][0]["version"].as_str().expect("a version").starts_with("memver_"));
    }
    // They stay in the log, and come once.
    assert_eq!(home.log().len(), 2);
    home.decide_about("claude-code", "curl https://example.org/3");
    for name in ["pre-compact", "session-end", "stop"] {
        home.run("claude-code", name);
    }
    let count: usize = home.events().iter().map(|(_, events)| events.len()).sum();
    assert_eq!(count, 3);
    assert_eq!(home.events().len(), 2, "in the same session as before");
}

#[test]
fn what_waits_is_recorded_by_a_command_and_a_full_spool_by_itself() {
    let home = home();
    home.decide_about("codex", "curl one");
    assert_eq!(home.quipu.ok(&["hook", "record"]), "recorded 1 decision\n");
    assert_eq!(home.quipu.ok(&["hook", "record"]), "recorded 0 decisions\n");
    // As much as many decisions leave.
    let line =
        json!({"host": "codex", "session": "old", "decision": "deny", "call": "x".repeat(200)});
    let spool = format!("{line}\n").repeat(300);
    fs::write(home.hook_files().join("spool.jsonl"), spool).expect("it can be written");
    home.decide_about("codex", "curl two");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    let all = || home.events().iter().map(|(_, events)| events.len()).sum::<usize>();
    while all() < 302 {
        assert!(std::time::Instant::now() < deadline, "{}", all());
    }
    assert_eq!(all(), 302);
}

#[test]
fn decisions_are_not_lost_while_somebody_else_writes() {
    let home = home();
    home.decide_about("claude-code", "curl one");
    let lock =
        fs::File::options().read(true).write(true).open(home.quipu.data().join("quipu.lock"));
    let lock = lock.expect("the lock file");
    lock.lock().expect("it is free");
    home.run("claude-code", "stop");
    home.decide_about("claude-code", "curl two");
    drop(lock);
    assert_eq!(home.events(), []);
    home.run("claude-code", "stop");
    let events = home.events();
    let calls: Vec<_> =
        events.iter().flat_map(|(_, events)| events).map(|it| &it["call"]).collect();
    assert_eq!(calls, ["curl one", "curl two"]);
}

#[test]
fn a_redaction_by_content_leaves_no_byte_in_the_files_of_hooks() {
    let home = home();
    let canary = "ada@canary.example";
    // In the log that is old, in the log, among what waits, in a file that was edited, in the copy of a rule;
    // as it is, and behind an escape.
    fs::create_dir_all(home.hook_files()).expect("it can be made");
    let old = json!({"host": "codex", "session": "s", "call": canary}).to_string();
    let escaped = old.replace('@', "\\u0040");
    let torn = format!("{{\"call\": \"{canary}");
    fs::write(home.hook_files().join("log.old.jsonl"), format!("{escaped}\n{old}\n{torn}"))
        .expect("it can be written");
    home.decide_about("claude-code", &format!("curl https://x/?email={canary}"));
    home.run("claude-code", "stop");
    home.decide_about("codex", &format!("curl \"{canary}\""));
    home.decide_about("codex", "curl harmless");
    let mut write = home.fixture("claude-code", "pre-tool-use-write");
    write["tool_input"]["file_path"] = json!(format!("/home/{canary}/notes.md"));
    home.answer("decide", "claude-code", &write);
    home.rule("/canary.md", &CURL.replace("No.", canary));
    home.decide_about("codex", "ls");
    assert!(files_with(&home.hook_files(), canary).len() >= 5);

    let selected = ["redact", "--all", "--matching", canary, "--and-heads"];
    let plan = home.quipu.ok(&[&selected[..], &["--dry-run"]].concat());
    // Two lines of the old log and the torn one, two of the log, one that waits, one session.
    assert!(plan.contains("7 entries of hooks"), "{plan}");
    let receipt = home.quipu.ok(&[&selected[..], &["--yes"]].concat());
    for part in [
        "Hits     0",
        "Scanned  hooks/log.jsonl",
        "Scanned  hooks/log.old.jsonl",
        "Scanned  hooks/sessions/",
    ] {
        assert!(receipt.contains(part), "{part}: {receipt}");
    }
    assert_eq!(files_with(&home.quipu.data(), canary), Vec::<PathBuf>::new());
    assert_eq!(files_with(&home.quipu.data(), "ada\\u0040canary"), Vec::<PathBuf>::new());
    // What it was not about is still there.
    let log = home.quipu.ok(&["hook", "log"]);
    assert!(log.contains("curl harmless") && log.lines().count() == 2, "{log}");
    home.run("codex", "stop");
    assert!(
        home.events()
            .iter()
            .any(|(_, events)| events.iter().any(|it| it["call"] == "curl harmless"))
    );
    assert_eq!(files_with(&home.quipu.data(), canary), Vec::<PathBuf>::new());
}

#[test]
fn a_redaction_over_rest_reaches_them_and_one_of_a_single_store_does_not() {
    let home = home();
    let canary = "ada@canary.example";
    home.decide_about("codex", &format!("curl {canary}"));
    let server = Server::start(&home.quipu);
    let store =
        home.quipu.json(&["store", "show", "notes"])["id"].as_str().expect("an id").to_owned();
    let body = json!({"matching": canary});
    let (status, answer) = server.post(KEY, &format!("/quipu/stores/{store}/redactions"), &body);
    assert_eq!(status, 200, "{answer}");
    assert_ne!(files_with(&home.hook_files(), canary), Vec::<PathBuf>::new());
    home.quipu.ok(&["redact", "--all", "--matching", canary, "--yes"]);
    assert_eq!(files_with(&home.quipu.data(), canary), Vec::<PathBuf>::new());
}

#[test]
fn a_redaction_waits_for_the_hooks_that_write() {
    let home = home();
    let canary = "ada@canary.example";
    home.decide_about("codex", &format!("curl {canary}"));
    let lock = fs::File::options().read(true).write(true).open(home.hook_files().join("lock"));
    let lock = lock.expect("the lock file");
    lock.lock_shared().expect("it is free");
    let mut redaction = home.quipu.command(&["redact", "--all", "--matching", canary, "--yes"]);
    let mut redaction = redaction.stdout(Stdio::null()).spawn().expect("it starts");
    // Hooks that write at the same time are not held up.
    home.decide_about("codex", "curl harmless");
    assert!(redaction.try_wait().expect("it is asked").is_none(), "it waits");
    drop(lock);
    assert!(redaction.wait().expect("it ends").success());
    assert_eq!(files_with(&home.quipu.data(), canary), Vec::<PathBuf>::new());
    assert_eq!(home.log().len(), 1);
}
