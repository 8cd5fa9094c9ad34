//! What is forwarded, and what comes back.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::{Method, Request};
use futures_util::{StreamExt as _, stream};
use quipu_core::model::Role;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::scripted::{self, Step, Upstream, events_head, piece};
use super::{UPSTREAM_KEY, ask, chunk, forwarding_to, messages, new_key, opened, read, settings};

#[tokio::test]
async fn a_request_arrives_with_the_key_of_the_upstream_and_nothing_else_of_the_caller() {
    let answer = json!({"id": "msg_1", "z": 1, "a": 2});
    let headers =
        "request-id: req_up\r\nset-cookie: a=b\r\nanthropic-ratelimit-tokens-limit: 5\r\n";
    let upstream = Upstream::answering(vec![scripted::json(200, headers, &answer)]).await;
    let server = forwarding_to(settings(&upstream));
    let body = json!({"model": "m", "messages": []});
    let sent = [("anthropic-beta", "a-1"), ("cookie", "c=d"), ("x-stainless-lang", "python")];
    let reply = ask(&server, &sent, &body).await;
    assert_eq!((reply.status, &reply.body), (200, &answer));
    assert_eq!(reply.headers["request-id"], "req_up");
    assert!(reply.headers["quipu-request-id"].to_str().unwrap().starts_with("req_01"));
    assert_eq!(reply.headers["anthropic-ratelimit-tokens-limit"], "5");
    assert!(!reply.headers.contains_key("set-cookie"));
    let [seen] = <[_; 1]>::try_from(upstream.seen()).unwrap();
    assert_eq!(seen.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(seen.json(), body);
    assert_eq!(seen.headers["x-api-key"], UPSTREAM_KEY);
    assert_eq!(seen.headers["anthropic-beta"], "a-1");
    assert_eq!(seen.headers["x-stainless-lang"], "python");
    assert_eq!(format!("http://{}", seen.headers["host"]), upstream.url);
    assert!(!seen.headers.contains_key("cookie"));
    assert!(!seen.everything().contains(&server.key));
    assert!(!format!("{:?} {}", reply.headers, reply.body).contains(UPSTREAM_KEY));
}

#[tokio::test]
async fn every_method_path_and_query_below_v1_is_forwarded_as_it_is() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await;
    let server = forwarding_to(settings(&upstream));
    for (method, uri) in [
        (Method::GET, "/v1/models?limit=3&after_id=a%20b"),
        (Method::DELETE, "/v1/files/file_1"),
        (Method::PUT, "/v1/x"),
        (Method::PATCH, "/v1/x"),
        (Method::HEAD, "/v1/x"),
        (Method::POST, "/v1/messages/batches/b/cancel"),
    ] {
        let reply = server.call_as(&server.key, method.clone(), uri, Value::Null).await;
        assert_eq!(reply.status, 200, "{method} {uri}");
        let seen = upstream.seen().pop().unwrap();
        assert_eq!(seen.line, format!("{method} {uri} HTTP/1.1"));
    }
    // What has a route stays here.
    server.get("/v1/memory_stores").await.ok();
    server
        .call_as(&server.key, Method::PUT, "/v1/memory_stores", Value::Null)
        .await
        .error(405, "invalid_request_error");
    server.get("/nowhere").await.error(404, "not_found_error");
    assert_eq!(upstream.seen().len(), 6);
}

#[tokio::test]
async fn errors_of_the_upstream_arrive_as_they_are() {
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}});
    let headers = "retry-after: 7\r\nx-should-retry: true\r\n";
    let answers = [429, 529, 400, 500].map(|status| scripted::json(status, headers, &error));
    let upstream = Upstream::answering(answers.to_vec()).await;
    let server = forwarding_to(settings(&upstream));
    for status in [429, 529, 400, 500] {
        let reply = ask(&server, &[], &json!({})).await;
        assert_eq!((reply.status, &reply.body), (status, &error));
        assert_eq!(reply.headers["retry-after"], "7");
        assert_eq!(reply.headers["x-should-retry"], "true");
    }
}

