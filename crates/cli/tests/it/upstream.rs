//! `[upstream]` as the settings have it, with a server as a process of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::server::{KEY, Server};
use crate::support::Quipu;

/// Returns the URL of an upstream that gives these answers, one per request, and what it receives.
fn upstream(answers: Vec<Value>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    thread::spawn(move || {
        for (stream, answer) in listener.incoming().zip(answers) {
            let received = exchange(stream.expect("a connection"), &answer.to_string());
            sender.send(received).expect("the test waits");
        }
    });
    (url, requests)
}

fn exchange(mut stream: TcpStream, answer: &str) -> String {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut received = String::new();
    let mut length = 0;
    while !received.ends_with("\r\n\r\n") {
        let start = received.len();
        assert_ne!(reader.read_line(&mut received).expect("a line"), 0, "{received}");
        if let Some((name, value)) = received.get(start..).and_then(|line| line.split_once(':'))
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    received.push_str(&String::from_utf8(body).expect("text"));
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
    .expect("the answer is read");
    received
}

/// Returns a home whose servers forward to this upstream, and a key that may.
fn forwarding_to(url: &str, settings: &str) -> (Quipu, String) {
    let quipu = Quipu::with_store();
    let text = format!("[upstream]\nbase_url = '{url}'\n{settings}");
    std::fs::write(quipu.data().join("quipu.toml"), text).expect("the settings");
    let created = ["key", "create", "--role", "read_write", "--name", "app", "--forward"];
    let created = quipu.json(&created);
    let key = created.get("secret").and_then(Value::as_str).expect("a secret").to_owned();
    (quipu, key)
}

fn started(quipu: &Quipu, key: Option<&str>) -> Server {
    let mut command = quipu.command(&["serve", "--listen", "127.0.0.1:0", "--log-level", "trace"]);
    command.env("QUIPU_ADMIN_KEY", KEY);
    if let Some(key) = key {
        command.env("UPSTREAM_KEY", key);
    }
    Server::spawn(command)
}

/// Stops a server and returns its log.
fn log_of(mut server: Server) -> String {
    let mut err = server.child.stderr.take().expect("piped");
    server.signal(Signal::TERM);
    let mut log = String::new();
    err.read_to_string(&mut log).expect("text");
    log
}

#[test]
fn the_key_of_the_upstream_comes_from_a_variable_or_a_file() {
    let (url, requests) = upstream(vec![json!({}), json!({})]);
    let (quipu, key) = forwarding_to(&url, "api_key_variable = 'UPSTREAM_KEY'\n");
    let server = started(&quipu, Some("the key of the upstream"));
    assert_eq!(server.get(&key, "/v1/models").0, 200);
    let request = requests.recv().expect("it was forwarded");
    assert!(request.contains("x-api-key: the key of the upstream\r\n"), "{request}");
    assert!(!request.contains(&key), "{request}");
    let log = log_of(server);
    assert!(!log.contains("the key of the upstream") && !log.contains(&key), "{log}");

    let file = quipu.home.path().join("upstream-key");
    std::fs::write(&file, "the key of the file\n").expect("a file");
    let settings = format!(
        "[upstream]\nbase_url = '{url}'\napi_key_file = '{}'\nauth = 'bearer'\n",
        file.display()
    );
    std::fs::write(quipu.data().join("quipu.toml"), settings).expect("the settings");
    let server = started(&quipu, None);
    assert_eq!(server.get(&key, "/v1/models").0, 200);
    let request = requests.recv().expect("it was forwarded");
    assert!(request.contains("authorization: Bearer the key of the file\r\n"), "{request}");
    assert!(!request.contains("x-api-key"), "{request}");
}

#[test]
fn a_server_whose_variable_is_not_set_does_not_start() {
    let (quipu, _) = forwarding_to("http://127.0.0.1:9", "api_key_variable = 'UPSTREAM_KEY'\n");
    let ran = quipu.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("the variable UPSTREAM_KEY is not set"), "{}", ran.err);
}

#[test]
fn bodies_of_forwarded_requests_are_never_logged() {
    let remembered = json!({
        "command": "create", "path": "/memories/ada.md", "file_text": "heron in the memory"
    });
    let turn = |reason: &str, content: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": content, "stop_reason": reason, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        })
    };
    let said = json!([{"type": "text", "text": "heron in the answer"}]);
    let (url, requests) = upstream(vec![
        turn("end_turn", said.clone()),
        turn(
            "tool_use",
            json!([{"type": "tool_use", "id": "toolu_1", "name": "memory", "input": remembered}]),
        ),
        turn("end_turn", said),
    ]);
    let (quipu, key) = forwarding_to(&url, "");
    let server = started(&quipu, None);
    let question = json!({
        "model": "m", "max_tokens": 9,
        "messages": [{"role": "user", "content": "heron in the question"}],
    });
    for store in [None, Some("notes")] {
        let request = server.agent.post(format!("{}/v1/messages", server.url));
        let request = request.header("x-api-key", &key);
        let request = match store {
            Some(store) => request.header("quipu-store", store),
            None => request,
        };
        let mut answer = request.send(question.to_string()).expect("an answer");
        let text = answer.body_mut().read_to_string().expect("text");
        assert!(text.contains("heron in the answer"), "{text}");
    }
    let last = requests.iter().nth(2).expect("the results of the call");
    assert!(last.contains("heron in the memory"), "{last}");
    let log = log_of(server);
    assert!(log.contains("/v1/{forwarded}"), "{log}");
    assert!(!log.contains("heron"), "{log}");
    assert_eq!(quipu.ok(&["cat", "/ada.md"]), "heron in the memory");
}
