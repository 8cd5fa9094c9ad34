//! `quipu serve`, as a process of its own with real connections.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::server::{KEY, Server, agent, id};
use crate::support::Quipu;

#[test]
fn a_failed_start_does_not_consume_the_first_key() {
    let quipu = Quipu::empty();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let ran = quipu.run(&["serve", "--listen", &address]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("cannot listen on"), "{}", ran.err);
    let server = Server::spawn(quipu.command(&["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(server.get(&first_key(&server), "/v1/memory_stores").0, 200);
}

/// Reads the key from the file that the server names.
fn first_key(server: &Server) -> String {
    let mut lines = server.lines.iter();
    let path = lines.find_map(|line| line.strip_prefix("api key file: ")).expect("a file");
    std::fs::read_to_string(path).expect("the key").trim_end().to_owned()
}

#[test]
fn the_first_start_shows_a_key_once_and_stores_only_its_hash() {
    let quipu = Quipu::empty();
    let plain = || quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(plain());
    assert_eq!(server.lines.len(), 1, "{:?}", server.lines);
    let key = first_key(&server);
    let file = quipu.data().join("first-key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    assert_eq!(server.get(&key, "/v1/memory_stores").0, 200);
    assert_eq!(server.get("another key of that length", "/v1/memory_stores").0, 401);
    drop(server);
    std::fs::remove_file(file).expect("the operator can remove it");
    let server = Server::spawn(plain());
    assert!(server.lines.is_empty(), "{:?}", server.lines);
    assert_eq!(server.get(&key, "/v1/memory_stores").0, 200);
    for entry in std::fs::read_dir(quipu.data()).expect("the data directory") {
        let path = entry.expect("an entry").path();
        // The server is running, and may remove a file of the index at any moment.
        let Ok(bytes) = std::fs::read(&path) else {
            assert!(!path.exists(), "{path:?}");
            continue;
        };
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()), "{path:?}");
    }
}

#[test]
fn an_admin_key_from_the_environment_is_used_and_not_shown() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    assert!(server.lines.is_empty(), "{:?}", server.lines);
    assert_eq!(server.get(KEY, "/v1/memory_stores").0, 200);
    drop(server);
    // Starting again with the same key adds no second one.
    drop(Server::start(&quipu));
    assert_eq!(quipu.ok(&["key", "list"]).lines().count(), 1);
    let mut short = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    short.env("QUIPU_ADMIN_KEY", "short");
    let ran = crate::support::run(short, b"");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("at least 16 characters"), "{}", ran.err);
}

#[test]
fn the_history_names_the_key_that_wrote() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let memories = server.store();
    let made = quipu.json(&["key", "create", "--role", "read_write", "--name", "Night shift"]);
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    let new = json!({"path": "/a.md", "content": "zebra"});
    let (status, body) = server.post(&secret, &memories, &new);
    assert_eq!(status, 200, "{body}");
    for command in [
        &["log", "--oneline"][..],
        &["log", "--oneline", "--actor", "night shift"],
        &["recent"],
        &["search", "zebra"],
    ] {
        let out = quipu.ok(command);
        assert!(out.contains("Night shift"), "{command:?}: {out}");
    }
}

#[test]
fn keys_created_on_the_command_line_work_at_once() {
    let quipu = Quipu::with_store();
    let server = Server::start(&quipu);
    let made = quipu.json(&["key", "create", "--role", "read_only", "--expires", "1d"]);
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(server.get(&secret, "/v1/memory_stores").0, 200);
    let refused = server.post(&secret, "/v1/memory_stores", &json!({"name": "x"}));
    assert_eq!(refused.0, 403, "{}", refused.1);
    quipu.ok(&["key", "revoke", &id(&made)]);
    assert_eq!(server.get(&secret, "/v1/memory_stores").0, 401);
}

#[test]
fn a_key_that_another_process_revokes_ends_its_stream() {
    let quipu = Quipu::with_store();
    let server = Server::start(&quipu);
    let made = quipu.json(&["key", "create", "--role", "read_only"]);
    let stream = followed(&server, made["secret"].as_str().expect("a secret"), "/quipu/events");
    quipu.ok(&["key", "revoke", &id(&made)]);
    assert_ends(stream, Duration::from_secs(5));
}

/// Opens a stream.
fn followed(server: &Server, secret: &str, path: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         x-api-key: {secret}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("the head of the answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    stream
}

fn assert_ends(mut stream: TcpStream, patience: Duration) {
    stream.set_read_timeout(Some(patience)).expect("a timeout");
    stream.read_to_end(&mut Vec::new()).expect("the end of the stream");
}

/// Starts a session with a key and returns its token.
fn token(server: &Server, secret: &str, memories: &str) -> String {
    let store = memories.split('/').nth(3).expect("a store");
    let resource = json!({"type": "memory_store", "memory_store_id": store});
    let body = json!({"agent": "a", "environment_id": "e", "resources": [resource]});
    let request = server.agent.post(format!("{}/v1/sessions", server.url));
    let started = request.header("x-api-key", secret).send(body.to_string()).expect("an answer");
    assert_eq!(started.status(), 200);
    let token = started.headers()["quipu-session-token"].to_str().expect("a text");
    token.to_owned()
}

#[test]
fn the_token_of_a_key_that_another_process_revokes_ends_with_its_stream() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let memories = server.store();
    let made = quipu.json(&["key", "create", "--role", "read_write"]);
    let token = token(&server, made["secret"].as_str().expect("a secret"), &memories);
    assert_eq!(server.get(&token, &memories).0, 200);
    let stream = followed(&server, &token, "/quipu/events");
    quipu.ok(&["key", "revoke", &id(&made)]);
    assert_ends(stream, Duration::from_secs(5));
    assert_eq!(server.get(&token, &memories).0, 401);
}

