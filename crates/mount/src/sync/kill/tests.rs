//! Kills a sync at every kill point, changes something, and checks that the next sync does not
//! revert it.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use quipu_core::Engine;
use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::{NewStore, Precondition};
use quipu_core::model::{
    Actor, Content, MemoryPath, Name, Operation, PrincipalName, StoreId, Version, View,
};
use quipu_core::settings::Limits;
use quipu_testkit::{InMemoryBackend, ManualClock};
use tempfile::TempDir;

use super::super::{Action, ActionKind, FolderSync, MassDeletion, Report};

thread_local! {
    /// How many files this thread has read.
    pub(in super::super) static READS: Cell<usize> = const { Cell::new(0) };
    /// How many kill points this thread may still pass, and whom to notify when it is killed.
    static LEFT: Cell<Option<(usize, Sender<&'static str>)>> = const { Cell::new(None) };
}

/// Parks the thread forever at its kill point, so that no destructor runs.
pub(in super::super) fn kill_point(name: &'static str) {
    match LEFT.take() {
        None => {}
        Some((0, killed)) => {
            killed.send(name).unwrap();
            loop {
                thread::park();
            }
        }
        Some((left, killed)) => LEFT.set(Some((left - 1, killed))),
    }
}

struct Case {
    engine: Engine,
    store: StoreId,
    home: TempDir,
    /// Where the sync was killed.
    point: &'static str,
}

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).unwrap()
}

fn ada() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

impl Case {
    fn new() -> Self {
        let backend = Arc::new(InMemoryBackend::default());
        let engine = Engine::new(backend, Arc::new(ManualClock::default()), Limits::default());
        let workspace = engine.default_workspace().unwrap().id;
        let new = NewStore::named(Name::new("notes").unwrap());
        let store = engine.create_store(workspace, &new).unwrap().id;
        Self { engine, store, home: tempfile::tempdir().unwrap(), point: "the end" }
    }

    fn folder_sync(&self) -> FolderSync {
        let engine = self.engine.clone();
        FolderSync::new(engine, self.store, self.home.path(), MassDeletion::Allow).unwrap()
    }

    fn sync(&self) -> Report {
        let sync = self.folder_sync();
        let report = sync.lock().unwrap().run(&()).unwrap();
        assert_eq!(report.failed, [], "killed at {}", self.point);
        report
    }

    /// Starts a sync that is killed after `points` kill points; returns whether it got that far.
    fn killed_after(&mut self, points: usize) -> bool {
        let sync = self.folder_sync();
        let (killed, is_killed) = mpsc::channel();
        thread::spawn(move || {
            LEFT.set(Some((points, killed)));
            let ran = sync.lock().unwrap().run(&());
            ran.unwrap();
        });
        let Ok(point) = is_killed.recv() else { return false };
        self.point = point;
        // A killed process would have lost its lock.
        fs::remove_file(self.home.path().join(".quipu/lock")).unwrap();
        true
    }

    fn file(&self, at: &str) -> PathBuf {
        self.home.path().join(at.trim_start_matches('/'))
    }

    fn write(&self, at: &str, text: &str) {
        fs::write(self.file(at), text).unwrap();
    }

    fn put(&self, at: &str, text: &str) {
        let target = (&path(at), &Content::new(text).unwrap());
        self.engine.put(&ada(), self.store, target, Precondition::None).unwrap();
    }

    fn text(&self, at: &str) -> Option<String> {
        let memory = self.engine.memory_at(self.store, &path(at), View::Full).ok()?;
        memory.content.map(|content| content.as_str().to_owned())
    }

    fn read(&self, at: &str) -> Option<String> {
        fs::read_to_string(self.file(at)).ok()
    }

    fn versions(&self) -> Vec<Version> {
        let filter = VersionFilter::default();
        let query = VersionQuery { filter, before: None, limit: usize::MAX, view: View::Full };
        self.engine.versions(self.store, &query).unwrap().items
    }

    fn has_version(&self, text: &str) -> bool {
        let texts = self.versions().into_iter().filter_map(|version| version.content);
        texts.into_iter().any(|content| content.as_str() == text)
    }

    #[track_caller]
    fn assert_both(&self, at: &str, expected: Option<&str>) {
        let found = (self.read(at), self.text(at));
        let expected = (expected.map(str::to_owned), expected.map(str::to_owned));
        assert_eq!(found, expected, "{at}, killed at: {}", self.point);
    }
}

/// Runs a scenario once for every kill point of its sync, and once without a kill.
#[track_caller]
fn killed_at_every_point(first: impl Fn(&Case), then: impl Fn(&Case)) -> usize {
    for points in 0.. {
        let mut case = Case::new();
        for name in ["/a.md", "/other.md"] {
            case.write(name, "1\n2\n3\n4\n5\n");
        }
        case.sync();
        first(&case);
        let is_killed = case.killed_after(points);
        then(&case);
        if !is_killed {
            return points;
        }
    }
    0
}

