//! How hooks find the rules: all of them, among any notes, and never those of yesterday.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;

use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, PrincipalName};
use serde_json::{Value, json};

use crate::hook::Home;

const DENY: &str = "---\nrule:\n  tool: edit\n  path: migrations/**\n  decision: deny\n---\nNo.\n";

fn home() -> Home {
    let home = Home::without_rules();
    home.quipu.ok(&["store", "create", "handbook", "--writers", "people"]);
    home.quipu.ok(&["store", "create", "rules", "--writers", "people"]);
    home
}

impl Home {
    /// Writes notes about nothing.
    pub(crate) fn notes(&self, store: &str, count: usize) {
        let engine = self.quipu.engine(0);
        let workspace = engine.default_workspace().expect("a workspace").id;
        let store = engine.find_store(workspace, store).expect("a store").id;
        let ada = Actor::User(PrincipalName::from_host("ada"));
        for number in 0..count {
            let path = MemoryPath::parse(&format!("/a{number:05}.md")).expect("a path");
            let text = Content::new(format!("# Note {number}\n\nNothing.\n")).expect("a text");
            engine.put(&ada, store, (&path, &text), Precondition::None).expect("it is written");
        }
    }

    fn write(&self) -> &'static str {
        let answer = self.decide("claude-code", "pre-tool-use-write");
        match answer["hookSpecificOutput"]["permissionDecision"].as_str() {
            Some("deny") => "deny",
            Some("ask") => "ask",
            _ => "none",
        }
    }

    fn copy_of_rules(&self) -> std::path::PathBuf {
        self.quipu.data().join("hooks/rules.json")
    }
}

#[test]
fn a_rule_behind_more_than_a_thousand_notes_applies() {
    let home = home();
    // In an older store, and in front of it in its own.
    home.notes("handbook", 1010);
    home.notes("rules", 10);
    home.rule("/z.md", DENY);
    for _ in 0..2 {
        assert_eq!(home.write(), "deny");
    }
    assert_eq!(home.log().len(), 2);
    assert!(home.quipu.ok(&["rules", "check"]).contains("1 rules, 0 findings"));
    let kept = fs::read_to_string(home.copy_of_rules()).expect("they are kept");
    assert!(kept.len() < 1000, "only the notes that say something about rules: {kept}");
}

#[test]
fn where_there_are_too_many_notes_it_is_said_and_the_hook_fails_as_it_was_told() {
    let home = home();
    home.notes("handbook", 8);
    home.rule("/z.md", DENY);
    let set = |text: &str| {
        fs::write(home.quipu.data().join("quipu.toml"), text).expect("it can be written");
    };
    set("[rules]\nmemories_max = 8\n");
    assert_eq!(home.write(), "none");
    let log = home.log();
    let failed = log.last().expect("an entry")["failed"].as_str().expect("a failure").to_owned();
    assert!(
        failed.contains("hold 9 memories") && failed.contains("rules.memories_max"),
        "{failed}"
    );
    set("[rules]\nmemories_max = 8\nfail = \"closed\"\n");
    let answer = home.decide("claude-code", "pre-tool-use-write").to_string();
    assert!(answer.contains("\"deny\"") && answer.contains("hold 9 memories"), "{answer}");
    let ran = home.quipu.run(&["rules", "check"]);
    assert!(ran.code != 0 && ran.err.contains("hold 9 memories"), "{ran:?}");
    set("[rules]\nmemories_max = 9\n");
    assert_eq!(home.write(), "deny");
}

