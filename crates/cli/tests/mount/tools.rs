//! Tools that people and agents use.

use std::fs;

use crate::support::{mounted, needs};

const TREE: &str = "\
    src=$(mktemp -d); mkdir -p $src/a/b; echo 1 > $src/one.md; echo 2 > $src/a/two.md; \
    echo 3 > $src/a/b/three.md; touch -d 2020-01-01 $src/one.md;";

const COPIED: [&str; 3] =
    ["created /copy/a/b/three.md", "created /copy/a/two.md", "created /copy/one.md"];

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn cp_copies_trees() {
    let mount = mounted!();
    mount.ok(&format!("{TREE} cp -r $src copy; diff -r $src copy; rm -r $src"));
    assert_eq!(sorted(mount.history()), COPIED);
    mount.ok("cp -a copy twin; diff -r copy twin; cp copy/one.md copy/a/two.md");
    assert_eq!(mount.stored("copy/a/two.md"), "1\n");
}

#[test]
fn rsync_copies_trees() {
    let mount = mounted!();
    needs!("rsync");
    mount.ok(&format!(
        "{TREE} rsync -a $src/ copy/; diff -r $src copy; echo changed > $src/one.md; \
         rsync -a --checksum --delete $src/ copy/; diff -r $src copy; rm -r $src"
    ));
    let history = mount.history();
    assert_eq!(sorted(history[..3].to_vec()), COPIED);
    assert_eq!(history[3..], ["modified /copy/one.md"]);
}

#[test]
fn tar_unpacks_trees() {
    let mount = mounted!();
    mount.ok(&format!(
        "{TREE} tar -C $src -cf $src.tar .; mkdir copy; tar -C copy -xf $src.tar; \
         diff -r $src copy; tar -cf - copy | tar -t | wc -l; rm -r $src $src.tar"
    ));
    assert_eq!(sorted(mount.history()), COPIED);
}

#[test]
fn find_and_grep_see_everything() {
    let mount = mounted!();
    mount.ok(&format!("{TREE} cp -r $src copy; rm -r $src"));
    assert_eq!(mount.ok("find copy -name '*.md' | wc -l").trim(), "3");
    assert_eq!(mount.ok("find copy -type d | sort | tr '\\n' ' '"), "copy copy/a copy/a/b ");
    assert_eq!(mount.ok("grep -rl 2 ."), "./copy/a/two.md\n");
    assert_eq!(mount.ok("grep -c . copy/one.md"), "1\n");
}

#[test]
fn ripgrep_searches_everything() {
    let mount = mounted!();
    needs!("rg");
    mount.ok(&format!("{TREE} cp -r $src copy; rm -r $src"));
    assert_eq!(mount.ok("rg --no-heading 3 ."), "./copy/a/b/three.md:3\n");
    assert_eq!(mount.ok("rg --files . | wc -l").trim(), "3");
}

#[test]
fn touch_makes_files_and_leaves_others_alone() {
    let mount = mounted!();
    mount.ok("echo green > tea.md; touch tea.md; touch -d 2020-01-01 tea.md; touch new.md");
    mount.wait_for_versions(2);
    assert_eq!(mount.history(), ["created /tea.md", "created /new.md"]);
}

#[test]
fn git_fails_at_its_first_binary_file() {
    let mount = mounted!();
    needs!("git");
    mount.ok("mkdir project; cd project; git init --quiet .; echo text > file.md");
    let ran = mount.bash("cd project; git -c user.name=a -c user.email=a@b add file.md");
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("Invalid or incomplete multibyte"), "{ran:?}");
    assert_eq!(mount.stored("project/file.md"), "text\n");
    mount.ok("rm -rf project/.git; ls -A project");
}

#[test]
fn large_directories_are_listed_whole() {
    let mount = mounted!();
    mount.ok("mkdir many; for i in $(seq 700); do echo $i > many/$i.md; done");
    assert_eq!(fs::read_dir(mount.at("many")).unwrap().count(), 700);
    mount.ok("rm -rf many");
    assert_eq!(mount.history().len(), 1400);
}
