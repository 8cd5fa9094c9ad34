//! The MCP server over stdio: time to first answer, memory, and the time of an import, a note and a
//! search. A peer that speaks MCP and has the same tools is measured with the same calls.
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
use tempfile::TempDir;

use crate::knowledge::{common_word, note, question, rare_word, two_words};
use crate::table::{median, number, print, row, spent};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// The numbers of notes to measure at
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    sizes: Vec<u64>,
    /// How often each call is made
    #[arg(long, default_value_t = 50)]
    calls: u64,
    /// The command line of another server to measure with the same calls
    #[arg(long, value_name = "COMMAND")]
    peer: Option<String>,
    /// How many notes the peer gets
    #[arg(long, default_value_t = 50)]
    peer_notes: u64,
}

/// How often the server is started.
const STARTS: usize = 20;
const PEER_STARTS: usize = 2;
/// A note that is not found by then is never found.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
struct Subject {
    command: String,
    arguments: Vec<String>,
    /// The number of notes.
    notes: u64,
    starts: usize,
    calls: u64,
}

/// A measurement with its name and target.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    goal: &'static str,
    value: f64,
}

pub(crate) fn run(arguments: &Arguments) {
    println!("Notes of about 1.5 KB with words of natural frequency, links and tags.");
    let peer = arguments.peer.as_ref().map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let subject = Subject {
            command: words.next().expect("the peer has a command"),
            arguments: words.collect(),
            notes: arguments.peer_notes,
            starts: PEER_STARTS,
            calls: arguments.calls,
        };
        let home = home();
        let mut host = Host::new(&subject, home.path());
        (0..subject.notes).for_each(|number| drop(host.call("write_note", &written(number))));
        drop(host);
        measured(&subject, home.path())
    });
    for &size in &arguments.sizes {
        let ours = ours(arguments, size);
        let mut rows = vec![row(&[&"what", &"Quipu", &"goal", &"peer", &"ratio"])];
        for Figure { name, goal, value } in &ours {
            let peer = peer.iter().flatten().find(|figure| figure.name == *name);
            let shown = peer.map_or_else(|| "-".to_owned(), |peer| number(peer.value));
            let ratio = peer.map_or_else(|| "-".to_owned(), |peer| number(peer.value / value));
            rows.push(row(&[name, &number(*value), goal, &shown, &ratio]));
        }
        print(&format!("MCP over stdio, {size} notes; milliseconds, the median"), &rows);
    }
    match peer {
        None => println!("\nNo peer was measured; name one with `--peer`."),
        Some(_) => println!("\nThe peer had {} notes.", arguments.peer_notes),
    }
}

fn home() -> TempDir {
    tempfile::tempdir_in("target").expect("a directory can be made in `target`")
}

/// Measures Quipu with this many notes, which it imports first.
fn ours(arguments: &Arguments, size: u64) -> Vec<Figure> {
    let binary = fs::canonicalize(&arguments.binary).expect("the binary is built in release mode");
    let (home, folder) = (home(), home());
    for number in 0..size {
        let file = folder.path().join(format!("topic{}/note{number}.md", number % 50));
        fs::create_dir_all(file.parent().expect("it is in a directory")).expect("it can be made");
        fs::write(file, note(number)).expect("it can be written");
    }
    let quipu = |words: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(words).env("QUIPU_DATA", home.path().join("quipu")).stdout(Stdio::null());
        command.envs(limits());
        assert!(command.status().is_ok_and(|status| status.success()), "{words:?} works");
    };
    quipu(&["store", "create", "notes"]);
    let folder = folder.path().to_string_lossy();
    let begun = Instant::now();
    quipu(&["import", &folder, "--store", "notes"]);
    let goal = goal_at(size, ["1000", "10000", "-"]);
    let name = "import of all notes as files";
    let mut figures = vec![Figure { name, goal, value: millis(begun) }];
    let subject = Subject {
        command: binary.to_string_lossy().into_owned(),
        arguments: vec!["mcp".to_owned()],
        notes: size,
        starts: STARTS,
        calls: arguments.calls,
    };
    figures.extend(measured(&subject, home.path()));
    figures
}

