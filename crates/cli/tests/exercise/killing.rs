//! A mount that is killed while programs write to it.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Mount, Numbers, can_mount_with_python, setting};

/// Writes files until nothing works any more, and prints what it begins and what is acknowledged
/// by `close` or `fsync`. Rust's files do not tell what `close` says.
const WRITER: &str = r#"
import os, sys, threading
root, first = sys.argv[1], int(sys.argv[2])
lock = threading.Lock()
def say(*words):
    with lock:
        print(*words, flush=True)
def write(thread):
    number = first
    while True:
        number += 1
        name = f"t{thread}-{number % 7}"
        say("begin", name, number)
        try:
            descriptor = os.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(descriptor, (f"{number} " * 500).encode())
                if number % 3 == 0:
                    os.fsync(descriptor)
                    say("kept", name, number)
            finally:
                os.close(descriptor)
            say("kept", name, number)
        except OSError:
            return
threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"#;

/// Which text of a file is certain to be there, and which may be.
#[derive(Clone, Copy, Default)]
struct Outcome {
    begun: u64,
    kept: u64,
}

#[test]
fn what_was_closed_or_synced_survives_a_kill() {
    if !can_mount_with_python() {
        return;
    }
    let kills_count = setting("QUIPU_MOUNT_KILLS", 5);
    let mut mount = Mount::new("notes");
    let mut outcomes: HashMap<String, Outcome> = HashMap::new();
    let mut numbers = Numbers(7);
    let mut kept_count = 0_u64;
    for kill in 0..kills_count {
        let first = (u64::try_from(kill).unwrap() + 1) * 1_000_000;
        let mut writer = Command::new("python3")
            .args(["-c", WRITER])
            .arg(mount.at(""))
            .arg(first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let reader = thread::spawn(move || lines.map(Result::unwrap).collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(200 + u64::try_from(numbers.below(800)).unwrap()));
        mount.kill();
        writer.wait().unwrap();
        for line in reader.join().unwrap() {
            let words: Vec<_> = line.split(' ').collect();
            let number = words[2].parse().unwrap();
            let outcome = outcomes.entry(words[1].to_owned()).or_default();
            if words[0] == "kept" {
                outcome.kept = number;
                kept_count += 1;
            } else {
                outcome.begun = number;
            }
        }
        mount.start("notes");
        for (name, outcome) in &mut outcomes {
            let text = fs::read_to_string(mount.at(name)).unwrap_or_default();
            let number: u64 = text.split(' ').next().unwrap().parse().unwrap_or(0);
            let is_whole = text.is_empty() || text == format!("{number} ").repeat(500);
            let is_known = number == outcome.kept || number == outcome.begun;
            // An emptied file is what a program that was about to write may have left.
            let is_emptied = text.is_empty() && outcome.begun > outcome.kept;
            assert!(
                is_whole && (is_known || is_emptied),
                "{name}: {number}, kept {}",
                outcome.kept
            );
            *outcome = Outcome { begun: number, kept: number };
        }
    }
    let problems = mount.engine.check().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
    assert!(kept_count > 0);
    eprintln!("{kills_count} kills, {kept_count} acknowledged writes, none lost");
}
