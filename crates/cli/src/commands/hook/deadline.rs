//! The deadline of a hook.
//!
//! Started before anything else of the program, since reading the settings may block as well as opening
//! the database: a thread that ends the process. Whoever is first, the thread or the answer, has the
//! standard output; the other one never writes.

#![expect(clippy::exit, reason = "a hook ends in time, whatever else of the process is waiting")]

use std::ffi::OsStr;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use quipu_rules::Failing;

/// How long a hook may take. Hosts are told to wait for 5 seconds, and wait for longer unless told.
const DEADLINE: Duration = Duration::from_secs(2);

/// Whether somebody answers already.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);
/// What happens without an answer: [`OPEN`] or [`CLOSED`].
static FAILING: AtomicU8 = AtomicU8::new(OPEN);
/// Whether the host asks whether a call may happen.
static IS_DECISION: AtomicBool = AtomicBool::new(false);

const OPEN: u8 = 0;
const CLOSED: u8 = 1;

/// An exit code that denies a call, for every host.
const DENIED: i32 = 2;

/// What is printed and how the process ends.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: i32,
}

/// Starts the deadline if the command line is that of a hook; returns whether it is.
///
/// The command line is not parsed yet, and may be one of another version.
pub(crate) fn start_if_hook(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let arguments: Vec<_> = arguments.skip(1).collect();
    let has = |first: &str, second: &str| {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        pairs.any(|(one, other)| one == OsStr::new(first) && other == OsStr::new(second))
    };
    let is_run = has("hook", "run");
    let is_decide = has("hook", "decide");
    if !is_run && !is_decide {
        return false;
    }
    if has("--fail", "closed") {
        FAILING.store(CLOSED, Ordering::Relaxed);
    }
    IS_DECISION.store(is_decide, Ordering::Relaxed);
    thread::spawn(move || {
        thread::sleep(DEADLINE);
        if IS_ANSWERED.swap(true, Ordering::SeqCst) {
            // The answer is being printed to somebody who does not read it.
            thread::sleep(DEADLINE);
            process::exit(0);
        }
        let code = code_without_an_answer();
        if code == DENIED {
            let message = "quipu: the hook ran out of time, and what cannot be checked is denied";
            writeln!(std::io::stderr(), "{message}").unwrap_or_default();
        }
        process::exit(code);
    });
    true
}

/// Returns the exit code of a hook that has no answer.
pub(super) fn code_without_an_answer() -> i32 {
    if IS_DECISION.load(Ordering::Relaxed) && FAILING.load(Ordering::Relaxed) == CLOSED {
        DENIED
    } else {
        0
    }
}

/// Sets what happens at the deadline, once the settings are known.
pub(super) fn set_failing(failing: Failing) {
    let number = match failing {
        Failing::Open => OPEN,
        Failing::Closed => CLOSED,
    };
    FAILING.store(number, Ordering::Relaxed);
}

/// Prints the answer and ends the process, unless the deadline was first.
pub(super) fn finish(printed: &Printed) -> ! {
    if IS_ANSWERED.swap(true, Ordering::SeqCst) {
        loop {
            // The process is about to end.
            thread::park();
        }
    }
    // A host that has closed its end does not want an answer.
    std::io::stderr().write_all(printed.err.as_bytes()).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    out.write_all(printed.out.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
    process::exit(printed.code)
}