/// Measures a server that already has its notes.
fn measured(subject: &Subject, home: &Path) -> Vec<Figure> {
    // The first search brings the index up to date.
    Host::new(subject, home).call("search_notes", &json!({"query": "warm"}));
    let start = median((0..subject.starts).map(|_| start(subject, home)).collect());
    let mut host = Host::new(subject, home);
    let mut calls = |call: &mut dyn FnMut(&mut Host, u64) -> f64| {
        median((0..subject.calls).map(|it| call(&mut host, it)).collect())
    };
    let mut search = |words: &dyn Fn(u64) -> String| {
        calls(&mut |host, it| host.timed("search_notes", &json!({"query": words(it)})))
    };
    let goal = goal_at(subject.notes, ["1.5", "3", "12"]);
    let searches = [
        ("search_notes: a rare word", search(&rare_word)),
        ("search_notes: two words", search(&two_words)),
        ("search_notes: a question of 8 words", search(&question)),
        ("search_notes: a word that most notes have", search(&common_word)),
    ];
    let context = calls(&mut |host, it| {
        let url = format!("memory://note{}", it * 7 % subject.notes);
        host.timed("build_context", &json!({ "url": url }))
    });
    let new = |it: u64| subject.notes + it;
    let write = calls(&mut |host, it| host.timed("write_note", &written(new(it))));
    let found = calls(&mut |host, it| until_found(host, new(subject.calls + it)));
    let resident = spent(host.child.id()).1;
    let mut figures = vec![
        Figure { name: "start to first tool answer", goal: "15", value: start },
        Figure { name: "write_note", goal: "3", value: write },
        Figure { name: "write_note until found by search_notes", goal: "3", value: found },
    ];
    figures.extend(searches.map(|(name, value)| Figure { name, goal, value }));
    figures.push(Figure { name: "build_context", goal: "-", value: context });
    figures.push(Figure { name: "resident memory after all, MB", goal: "30", value: resident });
    figures
}

/// Returns the settings under which any number of notes fits into a store.
fn limits() -> [(&'static str, String); 2] {
    let largest = i64::MAX.to_string();
    [
        ("QUIPU_LIMITS_MEMORIES_PER_STORE_MAX", largest.clone()),
        ("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", largest),
    ]
}

/// Returns the goal at 1,000, 10,000 or 100,000 notes, whichever is the next.
fn goal_at(notes: u64, [thousand, ten_thousand, more]: [&'static str; 3]) -> &'static str {
    match notes {
        0..=1_000 => thousand,
        1_001..=10_000 => ten_thousand,
        _ => more,
    }
}

/// Returns the time from the start of the process to the answer of its first tool call.
fn start(subject: &Subject, home: &Path) -> f64 {
    let begun = Instant::now();
    let mut host = Host::new(subject, home);
    host.call("list_memory_projects", &json!({}));
    millis(begun)
}

fn until_found(host: &mut Host, number: u64) -> f64 {
    let mut note = written(number);
    let word = format!("unique{number}word");
    if let Some(fields) = note.as_object_mut() {
        fields.insert("content".to_owned(), json!(format!("# Note {number}\n- [fact] {word}\n")));
    }
    let begun = Instant::now();
    host.call("write_note", &note);
    loop {
        let found = host.call("search_notes", &json!({ "query": word })).to_string();
        if found.contains(&format!("note{number}")) {
            return millis(begun);
        }
        assert!(begun.elapsed() < PATIENCE, "note {number} is not found: {found}");
    }
}

/// Returns the arguments that write a note.
fn written(number: u64) -> Value {
    let directory = format!("topic{}", number % 50);
    json!({"title": format!("note{number}"), "content": note(number), "directory": directory})
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// A server and its pipes.
struct Host {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Host {
    /// Starts a server and performs the handshake.
    fn new(subject: &Subject, home: &Path) -> Self {
        let mut child = Command::new(&subject.command)
            .args(&subject.arguments)
            .env("HOME", home)
            .env("QUIPU_DATA", home.join("quipu"))
            .envs(limits())
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
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
