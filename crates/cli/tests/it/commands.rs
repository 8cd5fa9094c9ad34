//! The commands, as a user runs them.

use std::fs;

use crate::support::{Quipu, run};

#[test]
fn a_first_session_from_create_to_check() {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "notes", "--description", "Team notes"]);
    quipu.put("/tea.md", "green\n");
    quipu.put("/a/one.md", "1\n");
    quipu.put("a/two.md", "2\n");
    assert_eq!(quipu.ok(&["ls"]), "/a/\n/tea.md\n");
    assert_eq!(quipu.ok(&["ls", "-R"]), "/a/one.md\n/a/two.md\n/tea.md\n");
    assert_eq!(quipu.ok(&["ls", "a"]), "/a/one.md\n/a/two.md\n");

    let second = quipu.put("/tea.md", "green\nblack\n");
    quipu.put("/tea.md", "green\nwhite\n");
    let log = quipu.ok(&["log", "/tea.md", "--oneline"]);
    assert_eq!(log.lines().count(), 3);
    assert!(log.lines().all(|line| line.contains("user_ada")));
    let diff = quipu.ok(&["diff", "/tea.md"]);
    assert!(diff.ends_with("@@ -1,2 +1,2 @@\n green\n-black\n+white\n"), "{diff}");
    assert_eq!(quipu.ok(&["diff", "/tea.md", "--stat"]), "1 line added, 1 line removed\n");

    quipu.ok(&["restore", &second]);
    assert_eq!(quipu.ok(&["cat", "/tea.md"]), "green\nblack\n");
    quipu.ok(&["redact", &second, "--yes"]);
    let shown = quipu.ok(&["show", &second]);
    assert!(shown.contains("Path:   (redacted)") && shown.contains("Redacted by user_ada"));
    let check = quipu.ok(&["check"]);
    assert_eq!(check, "checked 1 store, 3 memories, 6 versions, 8 changes\n");
}

#[test]
fn the_log_reads_like_that_of_git() {
    let quipu = Quipu::with_store();
    let version = quipu.put("/tea.md", "green\n");
    let log = quipu.ok(&["log"]);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], format!("version {version} (created)"));
    assert_eq!(lines[1..3], ["Path:   /tea.md", "Actor:  user_ada"]);
    assert!(lines[3].starts_with("Date:   20") && lines[3].ends_with("+0000"));
    assert_eq!(lines[4], "Size:   6 B (+6)");
    quipu.ok(&["mv", "/tea.md", "/coffee.md"]);
    quipu.ok(&["rm", "/coffee.md"]);
    let log = quipu.ok(&["log", "/coffee.md"]);
    assert!(log.contains("Path:   /coffee.md (was /tea.md)"), "{log}");
    assert!(log.contains("Size:   0 B (-6)"), "{log}");
}

#[test]
fn the_log_can_be_filtered() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "1");
    quipu.put("/b", "2");
    quipu.put("/a", "3");
    let count = |arguments: &[&str]| {
        let all: Vec<_> =
            ["log", "--oneline"].into_iter().chain(arguments.iter().copied()).collect();
        quipu.ok(&all).lines().count()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["/a"]), 2);
    assert_eq!(count(&["-n", "1"]), 1);
    assert_eq!(count(&["--operation", "created"]), 2);
    assert_eq!(count(&["--actor", "user_ada"]), 3);
    assert_eq!(count(&["--actor", "user_grace"]), 0);
    assert_eq!(count(&["--since", "1h"]), 3);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    assert_eq!(quipu.run(&["log", "--since", "soon"]).code, 2);
}

#[test]
fn restore_undoes_the_last_change_and_a_deletion() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "one");
    quipu.put("/a", "two");
    quipu.ok(&["restore", "/a"]);
    assert_eq!(quipu.ok(&["cat", "/a"]), "one");
    quipu.ok(&["rm", "/a"]);
    quipu.ok(&["restore", "/a"]);
    assert_eq!(quipu.ok(&["cat", "/a"]), "one");
    assert_eq!(quipu.run(&["restore", "/a"]).code, 3);
    quipu.put("/a", "three");
    quipu.ok(&["restore", "/a", "--to", "/b"]);
    assert_eq!(quipu.ok(&["ls"]), "/b\n");
    assert_eq!(quipu.ok(&["cat", "/b"]), "one");
}

