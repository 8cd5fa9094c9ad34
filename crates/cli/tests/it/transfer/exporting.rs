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

#[cfg(unix)]
#[test]
fn a_pipe_in_the_way_is_reported() {
    let quipu = with_history();
    let target = super::folder(&quipu, "out", &[]);
    let made = Command::new("mkfifo").arg(target.join("tea.md")).status().expect("mkfifo runs");
    assert!(made.success());
    let report = quipu.json(&["export", shown(&target), "--overwrite"]);
    assert_eq!(
        report["skipped"][0]["reason"],
        "the path is taken by something that is not a regular file"
    );
    assert_eq!(report["count"], 1);
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

#[test]
fn an_archive_must_be_complete_and_known() {
    let quipu = with_history();
    let target = quipu.home.path().join("store.jsonl");
    quipu.ok(&["export", shown(&target)]);
    let text = read(&target);
    let copy = Quipu::with_store();
    let cut = text.lines().take(4).collect::<Vec<_>>().join("\n");
    let cases = [
        ("cut.jsonl", cut, "3 of 6 versions"),
        ("newer.jsonl", text.replacen("\"version\":1", "\"version\":2", 1), "version 2"),
        ("headless.jsonl", text.lines().skip(1).collect(), "is no archive"),
    ];
    for (name, text, message) in cases {
        let file = quipu.home.path().join(name);
        fs::write(&file, text).expect("it can be written");
        let ran = copy.run(&["import", shown(&file), "--from", "archive"]);
        assert!(ran.code == 2 && ran.err.contains(message), "{ran:?}");
        assert!(ran.err.contains(name), "{ran:?}");
    }
    let file = quipu.home.path().join("lines.jsonl");
    fs::write(&file, text.replace('\n', "\n\n")).expect("it can be written");
    assert_eq!(numbers(&import(&copy, &file, &[])), [2, 0, 0, 0]);

    quipu.put("/tea.md", "white\n");
    let second = quipu.home.path().join("second.jsonl");
    quipu.ok(&["export", shown(&second)]);
    assert_eq!(numbers(&import(&copy, &second, &[])), [0, 1, 1, 0]);
}

/// Runs git in a folder and returns what it printed.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("git prints UTF-8")
}

/// Exports a git repository and returns the report.
fn export_as_git(quipu: &Quipu, target: &Path) -> Value {
    export_as_git_with(quipu, target, &[])
}

fn export_as_git_with(quipu: &Quipu, target: &Path, variables: &[(&str, &Path)]) -> Value {
    let mut export = quipu.command(&["--json", "export", shown(target), "--as", "git"]);
    // The binary must find git.
    export.env("PATH", option_env!("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin"));
    export.envs(variables.iter().copied());
    let ran = run(export, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).expect("the output is JSON")
}

/// Returns the files of a repository's newest commit with their texts.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let names = git(folder, &["ls-tree", "-r", "-z", "--name-only", "main"]);
    let text = |name: &str| git(folder, &["show", &format!("main:{name}")]);
    names.split_terminator('\0').map(|name| (format!("/{name}"), text(name))).collect()
}

/// Returns the memories of a store with their texts.
fn memories(quipu: &Quipu) -> Vec<(String, String)> {
    let paths = quipu.ok(&["ls", "-R"]);
    paths.lines().map(|path| (path.to_owned(), quipu.ok(&["cat", path]))).collect()
}

