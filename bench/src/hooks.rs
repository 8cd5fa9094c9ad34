//! The hooks of hosts: a process for each event, as a host starts it, and decisions without a process.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quipu_rules::{Call, Event, Rule, RuleSet, ToolKind};
use serde_json::{Value, json};

use crate::knowledge::{note, question};
use crate::table::{number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// The number of notes, and of memories in the store of the rules
    #[arg(long, default_value_t = 10_000)]
    notes: u64,
    /// The number of rules among the latter
    #[arg(long, default_value_t = 200)]
    rules: u64,
    /// How often each hook is started
    #[arg(long, default_value_t = 200)]
    runs: u64,
    /// How many calls are decided without a process
    #[arg(long, default_value_t = 100_000)]
    calls: u64,
}

pub(crate) fn run(arguments: &Arguments) {
    let home = tempfile::tempdir_in("target").expect("a directory can be made in `target`");
    let binary = fs::canonicalize(&arguments.binary).expect("the binary is built in release mode");
    prepare(arguments, &binary, home.path());
    let shell = |number: u64| {
        call("Bash", &json!({"command": format!("cargo test case{number} && git status")}))
    };
    let edit = |number: u64| {
        call(
            "Edit",
            &json!({"file_path": format!("src/part{number}.rs"), "new_string": "fn a() {}"}),
        )
    };
    let denied = |number: u64| {
        call(
            "Edit",
            &json!({"file_path": format!("area{}/x.rs", number % arguments.rules), "new_string": "x"}),
        )
    };
    let prompt =
        |number: u64| json!({"hook_event_name": "UserPromptSubmit", "prompt": question(number)});
    let start = |_: u64| json!({"hook_event_name": "SessionStart", "source": "startup"});
    let subjects: [Subject<'_>; 6] = [
        ("a process that does nothing (`--version`)", "", "--version", &|_| Value::Null),
        ("decide: a command that no rule is about", "10", "decide", &shell),
        ("decide: an edit that no rule is about", "10", "decide", &edit),
        ("decide: an edit that is denied", "10", "decide", &denied),
        ("a prompt of eight words", "30", "run", &prompt),
        ("the start of a session", "", "run", &start),
    ];
    let mut rows = vec![row(&[&"hook", &"p50", &"p95", &"p99", &"goal, p95"])];
    for (name, goal, verb, input) in subjects {
        let times = (0..arguments.runs)
            .map(|number| timed(&binary, home.path(), (verb, number), &input(number)));
        let times = sorted(times.collect());
        let of = |percent| number(at(&times, percent));
        rows.push(row(&[&name, &of(50), &of(95), &of(99), &goal]));
    }
    // The hook reads all rules again and keeps a copy.
    let changed = (0..arguments.runs.div_ceil(10)).map(|number| {
        put_rule(&binary, home.path(), number % arguments.rules);
        timed(&binary, home.path(), ("decide", number), &edit(number))
    });
    let times = sorted(changed.collect());
    let of = |percent| number(at(&times, percent));
    rows.push(row(&[
        &"decide: the first edit after a rule has changed",
        &of(50),
        &of(95),
        &of(99),
        &"",
    ]));
    let title = format!(
        "Hooks, {} notes, {} rules among as many; milliseconds, the start of the process included",
        arguments.notes, arguments.rules
    );
    print(&title, &rows);
    in_process(arguments);
}

/// What is timed: its name, its goal in milliseconds, the verb of `quipu hook`, and what the host sends.
type Subject<'s> = (&'s str, &'s str, &'s str, &'s dyn Fn(u64) -> Value);

