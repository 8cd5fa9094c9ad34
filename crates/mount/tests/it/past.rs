//! The tree of a store as it was.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use quipu_core::Moment;
use quipu_core::engine::StoreUpdate;
use quipu_core::model::{Access, Actor, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::{Ino, Invalidation, Making, NewFile, Overwrite, ROOT, Tree, TreeError};
use quipu_testkit::InMemoryBackend;

use crate::support::{EMPTY, Fixture, ME, READ, WRITE, fixture, fixture_over};

const DAY: Duration = Duration::from_hours(24);

/// A tree of the past, with the fixture that it is the past of.
struct PastTree {
    tree: Tree,
    invalidations: Receiver<Invalidation>,
}

impl Fixture {
    /// Returns the tree as it is now, to be looked at later.
    fn now(&self) -> PastTree {
        let moment = Moment::Sequence(self.engine.newest_sequence().unwrap());
        let past = self.engine.moment(self.store, &moment).unwrap();
        let (tree, invalidations) =
            Tree::at(&self.engine, &past, self.tree.settings().clone()).unwrap();
        PastTree { tree, invalidations }
    }
}

impl PastTree {
    fn ino(&self, at: &str) -> Result<Ino, TreeError> {
        at.split('/').skip(1).try_fold(ROOT, |parent, name| {
            self.tree.lookup(parent, OsStr::new(name)).map(|found| found.ino)
        })
    }

    fn text(&self, at: &str) -> Result<String, TreeError> {
        let bytes = self.tree.read_unopened(self.ino(at)?, 0, usize::MAX)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    fn list(&self, ino: Ino) -> Vec<String> {
        let handle = self.tree.open_directory(ino).unwrap();
        let entries = self.tree.read_directory(handle, 0).unwrap();
        self.tree.release_directory(handle);
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }
}

#[test]
fn it_shows_what_was_before_edits_moves_and_deletions() {
    let fixture = fixture();
    fixture.put("/tea.md", "green");
    fixture.put("/d/moved.md", "moved");
    fixture.put("/d/deleted.md", "deleted");
    let past = fixture.now();
    fixture.put("/tea.md", "black");
    fixture.move_elsewhere("/d/moved.md", "/elsewhere.md");
    fixture.delete("/d/deleted.md");
    fixture.put("/new.md", "new");
    assert_eq!(past.list(ROOT), ["d", "tea.md"]);
    assert_eq!(past.list(past.ino("/d").unwrap()), ["deleted.md", "moved.md"]);
    assert_eq!(past.text("/tea.md").unwrap(), "green");
    assert_eq!(past.text("/d/moved.md").unwrap(), "moved");
    assert_eq!(past.text("/d/deleted.md").unwrap(), "deleted");
    assert_eq!(past.text("/new.md"), Err(TreeError::NotFound));
    assert!(past.tree.is_frozen(), "the kernel may keep what it has read");
    assert_eq!(past.invalidations.try_iter().count(), 0);
}

#[test]
fn it_refuses_every_write() {
    let fixture = fixture();
    fixture.put("/tea.md", "green");
    let past = fixture.now();
    let (tree, tea) = (&past.tree, past.ino("/tea.md").unwrap());
    let (old, new) = (OsStr::new("tea.md"), OsStr::new("new.md"));
    let made = NewFile { mode: WRITE, making: Making::Openly, is_exclusive: false, creator: ME };
    let refused = Err(TreeError::ReadOnly);
    for mode in [WRITE, EMPTY] {
        assert_eq!(tree.open(tea, mode, ME).map(drop), refused);
    }
    assert_eq!(tree.create(ROOT, new, made).map(drop), refused);
    assert_eq!(tree.make_file(ROOT, new).map(drop), refused);
    assert_eq!(tree.make_directory(ROOT, new).map(drop), refused);
    assert_eq!(tree.remove_file(ROOT, old), refused);
    assert_eq!(tree.remove_directory(ROOT, old), refused);
    assert_eq!(tree.rename((ROOT, old), (ROOT, new), Overwrite::Yes, ME), refused);
    assert_eq!(tree.set((tea, None), Some(0), ME).map(drop), refused);
    assert_eq!(tree.set((tea, None), None, ME).map(drop), refused);
    assert_eq!(fixture.history(), ["created /tea.md"]);
}

#[test]
fn reading_it_keeps_nothing_from_expiring() {
    let fixture = fixture();
    let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    fixture.put("/tea.md", "green");
    let past = fixture.now();
    fixture.clock.advance(DAY * 6);
    let opened = past.tree.open(past.ino("/tea.md").unwrap(), READ, ME).unwrap();
    assert_eq!(past.text("/tea.md").unwrap(), "green");
    past.tree.release(opened.handle);
    past.tree.engine().write_uses().unwrap_or_default();
    fixture.clock.advance(DAY * 2);
    assert_eq!(fixture.engine.prune().unwrap().memories_count, 1);
    assert_eq!(past.text("/tea.md").unwrap(), "green");
}

#[test]
fn a_redaction_takes_the_text_out_of_it() {
    let fixture = fixture();
    let secret = fixture.put("/d/secret.md", "secret");
    fixture.put("/tea.md", "green");
    let past = fixture.now();
    let (directory, file) = (past.ino("/d").unwrap(), past.ino("/d/secret.md").unwrap());
    let opened = past.tree.open(file, READ, ME).unwrap();
    assert_eq!(past.tree.read(file, 0, 99).unwrap(), b"secret");
    fixture.put("/d/secret.md", "clean");
    fixture.engine.redact(&Actor::expiry(), fixture.store, &[secret.version]).unwrap();
    past.tree.follow().unwrap();

    let invalidated: Vec<_> = past.invalidations.try_iter().collect();
    for wanted in [
        Invalidation::Content(file),
        Invalidation::Entry { parent: directory, name: "secret.md".to_owned() },
        Invalidation::Entry { parent: ROOT, name: "d".to_owned() },
    ] {
        assert!(invalidated.contains(&wanted), "{wanted:?}: {invalidated:?}");
    }
    assert!(past.tree.read(file, 0, 99).is_err(), "not even who has it open can read on");
    past.tree.release(opened.handle);
    assert_eq!(past.text("/d/secret.md"), Err(TreeError::NotFound));
    assert_eq!(past.text("/tea.md").unwrap(), "green");
    assert_eq!(past.list(ROOT), [".quipu", "tea.md"]);
    let notice = past.text("/.quipu/notice.md").unwrap();
    let line = format!("- `{}`, version `{}`\n", secret.id, secret.version);
    assert!(notice.contains(&line) && !notice.contains("incomplete"), "{notice}");
    let again = fixture.now();
    assert_eq!(again.tree.notice().unwrap(), None, "nothing is missing from the present");
}

#[test]
fn a_redaction_counts_without_anybody_following() {
    let fixture = fixture();
    let secret = fixture.put("/secret.md", "secret");
    let past = fixture.now();
    let file = past.ino("/secret.md").unwrap();
    fixture.delete("/secret.md");
    fixture.engine.redact(&Actor::expiry(), fixture.store, &[secret.version]).unwrap();
    assert_eq!(past.tree.read_unopened(file, 0, 99), Err(TreeError::Stale));
    assert!(past.tree.open(file, READ, ME).is_err());
    assert_eq!(past.list(ROOT), [".quipu"]);
}

#[test]
fn what_retention_gives_up_is_pointed_out() {
    let limits = Limits { versions_kept_min: 1, ..Limits::default() };
    let fixture = fixture_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    fixture.put("/tea.md", "green");
    fixture.put("/kept.md", "kept");
    let past = fixture.now();
    assert_eq!(
        (past.text("/tea.md").unwrap().as_str(), past.tree.notice().unwrap()),
        ("green", None)
    );
    fixture.clock.advance(DAY);
    fixture.put("/tea.md", "black");
    fixture.clock.advance(DAY * 40);
    fixture.put("/other.md", "new");
    fixture.engine.prune().unwrap();
    assert_eq!(past.text("/tea.md"), Err(TreeError::NotFound));
    assert_eq!(past.text("/kept.md").unwrap(), "kept");
    assert_eq!(past.list(ROOT), [".quipu", "kept.md"]);
    let notice = past.text("/.quipu/notice.md").unwrap();
    assert!(notice.contains("It is incomplete") && notice.contains("complete from"), "{notice}");
    assert!(past.invalidations.try_iter().count() > 0);
}

#[test]
fn a_deleted_store_has_no_past() {
    let fixture = fixture();
    fixture.put("/tea.md", "green");
    let past = fixture.now();
    let file = past.ino("/tea.md").unwrap();
    fixture.engine.delete_store(fixture.store).unwrap();
    past.tree.follow().unwrap();
    assert!(past.invalidations.try_iter().any(|one| one == Invalidation::Content(file)));
    assert_eq!(past.text("/tea.md"), Err(TreeError::Stale));
}