#[tokio::test]
async fn events_arrive_when_they_are_sent_byte_for_byte() {
    let gate = Arc::new(Semaphore::new(0));
    let text = ["event: a\r\ndata: {\"x\":", "1}\r\n\r\n: comment\n\n", "data: ü\n\ndata: cut"];
    let opening = Arc::clone(&gate);
    let upstream = Upstream::start(move |_, _| {
        let mut steps = vec![Step::Write(events_head())];
        for text in text {
            steps.extend([Step::Write(piece(text)), Step::Wait(Arc::clone(&opening))]);
        }
        steps.push(Step::Write(piece("")));
        steps
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    let response = opened(&server, messages(&server.key, &[], &json!({"stream": true}))).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let mut body = response.into_body();
    for text in text {
        // The next piece is sent only when this one has arrived.
        assert_eq!(chunk(&mut body).await, Some(Ok(text.to_owned())));
        gate.add_permits(1);
    }
    assert_eq!(chunk(&mut body).await, None);
}

#[tokio::test]
async fn a_body_is_forwarded_while_it_arrives() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await;
    let server = forwarding_to(settings(&upstream));
    let pieces = (0..100).map(|number| Ok::<_, std::io::Error>(Bytes::from(format!("{number},"))));
    let body = Body::from_stream(stream::iter(pieces));
    let request = Request::post("/v1/files").header("x-api-key", &server.key).body(body).unwrap();
    assert_eq!(server.send(request).await.status, 200);
    let seen = upstream.seen().pop().unwrap();
    let expected: String = (0..100).map(|number| number.to_string() + ",").collect();
    assert_eq!(String::from_utf8(seen.body).unwrap(), expected);
    assert_eq!(seen.headers["transfer-encoding"], "chunked");
}

#[tokio::test]
async fn a_caller_that_does_not_read_slows_the_upstream_down() {
    const BYTES: usize = 64 * 1024 * 1024;
    let stalled_at = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&stalled_at);
    let upstream = Upstream::start(move |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n");
        let stalled_at = Arc::clone(&noted);
        vec![Step::Write(head.into_bytes()), Step::Flood { bytes: BYTES, stalled_at }]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    let request = Request::get("/v1/files/f/content").header("x-api-key", &server.key);
    let response = opened(&server, request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.headers()["content-length"], BYTES.to_string());
    let mut body = response.into_body();
    let mut size = chunk(&mut body).await.unwrap().unwrap().len();
    let stalled = async {
        while stalled_at.lock().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), stalled).await.expect("it stalls");
    let written = stalled_at.lock().unwrap().unwrap();
    assert!(written < BYTES / 2, "{written} bytes were taken from the upstream");
    while let Some(Ok(more)) = chunk(&mut body).await {
        size += more.len();
    }
    assert_eq!(size, BYTES, "nothing is lost");
}

