//! `quipu import` and `quipu export`.

#[path = "transfer/again.rs"]
mod again;
#[path = "transfer/dates.rs"]
mod dates;
#[path = "transfer/dry_run.rs"]
mod dry_run;
#[path = "transfer/exporting.rs"]
mod exporting;
#[path = "transfer/programs.rs"]
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::Quipu;

/// Writes files below a new folder of the home directory.
fn folder(quipu: &Quipu, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = quipu.home.path().join(name);
    fs::create_dir_all(&folder).expect("a folder can be made");
    for (path, text) in files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a file has a folder")).expect("it can be made");
        fs::write(file, text).expect("a file can be written");
    }
    folder
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// Imports with `--json` and more arguments.
fn import(quipu: &Quipu, source: &Path, more: &[&str]) -> Value {
    let mut arguments = vec!["--json", "import", shown(source)];
    arguments.extend(more);
    let ran = quipu.run(&arguments);
    let report: Value = serde_json::from_str(&ran.out).expect("the output is one JSON document");
    let is_note = |it: &Value| it["kind"] == "note";
    let skipped = report.get("skipped").and_then(Value::as_array).expect("a list");
    // The exit code tells whether a note was skipped, and notes come first.
    assert_eq!(ran.code, i32::from(skipped.iter().any(is_note)), "{ran:?}");
    assert!(skipped.is_sorted_by_key(|it| !is_note(it)), "{report}");
    report
}

/// Returns the numbers of new, changed, unchanged and skipped items.
fn numbers(report: &Value) -> [u64; 4] {
    let number = |key: &str| report[key].as_u64().expect("a number");
    let skipped = report["skipped"].as_array().expect("a list").len();
    [number("created"), number("updated"), number("unchanged"), skipped as u64]
}

#[test]
fn a_folder_is_imported_once_and_again_without_duplicates() {
    let quipu = Quipu::with_store();
    let files = [
        ("tea.md", "green\n"),
        ("a/b/deep.md", "# Deep\n"),
        ("plain.txt", "x"),
        (".hidden/x.md", "h"),
    ];
    let source = folder(&quipu, "vault", &files);
    let first = import(&quipu, &source, &[]);
    assert_eq!(numbers(&first), [3, 0, 0, 0]);
    assert_eq!((&first["kind"], &first["store"]), (&"folder".into(), &"notes".into()));
    assert_eq!(quipu.ok(&["ls", "-R"]), "/a/b/deep.md\n/plain.txt\n/tea.md\n");
    assert_eq!(quipu.ok(&["cat", "tea.md"]), "green\n");

    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 3, 0]);
    fs::write(source.join("tea.md"), "black\n").expect("it can be written");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 1, 2, 0]);
    assert_eq!(quipu.ok(&["cat", "tea.md"]), "black\n");
    assert_eq!(quipu.json(&["log", "tea.md"])["data"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_import_is_the_work_of_one_session() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "1"), ("b.md", "2")]);
    let session = import(&quipu, &source, &[])["session"].clone();
    let log = quipu.json(&["log"]);
    for version in log["data"].as_array().expect("a list") {
        assert_eq!(version["created_by"]["session_id"], session);
    }
    let shown = quipu.json(&["session", "show", session.as_str().expect("an id")]);
    assert_eq!(shown["title"], "import of vault (folder)");
}

#[test]
fn changes_in_the_store_are_left_alone() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "old"), ("b.md", "old")]);
    import(&quipu, &source, &[]);
    quipu.put("a.md", "mine");
    fs::write(source.join("a.md"), "new").expect("it can be written");
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [0, 0, 1, 1]);
    assert_eq!(report["skipped"][0]["source"], "a.md");
    assert_eq!(quipu.ok(&["cat", "a.md"]), "mine");
    assert_eq!(numbers(&import(&quipu, &source, &["--overwrite"])), [0, 1, 1, 0]);
    assert_eq!(quipu.ok(&["cat", "a.md"]), "new");
}

