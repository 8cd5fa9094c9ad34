//! Stores as they were.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::clock::SystemClock;
use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, MemoryPath, StoreId, Timestamp};
use quipu_core::settings::Limits;
use quipu_core::{Clock as _, Engine};
use quipu_sqlite::{OpenMode, SqliteBackend};
use rustix::fs::{AtFlags, CWD, FileType, Mode, linkat, mknodat};
use rustix::io::Errno;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Mount, can_mount, errno, eventually, home, mounted, quipu, run};

/// Returns the present moment as the name of a directory.
fn now() -> String {
    SystemClock.now().to_string()
}

/// Returns the newest version of a memory in `notes`, as the name of a moment.
fn newest(mount: &Mount, path: &str) -> String {
    let text = mount.quipu(&["--json", "-s", "notes", "log", "-n", "1", path]);
    let body: Value = serde_json::from_str(&text).unwrap();
    body["data"][0]["id"].as_str().unwrap().to_owned()
}

/// Returns a home whose store `notes` has a past, and the moment before it changed.
fn home_with_past() -> (TempDir, String) {
    let home = home();
    let notes = |arguments: &[&str], text: &str| {
        let ran = run(quipu(home.path(), &[&["-s", "notes"], arguments].concat()), text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    notes(&["put", "/tea.md"], "green\n");
    notes(&["put", "/d/moved.md"], "moved\n");
    notes(&["put", "/d/deleted.md"], "deleted\n");
    let before = now();
    notes(&["put", "/tea.md"], "black\n");
    notes(&["mv", "/d/moved.md", "/elsewhere.md"], "");
    notes(&["rm", "/d/deleted.md"], "");
    notes(&["put", "/new.md"], "new\n");
    (home, before)
}

/// Returns every file below a directory with its text.
fn texts(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(texts(&entry.path()));
        } else {
            let name = entry.file_name().into_string().unwrap();
            found.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

fn assert_is_before(directory: &Path) {
    let expected = [("deleted.md", "deleted\n"), ("moved.md", "moved\n"), ("tea.md", "green\n")];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(texts(directory), expected);
}

/// Opens the data of a home as another door does.
fn engine(home: &Path, limits: Limits) -> (Engine, StoreId) {
    let backend = SqliteBackend::open(&home.join("data"), OpenMode::Existing).unwrap();
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), limits);
    let workspace = engine.default_workspace().unwrap().id;
    let store = engine.find_store(workspace, "notes").unwrap().id;
    (engine, store)
}

fn put(engine: &Engine, store: StoreId, path: &str, text: &str) -> Timestamp {
    let (path, text) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
    let target = (&path, &text);
    engine.put(&Actor::expiry(), store, target, Precondition::None).unwrap().memory.updated_at
}

#[test]
fn a_store_can_be_mounted_as_it_was() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let named = format!("notes@{before}");
    let mount = Mount::start(home, &["--store", &named]);
    assert_is_before(&mount.root().join(&named));
    assert_eq!(mount.ready["session"], Value::Null, "{}", mount.ready);
    assert_eq!(mount.ready["stores"][0]["access"], "read_only");
    // That of the last version by then.
    let at = mount.ready["stores"][0]["at"].as_str().unwrap();
    assert!(at <= before.as_str(), "{at}");
    let sessions = mount.quipu(&["--json", "session", "list"]);
    assert_eq!(serde_json::from_str::<Value>(&sessions).unwrap()["data"], serde_json::json!([]));
    let mount = Mount::start(mount.stop(), &["--store", "notes", "--at", &before]);
    assert_is_before(&mount.root().join(&named));

    let arguments = ["--store", "notes", "--store", "notes@#5:ro", "--store", "notes@0s  ago"];
    let mount = Mount::start(mount.stop(), &arguments);
    let mut names: Vec<_> =
        fs::read_dir(mount.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["notes", "notes@#5", "notes@0s--ago"]);
    assert_is_before(&mount.root().join("notes@#5"));
    assert_eq!(mount.read("tea.md"), "black\n");

    let refused = |arguments: &[&str]| {
        let ran = run(quipu(mount.home.path(), &[&["mount"], arguments].concat()), b"");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        ran.err
    };
    for written in [&["--store", "notes:rw", "--at", "#5"][..], &["--store", "notes@#5:rw"]] {
        assert!(refused(written).contains("the past of a store is read-only"));
    }
    assert!(refused(&["--store", "notes@soon"]).contains("`soon` is not a moment"));
    let twice = refused(&["--store", "notes@#5", "--store", "notes@#5"]);
    assert!(twice.contains("two stores would be mounted as `notes@#5`"), "{twice}");
}

