//! The memory tool against the local tools of the Python and TypeScript SDKs.
//!
//! The SDKs' tools run in-process, so their figures include no pipe and no JSON. Quipu's do: what
//! is measured is the CPU time of `quipu tool` and the latency until its answer is read.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::table::{number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// A Python with the SDK, as `./test python` makes it
    #[arg(long, default_value = "target/venv/bin/python")]
    python: PathBuf,
    /// A directory with the TypeScript SDK in its `node_modules`, as `./test typescript` makes it
    #[arg(long, default_value = "target/typescript")]
    packages: PathBuf,
    /// How many commands each scenario has
    #[arg(long, default_value_t = 1000)]
    commands: usize,
}

struct Scenario {
    name: &'static str,
    setup: Vec<Value>,
    commands: Vec<Value>,
    /// Whether the commands may be run before the clock starts.
    warm: bool,
}

#[derive(Clone, Copy)]
struct Measured {
    cpu_micros: f64,
    wall_micros: f64,
}

pub(crate) fn run(arguments: &Arguments) {
    let scenarios = scenarios(arguments.commands);
    let folder = tempfile::tempdir_in("target").expect("a directory can be made in `target`");
    let file = folder.path().join("scenarios.json");
    let as_json = |scenario: &Scenario| json!({"setup": scenario.setup, "commands": scenario.commands, "warm": scenario.warm});
    let all: Vec<_> = scenarios.iter().map(as_json).collect();
    fs::write(&file, Value::from(all).to_string()).expect("it can be written");

    let ours = quipu(&arguments.binary, &scenarios, &folder);
    let mut python = Command::new(&arguments.python);
    python.arg("bench/peers/memory_tool.py").arg(&file).arg(folder.path());
    let python = peer(python, "the Python SDK (run `./test python` first)");
    let mut typescript = Command::new("node");
    typescript.arg("bench/peers/memory_tool.mjs").arg(&file).arg(folder.path());
    typescript.arg(fs::canonicalize(&arguments.packages).unwrap_or_default());
    let typescript = peer(typescript, "the TypeScript SDK (run `./test typescript` first)");

    let mut rows = vec![row(&[
        &"command",
        &"Quipu CPU µs",
        &"Python",
        &"TypeScript",
        &"Quipu wall µs",
        &"Python",
        &"TypeScript",
    ])];
    for (index, scenario) in scenarios.iter().enumerate() {
        let Some(ours) = ours.get(index) else { continue };
        let cell = |peer: &[Measured], value: fn(&Measured) -> f64| {
            peer.get(index).map_or_else(
                || "-".to_owned(),
                |peer| format!("{} ({} x)", number(value(peer)), number(value(peer) / value(ours))),
            )
        };
        let (cpu, wall) = (|m: &Measured| m.cpu_micros, |m: &Measured| m.wall_micros);
        rows.push(row(&[
            &scenario.name,
            &number(ours.cpu_micros),
            &cell(&python, cpu),
            &cell(&typescript, cpu),
            &number(ours.wall_micros),
            &cell(&python, wall),
            &cell(&typescript, wall),
        ]));
    }
    print("The memory tool, each command (x: how many times Quipu's)", &rows);
}

fn scenarios(count: usize) -> Vec<Scenario> {
    let create =
        |path: String, text: &str| json!({"command": "create", "path": path, "file_text": text});
    let hundred_lines = "a line of an ordinary note, neither short nor long\n".repeat(100);
    let view = |path: &str| json!({"command": "view", "path": path});
    let replace = |number: usize| {
        let (old, new) = (format!("value {number}."), format!("value {}.", number + 1));
        json!({"command": "str_replace", "path": "/memories/edit.md", "old_str": old, "new_str": new})
    };
    vec![
        Scenario {
            name: "view a file of 100 lines",
            setup: vec![create("/memories/file.md".to_owned(), &hundred_lines)],
            commands: vec![view("/memories/file.md"); count],
            warm: true,
        },
        Scenario {
            name: "create a file",
            setup: Vec::new(),
            commands: (0..count)
                .map(|n| create(format!("/memories/new/{n}.md"), "text\n"))
                .collect(),
            warm: false,
        },
        Scenario {
            name: "str_replace in a file of 100 lines",
            setup: vec![create(
                "/memories/edit.md".to_owned(),
                &format!("{hundred_lines}value 0.\n"),
            )],
            commands: (0..count).map(replace).collect(),
            warm: false,
        },
        Scenario {
            name: "view a directory of 2,000 files",
            setup: (0..2000).map(|n| create(format!("/memories/many/{n}.md"), "text\n")).collect(),
            commands: vec![view("/memories/many"); count / 10],
            warm: true,
        },
    ]
}

/// A running `quipu tool`.
struct Tool {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

fn quipu(binary: &Path, scenarios: &[Scenario], folder: &TempDir) -> Vec<Measured> {
    let mut child = Command::new(binary)
        .arg("--data")
        .arg(folder.path().join("data"))
        .arg("tool")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("quipu starts; build it with `cargo build --release`");
    let input = child.stdin.take().expect("the input is piped");
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    let mut tool = Tool { child, input, output };
    let measured = scenarios.iter().map(|scenario| tool.measure(scenario)).collect();
    drop(tool.input);
    tool.child.wait().expect("quipu ends");
    measured
}

impl Tool {
    fn measure(&mut self, scenario: &Scenario) -> Measured {
        scenario.setup.iter().for_each(|command| self.call(command));
        if scenario.warm {
            scenario.commands.iter().take(20).for_each(|command| self.call(command));
        }
        let (cpu, wall) = (self.cpu_nanos(), Instant::now());
        scenario.commands.iter().for_each(|command| self.call(command));
        let wall = wall.elapsed();
        let cpu = self.cpu_nanos() - cpu;
        let count = f64::from(u32::try_from(scenario.commands.len()).expect("few commands"));
        let cpu = f64::from(u32::try_from(cpu / 1000).unwrap_or(u32::MAX));
        Measured { cpu_micros: cpu / count, wall_micros: wall.as_secs_f64() * 1e6 / count }
    }

    fn call(&mut self, command: &Value) {
        self.input.write_all(format!("{command}\n").as_bytes()).expect("quipu reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("quipu answers");
        assert!(answer.ends_with("\"is_error\":false}\n"), "{command}: {answer}");
    }

    /// Returns the CPU time of the process.
    fn cpu_nanos(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()));
        let stat = stat.expect("the process runs on Linux");
        stat.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).expect("a number")
    }
}

fn peer(mut command: Command, name: &str) -> Vec<Measured> {
    let Ok(output) = command.stderr(Stdio::inherit()).output() else {
        println!("left out, because it cannot be started: {name}");
        return Vec::new();
    };
    if !output.status.success() {
        println!("left out, because it failed: {name}");
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let measured = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let value = |name: &str| line.get(name).and_then(Value::as_f64);
        Some(Measured { cpu_micros: value("cpu_us")?, wall_micros: value("wall_us")? })
    };
    lines.lines().filter_map(measured).collect()
}
