//! What callers get when the upstream, they themselves, or the network between do not do their part.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::{StreamExt as _, stream};
use quipu_core::model::Role;
use quipu_server::{BaseUrl, UpstreamSettings};
use serde_json::json;
use tokio::sync::Semaphore;

use super::scripted::{self, Step, Upstream, events_head, piece};
use super::{ask, chunk, forwarding_to, messages, new_key, opened, read, settings};
use crate::rest::events::follow;

const SHORT: Duration = Duration::from_millis(30);

fn never() -> Step {
    Step::Wait(Arc::new(Semaphore::new(0)))
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_a_bad_gateway() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for url in [url.as_str(), "http://nowhere.invalid"] {
        let server = forwarding_to(UpstreamSettings::new(BaseUrl::parse(url).unwrap(), None));
        let message = ask(&server, &[], &json!({})).await.error(502, "api_error");
        assert_eq!(message, "the upstream cannot be reached");
    }
}

#[tokio::test]
async fn an_upstream_that_speaks_no_http_is_a_bad_gateway() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1024 * 1024));
    for answer in ["hello\r\n\r\n".to_owned(), huge, String::new()] {
        let upstream = Upstream::start(move |_, _| {
            vec![Step::Write(answer.clone().into_bytes()), Step::Close]
        })
        .await;
        let server = forwarding_to(settings(&upstream));
        ask(&server, &[], &json!({})).await.error(502, "api_error");
    }
}

#[tokio::test]
async fn a_redirection_is_not_followed() {
    let elsewhere = "location: http://elsewhere.invalid/\r\n";
    let upstream = Upstream::answering(vec![scripted::json(308, elsewhere, &json!({}))]).await;
    let server = forwarding_to(settings(&upstream));
    let reply = ask(&server, &[], &json!({})).await;
    assert!(reply.error(502, "api_error").contains("redirects"));
    assert!(!reply.headers.contains_key("location"));
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up() {
    let upstream = Upstream::start(|_, _| vec![never()]).await;
    let server =
        forwarding_to(UpstreamSettings { first_byte_timeout: SHORT, ..settings(&upstream) });
    ask(&server, &[], &json!({})).await.error(504, "timeout_error");
}

#[tokio::test]
async fn a_stream_that_falls_silent_ends_with_an_error_of_the_contract() {
    let upstream = Upstream::start(|_, _| {
        vec![Step::Write([events_head(), piece("event: ping\ndata: {")].concat()), never()]
    })
    .await;
    let server = forwarding_to(UpstreamSettings { idle_timeout: SHORT, ..settings(&upstream) });
    let response = opened(&server, messages(&server.key, &[], &json!({}))).await;
    let (text, is_complete) = read(response.into_body()).await;
    assert!(!is_complete, "nobody takes this for the end of the answer");
    let end = text.strip_prefix("event: ping\ndata: {\n\nevent: error\ndata: ").expect("an event");
    let error: serde_json::Value = serde_json::from_str(end.trim_end()).expect("JSON");
    assert_eq!(error["error"]["type"], "timeout_error");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_arrives_cut_off() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":".to_vec();
    let stream = [events_head(), piece("data: 1\n\n"), b"ff\r\nhalf".to_vec()].concat();
    for (answer, arrived) in [(short, "{\"half\":"), (stream, "data: 1\n\nhalf")] {
        let upstream =
            Upstream::start(move |_, _| vec![Step::Write(answer.clone()), Step::Close]).await;
        let server = forwarding_to(settings(&upstream));
        let response = opened(&server, messages(&server.key, &[], &json!({}))).await;
        assert_eq!(response.status(), 200);
        assert_eq!(read(response.into_body()).await, (arrived.to_owned(), false));
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_goes_nowhere() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Write(scripted::json(200, "", &json!({})))]).await;
    let server =
        forwarding_to(UpstreamSettings { body_size_bytes_max: 1000, ..settings(&upstream) });
    let body = json!({"x": "y".repeat(1000)});
    ask(&server, &[], &body).await.error(413, "request_too_large");
    ask(&server, &[("quipu-store", "notes")], &body).await.error(413, "request_too_large");
    assert_eq!(upstream.seen().len(), 0);
    // Nobody knows how large this one will be.
    let pieces =
        stream::iter((0..2).map(|_| Ok::<_, std::io::Error>(Bytes::from("x".repeat(600)))));
    let request = Request::post("/v1/files").header("x-api-key", &server.key);
    let request = request.body(Body::from_stream(pieces)).unwrap();
    server.send(request).await.error(413, "request_too_large");
    assert_eq!(upstream.seen().len(), 0, "half a request is none");
    ask(&server, &[], &json!({})).await.ok();
}