/// Imports the notes and the rules, and builds the index.
fn prepare(arguments: &Arguments, binary: &Path, home: &Path) {
    let folder = tempfile::tempdir_in("target").expect("a directory can be made in `target`");
    let write = |number: u64, text: String| {
        let file = folder.path().join(path(number).trim_start_matches('/'));
        fs::create_dir_all(file.parent().expect("it is in a directory")).expect("it can be made");
        fs::write(file, text).expect("it can be written");
    };
    let quipu = |arguments: &[&str]| {
        let done = Command::new(binary).arg("--data").arg(home).args(arguments).output();
        let done = done.expect("it starts");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    (0..arguments.notes).for_each(|number| write(number, note(number)));
    quipu(&["store", "create", "notes"]);
    quipu(&["store", "default", "notes"]);
    quipu(&["-s", "notes", "import", folder.path().to_str().expect("text")]);
    quipu(&["-s", "notes", "search", "index"]);
    // An import is a session, and these may not change what is reserved for people.
    (0..arguments.rules).for_each(|number| write(number, rule(number)));
    quipu(&["store", "create", "rules"]);
    quipu(&["-s", "rules", "import", folder.path().to_str().expect("text")]);
    quipu(&["store", "update", "rules", "--writers", "people"]);
}

/// Returns the path of a note, or of a rule.
fn path(number: u64) -> String {
    format!("/topic{}/note{number}.md", number % 50)
}

/// Writes a rule, each time as another text.
fn put_rule(binary: &Path, home: &Path, number: u64) {
    let mut command = Command::new(binary);
    command.arg("--data").arg(home).args(["-s", "rules", "put", &path(number)]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let text = format!("{}\n{:?}\n", rule(number), Instant::now());
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
}

/// Returns one of several kinds of rules.
fn rule(number: u64) -> String {
    let fields = match number % 4 {
        0 => format!("tool: [edit, shell]\n  path: ['area{number}/**', '!area{number}/docs/**']"),
        1 => {
            format!("tool: shell\n  command: ['tool{number} ** --force*', '/tool{number} +drop/']")
        }
        2 => {
            format!("tool: edit\n  path: '**/part{number}/*.rs'\n  content: 'unwrap{number}\\(\\)'")
        }
        _ => format!("path: 'area{number}/**'"),
    };
    format!(
        "---\nrule:\n  {fields}\n  decision: deny\n---\n# Rule {number}\n\nThe reason for it, in a sentence.\n"
    )
}

fn call(tool: &str, input: &Value) -> Value {
    json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input})
}

/// Returns how long a hook takes.
fn timed(binary: &Path, home: &Path, (verb, number): (&str, u64), input: &Value) -> Duration {
    let mut input = input.clone();
    if let Some(fields) = input.as_object_mut() {
        fields.insert("session_id".to_owned(), json!(format!("session{number}")));
        fields.insert("cwd".to_owned(), json!("/tmp"));
    }
    let mut command = Command::new(binary);
    command.arg("--data").arg(home).stdin(Stdio::piped()).stdout(Stdio::null());
    if verb == "--version" {
        command.arg(verb);
    } else {
        command.args(["hook", verb, "--host", "claude-code"]);
    }
    let start = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("the input is piped");
    // One that does not read its input may have ended.
    pipe.write_all(input.to_string().as_bytes()).unwrap_or_default();
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
    start.elapsed()
}

/// Measures decisions without a process, each with rules that are parsed already.
fn in_process(arguments: &Arguments) {
    let mut set = RuleSet::default();
    (0..arguments.rules)
        .for_each(|number| set.add(Rule::parse(&format!("/{number}.md"), &rule(number))));
    let times = (0..arguments.calls).map(|number| {
        let base = |tool, kind| Call { directory: "/work/app".to_owned(), ..Call::new(Event::BeforeTool, tool, kind) };
        let call = if number % 2 == 0 {
            let command = format!("cd area{} && cargo test --case {number} | tee out.txt; git commit -m 'case {number}'", number % 500);
            Call { command: Some(command), ..base("Bash", ToolKind::Shell) }
        } else {
            let path = format!("area{}/part{}/a.rs", number % 500, number % 300);
            Call { paths: vec![path], content: Some(note(number)), ..base("Edit", ToolKind::Edit) }
        };
        let start = Instant::now();
        std::hint::black_box(set.decide(&call));
        start.elapsed()
    });
    let times = sorted(times.collect());
    let of = |percent| number(at(&times, percent));
    let rows = [
        row(&[&"calls", &"p50", &"p95", &"p99", &"goal, p99"]),
        row(&[&arguments.calls, &of(50), &of(95), &of(99), &"5"]),
    ];
    print(&format!("Decisions in one process, {} rules; milliseconds", arguments.rules), &rows);
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

/// Returns a percentile in milliseconds.
fn at(times: &[Duration], percent: usize) -> f64 {
    let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}
