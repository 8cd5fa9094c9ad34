//! `quipu sync`, through the real binary.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Quipu, bound_by_permissions, run, signal};

/// A generous timeout, even for a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

struct Vault {
    quipu: Quipu,
    folder: PathBuf,
}

fn vault() -> Vault {
    let quipu = Quipu::with_store();
    let folder = quipu.home.path().join("vault");
    fs::create_dir(&folder).expect("a folder can be made");
    Vault { quipu, folder }
}

impl Vault {
    fn place(&self) -> &str {
        self.folder.to_str().expect("the path is UTF-8")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("a file can be written");
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "it did not happen");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn both_sides_are_equal_after_a_sync() {
    let vault = vault();
    vault.write("here.md", "here\n");
    vault.write("image.png", "\u{0}");
    vault.quipu.put("/there.md", "there\n");
    let foreseen = vault.quipu.ok(&["sync", vault.place(), "--dry-run"]);
    assert!(foreseen.contains("1 would be changed in the store"), "{foreseen}");
    assert_eq!(vault.read("there.md"), None);
    let out = vault.quipu.ok(&["sync", vault.place()]);
    assert_eq!(
        out,
        "first sync of this folder and store: nothing is deleted\n\
         store   created   /here.md\n\
         folder  created   /there.md\n\
         left out  /image.png: the content has a NUL character at byte 0; memories are text\n\
         2 files in sync, 1 changed in the store, 1 changed in the folder, 1 left out\n"
    );
    assert_eq!(vault.read("there.md").as_deref(), Some("there\n"));
    assert_eq!(vault.quipu.ok(&["cat", "/here.md"]), "here\n");
    assert!(vault.quipu.ok(&["log", "/here.md"]).contains("sesn_"));
    assert!(vault.quipu.ok(&["session", "list"]).contains("sync vault"));
}

#[test]
fn the_data_directory_is_excluded() {
    let vault = vault();
    vault.write("here.md", "here\n");
    let home = vault.quipu.home.path().to_str().expect("the path is UTF-8").to_owned();
    let out = vault.quipu.ok(&["sync", &home]);
    assert!(out.contains("left out  /data: it is Quipu's data directory"), "{out}");
    assert!(out.contains("1 file in sync") && out.contains("1 left out"), "{out}");
    vault.quipu.ok(&["check"]);
    let ran = vault.quipu.run(&["sync", vault.quipu.data().to_str().expect("UTF-8")]);
    assert!(ran.code == 2 && ran.err.contains("data directory"), "{ran:?}");
}

#[test]
fn a_sync_answers_in_json() {
    let vault = vault();
    vault.write("a.md", "a\n");
    vault.quipu.ok(&["sync", vault.place()]);
    vault.write("a.md", "ours\n");
    let theirs = vault.quipu.put("/a.md", "theirs\n");
    let answer = vault.quipu.json(&["sync", vault.place()]);
    let expected = json!({
        "start": "known",
        "in_sync": 1,
        "changes": [{"path": "/a.md", "kind": "conflict", "side": "both", "store_version": theirs}],
        "left_out": [],
        "failed": [],
    });
    assert_eq!(answer, expected);
    assert_eq!(vault.quipu.ok(&["show", "--text", &theirs]), "theirs\n");
}

#[test]
fn exit_codes_distinguish_errors() {
    let vault = vault();
    let missing = vault.quipu.run(&["sync", "/nowhere/at/all"]);
    assert_eq!(missing.code, 3, "{missing:?}");
    vault.write("a.md", "a\n");
    vault.quipu.ok(&["sync", vault.place()]);

    fs::remove_file(vault.folder.join("a.md")).expect("it can be removed");
    let refused = vault.quipu.run(&["sync", vault.place()]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.err.contains("1 of 1 files are gone from the folder"), "{refused:?}");
    assert_eq!(vault.quipu.ok(&["cat", "/a.md"]), "a\n");
    vault.quipu.ok(&["sync", vault.place(), "--allow-mass-deletion"]);
    assert_eq!(vault.quipu.run(&["cat", "/a.md"]).code, 3);

    vault.quipu.ok(&["store", "create", "other"]);
    let foreign = vault.quipu.run(&["sync", vault.place(), "--store", "other"]);
    assert_eq!(foreign.code, 2, "{foreign:?}");

    vault.quipu.ok(&["store", "update", "notes", "--secrets", "reject"]);
    vault.write("keys.md", "key: AKIAIOSFODNN7EXAMPLQ\n");
    let failed = vault.quipu.run(&["sync", vault.place(), "--store", "notes"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("failed    /keys.md: the text holds a credential"), "{failed:?}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_read_is_not_a_deletion() {
    use std::os::unix::fs::PermissionsExt as _;
    let vault = vault();
    let closed = vault.folder.join("closed");
    fs::create_dir(&closed).expect("a folder can be made");
    vault.write("closed/tea.md", "green\n");
    vault.write("other.md", "x\n");
    vault.quipu.ok(&["sync", vault.place()]);
    let set_mode = |mode| {
        fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    set_mode(0o000);
    let sync = vault.quipu.command(&["sync", vault.place()]);
    let ran = run(bound_by_permissions(sync), b"");
    set_mode(0o755);
    assert!(!ran.out.contains("deleted"), "{ran:?}");
    assert!(ran.out.contains("closed"), "{ran:?}");
    assert_eq!(vault.quipu.ok(&["cat", "/closed/tea.md"]), "green\n");
    assert_eq!(vault.read("closed/tea.md").as_deref(), Some("green\n"));
}

#[test]
fn a_watch_follows_other_processes_and_ends_on_a_signal() {
    let vault = vault();
    vault.write("a.md", "a\n");
    let mut command = vault.quipu.command(&["sync", vault.place(), "--watch"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("the output is piped")).lines();
    let ready = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("watching ")));
    assert!(ready.is_some());
    assert_eq!(vault.quipu.ok(&["cat", "/a.md"]), "a\n");

    vault.quipu.put("/b.md", "b\n");
    wait_until(|| vault.read("b.md").as_deref() == Some("b\n"));
    vault.write("c.md", "c\n");
    wait_until(|| vault.quipu.run(&["cat", "/c.md"]).out == "c\n");
    let second = vault.quipu.run(&["sync", vault.place()]);
    assert_eq!(second.code, 4, "only one sync may work on a folder: {second:?}");

    signal(&child, Signal::TERM);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_sync_that_is_killed_loses_nothing_and_the_next_one_finishes() {
    let vault = vault();
    let files_count = 300;
    for number in 0..files_count {
        vault.write(&format!("here{number}.md"), &format!("here {number}\n"));
        // Memories are moved and changed later, so that steps of every kind are interrupted.
        vault.write(&format!("old{number}.md"), &format!("old {number}\n"));
    }
    vault.quipu.ok(&["sync", vault.place()]);
    vault.quipu.ok(&["store", "update", "notes", "--description", "x"]);
    for number in 0..files_count {
        let name = format!("here{number}.md");
        match number % 3 {
            0 => vault.write(&name, &format!("changed {number}\n")),
            1 => fs::remove_file(vault.folder.join(&name)).expect("it can be removed"),
            _ => {
                fs::rename(
                    vault.folder.join(&name),
                    vault.folder.join(format!("moved{number}.md")),
                )
                .expect("it can be renamed");
            }
        }
        vault.write(&format!("new{number}.md"), &format!("new {number}\n"));
    }
    vault.quipu.ok(&["mv", "/old1.md", "/x/old1.md"]);
    for pause in [5_u64, 20, 40, 60, 80, 120, 160] {
        let mut command = vault.quipu.command(&["sync", vault.place()]);
        let mut child = command.stdout(Stdio::null()).spawn().expect("the binary starts");
        thread::sleep(Duration::from_millis(pause));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    vault.quipu.ok(&["sync", vault.place()]);
    let again = vault.quipu.json(&["sync", vault.place()]);
    assert_eq!(again["changes"], json!([]));
    assert_eq!(again["in_sync"], files_count * 3 - files_count / 3);
    for number in (0..files_count).step_by(3) {
        let text = vault.quipu.ok(&["cat", &format!("/here{number}.md")]);
        assert_eq!(text, format!("changed {number}\n"));
    }
    assert_eq!(vault.read("x/old1.md").as_deref(), Some("old 1\n"));
    assert_eq!(vault.quipu.run(&["cat", "/here1.md"]).code, 3);
    vault.quipu.ok(&["check"]);
}

#[test]
fn a_repeated_sync_does_not_repeat_its_report() {
    let vault = vault();
    vault.write("image.png", "\u{0}");
    let first = vault.quipu.ok(&["sync", vault.place()]);
    assert!(first.contains("left out  /image.png: "), "{first}");
    let again = vault.quipu.ok(&["sync", vault.place()]);
    assert_eq!(again, "0 files in sync, 1 still left out\n");
    vault.write("other.png", "\u{0}");
    let more = vault.quipu.ok(&["sync", vault.place()]);
    assert!(more.contains("/other.png") && !more.contains("/image.png"), "{more}");
    let all = vault.quipu.json(&["sync", vault.place()]);
    assert_eq!(all.pointer("/left_out/0/repeated"), Some(&json!(true)), "{all}");
    assert_eq!(all.pointer("/left_out/1/path"), Some(&json!("/other.png")), "{all}");
}

#[test]
fn import_and_sync_agree_on_decomposed_names() {
    let vault = vault();
    vault.write("cafe\u{301}.md", "written on a Mac\n");
    vault.quipu.ok(&["import", vault.place()]);
    vault.quipu.ok(&["sync", vault.place()]);
    let names = || fs::read_dir(&vault.folder).expect("it can be read").count();
    // The note and `.quipu`.
    assert_eq!(names(), 2);
    vault.quipu.put("/caf\u{e9}.md", "changed\n");
    vault.quipu.ok(&["sync", vault.place()]);
    assert_eq!(vault.read("cafe\u{301}.md").as_deref(), Some("changed\n"));
    assert_eq!(names(), 2);
}
