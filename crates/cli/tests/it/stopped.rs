//! Reads while another process holds the write lock indefinitely, as if it were stopped in the middle
//! of a write.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::Host;
use crate::server::{KEY, Mcp, Server};
use crate::support::Quipu;

/// The deadline for reads. Whatever waits for the lock never finishes here.
const PROMPT: Duration = Duration::from_secs(1);

/// Returns a home with an indexed note in a store whose memories expire.
fn prepared() -> Quipu {
    let quipu = Quipu::with_store();
    quipu.ok(&["store", "update", "notes", "--expire-after-days", "30"]);
    quipu.put("/tea.md", "green");
    quipu.ok(&["store", "create", "memories"]);
    let input = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    assert_eq!(quipu.run_with(&["tool"], input.to_string().as_bytes()).code, 0);
    quipu.ok(&["search", "--all", "green"]);
    quipu
}

/// Takes the write lock until the file is dropped.
fn hold(quipu: &Quipu) -> File {
    let path = quipu.data().join("quipu.lock");
    let lock = File::options().read(true).write(true).open(path).expect("the lock file");
    lock.lock().expect("the lock is free");
    lock
}

/// Runs `work`, which must finish within [`PROMPT`].
#[track_caller]
fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    finished.recv_timeout(PROMPT).expect("it finishes in time")
}

fn notes(quipu: &Quipu) -> String {
    let stores = quipu.json(&["store", "list"]);
    let stores = stores["data"].as_array().expect("a list").iter();
    let mut named = stores.filter(|store| store["name"] == "notes");
    named.next().expect("the store")["id"].as_str().expect("an id").to_owned()
}

#[test]
fn rest_reads_are_answered() {
    let quipu = prepared();
    let server = Server::start(&quipu);
    let store = notes(&quipu);
    let (_, memories) = server.get(KEY, &format!("/v1/memory_stores/{store}/memories"));
    let memory = memories["data"][0]["id"].as_str().expect("an id").to_owned();
    let _lock = hold(&quipu);
    let server = server.with_timeout(PROMPT);
    for path in [
        format!("/v1/memory_stores/{store}/memories/{memory}"),
        format!("/v1/memory_stores/{store}/memories"),
        format!("/v1/memory_stores/{store}/memory_versions"),
        "/v1/memory_stores".to_owned(),
        "/v1/sessions?agent_id=nobody".to_owned(),
        "/quipu/search?query=green".to_owned(),
        format!("/quipu/stores/{store}/context?url=tea"),
        "/healthz".to_owned(),
        "/readyz".to_owned(),
        "/metrics".to_owned(),
    ] {
        let (status, body) = server.get(KEY, &path);
        assert_eq!(status, 200, "{path}: {body}");
    }
    let view = json!({"command": "view", "path": "/memories/a.md"});
    let (status, viewed) = server.post(KEY, "/quipu/stores/memories/tool", &view);
    assert_eq!((status, &viewed["is_error"]), (200, &json!(false)), "{viewed}");
}

#[test]
fn mcp_clients_over_http_connect_and_read() {
    let quipu = prepared();
    let server = Server::start(&quipu);
    let _lock = hold(&quipu);
    let server = server.with_timeout(PROMPT);
    for _ in 0..8 {
        let mut client = Mcp::connected(&server);
        read_over(|tool, arguments| client.call(tool, &arguments));
        let read = client.ask("resources/read", &json!({"uri": "memory://notes/tea.md"}));
        assert_eq!(read["contents"][0]["text"], "green", "{read}");
    }
    assert_eq!(server.get(KEY, "/healthz").0, 200);
}

/// Calls every tool that only reads.
fn read_over(mut call: impl FnMut(&str, Value) -> Value) {
    let view = json!({"command": "view", "path": "/memories/a.md"});
    for (tool, arguments) in [
        ("read_note", json!({"identifier": "tea"})),
        ("search_notes", json!({"query": "green"})),
        ("build_context", json!({"url": "memory://notes/tea"})),
        ("recent_activity", json!({})),
        ("list_directory", json!({})),
        ("list_memory_projects", json!({})),
        ("note_history", json!({"identifier": "tea"})),
        ("memory", view),
    ] {
        let answer = call(tool, arguments);
        assert_eq!(answer["isError"], false, "{tool}: {answer}");
    }
}

