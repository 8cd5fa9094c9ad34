//! Webhooks, posted to a receiver in this process.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use quipu_core::engine::NewStore;
use quipu_core::model::{Name, StoreId};
use quipu_inspector::Host as _;
use quipu_server::webhooks::{Delivering, Endpoint, Pauses, deliver};
use serde_json::Value;
use sha2::Sha256;

use crate::rest::{Server, server};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// One delivery as the receiver saw it.
struct Delivery {
    id: String,
    timestamp: String,
    signature: String,
    body: String,
}

/// Answers each delivery with the next of these heads, and hands out what came.
fn receiver(heads: &'static [&'static str]) -> (String, Receiver<Delivery>) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", socket.local_addr().expect("an address"));
    let (sender, deliveries) = channel();
    std::thread::spawn(move || {
        for head in heads {
            let (mut stream, _) = socket.accept().expect("a delivery");
            let delivery = read(&mut BufReader::new(stream.try_clone().expect("a second handle")));
            sender.send(delivery).expect("the test waits");
            let end = "content-length: 0\r\nconnection: close\r\n\r\n";
            let answer = format!("HTTP/1.1 {head}\r\n{end}");
            stream.write_all(answer.as_bytes()).expect("the answer is read");
        }
    });
    (url, deliveries)
}

fn read(stream: &mut BufReader<TcpStream>) -> Delivery {
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a line");
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers.insert(name.to_lowercase(), value.to_owned());
        }
    }
    let mut body = vec![0; headers["content-length"].parse().expect("a length")];
    stream.read_exact(&mut body).expect("a body");
    let mut header = |name: &str| headers.remove(name).expect("the header is sent");
    Delivery {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: String::from_utf8(body).expect("JSON"),
    }
}

fn endpoint(url: &str) -> Endpoint {
    let secret = format!("whsec_{}", STANDARD.encode(SECRET));
    Endpoint::new(url, &secret).expect("the secret is well formed")
}

/// Runs `test` while deliveries are made.
fn while_delivering(server: &Server, url: &str, test: impl FnOnce()) {
    let endpoint = endpoint(url);
    let stopped = AtomicBool::new(false);
    // A new follower begins where the feed ends, so its place is kept before anything happens.
    let follower = format!("webhook {url}");
    if server.engine.cursor(&follower).expect("read").is_none() {
        let start = server.engine.newest_sequence().expect("a sequence");
        server.engine.keep_cursor(&follower, start).expect("kept");
    }
    std::thread::scope(|scope| {
        let (engine, workspace) = (&server.engine, server.workspace);
        let pauses = Pauses([Duration::from_millis(1); 2]);
        let how = Delivering { workspace, pauses, deliveries: server.app.deliveries() };
        let stop = || stopped.load(Ordering::Relaxed);
        let follower = scope.spawn(move || deliver(engine, &endpoint, &how, &stop));
        test();
        stopped.store(true, Ordering::Relaxed);
        // Wakes the follower, so that it sees that it is to stop.
        create(server, "the end");
        follower.join().expect("no panic").expect("no error");
    });
}

fn create(server: &Server, name: &str) -> StoreId {
    let new = NewStore::named(Name::new(name).expect("a name"));
    server.engine.create_store(server.workspace, &new).expect("a store").id
}

fn next(deliveries: &Receiver<Delivery>) -> Delivery {
    deliveries.recv_timeout(Duration::from_secs(30)).expect("a delivery")
}

#[test]
fn created_archived_and_deleted_stores_are_delivered_and_signed() {
    let server = server();
    let (url, deliveries) = receiver(&["200 OK", "204 No Content", "200 OK"]);
    while_delivering(&server, &url, || {
        let store = create(&server, "notes");
        server.engine.archive_store(store).expect("archived");
        server.engine.archive_store(store).expect("archived already, which is no event");
        server.engine.delete_store(store).expect("deleted");
        for event in ["created", "archived", "deleted"] {
            let delivery = next(&deliveries);
            let body: Value = serde_json::from_str(&delivery.body).expect("JSON");
            assert_eq!(body["type"], "event");
            assert_eq!(body["id"], delivery.id);
            assert_eq!(body["data"]["type"], format!("memory_store.{event}"));
            assert_eq!(body["data"]["id"], store.to_string());
            assert_eq!(body["data"]["workspace_id"], server.workspace.to_string());

            let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("a key");
            let signed = format!("{}.{}.{}", delivery.id, delivery.timestamp, delivery.body);
            mac.update(signed.as_bytes());
            let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
            assert_eq!(delivery.signature, expected);
        }
    });
}