#[test]
fn put_reads_files_and_checks_preconditions() {
    let quipu = Quipu::with_store();
    let file = quipu.home.path().join("file.md");
    fs::write(&file, "from a file").expect("a file can be written");
    quipu.ok(&["put", "/a", file.to_str().expect("UTF-8")]);
    assert_eq!(quipu.ok(&["cat", "/a"]), "from a file");
    assert_eq!(quipu.run_with(&["put", "/a", "--new"], b"x").code, 4);
    let stale = "0".repeat(64);
    assert_eq!(quipu.run_with(&["put", "/a", "--if-hash", &stale], b"x").code, 4);
    let current = quipu.json(&["cat", "/a"])["content_sha256"].as_str().map(str::to_owned);
    let current = current.expect("a hash");
    assert_eq!(quipu.run_with(&["put", "/a", "--if-hash", &current], b"x").code, 0);
    assert_eq!(quipu.run_with(&["put", "/a", "--if-hash", "abc"], b"x").code, 2);
    assert_eq!(quipu.run_with(&["put", "/a"], b"x").out, "unchanged  /a\n");
    assert_eq!(quipu.run(&["put", "/b", "/nonexistent/file"]).code, 2);
}

#[test]
fn cat_prints_every_byte_of_a_text() {
    let quipu = Quipu::with_store();
    let text = "\u{1b}[31mred\u{1b}[0m\r\n\u{1}\u{7f}\u{feff}no line end";
    quipu.put("/a", text);
    assert_eq!(quipu.ok(&["cat", "/a"]), text);
    assert_eq!(quipu.ok(&["cat", "/a", "/a"]), text.repeat(2));
}

#[cfg(unix)]
#[test]
fn edit_opens_the_editor_and_saves_what_it_leaves() {
    let quipu = Quipu::with_store();
    let edit = |script: &str| {
        let editor = quipu.home.path().join("editor.sh");
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
        let mut command = quipu.command(&["edit", "/a.md"]);
        command
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", quipu.home.path())
            .env("EDITOR", format!("sh {}", editor.display()));
        run(command, b"")
    };
    assert_eq!(edit("echo first > \"$1\"").code, 0);
    assert_eq!(quipu.ok(&["cat", "/a.md"]), "first\n");
    assert!(edit("true").err.contains("nothing was changed"));
    assert_eq!(edit("exit 3").code, 1);

    // A concurrent change while the editor is open: neither text is lost.
    let put = format!("--data '{}' put /a.md", quipu.data().display());
    let binary = env!("CARGO_BIN_EXE_quipu");
    let ran = edit(&format!("echo mine > \"$1\"; echo theirs | '{binary}' {put}"));
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(quipu.ok(&["cat", "/a.md"]), "theirs\n");
    let kept = ran.err.lines().find_map(|line| line.strip_prefix("note: your text is saved in "));
    let kept = kept.expect("the draft is named");
    assert_eq!(fs::read_to_string(kept).expect("the draft is there"), "mine\n");
    assert_eq!(quipu.ok(&["log", "/a.md", "--oneline"]).lines().count(), 2);
}

