//! Memory in messages, answered with events.

use std::sync::Arc;

use quipu_server::UpstreamSettings;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::memory::{STORE, content, create, question, remember, text, with_store};
use super::scripted::{self, Step, Upstream, events, events_head, piece};
use super::{chunk, forwarding_to, messages, opened, read, settings};
use crate::rest::Server;

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("it is there"))
}

/// Returns the events of a turn with these blocks; text and inputs come in pieces.
fn turn(id: &str, stop_reason: &str, blocks: &[Value]) -> String {
    let message = json!({"id": id, "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}});
    let mut all = event(&json!({"type": "message_start", "message": message}));
    all += &event(&json!({"type": "ping"}));
    for (index, block) in blocks.iter().enumerate() {
        let (mut empty, pieces, kind, field) = match block["type"].as_str() {
            Some("text") => {
                let empty = json!({"type": "text", "text": ""});
                (
                    empty,
                    block["text"].as_str().expect("it is there").to_owned(),
                    "text_delta",
                    "text",
                )
            }
            _ => (block.clone(), block["input"].to_string(), "input_json_delta", "partial_json"),
        };
        if kind == "input_json_delta" {
            empty["input"] = json!({});
        }
        let start = json!({"type": "content_block_start", "index": index, "content_block": empty});
        all += &event(&start);
        for letter in pieces.chars() {
            let mut delta = json!({"type": kind});
            delta[field] = json!(letter.to_string());
            all += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        all += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    let usage = json!({"output_tokens": 7});
    all += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    all + &event(&json!({"type": "message_stop"}))
}

fn streamed() -> Value {
    let mut body = question();
    body["stream"] = json!(true);
    body
}

/// Puts a message together as the SDKs do, and fails where they would.
fn assembled(stream: &str) -> Value {
    let mut message = Value::Null;
    let mut is_over = false;
    for event in stream.split("\n\n").filter(|event| !event.is_empty()) {
        let (name, data) = event.split_once("\ndata: ").expect("a name and data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(name, format!("event: {}", data["type"].as_str().expect("it is there")));
        assert!(!is_over, "nothing follows the end");
        let place =
            data["index"].as_u64().map(|index| usize::try_from(index).expect("it is there"));
        match data["type"].as_str().expect("it is there") {
            "message_start" => {
                assert!(message.is_null(), "it starts once");
                message = data["message"].clone();
            }
            "content_block_start" => {
                let content = message["content"].as_array_mut().expect("it is there");
                assert_eq!(place, Some(content.len()), "blocks are numbered one by one");
                let mut block = data["content_block"].clone();
                if block["type"] == "tool_use" {
                    block["input"] = json!("");
                }
                content.push(block);
            }
            "content_block_delta" => {
                let block = &mut message["content"][place.expect("it is there")];
                let (field, more) = match data["delta"]["type"].as_str().expect("it is there") {
                    "text_delta" => ("text", &data["delta"]["text"]),
                    "input_json_delta" => ("input", &data["delta"]["partial_json"]),
                    other => panic!("{other}"),
                };
                let text = block[field].as_str().expect("it is there").to_owned()
                    + more.as_str().expect("it is there");
                block[field] = json!(text);
            }
            "message_delta" => {
                message["stop_reason"] = data["delta"]["stop_reason"].clone();
                message["usage"] = data["usage"].clone();
            }
            "message_stop" => is_over = true,
            "content_block_stop" | "ping" => {}
            other => panic!("{other}"),
        }
    }
    assert!(is_over, "{stream}");
    message
}

async fn ask(server: &Server, body: &Value) -> (String, bool) {
    let response = opened(server, messages(&server.key, &STORE, body)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["request-id"], "req_up");
    read(response.into_body()).await
}

#[tokio::test]
async fn the_app_sees_one_stream_without_the_calls_of_the_memory() {
    let upstream = Upstream::answering(vec![
        events(&turn(
            "msg_1",
            "tool_use",
            &[remember("toolu_1", &create("/tea.md", "75 °C")), text("I note it.")],
        )),
        events(&turn("msg_2", "end_turn", &[text("Done."), text("Really.")])),
    ])
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let (stream, is_complete) = ask(&server, &streamed()).await;
    assert!(is_complete && !stream.contains("memory") && !stream.contains("toolu_1"), "{stream}");
    let message = assembled(&stream);
    assert_eq!(message["id"], "msg_1");
    assert_eq!(message["content"], json!([text("I note it."), text("Done."), text("Really.")]));
    assert_eq!(message["stop_reason"], "end_turn");
    assert_eq!(message["usage"], json!({"input_tokens": 20, "output_tokens": 14}));
    assert_eq!(content(&server, store, "/tea.md").as_deref(), Some("75 °C"));
    let second = upstream.seen()[1].json();
    assert_eq!(second["stream"], true);
    assert_eq!(second["messages"][1]["content"][0]["input"], create("/tea.md", "75 °C"));
    assert_eq!(second["messages"][2]["content"][0]["tool_use_id"], "toolu_1");
}

#[tokio::test]
async fn a_turn_without_memory_arrives_as_it_is() {
    let only = turn("msg_1", "end_turn", &[text("Hello")]);
    let upstream = Upstream::answering(vec![events(&only)]).await;
    let (server, _) = with_store(settings(&upstream)).await;
    let (stream, _) = ask(&server, &streamed()).await;
    let (until_end, end) = stream.split_once("event: message_delta").unwrap();
    assert!(only.starts_with(until_end), "{until_end}");
    // The end is the app's to read only when it is known that no turn follows.
    assert!(end.contains("\"output_tokens\":7") && end.contains("event: message_stop"), "{end}");
}

#[tokio::test]
async fn events_arrive_while_the_turn_goes_on() {
    let gate = Arc::new(Semaphore::new(0));
    let opening = Arc::clone(&gate);
    let upstream = Upstream::start(move |_, _| {
        let all = turn("msg_1", "end_turn", &[text("x")]);
        let (first, rest) = all.split_once("event: content_block_stop").unwrap();
        let rest = format!("event: content_block_stop{rest}");
        let first = [events_head(), piece(first)].concat();
        let rest = [piece(&rest), piece("")].concat();
        vec![Step::Write(first), Step::Wait(Arc::clone(&opening)), Step::Write(rest)]
    })
    .await;
    let (server, _) = with_store(settings(&upstream)).await;
    let response = opened(&server, messages(&server.key, &STORE, &streamed())).await;
    let mut body = response.into_body();
    let mut text = String::new();
    while !text.contains("text_delta") {
        text += &chunk(&mut body).await.unwrap().unwrap();
    }
    gate.add_permits(1);
    let (rest, is_complete) = read(body).await;
    assert!(is_complete);
    assembled(&(text + &rest));
}

#[tokio::test]
async fn a_turn_that_also_calls_the_app_ends_and_is_whole_again_later() {
    let weather =
        json!({"type": "tool_use", "id": "toolu_w", "name": "weather", "input": {"at": "Rome"}});
    let upstream = Upstream::answering(vec![
        events(&turn("msg_1", "tool_use", &[remember("toolu_1", &create("/a", "x")), weather])),
        events(&turn("msg_2", "end_turn", &[text("Fine.")])),
    ])
    .await;
    let (server, store) = with_store(settings(&upstream)).await;
    let message = assembled(&ask(&server, &streamed()).await.0);
    assert_eq!(message["stop_reason"], "tool_use");
    let shown = message["content"].as_array().unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["input"], "{\"at\":\"Rome\"}");
    assert_eq!(content(&server, store, "/a").as_deref(), Some("x"));
    let mut next = streamed();
    let said = next["messages"].as_array_mut().unwrap();
    let call =
        json!({"type": "tool_use", "id": "toolu_w", "name": "weather", "input": {"at": "Rome"}});
    said.push(json!({"role": "assistant", "content": [call]}));
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_w", "content": "sunny"});
    said.push(json!({"role": "user", "content": [result]}));
    ask(&server, &next).await;
    let sent = upstream.seen()[1].json();
    assert_eq!(sent["messages"][1]["content"][0]["id"], "toolu_1");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "toolu_1");
    assert_eq!(sent["messages"][2]["content"][1]["tool_use_id"], "toolu_w");
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let upstream = Upstream::start(|_, number| {
        let view = json!({"command": "view", "path": "/memories"});
        let call = remember(&format!("toolu_{number}"), &view);
        vec![Step::Write(events(&turn("msg", "tool_use", &[text("More."), call])))]
    })
    .await;
    let (server, _) = with_store(UpstreamSettings { turns_max: 3, ..settings(&upstream) }).await;
    let message = assembled(&ask(&server, &streamed()).await.0);
    assert_eq!(message["stop_reason"], "end_turn");
    assert_eq!(message["content"].as_array().unwrap().len(), 3);
    assert_eq!(upstream.seen().len(), 3);
}

#[tokio::test]
async fn a_first_answer_that_is_no_stream_arrives_as_it_is() {
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}});
    let upstream =
        Upstream::answering(vec![scripted::json(429, "retry-after: 2\r\n", &error)]).await;
    let (server, _) = with_store(settings(&upstream)).await;
    let reply = server.send(messages(&server.key, &STORE, &streamed())).await;
    assert_eq!((reply.status, &reply.body), (429, &error));
    assert_eq!(reply.headers["retry-after"], "2");
}

