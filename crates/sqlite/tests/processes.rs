//! Many processes on one data directory, and processes that are killed.
//!
//! Without arguments this runs every scenario; each starts this same program as its child
//! processes. `QUIPU_KILLS=1000 cargo test --release --test processes crash` is the long crash run.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests without a test harness, which fail by panicking"
)]

#[path = "processes/crash.rs"]
mod crash;
#[path = "processes/editing.rs"]
mod editing;
#[path = "processes/forgetting.rs"]
mod forgetting;
#[path = "processes/holding.rs"]
mod holding;
#[path = "processes/indexing.rs"]
mod indexing;
#[path = "processes/sharing.rs"]
mod sharing;
#[path = "it/support.rs"]
mod support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The scenarios by name.
const SCENARIOS: [(&str, fn()); 12] = [
    ("crash", crash::every_acknowledged_write_survives_kills),
    ("forgetting", forgetting::a_killed_redaction_is_all_or_nothing),
    ("increments", sharing::sixteen_processes_lose_no_increment),
    ("redaction", sharing::redaction_is_real_while_another_process_has_the_data_open),
    ("waiting", sharing::a_waiting_process_sees_the_change_of_another),
    ("editing", editing::what_is_edited_all_the_time_is_always_found),
    ("index-kills", indexing::an_index_survives_kills),
    ("index-crowd", indexing::many_processes_catch_up_at_once),
    ("index-stopped", indexing::whoever_is_stopped_on_the_index_holds_nobody_up),
    ("stopped", holding::a_stopped_writer_is_named_and_reading_goes_on),
    ("overtaking", holding::a_busy_process_does_not_overtake_one_that_waits),
    ("restoring", holding::a_backup_is_not_restored_under_a_running_process),
];

/// What a child process does with the data directory and further words.
type Role = fn(&Path, &[String]);

/// The roles by name.
const ROLES: [(&str, Role); 10] = [
    ("writer", crash::writer),
    ("forgetter", forgetting::forgetter),
    ("incrementer", sharing::incrementer),
    ("holder", sharing::holder),
    ("waiter", sharing::waiter),
    ("editor", editing::editor),
    ("indexer", indexing::indexer),
    ("searcher", indexing::searcher),
    ("index-holder", indexing::index_holder),
    ("busy", holding::busy_writer),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, role, directory, rest @ ..] = arguments.as_slice()
        && word == "child"
    {
        let (_, run) = ROLES.iter().find(|(name, _)| name == role).expect("a known role");
        return run(Path::new(directory), rest);
    }
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    for (name, run) in SCENARIOS {
        if wanted.is_none_or(|wanted| name.contains(wanted.as_str())) {
            run();
            println!("test processes::{name} ... ok");
        }
    }
}

/// Starts this program as a child with a role.
fn start(role: &str, directory: &Path, rest: &[&str]) -> Child {
    Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["child", role])
        .arg(directory)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts")
}

/// Returns the lines that a child prints; a last line that was cut off is left out.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let mut output = BufReader::new(child.stdout.take().expect("the output is piped"));
    std::iter::from_fn(move || {
        let mut line = String::new();
        output.read_line(&mut line).ok()?;
        line.strip_suffix('\n').map(str::to_owned)
    })
}
