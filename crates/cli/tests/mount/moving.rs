//! Moving and removing.

use std::fs::{self, File};
use std::io::Write as _;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::support::{errno, mounted};

#[test]
fn a_moved_memory_keeps_its_id() {
    let mount = mounted!();
    mount.ok("echo green > tea.md; mkdir drinks; mv tea.md drinks/; mv drinks/tea.md cha.md");
    mount.assert_one_memory(&["created /tea.md", "modified /drinks/tea.md", "modified /cha.md"]);
    assert_eq!(mount.read("cha.md"), "green\n");
    assert!(mount.at("drinks").is_dir());
}

#[test]
fn a_memory_moved_over_an_older_one_keeps_its_id() {
    let mount = mounted!();
    mount.put("/old.md", "old");
    mount.put("/new.md", "new");
    fs::rename(mount.at("new.md"), mount.at("old.md")).unwrap();
    assert_eq!(mount.history()[2..], ["deleted /old.md", "modified /old.md"]);
    let ids = mount.changed_memories();
    assert_eq!((&ids[0], &ids[1]), (&ids[2], &ids[3]));
    assert_eq!(mount.stored("old.md"), "new");
}

#[test]
fn a_file_can_be_moved_while_it_is_written() {
    let mount = mounted!();
    let mut file = File::create(mount.at("tea.md")).unwrap();
    file.write_all(b"green").unwrap();
    fs::rename(mount.at("tea.md"), mount.at("cha.md")).unwrap();
    file.write_all(b" tea").unwrap();
    drop(file);
    assert_eq!(mount.history(), ["created /cha.md"]);
    assert_eq!(mount.stored("cha.md"), "green tea");
}

#[test]
fn a_directory_moves_in_one_step() {
    let mount = mounted!();
    mount.ok("mkdir -p a/b/c a/empty; echo 1 > a/one.md; echo 2 > a/b/two.md; mv a z");
    assert_eq!(
        mount.ok("find . | sort | tr '\\n' ' '"),
        ". ./z ./z/b ./z/b/c ./z/b/two.md ./z/empty ./z/one.md "
    );
    let history = mount.history();
    assert_eq!(history[..2], ["created /a/one.md", "created /a/b/two.md"]);
    assert_eq!(history[2..], ["modified /z/b/two.md", "modified /z/one.md"]);
    assert_eq!(mount.read("z/b/two.md"), "2\n");
}

#[test]
fn removing_a_tree_is_one_deletion_for_each_memory() {
    let mount = mounted!();
    mount.ok("mkdir -p a/b; echo 1 > a/one.md; echo 2 > a/b/two.md; echo 3 > three.md; rm -rf a");
    let mut deleted = mount.history().split_off(3);
    deleted.sort();
    assert_eq!(deleted, ["deleted /a/b/two.md", "deleted /a/one.md"]);
    assert!(!mount.at("a").exists());
    assert_eq!(mount.read("three.md"), "3\n");
}

#[test]
fn empty_directories_live_in_the_mount() {
    let mount = mounted!();
    mount.ok("mkdir -p a/b; echo 1 > a/b/one.md; rm a/b/one.md");
    assert!(mount.at("a/b").is_dir());
    assert_eq!(mount.quipu(&["-s", "notes", "ls"]), "");
    assert_eq!(errno(fs::remove_dir(mount.at("a"))), Errno::NOTEMPTY);
    assert_eq!(errno(fs::create_dir(mount.at("a"))), Errno::EXIST);
    mount.ok("rmdir a/b a");
    assert!(!mount.at("a").exists());
}

#[test]
fn renames_follow_the_rules_of_file_systems() {
    let mount = mounted!();
    mount.ok("mkdir -p d full; echo 1 > f; echo 2 > g; echo 3 > full/x");
    let rename = |from: &str, to: &str| fs::rename(mount.at(from), mount.at(to));
    assert_eq!(errno(rename("d", "f")), Errno::NOTDIR);
    assert_eq!(errno(rename("f", "d")), Errno::ISDIR);
    assert_eq!(errno(rename("d", "full")), Errno::NOTEMPTY);
    assert_eq!(errno(rename("full", "full/inside")), Errno::INVAL);
    assert_eq!(errno(rename("missing", "f")), Errno::NOENT);
    let careful = |from: &str, to: &str, flags| {
        renameat_with(CWD, mount.at(from), CWD, mount.at(to), flags).map_err(std::io::Error::from)
    };
    assert_eq!(errno(careful("f", "g", RenameFlags::NOREPLACE)), Errno::EXIST);
    assert_eq!(errno(careful("f", "g", RenameFlags::EXCHANGE)), Errno::INVAL);
    careful("f", "h", RenameFlags::NOREPLACE).unwrap();
    rename("full", "d").unwrap();
    assert_eq!(mount.read("d/x"), "3\n");
    assert_eq!((mount.read("g").as_str(), mount.read("h").as_str()), ("2\n", "1\n"));
}