/// Returns the error in the last event of a stream.
fn last_error(stream: &str) -> Value {
    let (_, data) = stream.trim_end().rsplit_once("event: error\ndata: ").expect("an error");
    serde_json::from_str::<Value>(data).expect("JSON")["error"].clone()
}

#[tokio::test]
async fn what_goes_wrong_later_is_said_in_the_stream() {
    let first = || {
        let call = remember("toolu_1", &json!({"command": "view", "path": "/memories"}));
        events(&turn("msg_1", "tool_use", &[text("So"), call]))
    };
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let in_stream = event(&json!({"type": "error", "error": error["error"]}));
    let cut = turn("msg_2", "end_turn", &[text("Hi")]).replace("message_stop", "message_halt");
    for (second, kind) in [
        (scripted::json(529, "", &error), "overloaded_error"),
        (scripted::json(500, "", &json!("what?")), "api_error"),
        (events(&in_stream), "overloaded_error"),
        (events(&cut), "api_error"),
    ] {
        let upstream = Upstream::answering(vec![first(), second]).await;
        let (server, _) = with_store(settings(&upstream)).await;
        let (stream, _) = ask(&server, &streamed()).await;
        assert_eq!(last_error(&stream)["type"], kind, "{stream}");
        assert!(!stream.contains("event: message_stop"), "{stream}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_cut_off_for_the_app() {
    let upstream = Upstream::start(|_, _| {
        let begun = event(&json!({"type": "message_start", "message": {"usage": {}}}));
        let half = [events_head(), piece(&begun), b"ff\r\nhalf".to_vec()].concat();
        vec![Step::Write(half), Step::Close]
    })
    .await;
    let (server, _) = with_store(settings(&upstream)).await;
    let (stream, is_complete) = ask(&server, &streamed()).await;
    assert!(stream.starts_with("event: message_start") && !is_complete, "{stream}");
}

#[tokio::test]
async fn the_upstream_is_let_go_when_the_app_drops_the_stream() {
    let closed = Arc::new(Semaphore::new(0));
    let noted = Arc::clone(&closed);
    let upstream = Upstream::start(move |_, _| {
        let begun = event(&json!({"type": "message_start", "message": {"usage": {}}}));
        let first = [events_head(), piece(&begun)].concat();
        vec![Step::Write(first), Step::Closed(Arc::clone(&noted))]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    server.store("notes").await;
    let response = opened(&server, messages(&server.key, &STORE, &streamed())).await;
    let mut body = response.into_body();
    assert!(chunk(&mut body).await.unwrap().is_ok());
    drop(body);
    closed.acquire().await.unwrap().forget();
}
