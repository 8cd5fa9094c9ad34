//! File systems in processes of their own, and the tools to measure them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};

/// A process that serves a file system until this value is dropped.
pub(crate) struct Mounted {
    child: Child,
    root: PathBuf,
}

/// How long to wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

impl Mounted {
    /// Mounts stores, and returns how long it took until they reported to be ready.
    pub(crate) fn quipu(
        binary: &Path,
        data: &Path,
        root: &Path,
        stores: &[String],
    ) -> (Self, Duration) {
        let stores = stores.iter().flat_map(|store| ["--store", store]);
        Self::start(binary, data, root, stores)
    }

    /// Mounts the stores of a session.
    pub(crate) fn session(binary: &Path, data: &Path, root: &Path, session: &str) -> Self {
        Self::start(binary, data, root, ["--session", session].into_iter()).0
    }

    fn start<'a>(
        binary: &Path,
        data: &Path,
        root: &Path,
        arguments: impl Iterator<Item = &'a str>,
    ) -> (Self, Duration) {
        let mut command = Command::new(binary);
        command.arg("--data").arg(data).arg("mount").arg("--root").arg(root).args(arguments);
        command.env("QUIPU_LIMITS_MEMORIES_PER_STORE_MAX", i64::MAX.to_string());
        command.env("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", i64::MAX.to_string());
        let start = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary is there (`cargo build --release` first)");
        let mut mounted = Self { child, root: root.to_owned() };
        let out = mounted.child.stdout.as_mut().expect("it is piped");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("it says something");
        let elapsed = start.elapsed();
        assert!(line.starts_with("mounted "), "it is not mounted: {line}");
        (mounted, elapsed)
    }

    /// Exposes a directory a second time through a FUSE pass-through, if one is installed.
    pub(crate) fn bindfs(shown: &Path, root: &Path) -> Option<Self> {
        if !is_available("bindfs", "bindfs") {
            return None;
        }
        let child = Command::new("bindfs")
            .args(["-f", "--multithreaded"])
            .args([shown, root])
            .spawn()
            .expect("it was there a moment ago");
        let mounted = Self { child, root: root.to_owned() };
        wait_until("bindfs is mounted", || is_mounted(root));
        Some(mounted)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The process may have exited already, leaving a stale mount behind.
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap_or_default();
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            sleep(Duration::from_millis(1));
        }
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
        unmount(&self.root, UnmountFlags::DETACH).unwrap_or_default();
    }
}

fn is_mounted(place: &Path) -> bool {
    let place = fs::canonicalize(place).expect("it exists");
    let table = fs::read_to_string("/proc/self/mounts").expect("it exists, on Linux");
    table.lines().any(|line| line.split(' ').nth(1) == place.to_str())
}

/// Polls until a condition holds, often enough to measure the time.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_micros(50));
    }
}

/// Returns whether a tool is installed, after trying to install its package.
pub(crate) fn is_available(tool: &str, package: &str) -> bool {
    let runs = |command: &mut Command| {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let is_there = || runs(Command::new(tool).arg("--version"));
    if is_there() {
        return true;
    }
    runs(Command::new("apt-get").args(["-qq", "update"]));
    runs(Command::new("apt-get").args(["-qq", "install", "--yes", package]));
    is_there()
}

/// Returns the type of the file system that a path is on.
pub(crate) fn kind_of(path: &Path) -> String {
    let path = fs::canonicalize(path).expect("it exists");
    let table = fs::read_to_string("/proc/self/mounts").expect("it exists, on Linux");
    let entries = table.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = entries.filter(|(place, _)| path.starts_with(place));
    above.max_by_key(|(place, _)| place.len()).map_or_else(String::new, |(_, kind)| kind.to_owned())
}
