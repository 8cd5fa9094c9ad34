//! Runs the real binary on a data directory of its own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::clock::SystemClock;
use quipu_core::model::Timestamp;
use quipu_core::settings::Limits;
use quipu_core::{Clock, Engine};
use quipu_sqlite::{OpenMode, SqliteBackend};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A data directory, and the binary to use it with.
pub(crate) struct Quipu {
    pub(crate) home: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Quipu {
    /// Returns an empty home without any store.
    pub(crate) fn empty() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    /// Returns a home with the store `notes`.
    pub(crate) fn with_store() -> Self {
        let quipu = Self::empty();
        quipu.ok(&["store", "create", "notes"]);
        quipu
    }

    /// Returns an engine on the same data whose clock is off by `days`.
    pub(crate) fn engine(&self, days: i32) -> Engine {
        let backend = SqliteBackend::open(&self.data(), OpenMode::Create).expect("it opens");
        Engine::new(Arc::new(backend), Arc::new(WrongClock { days }), Limits::default())
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.home.path().join("data")
    }

    /// Returns the command with a clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.env_clear().env("HOME", self.home.path()).env("USER", "ada").env("TZ", "UTC");
        command.arg("--data").arg(self.data()).args(arguments);
        command
    }

    /// Runs a command with this input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        run(self.command(arguments), input)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs a command that must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.out
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, text: &str) -> String {
        let ran = self.run_with(&["put", path], text.as_bytes());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// Runs a command with `--json` that must succeed, and returns the document.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        serde_json::from_str(&self.ok(&all)).expect("the output is one JSON document")
    }
}

/// A clock that is off by `days`.
#[derive(Debug)]
struct WrongClock {
    days: i32,
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let span = Duration::from_hours(24) * self.days.unsigned_abs();
        let now = SystemClock.now();
        if self.days < 0 { now.minus(span) } else { now.plus(span) }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        SystemClock.fill_random(bytes);
    }
}

pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("the input is piped");
    // A command that does not read its input may have exited already.
    stdin.write_all(input).unwrap_or_default();
    drop(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("the output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("the errors are UTF-8"),
    }
}

/// Returns the root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the command without the superuser's right to read and write everything.
pub(crate) fn bound_by_permissions(command: Command) -> Command {
    if !getuid().is_root() {
        return command;
    }
    let mut bound = Command::new("/usr/bin/setpriv");
    bound.args(["--bounding-set", "-dac_override,-dac_read_search"]);
    bound.arg(command.get_program()).args(command.get_args()).env_clear();
    bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bound
}

/// Sends a signal. Not with `kill(1)`, which small systems do not have.
pub(crate) fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).expect("the process runs");
}

/// Returns whether Python can be run, and says loudly if it cannot.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        skipped("`python3` is not installed");
    }
    found
}

/// Says loudly that a test was skipped.
pub(crate) fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // The harness captures what `eprintln!` prints.
    writeln!(std::io::stderr(), "SKIPPED: {test}: {why}").expect("the standard error is open");
}

/// A home on a small disk of its own.
pub(crate) struct SmallDisk(pub(crate) Quipu);

impl SmallDisk {
    /// Creates one, or says loudly that the tests may not mount file systems and returns `None`.
    pub(crate) fn new(megabytes: u32) -> Option<Self> {
        let quipu = Quipu::empty();
        let size = format!("size={megabytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(quipu.home.path());
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Self(quipu));
        }
        skipped("it needs the right to mount file systems");
        None
    }

    pub(crate) fn make_read_only(&self) {
        let mut remount = Command::new("mount");
        remount.args(["-o", "remount,ro"]).arg(self.0.home.path());
        assert!(remount.output().expect("mount runs").status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(self.0.home.path()).output());
    }
}