#[test]
fn a_failed_delivery_is_tried_three_times_and_signed_each_time() {
    let server = server();
    let (url, deliveries) = receiver(&["500 Oh", "503 No", "200 OK", "200 OK"]);
    while_delivering(&server, &url, || {
        create(&server, "notes");
        let first = next(&deliveries);
        let second = next(&deliveries);
        let third = next(&deliveries);
        assert_eq!((&first.id, &first.body), (&second.id, &second.body));
        assert_eq!((&first.id, &first.body), (&third.id, &third.body));
        create(&server, "more");
        assert_ne!(next(&deliveries).id, first.id);
    });
}

#[test]
fn an_endpoint_that_redirects_is_disabled() {
    let server = server();
    let (url, deliveries) = receiver(&["301 Moved\r\nlocation: http://127.0.0.1:9/", "200 OK"]);
    while_delivering(&server, &url, || {
        create(&server, "notes");
        next(&deliveries);
        create(&server, "more");
        let silence = deliveries.recv_timeout(Duration::from_millis(300));
        assert!(silence.is_err(), "a delivery after the redirect");
    });
}

#[test]
fn events_of_a_downtime_are_delivered_later() {
    let server = server();
    let (url, deliveries) = receiver(&["200 OK"; 4]);
    while_delivering(&server, &url, || {
        create(&server, "first");
        next(&deliveries);
    });
    let store = create(&server, "in between").to_string();
    while_delivering(&server, &url, || while !next(&deliveries).body.contains(&store) {});
}

#[test]
fn the_inspector_shows_what_was_delivered_to_each_webhook_and_why_not() {
    let server = server();
    let heads = &["200 OK", "500 Oh", "500 Oh", "500 Oh", "200 OK", "200 OK"];
    let (url, deliveries) = receiver(heads);
    server.app.deliveries().add(&endpoint("http://ada:secret@127.0.0.1:9/quiet?token=secret"));
    while_delivering(&server, &url, || {
        create(&server, "accepted");
        create(&server, "abandoned");
        // The last one is delivered when the one before it is given up.
        create(&server, "accepted too");
        for _ in 0..5 {
            next(&deliveries);
        }
    });
    let webhooks = server.app.webhooks(server.engine.engine()).expect("read");
    let [quiet, used] = webhooks.as_slice() else { panic!("{webhooks:?}") };
    assert_eq!((quiet.url.as_str(), quiet.accepted_count), ("http://127.0.0.1:9/quiet", 0));
    assert!(used.accepted_count >= 2, "{used:?}");
    assert_eq!(used.failed_count, 1);
    let (_, reason) = used.last_error.as_ref().expect("an error");
    assert!(reason.contains("500"), "{reason}");
    assert_eq!(server.app.deliveries().counts(), (used.accepted_count, 1));
}

#[test]
fn events_that_wait_are_counted() {
    let server = server();
    let endpoint = endpoint("http://127.0.0.1:9/hook");
    server.app.deliveries().add(&endpoint);
    let start = server.engine.newest_sequence().expect("a sequence");
    server.engine.keep_cursor("webhook http://127.0.0.1:9/hook", start).expect("kept");
    create(&server, "one");
    create(&server, "two");
    let webhooks = server.app.webhooks(server.engine.engine()).expect("read");
    assert_eq!(webhooks.first().map(|webhook| webhook.waiting_count), Some(2));
}

#[test]
fn a_webhook_can_be_tested_and_the_outcome_is_kept() {
    let server = server();
    let (url, deliveries) = receiver(&["204 No Content", "302 Found", "503 Busy"]);
    server.app.deliveries().add(&endpoint(&url));
    let outcome = || {
        server.app.test_webhook(server.engine.engine(), 0);
        let delivery = next(&deliveries);
        assert!(delivery.signature.starts_with("v1,"), "{}", delivery.signature);
        let body: Value = serde_json::from_str(&delivery.body).expect("JSON");
        assert_eq!(
            (&body["data"]["type"], &body["id"]),
            (&"quipu.test".into(), &delivery.id.into())
        );
        let webhooks = server.app.webhooks(server.engine.engine()).expect("read");
        webhooks.first().and_then(|webhook| webhook.tested.clone()).expect("tested").1
    };
    assert_eq!(outcome(), Ok(()));
    assert!(outcome().unwrap_err().contains("redirect"));
    assert!(outcome().unwrap_err().contains("503"));
    // Tests are no deliveries, and a place that is none is ignored.
    server.app.test_webhook(server.engine.engine(), 7);
    assert_eq!(server.app.deliveries().counts(), (0, 0));
}
