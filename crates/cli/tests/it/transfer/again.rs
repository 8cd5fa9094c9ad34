//! Importing a second time: no duplicates, and what others did in the store stays.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{folder, import, numbers, shown};
use crate::support::Quipu;

fn reason(report: &Value) -> &str {
    report.pointer("/skipped/0/reason").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn what_was_deleted_or_moved_in_the_store_stays_so() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("gone.md", "1"), ("here.md", "2"), ("moved.md", "3")]);
    import(&quipu, &source, &[]);
    quipu.ok(&["rm", "/gone.md"]);
    quipu.ok(&["mv", "/moved.md", "/elsewhere/moved.md"]);
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [0, 0, 2, 1]);
    assert!(reason(&report).contains("it was deleted in the store since"), "{report}");
    assert_eq!(quipu.ok(&["ls", "-R"]), "/elsewhere/moved.md\n/here.md\n");

    fs::write(source.join("moved.md"), "3, changed").expect("it can be written");
    fs::remove_file(source.join("gone.md")).expect("it can be removed");
    let report = import(&quipu, &source, &["--dry-run"]);
    assert_eq!(numbers(&report), [0, 0, 1, 1]);
    assert!(reason(&report).contains("moved to `/elsewhere/moved.md`"), "{report}");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 1]);
    assert_eq!(quipu.ok(&["cat", "/elsewhere/moved.md"]), "3");

    fs::write(source.join("gone.md"), "1").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite"])), [1, 1, 1, 0]);
    assert_eq!(quipu.ok(&["cat", "/elsewhere/moved.md"]), "3, changed");
    assert_eq!(quipu.ok(&["ls", "-R"]), "/elsewhere/moved.md\n/gone.md\n/here.md\n");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 3, 0]);
}

#[test]
fn what_somebody_else_once_deleted_is_imported() {
    let quipu = Quipu::with_store();
    quipu.put("/a.md", "mine");
    quipu.ok(&["rm", "/a.md"]);
    let source = folder(&quipu, "vault", &[("a.md", "1")]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
}

#[test]
fn another_source_does_not_replace_what_one_source_brought() {
    let quipu = Quipu::with_store();
    let first = folder(&quipu, "one/memory", &[("README.md", "first")]);
    let second = folder(&quipu, "two/memory", &[("README.md", "second"), ("more.md", "x")]);
    import(&quipu, &first, &[]);
    let report = import(&quipu, &second, &[]);
    assert_eq!(numbers(&report), [1, 0, 0, 1]);
    assert!(reason(&report).contains("from another source"), "{report}");
    assert_eq!(quipu.ok(&["cat", "README.md"]), "first");
    fs::write(first.join("README.md"), "first, changed").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &first, &[])), [0, 1, 0, 0]);
    assert_eq!(numbers(&import(&quipu, &second, &["--overwrite"])), [0, 1, 1, 0]);
    assert_eq!(quipu.ok(&["cat", "README.md"]), "second");
}

#[test]
fn a_deleted_session_is_not_taken_for_a_change() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "1")]);
    let session = import(&quipu, &source, &[])["session"].as_str().expect("an id").to_owned();
    quipu.ok(&["session", "delete", &session]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 0]);
    fs::write(source.join("a.md"), "2").expect("it can be written");
    let report = import(&quipu, &source, &[]);
    assert!(reason(&report).contains("whose session was deleted"), "{report}");
    assert!(!reason(&report).contains("since"), "{report}");
}

#[test]
fn a_conversation_with_a_new_title_stays_one_memory() {
    let quipu = Quipu::with_store();
    let export = |title: &str, text: &str| {
        let message = json!({"sender": "human", "text": text});
        let id = "abcdef12-3456-7890-aaaa-bbbbbbbbbbbb";
        json!([{"uuid": id, "name": title, "chat_messages": [message]}]).to_string()
    };
    let first = folder(&quipu, "first", &[("conversations.json", &export("Old", "hello"))]);
    let second = folder(&quipu, "second", &[("conversations.json", &export("New", "hello again"))]);
    assert_eq!(numbers(&import(&quipu, &first, &[])), [1, 0, 0, 0]);
    assert_eq!(numbers(&import(&quipu, &second, &[])), [0, 1, 0, 0]);
    assert_eq!(quipu.ok(&["ls", "-R"]), "/claude/old-abcdef12.md\n");
    assert!(quipu.ok(&["cat", "/claude/old-abcdef12.md"]).contains("hello again"));
    assert_eq!(numbers(&import(&quipu, &second, &[])), [0, 0, 1, 0]);
    quipu.put("/claude/old-abcdef12.md", "mine");
    let report = import(&quipu, &second, &[]);
    assert!(reason(&report).contains("somebody else wrote"), "{report}");
    quipu.ok(&["rm", "/claude/old-abcdef12.md"]);
    assert_eq!(numbers(&import(&quipu, &second, &[])), [0, 0, 0, 1]);
}

#[test]
fn two_imports_at_once_get_along() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "many", &[]);
    for number in 0..300 {
        fs::write(source.join(format!("{number}.md")), format!("# {number}\n"))
            .expect("it can be written");
    }
    let start = || {
        let mut command = quipu.command(&["--json", "import", shown(&source)]);
        command.stdout(Stdio::piped()).spawn().expect("the binary starts")
    };
    for import in [start(), start()] {
        let output = import.wait_with_output().expect("the binary ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
        let [created, updated, unchanged, skipped] = numbers(&report);
        assert_eq!([created + unchanged, updated, skipped], [300, 0, 0], "{}", report["skipped"]);
    }
}
