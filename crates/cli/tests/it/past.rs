//! Reading a store as it was, comparing, blaming, copying.

use std::fs;

use crate::support::{Quipu, Ran};

/// A store with a history, and the version ids of its three states.
fn with_history() -> (Quipu, [String; 3]) {
    let quipu = Quipu::with_store();
    quipu.put("tea.md", "# Tea\n\ngreen, see [[Kettle]]\n");
    let first = version(&quipu.put("kettle.md", "# Kettle\n\ncopper\n"));
    quipu.put("tea.md", "# Tea\n\nblack\n");
    quipu.ok(&["mv", "kettle.md", "kitchen/kettle.md"]);
    let second = version(&quipu.put("cup.md", "# Cup\n\ngreen\n"));
    quipu.ok(&["rm", "tea.md"]);
    let third = version(&quipu.put("cup.md", "# Cup\n\nblue\n"));
    (quipu, [first, second, third])
}

fn version(line: &str) -> String {
    line.split_whitespace().next().expect("a version is printed").to_owned()
}

#[track_caller]
fn refused(quipu: &Quipu, arguments: &[&str], code: i32, words: &str) {
    let ran = quipu.run(arguments);
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(ran.err.contains(words), "{ran:?}");
}

#[test]
fn reading_commands_take_a_moment() {
    let (quipu, [first, second, third]) = with_history();
    let store = format!("notes@{first}");
    assert_eq!(quipu.ok(&["ls"]), "/cup.md\n/kitchen/\n");
    assert_eq!(quipu.ok(&["ls", "--at", &first]), "/kettle.md\n/tea.md\n");
    assert_eq!(quipu.ok(&["ls", "--store", &store]), "/kettle.md\n/tea.md\n");
    assert_eq!(quipu.ok(&["ls", "-R", "--at", &second]), "/cup.md\n/kitchen/kettle.md\n/tea.md\n");
    assert!(quipu.ok(&["cat", "tea.md", "--at", &second]).contains("black"));
    assert!(quipu.ok(&["cat", "-s", &store, "tea.md"]).contains("green"));
    assert!(quipu.ok(&["search", "green", "--at", &first]).contains("/tea.md"));
    assert!(quipu.ok(&["search", "green", "--at", &second]).contains("/cup.md"));
    assert_eq!(quipu.ok(&["search", "green", "--at", &third]), "no matches\n");
    assert!(quipu.ok(&["context", "Tea", "--at", &first]).contains("/kettle.md"));
    assert!(quipu.ok(&["links", "Kettle", "--back", "--at", &first]).contains("/tea.md"));
    assert!(quipu.ok(&["graph", "--at", &first]).contains("->"));
    assert!(!quipu.ok(&["graph"]).contains("->"));
    assert_eq!(quipu.json(&["ls", "--at", &first])["data"].as_array().map(Vec::len), Some(2));
    let folder = quipu.home.path().join("then");
    quipu.ok(&["export", &folder.display().to_string(), "--at", &first]);
    let exported = fs::read_to_string(folder.join("tea.md")).expect("it is exported");
    assert!(exported.contains("green"));
    assert!(!folder.join("cup.md").exists());
    // A redaction names the copy, although it is of the past.
    let plan = quipu.ok(&["redact", "--matching", "copper", "--and-heads", "--dry-run"]);
    assert!(plan.contains("/then"), "{plan}");
}

#[test]
fn a_moment_may_be_a_time_or_a_place_in_the_feed() {
    let (quipu, _) = with_history();
    let log = quipu.json(&["log", "cup.md"]);
    let created_at = log["data"][1]["created_at"].as_str().expect("a time").to_owned();
    assert!(quipu.ok(&["cat", "cup.md", "--at", &created_at]).contains("green"));
    assert!(quipu.ok(&["cat", "cup.md", "--at", "now"]).contains("blue"));
    // The store is the first change of a new data directory.
    assert_eq!(quipu.ok(&["ls", "--at", "#2"]), "/tea.md\n");
}

#[test]
fn bad_moments_are_explained_and_the_past_is_not_written() {
    let (quipu, [first, ..]) = with_history();
    refused(&quipu, &["ls", "--at", "soon"], 2, "is not a moment");
    refused(&quipu, &["ls", "--at", "2999-01-01"], 2, "is in the future");
    refused(&quipu, &["ls", "--at", "2001-01-01"], 3, "did not exist at");
    refused(&quipu, &["ls", "--at", "#999"], 2, "the newest change is `#");
    refused(&quipu, &["ls", "--at", "#1", "--store", "notes@#1"], 2, "give the moment once");
    refused(&quipu, &["ls", "--store", "nothing@#1"], 3, "nothing");
    let store = format!("notes@{first}");
    refused(&quipu, &["rm", "tea.md", "--store", &store], 2, "is the past");
    let written = quipu.run_with(&["put", "tea.md", "--store", &store], b"text");
    assert_eq!(written.code, 2, "{written:?}");
    refused(&quipu, &["search", "x", "-s", "notes", "-s", &store], 2, "one store at a time");
    assert_eq!(quipu.ok(&["ls"]), "/cup.md\n/kitchen/\n");
}

/// A store whose name looks like a past is found by its name.
#[test]
fn a_name_with_an_at_sign_is_a_name_first() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "notes@now"]);
    quipu.ok(&["put", "a.md", "/dev/null", "--store", "notes@now"]);
    assert_eq!(quipu.ok(&["ls", "--store", "notes@now"]), "/a.md\n");
}

