//! The data directory in operation: full disks, backups, unknown settings.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::mcp::Host;
use crate::support::{Quipu, SmallDisk};

/// Returns a text of this size.
fn text(size: usize) -> String {
    "a text of some length, ".chars().cycle().take(size).collect()
}

#[test]
fn on_a_full_disk_everything_is_found() {
    let Some(disk) = SmallDisk::new(8) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    let mut count = 0;
    let refused = loop {
        let text = format!("zebra{count} {}", text(60_000));
        let ran = quipu.run_with(&["put", &format!("/{count}.md")], text.as_bytes());
        if ran.code != 0 {
            break ran;
        }
        count += 1;
    };
    assert!(refused.err.contains("the disk is full"), "{refused:?}");
    assert!(count > 10);
    for number in [0, count / 2, count - 1] {
        let found = quipu.ok(&["search", &format!("zebra{number}")]);
        assert!(found.contains(&format!("/{number}.md")), "{number} of {count}: {found}");
    }
}

#[test]
fn on_a_read_only_disk_everything_is_found() {
    let Some(disk) = SmallDisk::new(8) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    quipu.put("/a.md", "giraffe");
    disk.make_read_only();
    assert!(quipu.ok(&["search", "giraffe"]).contains("/a.md"));
    assert!(quipu.ok(&["context", "a"]).contains("/a.md"));
}

#[test]
fn a_search_says_when_recent_changes_may_be_missing() {
    let quipu = Quipu::with_store();
    // No file can be opened there, so nothing can be indexed for good.
    fs::create_dir_all(quipu.data().join("index.db")).expect("a directory is made");
    let search = |words: &str| quipu.json(&["search", words]);
    quipu.put("/small.md", "zebra");
    let found = search("zebra");
    assert_eq!((&found["total"], &found["is_behind"]), (&1.into(), &false.into()), "{found}");
    // More text than a search indexes in memory.
    for number in 0..95 {
        quipu.put(&format!("/{number}.md"), &text(100_000));
    }
    let found = search("length");
    assert_eq!(found["is_behind"], true, "{found}");
    let ran = quipu.run(&["search", "length"]);
    assert!(ran.err.contains("recent changes may be missing"), "{ran:?}");
    let mut host = Host::new(&quipu, &[]);
    let asked = host.ok("search_notes", json!({"query": "length", "project": "notes"}));
    assert_eq!(asked.data["is_behind"], true, "{asked:?}");
    assert!(asked.text.contains("recent changes may be missing"), "{asked:?}");
}

#[test]
fn a_full_disk_can_be_emptied_from_inside() {
    let Some(disk) = SmallDisk::new(6) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    quipu.ok(&["store", "create", "other"]);
    let store = ["--store", "notes"];
    let put = |path: &str| {
        quipu.run_with(&[&store[..], &["put", path]].concat(), text(80_000).as_bytes())
    };
    assert_eq!(put("/first.md").code, 0);
    quipu.ok(&["search", "--store", "notes", "length"]);
    let refused = (0..200).map(|number| put(&format!("/{number}.md"))).find(|ran| ran.code != 0);
    let refused = refused.expect("six megabytes are soon full");
    assert!(refused.err.contains("the disk is full"), "{refused:?}");

    // Reading, searching and starting need no space.
    assert_eq!(quipu.ok(&["cat", "--store", "notes", "first.md"]).len(), 80_000);
    let found = quipu.ok(&["search", "--store", "notes", "length", "--limit", "300"]);
    assert!(found.contains("first.md"), "{found}");
    assert_ne!(put("/more.md").code, 0);

    quipu.ok(&["rm", "--store", "notes", "first.md"]);
    // A store that can be restored keeps its space.
    let refused = quipu.run(&["store", "delete", "notes", "--yes"]);
    assert!(refused.code == 0 || refused.err.contains("quipu store delete --now"), "{refused:?}");
    quipu.ok(&["store", "delete", "--now", "notes", "--yes"]);
    let written = quipu.run_with(&["put", "--store", "other", "room.md"], b"again");
    assert_eq!(written.code, 0, "{written:?}");
    let checked = quipu.json(&["check"]);
    assert_eq!(checked["problems"], serde_json::json!([]));
    assert_eq!(checked["is_erasing_pending"], false);
}

/// Regression: concurrent writers used up the reserve the moment a deletion released it, and then
/// nothing could be deleted any more.
#[test]
fn a_full_disk_is_emptied_while_others_go_on_writing() {
    let Some(disk) = SmallDisk::new(6) else { return };
    let quipu = &disk.0;
    quipu.ok(&["store", "create", "notes"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        for writer in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                for number in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    let path = format!("/{writer}/{number}.md");
                    let text = text(1 + number * 7919 % 90_000);
                    drop(quipu.run_with(&["put", &path], text.as_bytes()));
                }
            });
        }
        let mut texts = (0..2_000).map(|number| format!("{number} {}", text(20_000)));
        let refused =
            texts.find(|text| quipu.run_with(&["put", "/x.md"], text.as_bytes()).code != 0);
        assert!(refused.is_some(), "six megabytes are soon full");
        for _ in 0..40 {
            let listed = quipu.json(&["ls", "--recursive"]);
            let listed = listed["data"].as_array().expect("a list");
            let Some(memory) = listed.first() else { break };
            quipu.ok(&["rm", memory["path"].as_str().expect("a path")]);
        }
        quipu.ok(&["store", "delete", "--now", "notes", "--yes"]);
    });
    assert_eq!(quipu.json(&["check"])["problems"], serde_json::json!([]));
}

