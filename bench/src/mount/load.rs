//! The mount under load: many concurrent writers, a reader beside writers, and changes from other
//! doors.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::process::{Mounted, wait_until};
use super::{Arguments, Sides, note, nothing};
use crate::engine::{fill, open, rate, scratch, text};
use crate::table::{median, number, print, row, spent};

const WRITERS_COUNT: u64 = 8;
/// How many writers run beside the reader.
const NEIGHBORS_COUNT: u64 = 4;
/// How many reads each round measures.
const READS_COUNT: usize = 1000;
/// How many changes another door makes.
const CHANGES_COUNT: u64 = 10_000;
/// The first memory that is written; those below it are read.
const WRITTEN_FIRST: u64 = 100_000;

pub(super) fn run(arguments: &Arguments, sides: &Sides) {
    reading_beside_writers(arguments, sides);
    foreign_changes(arguments);
}

/// Compares durable closes in the mount with durable writes of the engine and with closes in a file
/// system that stores nothing, all from many threads.
///
/// The mount has a data directory of its own, as the engine has: a second mount of the same store
/// would follow every write, and be measured as well.
pub(super) fn writers(arguments: &Arguments) {
    let (alone, opened, roots, idle_root) = (open(), open(), scratch(), scratch());
    let (memory, stores) = (roots.path().join("memory"), ["bench".to_owned()]);
    let data = opened.directory.path();
    let (mounted, _) = Mounted::quipu(&arguments.binary, data, &memory, &stores);
    let mount = memory.join("bench");
    fs::create_dir(mount.join("notes")).expect("it can be made");
    let nothing = nothing::mount(idle_root.path(), 1);
    let writes = u64::from(arguments.writes) * WRITERS_COUNT;
    let mut turns = Vec::new();
    let mut spent_each = Vec::new();
    for turn in 0..=arguments.rounds as u64 {
        let memory = |number: u64| WRITTEN_FIRST + turn * writes + number;
        let closes = |root: &Path| {
            rate(WRITERS_COUNT, writes, |number| {
                let text = text(memory(number));
                fs::write(note(root, memory(number)), text).expect("it is written");
            })
        };
        let engine = rate(WRITERS_COUNT, writes, |number| {
            alone.put(memory(number), text(memory(number)));
        });
        let bare = closes(idle_root.path());
        let (before, _) = spent(mounted.id());
        let quipu = closes(&mount);
        let (after, _) = spent(mounted.id());
        turns.push((engine, bare, quipu));
        let each = after.saturating_sub(before).as_secs_f64() * 1e6;
        spent_each.push(each / f64::from(u32::try_from(writes).unwrap_or(u32::MAX)));
    }
    // The first round is a warm-up.
    let turns = turns.get(1..).unwrap_or_default();
    let middle = |of: &dyn Fn(&(f64, f64, f64)) -> f64| median(turns.iter().map(of).collect());
    // Both keep all processors busy, so whoever does both after one another is no faster than this.
    let ceiling = |turn: &(f64, f64, f64)| 1.0 / (1.0 / turn.0 + 1.0 / turn.1);
    let heading = [
        "durable new files per second",
        "the engine",
        "bare FUSE",
        "one after the other",
        "Quipu, close",
        "of the engine",
        "goal",
        "of one after the other",
        "CPU of the mount, µs each",
    ];
    let rows = vec![
        heading.map(str::to_owned).to_vec(),
        row(&[
            &format!("{WRITERS_COUNT} writers"),
            &number(middle(&|turn| turn.0)),
            &number(middle(&|turn| turn.1)),
            &number(middle(&ceiling)),
            &number(middle(&|turn| turn.2)),
            &number(middle(&|turn| turn.2 / turn.0)),
            &"0.60",
            &number(middle(&|turn| turn.2 / ceiling(turn))),
            &number(median(spent_each)),
        ]),
    ];
    print("Many writers", &rows);
    nothing.umount_and_join().expect("nothing uses it");
}

/// Measures opening, reading and closing cached files while others write.
fn reading_beside_writers(arguments: &Arguments, sides: &Sides) {
    let mount = sides.quipu_path();
    let mut rows =
        vec![row(&[&"open, read, close, ms", &"p50", &"p99", &"worst p99", &"goal of p99"])];
    for (name, writers_count) in [("alone", 0), ("beside 4 writers", NEIGHBORS_COUNT)] {
        let turns: Vec<_> =
            (0..arguments.rounds).map(|_| read_delays(&mount, writers_count)).collect();
        let p99: Vec<_> = turns.iter().map(|turn| turn.1).collect();
        let worst = p99.iter().copied().fold(0.0, f64::max);
        let p50 = median(turns.iter().map(|turn| turn.0).collect());
        rows.push(row(&[&name, &number(p50), &number(median(p99)), &number(worst), &"1.00"]));
    }
    print("Reading beside writers", &rows);
}

/// Returns the 50th and 99th percentile of reads, in milliseconds.
fn read_delays(mount: &Path, writers_count: u64) -> (f64, f64) {
    let (is_done, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut delays: Vec<f64> = thread::scope(|scope| {
        for _ in 0..writers_count {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let memory = WRITTEN_FIRST + number % 400;
                    fs::write(note(mount, memory), text(number)).expect("it is written");
                }
            });
        }
        let read = |number: usize| {
            let path = note(mount, number as u64 % 100);
            let start = Instant::now();
            assert!(!fs::read(path).expect("it is there").is_empty(), "it has a text");
            let elapsed = start.elapsed().as_secs_f64() * 1e3;
            // A pace that leaves the CPU to the writers, as programs that think do.
            thread::sleep(Duration::from_micros(200));
            elapsed
        };
        let delays = (0..READS_COUNT).map(read).collect();
        is_done.store(true, Ordering::Relaxed);
        delays
    });
    delays.sort_by(f64::total_cmp);
    let at = |percent: usize| delays.get(delays.len() * percent / 100).copied().unwrap_or(f64::NAN);
    (at(50), at(99))
}

/// Measures the CPU time that a mount spends on following the changes of another process.
fn foreign_changes(arguments: &Arguments) {
    let mut rows = vec![row(&[&"another process changes 10,000 memories", &"CPU, s"])];
    for files in [u64::from(arguments.files), u64::from(arguments.files) * 10] {
        let (opened, root) = (open(), scratch());
        fill(&opened, 0, files);
        let memory = root.path().join("memory");
        let stores = ["bench".to_owned()];
        let (mounted, _) =
            Mounted::quipu(&arguments.binary, opened.directory.path(), &memory, &stores);
        let mount = memory.join("bench");
        // From here on the kernel has every file cached, so each change must invalidate one.
        let listed = fs::read_dir(mount.join("notes")).expect("it is there").count();
        assert_eq!(u64::try_from(listed), Ok(files), "every file is listed");
        let (before, _) = spent(mounted.id());
        for number in 0..CHANGES_COUNT {
            opened.put(number % files, text(files + number));
        }
        opened.put(0, "the last one".to_owned());
        wait_until("the last change shows", || {
            fs::metadata(note(&mount, 0)).is_ok_and(|found| found.len() == 12)
        });
        let (after, _) = spent(mounted.id());
        let seconds = after.saturating_sub(before).as_secs_f64();
        rows.push(row(&[&format!("{files} files known to the kernel"), &number(seconds)]));
    }
    print("Following other doors", &rows);
}