#[test]
fn rules_of_yesterday_never_count() {
    let home = home();
    let ask = DENY.replace("deny", "ask");
    home.rule("/m.md", DENY);
    assert_eq!(home.write(), "deny");
    let yesterday = fs::read(home.copy_of_rules()).expect("they are kept");
    let put_back = || fs::write(home.copy_of_rules(), &yesterday).expect("it can be written");
    // Whatever has changed, the copy from before is not used.
    home.rule("/m.md", &ask);
    put_back();
    assert_eq!(home.write(), "ask");
    home.quipu.ok(&["-s", "rules", "mv", "/m.md", "/n.md"]);
    put_back();
    assert_eq!(home.write(), "ask");
    home.quipu.ok(&["-s", "rules", "rm", "/n.md"]);
    put_back();
    assert_eq!(home.write(), "none");
    // Not even when nothing but the number of memories tells: the versions of the deletion are gone.
    let later = home.quipu.engine(400);
    later.prune().expect("it prunes");
    drop(later);
    put_back();
    assert_eq!(home.write(), "none");
    // A copy that is torn, of another format or of something else is read past.
    home.rule("/m.md", DENY);
    for text in ["{", "", "[]", "{\"format\": 0, \"stores\": []}", "\u{0}"] {
        fs::write(home.copy_of_rules(), text).expect("it can be written");
        assert_eq!(home.write(), "deny", "{text}");
    }
    // A store that is opened for everyone, archived or renamed.
    home.quipu.ok(&["store", "update", "rules", "--rename", "policy"]);
    assert_eq!(home.write(), "deny");
    assert_eq!(home.log().last().expect("an entry")["rules"][0]["rule"], "policy:/m.md");
    home.quipu.ok(&["store", "update", "policy", "--writers", "everyone"]);
    assert_eq!(home.write(), "none");
}

#[test]
fn rules_of_a_database_that_a_backup_has_replaced_are_those_of_the_backup() {
    let home = home();
    home.rule("/m.md", &DENY.replace("deny", "ask"));
    let backup = home.path().join("backup.db").display().to_string();
    home.quipu.ok(&["backup", &backup]);
    home.rule("/m.md", DENY);
    assert_eq!(home.write(), "deny");
    home.quipu.ok(&["restore-backup", &backup]);
    assert_eq!(home.write(), "ask");
}

#[test]
fn a_store_says_how_its_rules_fail() {
    let home = home();
    let broken = "---\nrule:\n  tool: edit\n  decision: perhaps\n---\nNo.\n";
    let put = |store: &str, path: &str, text: &str| {
        let ran = home.quipu.run_with(&["-s", store, "put", path], text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    put("handbook", "/broken.md", broken);
    assert_eq!(home.write(), "none");
    // That of another store says nothing about these.
    put("rules", "/fail.md", "---\nrules:\n  fail: closed\n---\nWhat cannot be checked waits.\n");
    assert_eq!(home.write(), "none");
    put("rules", "/broken.md", broken);
    assert_eq!(home.write(), "deny");
    let listed = home.quipu.ok(&["rules", "list"]);
    let line = "unless they say otherwise, the rules of this store fail closed: rules:/fail.md";
    assert!(listed.contains(line), "{listed}");
    assert!(home.quipu.run(&["rules", "check"]).out.contains(line));
    // What a rule says itself is stronger, and so is the store than the setting.
    put("rules", "/broken.md", &broken.replace("rule:\n", "rule:\n  fail: open\n"));
    assert_eq!(home.write(), "none");
    put("rules", "/fail.md", "---\nrules: { fail: open }\n---\nNobody waits.\n");
    put("rules", "/broken.md", broken);
    let settings = home.quipu.data().join("quipu.toml");
    fs::write(settings, "[rules]\nfail = \"closed\"\n").expect("it can be written");
    let answer = home.decide("claude-code", "pre-tool-use-write").to_string();
    assert!(!answer.contains("rules:/broken.md"), "{answer}");
    // The other store says nothing, so the setting counts for it.
    assert_eq!(home.write(), "deny");
    assert_eq!(home.log().last().expect("an entry")["rules"][0]["rule"], "handbook:/broken.md");
}

#[test]
fn what_times_out_is_in_the_log() {
    let home = home();
    home.rule("/z.md", DENY);
    let mut command = home.quipu.command(&["hook", "decide", "--host", "codex"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let input = child.stdin.take();
    child.wait().expect("it ends");
    drop(input);
    let log = home.log();
    assert_eq!(log.last().expect("an entry")["failed"], json!("the hook has timed out"));
    assert_ne!(home.decide("codex", "pre-tool-use-apply-patch"), Value::Null);
}
