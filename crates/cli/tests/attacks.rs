//! Denial-of-service attacks on the real binary.
//!
//! Throughout each attack, `/healthz` and a read with a key are answered within a second, on new
//! connections. The attacks are bounded and run sequentially, in a test binary of their own, so that
//! they measure the server and not each other.

#![cfg(target_os = "linux")]
#![expect(dead_code, reason = "other tests use more of the shared modules")]

#[path = "it/server.rs"]
mod server;
#[path = "it/support.rs"]
mod support;

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use server::{KEY, Server};
use support::Quipu;

/// The deadline of a legitimate client.
const PROMPT: Duration = Duration::from_secs(1);

/// More connections than the server has slots for.
const CROWD: usize = 1100;

/// The memory limit under attack that `docs/rest.md` promises.
const RSS_BYTES_MAX: u64 = 256 * 1024 * 1024;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A server under attack.
struct Attacked {
    server: Server,
    memories: String,
    quipu: Quipu,
    _alone: MutexGuard<'static, ()>,
}

impl Attacked {
    fn new(settings: &[(&str, &str)]) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("descriptors");
        let quipu = Quipu::empty();
        let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("QUIPU_ADMIN_KEY", KEY).args(["--log-level", "error"]);
        command.envs(settings.iter().copied());
        let server = Server::spawn(command);
        let memories = server.store();
        Self { server, memories, quipu, _alone: alone }
    }

    /// Opens a connection and sends bytes on it; the server may have closed it already.
    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.server.connect();
        stream.set_nonblocking(true).expect("it is set");
        // With the default size, megabytes would be sent before a write blocks.
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).expect("it is set");
        stream.write_all(bytes).unwrap_or_default();
        stream
    }

    /// Opens many connections that do the same, and checks in between that others are served.
    fn crowd(&self, bytes: &[u8]) -> Vec<TcpStream> {
        let mut crowd = Vec::new();
        for number in 0..CROWD {
            crowd.push(self.send(bytes));
            if number % 100 == 0 {
                self.require_service();
            }
        }
        crowd
    }

    /// Fails unless requests with and without a key are answered in time.
    #[track_caller]
    fn require_service(&self) {
        for (path, key) in [("/healthz", ""), (self.memories.as_str(), KEY)] {
            let start = Instant::now();
            let answer = self.ask(path, key);
            let took = start.elapsed();
            let is_served = answer.as_ref().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"));
            assert!(is_served && took < PROMPT, "{path} in {took:?}: {answer:?}");
        }
    }

    fn ask(&self, path: &str, key: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.server.address())?;
        stream.set_read_timeout(Some(PROMPT))?;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[track_caller]
    fn require_modest_memory(&self) {
        let rss = self.rss_bytes();
        assert!(rss < RSS_BYTES_MAX, "{} MiB", rss / 1024 / 1024);
    }

    fn rss_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.server.child.id());
        let status = std::fs::read_to_string(path).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let size = line.and_then(|line| line.split_whitespace().next());
        size.and_then(|size| size.parse::<u64>().ok()).expect("a size") * 1024
    }
}

fn repeated(request: &str, times: usize) -> Vec<u8> {
    request.repeat(times).into_bytes()
}

#[test]
fn clients_that_never_read_lock_nobody_out() {
    let attacked = Attacked::new(&[]);
    let crowd = attacked.crowd(&repeated("GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n", 100));
    for _ in 0..10 {
        attacked.require_service();
    }
    attacked.require_modest_memory();
    drop(crowd);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let attacked = Attacked::new(&[("QUIPU_SERVE_WRITE_TIMEOUT_SECONDS", "1")]);
    let request = "GET /openapi.json HTTP/1.1\r\nhost: x\r\nx-api-key: x\r\n\r\n";
    let mut stream = attacked.send(&repeated(request, 200));
    std::thread::sleep(Duration::from_secs(3));
    stream.set_nonblocking(false).expect("it is set");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let mut received = 0;
    let mut buffer = vec![0; 1024 * 1024];
    let ended = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break true,
            Ok(size) => received += size,
            Err(error) => break error.kind() == ErrorKind::ConnectionReset,
        }
    };
    assert!(ended, "the connection is still open");
    assert!(received < 150 * 144 * 1024, "everything was sent: {received}");
}