#[test]
fn a_newer_text_of_the_store_stays() {
    let points = killed_at_every_point(
        |case| case.put("/a.md", "old\n"),
        |case| {
            case.put("/a.md", "newer\n");
            case.sync();
            case.assert_both("/a.md", Some("newer\n"));
        },
    );
    assert!(points >= 5, "{points}");
}

#[test]
fn a_newer_text_of_the_folder_stays() {
    killed_at_every_point(
        |case| case.write("/a.md", "0\n1\n2\n3\n4\n5\n"),
        |case| {
            // An edit that was undone must not come back by a merge.
            case.write("/a.md", "1\n2\n3\n4\nfive\n");
            case.sync();
            case.assert_both("/a.md", Some("1\n2\n3\n4\nfive\n"));
        },
    );
}

#[test]
fn an_edit_of_what_the_sync_wrote_stays() {
    killed_at_every_point(
        |case| case.put("/a.md", "0\n1\n2\n3\n4\n5\n"),
        |case| {
            let seen = case.read("/a.md").unwrap();
            let has_new = seen.starts_with('0');
            case.write("/a.md", "1\n2\n3\n4\nfive\n");
            case.sync();
            // If the new line was in the file, it was removed; otherwise it is merged in.
            let merged = if has_new { "1\n2\n3\n4\nfive\n" } else { "0\n1\n2\n3\n4\nfive\n" };
            case.assert_both("/a.md", Some(merged));
        },
    );
}

#[test]
fn a_change_of_what_the_sync_stored_stays() {
    killed_at_every_point(
        |case| case.write("/a.md", "folder\n"),
        |case| {
            let has_seen = case.text("/a.md").as_deref() == Some("folder\n");
            case.put("/a.md", "store\n");
            case.sync();
            // If the store did not have the folder's text yet, this is a conflict, and the folder
            // wins.
            case.assert_both("/a.md", Some(if has_seen { "store\n" } else { "folder\n" }));
            assert!(case.has_version("store\n") && case.has_version("folder\n"));
        },
    );
}

#[test]
fn a_new_memory_that_changes_again_stays() {
    killed_at_every_point(
        |case| case.put("/new.md", "old\n"),
        |case| {
            case.put("/new.md", "newer\n");
            case.sync();
            case.assert_both("/new.md", Some("newer\n"));
        },
    );
}

#[test]
fn a_new_file_that_is_deleted_again_stays_deleted() {
    killed_at_every_point(
        |case| case.write("/new.md", "new\n"),
        |case| {
            fs::remove_file(case.file("/new.md")).unwrap();
            case.sync();
            case.assert_both("/new.md", None);
        },
    );
}

#[test]
fn a_new_file_that_is_edited_again_stays() {
    killed_at_every_point(
        |case| case.write("/new.md", "0\n1\n2\n"),
        |case| {
            case.write("/new.md", "1\ntwo\n");
            case.sync();
            case.assert_both("/new.md", Some("1\ntwo\n"));
        },
    );
}

#[test]
fn a_new_memory_that_is_deleted_again_stays_deleted() {
    killed_at_every_point(
        |case| case.put("/new.md", "new\n"),
        |case| {
            case.engine.delete_at(&ada(), case.store, &path("/new.md")).unwrap();
            case.sync();
            case.assert_both("/new.md", None);
        },
    );
}

#[test]
fn a_deleted_file_that_comes_back_stays() {
    killed_at_every_point(
        |case| fs::remove_file(case.file("/a.md")).unwrap(),
        |case| {
            case.write("/a.md", "1\n2\n3\n4\n5\n");
            case.sync();
            case.assert_both("/a.md", Some("1\n2\n3\n4\n5\n"));
        },
    );
}

#[test]
fn a_deleted_memory_that_is_restored_stays() {
    killed_at_every_point(
        |case| drop(case.engine.delete_at(&ada(), case.store, &path("/a.md")).unwrap()),
        |case| {
            let is_old = |it: &&Version| {
                it.operation != Operation::Deleted && it.path == Some(path("/a.md"))
            };
            let version = case.versions().iter().find(is_old).unwrap().id;
            case.engine.restore(&ada(), case.store, version, None).unwrap();
            case.sync();
            case.assert_both("/a.md", Some("1\n2\n3\n4\n5\n"));
        },
    );
}

