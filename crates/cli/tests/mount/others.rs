//! Read-only stores, and what others do meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use quipu_core::clock::SystemClock;
use quipu_core::engine::NewStore;
use quipu_core::model::{Actor, Content, MemoryPath, Name, StorePolicy, Timestamp};
use quipu_core::settings::Limits;
use quipu_core::{Clock, Engine};
use quipu_sqlite::{OpenMode, SqliteBackend};
use rustix::io::Errno;
use rustix::process::{Signal, kill_process};

use crate::support::{Mount, can_mount, errno, eventually, mounted, quipu, run};

#[test]
fn a_read_only_store_cannot_be_changed() {
    let mount = mounted!("--store", "notes:ro");
    mount.put("/tea.md", "green");
    assert_eq!(mount.read("tea.md"), "green");
    let at = |name: &str| mount.at(name);
    assert_eq!(errno(fs::write(at("tea.md"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::write(at("new.md"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::remove_file(at("tea.md"))), Errno::ROFS);
    assert_eq!(errno(fs::rename(at("tea.md"), at("cha.md"))), Errno::ROFS);
    assert_eq!(errno(fs::create_dir(at("d"))), Errno::ROFS);
    assert_eq!(mount.bash("chmod 600 tea.md").code, 1);
    assert_eq!(mount.bash("truncate -s 0 tea.md").code, 1);
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn a_remount_does_not_open_a_read_only_store() {
    let mount = mounted!("--store", "notes:ro");
    mount.put("/tea.md", "green");
    let ran = mount.bash("cd /; mount -i -o remount,rw \"$OLDPWD\"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(errno(fs::write(mount.at("tea.md"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::write(mount.at("new.md"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::remove_file(mount.at("tea.md"))), Errno::ROFS);
    assert_eq!(errno(fs::rename(mount.at("tea.md"), mount.at("cha.md"))), Errno::ROFS);
    assert_eq!(errno(fs::create_dir(mount.at("d"))), Errno::ROFS);
    assert_eq!(mount.history(), ["created /tea.md"]);
}

#[test]
fn an_archived_store_turns_read_only() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let mut open = OpenOptions::new().append(true).open(mount.at("tea.md")).unwrap();
    mount.quipu(&["store", "archive", "notes"]);
    assert_eq!(errno(fs::write(mount.at("tea.md"), "x")), Errno::ROFS);
    assert_eq!(errno(fs::remove_file(mount.at("tea.md"))), Errno::ROFS);
    open.write_all(b" tea").unwrap();
    assert_eq!(errno(open.sync_all()), Errno::ROFS);
    drop(open);
    eventually("the stored text is back", || mount.read("tea.md") == "green");
}

#[test]
fn a_deleted_store_answers_with_estale() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let mut open = OpenOptions::new().append(true).open(mount.at("tea.md")).unwrap();
    mount.quipu(&["store", "delete", "notes", "--yes"]);
    eventually("the file is gone", || fs::read(mount.at("tea.md")).is_err());
    assert_eq!(errno(fs::read(mount.at("tea.md"))), Errno::STALE);
    assert_eq!(errno(fs::write(mount.at("new.md"), "x")), Errno::STALE);
    assert_eq!(errno(open.write_all(b"x")), Errno::STALE);
}

#[test]
fn a_deleted_store_that_is_restored_comes_back() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let mut open = OpenOptions::new().append(true).open(mount.at("tea.md")).unwrap();
    mount.quipu(&["store", "delete", "notes", "--yes"]);
    eventually("the file is gone", || fs::read(mount.at("tea.md")).is_err());
    mount.quipu(&["store", "restore", "notes"]);
    eventually("the file is back", || fs::read(mount.at("tea.md")).is_ok());
    assert_eq!(mount.read("tea.md"), "green");
    open.write_all(b" tea").unwrap();
    drop(open);
    assert_eq!(mount.stored("/tea.md"), "green tea");
    fs::write(mount.at("new.md"), "black").unwrap();
    assert_eq!(mount.stored("/new.md"), "black");
}

#[test]
fn an_archived_store_is_mounted_read_only() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let home = mount.stop();
    let archived = run(quipu(home.path(), &["store", "archive", "notes"]), b"");
    assert_eq!(archived.code, 0, "{archived:?}");
    let mount = Mount::start(home, &["--store", "notes", "--store", "team"]);
    assert_eq!(mount.ready["stores"][1]["access"], "read_only");
    assert_eq!(mount.read("tea.md"), "green");
    assert_eq!(errno(fs::write(mount.at("tea.md"), "x")), Errno::ROFS);
    fs::write(mount.root().join("team/plan.md"), "x").unwrap();

    let mount = Mount::start(mount.stop(), &["--store", "notes:ro"]);
    assert!(mount.ready["session"].is_null());
    assert_eq!(mount.read("tea.md"), "green");
    assert_eq!(errno(fs::write(mount.at("new.md"), "x")), Errno::ROFS);
}

#[test]
fn a_missing_data_directory_answers_with_eio() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    fs::remove_dir_all(mount.home.path().join("data")).unwrap();
    // Which call is the first to need the storage depends on what is still open.
    let saved = File::create(mount.at("new.md")).and_then(|mut file| {
        file.write_all(b"lost")?;
        file.sync_all()
    });
    assert_eq!(errno(saved), Errno::IO);
    assert_eq!(errno(fs::remove_file(mount.at("tea.md"))), Errno::IO);
}

#[test]
fn changes_by_other_processes_show_at_once() {
    let mount = mounted!();
    let shows = |path: &str, text: &str| {
        eventually(path, || fs::read_to_string(mount.at(path)).ok().as_deref() == Some(text));
        let size = fs::metadata(mount.at(path)).unwrap().len();
        assert_eq!(size, u64::try_from(text.len()).unwrap());
    };
    assert!(!mount.at("tea.md").exists());
    assert!(!mount.at("a/b/deep.md").exists());
    mount.put("/tea.md", "green");
    shows("tea.md", "green");
    mount.put("/tea.md", "black tea");
    shows("tea.md", "black tea");
    mount.put("/a/b/deep.md", "deep");
    shows("a/b/deep.md", "deep");
    mount.quipu(&["-s", "notes", "mv", "/tea.md", "/cha.md"]);
    shows("cha.md", "black tea");
    eventually("the old name is gone", || !mount.at("tea.md").exists());
    mount.quipu(&["-s", "notes", "rm", "/a/b/deep.md"]);
    eventually("its directories are gone", || !mount.at("a").exists());
    let names = || fs::read_dir(mount.at("")).unwrap().map(|entry| entry.unwrap().file_name());
    eventually("the listing follows", || names().collect::<Vec<_>>() == ["cha.md"]);
}

#[test]
fn changes_of_different_lines_are_merged() {
    let mount = mounted!();
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n{last}\n");
    fs::write(mount.at("list.md"), text("1", "5")).unwrap();
    let mut file = OpenOptions::new().write(true).open(mount.at("list.md")).unwrap();
    file.write_all(text("one", "5").as_bytes()).unwrap();
    mount.put("/list.md", &text("1", "five"));
    file.set_len(12).unwrap();
    drop(file);
    assert_eq!(mount.stored("list.md"), text("one", "five"));
    eventually("the mount shows the merged text", || mount.read("list.md") == text("one", "five"));
    assert_eq!(mount.history().len(), 3);
}

#[test]
fn what_a_program_writes_is_a_change_of_what_it_could_read() {
    let mount = mounted!();
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n{last}\n");
    for theirs in ["V", "a longer last line"] {
        fs::write(mount.at("list.md"), text("1", "5")).unwrap();
        let mut file = OpenOptions::new().read(true).write(true).open(mount.at("list.md")).unwrap();
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        mount.put("/list.md", &text("1", theirs));
        // Others see the new text although this program has not.
        assert_eq!(mount.read("list.md"), text("1", theirs));
        sleep(Duration::from_millis(50));
        file.rewind().unwrap();
        file.write_all(read.replace('1', "I").as_bytes()).unwrap();
        drop(file);
        assert_eq!(mount.stored("list.md"), text("I", theirs));
        assert_eq!(mount.read("list.md"), text("I", theirs));
    }
    // Whoever reads again changes what it has read then.
    let mut file = OpenOptions::new().read(true).write(true).open(mount.at("list.md")).unwrap();
    mount.put("/list.md", "another text\n");
    eventually("the open file shows the new text", || {
        let mut read = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut read).unwrap();
        read == "another text\n"
    });
    file.write_all(b"and more\n").unwrap();
    drop(file);
    assert_eq!(mount.stored("list.md"), "another text\nand more\n");
}