/// Runs a closure on drop, even if the test panics.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_backup_is_restored_with_one_command() {
    let quipu = Quipu::with_store();
    quipu.put("/a.md", "backed up");
    let backup = quipu.home.path().join("backup.db");
    let backup = backup.to_str().expect("UTF-8");
    quipu.ok(&["backup", backup]);
    quipu.put("/a.md", "later");
    let database = quipu.data().join("quipu.db");
    fs::write(&database, b"rubbish".repeat(5000)).expect("it is written");
    let damaged = quipu.run(&["cat", "a.md"]);
    assert!(damaged.err.contains("quipu restore-backup"), "{damaged:?}");
    let missing = quipu.run(&["restore-backup", "/nonexistent.db"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("there is no backup at /nonexistent.db"), "{missing:?}");
    let restored = quipu.ok(&["restore-backup", backup]);
    assert!(restored.contains("1 memory"), "{restored}");
    assert!(restored.contains("replaced-1"), "{restored}");
    assert_eq!(quipu.ok(&["cat", "a.md"]), "backed up");
}

/// Regression: the text was still in `replaced-1/quipu.db`, and nothing said so.
#[test]
fn erasing_names_the_old_files_that_it_does_not_reach() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "doomed"]);
    quipu.ok(&["store", "default", "notes"]);
    let leaked = quipu.put("/a.md", "the leaked password");
    quipu.put("/a.md", "nothing to see");
    let backup = quipu.home.path().join("backup.db");
    quipu.ok(&["backup", backup.to_str().expect("UTF-8")]);
    assert_eq!(quipu.run(&["check"]).err, "");
    let restored = quipu.ok(&["restore-backup", backup.to_str().expect("UTF-8")]);
    let old = quipu.data().join("replaced-1");
    assert!(restored.contains("erasing does not reach them"), "{restored}");

    let names = |text: &str| text.contains(&format!("`{}`", old.display()));
    for command in [
        &["redact", &leaked, "--yes"][..],
        &["prune"],
        &["check"],
        &["store", "delete", "--now", "doomed", "--yes"],
    ] {
        let ran = quipu.run(command);
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
        assert!(names(&ran.err), "{command:?}: {ran:?}");
        assert!(ran.err.contains("delete it"), "{command:?}: {ran:?}");
    }
    let checked = quipu.json(&["check"]);
    assert_eq!(checked["problems"], json!([]), "{checked}");
    assert!(names(checked["unreachable"][0].as_str().expect("a sentence")), "{checked}");
    quipu.ok(&["store", "create", "doomed"]);
    let erased = quipu.json(&["store", "delete", "--now", "doomed", "--yes"]);
    assert!(names(erased["unreachable"][0].as_str().expect("a sentence")), "{erased}");

    fs::remove_dir_all(&old).expect("it is removed");
    assert_eq!(quipu.run(&["check"]).err, "");
    assert_eq!(quipu.run(&["redact", &leaked, "--yes"]).err, "");
}

/// Regression: a copy of the database file alone was empty after a command had exited.
#[test]
fn a_copy_of_the_database_file_is_complete_after_a_command() {
    let quipu = Quipu::with_store();
    quipu.put("/a.md", "copied");
    let copy = Quipu::empty();
    fs::create_dir(copy.data()).expect("a directory");
    fs::copy(quipu.data().join("quipu.db"), copy.data().join("quipu.db")).expect("it is copied");
    assert_eq!(copy.ok(&["cat", "a.md"]), "copied");
}

#[test]
fn an_unknown_variable_is_an_error() {
    let quipu = Quipu::with_store();
    let mut command = quipu.command(&["ls"]);
    command.env("QUIPU_LIMITS_VERSIONS_KEPT_MINIMUM", "3");
    let ran = crate::support::run(command, b"");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("QUIPU_LIMITS_VERSIONS_KEPT_MINIMUM"), "{ran:?}");
    assert!(ran.err.contains("did you mean QUIPU_LIMITS_VERSIONS_KEPT_MIN?"), "{ran:?}");
}

#[test]
fn pruning_returns_space_on_request() {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "create", "doomed"]);
    for number in 0..20 {
        let path = format!("/{number}.md");
        let ran = quipu.run_with(&["put", "--store", "doomed", &path], text(80_000).as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    quipu.ok(&["store", "delete", "--now", "doomed", "--yes"]);
    let size = || fs::metadata(quipu.data().join("quipu.db")).expect("a file").len();
    let before = size();
    quipu.ok(&["prune", "--compact"]);
    assert!(size() < before / 2, "{before} bytes became {}", size());
}

/// The index knew a change that the database, put back as it was before, does not have.
#[test]
fn an_older_database_is_searched_with_an_index_of_its_own() {
    let quipu = Quipu::with_store();
    quipu.put("/a.md", "green tea");
    let file = quipu.data().join("quipu.db");
    let older = fs::read(&file).expect("it is read");
    quipu.put("/b.md", "black tea");
    assert_eq!(quipu.json(&["search", "tea"])["total"], 2);
    fs::write(&file, older).expect("it is written");
    assert_eq!(quipu.json(&["search", "tea"])["total"], 1);
    quipu.ok(&["check"]);
}