#[track_caller]
fn assert_read_only(directory: &Path, elsewhere: &Path) {
    let at = |name: &str| directory.join(name);
    let (tea, new) = (at("tea.md"), at("new.md"));
    let opened = [
        OpenOptions::new().write(true).open(&tea),
        OpenOptions::new().append(true).open(&tea),
        OpenOptions::new().write(true).truncate(true).open(&tea),
        File::create(&tea),
        File::create(&new),
        File::create_new(&new),
    ];
    for opened in opened {
        assert_eq!(errno(opened), Errno::ROFS);
    }
    assert_eq!(errno(fs::create_dir(&new)), Errno::ROFS);
    assert_eq!(errno(fs::remove_file(&tea)), Errno::ROFS);
    assert_eq!(errno(fs::remove_dir(at("d"))), Errno::ROFS);
    assert_eq!(errno(fs::rename(&tea, &new)), Errno::ROFS);
    assert_eq!(errno(symlink("tea.md", &new)), Errno::ROFS);
    assert_eq!(linkat(CWD, &tea, CWD, &new, AtFlags::empty()), Err(Errno::ROFS));
    assert_eq!(mknodat(CWD, &new, FileType::RegularFile, Mode::RUSR, 0), Err(Errno::ROFS));
    assert_eq!(errno(File::open(&tea).unwrap().set_modified(std::time::UNIX_EPOCH)), Errno::ROFS);
    let moved =
        [fs::rename(&tea, elsewhere.join("x.md")), fs::rename(elsewhere.join("tea.md"), &new)];
    for moved in moved {
        assert!([Errno::ROFS, Errno::XDEV].contains(&errno(moved)));
    }
    assert_is_before(directory);
}

#[test]
fn the_past_cannot_be_written() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let named = format!("notes@{before}");
    let mount = Mount::start(home, &["--store", "notes", "--store", &named]);
    let history = mount.history();
    let mounted = mount.root().join(&named);
    assert_read_only(&mounted, &mount.at(""));
    assert_read_only(&mount.at(&format!(".quipu/at/{before}")), &mount.at(""));
    for name in [".quipu", ".quipu/at"] {
        assert_eq!(errno(fs::write(mount.at(name).join("x.md"), "x")), Errno::ROFS, "{name}");
        assert_eq!(errno(fs::remove_dir(mount.at(name))), Errno::ROFS, "{name}");
        fs::create_dir(mount.at("new")).unwrap();
        assert_eq!(errno(fs::rename(mount.at("new"), mount.at(name))), Errno::ROFS, "{name}");
        fs::remove_dir(mount.at("new")).unwrap();
    }
    // There is nothing to sync, which is no error.
    for directory in [mounted.clone(), mount.at(&format!(".quipu/at/{before}"))] {
        File::open(directory.join("tea.md")).unwrap().sync_all().unwrap();
        File::open(directory).unwrap().sync_all().unwrap();
    }
    // Nor after a remount, which makes the kernel ask.
    let ran = mount.bash(&format!("mount -i -o remount,rw {mounted:?}"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(errno(File::create(mounted.join("new.md"))), Errno::ROFS);
    assert_eq!(errno(fs::remove_file(mounted.join("tea.md"))), Errno::ROFS);
    assert_eq!(mount.history(), history);
}

#[test]
fn the_past_of_every_mounted_store_is_below_quipu_at() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let past = |mount: &Mount| mount.at(&format!(".quipu/at/{before}"));
    let mount = Mount::start(home, &["--store", "notes"]);
    assert_is_before(&past(&mount));
    assert_eq!(mount.read("tea.md"), "black\n");
    let mount = Mount::start(mount.stop(), &["--store", "notes:ro"]);
    assert_is_before(&past(&mount));
    // The kernel opens the files of an archived store by itself.
    mount.quipu(&["store", "archive", "notes"]);
    let session = mount.ready["session"].as_str().unwrap().to_owned();
    let mount = Mount::start(mount.stop(), &["--session", &session]);
    assert_eq!(mount.read("tea.md"), "black\n");
    assert_is_before(&past(&mount));
    assert_is_before(&past(&mount));
}

