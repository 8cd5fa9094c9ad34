//! Writing and closing.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use rustix::fs::{Mode, OFlags, open};

use crate::support::{eventually, mounted, needs};

#[test]
fn a_changed_file_is_one_version_when_it_is_closed() {
    let mount = mounted!();
    let mut file = File::create(mount.at("tea.md")).unwrap();
    for line in 0..10 {
        writeln!(file, "line {line}").unwrap();
    }
    assert!(mount.history().is_empty());
    drop(file);
    assert_eq!(mount.history(), ["created /tea.md"]);
    assert_eq!(mount.stored("tea.md").lines().count(), 10);
    fs::write(mount.at("tea.md"), "green").unwrap();
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
}

#[test]
fn closing_without_a_change_makes_no_version() {
    let mount = mounted!();
    mount.ok("echo green > tea.md");
    mount.ok("echo green > tea.md; cat tea.md; : >> tea.md; cp tea.md /dev/null");
    let file = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    let twin = file.try_clone().unwrap();
    drop(file);
    drop(twin);
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn a_shell_redirection_is_one_version() {
    let mount = mounted!();
    mount.ok("echo green > tea.md");
    mount.ok("echo black > tea.md");
    mount.ok("{ echo white; echo red; } > tea.md");
    mount.ok("cat <<< yellow > tea.md");
    let history = ["created /tea.md", "modified /tea.md", "modified /tea.md", "modified /tea.md"];
    mount.assert_one_memory(&history);
    assert_eq!(mount.stored("tea.md"), "yellow\n");
}

#[test]
fn emptying_a_file_is_one_version() {
    let mount = mounted!();
    mount.ok(": > empty.md");
    mount.ok("echo green > tea.md; : > tea.md");
    let history = ["created /empty.md", "created /tea.md", "modified /tea.md"];
    assert_eq!(mount.history(), history);
    assert_eq!(mount.stored("tea.md"), "");
    // A file that is only opened and closed is stored when its last descriptor is gone.
    File::create(mount.at("touched.md")).unwrap();
    mount.wait_for_versions(4);
    assert_eq!(mount.history()[3], "created /touched.md");
}

#[test]
fn appending_adds_to_what_is_stored() {
    let mount = mounted!();
    mount.ok("echo one > list.md; echo two >> list.md; echo three | tee -a list.md");
    assert_eq!(mount.stored("list.md"), "one\ntwo\nthree\n");
    mount.assert_one_memory(&["created /list.md", "modified /list.md", "modified /list.md"]);
    // Two descriptors that empty it and append do not write over each other.
    let open = || {
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::APPEND;
        File::from(open(mount.at("list.md"), flags, Mode::empty()).unwrap())
    };
    let (mut first, mut second) = (open(), open());
    first.write_all(b"four\n").unwrap();
    second.write_all(b"five\n").unwrap();
    first.write_all(b"six\n").unwrap();
    drop((first, second));
    assert_eq!(mount.stored("list.md"), "four\nfive\nsix\n");
}

#[test]
fn syncing_an_open_file_makes_a_version() {
    let mount = mounted!();
    let mut file = File::create(mount.at("tea.md")).unwrap();
    file.write_all(b"green").unwrap();
    file.sync_all().unwrap();
    assert_eq!(mount.stored("tea.md"), "green");
    file.sync_all().unwrap();
    file.write_all(b", 80 degrees").unwrap();
    file.sync_data().unwrap();
    assert_eq!(mount.stored("tea.md"), "green, 80 degrees");
    drop(file);
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
}

#[test]
fn writes_may_go_anywhere() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "0123456789").unwrap();
    let file = OpenOptions::new().read(true).write(true).open(mount.at("tea.md")).unwrap();
    file.write_all_at(b"abcd", 2).unwrap();
    file.write_all_at(b"EFGH", 4).unwrap();
    file.write_all_at(b"!!", 9).unwrap();
    file.set_len(10).unwrap();
    let mut text = [0; 10];
    file.read_exact_at(&mut text, 0).unwrap();
    assert_eq!(&text, b"01abEFGH8!");
    drop(file);
    assert_eq!(mount.stored("tea.md"), "01abEFGH8!");
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
}

#[test]
fn truncating_by_name_is_one_version() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green tea").unwrap();
    mount.ok("truncate -s 5 tea.md");
    assert_eq!(mount.stored("tea.md"), "green");
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
}

