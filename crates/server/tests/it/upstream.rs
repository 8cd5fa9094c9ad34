//! Pass-through and memory in messages, against an upstream that does what a script says.

#[path = "upstream/failing.rs"]
mod failing;
#[path = "upstream/memory.rs"]
mod memory;
#[path = "upstream/memory_streamed.rs"]
mod memory_streamed;
#[path = "upstream/passing.rs"]
mod passing;
#[path = "upstream/rights.rs"]
mod rights;
#[path = "upstream/scripted.rs"]
pub(crate) mod scripted;
#[path = "upstream/securing.rs"]
mod securing;
#[path = "upstream/sockets.rs"]
mod sockets;

use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::BodyExt as _;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, KeyId, Name, Role, StoreId};
use quipu_core::settings::Limits;
use quipu_server::{BaseUrl, HttpSettings, UpstreamKey, UpstreamSettings};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::rest::{Reply, Server, server_with};
use scripted::Upstream;

/// The key of the upstream, which nobody must ever see.
pub(crate) const UPSTREAM_KEY: &str = "sk-upstream-0123456789";

/// Returns the settings for an upstream.
pub(crate) fn settings(upstream: &Upstream) -> UpstreamSettings {
    let url = BaseUrl::parse(&upstream.url).expect("an address");
    UpstreamSettings::new(url, UpstreamKey::api_key(UPSTREAM_KEY).ok())
}

/// Makes a server that forwards, and a key that may.
pub(crate) fn forwarding_to(upstream: UpstreamSettings) -> Server {
    let settings = HttpSettings { upstream: Some(upstream), ..HttpSettings::default() };
    let mut server = server_with(settings, Limits::default());
    server.key = new_key(&server, Role::Admin, None).1;
    server
}

/// Makes a key that may forward.
pub(crate) fn new_key(
    server: &Server,
    role: Role,
    stores: Option<Vec<StoreId>>,
) -> (KeyId, String) {
    let name = Name::new("app").expect("a name");
    let forwarding = Forwarding::Allowed;
    let new = NewKey { name, role, stores, expires_at: None, secret: None, forwarding };
    let (key, secret) = server.engine.create_key(server.workspace, &new).expect("a key");
    (key.id, secret.reveal().to_owned())
}

/// Returns a request to the messages API.
pub(crate) fn messages(key: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let mut request = Request::post("/v1/messages")
        .header("x-api-key", key)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_string())).expect("a request")
}

/// Sends a request, and does not read the body of the answer.
pub(crate) async fn opened(server: &Server, request: Request<Body>) -> Response<Body> {
    server.app.router().oneshot(request).await.expect("the router answers")
}

/// Reads the next bytes of a body; an error is a body that was cut off.
pub(crate) async fn chunk(body: &mut Body) -> Option<Result<String, ()>> {
    let frame = body.frame().await?;
    let text = frame.map(|frame| frame.into_data().expect("no trailers"));
    Some(text.map(|data| String::from_utf8_lossy(&data).into_owned()).map_err(drop))
}

/// Reads a whole body, and returns whether it reached its end.
pub(crate) async fn read(mut body: Body) -> (String, bool) {
    let mut text = String::new();
    while let Some(next) = chunk(&mut body).await {
        let Ok(next) = next else { return (text, false) };
        text.push_str(&next);
    }
    (text, true)
}

/// Forwards a request for messages and reads the answer.
pub(crate) async fn ask(server: &Server, headers: &[(&str, &str)], body: &Value) -> Reply {
    server.send(messages(&server.key, headers, body)).await
}