#[test]
fn clients_with_slow_heads_lock_nobody_out() {
    let attacked = Attacked::new(&[]);
    let mut crowd = attacked.crowd(b"GET /healthz HTTP/1.1\r\nx-slow: ");
    for _ in 0..10 {
        for stream in &mut crowd {
            stream.write_all(b"x").unwrap_or_default();
        }
        attacked.require_service();
    }
    attacked.require_modest_memory();
}

#[test]
fn clients_with_huge_heads_use_little_memory() {
    let attacked = Attacked::new(&[]);
    let head = format!("GET /healthz HTTP/1.1\r\nx-huge: {}", "x".repeat(500_000));
    let crowd = attacked.crowd(head.as_bytes());
    attacked.require_service();
    attacked.require_modest_memory();
    drop(crowd);
}

#[test]
fn missing_bodies_lock_nobody_out() {
    let attacked = Attacked::new(&[]);
    let post = |key: &str| {
        let memories = &attacked.memories;
        format!("POST {memories} HTTP/1.1\r\nhost: x\r\n{key}content-length: 100\r\n\r\n{{")
    };
    let heads = [
        post(""),
        post("x-api-key: a wrong key, but long\r\n"),
        post(&format!("x-api-key: {KEY}\r\n")),
    ];
    let mut waiting = Vec::new();
    // Together they exceed the number of concurrent requests.
    for head in heads {
        for number in 0..300 {
            waiting.push(attacked.send(head.as_bytes()));
            if number % 50 == 0 {
                attacked.require_service();
            }
        }
    }
    for _ in 0..10 {
        attacked.require_service();
    }
    drop(waiting);
}

#[test]
fn idle_connections_lock_nobody_out() {
    let attacked = Attacked::new(&[]);
    let crowd = attacked.crowd(b"");
    attacked.require_service();
    attacked.require_modest_memory();
    drop(crowd);
}

#[test]
fn wrong_keys_slow_down_nobody_else() {
    let attacked = Attacked::new(&[]);
    let request = |number: usize| {
        let memories = &attacked.memories;
        format!("GET {memories} HTTP/1.1\r\nhost: x\r\nx-api-key: wrong key {number}\r\n\r\n")
    };
    let crowd: Vec<_> =
        (0..200).map(|number| attacked.send(&repeated(&request(number), 20))).collect();
    for _ in 0..20 {
        attacked.require_service();
    }
    // A key that was never used here, from the same address, is not slowed either.
    let new = attacked.quipu.json(&["key", "create", "--role", "read_only"]);
    let secret = new["secret"].as_str().expect("a secret");
    let start = Instant::now();
    let answer = attacked.ask(&attacked.memories, secret).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && start.elapsed() < PROMPT, "{answer}");
    drop(crowd);
}

#[test]
fn invented_methods_add_no_metrics() {
    let attacked = Attacked::new(&[]);
    let series = || {
        attacked.server.get(KEY, "/metrics").1.to_string().matches("quipu_requests_total{").count()
    };
    let invent = |number: usize| {
        let request =
            format!("INVENTED{number} /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut stream = attacked.server.connect();
        stream.write_all(request.as_bytes()).expect("sent");
        stream.read_to_end(&mut Vec::new()).expect("an answer");
    };
    invent(0);
    attacked.require_service();
    series();
    let before = series();
    for number in 1..=500 {
        invent(number);
        if number % 100 == 0 {
            attacked.require_service();
        }
    }
    assert_eq!(series(), before);
}

#[test]
fn many_mcp_sessions_use_little_memory() {
    const THREADS: usize = 4;
    let attacked = Attacked::new(&[]);
    let about = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "many", "version": "1"},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
    let begin = || {
        let request = attacked.server.agent.post(format!("{}/mcp", attacked.server.url));
        let request = request
            .header("x-api-key", KEY)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let mut response = request.send(message.to_string()).expect("an answer");
        response.body_mut().read_to_string().expect("a text");
        assert_eq!(response.status(), 200);
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (0..5000 / THREADS).for_each(|_| begin())))
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            attacked.require_service();
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let metrics = attacked.server.get(KEY, "/metrics").1.to_string();
    assert!(metrics.contains("quipu_mcp_connections 64"), "{metrics}");
    attacked.require_modest_memory();
    let (_, sessions) = attacked.server.get(KEY, "/v1/sessions");
    assert_eq!(sessions["data"], json!([]), "an `initialize` writes no row");
}