#[test]
fn unsuitable_files_are_skipped_with_a_reason() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("good.md", "x"), ("cafe\u{301}.md", "decomposed")]);
    fs::write(source.join("image.png"), b"\x89PNG\xff").expect("it can be written");
    fs::write(source.join("nul.md"), b"a\0b").expect("it can be written");
    fs::write(source.join("long.md"), "x".repeat(102_401)).expect("it can be written");
    #[cfg(unix)]
    std::os::unix::fs::symlink("good.md", source.join("link.md")).expect("a link can be made");
    let report = import(&quipu, &source, &[]);
    let skipped = report["skipped"].as_array().expect("a list");
    let reason = |name: &str| {
        let found = skipped.iter().find(|it| it["source"] == name);
        found.and_then(|it| it["reason"].as_str()).unwrap_or_default().to_owned()
    };
    assert_eq!(report["created"], 2);
    assert_eq!(report["binaries"], 1, "{report}");
    assert_eq!(reason("image.png"), "");
    assert!(reason("nul.md").contains("NUL"), "{report}");
    assert!(reason("long.md").contains("102400 bytes"), "{report}");
    #[cfg(unix)]
    assert_eq!(reason("link.md"), "it is a symbolic link");
    assert_eq!(quipu.ok(&["cat", "/café.md"]), "decomposed");

    let ran = quipu.run(&["import", shown(&source)]);
    assert_eq!(ran.code, 1);
    let expected = "not imported:\n  long.md: it is longer than the 102400 bytes that a memory may \
                    have\n  nul.md: the content has a NUL character at byte 1; memories are text\n";
    assert!(ran.out.starts_with(expected), "{}", ran.out);
    assert!(ran.out.contains("left alone: 1 binary file\n"), "{}", ran.out);
    let summary = "2 memories imported into `notes`: 0 new, 0 changed, 2 unchanged\n";
    assert!(ran.out.ends_with(summary), "{}", ran.out);
    assert!(ran.err.contains("2 notes were not imported"), "{}", ran.err);
    fs::remove_file(source.join("nul.md")).expect("it is there");
    let ran = quipu.run(&["import", shown(&source)]);
    assert!(ran.err.contains("1 note was not imported"), "{}", ran.err);
}

#[test]
fn every_note_that_a_full_store_refuses_is_named() {
    let quipu = Quipu::with_store();
    let files: Vec<_> = (0..30).map(|number| (format!("{number:02}.md"), "x")).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let source = folder(&quipu, "vault", &files);
    let mut command = quipu.command(&["import", shown(&source)]);
    command.env("QUIPU_LIMITS_MEMORIES_PER_STORE_MAX", "5");
    let ran = crate::support::run(command, b"");
    assert_eq!(ran.code, 1);
    let refused = ran.out.matches("the store is full: its limit is 5 memories").count();
    assert_eq!(refused, 25, "{}", ran.out);
    assert!(ran.out.starts_with("not imported:\n"), "{}", ran.out);
    assert!(ran.err.contains("25 notes were not imported"), "{}", ran.err);
}

#[test]
fn an_import_outlasts_one_wait_that_ends_in_vain() {
    let quipu = Quipu::with_store();
    let names: Vec<_> = (0..3000).map(|number| format!("{number}.md")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "tea")).collect();
    let source = folder(&quipu, "many", &files);
    let mut command = quipu.command(&["--json", "import", shown(&source)]);
    command.env("QUIPU_STORAGE_LOCK_TIMEOUT_SECONDS", "1");
    let importing = thread::spawn(move || crate::support::run(command, b""));
    while !quipu.ok(&["ls"]).contains(".md") {
        thread::yield_now();
    }
    // As if the import were stopped for so long, which makes its deadline pass in the same way.
    let lock = quipu.data().join("quipu.lock");
    let lock = fs::File::options().read(true).write(true).open(lock).expect("the lock file");
    lock.lock().expect("it becomes free");
    thread::sleep(Duration::from_millis(1500));
    drop(lock);
    let ran = importing.join().expect("it ends");
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).expect("one JSON document");
    assert_eq!(numbers(&report), [3000, 0, 0, 0]);
}