#[test]
fn a_renamed_memory_that_is_renamed_back_stays() {
    let rename = |case: &Case, from, to| {
        case.engine.rename(&ada(), case.store, &path(from), &path(to)).unwrap();
    };
    killed_at_every_point(
        |case| rename(case, "/a.md", "/b.md"),
        |case| {
            rename(case, "/b.md", "/a.md");
            case.sync();
            case.assert_both("/a.md", Some("1\n2\n3\n4\n5\n"));
            case.assert_both("/b.md", None);
        },
    );
    killed_at_every_point(
        |case| rename(case, "/a.md", "/b.md"),
        |case| {
            case.put("/b.md", "newer\n");
            case.sync();
            case.assert_both("/b.md", Some("newer\n"));
            case.assert_both("/a.md", None);
        },
    );
}

#[test]
fn a_renamed_file_that_is_edited_stays() {
    killed_at_every_point(
        |case| {
            fs::rename(case.file("/a.md"), case.file("/b.md")).unwrap();
            case.write("/b.md", "0\n1\n2\n3\n4\n5\n");
        },
        |case| {
            case.write("/b.md", "1\n2\n3\n4\nfive\n");
            case.sync();
            case.assert_both("/b.md", Some("1\n2\n3\n4\nfive\n"));
            case.assert_both("/a.md", None);
        },
    );
}

#[test]
fn both_sides_of_a_merge_may_change_again() {
    let first = |case: &Case| {
        case.write("/a.md", "one\n2\n3\n4\n5\n");
        case.put("/a.md", "1\n2\n3\n4\nfive\n");
    };
    killed_at_every_point(first, |case| {
        let text = case.text("/a.md").unwrap().replace("five", "FIVE");
        case.put("/a.md", &text);
        case.sync();
        case.assert_both("/a.md", Some("one\n2\n3\n4\nFIVE\n"));
    });
    killed_at_every_point(first, |case| {
        let text = case.read("/a.md").unwrap().replace('3', "three");
        case.write("/a.md", &text);
        case.sync();
        case.assert_both("/a.md", Some("one\n2\nthree\n4\nfive\n"));
    });
    killed_at_every_point(first, |case| {
        let text = case.read("/a.md").unwrap().replace("one", "ONE");
        case.write("/a.md", &text);
        let report = case.sync();
        // If only the store has the merged text, the line that was changed twice looks changed on
        // both sides. Then the folder wins, and the conflict is reported.
        let is_conflict = |action: &Action| matches!(action.kind, ActionKind::Conflict { .. });
        let is_resolved = report.actions.iter().any(is_conflict);
        let last = if is_resolved { "5" } else { "five" };
        let expected = &format!("ONE\n2\n3\n4\n{last}\n");
        case.assert_both("/a.md", Some(expected));
        assert!(case.text("/a.md").unwrap().contains("ONE"));
        assert!(case.has_version("1\n2\n3\n4\nfive\n"));
    });
}

#[test]
fn a_resolved_conflict_may_change_again() {
    let first = |case: &Case| {
        case.write("/a.md", "folder\n");
        case.put("/a.md", "store\n");
    };
    killed_at_every_point(first, |case| {
        let has_seen = case.text("/a.md").as_deref() == Some("folder\n");
        case.put("/a.md", "newer\n");
        case.sync();
        case.assert_both("/a.md", Some(if has_seen { "newer\n" } else { "folder\n" }));
        assert!(case.has_version("newer\n"));
    });
    killed_at_every_point(first, |case| {
        case.write("/a.md", "newer\n");
        case.sync();
        case.assert_both("/a.md", Some("newer\n"));
    });
}

#[test]
fn a_second_sync_after_a_kill_has_nothing_to_do() {
    killed_at_every_point(
        |case| {
            case.put("/b.md", "b\n");
        },
        |case| {
            case.sync();
            assert_eq!(case.sync().actions, []);
        },
    );
}

#[test]
fn only_changed_files_are_read() {
    let case = Case::new();
    for number in 0..50 {
        case.write(&format!("/{number}.md"), "text");
    }
    case.sync();
    // The next sync reads them once more; from then on their stamps are old enough to be trusted.
    thread::sleep(Duration::from_millis(50));
    case.sync();
    READS.set(0);
    assert_eq!(case.sync().in_sync_count, 50);
    assert_eq!(READS.get(), 0);
    case.write("/7.md", "tex7");
    case.put("/8.md", "changed in the store");
    assert_eq!(case.sync().actions.len(), 2);
    assert!(READS.get() < 10, "{}", READS.get());
    case.assert_both("/7.md", Some("tex7"));
    case.assert_both("/8.md", Some("changed in the store"));
}

#[test]
fn an_edit_within_the_timestamp_granularity_is_seen() {
    let case = Case::new();
    for number in 0..100 {
        let text = format!("{number:03}");
        case.write("/a.md", &text);
        case.sync();
        case.assert_both("/a.md", Some(&text));
    }
}
