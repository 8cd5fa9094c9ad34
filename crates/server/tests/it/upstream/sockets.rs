//! Pass-through over real connections.

use std::sync::Arc;

use quipu_server::Listener;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

use super::scripted::{self, Step, Upstream, events_head, piece};
use super::{forwarding_to, settings};

/// Serves on a socket; the server ends when the sender is dropped.
fn serve(upstream: &Upstream) -> (String, String, oneshot::Sender<()>) {
    let server = forwarding_to(settings(upstream));
    let listener = Listener::bind("127.0.0.1:0".parse().expect("an address"), None);
    let listener = listener.expect("a free port");
    let address = listener.url().expect("an address").replace("http://", "");
    let (stop, stopped) = oneshot::channel::<()>();
    let key = server.key.clone();
    tokio::spawn(async move { listener.serve(&server.app, async { drop(stopped.await) }).await });
    (address, key, stop)
}

async fn connected(address: &str, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    stream
}

fn post(key: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: {length}\r\n\
         {more}\r\n{body}"
    )
}

async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(
            stream
                .read_u8()
                .await
                .unwrap_or_else(|_| panic!("it ended: {}", String::from_utf8_lossy(&text))),
        );
    }
    String::from_utf8(text).expect("a text")
}

#[tokio::test]
async fn the_upstream_is_let_go_when_the_caller_closes_before_there_is_an_answer() {
    let closed = Arc::new(Semaphore::new(0));
    let noted = Arc::clone(&closed);
    let upstream = Upstream::start(move |_, _| vec![Step::Closed(Arc::clone(&noted))]).await;
    let (address, key, _stop) = serve(&upstream);
    let stream = connected(&address, &post(&key, "", "{}")).await;
    upstream.arrived.acquire().await.unwrap().forget();
    drop(stream);
    closed.acquire().await.unwrap().forget();
}

#[tokio::test]
async fn the_upstream_is_let_go_when_the_caller_closes_in_a_silent_stream() {
    let closed = Arc::new(Semaphore::new(0));
    let noted = Arc::clone(&closed);
    let upstream = Upstream::start(move |_, _| {
        let first = [events_head(), piece("data: 1\n\n")].concat();
        vec![Step::Write(first), Step::Closed(Arc::clone(&noted))]
    })
    .await;
    let (address, key, _stop) = serve(&upstream);
    let mut stream = connected(&address, &post(&key, "", "{}")).await;
    until(&mut stream, "data: 1\n\n").await;
    drop(stream);
    closed.acquire().await.unwrap().forget();
}

#[tokio::test]
async fn a_caller_that_waits_for_permission_to_send_its_body_gets_it() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({"a": 1})))]).await;
    let (address, key, _stop) = serve(&upstream);
    let head = post(&key, "expect: 100-continue\r\n", "").replace("length: 0", "length: 5");
    let mut stream = connected(&address, &head).await;
    assert_eq!(until(&mut stream, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"[1,2]").await.unwrap();
    let answer = until(&mut stream, "{\"a\":1}").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(seen.body, b"[1,2]");
    assert!(!seen.headers.contains_key("expect"));
}

#[tokio::test]
async fn a_cut_answer_is_cut_on_the_wire_and_a_whole_one_keeps_its_length() {
    let upstream = Upstream::start(|_, number| match number {
        0 => vec![Step::Write(scripted::json(200, "", &json!({"a": 1})))],
        _ => {
            let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
            vec![Step::Write(half.as_bytes().to_vec()), Step::Close]
        }
    })
    .await;
    let (address, key, _stop) = serve(&upstream);
    let mut stream = connected(&address, &post(&key, "", "{}")).await;
    let whole = until(&mut stream, "{\"a\":1}").await;
    assert!(whole.contains("content-length: 7\r\n"), "{whole}");
    // The same connection goes on.
    stream.write_all(post(&key, "", "{}").as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("content-length: 100\r\n") && rest.ends_with("\r\n\r\nhalf"), "{rest}");
}

#[tokio::test]
async fn other_hosts_and_tunnels_are_no_way_out() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({"a": 1})))]).await;
    let (address, key, _stop) = serve(&upstream);
    let absolute = post(&key, "", "{}").replace("/v1/", "http://elsewhere.invalid/v1/");
    let mut stream = connected(&address, &absolute).await;
    until(&mut stream, "{\"a\":1}").await;
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(seen.line, "POST /v1/messages HTTP/1.1");
    for request in ["CONNECT elsewhere.invalid:443 HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n"] {
        let request = format!("{request}host: x\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n");
        let mut stream = connected(&address, &request).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(upstream.seen().len(), 1);
}
