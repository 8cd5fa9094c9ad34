//! Recovering from mistakes: confirmation, restoring, finding out who did what.

use crate::support::{Quipu, run};

#[test]
fn destructive_commands_need_yes_without_a_terminal() {
    let quipu = Quipu::with_store();
    let version = quipu.put("/a", "one");
    quipu.put("/a", "two");
    for command in [
        &["redact", version.as_str()][..],
        &["store", "delete", "notes"],
        &["store", "delete", "--now", "notes"],
    ] {
        let ran = quipu.run(command);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("`--yes` confirms"), "{ran:?}");
    }
    assert!(quipu.ok(&["show", &version]).contains("+one"));
    assert_eq!(quipu.ok(&["cat", "/a"]), "two");
}

#[test]
fn a_deleted_store_is_restored_with_everything_in_it() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "zebra\n");
    let deleted = quipu.ok(&["store", "delete", "notes", "--yes"]);
    assert!(deleted.contains("quipu store restore"), "{deleted}");
    assert_eq!(quipu.run(&["cat", "/a"]).code, 3);
    let list = quipu.ok(&["store", "list", "--deleted"]);
    assert!(list.contains("notes") && list.contains(" 1 memory  erased after"), "{list}");
    quipu.ok(&["store", "create", "notes"]);
    let taken = quipu.run(&["store", "restore", "notes"]);
    assert_eq!(taken.code, 3, "{taken:?}");
    assert!(taken.err.contains("--rename"), "{taken:?}");
    quipu.ok(&["store", "restore", "notes", "--rename", "old"]);
    assert_eq!(quipu.ok(&["cat", "/a", "--store", "old"]), "zebra\n");
    assert!(quipu.ok(&["search", "zebra", "--store", "old"]).contains("/a"));
    quipu.ok(&["check"]);

    quipu.ok(&["store", "delete", "old", "--yes"]);
    quipu.ok(&["store", "delete", "--now", "old", "--yes"]);
    assert_eq!(quipu.run(&["store", "restore", "old"]).code, 3);
    assert_eq!(quipu.ok(&["store", "list", "--deleted"]), "");
}

#[test]
fn restore_goes_back_one_step_each_time_and_undoes_a_rename() {
    let quipu = Quipu::with_store();
    for text in ["one", "two", "three"] {
        quipu.put("/a", text);
    }
    quipu.ok(&["mv", "/a", "/b"]);
    quipu.ok(&["restore", "/b"]);
    assert_eq!(quipu.ok(&["ls"]), "/a\n");
    for text in ["two", "one"] {
        quipu.ok(&["restore", "/a"]);
        assert_eq!(quipu.ok(&["cat", "/a"]), text);
    }
    let ran = quipu.run(&["restore", "/a"]);
    assert_eq!(ran.code, 3, "{ran:?}");
}

#[test]
fn a_refused_redaction_names_all_current_versions() {
    let quipu = Quipu::with_store();
    let old = quipu.put("/a", "old");
    let current = [quipu.put("/a", "new"), quipu.put("/b", "other")];
    let ran = quipu.run(&["redact", "--yes", &old, &current[0], &current[1]]);
    assert_eq!(ran.code, 5, "{ran:?}");
    for (version, path) in current.iter().zip(["`/a`", "`/b`"]) {
        assert!(ran.err.contains(version.as_str()) && ran.err.contains(path), "{ran:?}");
    }
    assert!(!ran.err.contains(&old), "{ran:?}");
    assert!(quipu.ok(&["show", &old]).contains("+old"));
}