#[test]
fn a_vault_keeps_what_obsidian_knows_about_it() {
    let quipu = Quipu::with_store();
    let invoice = "---\naliases: [Bill, The March bill]\n---\n# Invoice\n\nPaid. #invoice/2026\n";
    let plan = "See [[Bill]], ![[scan.png]], [[Board.canvas]] and [[Nowhere]].\n";
    let files = [
        (".obsidian/app.json", "{}"),
        ("Invoice.md", invoice),
        ("Plan.md", plan),
        ("Board.canvas", "{}"),
        ("script.py", "print()"),
    ];
    let source = folder(&quipu, "vault", &files);
    let report = import(&quipu, &source, &[]);
    assert_eq!(numbers(&report), [2, 0, 0, 2], "{report}");
    let found = quipu.ok(&["search", "tag:invoice"]);
    assert!(found.contains("/Invoice.md"), "{found}");
    let links = quipu.ok(&["links", "/Invoice.md", "--back"]);
    assert!(links.contains("/Plan.md"), "{links}");
    let missing = quipu.ok(&["links", "--unresolved"]);
    assert!(missing.contains("Nowhere"), "{missing}");
    assert!(!missing.contains("scan.png") && !missing.contains("Board"), "{missing}");
    let report = import(&quipu, &source, &["--all-texts"]);
    assert_eq!(numbers(&report), [2, 0, 2, 0], "{report}");
    // An alias that two notes share is ambiguous.
    quipu.put("/Other.md", "---\naliases: [Bill]\n---\n");
    let missing = quipu.ok(&["links", "--unresolved"]);
    assert!(missing.contains("Bill"), "{missing}");
}

#[test]
fn the_store_is_the_one_named_the_only_one_or_a_new_one() {
    let quipu = Quipu::empty();
    let source = folder(&quipu, "vault", &[("a.md", "1")]);
    assert_eq!(import(&quipu, &source, &[])["store"], "vault");
    assert_eq!(import(&quipu, &source, &["-s", "second"])["store"], "second");
    let ran = quipu.run(&["import", shown(&source)]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let inside = import(&quipu, &source, &["-s", "second", "--into", "old/notes"]);
    assert_eq!(numbers(&inside), [1, 0, 0, 0]);
    assert_eq!(quipu.ok(&["cat", "-s", "second", "/old/notes/a.md"]), "1");
}

#[test]
fn credentials_are_reported() {
    let quipu = Quipu::with_store();
    let secret = format!("token: ghp_{}\n", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let source = folder(&quipu, "vault", &[("secret.md", secret.as_str())]);
    let report = import(&quipu, &source, &[]);
    assert_eq!(report["credentials"], serde_json::json!(["/secret.md"]));
}

#[test]
fn an_unknown_source_is_refused() {
    let quipu = Quipu::with_store();
    let source =
        folder(&quipu, "x", &[("a.json", "{\"some\": 1}"), ("b.zip", "PK"), ("c.json", "no")]);
    for name in ["a.json", "b.zip", "c.json", "missing"] {
        let ran = quipu.run(&["import", shown(&source.join(name))]);
        assert_eq!(ran.code, 2, "{name}: {ran:?}");
    }
    let ran = quipu.run(&["import", shown(&source.join("a.json")), "--from", "folder"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn the_data_directory_is_not_imported() {
    let quipu = Quipu::with_store();
    folder(&quipu, "data", &[("inside.md", "x")]);
    for number in 0..200 {
        folder(&quipu, "notes", &[(&format!("{number}.md"), "x")]);
    }
    let report = import(&quipu, quipu.home.path(), &[]);
    assert_eq!(numbers(&report), [200, 0, 0, 1]);
    assert_eq!(report["skipped"][0]["source"], "data");
    assert_eq!(report["skipped"][0]["reason"], "it is Quipu's data directory");
    quipu.ok(&["check"]);
    for source in [quipu.data(), quipu.data().join("quipu.db")] {
        let ran = quipu.run(&["import", shown(&source), "--from", "mcp-memory"]);
        assert!(ran.code == 2 && ran.err.contains("data directory"), "{ran:?}");
    }
}

#[cfg(unix)]
#[test]
fn special_files_are_reported() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "vault", &[("a.md", "x")]);
    let made = std::os::unix::net::UnixListener::bind(source.join("socket"));
    let report = import(&quipu, &source, &[]);
    drop(made.expect("a socket can be made"));
    assert_eq!(numbers(&report), [1, 0, 0, 1]);
    assert_eq!(report["skipped"][0]["reason"], "it is not a regular file");
}

#[test]
fn many_files_are_imported_by_several_writers() {
    let quipu = Quipu::with_store();
    let source = folder(&quipu, "many", &[]);
    for number in 0..500 {
        fs::write(source.join(format!("{number}.md")), format!("# {number}\n"))
            .expect("it can be written");
    }
    assert_eq!(numbers(&import(&quipu, &source, &[])), [500, 0, 0, 0]);
    assert_eq!(quipu.ok(&["cat", "499.md"]), "# 499\n");
    assert_eq!(numbers(&import(&quipu, &source, &[])), [0, 0, 500, 0]);
}
