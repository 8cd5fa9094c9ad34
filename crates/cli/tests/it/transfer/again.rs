//! Repeated imports: no duplicates, and changes that others made in the store are kept.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{folder, import, numbers, shown};
use crate::support::Quipu;

fn reason(report: &Value) -> &str {
    report.pointer("/skipped/0/reason").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn deletions_and_moves_in_the_store_are_kept() {
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

/// An export of conversations with Claude: the id, title and text of each.
fn conversations(said: &[(&str, &str, &str)]) -> String {
    let one = |(id, title, text): &(&str, &str, &str)| json!({"uuid": id, "name": title, "chat_messages": [{"sender": "human", "text": text}]});
    Value::from(said.iter().map(one).collect::<Vec<_>>()).to_string()
}

#[test]
fn conversations_whose_ids_begin_the_same_stay_apart() {
    let quipu = Quipu::with_store();
    let (one, two) = ("6745c3f2-0001-8000", "6745c3f2-0002-8000");
    let export = |said: &[(&str, &str, &str)]| {
        folder(&quipu, "claude", &[("conversations.json", &conversations(said))])
    };
    let source = export(&[(one, "One", "first")]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 0, 0]);
    export(&[(one, "One", "first"), (two, "Two", "second")]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 0, 1, 0]);
    assert!(quipu.ok(&["cat", "/claude/one-6745c3f2.md"]).contains("first"));
    assert!(quipu.ok(&["cat", "/claude/two-6745c3f2.md"]).contains("second"));
    // Each keeps its memory when titles change, even if they are swapped.
    export(&[(one, "Two", "first, more"), (two, "Three", "second, more")]);
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [0, 2, 0, 0], "{report}");
    assert!(quipu.ok(&["cat", "/claude/one-6745c3f2.md"]).contains("first, more"));
    assert!(quipu.ok(&["cat", "/claude/two-6745c3f2.md"]).contains("second, more"));
    // A conversation with the name of the other one is imported alone.
    export(&[("6745c3f2-0003-8000", "One", "third")]);
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [0, 0, 0, 1], "{report}");
    assert!(reason(&report).contains("something else of this name"), "{report}");
    assert!(quipu.ok(&["cat", "/claude/one-6745c3f2.md"]).contains("first"));
}

#[test]
fn two_files_do_not_replace_each_other_in_one_memory() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "of a")]);
    import(&quipu, &source, &[]);
    quipu.ok(&["mv", "/a.md", "/b.md"]);
    fs::write(source.join("b.md"), "of b").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 1, 1]);
    assert_eq!(quipu.ok(&["cat", "/b.md"]), "of a");
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite", "--dry-run"])), [1, 1, 0, 0]);
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite"])), [1, 1, 0, 0]);
    for _ in 0..2 {
        assert_eq!(quipu.ok(&["cat", "/a.md", "/b.md"]), "of aof b");
        assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 2, 0]);
    }
}

#[test]
fn a_new_file_does_not_replace_what_was_moved_to_its_path() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "of a")]);
    import(&quipu, &source, &[]);
    quipu.ok(&["mv", "/a.md", "/x.md"]);
    fs::write(source.join("a.md"), "of a, changed").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite"])), [0, 1, 0, 0]);
    fs::write(source.join("x.md"), "of x").expect("it can be written");
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [0, 0, 1, 1], "{report}");
    assert!(reason(&report).contains("`/x.md` was moved in the store since"), "{report}");
    assert_eq!(quipu.ok(&["cat", "/x.md"]), "of a, changed");
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite"])), [1, 1, 0, 0]);
    assert_eq!(quipu.ok(&["cat", "/a.md", "/x.md"]), "of a, changedof x");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 2, 0]);
}

#[test]
fn an_entity_keeps_its_memory_when_another_gets_its_name() {
    let quipu = Quipu::with_store();
    let graph = |entities: &[(&str, &str)]| {
        let one = |(name, fact): &(&str, &str)| json!({"type": "entity", "name": name, "entityType": "place", "observations": [fact]});
        let text = Value::from(entities.iter().map(one).collect::<Vec<_>>()).to_string();
        folder(&quipu, "x", &[("memory.json", &text)]).join("memory.json")
    };
    let source = graph(&[("Tea House", "open")]);
    import(&quipu, &source, &[]);
    graph(&[("Tea House", "open daily"), ("tea house", "closed")]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [1, 1, 0, 0]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 2, 0]);
    assert_eq!(quipu.ok(&["ls", "place"]).lines().count(), 2);
    assert!(quipu.ok(&["cat", "/place/tea-house.md"]).contains("open daily"));
    graph(&[("tea house", "closed on Monday")]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 1, 0, 0]);
    assert!(quipu.ok(&["cat", "/place/tea-house.md"]).contains("open daily"));
}

#[test]
fn a_project_with_a_new_name_keeps_its_folder() {
    let quipu = Quipu::with_store();
    let export = |projects: &[(&str, &str, &[&str])]| {
        let one = |(id, name, documents): &(&str, &str, &[&str])| {
            let documents = documents.iter().map(|it| json!({"filename": it, "content": name}));
            json!({"uuid": id, "name": name, "docs": documents.collect::<Vec<_>>()})
        };
        let text = Value::from(projects.iter().map(one).collect::<Vec<_>>()).to_string();
        folder(&quipu, "claude", &[("projects.json", &text)])
    };
    let (one, two) = ("01950000-aaaa", "01950000-bbbb");
    let source = export(&[(one, "Shop", &["menu.md"])]);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [2, 0, 0, 0]);
    export(&[(one, "Tea Shop", &["menu.md", "new.md"]), (two, "Bar", &["menu.md"])]);
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [3, 2, 0, 0], "{report}");
    let below = |path: &str| quipu.ok(&["ls", "-R", path]).lines().count();
    assert_eq!(below("/claude/projects/shop-01950000"), 3);
    assert_eq!(below("/claude/projects/bar-01950000"), 2);
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 5, 0]);
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
