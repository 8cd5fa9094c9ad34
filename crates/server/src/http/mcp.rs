//! `/mcp`: the MCP server, for whoever has a key or the token of a session.

use std::convert::Infallible;
use std::vec;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use http_body_util::{BodyExt as _, Collected};
use hyper::body::Frame;
use quipu_knowledge::Knowledge;
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::transport::common::http_header::{HEADER_MCP_PROTOCOL_VERSION, HEADER_SESSION_ID};

use serde_json::{Value, json};

use super::App;
use super::admission::Visitor;
use super::answer::Failure;
use super::body::Incoming;
use super::caller::{self, Caller};
use super::guard::guarded;
use super::rate;
use crate::credential::Credential;
use crate::mcp::{self, InUse};
use crate::pool::PoolError;

const EVENTS: &str = "text/event-stream";

/// Returns the route.
pub(super) fn routes(app: &App) -> Router<App> {
    let settings = app.settings();
    let service = mcp::service(&app.0.mcp, &settings.hosts, settings.body_size_bytes_max);
    let authenticated = from_fn_with_state(app.clone(), authenticated);
    Router::new().route_service("/mcp", service).route_layer(authenticated)
}

/// Lets requests pass with who makes them, and nobody else.
async fn authenticated(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let visitor = Visitor::new(request.headers(), request.extensions());
    let (caller, credential) = match admitted(&app, request.headers(), &visitor).await {
        Ok(admitted) => admitted,
        Err(failure) => {
            let realm = "Bearer realm=\"quipu\"";
            return failure.with_header("www-authenticate", realm).into_response();
        }
    };
    if is_stateless(request.headers()) {
        // A connection means nothing here, and must not be reached past the check below.
        request.headers_mut().remove(HEADER_SESSION_ID);
    }
    let connections = app.0.mcp.connections();
    let in_use = match connection(request.headers()) {
        None => None,
        Some(id) => match connections.enter(id, &caller.actor) {
            Some(in_use) => Some(in_use),
            None => return no_connection().into_response(),
        },
    };
    let payer = rate::payer(&caller.principal);
    request.extensions_mut().insert(caller.principal.clone());
    request.extensions_mut().insert(credential.clone());
    let begins = in_use.is_none() && !is_stateless(request.headers());
    if !begins {
        return answered(&app, request, next, (caller, credential, in_use)).await;
    }
    if !connections.has_room(&payer) {
        return too_many().into_response();
    }
    // A client that leaves before it has its answer must not leave a connection of nobody behind.
    let running = tokio::spawn(async move {
        let owner = caller.actor.clone();
        let response = answered(&app, request, next, (caller, credential, None)).await;
        if let Some(id) = connection(response.headers()) {
            app.0.mcp.connections().begin(id, owner, payer).await;
        }
        response
    });
    running.await.unwrap_or_else(|_panic| Failure::from(PoolError::Panicked).into_response())
}

/// Answers a request of a known caller, on a connection of theirs if they name one.
async fn answered(
    app: &App,
    request: Request,
    next: Next,
    (caller, credential, in_use): (Caller, Credential, Option<InUse>),
) -> Response {
    let is_end = request.method() == Method::DELETE;
    let posted = match listed(app, request).await {
        Ok(posted) => posted,
        Err(failure) => return failure.into_response(),
    };
    let _permit = match app.admission().permit() {
        Ok(permit) => permit,
        Err(failure) => return failure.into_response(),
    };
    let response = match posted {
        Posted::One(request) => next.run(request).await,
        Posted::Removed(answer) => return answer,
        Posted::Several(..) if in_use.is_none() => {
            let message = "a list of messages needs an MCP session; send `initialize` alone first";
            return Failure::invalid(message).into_response();
        }
        Posted::Several(parts, messages) => {
            let requests = u32::try_from(messages.len()).unwrap_or(u32::MAX);
            match app.0.rate.admit_rest(&rate::payer(&caller.principal), requests) {
                Ok(()) => Answers::new(parts, messages, next).response().await,
                Err(failure) => failure.into_response(),
            }
        }
    };
    let response = match (is_stream(&response), response.status()) {
        (true, _) => response.map(|body| guarded(body, credential)),
        // The SDK says that it will be done, when it is done; clients complain.
        (false, StatusCode::ACCEPTED) if is_end => StatusCode::NO_CONTENT.into_response(),
        (false, _) => response,
    };
    match in_use {
        Some(in_use) => held(response, in_use),
        None => response,
    }
}

/// What is said to a caller all of whose connections are in use.
fn too_many() -> Failure {
    let message = format!(
        "too many MCP sessions are in use: a key may have {} and the server {}; end one first",
        mcp::PER_CALLER_MAX,
        mcp::TOTAL_MAX
    );
    Failure::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
}

async fn admitted(
    app: &App,
    headers: &HeaderMap,
    visitor: &Visitor,
) -> Result<(Caller, Credential), Failure> {
    let secret = caller::credential(headers)?;
    let mut credential = Credential::new(app.pool(), &app.0.feed, secret);
    let headers = headers.clone();
    let authenticate = move |engine: &Knowledge| Caller::authenticate(engine, &headers, None);
    let (caller, _) = if app.admission().is_proven(visitor) {
        let result = app.pool().read(authenticate).await?;
        app.admission().note(visitor, &result);
        result?
    } else {
        app.prove(visitor, authenticate).await?
    };
    credential.expires_with(&caller.principal);
    app.0.rate.admit(&rate::payer(&caller.principal))?;
    Ok((caller, credential))
}

