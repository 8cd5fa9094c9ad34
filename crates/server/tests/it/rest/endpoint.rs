//! `/mcp` with a stub in place of the MCP server: what the HTTP server owes an endpoint.

use std::sync::{Arc, Mutex};

use axum::http::Method;
use axum::http::{self, Response};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use quipu_core::engine::Principal;
use quipu_core::model::KeyId;
use quipu_core::settings::Limits;
use quipu_server::{App, HttpSettings};
use quipu_service::Service;
use quipu_service::endpoint::{Admitted, Answer, Endpoint, Refusal};
use quipu_service::pool::PoolError;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Server, server_with};

/// Records callers and bodies, and gives a fixed answer.
#[derive(Debug)]
struct Stub {
    seen: Mutex<Vec<(KeyId, String)>>,
    refusal: Option<Refusal>,
    /// The first request waits for a permit of this.
    first: Semaphore,
}

impl Stub {
    fn answering(refusal: Option<Refusal>) -> Arc<Self> {
        Arc::new(Self { seen: Mutex::default(), refusal, first: Semaphore::new(1) })
    }
}

impl Endpoint for Stub {
    fn requests_count(&self, body: &[u8]) -> u32 {
        u32::try_from(body.split(|byte| *byte == b',').count()).expect("a short body")
    }

    fn answer(
        &self,
        caller: Admitted,
        request: http::Request<bytes::Bytes>,
    ) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Principal::Key(key) = &caller.principal else { panic!("{caller:?}") };
            let text = String::from_utf8_lossy(request.body()).into_owned();
            let seen_count = {
                let mut seen = self.seen.lock().expect("no test panics here");
                seen.push((key.id, text));
                seen.len()
            };
            if seen_count == 1 {
                self.first.acquire().await.expect("never closed").forget();
            }
            match &self.refusal {
                Some(refusal) => Err(refusal.clone()),
                None => Ok(Response::new(Full::from("done").boxed_unsync())),
            }
        })
    }

    fn connections_count(&self) -> usize {
        42
    }
}

fn server_for(endpoint: &Arc<Stub>, settings: HttpSettings) -> Server {
    let server = server_with(HttpSettings::default(), Limits::default());
    let service = Service::new(server.engine.clone(), settings.pool_limits());
    Server { app: App::new(service, settings, Arc::clone(endpoint) as _), ..server }
}

#[tokio::test]
async fn the_endpoint_gets_the_caller_and_the_whole_body() {
    let stub = Stub::answering(None);
    let server = server_for(&stub, HttpSettings::default());
    assert_eq!(server.post("/mcp", json!("hello")).await.body, "done");
    server.call_as("wrong", Method::POST, "/mcp", json!("bye")).await;
    let key = server.engine.keys(server.workspace).unwrap().first().unwrap().id;
    assert_eq!(*stub.seen.lock().unwrap(), [(key, "\"hello\"".to_owned())]);
    let metrics = server.get("/metrics").await.body;
    assert!(metrics.as_str().unwrap().contains("quipu_mcp_connections 42"), "{metrics}");
}

#[tokio::test]
async fn refusals_of_the_endpoint_get_the_envelope() {
    let text = || "a reason".to_owned();
    for (refusal, status, error_type) in [
        (Refusal::Invalid(text()), 400, "invalid_request_error"),
        (Refusal::NotFound(text()), 404, "not_found_error"),
        (Refusal::TooMany(text()), 429, "rate_limit_error"),
        (Refusal::Failed(PoolError::Panicked), 500, "api_error"),
        (Refusal::Failed(PoolError::Overloaded), 529, "overloaded_error"),
    ] {
        let stub = Stub::answering(Some(refusal));
        let server = server_for(&stub, HttpSettings::default());
        server.post("/mcp", json!(1)).await.error(status, error_type);
    }
}

#[tokio::test]
async fn a_request_holds_its_permit_while_the_endpoint_works() {
    let stub = Stub::answering(None);
    stub.first.forget_permits(1);
    let server = server_for(&stub, HttpSettings { requests_max: 1, ..HttpSettings::default() });
    let first = server.post("/mcp", json!(1));
    let second = async {
        while stub.seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        server.post("/mcp", json!(2)).await.error(529, "overloaded_error");
        stub.first.add_permits(1);
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.status, 200);
    assert_eq!(server.post("/mcp", json!(3)).await.status, 200, "the permit is released");
}

#[tokio::test]
async fn every_request_of_a_batch_is_charged() {
    let stub = Stub::answering(None);
    let settings = HttpSettings { requests_per_minute_max: Some(4), ..HttpSettings::default() };
    let server = server_for(&stub, settings);
    assert_eq!(server.post("/mcp", json!([1, 2, 3])).await.status, 200);
    server.post("/mcp", json!([4, 5])).await.error(429, "rate_limit_error");
    assert_eq!(stub.seen.lock().unwrap().len(), 1);
}