#[tokio::test]
async fn the_upstream_is_let_go_when_the_caller_drops_the_answer() {
    let closed = Arc::new(Semaphore::new(0));
    let noted = Arc::clone(&closed);
    let upstream = Upstream::start(move |_, _| {
        let first = [events_head(), piece("data: 1\n\n")].concat();
        vec![Step::Write(first), Step::Closed(Arc::clone(&noted))]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    let response = opened(&server, messages(&server.key, &[], &json!({}))).await;
    let mut body = response.into_body();
    assert_eq!(chunk(&mut body).await, Some(Ok("data: 1\n\n".to_owned())));
    drop(body);
    closed.acquire().await.unwrap().forget();
    assert!(metric(&server, "quipu_upstream_streams").await.ends_with(" 0"));
}

async fn metric(server: &crate::rest::Server, name: &str) -> String {
    let page = server.get("/metrics").await.body;
    let lines = page.as_str().expect("it is there").lines();
    lines.filter(|line| line.starts_with(name)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn metrics_have_one_label_for_everything_that_is_forwarded() {
    let upstream = Upstream::start(|seen, _| {
        let status = if seen.line.contains("missing") { 404 } else { 200 };
        vec![Step::Write(scripted::json(status, "", &json!({})))]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    for uri in ["/v1/a", "/v1/b", "/v1/missing"] {
        server.get(uri).await;
    }
    let outcomes = metric(&server, "quipu_upstream_requests_total").await;
    assert!(outcomes.contains("{outcome=\"success\"} 2"), "{outcomes}");
    assert!(outcomes.contains("{outcome=\"client_error\"} 1"), "{outcomes}");
    let routes = metric(&server, "quipu_requests_total").await;
    assert!(routes.contains("route=\"/v1/{forwarded}\",status=\"200\"} 2"), "{routes}");
    assert!(!routes.contains("/v1/a"), "{routes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_is_the_answer_to_what_was_sent() {
    let upstream = Upstream::start(|seen, _| {
        vec![Step::Write(scripted::json(200, "", &json!({"echo": seen.json()})))]
    })
    .await;
    let server = Arc::new(forwarding_to(settings(&upstream)));
    let keys = [(); 4].map(|()| new_key(&server, Role::ReadWrite, None).1);
    let asking = (0..200).map(|number| {
        let (server, key) = (Arc::clone(&server), keys[number % keys.len()].clone());
        tokio::spawn(async move {
            let body = json!({"number": number, "of": number % 4});
            let reply = server.send(messages(&key, &[], &body)).await;
            assert_eq!(reply.ok(), json!({"echo": body}));
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    let seen = upstream.seen();
    assert_eq!(seen.len(), 200);
    assert!(seen.iter().all(|seen| keys.iter().all(|key| !seen.everything().contains(key))));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_streams_run_side_by_side() {
    const STREAMS: usize = 200;
    let gate = Arc::new(Semaphore::new(0));
    let opening = Arc::clone(&gate);
    let upstream = Upstream::start(move |seen, _| {
        let number = seen.json()["number"].to_string();
        let first = [events_head(), piece(&format!("data: {number}\n\n"))].concat();
        let last = [piece(&format!("data: end of {number}\n\n")), piece("")].concat();
        vec![Step::Write(first), Step::Wait(Arc::clone(&opening)), Step::Write(last)]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    let mut bodies: Vec<Body> = stream::iter(0..STREAMS)
        .map(|number| messages(&server.key, &[], &json!({"number": number})))
        .then(|request| async { opened(&server, request).await.into_body() })
        .collect()
        .await;
    for (number, body) in bodies.iter_mut().enumerate() {
        assert_eq!(chunk(body).await, Some(Ok(format!("data: {number}\n\n"))));
    }
    // All of them are open now, and none has ended.
    assert!(metric(&server, "quipu_upstream_streams").await.ends_with(" 200"));
    gate.add_permits(STREAMS);
    for (number, body) in bodies.into_iter().enumerate() {
        assert_eq!(read(body).await, (format!("data: end of {number}\n\n"), true));
    }
    assert!(metric(&server, "quipu_upstream_streams").await.ends_with(" 0"));
}

#[tokio::test]
async fn connections_to_the_upstream_are_used_again() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await;
    let server = forwarding_to(settings(&upstream));
    for _ in 0..10 {
        ask(&server, &[], &json!({})).await.ok();
    }
    assert_eq!(upstream.seen().len(), 10);
    assert!(upstream.connections() <= 2, "{}", upstream.connections());
}

#[tokio::test]
async fn the_results_of_a_batch_are_fetched_here() {
    let url = "https://api.example.org/v1/messages/batches/b/results";
    let batch = json!({"id": "b", "results_url": url});
    let upstream = Upstream::answering(vec![scripted::json(200, "", &batch)]).await;
    let server = forwarding_to(settings(&upstream));
    let request = Request::get("/v1/messages/batches/b")
        .header("x-api-key", &server.key)
        .header("accept-encoding", "gzip")
        .header("host", "quipu.example.org:8420");
    let reply = server.send(request.body(Body::empty()).unwrap()).await;
    let own = "http://quipu.example.org:8420/v1/messages/batches/b/results";
    assert_eq!(reply.ok()["results_url"], own);
    assert!(!upstream.seen()[0].headers.contains_key("accept-encoding"));
}