#[test]
fn moments_are_names() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let (version, before) = (newest(&mount, "/tea.md"), now());
    fs::write(mount.at("tea.md"), "black").unwrap();
    let text = |moment: &str| fs::read_to_string(mount.at(&format!(".quipu/at/{moment}/tea.md")));
    let spaced = before.replace('T', " ").replace('Z', "");
    for moment in [&version, &before, &spaced] {
        assert_eq!(text(moment).unwrap(), "green", "{moment}");
    }
    assert_eq!(text("0s ago").unwrap(), "black");
    assert_eq!(
        mount.ok("ls '.quipu/at/0s ago' .quipu/at/#3"),
        ".quipu/at/#3:\ntea.md\n\n.quipu/at/0s ago:\ntea.md\n"
    );
    for moment in ["soon", "#999", "2020-01-01", "yesterday", "9999-01-01", ".git", "notes"] {
        assert_eq!(errno(text(moment)), Errno::NOENT, "{moment}");
    }
}

#[test]
fn diff_shows_what_has_changed_since() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let mount = Mount::start(home, &["--store", "notes"]);
    let past = format!(".quipu/at/{before}");
    let ran = mount.bash(&format!("diff -r {past} ."));
    let expected = format!(
        "Only in {past}: d\nOnly in .: elsewhere.md\nOnly in .: new.md\n\
         diff -r {past}/tea.md ./tea.md\n1c1\n< green\n---\n> black\n"
    );
    assert_eq!((ran.code, ran.out, ran.err), (1, expected, String::new()));
    let ran = mount.bash("diff -r '.quipu/at/0s ago' .");
    assert_eq!((ran.code, ran.out, ran.err), (0, String::new(), String::new()));
}

#[test]
fn a_relative_moment_moves_on() {
    let mount = mounted!();
    let ago = || fs::read_to_string(mount.at(".quipu/at/1s ago/tea.md")).ok();
    mount.put("/tea.md", "green");
    eventually("the text is a second old", || ago().as_deref() == Some("green"));
    mount.put("/tea.md", "black");
    eventually("the next one is, too", || ago().as_deref() == Some("black"));
}

#[test]
fn no_program_walks_into_the_past_by_itself() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let before = now();
    assert_eq!(mount.ok("find . | sort"), ".\n./tea.md\n");
    assert_eq!(mount.ok("ls -A .quipu .quipu/at"), ".quipu:\n\n.quipu/at:\n");
    // The report makes the directory appear, but not the past in it.
    let mut file = File::create(mount.at("binary")).unwrap();
    rustix::io::write(&file, b"\xc3").unwrap();
    file.read_to_end(&mut Vec::new()).unwrap_err();
    drop(file);
    eventually("the report is there", || mount.at(".quipu/problems.md").exists());
    assert_eq!(mount.ok("find . | sort"), ".\n./.quipu\n./.quipu/problems.md\n./tea.md\n");
    assert_eq!(mount.read(&format!(".quipu/at/{before}/tea.md")), "green");
    mount.ok("rm -r .quipu");
    assert_eq!(mount.ok("find ."), ".\n./tea.md\n");
    eventually("it is reachable all the same", || mount.at(".quipu/at/0s ago/tea.md").exists());
    // What the store has itself comes first.
    mount.put("/.quipu/at/mine.md", "mine");
    eventually("the memory shows", || mount.at(".quipu/at/mine.md").exists());
    assert!(!mount.at(".quipu/at/0s ago").exists());
}