#[test]
fn saving_by_renaming_or_emptying_merges_too() {
    let mount = mounted!();
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n{last}\n");
    fs::write(mount.at("list.md"), text("1", "5")).unwrap();
    for (round, name) in ["list.md.tmp", "new.md", "list.md"].into_iter().enumerate() {
        fs::write(mount.at("list.md"), text("1", "5")).unwrap();
        assert_eq!(mount.read("list.md"), text("1", "5"));
        let theirs = format!("round {round}");
        mount.put("/list.md", &text("1", &theirs));
        fs::write(mount.at(name), text("I", "5")).unwrap();
        if name != "list.md" {
            fs::rename(mount.at(name), mount.at("list.md")).unwrap();
        }
        assert_eq!(mount.stored("list.md"), text("I", &theirs), "{name}");
        assert_eq!(mount.read("list.md"), text("I", &theirs), "{name}");
    }
    let mut ids = mount.changed_memories();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2, "the file of an ordinary name was a memory for a moment");
}

#[test]
fn of_contradicting_changes_the_last_close_wins() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green\n").unwrap();
    let mut file = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    file.write_all(b"black\n").unwrap();
    mount.put("/tea.md", "white\n");
    drop(file);
    assert_eq!(mount.stored("tea.md"), "black\n");
    let history = ["created /tea.md", "modified /tea.md", "modified /tea.md"];
    mount.assert_one_memory(&history);
    let log = mount.quipu(&["-s", "notes", "log", "tea.md"]);
    assert!(log.contains("user_ada"), "{log}");
}

