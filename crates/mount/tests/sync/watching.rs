//! Watch mode.

use std::fs;
use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::{Error, ErrorKind};
use quipu_mount::sync::{FolderSync, MassDeletion, Stopper, Watch};

use crate::support::{Fixture, ada, fixture, path};

/// A generous timeout, even for a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

struct Watching {
    ended: mpsc::Receiver<Result<(), Error>>,
    stopper: Stopper,
}

/// Starts a watch and returns when the first sync is done.
fn watching(fixture: &Fixture) -> Watching {
    let sync = FolderSync::new(
        fixture.engine.clone(),
        fixture.store,
        &fixture.folder(),
        MassDeletion::Refuse,
    );
    let sync = sync.unwrap();
    let watch = Watch::default();
    let stopper = watch.stopper();
    let (ready, is_ready) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    thread::spawn(move || {
        let locked = sync.lock().unwrap();
        let result = watch.run(&locked, &(), |_| ready.send(()).unwrap_or_default());
        end.send(result).unwrap_or_default();
    });
    is_ready.recv_timeout(PATIENCE).unwrap();
    Watching { ended, stopper }
}

#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "it did not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn changes_of_either_side_are_followed() {
    let fixture = fixture();
    fixture.put("/a.md", "a");
    let watching = watching(&fixture);
    assert_eq!(fixture.read("/a.md").as_deref(), Some("a"));
    fixture.write("/new/b.md", "b");
    wait_until(|| fixture.text("/new/b.md").as_deref() == Some("b"));
    fixture.put("/c.md", "c");
    wait_until(|| fixture.read("/c.md").as_deref() == Some("c"));
    fixture.write("/new/b.md", "b2");
    wait_until(|| fixture.text("/new/b.md").as_deref() == Some("b2"));
    fs::remove_file(fixture.file("/a.md")).unwrap();
    wait_until(|| fixture.text("/a.md").is_none());
    fixture.engine.delete_at(&ada(), fixture.store, &path("/c.md")).unwrap();
    wait_until(|| fixture.read("/c.md").is_none());
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
    fixture.assert_equal();
}

/// Writes a file slowly: opens it, writes it in pieces and closes it.
fn write_slowly(fixture: &Fixture, at: &str) {
    let mut file = fs::File::create(fixture.file(at)).unwrap();
    for piece in 0..6 {
        thread::sleep(Duration::from_millis(300));
        writeln!(file, "piece {piece}").unwrap();
    }
}

#[test]
fn a_slow_write_becomes_one_version() {
    let fixture = fixture();
    fixture.write("/old.md", "as it was\n");
    let watching = watching(&fixture);
    thread::scope(|scope| {
        scope.spawn(|| write_slowly(&fixture, "/new.md"));
        scope.spawn(|| write_slowly(&fixture, "/old.md"));
        // Other files change in the meantime and must not have to wait.
        fixture.put("/theirs.md", "theirs");
        wait_until(|| fixture.read("/theirs.md").is_some());
        fixture.write("/ours.md", "ours");
        wait_until(|| fixture.text("/ours.md").is_some());
        assert_eq!(fixture.text("/new.md"), None);
        assert_eq!(fixture.text("/old.md").as_deref(), Some("as it was\n"));
    });
    let whole = fs::read_to_string(fixture.file("/new.md")).unwrap();
    assert_eq!(whole.lines().count(), 6);
    for at in ["/new.md", "/old.md"] {
        wait_until(|| fixture.text(at).as_deref() == Some(&whole));
    }
    let versions = fixture.versions();
    let count = |at: &str| versions.iter().filter(|it| it.path == Some(path(at))).count();
    assert_eq!((count("/new.md"), count("/old.md")), (1, 2));
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn no_new_file_is_stored_empty() {
    let fixture = fixture();
    let watching = watching(&fixture);
    for number in 0..300 {
        let directory = fixture.file(&format!("/d{}", number / 20));
        fs::create_dir_all(&directory).unwrap();
        let mut file = fs::File::create(directory.join(format!("{number}.md"))).unwrap();
        thread::sleep(Duration::from_millis(2));
        write!(file, "text {number}").unwrap();
    }
    wait_until(|| fixture.memories().len() == 300);
    let versions = fixture.versions();
    assert!(versions.iter().all(|version| version.size_bytes != Some(0)));
    assert_eq!(versions.len(), 300);
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_rename_beside_a_file_that_is_being_written_stays_a_rename() {
    let fixture = fixture();
    fixture.write("/a.md", "text\n");
    fixture.write("/b.md", "another\n");
    let watching = watching(&fixture);
    let id = fixture.memory("/a.md").id;
    fs::rename(fixture.file("/a.md"), fixture.file("/c.md")).unwrap();
    let mut file = fs::File::options().append(true).open(fixture.file("/c.md")).unwrap();
    for piece in 0..5 {
        writeln!(file, "{piece}").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    drop(file);
    wait_until(|| fixture.text("/c.md").as_deref() == Some("text\n0\n1\n2\n3\n4\n"));
    assert_eq!(fixture.memory("/c.md").id, id);
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_folder_that_goes_away_ends_the_watch_and_deletes_nothing() {
    let fixture = fixture();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fixture.put(name, name);
    }
    let watching = watching(&fixture);
    fs::rename(fixture.folder(), fixture.folder().with_extension("away")).unwrap();
    fixture.put("/d.md", "d");
    let error = watching.ended.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::StorageUnavailable);
    assert_eq!(fixture.memories().len(), 4);
}

#[test]
fn a_wiped_folder_ends_the_watch_and_deletes_nothing() {
    let fixture = fixture();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fixture.put(name, name);
    }
    let watching = watching(&fixture);
    fs::remove_dir_all(fixture.folder().join(".quipu")).unwrap();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fs::remove_file(fixture.file(name)).unwrap();
    }
    assert!(watching.ended.recv_timeout(PATIENCE).unwrap().is_err());
    assert_eq!(fixture.memories().len(), 3);
}