#[test]
fn the_token_of_a_key_that_expires_ends_with_its_stream() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let memories = server.store();
    let made = quipu.json(&["key", "create", "--role", "read_write", "--expires", "3s"]);
    let token = token(&server, made["secret"].as_str().expect("a secret"), &memories);
    let stream = followed(&server, &token, "/quipu/events");
    assert_ends(stream, Duration::from_secs(10));
    assert_eq!(server.get(&token, &memories).0, 401);
}

#[test]
fn token_lifetime_and_metrics_access_are_settings() {
    let quipu = Quipu::empty();
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY).env("QUIPU_SERVE_SESSION_TOKEN_DAYS", "0");
    let server = Server::spawn(command);
    let memories = server.store();
    assert_eq!(server.get(&token(&server, KEY, &memories), &memories).0, 401);
    // Requests from the same host need a key, too.
    assert_eq!(server.get("wrong", "/metrics").0, 401);
    assert_eq!(server.get(KEY, "/metrics").0, 200);
    drop(server);
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY).env("QUIPU_SERVE_METRICS_OPEN", "true");
    assert_eq!(Server::spawn(command).get("wrong", "/metrics").0, 200);
}

#[test]
fn what_other_processes_write_is_there_at_once() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let memories = server.store();
    for number in 0..20 {
        quipu.put("/count.md", &number.to_string());
        let (_, list) = server.get(KEY, &format!("{memories}?view=full"));
        assert_eq!(list["data"][0]["content"], number.to_string());
    }
    let (_, written) = server.post(KEY, &memories, &json!({"path": "/rest.md", "content": "x"}));
    assert_eq!(written["path"], "/rest.md");
    assert_eq!(quipu.ok(&["cat", "/rest.md"]), "x");
}

#[test]
fn other_addresses_need_tls_or_a_flag() {
    let quipu = Quipu::empty();
    let ran = quipu.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("--allow-plain-http") && ran.err.contains("--tls-key"), "{}", ran.err);
    assert!(ran.out.is_empty(), "a key was shown: {}", ran.out);
    let command = quipu.command(&["serve", "--listen", "0.0.0.0:0", "--allow-plain-http"]);
    let mut server = Server::spawn(command);
    server.signal(Signal::TERM);
    let mut err = String::new();
    server.child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    assert!(err.contains("the traffic is not encrypted"), "{err}");
}

#[test]
fn with_a_certificate_the_server_speaks_tls() {
    let quipu = Quipu::empty();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = quipu.home.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a UTF-8 path").to_owned()
    };
    let certificate = file("certificate.pem", made.cert.pem());
    let key = file("key.pem", made.signing_key.serialize_pem());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--tls-certificate", &certificate];
    let mut command = quipu.command(&arguments);
    command.env("QUIPU_ADMIN_KEY", KEY).args(["--tls-key", &key]);
    let mut server = Server::spawn(command);
    let trusted = Certificate::from_pem(made.cert.pem().as_bytes()).expect("a certificate");
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[trusted])).build();
    server.agent = agent(tls);
    server.url = server.url.replace("127.0.0.1", "localhost");
    assert!(server.url.starts_with("https://"), "{}", server.url);
    server.store();

    let ran = quipu.run(&arguments);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("--tls-key"), "{}", ran.err);
    let swapped = [&arguments[..], &["--tls-key", &certificate]].concat();
    assert_eq!(quipu.run(&swapped).code, 2);
}

#[test]
fn a_port_in_use_is_explained() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let ran = quipu.run(&["serve", "--listen", server.address()]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("cannot listen on") && ran.err.contains("--listen"), "{ran:?}");
}

