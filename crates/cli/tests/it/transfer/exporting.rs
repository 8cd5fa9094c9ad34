//! Exports.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{import, numbers, shown};
use crate::support::{Quipu, run};

/// A store with every kind of change.
fn with_history() -> Quipu {
    let quipu = Quipu::with_store();
    quipu.put("/tea.md", "green\n");
    quipu.put("/a/b.md", "1\n");
    quipu.put("/tea.md", "green\nblack\n");
    quipu.ok(&["mv", "/a/b.md", "/c \"d\"/é.md"]);
    quipu.put("/gone.md", "x");
    quipu.ok(&["rm", "/gone.md"]);
    quipu
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("the file is there")
}

#[test]
fn a_folder_holds_every_memory() {
    let quipu = with_history();
    let target = quipu.home.path().join("out");
    let report = quipu.json(&["export", shown(&target)]);
    assert_eq!((&report["form"], &report["count"]), (&"folder".into(), &2.into()));
    assert_eq!(read(&target.join("tea.md")), "green\nblack\n");
    assert_eq!(read(&target.join("c \"d\"/é.md")), "1\n");
    assert!(!target.join("gone.md").exists());

    let copy = Quipu::with_store();
    assert_eq!(numbers(&import(&copy, &target, &[])), [2, 0, 0, 0]);
}

#[test]
fn other_files_are_not_replaced_unless_asked() {
    let quipu = with_history();
    let target = quipu.home.path().join("out");
    fs::create_dir_all(&target).expect("a folder can be made");
    fs::write(target.join("tea.md"), "mine").expect("it can be written");
    fs::write(target.join("other.md"), "mine").expect("it can be written");
    let report = quipu.json(&["export", shown(&target)]);
    assert_eq!((&report["count"], &report["skipped"][0]["path"]), (&1.into(), &"/tea.md".into()));
    assert_eq!(read(&target.join("tea.md")), "mine");
    quipu.ok(&["export", shown(&target), "--overwrite"]);
    assert_eq!(read(&target.join("tea.md")), "green\nblack\n");
    assert_eq!(read(&target.join("other.md")), "mine");
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_does_not_lead_out_of_the_folder() {
    let quipu = with_history();
    let (target, outside) = (quipu.home.path().join("out"), quipu.home.path().join("outside"));
    for folder in [&target, &outside] {
        fs::create_dir_all(folder).expect("a folder can be made");
    }
    std::os::unix::fs::symlink(&outside, target.join("c \"d\"")).expect("a link can be made");
    let report = quipu.json(&["export", shown(&target), "--overwrite"]);
    assert_eq!(report["skipped"][0]["reason"], "a symbolic link is in the way");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0);
}

#[test]
fn an_archive_holds_every_version() {
    let quipu = with_history();
    let target = quipu.home.path().join("store.jsonl");
    quipu.ok(&["export", shown(&target)]);
    let text = read(&target);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!((&lines[0]["format"], &lines[0]["version"]), (&"quipu-archive".into(), &1.into()));
    assert_eq!(
        (&lines[0]["store"]["name"], &lines[0]["versions_count"]),
        (&"notes".into(), &6.into())
    );
    let operations: Vec<_> =
        lines[1..].iter().map(|line| line["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["created", "created", "modified", "modified", "created", "deleted"]);
    assert_eq!(lines[1]["content"], "green\n");
    let ran = quipu.run(&["export", shown(&target)]);
    assert_eq!(ran.code, 2, "an archive is never replaced: {ran:?}");

    let copy = Quipu::with_store();
    let report = import(&copy, &target, &[]);
    assert_eq!((&report["kind"], numbers(&report)), (&"archive".into(), [2, 0, 0, 0]));
    assert_eq!(copy.ok(&["cat", "/c \"d\"/é.md"]), "1\n");
}

/// Runs git in a folder and returns what it printed.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("git prints UTF-8")
}

#[test]
fn a_git_repository_has_one_commit_for_each_version() {
    let quipu = with_history();
    let source = super::folder(&quipu, "more", &[("tea.md", "white\n"), (".x", ""), ("z.md", "z")]);
    import(&quipu, &source, &["--overwrite"]);
    let target = quipu.home.path().join("repository");
    let mut export = quipu.command(&["export", shown(&target), "--as", "git"]);
    // The binary finds git as this test does.
    export.env("PATH", option_env!("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin"));
    let ran = run(export, b"");
    assert_eq!(ran.code, 0, "{ran:?}");

    assert_eq!(git(&target, &["rev-list", "--count", "main"]).trim(), "8");
    git(&target, &["fsck", "--strict"]);
    assert_eq!(git(&target, &["status", "--porcelain"]), "");
    assert_eq!(read(&target.join("tea.md")), "white\n");
    assert_eq!(read(&target.join("c \"d\"/é.md")), "1\n");
    assert!(!target.join("a").exists() && !target.join("gone.md").exists());
    let log = git(&target, &["log", "--reverse", "--format=%an|%s", "--", "tea.md"]);
    assert_eq!(
        log,
        "user_ada|created /tea.md\nuser_ada|modified /tea.md\nimport of more (folder)|modified /tea.md\n"
    );
    assert_eq!(git(&target, &["show", "main~7:tea.md"]), "green\n");

    let again = quipu.run(&["export", shown(&target), "--as", "git"]);
    assert_eq!(again.code, 2, "{again:?}");
}
