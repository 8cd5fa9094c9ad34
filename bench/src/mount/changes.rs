//! How soon a mount shows the changes of other doors.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quipu_core::model::Access;
use quipu_mount::{Mounts, NameRules, Sharing, StoreMount, Tree, TreeSettings};
use tempfile::TempDir;

use super::process::wait_until;
use super::{Arguments, Sides, note};
use crate::engine::{Opened, fill, open, scratch, text};
use crate::table::{number, print, row};

/// The number of memories that are changed in rotation.
const CHANGED: u64 = 50;

/// How long changes take to become visible, in milliseconds.
struct Delays(Vec<f64>);

impl Delays {
    fn at(&self, share: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() * share / 100).copied().unwrap_or(f64::NAN)
    }
}

pub(super) fn run(arguments: &Arguments, sides: &Sides) {
    let heading = ["until a change shows, ms", "p50", "p99", "worst", "goal of p99"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut line = |name: &str, goal: u32, delays: &Delays| {
        let (p50, p99, worst) = (delays.at(50), delays.at(99), delays.0.iter().copied());
        let worst = worst.fold(0.0, f64::max);
        rows.push(row(&[&name, &number(p50), &number(p99), &number(worst), &goal]));
    };
    let mount = sides.quipu_path();
    line("by another process, read", 100, &delays(arguments, &sides.opened, &mount, Seen::Text));
    line("by another process, stat", 100, &delays(arguments, &sides.opened, &mount, Seen::Size));

    let here = MountedHere::new();
    let mount = here.root.path().join("memory/bench");
    line("by the same process, read", 10, &delays(arguments, &here.opened, &mount, Seen::Text));
    line("by the same process, stat", 10, &delays(arguments, &here.opened, &mount, Seen::Size));
    print("Changes by other doors", &rows);
}

/// How a change is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The text of the file, opened again for every poll.
    Text,
    /// Its size, which the kernel answers from its cache until that is invalidated.
    Size,
}

/// Measures the time from when a change is durable until a cached file in a mount shows it.
fn delays(arguments: &Arguments, opened: &Opened, mount: &Path, seen: Seen) -> Delays {
    let delay = |turn: u64| {
        let (memory, path) = (turn % CHANGED, note(mount, turn % CHANGED));
        fs::read(&path).expect("it is there");
        // Pauses of many lengths, so that the measurement does not fall into step with the mount.
        sleep(Duration::from_millis(turn * 7 % 40));
        let length = fs::metadata(&path).expect("it is there").len();
        let length = usize::try_from(length).expect("it is short") % 2000 + 1;
        let mut written = text(turn);
        written.truncate(length);
        opened.put(memory, written.clone());
        let start = Instant::now();
        wait_until("the mount shows the change", || match seen {
            Seen::Text => fs::read(&path).is_ok_and(|read| read == written.as_bytes()),
            Seen::Size => fs::metadata(&path).is_ok_and(|found| found.len() == length as u64),
        });
        start.elapsed().as_secs_f64() * 1e3
    };
    Delays((0..arguments.changes).map(delay).collect())
}

/// A mount that is served by this process.
struct MountedHere {
    mounts: Option<Mounts>,
    opened: Opened,
    root: TempDir,
}

impl MountedHere {
    fn new() -> Self {
        let (opened, root) = (open(), scratch());
        fill(&opened, 0, CHANGED);
        let settings = TreeSettings {
            store: opened.store,
            actor: opened.actor.clone(),
            access: Access::ReadWrite,
            names: NameRules::default(),
        };
        let (tree, invalidations) =
            Tree::new(opened.engine.engine().clone(), settings).expect("the storage works");
        let store = StoreMount { name: "bench".to_owned(), tree, invalidations };
        let mounts = Mounts::new(&root.path().join("memory"), vec![store], Sharing::Owner);
        Self { mounts: Some(mounts.expect("it can be mounted")), opened, root }
    }
}

impl Drop for MountedHere {
    fn drop(&mut self) {
        if let Some(mounts) = self.mounts.take() {
            mounts.unmount();
        }
    }
}
