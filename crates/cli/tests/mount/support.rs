//! A mount of its own for each test.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::host;

/// A data directory and what is mounted of it.
pub(crate) struct Mount {
    pub(crate) home: TempDir,
    pub(crate) process: Option<Child>,
    pub(crate) ready: Value,
    out: Option<BufReader<ChildStdout>>,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// How long a condition is waited for; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a mount of the store `notes`, or leaves the test where nothing can be mounted.
macro_rules! mounted {
    () => {
        $crate::support::mounted!("--store", "notes")
    };
    ($($argument:expr),+) => {{
        let home = $crate::support::home();
        if !$crate::support::can_mount() {
            return;
        }
        $crate::support::Mount::start(home, &[$($argument),+])
    }};
}

/// Leaves the test if a tool is missing.
macro_rules! needs {
    ($($tool:expr),+) => {
        if ![$($tool),+].iter().all(|tool| $crate::support::is_installed(tool)) {
            return;
        }
    };
}

pub(crate) use {mounted, needs};

/// Returns whether this host lets the test mount, and says loudly why not.
pub(crate) fn can_mount() -> bool {
    host::is_possible(host::why_not_mount().as_deref())
}

/// Returns whether users other than root can mount on this host, and says loudly why not.
pub(crate) fn others_can_mount() -> bool {
    host::is_possible(why_others_cannot_mount().as_deref())
}

/// Returns why users other than root cannot mount; some hosts reserve the device for root.
fn why_others_cannot_mount() -> Option<String> {
    let mode = fs::metadata("/dev/fuse").unwrap().permissions().mode() & 0o777;
    (mode & 0o006 != 0o006).then(|| {
        format!(
            "/dev/fuse has mode {mode:04o}, so only root can mount on this host; \
             `chmod 666 /dev/fuse` lets the test run"
        )
    })
}

pub(crate) fn is_installed(tool: &str) -> bool {
    host::is_possible(host::why_not_run(tool).as_deref())
}

/// Returns a home with the stores `notes` and `team`.
pub(crate) fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for store in ["notes", "team"] {
        let ran = run(quipu(home.path(), &["store", "create", store]), b"");
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    home
}

/// Returns the binary with arguments, with nothing of the surroundings that changes what it does.
pub(crate) fn quipu(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("HOME", home).env("USER", "ada").env("TZ", "UTC").env("PATH", path);
    command.env("QUIPU_MOUNT_ROOT", home.join("memory"));
    command.arg("--data").arg(home.join("data")).args(arguments);
    command
}

pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input may be gone already.
    child.stdin.take().unwrap().write_all(input).unwrap_or_default();
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A process that ends with this value.
pub(crate) struct Background(Child);

impl Background {
    /// Starts a process that does nothing in a directory.
    pub(crate) fn sleep_in(directory: &Path) -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").current_dir(directory);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Returns why a call failed.
#[track_caller]
pub(crate) fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> Errno {
    Errno::from_io_error(&result.unwrap_err()).unwrap()
}

/// Tells whether anything is mounted there.
pub(crate) fn is_mounted(place: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    table.lines().any(|line| line.split(' ').nth(1) == place.to_str())
}

impl Mount {
    pub(crate) fn start(home: TempDir, arguments: &[&str]) -> Self {
        let mut all = vec!["--json", "mount"];
        all.extend(arguments);
        let mut command = quipu(home.path(), &all);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(fs::File::create(home.path().join("log")).unwrap());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let log = fs::read_to_string(home.path().join("log")).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {log}"));
        Self { home, process: Some(process), ready, out: Some(out) }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("memory")
    }

    /// Returns a path in the store `notes`.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join("notes").join(path)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.process.as_ref().unwrap())
    }

    /// Waits until the process ends and returns its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        drop(self.out.take());
        let process = self.process.as_mut().unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the mount does not end");
            sleep(Duration::from_millis(5));
        }
    }

    /// Ends the mount and returns its home.
    pub(crate) fn stop(mut self) -> TempDir {
        kill_process(self.pid(), Signal::TERM).unwrap();
        assert_eq!(self.ended(), Some(0));
        std::mem::replace(&mut self.home, tempfile::tempdir().unwrap())
    }

    /// Runs a bash script in the store `notes`.
    pub(crate) fn bash(&self, script: &str) -> Ran {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(self.at("")).env("HOME", self.home.path());
        command.env("LC_ALL", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
        run(command, b"")
    }

    /// Runs a bash script that must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, script: &str) -> String {
        let ran = self.bash(&format!("set -e; {script}"));
        assert_eq!(ran.code, 0, "{script}: {ran:?}");
        ran.out
    }

    #[track_caller]
    pub(crate) fn python(&self, script: &str) -> String {
        self.ok(&format!("python3 - <<'EOF'\n{script}\nEOF"))
    }

    /// Runs `quipu` on the same data from another process.
    #[track_caller]
    pub(crate) fn quipu(&self, arguments: &[&str]) -> String {
        self.quipu_with(arguments, "")
    }

    #[track_caller]
    pub(crate) fn quipu_with(&self, arguments: &[&str], input: &str) -> String {
        let ran = run(quipu(self.home.path(), arguments), input.as_bytes());
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.out
    }

    /// Writes a memory of `notes` from another process.
    #[track_caller]
    pub(crate) fn put(&self, path: &str, text: &str) {
        self.quipu_with(&["-s", "notes", "put", path], text);
    }

    /// Returns a memory's text as another process sees it.
    #[track_caller]
    pub(crate) fn stored(&self, path: &str) -> String {
        self.quipu(&["-s", "notes", "cat", path])
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn versions(&self) -> Vec<Value> {
        let text = self.quipu(&["--json", "-s", "notes", "log", "-n", "100000"]);
        let mut body: Value = serde_json::from_str(&text).unwrap();
        let mut versions = body["data"].as_array_mut().unwrap().split_off(0);
        versions.reverse();
        versions
    }

    /// Returns the operations and paths of all versions, the oldest first.
    pub(crate) fn history(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line =
            |version: &Value| format!("{} {}", text(&version["operation"]), text(&version["path"]));
        self.versions().iter().map(line).collect()
    }

    /// Returns the kinds and ids of who made the versions, the oldest first.
    pub(crate) fn actors(&self) -> Vec<String> {
        self.versions().iter().map(|version| version["created_by"].to_string()).collect()
    }

    /// Returns the id of the memory that each version changed, the oldest first.
    pub(crate) fn changed_memories(&self) -> Vec<String> {
        self.versions().iter().map(|version| version["memory_id"].to_string()).collect()
    }

    /// Asserts which versions there are, and that all are of one memory.
    #[track_caller]
    pub(crate) fn assert_one_memory(&self, history: &[&str]) {
        assert_eq!(self.history(), history);
        let mut ids = self.changed_memories();
        ids.dedup();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }

    /// Waits until there are `count` versions.
    #[track_caller]
    pub(crate) fn wait_for_versions(&self, count: usize) {
        eventually("the versions are made", || self.versions().len() >= count);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process
            && process.try_wait().unwrap().is_none()
        {
            kill_process(Pid::from_child(process), Signal::TERM).unwrap();
            process.wait().unwrap();
        }
        // Only what a failed test has left is still there.
        unmount(self.root(), UnmountFlags::DETACH).unwrap_or_default();
    }
}
