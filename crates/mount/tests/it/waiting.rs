//! Calls that wait for the disk keep nobody else waiting.

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::{Backend, Purpose, ReadWork, WriteWork};
use quipu_core::model::Access;
use quipu_core::settings::Limits;
use quipu_mount::{Invalidation, Overwrite, ROOT, Tree, TreeError};
use quipu_testkit::{InMemoryBackend, forward_to_inner};

use crate::support::{Fixture, ME, READ, WRITE, fixture_over};

/// How long a call is waited for that should not wait; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// A backend whose writes can be held up before they begin or after their commit.
#[derive(Debug, Default)]
struct SlowBackend {
    inner: InMemoryBackend,
    disk: Mutex<Disk>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Disk {
    held: Option<Held>,
    waiting_count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    BeforeCommit,
    AfterCommit,
}

type SlowCall<'a> = &'a (dyn Fn(&Tree) -> Result<(), TreeError> + Sync);

impl SlowBackend {
    fn hold(&self, held: Held) {
        self.disk.lock().unwrap().held = Some(held);
    }

    fn pass(&self, moment: Held) {
        let mut disk = self.disk.lock().unwrap();
        if disk.held == Some(moment) {
            disk.waiting_count += 1;
            self.changed.notify_all();
            disk = self.changed.wait_while(disk, |disk| disk.held.is_some()).unwrap();
            disk.waiting_count -= 1;
        }
    }

    fn let_go(&self) {
        self.disk.lock().unwrap().held = None;
        self.changed.notify_all();
    }

    /// Waits until this many writes wait for the disk, or the disk goes on.
    fn wait_for_writes(&self, count: usize) {
        let disk = self.disk.lock().unwrap();
        let is_early = |disk: &mut Disk| disk.held.is_some() && disk.waiting_count < count;
        drop(self.changed.wait_while(disk, is_early).unwrap());
    }
}

impl Backend for SlowBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(work)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        self.pass(Held::BeforeCommit);
        let written = self.inner.write(purpose, work);
        self.pass(Held::AfterCommit);
        written
    }

    forward_to_inner!();
}

fn slow_fixture() -> (Arc<SlowBackend>, Fixture) {
    let backend = Arc::new(SlowBackend::default());
    let fixture = fixture_over(Arc::clone(&backend) as _, Access::ReadWrite, Limits::default());
    (backend, fixture)
}

fn read(tree: &Tree, name: &str) -> Result<Vec<u8>, TreeError> {
    let found = tree.lookup(ROOT, name.as_ref())?;
    let handle = tree.open(found.ino, READ, ME)?.handle;
    let bytes = tree.read(found.ino, 0, usize::MAX);
    tree.release(handle);
    bytes
}

