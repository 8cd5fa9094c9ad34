//! The MCP server over stdio: how soon it answers, how much memory it takes, how long a note and a
//! search take. A peer that speaks MCP and has the same tools is measured with the same calls.
//!
//! Basic Memory as the peer (it needs Python 3.12):
//!
//! ```sh
//! uv tool install basic-memory==0.24.1
//! cargo run --release -p quipu-bench -- mcp --peer 'basic-memory mcp'
//! ```

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::table::{median, number, print, row};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// How many notes are written before searches are measured
    #[arg(long, default_value_t = 1000)]
    notes: usize,
    /// The command line of another server to measure with the same calls
    #[arg(long, value_name = "COMMAND")]
    peer: Option<String>,
    /// How many notes the peer gets
    #[arg(long, default_value_t = 50)]
    peer_notes: usize,
}

/// How often short things are repeated.
const ROUNDS: usize = 20;
/// A note that is not found after this time never will be.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
struct Subject {
    command: String,
    arguments: Vec<String>,
    notes: usize,
    starts: usize,
}

/// What was measured, in milliseconds and megabytes.
#[derive(Debug)]
struct Measured {
    start: f64,
    resident: f64,
    write: f64,
    until_found: f64,
    search: f64,
    context: f64,
}

pub(crate) fn run(arguments: &Arguments) {
    let binary = fs::canonicalize(&arguments.binary).expect("the binary is built in release mode");
    let ours = Subject {
        command: binary.to_string_lossy().into_owned(),
        arguments: vec!["mcp".to_owned()],
        notes: arguments.notes,
        starts: ROUNDS,
    };
    let ours = measured(&ours);
    let peer = arguments.peer.as_ref().map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let command = words.next().expect("the peer has a command");
        let arguments_of_peer = words.collect();
        measured(&Subject {
            command,
            arguments: arguments_of_peer,
            notes: arguments.peer_notes,
            starts: 2,
        })
    });
    let mut rows = vec![row(&[&"what", &"Quipu", &"goal", &"peer", &"ratio"])];
    let mut add = |name: &str, goal: &str, value: fn(&Measured) -> f64| {
        let (ours, peer) = (value(&ours), peer.as_ref().map(value));
        let shown = peer.map_or_else(|| "-".to_owned(), number);
        let ratio = peer.map_or_else(|| "-".to_owned(), |peer| number(peer / ours));
        rows.push(row(&[&name, &number(ours), &goal, &shown, &ratio]));
    };
    add("start to first tool answer, ms", "50", |it| it.start);
    add("resident memory after that work, MB", "30", |it| it.resident);
    add("write_note, p50 ms", "3", |it| it.write);
    add("write_note until found by search_notes, p50 ms", "3", |it| it.until_found);
    add("search_notes, p50 ms", "2", |it| it.search);
    add("build_context, p50 ms", "-", |it| it.context);
    print(&format!("MCP over stdio, {} notes", arguments.notes), &rows);
    if peer.is_none() {
        println!("\nNo peer was measured; name one with `--peer`.");
    } else {
        println!("\nThe peer had {} notes.", arguments.peer_notes);
    }
}

fn measured(subject: &Subject) -> Measured {
    let home = tempfile::tempdir_in("target").expect("a directory can be made in `target`");
    let start = median((0..subject.starts).map(|_| start(subject, home.path())).collect());
    let mut host = Host::new(subject, home.path());
    let mut writes = Vec::new();
    for number in 0..subject.notes {
        writes.push(host.timed("write_note", &note(number)));
    }
    let found = (0..ROUNDS.min(subject.notes))
        .map(|round| until_found(&mut host, subject.notes + round))
        .collect();
    let words = ["harbour", "lantern", "meadow", "orchard", "granite"];
    let queries = words.iter().cycle().take(ROUNDS * words.len());
    let search = queries
        .map(|word| host.timed("search_notes", &json!({"query": format!("{word} review")})))
        .collect();
    let context = (0..ROUNDS)
        .map(|round| {
            let url = format!("memory://bench/note-{}", round % subject.notes.max(1));
            host.timed("build_context", &json!({ "url": url }))
        })
        .collect();
    Measured {
        start,
        resident: host.resident_megabytes(),
        write: median(writes),
        until_found: median(found),
        search: median(search),
        context: median(context),
    }
}

/// Returns the time from the start of the process to the answer of its first tool call.
fn start(subject: &Subject, home: &Path) -> f64 {
    let begun = Instant::now();
    let mut host = Host::new(subject, home);
    host.call("list_memory_projects", &json!({}));
    millis(begun)
}

fn until_found(host: &mut Host, number: usize) -> f64 {
    let mut note = note(number);
    let word = format!("unique{number}word");
    if let Some(fields) = note.as_object_mut() {
        fields.insert("content".to_owned(), json!(format!("# Note {number}\n- [fact] {word}\n")));
    }
    let begun = Instant::now();
    host.call("write_note", &note);
    loop {
        let found = host.call("search_notes", &json!({ "query": word })).to_string();
        if found.contains(&format!("Note {number}")) {
            return millis(begun);
        }
        assert!(begun.elapsed() < PATIENCE, "note {number} is not found: {found}");
    }
}

fn note(number: usize) -> Value {
    let words = ["harbour", "lantern", "meadow", "orchard", "granite", "velvet", "copper"];
    let word = |step: usize| words.get((number * 7 + step) % words.len()).copied().unwrap_or("x");
    let body: Vec<_> = (0..10)
        .map(|line| {
            format!(
                "- [fact] The {} and the {} need a review in week {line} #w{line}",
                word(line),
                word(line + 3)
            )
        })
        .collect();
    let content = format!(
        "# Note {number}\n\n{}\n- follows [[Note {}]]\n- part_of [[Plan {}]]\n",
        body.join("\n"),
        number.saturating_sub(1),
        number % 10
    );
    json!({"title": format!("Note {number}"), "content": content, "directory": "bench"})
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// A server, and the pipes to it.
struct Host {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Host {
    /// Starts a server and shakes hands with it.
    fn new(subject: &Subject, home: &Path) -> Self {
        let mut child = Command::new(&subject.command)
            .args(&subject.arguments)
            .env("HOME", home)
            .env("QUIPU_DATA", home.join("quipu"))
            .env_remove("XDG_DATA_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take().expect("the input is piped");
        let output = BufReader::new(child.stdout.take().expect("the output is piped"));
        let mut host = Self { child, input, output, last_id: 0 };
        let about = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        host.ask("initialize", &about);
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("the output is text");
            assert!(length > 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).expect("each line is JSON");
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return message.get("result").cloned().unwrap_or(message);
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(result.get("isError") != Some(&Value::Bool(true)), "{tool}: {result}");
        result
    }

    fn timed(&mut self, tool: &str, arguments: &Value) -> f64 {
        let begun = Instant::now();
        self.call(tool, arguments);
        millis(begun)
    }

    /// Returns how much memory the server holds, where the system tells.
    fn resident_megabytes(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let line = status.unwrap_or_default();
        let line = line.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes = line.trim().trim_end_matches("kB").trim().parse::<f64>();
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
