//! Other writers that come in between, or that keep the storage busy.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu_core::backend::{Backend, Purpose, ReadWork, WriteWork};
use quipu_core::engine::Precondition;
use quipu_core::model::{Access, Actor, Content, PrincipalName};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_mount::{Overwrite, ROOT, TreeError};
use quipu_testkit::{InMemoryBackend, forward_to_inner};

use crate::support::{Fixture, ME, READ, fixture_over, path};

/// What happens before a write.
type Hook = Box<dyn FnMut() -> Result<(), Error> + Send>;

/// A backend that calls a hook before each write, except those of the hook itself.
#[derive(Default)]
struct ContendedBackend {
    inner: InMemoryBackend,
    before_write: Mutex<Option<Hook>>,
}

impl fmt::Debug for ContendedBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ContendedBackend").finish_non_exhaustive()
    }
}

impl ContendedBackend {
    fn before_write(&self, hook: impl FnMut() -> Result<(), Error> + Send + 'static) {
        *self.before_write.lock().unwrap() = Some(Box::new(hook));
    }

    fn be_busy(&self) {
        self.before_write(|| Err(Error::new(ErrorKind::StorageBusy, "somebody else is writing")));
    }

    fn let_go(&self) {
        *self.before_write.lock().unwrap() = None;
    }
}

impl Backend for ContendedBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(work)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let hook = self.before_write.lock().unwrap().take();
        if let Some(mut hook) = hook {
            let done = hook();
            self.before_write.lock().unwrap().get_or_insert(hook);
            done?;
        }
        self.inner.write(purpose, work)
    }

    forward_to_inner!();
}

fn contended() -> (Arc<ContendedBackend>, Fixture) {
    let backend = Arc::new(ContendedBackend::default());
    let fixture = fixture_over(Arc::clone(&backend) as _, Access::ReadWrite, Limits::default());
    (backend, fixture)
}

/// Another door that creates a memory, or deletes it if it is there.
fn toggling(fixture: &Fixture, at: &str) -> impl FnMut() -> Result<(), Error> + Send + 'static {
    let (engine, store, at) = (fixture.engine.clone(), fixture.store, path(at));
    let ada = Actor::User(PrincipalName::from_host("ada"));
    move || {
        if engine.delete_at(&ada, store, &at).is_err() {
            let theirs = Content::new("theirs").unwrap();
            engine.put(&ada, store, (&at, &theirs), Precondition::None).unwrap();
        }
        Ok(())
    }
}

/// Makes a hook that acts the first time only.
fn once(
    hook: impl FnMut() -> Result<(), Error> + Send + 'static,
) -> impl FnMut() -> Result<(), Error> + Send + 'static {
    only(1, hook)
}

/// Makes a hook that acts before this write only, counted from 1.
fn only(
    number: usize,
    mut hook: impl FnMut() -> Result<(), Error> + Send + 'static,
) -> impl FnMut() -> Result<(), Error> + Send + 'static {
    let mut writes_count = 0;
    move || {
        writes_count += 1;
        if writes_count == number { hook() } else { Ok(()) }
    }
}

/// Returns which write of a rename is the rename itself: while a memory is parked, a call first makes
/// sure that the storage accepts writes.
fn own_write(from: &str) -> usize {
    if from == "/b" { 1 } else { 2 }
}

const A_WHILE: Duration = Duration::from_mins(1);