#[test]
fn a_git_export_leaves_the_repository_of_the_surroundings_alone() {
    let quipu = with_history();
    let other = quipu.home.path().join("other");
    fs::create_dir_all(&other).expect("a folder can be made");
    git(&other, &["init", "--quiet", "--initial-branch", "main"]);
    fs::write(other.join("work.txt"), "precious").expect("it can be written");
    let (directory, index) = (other.join(".git"), other.join(".git/index"));
    let config = other.join(".git/config");
    let before = read(&config);
    let target = quipu.home.path().join("repository");
    let variables = [
        ("GIT_DIR", directory.as_path()),
        ("GIT_WORK_TREE", &other),
        ("GIT_INDEX_FILE", &index),
        ("GIT_COMMON_DIR", &directory),
        ("GIT_NAMESPACE", Path::new("elsewhere")),
    ];
    export_as_git_with(&quipu, &target, &variables);
    assert_eq!(tree(&target), memories(&quipu));
    assert_eq!(read(&other.join("work.txt")), "precious");
    assert_eq!(read(&config), before);
    assert!(!index.exists() && git(&other, &["for-each-ref"]).is_empty());
}

#[cfg(unix)]
#[test]
fn a_git_that_stops_early_is_no_success() {
    use std::os::unix::fs::PermissionsExt as _;
    let quipu = with_history();
    // More than fits into the pipe.
    quipu.put("/big.md", &"x".repeat(100_000));
    let bin = super::folder(&quipu, "bin", &[]);
    let script = "#!/bin/sh\ncase \"$*\" in *fast-import*) exec 0<&-; exit 3;; esac\n";
    fs::write(bin.join("git"), script).expect("it can be written");
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).expect("it can be set");
    let target = quipu.home.path().join("repository");
    let mut export = quipu.command(&["export", shown(&target), "--as", "git"]);
    export.env("PATH", &bin);
    let ran = run(export, b"");
    assert!(ran.code == 1 && ran.err.contains("git fast-import failed"), "{ran:?}");
}

#[test]
fn errors_name_the_place() {
    let quipu = with_history();
    let file = quipu.home.path().join("file");
    fs::write(&file, "x").expect("it can be written");
    for form in ["folder", "git", "archive"] {
        let ran = quipu.run(&["export", shown(&file.join("below")), "--as", form]);
        assert!(ran.code != 0 && ran.err.contains(shown(&file)), "{ran:?}");
    }
}

/// Redacts the second-newest version of a memory.
fn redact(quipu: &Quipu, path: &str) {
    let log = quipu.json(&["log", path]);
    let id = log.pointer("/data/1/id").and_then(Value::as_str).expect("an id");
    quipu.ok(&["redact", id, "--yes"]);
}

#[test]
fn a_redacted_rename_costs_no_other_memory_its_file() {
    let quipu = Quipu::with_store();
    quipu.put("/x.md", "first");
    quipu.ok(&["mv", "/x.md", "/y.md"]);
    quipu.put("/x.md", "second");
    quipu.put("/y.md", "first, changed");
    redact(&quipu, "/y.md");
    // The same with a directory where the file was, and a file where the directory was.
    quipu.put("/d", "was a file");
    quipu.ok(&["mv", "/d", "/e"]);
    quipu.put("/d/inside.md", "below");
    quipu.put("/e", "was a file, changed");
    redact(&quipu, "/e");
    quipu.put("/f/inside.md", "was below");
    quipu.ok(&["mv", "/f/inside.md", "/g.md"]);
    quipu.put("/f", "above");
    quipu.put("/g.md", "was below, changed");
    redact(&quipu, "/g.md");

    let target = quipu.home.path().join("repository");
    export_as_git(&quipu, &target);
    assert_eq!(tree(&target), memories(&quipu));
    assert_eq!(tree(&target).len(), 6);
}

#[test]
fn no_export_writes_what_git_obeys() {
    let quipu = with_history();
    let traps = ["/.git/hooks/post-checkout", "/a/.GIT/config", "/git~1/config", "/.git /x"];
    for trap in traps {
        quipu.put(trap, "#!/bin/sh\ntouch owned\n");
    }
    let target = quipu.home.path().join("out");
    let report = quipu.json(&["export", shown(&target)]);
    let left_out = report["skipped"].as_array().expect("a list");
    assert_eq!((&report["count"], left_out.len()), (&2.into(), traps.len()), "{report}");
    for name in [".git", "git~1", ".git ", "a"] {
        assert!(!target.join(name).exists(), "{name}");
    }

    let named = |report: &Value| {
        let paths =
            report["skipped"].as_array().expect("a list").iter().map(|it| it["path"].clone());
        let mut paths: Vec<_> = paths.map(|path| path.to_string()).collect();
        paths.sort();
        paths
    };
    let target = quipu.home.path().join("repository");
    let as_git = export_as_git(&quipu, &target);
    assert_eq!(named(&as_git), named(&report));
    assert_eq!(tree(&target).len(), 2);
}

