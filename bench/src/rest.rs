//! The REST API against a bare handler that returns the same bytes, and against the engine itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::{Value, json};

use crate::engine::{self, fill, open, text};
use crate::followers::Followers;
use crate::load::{Client, Load, Request, load};
use crate::table::{median, number, print, row, spent, time};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The binary to measure
    #[arg(long, default_value = "target/release/quipu")]
    binary: PathBuf,
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often each measurement is repeated; the median is shown
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measure creates only
    #[arg(long)]
    creates: bool,
    /// The larger of the two stores whose lists are compared
    #[arg(long, default_value_t = 100_000)]
    memories: u64,
}

const KEY: &str = "a key that was chosen to measure with";
const READERS: usize = 8;
/// How many memories are read repeatedly.
const READ: u64 = 1000;
const WRITERS: usize = 32;
/// How many clients subscribe to events while others write.
const FOLLOWERS: usize = 300;

pub(crate) fn run(arguments: &Arguments) {
    println!("Servers in processes of their own, the load in this one, memories of 2 KB.");
    if arguments.creates {
        return creates(arguments);
    }
    reads(arguments);
    creates(arguments);
    followed(arguments);
    growth(arguments);
}

/// A server in a process of its own.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    fn quipu(binary: &Path, data: &Path) -> Self {
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data"]);
        command.arg(data).env("QUIPU_ADMIN_KEY", KEY);
        command.env("QUIPU_LIMITS_MEMORIES_PER_STORE_MAX", i64::MAX.to_string());
        command.env("QUIPU_LIMITS_STORE_SIZE_BYTES_MAX", i64::MAX.to_string());
        Self::spawn(command, "")
    }

    pub(crate) fn bare(body: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("bare-http");
        Self::spawn(command, body)
    }

    pub(crate) fn spawn(mut command: Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts (`cargo build --release` first)");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = lines.find_map(|line| {
            let line = line.expect("a line");
            line.strip_prefix("listening on http://").map(str::to_owned)
        });
        Self { child, address: ready.expect("it becomes ready") }
    }

    fn ask(&self, line: &str, body: &Value) -> Vec<u8> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request { line: line.to_owned(), key: KEY.to_owned(), body };
        Client::connect(&self.address).ask(&request).to_owned()
    }

    /// Returns the URL of a new store's memories.
    fn store(&self) -> String {
        let store = self.ask("POST /v1/memory_stores", &json!({"name": "bench"}));
        let store: Value = serde_json::from_slice(&store).expect("JSON");
        let id = store.get("id").and_then(Value::as_str).expect("an id");
        format!("/v1/memory_stores/{id}/memories")
    }
}

/// Serves the standard input over HTTP, in the style of `axum`'s own examples.
pub(crate) fn bare_http() {
    let body = std::io::read_to_string(std::io::stdin()).expect("a body");
    let body: &'static str = body.leak();
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], body) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let router = axum::Router::new().fallback(get(answer));
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        println!("listening on http://{}", socket.local_addr().expect("an address"));
        axum::serve(socket, router).await.expect("it serves");
    });
}

fn get_request(line: String) -> Request {
    Request { line, key: KEY.to_owned(), body: String::new() }
}

fn reads(arguments: &Arguments) {
    let opened = open();
    let ids = fill(&opened, 0, READ);
    let server = Server::quipu(&arguments.binary, opened.directory.path());
    let memories = format!("/v1/memory_stores/{}/memories", opened.store);
    let line = |connection: usize, turn: usize| {
        let id = ids.get((connection * 997 + turn * 7919) % ids.len()).expect("it is known");
        format!("GET {memories}/{id}")
    };
    let body = String::from_utf8(server.ask(&line(0, 0), &Value::Null)).expect("JSON");
    let bare = Server::bare(&body);
    let span = Duration::from_secs(arguments.seconds);
    let measure = |server: &Server| {
        let (before, _) = spent(server.child.id());
        let request = |connection, turn| get_request(line(connection, turn));
        let load = load(&server.address, READERS, span, request);
        let (after, _) = spent(server.child.id());
        Load { cpu: Some(after.saturating_sub(before).div_f64(load.answers)), ..load }
    };
    let (mut peer, mut ours, mut unsettled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        peer.push(measure(&bare));
        ours.push(measure(&server));
        unsettled.push(while_written(&server, &memories, || measure(&server)));
    }
    let peer = middle(&peer);
    let rows = vec![
        heading("of the bare handler"),
        line_of("a bare axum handler, same bytes", &peer, 1.0),
        line_of("Quipu", &middle(&ours), middle(&ours).rate / peer.rate),
        line_of(
            "Quipu, 100 writes/s beside",
            &middle(&unsettled),
            middle(&unsettled).rate / peer.rate,
        ),
    ];
    print(&format!("Reads by id, {READ} memories, {READERS} connections"), &rows);
}

/// Measures while a writer changes one memory a hundred times a second, so that cached reads are
/// invalidated often.
fn while_written(server: &Server, memories: &str, measure: impl FnOnce() -> Load) -> Load {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(&server.address);
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let path = format!("/beside/{:?}/{number}", std::time::Instant::now());
                let body = json!({"path": path, "content": "x"}).to_string();
                client.ask(&Request {
                    line: format!("POST {memories}"),
                    key: KEY.to_owned(),
                    body,
                });
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let load = measure();
        is_over.store(true, Ordering::Relaxed);
        load
    })
}

