//! Calls that have to wait for somebody else.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{ScopedJoinHandle, scope, sleep};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::support::{Mount, can_mount, errno, eventually, home, mounted, quipu, run};

/// How long a write waits for the lock in this test.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a read may take; it waits for nobody.
const PROMPT: Duration = Duration::from_secs(1);

/// How many calls queue up in one directory.
const QUEUED: usize = 8;

#[test]
fn a_stopped_writer_delays_others_by_one_timeout() {
    let home = home();
    if !can_mount() {
        return;
    }
    let setting = format!("[storage]\nlock_timeout_seconds = {}\n", TIMEOUT.as_secs());
    fs::write(home.path().join("data/quipu.toml"), setting).unwrap();
    let mount = Mount::start(home, &["--store", "notes"]);
    let name = |number: usize| mount.at(&format!("{number}.md"));
    for number in 0..=QUEUED {
        fs::write(name(number), "green").unwrap();
    }
    fs::write(mount.at("kept.md"), "kept").unwrap();
    // Parked, so that storing the move falls due while the lock is held.
    fs::rename(name(QUEUED), mount.at("old.md.bak")).unwrap();
    let lock = mount.home.path().join("data/quipu.lock");
    let lock = File::options().read(true).write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let reading = Instant::now();
                assert_eq!(mount.read("kept.md"), "kept");
                assert!(reading.elapsed() < PROMPT, "a read waited for the lock");
                sleep(Duration::from_millis(5));
            }
        });
        // The kernel lets one removal after the other into a directory.
        let removals: Vec<_> = (0..QUEUED)
            .map(|number| threads.spawn(move || errno(fs::remove_file(name(number)))))
            .collect();
        for removal in removals {
            assert_eq!(removal.join().unwrap(), Errno::IO);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(start.elapsed() < TIMEOUT * 3, "each call waited for itself: {:?}", start.elapsed());
    drop(lock);
    eventually("writes are accepted again", || fs::remove_file(name(0)).is_ok());
    assert_eq!(fs::read_to_string(name(1)).unwrap(), "green");
    eventually("the move is stored", || mount.history().contains(&"modified /old.md.bak".into()));
}

/// A second mount of `notes`, which a failing test does not leave behind.
struct SecondMount<'m> {
    of: &'m Mount,
    root: String,
}

impl<'m> SecondMount<'m> {
    fn start(of: &'m Mount) -> Self {
        let root = of.home.path().join("second").to_str().unwrap().to_owned();
        of.quipu(&["mount", "--store", "notes", "--root", &root, "--detach"]);
        Self { of, root }
    }
}

impl Drop for SecondMount<'_> {
    fn drop(&mut self) {
        run(quipu(self.of.home.path(), &["unmount", "--root", &self.root]), b"");
    }
}

/// Replaces `tea.md` in two mounts of a store without pause, while others use it in each of them.
fn while_replacing(text: fn(&str, usize) -> String, uses: &[fn(&Path)]) {
    let mount = mounted!();
    let second = SecondMount::start(&mount);
    let directories = [mount.at(""), Path::new(&second.root).join("notes")];
    mount.put("/tea.md", &text("a", 0));
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        let replace = |directory: &Path, writer: &str| {
            for number in 1..=80 {
                let new = directory.join(format!("{writer}.tmp"));
                fs::write(&new, text(writer, number)).unwrap();
                fs::rename(new, directory.join("tea.md")).unwrap();
            }
        };
        let writers = [(0, "a"), (1, "b"), (1, "c")].map(|(number, writer)| {
            let directory = &directories[number];
            threads.spawn(move || replace(directory, writer))
        });
        for (directory, used) in
            directories.iter().flat_map(|at| uses.iter().map(move |used| (at, used)))
        {
            let (path, is_done) = (directory.join("tea.md"), &is_done);
            threads.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    used(&path);
                }
            });
        }
        let written = writers.map(ScopedJoinHandle::join);
        is_done.store(true, Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok));
    });
}

#[test]
fn a_file_that_is_replaced_all_the_time_can_always_be_opened() {
    let read = |path: &Path| assert!(fs::read_to_string(path).unwrap().starts_with("green"));
    let ask = |path: &Path| assert!(fs::metadata(path).is_ok());
    let write = |path: &Path| drop(File::options().read(true).write(true).open(path).unwrap());
    let append = |path: &Path| drop(File::options().append(true).open(path).unwrap());
    let create = |path: &Path| drop(File::options().append(true).create(true).open(path).unwrap());
    let text = |writer: &str, number| format!("green {writer} {number}");
    while_replacing(text, &[read, ask, write, append, create]);
}

/// Returns a text of many lines, none of which is in another one.
fn numbered(writer: &str, number: usize) -> String {
    let line = |line: usize| format!("{writer}{number} line {line}\n");
    (0..=number * 7 % 61).map(line).collect::<String>() + &format!("{writer}{number} end\n")
}

/// Panics unless a text is one of those of `numbered`.
#[track_caller]
fn assert_whole(text: &str) {
    let name = text.split(' ').next().unwrap();
    let (writer, number) = name.split_at(1);
    assert_eq!(text, numbered(writer, number.parse().unwrap()));
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_read_as_one_text() {
    while_replacing(numbered, &[read_in_every_way]);
}

/// Reads a file without asking for its size, in small parts, and as many bytes as it is said to have.
fn read_in_every_way(path: &Path) {
    let mut bytes = vec![0; 10_000];
    let length = File::open(path).unwrap().read(&mut bytes).unwrap();
    assert_whole(str::from_utf8(&bytes[..length]).unwrap());

    let (mut file, mut text) = (File::open(path).unwrap(), Vec::new());
    while let length @ 1.. = file.read(&mut bytes[..100]).unwrap() {
        text.extend_from_slice(&bytes[..length]);
    }
    assert_whole(str::from_utf8(&text).unwrap());

    let mut file = File::open(path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    file.read_exact(&mut bytes[..length]).unwrap();
    assert_whole(str::from_utf8(&bytes[..length]).unwrap());
}