#[test]
fn attributes_in_the_store_change_no_file_of_the_repository() {
    let quipu = Quipu::with_store();
    quipu.put("/.gitattributes", "* text eol=crlf ident\n*.u working-tree-encoding=UTF-16\n");
    quipu.put("/a.md", "one\n$Id$\n");
    quipu.put("/b.u", "two\n");
    let target = quipu.home.path().join("repository");
    export_as_git(&quipu, &target);
    assert_eq!(read(&target.join("a.md")), "one\n$Id$\n");
    assert_eq!(read(&target.join("b.u")), "two\n");
    assert_eq!(git(&target, &["status", "--porcelain"]), "");
}

#[test]
fn a_git_export_keeps_names_apart_that_differ_in_case() {
    let quipu = Quipu::with_store();
    quipu.put("/Tea.md", "upper");
    quipu.put("/tea.md", "lower");
    quipu.put("/Folder/a.md", "upper");
    quipu.put("/folder/a.md", "lower");
    let config = quipu.home.path().join("gitconfig");
    fs::write(&config, "[core]\n\tignorecase = true\n").expect("it can be written");
    let target = quipu.home.path().join("repository");
    export_as_git_with(&quipu, &target, &[("GIT_CONFIG_GLOBAL", &config)]);
    assert_eq!(tree(&target), memories(&quipu));
}

#[test]
fn a_name_that_git_cannot_have_costs_no_other_memory_its_file() {
    let quipu = with_history();
    let long = format!("/long/{}.md", "x".repeat(300));
    let refused = [long.as_str(), "/.gitattributes/inside.md", "/sub/.gitmodules"];
    for path in refused {
        quipu.put(path, "[submodule \"x\"]\n\turl = -u./payload\n");
    }
    let target = quipu.home.path().join("repository");
    let report = export_as_git(&quipu, &target);
    assert_eq!(report["skipped"].as_array().map(Vec::len), Some(refused.len()), "{report}");
    assert_eq!(tree(&target).len(), 2);
    assert_eq!(git(&target, &["status", "--porcelain"]), "");
    git(&target, &["fsck", "--strict"]);
    let report = quipu.json(&["export", shown(&quipu.home.path().join("out"))]);
    assert_eq!(report["skipped"].as_array().map(Vec::len), Some(refused.len()), "{report}");
}

#[test]
fn an_export_stays_out_of_the_data_directory() {
    let quipu = with_history();
    quipu.put("/data/quipu.db", "not a database");
    for folder in [quipu.data(), quipu.data().join("out/deep")] {
        let ran = quipu.run(&["export", shown(&folder), "--overwrite"]);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert!(!quipu.data().join("out").exists());
    let report = quipu.json(&["export", shown(quipu.home.path()), "--overwrite"]);
    assert_eq!(report["skipped"][0]["reason"], "it would be in Quipu's data directory");
    assert_eq!(quipu.ok(&["cat", "/data/quipu.db"]), "not a database");
}

#[test]
fn a_git_repository_has_one_commit_for_each_version() {
    let quipu = with_history();
    let source = super::folder(&quipu, "more", &[("tea.md", "white\n"), (".x", ""), ("z.md", "z")]);
    import(&quipu, &source, &["--overwrite"]);
    let target = quipu.home.path().join("repository");
    export_as_git(&quipu, &target);

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