#[test]
fn a_parked_move_is_stored_as_soon_as_the_storage_is_not_busy() {
    for (backup, settled) in [("/a.bak", "modified /a.bak"), ("/a~", "deleted /a")] {
        let (backend, fixture) = contended();
        fixture.put("/a", "old");
        fixture.rename("/a", backup).unwrap();
        let clock = Arc::clone(&fixture.clock);
        backend.before_write(move || {
            clock.advance(A_WHILE);
            Err(Error::new(ErrorKind::StorageBusy, "somebody else is writing"))
        });
        for _ in 0..3 {
            fixture.clock.advance(A_WHILE);
            let next = fixture.tree.settle_due();
            let is_soon = |next: Duration| next > Duration::ZERO && next < A_WHILE;
            assert!(next.is_some_and(is_soon), "the wait for the storage counts: {next:?}");
            assert_eq!(fixture.list("/"), [backup.trim_start_matches('/')]);
            assert_eq!(fixture.text(backup).as_deref(), Some("old"));
        }
        backend.let_go();
        fixture.clock.advance(A_WHILE);
        assert_eq!(fixture.tree.settle_due(), None);
        assert_eq!(fixture.history(), ["created /a", settled]);
        assert_eq!(fixture.list("/"), [backup.trim_start_matches('/')]);
        fixture.rename(backup, "/b").unwrap();
        assert_eq!(fixture.memories_count(), 1, "it is still the same memory");
    }
}