#[test]
fn a_running_write_is_finished_before_the_end() {
    let quipu = Quipu::empty();
    let mut server = Server::start(&quipu);
    let memories = server.store();
    let body = json!({"path": "/late.md", "content": "written at the end"}).to_string();
    let mut stream = server.connect();
    let head = format!(
        "POST {memories} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (first, rest) = body.split_at(10);
    stream.write_all(format!("{head}{first}").as_bytes()).expect("sent");
    // Only a request that has arrived is finished, so wait for a later response first.
    assert_eq!(server.get(KEY, "/healthz").0, 200);
    server.signal(Signal::TERM);
    while TcpStream::connect(server.address()).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    stream.write_all(rest.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(quipu.ok(&["cat", "/late.md"]), "written at the end");
}

#[test]
fn idle_half_closed_and_broken_connections_hurt_nobody() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let memories = server.store();
    let half = |text: &str| {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).expect("sent");
        stream
    };
    let post = format!("POST {memories} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\n");
    let waiting: Vec<_> = (0..50)
        .flat_map(|_| {
            [
                half(""),
                half("GET /v1/memory_stores HT"),
                half(&format!("{post}content-length: 100\r\n\r\n{{\"path\": ")),
            ]
        })
        .collect();
    // Closed in the middle of the body.
    drop(half(&format!("{post}content-length: 100\r\n\r\n{{\"path\": \"/a\"")));
    // Not HTTP at all.
    let mut nonsense = half("\0\x01\x02 nonsense\r\n\r\n");
    let mut answer = Vec::new();
    nonsense.read_to_end(&mut answer).expect("the end");
    assert!(answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
    // A client that half-closes the connection after its request.
    let stream = half(&format!("GET {memories} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\n\r\n"));
    stream.shutdown(std::net::Shutdown::Write).expect("closed");
    let mut answer = String::new();
    BufReader::new(stream).read_to_string(&mut answer).expect("an answer, then the end");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let (status, list) = server.get(KEY, &memories);
    assert_eq!((status, &list["data"]), (200, &json!([])));
    assert_eq!(server.post(KEY, &memories, &json!({"path": "/a", "content": "x"})).0, 200);
    drop(waiting);
}

#[test]
fn acknowledged_writes_survive_a_kill_under_load() {
    let quipu = Quipu::empty();
    let mut memories = String::new();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let mut server = Server::start(&quipu);
        if memories.is_empty() {
            memories = server.store();
        }
        let count = AtomicUsize::new(0);
        let written: Vec<String> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|writer| {
                    let (server, memories, count) = (&server, &memories, &count);
                    scope
                        .spawn(move || write_until_killed(server, memories, (round, writer), count))
                })
                .collect();
            while count.load(Ordering::Relaxed) < 100 {
                std::thread::sleep(Duration::from_millis(1));
            }
            server.signal(Signal::KILL);
            writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
        });
        drop(server.child.wait());
        assert!(written.len() >= 100, "{}", written.len());
        acknowledged.extend(written);
    }
    let there = quipu.ok(&["ls", "-R"]);
    let there: std::collections::HashSet<_> = there.lines().collect();
    for path in &acknowledged {
        assert!(there.contains(path.as_str()), "{path} was acknowledged and is gone");
    }
    quipu.ok(&["check"]);
}

/// Creates memories sequentially, and returns the paths of the acknowledged ones.
fn write_until_killed(
    server: &Server,
    memories: &str,
    (round, writer): (usize, usize),
    count: &AtomicUsize,
) -> Vec<String> {
    let mut written = Vec::new();
    for number in 0.. {
        let path = format!("/{round}/{writer}/{number}");
        let body = json!({"path": path, "content": path}).to_string();
        let request = server.agent.post(format!("{}{memories}", server.url));
        let Ok(response) = request.header("x-api-key", KEY).send(body) else { break };
        assert_eq!(response.status(), 200);
        written.push(path);
        count.fetch_add(1, Ordering::Relaxed);
    }
    written
}

#[test]
fn logs_name_requests_but_neither_texts_nor_keys() {
    let quipu = Quipu::empty();
    let mut command =
        quipu.command(&["serve", "--listen", "127.0.0.1:0", "--log-json", "--log-level", "trace"]);
    command.env("QUIPU_ADMIN_KEY", KEY);
    let mut server = Server::spawn(command);
    let memories = server.store();
    server.post(KEY, &memories, &json!({"path": "/a", "content": "the text of a memory"}));
    server.get("a wrong key, but a long one", &memories);
    let mut err = server.child.stderr.take().expect("piped");
    server.signal(Signal::TERM);
    let mut log = String::new();
    err.read_to_string(&mut log).expect("text");
    let mut rest = String::new();
    server.out.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "");
    assert!(log.contains("request"), "{log}");
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    for secret in [KEY, "the text of a memory", "a wrong key"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn malformed_requests_get_the_error_envelope() {
    let quipu = Quipu::empty();
    let server = Server::start(&quipu);
    let long = "x".repeat(150_000);
    for (sent, statuses) in [
        ("nonsense\r\n\r\n".to_owned(), &[400][..]),
        (format!("GET /{long} HTTP/1.1\r\nhost: x\r\n\r\n"), &[414, 431]),
        (format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {long}\r\n\r\n"), &[431]),
    ] {
        let mut stream = server.connect();
        // The server need not read all of it.
        stream.write_all(sent.as_bytes()).unwrap_or_default();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap_or_default();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse::<u16>().ok());
        assert!(status.is_some_and(|status| statuses.contains(&status)), "{statuses:?}: {answer}");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["type"], "invalid_request_error");
        let id = body["request_id"].as_str().expect("an id");
        assert!(head.contains(&format!("request-id: {id}")), "{head}");
    }
}
