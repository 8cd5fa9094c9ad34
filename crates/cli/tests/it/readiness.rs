//! `/readyz`: what it detects, and how it reports it.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{KEY, Server};
use crate::support::Quipu;

fn start(quipu: &Quipu, settings: &[(&str, &str)]) -> Server {
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("QUIPU_ADMIN_KEY", KEY).envs(settings.iter().copied());
    Server::spawn(command)
}

fn ready(server: &Server) -> (u16, Value) {
    server.get("", "/readyz")
}

#[test]
fn a_lock_held_for_too_long_is_reported_with_its_holder() {
    let quipu = Quipu::with_store();
    let server = start(&quipu, &[("QUIPU_SERVE_LOCK_HELD_SECONDS_MAX", "1")]);
    assert_eq!(ready(&server).0, 200);
    let path = quipu.data().join("quipu.lock");
    let lock = File::options().read(true).write(true).open(path).expect("the lock file");
    lock.lock().expect("the lock is free");
    // A lock that is held only briefly is not reported.
    assert_eq!(ready(&server).0, 200);
    let start = Instant::now();
    let (status, body) = loop {
        let (status, body) = ready(&server);
        if status != 200 || start.elapsed() > Duration::from_secs(10) {
            break (status, body);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(status, 503, "{body}");
    assert!(message.contains("the write lock has been held") && message.contains("by "), "{body}");
    assert!(start.elapsed() > Duration::from_millis(900), "{:?}", start.elapsed());
    lock.unlock().expect("it was held");
    // A writer that waited for the lock may hold it for a moment.
    while ready(&server).0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", ready(&server));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_nearly_full_disk_is_reported() {
    let quipu = Quipu::empty();
    let server = start(&quipu, &[("QUIPU_SERVE_DISK_FREE_BYTES_MIN", "9000000000000000000")]);
    let (status, body) = ready(&server);
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 503 && message.contains("the disk is nearly full"), "{body}");
    assert_eq!(server.get(KEY, "/v1/memory_stores").0, 200, "nothing else is refused");
}

#[test]
fn replaced_files_are_reported() {
    let quipu = Quipu::empty();
    let server = start(&quipu, &[]);
    assert_eq!(ready(&server).0, 200);
    std::fs::remove_file(quipu.data().join("quipu.lock")).expect("it is there");
    let (status, body) = ready(&server);
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 503 && message.contains("quipu.lock"), "{body}");
}