#[cfg(unix)]
#[test]
fn the_editor_is_a_shell_command_and_its_text_survives_a_failure() {
    let quipu = Quipu::with_store();
    quipu.put("/a.md", "one two\n");
    let edit = |editor: &str, arguments: &[&str]| {
        let mut command = quipu.command(&["edit", "/a.md"]);
        command
            .args(arguments)
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", quipu.home.path())
            .env("EDITOR", editor);
        run(command, b"")
    };
    assert_eq!(edit("sed -i 's/one two/three four/'", &[]).code, 0);
    assert_eq!(quipu.ok(&["cat", "/a.md"]), "three four\n");

    let ran = edit("sh -c 'echo typed > \"$0\"; exit 3'", &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let kept = ran.err.lines().find_map(|line| line.strip_prefix("note: your text is saved in "));
    let kept = kept.expect("the draft is named");
    assert_eq!(fs::read_to_string(kept).expect("the draft is there"), "typed\n");
    assert_eq!(quipu.ok(&["cat", "/a.md"]), "three four\n");

    let ran = edit("no-such-editor", &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("hint: set VISUAL or EDITOR"), "{}", ran.err);
    assert!(edit("rm", &[]).err.contains("nothing was changed"));
    let unchanged: serde_json::Value =
        serde_json::from_str(&edit("true", &["--json"]).out).expect("one JSON document");
    assert_eq!((&unchanged["path"], &unchanged["changed"]), (&"/a.md".into(), &false.into()));
}

#[test]
fn directories_are_moved_and_deleted_as_a_whole() {
    let quipu = Quipu::with_store();
    quipu.put("/a/1", "1");
    quipu.put("/a/2", "2");
    assert_eq!(quipu.ok(&["mv", "/a", "/b"]).lines().count(), 2);
    assert_eq!(quipu.ok(&["ls", "-R"]), "/b/1\n/b/2\n");
    assert_eq!(quipu.run(&["rm", "/b"]).code, 3);
    quipu.ok(&["rm", "-r", "/b/"]);
    assert_eq!(quipu.ok(&["ls"]), "");
}

#[test]
fn a_typo_in_one_name_deletes_nothing() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "1");
    quipu.put("/d/b", "2");
    for arguments in [&["rm", "/a", "/no"][..], &["rm", "-r", "/a", "/d", "/no"]] {
        let ran = quipu.run(arguments);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.err.contains("no memory lives at `/no`"), "{}", ran.err);
        assert!(!ran.err.contains("`-r`"), "{}", ran.err);
    }
    let ran = quipu.run(&["rm", "/a", "/d"]);
    assert!(ran.err.contains("hint: `-r` deletes a directory"), "{}", ran.err);
    assert_eq!(quipu.ok(&["ls", "-R"]), "/a\n/d/b\n");
    let id = quipu.json(&["cat", "/a"])["id"].as_str().map(str::to_owned).expect("an id");
    quipu.ok(&["rm", "-r", &id, "/d", "/d/b"]);
    assert_eq!(quipu.ok(&["ls", "-R"]), "");
}

#[test]
fn a_missing_memory_is_an_error_and_not_empty_output() {
    let quipu = Quipu::with_store();
    let version = quipu.put("/a", "1");
    let unknown = version.replacen("memver_", "mem_", 1);
    assert_eq!(quipu.run(&["log", &unknown]).code, 3);
    quipu.put("/a", "2");
    assert_eq!(quipu.ok(&["show", "--text", &version]), "1");
    assert_eq!(quipu.json(&["show", "--text", &version])["content"], "1");
    quipu.ok(&["redact", &version, "--yes"]);
    let ran = quipu.run(&["show", "--text", &version]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("was redacted"), "{}", ran.err);
    let newest = quipu.json(&["cat", "/a"])["memory_version_id"].as_str().map(str::to_owned);
    let shown = quipu.ok(&["show", &newest.expect("an id")]);
    assert!(shown.contains("The previous text was redacted"), "{shown}");
}

