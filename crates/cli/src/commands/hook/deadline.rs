//! The deadline of a hook.
//!
//! Started before anything else of the program, since reading the settings may block as well as opening
//! the database: a thread that ends the process. Whoever is first, the thread or the answer, has the
//! standard output; the other one never writes.

#![expect(clippy::exit, reason = "a hook ends in time, whatever else of the process is waiting")]

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use quipu_rules::Failing;

use super::answers::{Answer, Asked, Verb};
use super::log;
use crate::args::HookHost;
use crate::failure::Failure;

/// How long a hook may take. Hosts are told to wait for 5 seconds, and wait for longer unless told.
const DEADLINE: Duration = Duration::from_secs(2);

/// Whether somebody answers already.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);
/// Who asks, and what happens without an answer, as far as it is known by now.
static ASKED: Mutex<Option<(Asked, Failing)>> = Mutex::new(None);

/// Where the log is, once the settings are known.
static DATA: Mutex<Option<PathBuf>> = Mutex::new(None);

const TIMED_OUT: &str = "the hook has timed out";

/// What is printed and how the process ends.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: i32,
}

/// Starts the deadline if the command line is that of a hook; returns whether it is.
///
/// The command line is not parsed yet, and may be one of another version.
pub(crate) fn start_if_hook(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<_> = arguments.skip(1).collect();
    let Some((asked, failing)) = asked(&arguments) else { return false };
    set(&asked, failing);
    thread::spawn(move || {
        thread::sleep(DEADLINE);
        if IS_ANSWERED.swap(true, Ordering::SeqCst) {
            // The answer is being printed to somebody who does not read it.
            thread::sleep(DEADLINE);
            process::exit(0);
        }
        let printed = without_an_answer(TIMED_OUT);
        if let Some(data) = &*DATA.lock().unwrap_or_else(PoisonError::into_inner) {
            log::failure(data, None, &Failure::other(TIMED_OUT));
        }
        print_and_exit(&printed);
    });
    true
}

/// Returns who asks, by the command line; `None` if it is that of another command.
fn asked(arguments: &[OsString]) -> Option<(Asked, Failing)> {
    let has = |first: &str, second: &str| {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        let joined = format!("{first}={second}");
        pairs.any(|(one, other)| one == OsStr::new(first) && other == OsStr::new(second))
            || arguments.iter().any(|one| one == OsStr::new(&joined))
    };
    let verb = match (has("hook", "run"), has("hook", "decide")) {
        (_, true) => Verb::Decide,
        (true, false) => Verb::Run,
        (false, false) => return None,
    };
    let host = match (has("--host", "cursor"), has("--host", "codex")) {
        (true, _) => HookHost::Cursor,
        (false, true) => HookHost::Codex,
        (false, false) => HookHost::ClaudeCode,
    };
    let failing = if has("--fail", "closed") { Failing::Closed } else { Failing::Open };
    Some((Asked::by(host, verb), failing))
}

/// Sets where to write down that the deadline has come.
pub(super) fn set_data(data: &Path) {
    *DATA.lock().unwrap_or_else(PoisonError::into_inner) = Some(data.to_owned());
}

/// Sets what happens at the deadline.
pub(super) fn set(asked: &Asked, failing: Failing) {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some((asked.clone(), failing));
}

/// Returns what is printed by a hook that has no answer.
pub(super) fn without_an_answer(why: &str) -> Printed {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    asked.map_or_else(Printed::default, |(asked, failing)| {
        Answer::failed(&asked, failing, why).print(&asked)
    })
}

/// Prints the answer and ends the process, unless the deadline was first.
pub(super) fn finish(printed: &Printed) -> ! {
    if IS_ANSWERED.swap(true, Ordering::SeqCst) {
        loop {
            // The process is about to end.
            thread::park();
        }
    }
    print_and_exit(printed)
}

fn print_and_exit(printed: &Printed) -> ! {
    // A host that has closed its end does not want an answer.
    std::io::stderr().write_all(printed.err.as_bytes()).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    out.write_all(printed.out.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
    process::exit(printed.code)
}