#[test]
fn a_parked_move_outlives_calls_that_fail_because_the_storage_is_busy() {
    let (backend, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    backend.be_busy();
    assert_eq!(fixture.tree.sync_directory(ROOT), Err(TreeError::Storage));
    assert_eq!(fixture.write("/a.bak", b"new"), Err(TreeError::Storage));
    assert_eq!(fixture.rename("/a.bak", "/b"), Err(TreeError::Storage));
    assert_eq!(fixture.remove("/a.bak"), Err(TreeError::Storage));
    assert_eq!(fixture.list("/"), ["a.bak"]);
    assert_eq!(fixture.text("/a.bak").as_deref(), Some("old"));
    backend.let_go();
    fixture.tree.sync_directory(ROOT).unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /a.bak"]);
}

#[test]
fn closing_the_tree_tries_once_more_to_store_a_parked_move() {
    let (backend, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    let busy = || Err(Error::new(ErrorKind::StorageBusy, "somebody else is writing"));
    backend.before_write(once(busy));
    fixture.tree.close();
    assert_eq!(fixture.history(), ["created /a", "modified /a.bak"]);
}

#[test]
fn a_parked_move_that_is_lost_when_the_tree_is_closed_is_reported() {
    let (backend, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    backend.be_busy();
    fixture.tree.close();
    let report = fixture.text("/.quipu/problems.md").unwrap();
    assert!(report.contains("`/a.bak` was not stored: the storage failed"), "{report}");
}

#[test]
fn a_parked_move_that_is_lost_when_the_tree_is_closed_is_in_the_log() {
    let (backend, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    let mut writes_count = 0;
    backend.before_write(move || {
        writes_count += 1;
        if writes_count <= 2 {
            return Err(Error::new(ErrorKind::StorageBusy, "somebody else is writing"));
        }
        // Long enough for a process that does not wait for the record to have ended.
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    fixture.tree.close();
    let refusals = fixture.engine.refusals(fixture.store, 10).unwrap();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(refusals[0].path, "/a.bak");
}

#[test]
fn a_problem_that_meets_a_busy_storage_is_recorded_in_the_end() {
    let (backend, fixture) = contended();
    backend.be_busy();
    assert_eq!(fixture.write("/a", b"new"), Err(TreeError::Storage));
    backend.let_go();
    fixture.tree.close();
    let refusals = fixture.engine.refusals(fixture.store, 10).unwrap();
    assert_eq!(refusals.iter().map(|refusal| refusal.path.as_str()).collect::<Vec<_>>(), ["/a"]);
}

#[test]
fn a_parked_move_that_is_refused_is_undone_and_reported() {
    let (_, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.put("/a.bak", "theirs");
    fixture.clock.advance(A_WHILE);
    assert_eq!(fixture.tree.settle_due(), None);
    assert_eq!(fixture.list("/"), [".quipu", "a", "a.bak"]);
    for at in ["/a", "/a.bak"] {
        assert_eq!(fixture.text(at), fixture.stored(at), "{at}");
    }
    let report = fixture.text("/.quipu/problems.md").unwrap();
    assert!(report.contains("`/a.bak` was not stored: its path is taken"), "{report}");
}

#[test]
fn a_parked_memory_that_another_door_deletes_is_gone_from_the_mount_too() {
    let (_, fixture) = contended();
    fixture.put("/a", "old");
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.delete("/a");
    fixture.clock.advance(A_WHILE);
    assert_eq!(fixture.tree.settle_due(), None);
    assert!(fixture.list("/").is_empty(), "{:?}", fixture.list("/"));
}

#[test]
fn a_rename_replaces_what_another_door_creates_meanwhile() {
    for from in ["/b", "/b.tmp", "/b.bak"] {
        let (backend, fixture) = contended();
        fixture.put("/b", "ours");
        if from != "/b" {
            fixture.rename("/b", from).unwrap();
        }
        backend.before_write(only(own_write(from), toggling(&fixture, "/a")));
        assert_eq!(fixture.rename(from, "/a"), Ok(()), "{from}");
        backend.let_go();
        assert_eq!(fixture.list("/"), ["a"], "{from}");
        assert_eq!(fixture.text("/a").as_deref(), Some("ours"), "{from}");
        assert_eq!(fixture.stored("/a").as_deref(), Some("ours"), "{from}");
        assert_eq!(fixture.stored("/b"), None, "{from}");
    }
}

/// A text of five lines.
fn lines(first: &str, last: &str) -> String {
    format!("{first}\n2\n3\n4\n{last}\n")
}

/// Saves `/a` by renaming a file over it, while another door stores a text before that write of the rename.
fn save_beside(number: usize, from: &str, theirs: &str) -> Fixture {
    let (backend, fixture) = contended();
    fixture.put("/a", &lines("1", "5"));
    assert_eq!(fixture.text("/a"), Some(lines("1", "5")));
    fixture.put("/a", &lines("1", "V"));
    fixture.write(from, lines("ours", "5").as_bytes()).unwrap();
    let (engine, store) = (fixture.engine.clone(), fixture.store);
    let theirs = Content::new(theirs).unwrap();
    backend.before_write(only(number, move || {
        let ada = Actor::User(PrincipalName::from_host("ada"));
        engine.put(&ada, store, (&path("/a"), &theirs), Precondition::None).map(drop)
    }));
    fixture.rename(from, "/a").unwrap();
    assert_eq!(fixture.text(from), None);
    assert_eq!(fixture.text("/a"), fixture.stored("/a"));
    fixture
}

#[test]
fn a_save_by_rename_keeps_what_another_door_stores_while_it_waits() {
    // A file with an ordinary name is merged first, and then moved.
    for (from, number) in [("/a.tmp", 1), ("/b", 1), ("/b", 2)] {
        let fixture = save_beside(number, from, &lines("1", "theirs"));
        assert_eq!(fixture.stored("/a"), Some(lines("ours", "theirs")), "{from}");
        assert_eq!(fixture.text("/.quipu/problems.md"), None);
    }
}

#[test]
fn a_save_by_rename_that_cannot_be_merged_is_reported() {
    for (from, number) in [("/a.tmp", 1), ("/b", 1), ("/b", 2)] {
        let fixture = save_beside(number, from, &lines("theirs", "5"));
        assert!(fixture.stored("/a").unwrap().starts_with("ours"), "{from}");
        let problems = fixture.text("/.quipu/problems.md").unwrap();
        assert_eq!(problems.matches("`/a` was stored, but conflicts").count(), 1, "{problems}");
    }
}

#[test]
fn what_was_read_after_a_change_is_the_base_of_a_save_by_rename() {
    let (_, fixture) = contended();
    fixture.put("/a", &lines("1", "5"));
    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.tree.open(ino, READ, ME).unwrap().handle;
    fixture.put("/a", &lines("1", "6"));
    let read = fixture.tree.read_open(handle, 0, 100).unwrap();
    assert_eq!(read, lines("1", "6").as_bytes());
    fixture.tree.release(handle);
    fixture.put("/a", &lines("1", "7"));
    fixture.write("/a.tmp", lines("ours", "6").as_bytes()).unwrap();
    fixture.rename("/a.tmp", "/a").unwrap();
    assert_eq!(fixture.stored("/a"), Some(lines("ours", "7")));
    assert_eq!(fixture.list("/"), ["a"], "nothing was overridden");
}

/// The kernel passes on no more than the size that it knows, which is that of the open.
#[test]
fn a_text_that_the_kernel_has_cut_is_no_base() {
    let (_, fixture) = contended();
    let old = lines("1", "5");
    fixture.put("/a", &old);
    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.tree.open(ino, READ, ME).unwrap().handle;
    fixture.put("/a", &format!("{old}6\nadded by another door\n"));
    let read = fixture.tree.read_open(handle, 0, 100).unwrap();
    let cut = String::from_utf8(read[..old.len()].to_vec()).unwrap();
    fixture.tree.release(handle);
    fixture.write("/a.tmp", cut.replace('1', "ours").as_bytes()).unwrap();
    fixture.rename("/a.tmp", "/a").unwrap();
    let expected = format!("{}6\nadded by another door\n", lines("ours", "5"));
    assert_eq!(fixture.stored("/a"), Some(expected));
}

#[test]
fn a_rename_succeeds_although_another_door_deletes_its_target_meanwhile() {
    for from in ["/b", "/b.bak"] {
        let (backend, fixture) = contended();
        fixture.put("/a", "theirs");
        fixture.put("/b", "ours");
        if from != "/b" {
            fixture.rename("/b", from).unwrap();
        }
        backend.before_write(only(own_write(from), toggling(&fixture, "/a")));
        assert_eq!(fixture.rename(from, "/a"), Ok(()), "{from}");
        backend.let_go();
        assert_eq!(fixture.list("/"), ["a"], "{from}");
        assert_eq!(fixture.stored("/a").as_deref(), Some("ours"), "{from}");
        assert_eq!(fixture.stored("/b"), None, "{from}");
    }
}

#[test]
fn a_rename_fails_with_enoent_if_another_door_deletes_its_source_meanwhile() {
    let (backend, fixture) = contended();
    fixture.put("/a", "theirs");
    fixture.put("/b", "ours");
    backend.before_write(once(toggling(&fixture, "/b")));
    assert_eq!(fixture.rename("/b", "/a"), Err(TreeError::NotFound));
    assert_eq!(fixture.text("/a").as_deref(), Some("theirs"));
}

#[test]
fn a_rename_that_must_not_replace_respects_what_appears_meanwhile() {
    let (backend, fixture) = contended();
    fixture.put("/b", "ours");
    backend.before_write(once(toggling(&fixture, "/a")));
    let (from, to) = ((ROOT, "b".as_ref()), (ROOT, "a".as_ref()));
    assert_eq!(fixture.tree.rename(from, to, Overwrite::No, ME), Err(TreeError::Exists));
    assert_eq!(fixture.text("/a").as_deref(), Some("theirs"));
    assert_eq!(fixture.text("/b").as_deref(), Some("ours"));
}

#[test]
fn a_rename_whose_target_never_rests_gives_up_in_the_end() {
    let (backend, fixture) = contended();
    fixture.put("/b", "ours");
    backend.before_write(toggling(&fixture, "/a"));
    assert_eq!(fixture.rename("/b", "/a"), Err(TreeError::Busy));
    backend.let_go();
    assert_eq!(fixture.text("/b").as_deref(), Some("ours"));
    fixture.rename("/b", "/a").unwrap();
    assert_eq!(fixture.list("/"), ["a"]);
}