#[test]
fn the_only_store_needs_no_name() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "other", "--secrets", "reject", "--expire-after-days", "9"]);
    let ran = quipu.run(&["ls"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("NAME`: `other`, `notes`"), "{}", ran.err);
    let ran = quipu.run(&["--store", "nots", "ls"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("did you mean `notes`?"), "{}", ran.err);
    assert_eq!(quipu.run(&["--store", "notes", "ls"]).code, 0);
    let mut by_variable = quipu.command(&["ls"]);
    by_variable.env("QUIPU_STORE", "other");
    assert_eq!(run(by_variable, b"").code, 0);

    let store = quipu.json(&["store", "show", "other"]);
    assert_eq!((&store["secrets"], &store["expire_after_days"]), (&"reject".into(), &9.into()));
    quipu.ok(&["store", "update", "other", "--rename", "new", "--metadata", "team=tea"]);
    quipu.ok(&["store", "update", "new", "--expire-after-days", "0", "--metadata", "team="]);
    let store = quipu.json(&["store", "show", "new"]);
    assert!(store["expire_after_days"].is_null() && store["metadata"] == serde_json::json!({}));
    quipu.ok(&["store", "archive", "new"]);
    assert_eq!(quipu.ok(&["store", "list"]).lines().count(), 1);
    assert_eq!(quipu.ok(&["store", "list", "--all"]).lines().count(), 2);
    assert_eq!(quipu.run(&["-s", "new", "put", "/a"]).code, 5);
    quipu.ok(&["store", "delete", "new", "--yes"]);
    assert_eq!(quipu.ok(&["store", "list", "--all"]).lines().count(), 1);
}

#[test]
fn sessions_have_stores_and_a_token() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "Team Docs", "--description", "What we know."]);
    assert_eq!(quipu.run(&["session", "create"]).code, 2);
    let created = quipu.json(&[
        "session",
        "create",
        "--title",
        "agent",
        "-s",
        "notes",
        "-s",
        "Team Docs:ro",
        "--instructions",
        "Read it.",
    ]);
    let id = created["id"].as_str().expect("an id").to_owned();
    assert!(created["token"].as_str().is_some_and(|token| token.starts_with("sk-quipu-")));
    assert_eq!(created["resources"][1]["mount_path"], "/mnt/memory/team-docs");
    let shown = quipu.ok(&["session", "show", &id]);
    assert!(shown.contains("Team Docs (read_only)") && !shown.contains("Token"), "{shown}");
    let prompt = quipu.ok(&["prompt", "--session", &id]);
    assert!(prompt.ends_with(
        "- `/mnt/memory/notes`: notes (you may read and write). Read it.\n\
         - `/mnt/memory/team-docs`: Team Docs (read only, writes are refused). What we know. \
         Read it.\n"
    ));
    assert!(quipu.ok(&["session", "list"]).contains(&id));
    quipu.ok(&["session", "archive", &id]);
    assert_eq!(quipu.ok(&["session", "list"]), "");
    quipu.ok(&["session", "delete", &id]);
    assert_eq!(quipu.run(&["session", "show", &id]).code, 3);
}

#[test]
fn keys_are_shown_once_and_revoked() {
    let quipu = Quipu::with_store();
    let key = quipu.json(&[
        "key",
        "create",
        "--role",
        "read_only",
        "--name",
        "ci",
        "-s",
        "notes",
        "--expires",
        "30d",
    ]);
    let (id, secret) = (key["id"].as_str().expect("an id"), key["secret"].as_str());
    assert!(secret.is_some_and(|secret| secret.starts_with("sk-quipu-")));
    assert!(key["memory_store_ids"][0].as_str().is_some());
    let listed = quipu.ok(&["key", "list"]);
    assert!(listed.contains(id) && listed.contains("read_only") && listed.contains("until"));
    assert!(!listed.contains("sk-quipu-"));
    let revoked = quipu.ok(&["key", "revoke", id]);
    assert!(revoked.contains("revoked"), "{revoked}");
    assert_eq!(quipu.run(&["key", "create", "--role", "king"]).code, 2);
    assert_eq!(quipu.run(&["key", "create", "--role", "admin", "--expires", "2020-01-01"]).code, 2);
}

#[test]
fn lists_are_one_json_document_each() {
    let quipu = Quipu::with_store();
    quipu.put("/a/b", "1");
    for command in [
        &["ls"][..],
        &["log"],
        &["store", "list"],
        &["session", "list"],
        &["key", "list"],
        &["mv", "/a", "/c"],
        &["rm", "-r", "/c"],
    ] {
        assert!(quipu.json(command)["data"].is_array(), "{command:?}");
    }
    assert!(quipu.json(&["check"])["problems"].is_array());
    assert_eq!(quipu.json(&["prune"])["versions_count"], 0);
    assert!(quipu.json(&["prompt"])["prompt"].is_string());
}