/// Runs calls that wait for the disk, and another one that must be done before the disk goes on.
#[track_caller]
fn check(
    (backend, held, tree): (&SlowBackend, Held, &Tree),
    slow: &[SlowCall<'_>],
    quick: impl FnOnce(&Tree) + Send,
) {
    backend.hold(held);
    let is_done = thread::scope(|scope| {
        let slow: Vec<_> = slow.iter().map(|call| scope.spawn(|| call(tree))).collect();
        let (sender, done) = channel();
        scope.spawn(move || {
            backend.wait_for_writes(slow.len());
            quick(tree);
            sender.send(slow).unwrap();
        });
        let slow = done.recv_timeout(PATIENCE);
        backend.let_go();
        let is_done = slow.is_ok();
        let slow = slow.or_else(|_| done.recv()).unwrap();
        for call in slow {
            call.join().unwrap().unwrap();
        }
        is_done
    });
    assert!(is_done, "a call waited for the disk of another one");
}

fn remove(tree: &Tree, name: &str) -> Result<(), TreeError> {
    tree.remove_file(ROOT, name.as_ref())
}

fn rename(tree: &Tree, from: &str, to: &str) -> Result<(), TreeError> {
    tree.rename((ROOT, from.as_ref()), (ROOT, to.as_ref()), Overwrite::Yes, ME)
}

#[test]
fn removals_keep_no_reader_waiting_and_share_the_disk() {
    let (backend, fixture) = slow_fixture();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fixture.put(name, "tea");
    }
    fixture.follow();
    fixture.invalidations();
    let slow: [SlowCall<'_>; 2] = [&|tree| remove(tree, "a.md"), &|tree| remove(tree, "b.md")];
    check((&backend, Held::BeforeCommit, &fixture.tree), &slow, |tree| {
        assert_eq!(read(tree, "c.md").unwrap(), b"tea");
        // Nothing is removed before that is durable.
        assert_eq!(read(tree, "a.md").unwrap(), b"tea");
    });
    assert_eq!(fixture.list("/"), ["c.md"]);
    fixture.follow();
    assert_eq!(
        fixture.invalidations(),
        [],
        "what a mount has done itself is no news to its kernel"
    );
}

#[test]
fn renames_keep_no_reader_waiting() {
    let (backend, fixture) = slow_fixture();
    for name in ["/a.md", "/b.md", "/c.md", "/d.md"] {
        fixture.put(name, name);
    }
    fixture.write("/e.tmp", b"/e.tmp").unwrap();
    let slow: [SlowCall<'_>; 3] =
        [&|tree| rename(tree, "a.md", "new.md"), &|tree| rename(tree, "b.md", "c.md"), &|tree| {
            rename(tree, "e.tmp", "d.md")
        }];
    check((&backend, Held::BeforeCommit, &fixture.tree), &slow, |tree| {
        for name in ["a.md", "b.md", "c.md", "d.md"] {
            assert_eq!(read(tree, name).unwrap(), format!("/{name}").as_bytes());
        }
    });
    assert_eq!(fixture.list("/"), ["c.md", "d.md", "new.md"]);
    let texts = ["/new.md", "/c.md", "/d.md"].map(|name| fixture.text(name).unwrap());
    assert_eq!(texts, ["/a.md", "/b.md", "/e.tmp"]);
    fixture.follow();
    assert_eq!(texts, ["/new.md", "/c.md", "/d.md"].map(|name| fixture.stored(name).unwrap()));
}

#[test]
fn creating_without_opening_and_truncating_by_name_keep_no_reader_waiting() {
    let (backend, fixture) = slow_fixture();
    fixture.put("/a.md", "of a");
    fixture.put("/b.md", "of b");
    let ino = fixture.lookup("/a.md").unwrap().ino;
    let slow: [SlowCall<'_>; 2] =
        [&|tree| tree.make_file(ROOT, "new.md".as_ref()).map(drop), &|tree| {
            tree.truncate((ino, None), 2, ME)
        }];
    check((&backend, Held::BeforeCommit, &fixture.tree), &slow, |tree| {
        assert_eq!(read(tree, "b.md").unwrap(), b"of b");
    });
    assert_eq!(fixture.stored("/a.md").as_deref(), Some("of"));
    assert_eq!(fixture.text("/a.md").as_deref(), Some("of"));
    assert_eq!(fixture.stored("/new.md").as_deref(), Some(""));
    let handle = fixture.open("/a.md", WRITE).unwrap();
    fixture.tree.write(handle, 2, b" tea", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a.md").as_deref(), Some("of tea"));
}

#[test]
fn a_file_that_is_opened_while_it_is_removed_or_replaced_can_be_read_to_its_end() {
    let (backend, fixture) = slow_fixture();
    fixture.put("/a.md", "of a");
    fixture.put("/b.md", "of b");
    fixture.put("/c.md", "of c");
    fixture.follow();
    fixture.clock.advance(Duration::from_mins(1));
    let opened = Mutex::new(Vec::new());
    let slow: [SlowCall<'_>; 2] =
        [&|tree| remove(tree, "a.md"), &|tree| rename(tree, "b.md", "c.md")];
    check((&backend, Held::BeforeCommit, &fixture.tree), &slow, |tree| {
        for name in ["a.md", "c.md"] {
            let ino = tree.lookup(ROOT, name.as_ref()).unwrap().ino;
            let open = tree.open(ino, READ, ME).unwrap();
            // Its size may soon be that of another text.
            assert!(open.is_apart);
            opened.lock().unwrap().push((ino, open.handle));
        }
    });
    let texts = opened.into_inner().unwrap().into_iter().map(|(ino, handle)| {
        let bytes = fixture.tree.read(ino, 0, usize::MAX).unwrap();
        fixture.tree.release(handle);
        String::from_utf8(bytes).unwrap()
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["of a", "of c"]);
    assert_eq!(fixture.text("/c.md").unwrap(), "of b");
}

#[test]
fn own_versions_in_the_feed_are_not_mistaken_for_those_of_another_door() {
    let (backend, fixture) = slow_fixture();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fixture.put(name, name);
        fixture.lookup(name).unwrap();
    }
    fixture.follow();
    fixture.invalidations();
    let slow: [SlowCall<'_>; 2] =
        [&|tree| remove(tree, "a.md"), &|tree| rename(tree, "b.md", "new.md")];
    check((&backend, Held::AfterCommit, &fixture.tree), &slow, |tree| {
        // The feed shows both versions before the calls can tell that they are their own.
        tree.follow().unwrap();
        assert_eq!(tree.lookup(ROOT, "a.md".as_ref()).unwrap_err(), TreeError::NotFound);
        assert_eq!(tree.lookup(ROOT, "b.md".as_ref()).unwrap_err(), TreeError::NotFound);
        assert_eq!(read(tree, "c.md").unwrap(), b"/c.md");
    });
    fixture.follow();
    let moved = fixture.lookup("/new.md").unwrap().ino;
    assert_eq!(fixture.invalidations(), [Invalidation::Attributes(moved)]);
    assert_eq!(fixture.list("/"), ["c.md", "new.md"]);
    assert_eq!(fixture.text("/new.md").unwrap(), "/b.md");
}