#[test]
fn an_mcp_host_over_stdio_connects_and_reads() {
    let quipu = prepared();
    for arguments in [&[][..], &["--store", "notes", "--store", "memories"]] {
        let _lock = hold(&quipu);
        let mut host = Host::silent(&quipu, arguments);
        promptly(move || {
            host.initialize("2025-11-25");
            let memory = json!({"command": "view", "path": "/memories"});
            for (tool, arguments) in [
                ("read_note", json!({"identifier": "tea"})),
                ("search_notes", json!({"query": "green"})),
                ("memory", memory),
            ] {
                host.ok(tool, arguments);
            }
            // Nor may it wait for the lock on exit.
            assert_eq!(host.close(), 0);
        });
    }
}

#[test]
fn the_memory_tool_views() {
    let quipu = prepared();
    let _lock = hold(&quipu);
    let view = json!({"command": "view", "path": "/memories/a.md"}).to_string();
    let command = quipu.command(&["tool"]);
    let ran = promptly(move || crate::support::run(command, view.as_bytes()));
    assert!(ran.code == 0 && ran.out.contains("\"is_error\":false"), "{ran:?}");
}

#[test]
fn the_command_line_reads_and_exits() {
    // The command would record on exit that an old memory was read, which is impossible now.
    let quipu = crate::expiry::aged();
    quipu.ok(&["search", "green"]);
    let _lock = hold(&quipu);
    for arguments in
        [&["cat", "/read.md"][..], &["ls"], &["log"], &["search", "green"], &["store", "list"]]
    {
        let command = quipu.command(arguments);
        let ran = promptly(move || crate::support::run(command, b""));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn who_only_reads_is_no_session() {
    let quipu = prepared();
    let before = quipu.ok(&["session", "list"]);
    let server = Server::start(&quipu);
    let mut client = Mcp::connected(&server);
    read_over(|tool, arguments| client.call(tool, &arguments));
    let mut host = Host::new(&quipu, &["--store", "notes"]);
    host.ok("read_note", json!({"identifier": "tea"}));
    let view = json!({"command": "view", "path": "/memories/a.md"}).to_string();
    assert_eq!(quipu.run_with(&["tool"], view.as_bytes()).code, 0);
    assert_eq!(quipu.ok(&["session", "list"]), before);

    client.call("write_note", &json!({"title": "Over HTTP", "content": "x"}));
    host.ok("write_note", json!({"title": "Over stdio", "content": "x"}));
    host.ok("write_note", json!({"title": "Once more", "content": "x"}));
    let lines = |text: &str| text.lines().count();
    let after = quipu.ok(&["session", "list"]);
    assert_eq!(lines(&after), lines(&before) + 2, "{after}");
    assert!(after.contains("web 3") && after.contains("Test Host 1.2"), "{after}");
}

#[test]
fn blocked_writers_leave_threads_for_readers() {
    const WRITERS: usize = 200;
    let quipu = prepared();
    let server = Server::start(&quipu);
    let memories = format!("/v1/memory_stores/{}/memories", notes(&quipu));
    let lock = hold(&quipu);
    let waiting: Vec<_> = (0..WRITERS).map(|number| write(&server, &memories, number)).collect();
    let server = server.with_timeout(PROMPT);
    for _ in 0..50 {
        for path in ["/healthz", "/v1/memory_stores", "/quipu/search?query=green", &memories] {
            let (status, body) = server.get(KEY, path);
            assert_eq!(status, 200, "{path}: {body}");
        }
    }
    drop(lock);
    let mut written = 0;
    for mut stream in waiting {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, then the end");
        match answer.split(' ').nth(1) {
            Some("200") => written += 1,
            Some("529") => assert!(answer.contains("\r\nretry-after: "), "{answer}"),
            _ => panic!("{answer}"),
        }
    }
    assert!(written > 0);
    let (_, list) = server.get(KEY, &format!("{memories}?path_prefix=/waiting/&limit=100"));
    assert_eq!(list["data"].as_array().expect("a list").len(), written.min(100));
}

/// Sends a write without waiting for the response.
fn write(server: &Server, memories: &str, number: usize) -> TcpStream {
    let body = json!({"path": format!("/waiting/{number}"), "content": "x"}).to_string();
    let mut stream = server.connect();
    let head = format!(
        "POST {memories} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("sent");
    stream
}
