//! Broken environments: what users see when the storage fails.

use std::fs;
use std::process::Command;

use crate::support::{Quipu, SmallDisk, bound_by_permissions, has_python, run};

#[test]
fn a_full_disk_loses_nothing_and_says_so() {
    let Some(disk) = SmallDisk::new(2) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    let text = "x".repeat(60_000);
    let mut stored = Vec::new();
    let failed = loop {
        let path = format!("/{}", stored.len());
        let ran = quipu.run_with(&["put", &path], text.as_bytes());
        if ran.code != 0 {
            break ran;
        }
        stored.push(path);
    };
    assert_eq!(failed.code, 7, "{failed:?}");
    assert!(failed.err.contains("the disk is full"), "{}", failed.err);
    assert!(failed.err.contains("hint: free some space"), "{}", failed.err);
    assert!(!stored.is_empty());
    for path in &stored {
        assert_eq!(quipu.ok(&["cat", path]), text);
    }
    quipu.ok(&["check"]);
}

#[test]
fn a_read_only_disk_is_explained() {
    let Some(disk) = SmallDisk::new(4) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    quipu.put("/a", "text");
    disk.make_read_only();
    let ran = quipu.run_with(&["put", "/b"], b"more");
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains("is on a read-only file system"), "{}", ran.err);
    assert_eq!(quipu.ok(&["cat", "a"]), "text");
    assert!(quipu.ok(&["ls"]).contains("/a"));
}

#[test]
fn a_data_directory_that_is_a_file_is_explained() {
    let quipu = Quipu::empty();
    fs::write(quipu.data(), "not a directory").expect("it can be written");
    let ran = quipu.run(&["store", "create", "notes"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains("the data directory is not a directory"), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn a_data_directory_without_permissions_is_explained() {
    use std::os::unix::fs::PermissionsExt as _;

    let quipu = Quipu::with_store();
    let set_mode = |mode| {
        fs::set_permissions(quipu.data(), fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    set_mode(0o000);
    let ran = run(bound_by_permissions(quipu.command(&["ls"])), b"");
    set_mode(0o700);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains(&format!("data: {}", quipu.data().display())), "{ran:?}");
    // There is no settings file, so it is not what is wrong.
    assert!(!ran.err.contains("quipu.toml"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_rejected() {
    use std::os::unix::ffi::OsStrExt as _;

    let quipu = Quipu::empty();
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.env_clear().env("HOME", quipu.home.path()).args(["store", "create", "notes"]);
    command.env("QUIPU_DATA", std::ffi::OsStr::from_bytes(b"data-\xff"));
    let ran = run(command, b"");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("the variable QUIPU_DATA is not UTF-8"), "{}", ran.err);
}

#[test]
fn a_damaged_database_is_explained_and_kept() {
    let quipu = Quipu::with_store();
    let file = quipu.data().join("quipu.db");
    fs::write(&file, "garbage ".repeat(2000)).expect("it can be written");
    let ran = quipu.run(&["ls"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains("damaged or not a database"), "{}", ran.err);
    assert!(ran.err.contains("quipu restore-backup"), "{}", ran.err);
    assert_eq!(fs::read(&file).expect("it is kept").len(), 16_000);
}

#[test]
fn check_reports_problems_and_rebuilds_derived_data_only() {
    if !has_python() {
        return;
    }
    let quipu = Quipu::with_store();
    quipu.put("/a", "text");
    let damage = |sql: &str| {
        let mut command = Command::new("python3");
        let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
                      c.execute(sys.argv[2]); c.commit()";
        command.args(["-c", script]).arg(quipu.data().join("quipu.db")).arg(sql);
        let ran = run(command, b"");
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    damage("UPDATE stores SET size_bytes = 99");
    let ran = quipu.run(&["check"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("has been rebuilt"), "{}", ran.err);
    damage("UPDATE texts SET content = 'tampered'");
    let ran = quipu.run(&["check"]);
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(ran.out.contains("does not have its hash"), "{}", ran.out);
    assert!(ran.err.contains("found 1 problem"), "{}", ran.err);
}

/// Regression: the text silently went to the only other store.
#[test]
fn a_deleted_default_store_is_not_replaced_by_another_one() {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "work"]);
    quipu.ok(&["store", "create", "other"]);
    quipu.ok(&["store", "default", "work"]);
    quipu.ok(&["store", "delete", "work", "--yes"]);
    let refused = |hint: &str| {
        for command in [&["put", "plan.md"][..], &["ls"], &["store", "default"], &["mcp"]] {
            let ran = quipu.run_with(command, b"x");
            assert_eq!(ran.code, 3, "{command:?}: {ran:?}");
            assert!(ran.err.contains("the default store"), "{command:?}: {ran:?}");
            assert!(ran.err.contains(hint), "{command:?}: {ran:?}");
        }
    };
    refused("quipu store restore work");
    assert_eq!(quipu.ok(&["ls", "--store", "other"]), "");

    quipu.ok(&["store", "restore", "work"]);
    quipu.put("plan.md", "x");
    assert!(quipu.ok(&["ls", "--store", "work"]).contains("plan.md"));
    quipu.ok(&["store", "delete", "--now", "work", "--yes"]);
    refused("quipu store default NAME");
    assert_eq!(quipu.ok(&["ls", "--store", "other"]), "");
    quipu.ok(&["store", "default", "other"]);
    quipu.put("plan.md", "x");
    quipu.ok(&["store", "delete", "--now", "other", "--yes"]);
    quipu.ok(&["store", "default", "--clear"]);
}

/// Regression: who may read but not write was told that the data directory cannot be written.
#[cfg(unix)]
#[test]
fn who_may_only_read_can_read_and_search() {
    use std::os::unix::fs::PermissionsExt as _;

    let quipu = Quipu::with_store();
    quipu.put("/a.md", "giraffe");
    let set_mode = |path: &std::path::Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let protect = || {
        for entry in fs::read_dir(quipu.data()).expect("a directory") {
            set_mode(&entry.expect("an entry").path(), 0o444);
        }
        set_mode(&quipu.data(), 0o555);
    };
    let bound = |arguments: &[&str]| run(bound_by_permissions(quipu.command(arguments)), b"text");
    let reads = || {
        for (command, expected) in [
            (&["cat", "a.md"][..], "giraffe"),
            (&["ls"], "a.md"),
            (&["search", "giraffe"], "/a.md"),
            (&["check"], "1 memory"),
        ] {
            let ran = bound(command);
            assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
            assert!(ran.out.contains(expected), "{command:?}: {ran:?}");
        }
    };
    protect();
    reads();
    let refused = bound(&["put", "b.md"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(refused.err.contains("you may read the data directory, but not write it"));

    // Somebody else has it open, so that a log is there.
    set_mode(&quipu.data(), 0o755);
    for entry in fs::read_dir(quipu.data()).expect("a directory") {
        set_mode(&entry.expect("an entry").path(), 0o644);
    }
    let other = quipu.engine(0);
    assert_ne!(other.workspaces().expect("it reads").len(), 0);
    protect();
    reads();
    drop(other);

    set_mode(&quipu.data(), 0o755);
    set_mode(&quipu.data().join("quipu.db"), 0o000);
    let refused = bound(&["cat", "a.md"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(refused.err.contains("you may not read `"), "{refused:?}");
    assert!(refused.err.contains("quipu.db`"), "{refused:?}");
    set_mode(&quipu.data(), 0o755);
}
