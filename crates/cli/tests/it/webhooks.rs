//! Webhooks of real servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::server::{KEY, Server, id};
use crate::support::Quipu;

fn secret() -> String {
    ["whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"].concat()
}

/// Accepts deliveries and yields the store id of each.
fn receiver() -> (String, Receiver<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", socket.local_addr().expect("an address"));
    let (sender, deliveries) = channel();
    std::thread::spawn(move || {
        for stream in socket.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if line.trim_end().is_empty() {
                    break;
                }
                if let Some((name, value)) = line.trim_end().split_once(": ")
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).expect("the answer is read");
            if sender.send(id(body.get("data").expect("data"))).is_err() {
                return;
            }
        }
    });
    (url, deliveries)
}

/// Returns a home whose servers deliver to these URLs.
fn with_webhooks(urls: &[&str]) -> Quipu {
    let quipu = Quipu::empty();
    std::fs::create_dir_all(quipu.data()).expect("a directory");
    let secret = secret();
    let table = |url: &&str| format!("[[webhooks]]\nurl = '{url}'\nsecret = '{secret}'\n");
    let text: String = urls.iter().map(table).collect();
    std::fs::write(quipu.data().join("quipu.toml"), text).expect("the settings");
    quipu
}

fn create(server: &Server, name: &str) -> String {
    let (status, store) = server.post(KEY, "/v1/memory_stores", &json!({ "name": name }));
    assert_eq!(status, 200, "{store}");
    id(&store)
}

fn next(deliveries: &Receiver<String>) -> String {
    deliveries.recv_timeout(Duration::from_secs(20)).expect("a delivery")
}

/// Waits until a server follows the change feed for its webhooks.
fn wait_for_cursor(quipu: &Quipu, url: &str) {
    let engine = quipu.engine(0);
    while engine.cursor(&format!("webhook {url}")).expect("read").is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_servers_deliver_once_and_the_second_takes_over() {
    let (url, deliveries) = receiver();
    let quipu = with_webhooks(&[&url]);
    let mut first = Server::start(&quipu);
    wait_for_cursor(&quipu, &url);
    let second = Server::start(&quipu);
    let ids: Vec<_> = (0..5).map(|number| create(&second, &format!("store {number}"))).collect();
    for id in &ids {
        assert_eq!(next(&deliveries), *id);
    }
    // Delivery is at least once: the last one may be repeated if its acknowledgment was not recorded.
    let engine = quipu.engine(0);
    let newest = engine.newest_sequence().expect("a sequence");
    while engine.cursor(&format!("webhook {url}")).expect("read") < Some(newest) {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.signal(Signal::KILL);
    first.child.wait().expect("it ends");
    let last = create(&second, "the last");
    assert_eq!(next(&deliveries), last);
    let more = deliveries.recv_timeout(Duration::from_millis(500));
    assert!(more.is_err(), "{more:?} was delivered twice");
}

#[test]
fn a_dead_endpoint_does_not_delay_others_and_both_are_counted() {
    // It accepts connections and never responds.
    let dead = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let dead_url = format!("http://{}/hook", dead.local_addr().expect("an address"));
    let (url, deliveries) = receiver();
    let quipu = with_webhooks(&[&dead_url, &url]);
    let server = Server::start(&quipu);
    wait_for_cursor(&quipu, &url);
    let created = create(&server, "notes");
    assert_eq!(deliveries.recv_timeout(Duration::from_secs(3)).expect("a delivery"), created);
    let counted = "quipu_webhook_deliveries_total{result=\\\"accepted\\\"} 1";
    let is_counted = || server.get(KEY, "/metrics").1.to_string().contains(counted);
    for _ in 0..100 {
        if is_counted() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the delivery is not counted");
}

#[test]
fn a_malformed_address_is_refused_at_the_start() {
    let quipu = with_webhooks(&["example.com/hook"]);
    let ran = quipu.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("example.com/hook") && ran.err.contains("https://"), "{}", ran.err);
}
