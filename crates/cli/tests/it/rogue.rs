//! The story of a key that went rogue: 27 changes in two stores, a leaked token, later edits by others;
//! ended with three commands.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, id};
use crate::support::Quipu;

const TOKEN: &str = "tok-8f1c0d77-correct-horse-battery";

fn original(number: usize) -> String {
    format!("# Note {number}\n\nfirst\nsecond\nthird\nfourth\nfifth\n")
}

/// What the rogue key does to the store, over HTTP.
struct Rogue<'a> {
    server: &'a Server,
    secret: String,
    changes_count: usize,
}

impl Rogue<'_> {
    fn post(&mut self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.server.post(&self.secret, path, body);
        assert_eq!(status, 200, "{answer}");
        self.changes_count += 1;
        answer
    }

    fn memories(&self, store: &str) -> Vec<(String, String)> {
        let (status, list) = self.server.get(&self.secret, &format!("{store}?limit=100"));
        assert_eq!(status, 200, "{list}");
        let entries = list.get("data").and_then(Value::as_array).expect("a list").iter();
        entries.map(|it| (text(it, "path"), id(it))).collect()
    }

    /// Replaces the third line of a memory.
    fn edit(&mut self, store: &str, memory: &str, number: usize, line: &str) {
        let content = original(number).replace("first", line);
        self.post(&format!("{store}/{memory}"), &json!({"content": content}));
    }
}

fn text(body: &Value, field: &str) -> String {
    body.get(field).and_then(Value::as_str).expect("a text").to_owned()
}

#[test]
fn three_commands_end_it() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "team"]);
    for store in ["notes", "team"] {
        for number in 0..12 {
            let path = format!("{number:02}.md");
            let put = quipu.run_with(&["put", &path, "-s", store], original(number).as_bytes());
            assert_eq!(put.code, 0, "{put:?}");
        }
    }
    let before = |store: &str| quipu.ok(&["ls", "-R", "-s", store]);
    let (notes_before, team_before) = (before("notes"), before("team"));

    let created = quipu.json(&["key", "create", "--name", "ci-bot", "--role", "read_write"]);
    let secret = text(&created, "secret");
    let server = Server::start(&quipu);
    let mut rogue = Rogue { server: &server, secret, changes_count: 0 };
    let url = |name: &str| {
        let store = quipu.json(&["store", "show", name]);
        format!("/v1/memory_stores/{}/memories", id(&store))
    };
    let (notes, team) = (url("notes"), url("team"));
    let in_notes = rogue.memories(&notes);
    for (number, (_, memory)) in in_notes.iter().enumerate().take(10) {
        rogue.edit(&notes, memory, number, &format!("rogue {TOKEN}"));
    }
    rogue.post(&format!("{notes}/{}", in_notes[10].1), &json!({"path": "/hidden/10.md"}));
    for number in 0..4 {
        let path = format!("/planted/{number}.md");
        rogue.post(&notes, &json!({"path": path, "content": format!("planted {TOKEN}\n")}));
    }
    for (number, (_, memory)) in rogue.memories(&team).iter().enumerate() {
        rogue.edit(&team, memory, number, "rogue");
    }
    assert_eq!(rogue.changes_count, 27);
    // Somebody else works on, without noticing.
    for path in ["00.md", "01.md", "02.md"] {
        let text = quipu.ok(&["cat", path, "-s", "notes"]).replace("fifth", "FIFTH, by bob");
        let mut bob = quipu.command(&["put", path, "-s", "notes"]);
        bob.env("USER", "bob");
        assert_eq!(crate::support::run(bob, text.as_bytes()).code, 0);
    }

    let unknown = quipu.run(&["key", "revoke", "ci"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    quipu.ok(&["key", "revoke", "ci-bot"]);
    let reverted = quipu.ok(&["revert", "--key", "ci-bot", "--all"]);
    let redact = ["redact", "--matching", TOKEN, "--all", "--and-heads", "--yes"];
    let redacted = quipu.ok(&redact);

    assert_eq!((before("notes"), before("team")), (notes_before, team_before), "{reverted}");
    for number in 0..12 {
        let path = format!("{number:02}.md");
        let expected = match number {
            0..3 => original(number).replace("fifth", "FIFTH, by bob"),
            _ => original(number),
        };
        assert_eq!(quipu.ok(&["cat", &path, "-s", "notes"]), expected);
        assert_eq!(quipu.ok(&["cat", &path, "-s", "team"]), original(number));
    }
    drop(server);
    for entry in fs::read_dir(quipu.data()).expect("the data directory is there") {
        let file = entry.expect("an entry").path();
        let bytes = fs::read(&file).unwrap_or_default();
        let is_there = bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
        assert!(!is_there, "the token is in {}: {redacted}", file.display());
    }
    let receipt = quipu.json(&["receipts"]);
    assert!(!receipt.to_string().contains(TOKEN));
    // It comes back, and is pointed out.
    let again = quipu.run_with(&["put", "new.md", "-s", "notes"], TOKEN.as_bytes());
    assert!(again.err.contains("redacted"), "{again:?}");
    quipu.ok(&["check"]);
}
