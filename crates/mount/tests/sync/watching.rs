//! Following both sides as they change.

use std::fs;
use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::{Error, ErrorKind};
use quipu_mount::sync::{FolderSync, MassDeletion, Stopper, Watch};

use crate::support::{Bench, ada, bench, path};

/// Nothing here takes nearly as long, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

struct Watching {
    ended: mpsc::Receiver<Result<(), Error>>,
    stopper: Stopper,
}

/// Starts a watch and returns when the first sync is done.
fn watching(bench: &Bench) -> Watching {
    let sync =
        FolderSync::new(bench.engine.clone(), bench.store, &bench.folder(), MassDeletion::Refuse);
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
    let bench = bench();
    bench.put("/a.md", "a");
    let watching = watching(&bench);
    assert_eq!(bench.read("/a.md").as_deref(), Some("a"));
    bench.write("/new/b.md", "b");
    wait_until(|| bench.text("/new/b.md").as_deref() == Some("b"));
    bench.put("/c.md", "c");
    wait_until(|| bench.read("/c.md").as_deref() == Some("c"));
    bench.write("/new/b.md", "b2");
    wait_until(|| bench.text("/new/b.md").as_deref() == Some("b2"));
    fs::remove_file(bench.file("/a.md")).unwrap();
    wait_until(|| bench.text("/a.md").is_none());
    bench.engine.delete_at(&ada(), bench.store, &path("/c.md")).unwrap();
    wait_until(|| bench.read("/c.md").is_none());
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
    bench.assert_equal();
}

/// Writes a file as slow programs do: it is opened, written in pieces and closed.
fn write_slowly(bench: &Bench, at: &str) {
    let mut file = fs::File::create(bench.file(at)).unwrap();
    for piece in 0..6 {
        thread::sleep(Duration::from_millis(300));
        writeln!(file, "piece {piece}").unwrap();
    }
}

#[test]
fn what_is_being_written_becomes_one_version() {
    let bench = bench();
    bench.write("/old.md", "as it was\n");
    let watching = watching(&bench);
    thread::scope(|scope| {
        scope.spawn(|| write_slowly(&bench, "/new.md"));
        scope.spawn(|| write_slowly(&bench, "/old.md"));
        // Meanwhile others change, and are not kept waiting.
        bench.put("/theirs.md", "theirs");
        wait_until(|| bench.read("/theirs.md").is_some());
        bench.write("/ours.md", "ours");
        wait_until(|| bench.text("/ours.md").is_some());
        assert_eq!(bench.text("/new.md"), None);
        assert_eq!(bench.text("/old.md").as_deref(), Some("as it was\n"));
    });
    let whole = fs::read_to_string(bench.file("/new.md")).unwrap();
    assert_eq!(whole.lines().count(), 6);
    for at in ["/new.md", "/old.md"] {
        wait_until(|| bench.text(at).as_deref() == Some(&whole));
    }
    let versions = bench.versions();
    let count = |at: &str| versions.iter().filter(|it| it.path == Some(path(at))).count();
    assert_eq!((count("/new.md"), count("/old.md")), (1, 2));
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn of_many_new_files_none_is_stored_empty() {
    let bench = bench();
    let watching = watching(&bench);
    for number in 0..300 {
        let directory = bench.file(&format!("/d{}", number / 20));
        fs::create_dir_all(&directory).unwrap();
        let mut file = fs::File::create(directory.join(format!("{number}.md"))).unwrap();
        thread::sleep(Duration::from_millis(2));
        write!(file, "text {number}").unwrap();
    }
    wait_until(|| bench.memories().len() == 300);
    let versions = bench.versions();
    assert!(versions.iter().all(|version| version.size_bytes != Some(0)));
    assert_eq!(versions.len(), 300);
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_rename_beside_a_file_that_is_being_written_stays_a_rename() {
    let bench = bench();
    bench.write("/a.md", "text\n");
    bench.write("/b.md", "another\n");
    let watching = watching(&bench);
    let id = bench.memory("/a.md").id;
    fs::rename(bench.file("/a.md"), bench.file("/c.md")).unwrap();
    let mut file = fs::File::options().append(true).open(bench.file("/c.md")).unwrap();
    for piece in 0..5 {
        writeln!(file, "{piece}").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    drop(file);
    wait_until(|| bench.text("/c.md").as_deref() == Some("text\n0\n1\n2\n3\n4\n"));
    assert_eq!(bench.memory("/c.md").id, id);
    watching.stopper.stop();
    watching.ended.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_folder_that_goes_away_ends_the_watch_and_deletes_nothing() {
    let bench = bench();
    for name in ["/a.md", "/b.md", "/c.md"] {
        bench.put(name, name);
    }
    let watching = watching(&bench);
    fs::rename(bench.folder(), bench.folder().with_extension("away")).unwrap();
    bench.put("/d.md", "d");
    let error = watching.ended.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::StorageUnavailable);
    assert_eq!(bench.memories().len(), 4);
}

#[test]
fn a_wiped_folder_ends_the_watch_and_deletes_nothing() {
    let bench = bench();
    for name in ["/a.md", "/b.md", "/c.md"] {
        bench.put(name, name);
    }
    let watching = watching(&bench);
    fs::remove_dir_all(bench.folder().join(".quipu")).unwrap();
    for name in ["/a.md", "/b.md", "/c.md"] {
        fs::remove_file(bench.file(name)).unwrap();
    }
    assert!(watching.ended.recv_timeout(PATIENCE).unwrap().is_err());
    assert_eq!(bench.memories().len(), 3);
}