#[test]
fn all_handles_of_a_file_share_one_text() {
    let mount = mounted!();
    let mut first = File::create(mount.at("tea.md")).unwrap();
    let options = OpenOptions::new().read(true).write(true).clone();
    let mut second = options.open(mount.at("tea.md")).unwrap();
    first.write_all(b"green").unwrap();
    let mut text = String::new();
    second.read_to_string(&mut text).unwrap();
    assert_eq!(text, "green");
    second.seek(SeekFrom::Start(0)).unwrap();
    second.write_all(b"GR").unwrap();
    assert_eq!(mount.read("tea.md"), "GReen");
    drop(first);
    drop(second);
    assert_eq!(mount.stored("tea.md"), "GReen");
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn a_reader_that_closes_stores_nothing() {
    let mount = mounted!();
    let mut writer = File::create(mount.at("tea.md")).unwrap();
    writer.write_all(b"half of ").unwrap();
    assert_eq!(mount.ok("cat tea.md"), "half of ");
    assert!(mount.history().is_empty());
    writer.write_all(b"it").unwrap();
    drop(writer);
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn a_program_that_only_inherits_a_file_does_not_store_it() {
    let mount = mounted!();
    needs!("python3");
    mount.ok("( sleep 0.1; echo green; sleep 0.1 ) > tea.md");
    assert_eq!(mount.history(), ["created /tea.md"]);
    mount.python(
        "import subprocess\n\
         f = open('tea.md', 'w')\n\
         f.write('half of '); f.flush()\n\
         subprocess.run(['true']); subprocess.run('true; true', shell=True, close_fds=False)\n\
         f.write('it'); f.close()",
    );
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md"]);
    assert_eq!(mount.stored("tea.md"), "half of it");
    // But a program that is left alone with what another one wrote does.
    mount.ok("( echo black; exec 3>&1; sleep 0.2 & ) > tea.md; wait");
    eventually("it is stored", || mount.stored("tea.md") == "black\n");
}

#[test]
fn files_can_be_mapped() {
    let mount = mounted!();
    needs!("python3");
    fs::write(mount.at("tea.md"), "green tea").unwrap();
    let printed = mount.python(
        "import mmap\n\
         with open('tea.md', 'rb') as f:\n\
         \x20   with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m: print(m[6:].decode())\n\
         with open('tea.md', 'r+b') as f:\n\
         \x20   with mmap.mmap(f.fileno(), 0) as m: m[0:5] = b'black'",
    );
    assert_eq!(printed, "tea\n");
    eventually("the mapped write is stored", || mount.stored("tea.md") == "black tea");
}

#[test]
fn a_removed_file_can_be_used_until_it_is_closed() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let options = OpenOptions::new().read(true).write(true).clone();
    let mut file = options.open(mount.at("tea.md")).unwrap();
    fs::remove_file(mount.at("tea.md")).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "green");
    file.write_all(b" and more").unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    drop(file);
    assert_eq!(mount.history(), ["created /tea.md", "deleted /tea.md"]);
    assert!(!mount.at("tea.md").exists());
}

#[test]
fn what_is_written_to_a_replaced_file_is_merged() {
    needs!("setsid");
    let mount = mounted!();
    mount.ok("printf 'one\\ntwo\\n' > tea.md");
    let mut appending = OpenOptions::new().append(true).open(mount.at("tea.md")).unwrap();
    // A process of another session, so that its rename says nothing about this one.
    mount.ok("setsid --wait sed -i s/one/ONE/ tea.md");
    assert_eq!(mount.read("tea.md"), "ONE\ntwo\n");
    appending.write_all(b"important\n").unwrap();
    drop(appending);
    assert_eq!(mount.read("tea.md"), "ONE\ntwo\nimportant\n");
    mount.assert_one_memory(&["created /tea.md", "modified /tea.md", "modified /tea.md"]);
    assert!(!mount.at(".quipu/problems.md").exists());

    let mut writing = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    mount.ok("setsid --wait sed -i s/ONE/1/ tea.md");
    writing.write_all(b"Two").unwrap();
    drop(writing);
    assert_eq!(mount.stored("/tea.md"), "Two\ntwo\nimportant\n");
    assert!(mount.read(".quipu/problems.md").contains("conflicts with a change made elsewhere"));
}