#[test]
fn credentials_are_pointed_out_but_never_repeated() {
    let quipu = Quipu::with_store();
    let token: String = (0..36_u32).filter_map(|n| char::from_digit(n * 7 % 36, 36)).collect();
    let text = format!("line one\npush with ghp_{token}\n");
    let ran = quipu.run_with(&["put", "/a"], text.as_bytes());
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("line 2 contains a credential"), "{}", ran.err);
    quipu.ok(&["store", "update", "notes", "--secrets", "reject"]);
    let ran = quipu.run_with(&["put", "/b"], text.as_bytes());
    assert_eq!(ran.code, 5);
    assert!(!ran.err.contains(&token) && !ran.out.contains(&token));
    quipu.ok(&["store", "update", "notes", "--secrets", "redact"]);
    let ran = quipu.run_with(&["--json", "put", "/c"], text.as_bytes());
    assert!(ran.err.contains("line 2 contained a credential (GitHub token), which was redacted"));
    assert!(ran.out.contains("\"redacted\": true") && !ran.out.contains(&token), "{}", ran.out);
    assert_eq!(quipu.ok(&["cat", "/c"]), "line one\npush with [redacted: github-token]\n");
}

#[test]
fn invalid_texts_are_refused() {
    let quipu = Quipu::with_store();
    let refused = |arguments: &[&str], input: &[u8]| quipu.run_with(arguments, input).code;
    assert_eq!(refused(&["put", "/a"], b"a\0b"), 2);
    assert_eq!(refused(&["put", "/a"], b"\xff"), 2);
    assert_eq!(refused(&["put", "/a"], &vec![b'x'; 102_401]), 5);
    assert_eq!(refused(&["put", "/a/../b"], b"x"), 2);
    assert_eq!(refused(&["put", "/e\u{301}"], b"x"), 2);
    assert_eq!(quipu.ok(&["ls"]), "");
    assert_eq!(refused(&["put", "/a"], &vec![b'x'; 102_400]), 0);
}

#[test]
fn settings_come_from_the_file_and_the_environment() {
    let quipu = Quipu::with_store();
    fs::write(quipu.data().join("quipu.toml"), "[limits]\ncontent_size_bytes_max = 4\n")
        .expect("it can be written");
    assert_eq!(quipu.run_with(&["put", "/a"], b"12345").code, 5);
    let mut lenient = quipu.command(&["put", "/a"]);
    lenient.env("QUIPU_LIMITS_CONTENT_SIZE_BYTES_MAX", "5").env("QUIPU_USER", "grace");
    assert_eq!(run(lenient, b"12345").code, 0);
    assert!(quipu.ok(&["log"]).contains("user_grace"));
    fs::write(quipu.data().join("quipu.toml"), "[limit]\n").expect("it can be written");
    let ran = quipu.run(&["ls"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("unknown field `limit`"), "{}", ran.err);
}

#[test]
fn a_backup_opens_as_a_data_directory() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "text");
    let copy = Quipu::empty();
    fs::create_dir(copy.data()).expect("it can be made");
    let file = copy.data().join("quipu.db");
    quipu.ok(&["backup", file.to_str().expect("UTF-8")]);
    assert_eq!(copy.ok(&["cat", "/a"]), "text");
    copy.ok(&["check"]);
    assert_eq!(quipu.run(&["backup", file.to_str().expect("UTF-8")]).code, 2);
    let nowhere = quipu.home.path().join("no/such/directory.db");
    let ran = quipu.run(&["backup", nowhere.to_str().expect("UTF-8")]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("the backup file cannot be written"), "{}", ran.err);
}

#[test]
fn without_data_every_command_gives_a_hint() {
    let quipu = Quipu::empty();
    let ran = quipu.run(&["ls"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("hint: create a store first"), "{}", ran.err);
    assert!(!quipu.data().exists());
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let quipu = Quipu::with_store();
    for number in 0..50 {
        quipu.put("/a", &format!("{number}"));
    }
    let script = format!(
        "'{}' --data '{}' log | head -n 1; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_quipu"),
        quipu.data().display()
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]);
    let ran = run(command, b"");
    assert_eq!((ran.out.lines().last(), ran.err.as_str()), (Some("0"), ""));
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let quipu = Quipu::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(quipu.ok(&["completions", shell]).contains("quipu"));
    }
    assert!(quipu.ok(&["man"]).contains(".TH quipu 1"));
    let directory = quipu.home.path().join("man");
    quipu.ok(&["man", directory.to_str().expect("UTF-8")]);
    assert!(directory.join("quipu-store-create.1").exists());
}