#[tokio::test]
async fn a_caller_that_stops_sending_is_not_waited_for() {
    let upstream = Upstream::start(|_, _| vec![never()]).await;
    let server = forwarding_to(UpstreamSettings { upload_timeout: SHORT, ..settings(&upstream) });
    let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    let body = Body::from_stream(begun.chain(stream::pending()));
    let request = Request::post("/v1/files").header("x-api-key", &server.key).body(body).unwrap();
    server.send(request).await.error(408, "timeout_error");
}

#[tokio::test]
async fn a_key_and_all_keys_together_have_a_limit_of_streams() {
    let upstream = Upstream::start(|_, _| {
        vec![Step::Write([events_head(), piece("data: 1\n\n")].concat()), never()]
    })
    .await;
    let limits = UpstreamSettings { streams_max: 2, streams_per_key_max: 1, ..settings(&upstream) };
    let server = forwarding_to(limits);
    let [other, third] = [(); 2].map(|()| new_key(&server, Role::ReadOnly, None).1);
    let first = opened(&server, messages(&server.key, &[], &json!({}))).await;
    let reply = ask(&server, &[], &json!({})).await;
    assert!(reply.error(429, "rate_limit_error").contains("has 1 forwarded requests in flight"));
    assert_eq!(reply.headers["retry-after"], "1");
    let second = opened(&server, messages(&other, &[], &json!({}))).await;
    assert_eq!(second.status(), 200);
    server.send(messages(&third, &[], &json!({}))).await.error(529, "overloaded_error");
    drop(first);
    assert_eq!(opened(&server, messages(&server.key, &[], &json!({}))).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_ends_its_streams_and_no_others() {
    let gate = Arc::new(Semaphore::new(0));
    let opening = Arc::clone(&gate);
    let upstream = Upstream::start(move |_, _| {
        vec![
            Step::Write([events_head(), piece("data: 1\n\n")].concat()),
            Step::Wait(Arc::clone(&opening)),
            Step::Write([piece("data: 2\n\n"), piece("")].concat()),
        ]
    })
    .await;
    let server = forwarding_to(settings(&upstream));
    follow(&server);
    let (id, key) = new_key(&server, Role::ReadWrite, None);
    let mut ending = opened(&server, messages(&key, &[], &json!({}))).await.into_body();
    let mut going_on = opened(&server, messages(&server.key, &[], &json!({}))).await.into_body();
    for body in [&mut ending, &mut going_on] {
        assert_eq!(chunk(body).await, Some(Ok("data: 1\n\n".to_owned())));
    }
    server.engine.revoke_key(id).unwrap();
    // The upstream sends nothing that could wake it.
    let (text, is_complete) = read(ending).await;
    assert!(text.contains("\"authentication_error\"") && !is_complete, "{text}");
    gate.add_permits(2);
    assert_eq!(read(going_on).await, ("data: 2\n\n".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_before_the_upstream_answers_gets_no_answer() {
    let upstream = Upstream::start(|_, _| vec![never()]).await;
    let server = Arc::new(forwarding_to(settings(&upstream)));
    follow(&server);
    let (id, key) = new_key(&server, Role::ReadWrite, None);
    let asking = Arc::clone(&server);
    let asked = tokio::spawn(async move {
        asking.send(messages(&key, &[], &json!({}))).await.error(401, "authentication_error")
    });
    upstream.arrived.acquire().await.unwrap().forget();
    server.engine.revoke_key(id).unwrap();
    asked.await.unwrap();
}
