//! Startup and shutdown of `quipu serve`: concurrent starts, few descriptors, signals.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::server::{KEY, Server};
use crate::support::{Quipu, signal};

#[test]
fn servers_that_start_concurrently_on_a_new_directory_all_come_up() {
    for _ in 0..4 {
        let quipu = Quipu::empty();
        thread::scope(|scope| {
            let started: Vec<_> = (0..4).map(|_| scope.spawn(|| Server::start(&quipu))).collect();
            for server in started {
                let server = server.join().expect("it comes up");
                assert_eq!(server.get(KEY, "/v1/memory_stores").0, 200);
            }
        });
        assert_eq!(quipu.ok(&["key", "list"]).lines().count(), 1);
    }
}

#[test]
fn servers_that_start_concurrently_agree_on_the_first_key() {
    for _ in 0..2 {
        let quipu = Quipu::empty();
        let start = || Server::spawn(quipu.command(&["serve", "--listen", "127.0.0.1:0"]));
        let servers: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            started.into_iter().map(|server| server.join().expect("it comes up")).collect()
        });
        let informed = servers.iter().filter(|server| !server.lines.is_empty()).count();
        assert_eq!(informed, 1);
        let key = std::fs::read_to_string(quipu.data().join("first-key")).expect("the key");
        for server in &servers {
            assert_eq!(server.get(key.trim_end(), "/v1/memory_stores").0, 200);
        }
        let entries = std::fs::read_dir(quipu.data()).expect("the directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let drafts = names.filter(|name| name.to_string_lossy().starts_with("first-key."));
        assert_eq!(drafts.count(), 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn with_few_descriptors_the_server_works() {
    let quipu = Quipu::empty();
    let plain = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("sh");
    command.env_clear().env("HOME", quipu.home.path()).env("QUIPU_ADMIN_KEY", KEY);
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]);
    command.arg(plain.get_program()).args(plain.get_args());
    let mut server = Server::spawn(command);
    let memories = server.store();
    let idle: Vec<_> = (0..100).map(|_| server.connect()).collect();
    thread::scope(|scope| {
        for writer in 0..8 {
            let (server, memories) = (&server, &memories);
            scope.spawn(move || {
                for number in 0..5 {
                    let path = format!("/{writer}/{number}");
                    let body = json!({"path": path, "content": "x"});
                    let (status, answer) = server.post(KEY, memories, &body);
                    assert_eq!(status, 200, "{answer}");
                    let (status, answer) = server.get(KEY, "/quipu/search?query=x");
                    assert_eq!(status, 200, "{answer}");
                }
            });
        }
    });
    drop(idle);
    let log = log_of(&mut server);
    assert!(
        log.contains("allows fewer connections") && log.contains("connections_max=16"),
        "{log}"
    );
}

/// Stops a server and returns its log.
fn log_of(server: &mut Server) -> String {
    let mut err = server.child.stderr.take().expect("piped");
    server.signal(Signal::TERM);
    let mut log = String::new();
    err.read_to_string(&mut log).expect("text");
    log
}

#[test]
fn the_log_begins_with_the_version_the_data_and_the_settings() {
    let quipu = Quipu::empty();
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY).env("QUIPU_SERVE_REQUESTS_MAX", "77");
    let mut server = Server::spawn(command);
    let log = log_of(&mut server);
    let first = log.lines().find(|line| line.contains("starting")).expect("a line");
    let data = format!("data={}", quipu.data().display());
    for part in [env!("CARGO_PKG_VERSION"), &data, "requests_max=77", "content_size_bytes_max"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(!log.contains(KEY), "{log}");
}

#[test]
fn a_signal_right_after_the_start_shuts_down_cleanly() {
    for number in [Signal::TERM, Signal::INT] {
        let quipu = Quipu::empty();
        let mut server = Server::start(&quipu);
        server.signal(number);
        let start = Instant::now();
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0), "{number:?}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

#[test]
fn a_signal_during_the_start_never_leaves_a_log_behind() {
    for delay in 0..20 {
        let quipu = Quipu::empty();
        let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("QUIPU_ADMIN_KEY", KEY).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        thread::sleep(Duration::from_millis(10 * delay));
        signal(&child, Signal::TERM);
        let ended = child.wait().expect("it ends");
        // Before the handlers are installed, there is nothing that could be left half done.
        if ended.code() == Some(0) {
            let log = quipu.data().join("quipu.db-wal");
            assert!(!log.exists(), "after {} ms", 10 * delay);
        }
    }
}

#[test]
fn a_shutdown_checkpoints_the_write_ahead_log() {
    let quipu = Quipu::empty();
    let mut server = Server::start(&quipu);
    let memories = server.store();
    server.post(KEY, &memories, &json!({"path": "/a", "content": "x"}));
    let names = || {
        let entries = std::fs::read_dir(quipu.data()).expect("the directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert!(names().iter().any(|name| name.ends_with("-wal")), "{:?}", names());
    let log = log_of(&mut server);
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    assert!(!names().iter().any(|name| name.ends_with("-wal")), "{:?}", names());
    assert!(!log.contains("ERROR"), "{log}");
}