#[test]
fn the_default_store_is_used_when_none_is_named() {
    let quipu = Quipu::with_store();
    quipu.put("/a", "of notes");
    quipu.ok(&["store", "create", "other"]);
    let twin = quipu.json(&["store", "create", "other"])["id"].as_str().map(str::to_owned);
    let ran = quipu.run(&["cat", "/a"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("quipu store default NAME"), "{ran:?}");
    // Stores with the same name differ only in their ids.
    let twin = twin.expect("an id");
    assert!(ran.err.contains(&twin) && ran.err.contains("`notes`"), "{ran:?}");
    quipu.ok(&["store", "delete", &twin, "--yes"]);
    let data = quipu.data();
    assert!(ran.err.contains(&format!("data: {}", data.display())), "{ran:?}");
    quipu.ok(&["store", "default", "notes"]);
    assert_eq!(quipu.ok(&["cat", "/a"]), "of notes");
    assert!(quipu.ok(&["store", "default"]).contains("`notes`"));
    assert_eq!(quipu.run(&["cat", "/a", "--store", "other"]).code, 3);
    // A deleted store is no longer the default, and neither is a new one with the same name.
    quipu.ok(&["store", "delete", "notes", "--yes"]);
    quipu.ok(&["store", "create", "third"]);
    assert_eq!(quipu.run(&["ls"]).code, 3);
    quipu.ok(&["store", "default", "--clear"]);
    assert_eq!(quipu.ok(&["store", "default"]), "no default store is set\n");
}

#[test]
fn the_log_names_authors_and_finds_them_by_name() {
    let quipu = Quipu::with_store();
    quipu.put("/mine", "by hand");
    let line = br#"{"command":"create","path":"/memories/theirs","file_text":"by an agent"}"#;
    let tool = ["tool", "--store", "notes", "--title", "Nightly review"];
    let ran = quipu.run_with(&tool, &[line.as_slice(), b"\n"].concat());
    assert_eq!(ran.code, 0, "{ran:?}");

    let log = quipu.ok(&["log"]);
    assert!(log.contains("Actor:  Nightly review (sesn_"), "{log}");
    let theirs = quipu.ok(&["log", "--oneline", "--actor", "nightly"]);
    assert!(theirs.contains(" Nightly review /theirs"), "{theirs}");
    assert_eq!(theirs.lines().count(), 1);
    let ours = quipu.ok(&["log", "--oneline", "--actor", "ada"]);
    assert!(ours.contains("/mine") && ours.lines().count() == 1, "{ours}");
    assert_eq!(quipu.run(&["log", "--actor", "no one"]).code, 3);
    // It may be the name of a user, so it is not an error, but a typo must not look like an empty log.
    let none = quipu.run(&["log", "--actor", "adda"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert!(none.err.contains("no versions match"), "{none:?}");
    assert!(quipu.ok(&["recent"]).contains("Nightly review"));
    assert!(quipu.ok(&["search", "agent"]).contains("Nightly review"));

    let sessions = quipu.json(&["session", "list"]);
    let id = sessions["data"][0]["id"].as_str().expect("an id").to_owned();
    let shown = quipu.ok(&["session", "show", &id]);
    assert!(shown.contains("\nChanges:\n") && shown.contains("/theirs"), "{shown}");
    let shown = quipu.json(&["session", "show", &id]);
    assert_eq!(shown["changes"][0]["path"], "/theirs");
}

#[test]
fn the_log_covers_all_stores_and_old_texts() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "other"]);
    let put = |store: &str, path: &str, text: &str| {
        let ran = quipu.run_with(&["put", path, "--store", store], text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    put("notes", "/a", "The Password is swordfish");
    put("other", "/b", "nothing");
    put("notes", "/a", "gone");
    let all = quipu.ok(&["log", "--all", "--oneline"]);
    let places: Vec<_> = all.lines().map(|line| line.split(" user_ada ").nth(1)).collect();
    let starts = ["notes /a", "other /b", "notes /a"];
    assert!(
        places
            .iter()
            .zip(starts)
            .all(|(place, start)| place.is_some_and(|it| it.starts_with(start))),
        "{all}"
    );
    let found = quipu.ok(&["log", "--all", "--oneline", "--grep", "password"]);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains("created"), "{found}");
    assert_eq!(quipu.ok(&["log", "--all", "/b", "--oneline"]).lines().count(), 1);
    assert_eq!(quipu.json(&["log", "--all"])["data"].as_array().map(Vec::len), Some(3));
}

/// On a terminal there is a pager, or else a limit.
#[cfg(target_os = "linux")]
#[test]
fn the_log_is_paged_on_a_terminal() {
    use std::process::Command;

    let quipu = Quipu::with_store();
    for number in 0..60 {
        quipu.put("/a", &number.to_string());
    }
    let on_terminal = |pager: &str| {
        let program = env!("CARGO_BIN_EXE_quipu");
        let data = quipu.data();
        let line = format!("{program} --data {} log --oneline", data.display());
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("PAGER", pager);
        run(command, b"")
    };
    if Command::new("script").arg("--version").output().is_err() {
        crate::support::skipped("the pager needs `script`");
        return;
    }
    let paged = on_terminal("grep --count /a");
    assert_eq!(paged.out.trim(), "60", "{paged:?}");
    // Small systems have no `less`; the log was empty there.
    for pager in ["", "no-such-pager --option"] {
        let cut = on_terminal(pager);
        assert!(cut.out.contains("only the newest 50 versions are shown"), "{cut:?}");
        assert_eq!(cut.out.matches("/a ").count(), 50, "{cut:?}");
    }
}