/// Creates memories with and without clients that subscribe to events.
fn followed(arguments: &Arguments) {
    let span = Duration::from_secs(arguments.seconds);
    let (mut alone, mut followed, mut lag) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        for followers_count in [0, FOLLOWERS] {
            let directory = engine::scratch();
            let server = Server::quipu(&arguments.binary, directory.path());
            let line = format!("POST {}", server.store());
            let followers = Followers::new(&server.address, KEY, followers_count);
            let load = load(&server.address, WRITERS, span, |connection, turn| {
                let path = format!("/{connection}/{turn}.md");
                let body = json!({"path": path, "content": "followed"}).to_string();
                Request { line: line.clone(), key: KEY.to_owned(), body }
            });
            if followers_count == 0 {
                alone.push(load);
            } else {
                let metrics = server.ask("GET /metrics", &Value::Null);
                let newest = String::from_utf8_lossy(&metrics).lines().find_map(|line| {
                    line.strip_prefix("quipu_sequence ").and_then(|number| number.parse().ok())
                });
                lag.push(followers.lag(newest.expect("a number")).as_secs_f64());
                followed.push(load);
            }
        }
    }
    let (alone, followed) = (middle(&alone), middle(&followed));
    let rows = vec![
        heading("of the first"),
        line_of("nobody follows", &alone, 1.0),
        line_of(&format!("{FOLLOWERS} followers"), &followed, followed.rate / alone.rate),
    ];
    print(&format!("Durable creates, {WRITERS} connections, followed as events"), &rows);
    println!(
        "The last follower had every event {} ms after the last create.",
        number(median(lag) * 1e3)
    );
}

fn creates(arguments: &Arguments) {
    let span = Duration::from_secs(arguments.seconds);
    let (mut peer, mut ours, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let opened = open();
        let writes = 4000 * arguments.seconds;
        peer.push(engine::rate(8, writes, |number| {
            opened.put(number, text(number));
        }));
        let directory = engine::scratch();
        let server = Server::quipu(&arguments.binary, directory.path());
        let line = format!("POST {}", server.store());
        let before = spent(server.child.id()).0;
        let load = load(&server.address, WRITERS, span, |connection, turn| {
            let number = u64::try_from(connection * 1_000_000 + turn).unwrap_or_default();
            let path = format!("/{connection}/{turn}.md");
            let body = json!({"path": path, "content": text(number)}).to_string();
            Request { line: line.clone(), key: KEY.to_owned(), body }
        });
        let cpu = spent(server.child.id()).0.saturating_sub(before).div_f64(load.answers.max(1.0));
        ours.push(Load { cpu: Some(cpu), ..load });
        first.push(time(|| drop(server.ask("GET /quipu/search?q=first", &Value::Null))));
    }
    let (peer, ours) = (median(peer), middle(&ours));
    let rows = vec![
        heading("of the engine"),
        row(&[&"the engine in its own process, 8 writers", &number(peer), &"", &"", &"", &"1.00"]),
        line_of("Quipu over HTTP", &ours, ours.rate / peer),
    ];
    print(&format!("Durable creates, {WRITERS} connections"), &rows);
    // It indexes what the server has not indexed in the background.
    let first = median(first.iter().map(Duration::as_secs_f64).collect());
    println!("The first search after the last create took {} ms.", number(first * 1e3));
}

fn growth(arguments: &Arguments) {
    let opened = open();
    let mut rows = vec![row(&[
        &"memories",
        &"list 100, µs",
        &"CPU until the first answer, ms",
        &"memory after it, MB",
    ])];
    let mut filled = 0;
    for size in [1000, arguments.memories] {
        fill(&opened, filled, size);
        filled = size;
        let server = Server::quipu(&arguments.binary, opened.directory.path());
        let line = format!(
            "GET /v1/memory_stores/{}/memories?limit=100&path_prefix=/notes/",
            opened.store
        );
        server.ask(&line, &Value::Null);
        let (spent, resident) = spent(server.child.id());
        let span = Duration::from_secs(arguments.seconds);
        let listed = load(&server.address, 1, span, |_, _| get_request(line.clone()));
        rows.push(row(&[
            &size,
            &number(listed.median.as_secs_f64() * 1e6),
            &number(spent.as_secs_f64() * 1e3),
            &number(resident),
        ]));
    }
    print("Growth of one store", &rows);
}

fn heading(of: &str) -> Vec<String> {
    row(&[&"", &"per second", &"median, µs", &"p99, µs", &"server CPU, µs", &of])
}

fn line_of(name: &str, load: &Load, share: f64) -> Vec<String> {
    let micros = |time: Duration| number(time.as_secs_f64() * 1e6);
    let cpu = load.cpu.map(micros).unwrap_or_default();
    let (middle, p99) = (micros(load.median), micros(load.p99));
    row(&[&name, &number(load.rate), &middle, &p99, &cpu, &number(share)])
}

/// Returns the load with the median rate.
fn middle(loads: &[Load]) -> Load {
    let rate = median(loads.iter().map(|load| load.rate).collect());
    let of = |value: fn(&Load) -> Duration| {
        let values = loads.iter().map(|load| value(load).as_secs_f64()).collect();
        Duration::from_secs_f64(median(values))
    };
    let cpu = of(|load| load.cpu.unwrap_or_default());
    Load {
        rate,
        median: of(|load| load.median),
        p99: of(|load| load.p99),
        cpu: (!cpu.is_zero()).then_some(cpu),
        answers: 0.0,
    }
}
