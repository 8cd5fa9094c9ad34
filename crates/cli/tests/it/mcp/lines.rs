//! Lines that are not a single message: malformed lines, batches, an unterminated last line.

use std::io::Write as _;

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

impl Host {
    fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(text.as_bytes()).expect("the server reads");
    }
}

#[test]
fn malformed_lines_get_an_error_response() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for (line, id, code) in [
        ("not json", Value::Null, -32700),
        ("{\"jsonrpc\":\"2.0\"}", Value::Null, -32600),
        ("[]", Value::Null, -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":111,\"method\":\"ping\"}", json!(111), -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":104,\"method\":\"tools/call\",\"params\":[]}",
            json!(104),
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":\"x\"}",
            json!("a"),
            -32602,
        ),
        ("[7]", Value::Null, -32600),
    ] {
        host.write(&format!("{line}\n"));
        let answer = host.next().expect("an answer");
        let answer = answer.as_array().map_or(&answer, |answers| &answers[0]);
        assert_eq!(answer.get("id"), Some(&id), "{line}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    for line in
        ["", "  ", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/strange\",\"params\":[]}"]
    {
        host.write(&format!("{line}\r\n"));
    }
    host.ask("ping", json!({}));
    assert!(host.notifications.is_empty(), "{:?}", host.notifications);
    assert_eq!(host.close(), 0);
}

#[test]
fn a_batch_is_answered_with_a_batch() {
    let quipu = Quipu::empty();
    let mut host = Host::silent(&quipu, &[]);
    host.initialize("2025-03-26");
    host.send(&json!([
        {"jsonrpc": "2.0", "id": 100, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 101, "method": "tools/call", "params": []},
    ]));
    let answers = host.next().expect("an answer");
    let answers = answers.as_array().expect("a list");
    let find = |id: Value| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(find(json!(100))["result"], json!({}));
    assert!(find(json!("b"))["result"]["tools"].is_array());
    assert_eq!(find(json!(101))["error"]["code"], -32602);
    host.ask("ping", json!({}));
}

#[test]
fn a_batch_that_cancels_one_request_answers_the_others() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let call = json!({"name": "search_notes", "arguments": {"query": "x"}});
    host.send(&json!([
        {"jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}},
        {"jsonrpc": "2.0", "id": 101, "method": "ping"},
    ]));
    let answers = host.next().expect("an answer");
    let answers = answers.as_array().expect("a list");
    assert!(answers.iter().any(|answer| answer["id"] == 101), "{answers:?}");
    host.ask("ping", json!({}));
    assert!(host.notifications.is_empty(), "{:?}", host.notifications);
}

#[test]
fn an_id_that_is_still_in_use_is_refused() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    host.send(&json!([ping(100), ping(100), ping(101)]));
    let answers = host.next().expect("an answer");
    let answers = answers.as_array().expect("a list");
    assert_eq!(answers.len(), 3, "{answers:?}");
    let refused: Vec<_> = answers.iter().filter(|it| it["error"]["code"] == -32600).collect();
    assert!(matches!(*refused, [answer] if answer["id"] == 100), "{answers:?}");
    // After the response, the id may be reused.
    host.send(&json!([ping(100)]));
    assert_eq!(host.next().expect("an answer")[0]["result"], json!({}));
    host.send(&ping(100));
    assert_eq!(host.answer(100)["result"], json!({}));
}

#[test]
fn a_batch_that_is_too_large_is_refused_as_a_whole() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.write(&format!("[{}1]\n", "1,".repeat(100)));
    let answer = host.next().expect("an answer");
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a text");
    assert!(message.contains("at most 100 messages"), "{message}");
    host.write(&format!("[{}1]\n", "1,".repeat(99)));
    assert_eq!(host.next().expect("an answer").as_array().map(Vec::len), Some(100));
    host.ask("ping", json!({}));
}

#[test]
fn the_last_line_needs_no_line_break() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.write("{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}");
    drop(host.input.take());
    let answer = host.next().expect("an answer");
    assert_eq!((&answer["id"], &answer["result"]), (&json!("last"), &json!({})));
}

#[test]
fn a_line_that_is_too_long_gets_an_error_response_even_at_the_end() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let long = " ".repeat(16 * 1024 * 1024 + 1);
    for end in ["\n", ""] {
        host.write(&long);
        host.write(end);
        if end.is_empty() {
            drop(host.input.take());
        }
        let answer = host.next().expect("an answer");
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
}

#[test]
fn notifications_before_the_handshake_are_ignored() {
    let quipu = Quipu::empty();
    let mut host = Host::silent(&quipu, &[]);
    host.notify("notifications/strange", json!({}));
    host.send(&json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    assert_eq!(host.ask("ping", json!({})), json!({}));
    host.notify("notifications/initialized", json!({}));
    assert!(host.raw("tools/list", json!({}))["error"].is_object());
    host.notify("notifications/roots/list_changed", json!({}));
    host.initialize("2025-11-25");
    assert!(!host.tools().is_empty());
    assert_eq!(host.close(), 0);
}
