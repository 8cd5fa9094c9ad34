//! A log that cannot be written blocks nothing.

use std::fs::File;
use std::process::Stdio;

use serde_json::json;

use crate::mcp::Host;
use crate::server::{KEY, Server};
use crate::support::Quipu;

/// Starts a server with the most verbose log level.
fn talkative(quipu: &Quipu, log: Stdio) -> Server {
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0", "--log-level", "trace"]);
    command.env("QUIPU_ADMIN_KEY", KEY);
    Server::spawn_with(command, log)
}

/// Sends requests that write to the log: successful, refused and failing ones.
fn use_it(server: &Server) {
    let memories = server.store();
    for number in 0..50 {
        let body = json!({"path": format!("/{number}"), "content": "x"});
        assert_eq!(server.post(KEY, &memories, &body).0, 200);
        assert_eq!(server.post(KEY, &memories, &body).0, 409);
        assert_eq!(server.get("no key of this server", &memories).0, 401);
        assert_eq!(server.get(KEY, "/nowhere").0, 404);
    }
}

#[test]
fn a_full_disk_under_the_log_blocks_no_request() {
    let full = File::options().write(true).open("/dev/full").expect("the device");
    let quipu = Quipu::empty();
    use_it(&talkative(&quipu, full.into()));
}

#[test]
fn a_closed_log_pipe_blocks_no_request() {
    let quipu = Quipu::empty();
    let mut server = talkative(&quipu, Stdio::piped());
    drop(server.child.stderr.take());
    use_it(&server);
}

#[test]
fn a_full_log_pipe_blocks_no_request() {
    let quipu = Quipu::empty();
    let server = talkative(&quipu, Stdio::piped());
    // Each of these is a line, and a pipe holds 64 KiB.
    for _ in 0..1000 {
        assert_eq!(server.get(KEY, "/v1/memory_stores/nothing").0, 404);
    }
}

#[test]
fn an_mcp_host_may_close_the_log() {
    let quipu = Quipu::empty();
    let mut host = Host::with_log(&quipu, &["--log-level", "trace"], Stdio::piped());
    drop(host.child.stderr.take());
    host.initialize("2025-11-25");
    for number in 0..50 {
        host.ok("write_note", json!({"title": number.to_string(), "content": "x"}));
        host.refusal("read_note", json!({"identifier": "nothing"}));
    }
    assert_eq!(host.close(), 0);
}