#[test]
fn what_is_missing_is_said() {
    let quipu = Quipu::with_store();
    let first = version(&quipu.put("a.md", "secret\n"));
    let second = version(&quipu.put("a.md", "public\n"));
    quipu.ok(&["redact", &first, "--yes"]);
    let Ran { out, err, .. } = quipu.run(&["ls", "--at", &first]);
    assert_eq!(out, "");
    assert!(err.contains("1 memory of that moment cannot be shown"), "{err}");
    quipu.put("a.md", "newer\n");
    let mut prune = quipu.command(&["prune"]);
    prune.env("QUIPU_LIMITS_VERSIONS_KEPT_DAYS", "0").env("QUIPU_LIMITS_VERSIONS_KEPT_MIN", "1");
    assert!(prune.output().expect("it runs").status.success());
    refused(&quipu, &["ls", "--at", &second], 3, "may have been pruned");
    let ran = quipu.run(&["ls", "--at", "#2"]);
    assert!(ran.err.contains("no longer kept"), "{ran:?}");
    let created = quipu.json(&["store", "show", "notes"])["created_at"].clone();
    let ran = quipu.run(&["ls", "--at", created.as_str().expect("a time")]);
    assert!(ran.err.contains("incomplete: "), "{ran:?}");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

#[test]
fn trees_are_compared() {
    let (quipu, [first, second, _]) = with_history();
    let (then, later) = (format!("@{first}"), format!("notes@{second}"));
    let stat = "added /cup.md  3 lines added, 0 lines removed\n\
        moved /kettle.md to /kitchen/kettle.md  0 lines added, 0 lines removed\n\
        changed /tea.md  1 line added, 1 line removed\n\
        1 added, 0 removed, 1 changed, 1 moved\n";
    assert_eq!(quipu.ok(&["diff", &then, &later, "--stat"]), stat);
    let now = quipu.ok(&["diff", "--at", &first, "--stat"]);
    assert!(now.contains("removed /tea.md") && now.contains("1 added, 1 removed"), "{now}");
    assert_eq!(quipu.ok(&["diff", &then, "--stat"]), now);
    assert_eq!(quipu.ok(&["diff", &format!("notes{then}"), "--stat"]), now);
    let full = quipu.ok(&["diff", &then, &later]);
    assert!(full.contains("--- /tea.md\n+++ /tea.md\n"), "{full}");
    assert!(full.contains("-green, see [[Kettle]]\n+black\n"), "{full}");
    let body = quipu.json(&["diff", &then, &later]);
    assert_eq!(body["data"][0]["kind"], "added");
    assert_eq!(body["data"][1]["old_path"], "/kettle.md");
    assert_eq!(quipu.ok(&["diff", "notes", "notes"]), "0 added, 0 removed, 0 changed, 0 moved\n");
    let one = quipu.ok(&["diff", "cup.md", "--at", &second]);
    assert!(one.contains("-green\n+blue\n"), "{one}");
    // It moved since, and is still the same memory.
    assert_eq!(quipu.ok(&["diff", "kettle.md", "--at", &first]), "");
    refused(&quipu, &["diff", "nothing.md", "--at", &first], 3, "neither then nor now");
    refused(&quipu, &["diff", "notes", "nothing"], 3, "nothing");
    refused(&quipu, &["diff"], 2, "OLD");
}

#[test]
fn blame_names_version_author_and_time() {
    let quipu = Quipu::with_store();
    let first = version(&quipu.put("tea.md", "one\ntwo\n"));
    let file = quipu.home.path().join("new");
    fs::write(&file, "one\n2\n").expect("it can be written");
    let mut bob = quipu.command(&["put", "tea.md", &file.display().to_string()]);
    assert!(bob.env("USER", "bob").output().expect("it runs").status.success());
    let blamed = quipu.ok(&["blame", "tea.md"]);
    let lines: Vec<_> = blamed.lines().collect();
    assert!(lines[0].contains(&first) && lines[0].ends_with("one"), "{blamed}");
    assert!(lines[0].contains("user_ada") && lines[1].contains("user_bob"), "{blamed}");
    let body = quipu.json(&["blame", "tea.md"]);
    assert_eq!(body["data"][1]["text"], "2");
    assert_eq!(body["data"][1]["precise"], true);
    assert!(quipu.ok(&["blame", "tea.md", "--at", &first]).ends_with("two\n"));
    refused(&quipu, &["blame", "nothing.md"], 3, "nothing.md");
}

#[test]
fn a_store_is_copied_as_it_is_or_as_it_was() {
    let (quipu, [first, ..]) = with_history();
    quipu.ok(&["store", "copy", "notes", "now"]);
    quipu.ok(&["store", "copy", &format!("notes@{first}"), "then"]);
    quipu.ok(&["store", "copy", "notes", "again", "--at", &first]);
    assert_eq!(quipu.ok(&["ls", "-R", "-s", "now"]), "/cup.md\n/kitchen/kettle.md\n");
    assert_eq!(quipu.ok(&["ls", "-R", "-s", "then"]), "/kettle.md\n/tea.md\n");
    assert_eq!(quipu.ok(&["diff", "then", "again"]), "0 added, 0 removed, 0 changed, 0 moved\n");
    let shown = quipu.json(&["store", "show", "then"]);
    let id = quipu.json(&["store", "show", "notes"])["id"].clone();
    let from = shown["metadata"]["copied_from"].as_str().expect("it has a label");
    assert!(from.starts_with(id.as_str().expect("an id")), "{from}");
    refused(&quipu, &["store", "copy", "notes", "then"], 2, "already a store named");
}