/// Tells whether a response is a stream of events.
fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(EVENTS.as_bytes()))
}

/// Tells whether a message is of a revision that has no connections.
fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(HEADER_MCP_PROTOCOL_VERSION);
    version.is_some_and(|version| {
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.any(|known| !known.has_initialize() && version == known.as_str())
    })
}

/// Returns the connection that a message names.
fn connection(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_SESSION_ID).map(|id| id.to_str().unwrap_or_default())
}

/// What is said of a connection that does not exist and of one of somebody else.
fn no_connection() -> Failure {
    let message = "there is no such MCP session; begin one with `initialize`";
    Failure::new(StatusCode::NOT_FOUND, "not_found_error", message)
}

/// Keeps a connection in use until the response has been sent, or nobody waits for it any more.
fn held(response: Response, in_use: InUse) -> Response {
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _in_use = &in_use;
            frame
        }))
    })
}

/// What a request brings.
enum Posted {
    /// One message, or none.
    One(Request),
    /// A list of messages: revision 2025-03-26 has them.
    Several(Parts, Vec<Value>),
    /// A method that the revision of the message has no more; this is the answer.
    Removed(Response),
}

/// Finds out whether a request brings a list of messages.
async fn listed(app: &App, request: Request) -> Result<Posted, Failure> {
    if request.method() != Method::POST {
        return Ok(Posted::One(request));
    }
    let (parts, body) = request.into_parts();
    let mut body = Incoming::new(body);
    body.read_rest(app.settings()).await?;
    let bytes = body.into_bytes();
    if is_stateless(&parts.headers)
        && let Some(answer) = removed(&bytes)
    {
        return Ok(Posted::Removed(answer));
    }
    if !bytes.trim_ascii_start().starts_with(b"[") {
        return Ok(Posted::One(Request::from_parts(parts, Body::from(bytes))));
    }
    match mcp::messages(&bytes) {
        Ok(messages) => Ok(Posted::Several(parts, messages)),
        Err(refusal) => Err(Failure::invalid(refusal.to_string())),
    }
}

/// Methods of older revisions that the stateless ones do not have.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Returns the answer to a request of a method that was removed. The SDK would look at its
/// parameters first, and complain about these.
fn removed(body: &[u8]) -> Option<Response> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let (id, method) = (message.get("id")?, message.get("method")?.as_str()?);
    if !REMOVED.contains(&method) {
        return None;
    }
    let error = json!({
        "code": ErrorCode::METHOD_NOT_FOUND,
        "message": format!("{method} is not a method of this revision"),
    });
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Some((StatusCode::NOT_FOUND, kind, body.to_string()).into_response())
}

/// The answers to a list of messages, one by one. The next message is not looked at before somebody
/// wants to read its answer.
struct Answers {
    parts: Parts,
    messages: vec::IntoIter<Value>,
    next: Next,
    /// The answer that is being read.
    current: Option<Body>,
}

impl Answers {
    fn new(mut parts: Parts, messages: Vec<Value>, next: Next) -> Self {
        parts.headers.remove(header::CONTENT_LENGTH);
        Self { parts, messages: messages.into_iter(), next, current: None }
    }

    /// Returns all answers as one stream of events, or the one answer if the headers are refused.
    async fn response(mut self) -> Response {
        if let Some((message, response)) = self.run().await {
            if matches!(response.status(), StatusCode::FORBIDDEN | StatusCode::NOT_ACCEPTABLE) {
                return response;
            }
            self.current = Some(events(&message, response).await);
        }
        let Some(first) = self.events().await else {
            return StatusCode::ACCEPTED.into_response();
        };
        let others = stream::unfold(self, async |mut answers| {
            let events = answers.events().await?;
            Some((events, answers))
        });
        let events = stream::once(async { first }).chain(others).map(Ok::<_, Infallible>);
        ([(header::CONTENT_TYPE, EVENTS)], Body::from_stream(events)).into_response()
    }

    /// Returns the next events, or a part of them; `None` when everything is answered.
    async fn events(&mut self) -> Option<Bytes> {
        loop {
            let Some(body) = &mut self.current else {
                let (message, response) = self.run().await?;
                self.current = Some(events(&message, response).await);
                continue;
            };
            let frame = body.frame().await.and_then(Result::ok);
            match frame.map(Frame::into_data) {
                Some(Ok(events)) => return Some(events),
                Some(Err(_trailers)) => {}
                None => self.current = None,
            }
        }
    }

    /// Runs the next message.
    async fn run(&mut self) -> Option<(Value, Response)> {
        let message = self.messages.next()?;
        let body = Body::from(message.to_string());
        let request = Request::from_parts(self.parts.clone(), body);
        Some((message, self.next.clone().run(request).await))
    }
}

/// Returns the events of the response to a message.
async fn events(message: &Value, response: Response) -> Body {
    if is_stream(&response) {
        return response.into_body();
    }
    if response.status().is_success() {
        return Body::empty();
    }
    let reason = response.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    Body::from(refused(message, &reason))
}

/// Returns the event that says that a message of a list was refused.
fn refused(message: &Value, body: &[u8]) -> String {
    let reason = String::from_utf8_lossy(body);
    let error = json!({"code": ErrorCode::INVALID_REQUEST, "message": reason});
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": message.get("id"), "error": error}))
}
