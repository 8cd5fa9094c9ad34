//! Calls that have to wait for somebody else.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::support::{Mount, can_mount, errno, eventually, home, mounted};

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

#[test]
fn a_file_that_is_replaced_all_the_time_can_always_be_opened() {
    let mount = mounted!();
    fs::write(mount.at("tea.md"), "green").unwrap();
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        let replacing = threads.spawn(|| {
            for number in 0..400 {
                fs::write(mount.at("new.tmp"), format!("green {number}")).unwrap();
                fs::rename(mount.at("new.tmp"), mount.at("tea.md")).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        for _ in 0..3 {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    assert!(mount.read("tea.md").starts_with("green"));
                    fs::metadata(mount.at("tea.md")).unwrap();
                }
            });
        }
        replacing.join().unwrap();
    });
    assert_eq!(mount.read("tea.md"), "green 399");
}