fn resident_kib(mount: &Mount) -> u64 {
    let status = format!("/proc/{}/status", mount.pid().as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn any_number_of_names_can_be_tried() {
    let mount = mounted!();
    let (engine, store) = engine(mount.home.path(), Limits::default());
    let moments: Vec<_> =
        (0..100).map(|n| put(&engine, store, "/tea.md", &"x".repeat(n * 1000))).collect();
    let names_count = 10_000;
    let mut before = 0;
    for n in 0..names_count {
        if n == names_count / 10 {
            before = resident_kib(&mount);
        }
        let state = n % moments.len();
        let moment = moments[state].plus(Duration::from_micros((n / moments.len()) as u64));
        let next = moments.get(state + 1).copied().unwrap_or(moment);
        let path = mount.at(&format!(".quipu/at/{}/tea.md", moment.min(next)));
        let size = fs::metadata(path).unwrap().len();
        assert!([state * 1000, (state + 1) * 1000].contains(&usize::try_from(size).unwrap()));
        fs::metadata(mount.at(&format!(".quipu/at/nothing {n}"))).unwrap_err();
    }
    let grown = resident_kib(&mount).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more");
}

#[test]
fn a_past_holds_still_while_others_write() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let named = format!("notes@{before}");
    let mount = Mount::start(home, &["--store", "notes", "--store", &named]);
    let (engine, store) = engine(mount.home.path(), Limits::default());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                put(&engine, store, "/tea.md", &format!("{n}"));
                put(&engine, store, &format!("/d/{}.md", n % 50), &format!("{n}"));
            }
        });
        let past = mount.at(&format!(".quipu/at/{before}"));
        for _ in 0..100 {
            assert_is_before(&past);
            assert_is_before(&mount.root().join(&named));
        }
        let listed = mount.ok(&format!("find .quipu/at/{before} -type f | wc -l"));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(listed, "3\n");
    });
}

#[test]
fn a_redaction_reaches_a_mounted_past() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    fs::write(mount.at("leak.md"), "secret").unwrap();
    let (secret, before) = (newest(&mount, "/leak.md"), now());
    fs::write(mount.at("leak.md"), "clean").unwrap();
    let other_root = mount.home.path().join("other").display().to_string();
    let named = format!("notes@{before}");
    mount.quipu(&["mount", "--root", &other_root, "--store", &named, "--detach"]);
    let unmounted = Unmounted(PathBuf::from(&other_root));
    let places = [mount.at(&format!(".quipu/at/{before}")), unmounted.0.join(&named)];
    let leaks = places.each_ref().map(|place| place.join("leak.md"));
    let open = leaks.each_ref().map(|leak| {
        assert_eq!(fs::read_to_string(leak).unwrap(), "secret");
        File::open(leak).unwrap()
    });
    mount.quipu(&["-s", "notes", "redact", &secret, "--yes"]);
    for (leak, open) in leaks.iter().zip(&open) {
        eventually("the file is gone", || fs::read(leak).is_err());
        eventually("who has it open reads nothing", || open.read_at(&mut [0; 6], 0).is_err());
    }
    for place in &places {
        assert_eq!(fs::read_to_string(place.join("tea.md")).unwrap(), "green");
        let notice = fs::read_to_string(place.join(".quipu/notice.md")).unwrap();
        assert!(notice.contains(&secret) && !notice.contains("leak"), "{notice}");
    }
    assert_eq!(mount.read("leak.md"), "clean");
}

/// Unmounts when it is dropped, whether or not the test has failed.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        quipu(&self.0, &["unmount", "--root", self.0.to_str().unwrap()]).status().unwrap();
    }
}

#[test]
fn what_is_missing_from_a_past_is_said() {
    if !can_mount() {
        return;
    }
    let (home, before) = home_with_past();
    let named = format!("notes@{before}");
    let mount = Mount::start(home, &["--store", "notes", "--store", &named]);
    let places = [mount.at(&format!(".quipu/at/{before}")), mount.root().join(&named)];
    for place in &places {
        assert_is_before(place);
        assert!(!place.join(".quipu").exists(), "nothing is missing");
    }
    let limits =
        Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
    assert!(engine(mount.home.path(), limits).0.prune().unwrap().versions_count > 0);
    for place in &places {
        let notice = || fs::read_to_string(place.join(".quipu/notice.md")).unwrap_or_default();
        eventually("the notice is there", || notice().contains("It is incomplete"));
        let names: Vec<_> = texts(place).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["notice.md"]);
    }
    let ran = mount.bash(&format!("diff -r .quipu/at/{before} ."));
    assert!(ran.out.contains(&format!("Only in .quipu/at/{before}: .quipu")), "{ran:?}");
    let home = mount.stop();
    let mount = Mount::start(home, &["--store", &named]);
    let said = fs::read_to_string(mount.home.path().join("log")).unwrap();
    assert!(said.contains(".quipu/notice.md"), "{said}");
}
