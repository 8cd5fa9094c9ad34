//! A mount, the engine beside it, and numbers that are random but the same in every run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quipu_core::Engine;
use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::clock::SystemClock;
use quipu_core::engine::{ListQuery, NewStore};
use quipu_core::model::{Directory, Listing, Name, StoreId, Version, View};
use quipu_core::settings::Limits;
use quipu_sqlite::{OpenMode, SqliteBackend};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::host;

/// How long a condition is waited for; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A data directory with the store `notes`, mounted.
pub(crate) struct Mount {
    pub(crate) engine: Engine,
    pub(crate) store: StoreId,
    pub(crate) home: TempDir,
    process: Option<Child>,
}

/// Returns whether this host can mount, and says loudly why not.
pub(crate) fn can_mount() -> bool {
    host::is_possible(host::why_not_mount().as_deref())
}

/// Returns whether this host can mount and has Python, and says loudly why not.
pub(crate) fn can_mount_with_python() -> bool {
    host::is_possible(host::why_not_mount().or_else(|| host::why_not_run("python3")).as_deref())
}

/// Returns a number from the environment, or the default.
pub(crate) fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

impl Mount {
    /// Makes the store and mounts it with these arguments.
    pub(crate) fn new(source: &str) -> Self {
        let mut mount = Self::unmounted(Limits::default());
        mount.start(source);
        mount
    }

    /// Makes the store, to be filled before it is mounted.
    pub(crate) fn unmounted(limits: Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let backend = Arc::new(SqliteBackend::open(&data, OpenMode::Create).unwrap());
        let engine = Engine::new(backend, Arc::new(SystemClock), limits);
        let workspace = engine.default_workspace().unwrap().id;
        let new = NewStore::named(Name::new("notes").unwrap());
        let store = engine.create_store(workspace, &new).unwrap().id;
        Self { engine, store, home, process: None }
    }

    /// Mounts the store; what a killed process has left is cleared.
    pub(crate) fn start(&mut self, source: &str) {
        self.start_with(&["--store", source]);
    }

    /// Mounts what these arguments say.
    pub(crate) fn start_with(&mut self, arguments: &[&str]) {
        let mut command = self.quipu(&["mount"]);
        command.args(arguments);
        let mut process = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("mounted "), "{ready}");
        self.process = Some(process);
    }

    pub(crate) fn quipu(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("HOME", self.home.path()).env("USER", "ada").env("PATH", path);
        command.env("QUIPU_MOUNT_ROOT", self.home.path().join("memory"));
        command.arg("--data").arg(self.home.path().join("data")).args(arguments);
        command
    }

    /// Returns the directory of the store, or a place in it.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.home.path().join("memory/notes").join(path.trim_start_matches('/'))
    }

    /// Ends the mount as its user would.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    /// Ends the mount as nobody should.
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Sends a signal that does not end the mount.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process.as_ref().unwrap()), signal).unwrap();
    }

    fn end(&mut self, signal: Signal) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), signal).unwrap();
            process.wait().unwrap();
        }
    }

    /// Returns all versions, the oldest first.
    pub(crate) fn versions(&self) -> Vec<Version> {
        let query = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: usize::MAX,
            view: View::Full,
        };
        let mut versions = self.engine.versions(self.store, &query).unwrap().items;
        versions.reverse();
        versions
    }

    /// Returns what the store holds.
    pub(crate) fn stored(&self) -> BTreeMap<String, String> {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Full,
        };
        let items = self.engine.list(self.store, &query).unwrap().items;
        let entry = |line| match line {
            Listing::Memory(memory) => {
                Some((memory.path.to_string(), memory.content.unwrap().as_str().to_owned()))
            }
            Listing::Directory(_) => None,
        };
        items.into_iter().filter_map(entry).collect()
    }

    /// Returns what the mount shows: texts of files, `None` for directories.
    pub(crate) fn shown(&self) -> BTreeMap<String, Option<String>> {
        tree(&self.at(""))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.stop();
        // Only what a failed test has left is still there.
        unmount(self.at(""), UnmountFlags::DETACH).unwrap_or_default();
        unmount(self.home.path().join("memory"), UnmountFlags::DETACH).unwrap_or_default();
    }
}

/// Returns everything below a directory: texts of files, `None` for directories.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, Option<String>> {
    try_tree(root).unwrap()
}

/// Returns the same, or an error if something goes away at this moment.
pub(crate) fn try_tree(root: &Path) -> io::Result<BTreeMap<String, Option<String>>> {
    let mut found = BTreeMap::new();
    collect(root, "", &mut found)?;
    Ok(found)
}

fn collect(
    directory: &Path,
    above: &str,
    found: &mut BTreeMap<String, Option<String>>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{above}/{}", entry.file_name().to_str().unwrap());
        // The report of conflicts is no memory.
        if path == "/.quipu" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, found)?;
            found.insert(path, None);
        } else {
            found.insert(path, Some(fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(1));
    }
}

/// A small generator of numbers.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}