#[test]
fn what_both_sides_append_is_kept() {
    let mount = mounted!();
    fs::write(mount.at("list.md"), "one\n").unwrap();
    let mut file = OpenOptions::new().append(true).open(mount.at("list.md")).unwrap();
    file.write_all(b"three\n").unwrap();
    mount.put("/list.md", "one\ntwo\n");
    drop(file);
    assert_eq!(mount.stored("list.md"), "one\ntwo\nthree\n");
}

#[test]
fn a_file_that_another_door_deletes_is_made_again_by_its_close() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let mut file = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    file.write_all(b"black").unwrap();
    mount.quipu(&["-s", "notes", "rm", "/tea.md"]);
    drop(file);
    assert_eq!(mount.history(), ["created /tea.md", "deleted /tea.md", "created /tea.md"]);
    assert_eq!(mount.stored("tea.md"), "black");
}

#[test]
fn a_file_that_another_door_moves_is_stored_where_it_is() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let mut file = OpenOptions::new().write(true).open(mount.at("tea.md")).unwrap();
    file.write_all(b"black").unwrap();
    mount.quipu(&["-s", "notes", "mv", "/tea.md", "/cha.md"]);
    drop(file);
    mount.assert_one_memory(&["created /tea.md", "modified /cha.md", "modified /cha.md"]);
    assert_eq!(mount.stored("cha.md"), "black");
}

#[test]
fn two_mounts_of_a_store_show_the_same() {
    let mount = mounted!();
    let second = mount.home.path().join("second");
    let root = second.to_str().unwrap();
    mount.quipu(&["mount", "--store", "notes", "--root", root, "--detach"]);
    let shows = |text: &str| {
        let read = |path: std::path::PathBuf| fs::read_to_string(path).ok();
        eventually("both show it", || {
            read(second.join("notes/tea.md")).as_deref() == Some(text)
                && read(mount.at("tea.md")).as_deref() == Some(text)
        });
    };
    for round in 0..20 {
        fs::write(mount.at("tea.md"), format!("first {round}")).unwrap();
        shows(&format!("first {round}"));
        fs::write(second.join("notes/tea.md"), format!("second {round}")).unwrap();
        shows(&format!("second {round}"));
    }
    let mut file = OpenOptions::new().append(true).open(mount.at("tea.md")).unwrap();
    fs::write(second.join("notes/tea.md"), "a longer text\n").unwrap();
    file.write_all(b"and its end\n").unwrap();
    drop(file);
    shows("a longer text\nand its end\n");
    mount.quipu(&["unmount", "--root", root]);
}

#[test]
fn a_mount_works_beside_other_doors() {
    let mount = mounted!();
    let writers: Vec<_> = (0..4)
        .map(|number| {
            let path = mount.at(&format!("mount-{number}.md"));
            std::thread::spawn(move || {
                for round in 0..20 {
                    fs::write(&path, format!("round {round}")).unwrap();
                }
            })
        })
        .collect();
    for round in 0..10 {
        mount.put("/outside.md", &format!("round {round}"));
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(mount.history().len(), 4 * 20 + 10);
    let check = run(quipu(mount.home.path(), &["check"]), b"");
    assert_eq!(check.code, 0, "{check:?}");
}

/// A clock that is wrong by `days`.
#[derive(Debug)]
struct WrongClock {
    days: i32,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let span = Duration::from_hours(24) * self.days.unsigned_abs();
        let now = SystemClock.now();
        if self.days < 0 { now.minus(span) } else { now.plus(span) }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemClock.fill_random(bytes);
    }
}

fn engine(home: &Path, days: i32) -> Engine {
    let backend = SqliteBackend::open(&home.join("data"), OpenMode::Create).unwrap();
    Engine::new(Arc::new(backend), Arc::new(WrongClock { days }), Limits::default())
}

#[test]
fn a_file_that_is_opened_to_be_read_does_not_expire() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    // Moments never go back, so everything is made six days ago.
    let past = engine(home.path(), -6);
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let new = NewStore { policy, ..NewStore::named(Name::new("notes").unwrap()) };
    let notes = past.create_store(past.default_workspace().unwrap().id, &new).unwrap().id;
    for path in ["/read.md", "/unused.md"] {
        let (path, text) = (MemoryPath::parse(path).unwrap(), Content::new("green").unwrap());
        past.create(&Actor::expiry(), notes, &path, &text).unwrap();
    }
    let mut mount = Mount::start(home, &["--store", "notes"]);
    assert_eq!((mount.read("read.md"), mount.read("read.md")), ("green".into(), "green".into()));
    kill_process(mount.pid(), Signal::TERM).unwrap();
    assert_eq!(mount.ended(), Some(0));
    engine(mount.home.path(), 2).prune().unwrap();
    assert_eq!(mount.quipu(&["-s", "notes", "ls"]), "/read.md\n");
}
