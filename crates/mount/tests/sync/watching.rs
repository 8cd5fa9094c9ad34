//! Following both sides as they change.

use std::fs;
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
