//! The middleware around every request: its id, timeout, log line, metrics, and error envelope.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use quipu_core::model::{Id as _, VersionId};
use quipu_service::pool::PoolError;

use super::App;
use super::answer::Failure;
use super::caller::WorkspaceSlot;
use super::upstream::Forwarded;

/// The id of a request, for handlers that say it before their answer is complete.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

/// Runs a request.
pub(super) async fn frame(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let start = Instant::now();
    let request_id = new_request_id(&app);
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);

    let workspace = WorkspaceSlot::default();
    request.extensions_mut().insert(workspace.clone());
    request.extensions_mut().insert(RequestId(request_id.clone()));
    let limit = time_limit(&app, matched.as_ref());
    let answered = run(limit, request, next).await;
    let is_forwarded = answered.extensions().get::<Forwarded>().is_some();
    // An error of the upstream is no failure of this server.
    let is_of_upstream = is_forwarded && answered.extensions().get::<Failure>().is_none();
    let route = if is_forwarded { Forwarded::ROUTE } else { route };
    let mut cause = None;
    let mut response = match answered.extensions().get::<Failure>() {
        Some(failure) => {
            cause.clone_from(&failure.cause);
            app.0.metrics.count_failure(failure.error_type);
            failure.clone().respond(&request_id)
        }
        None => answered,
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        // A forwarded answer keeps the id that the upstream knows it by.
        let name = if is_forwarded && headers.contains_key("request-id") {
            "quipu-request-id"
        } else {
            "request-id"
        };
        headers.insert(name, value);
    }
    let workspace = workspace.get().map(|id| HeaderValue::from_str(&id.to_string()));
    if let Some(Ok(value)) = workspace {
        headers.insert("anthropic-workspace-id", value);
    }
    let elapsed = start.elapsed();
    app.0.metrics.observe(&method, route, response.status(), elapsed);
    let (status, micros) = (response.status().as_u16(), elapsed.as_micros());
    if status >= 500 && !is_of_upstream {
        let cause = cause.unwrap_or_default();
        tracing::error!(%method, route, status, micros, request_id, cause, "request failed");
    } else if status >= 400 {
        tracing::info!(%method, route, status, micros, request_id, "request refused");
    } else {
        tracing::debug!(%method, route, status, micros, request_id, "request answered");
    }
    response
}

/// Returns a new request id. It looks like other ids, but nothing is stored under it.
pub(super) fn new_request_id(app: &App) -> String {
    let number = app.0.requests_count.fetch_add(1, Ordering::Relaxed);
    let salt = app.0.request_salt.wrapping_add(u128::from(number));
    VersionId::new(app.pool().now(), salt).to_string().replace("memver_", "req_")
}

/// Returns how long a request may take; `None` if it may be forwarded, for then each of its waits has a
/// deadline of its own.
fn time_limit(app: &App, matched: Option<&MatchedPath>) -> Option<Duration> {
    let may_be_forwarded = matched.is_none() && app.upstream().is_some();
    (!may_be_forwarded).then_some(app.settings().request_timeout)
}

async fn run(limit: Option<Duration>, request: Request, next: Next) -> Response {
    use axum::response::IntoResponse as _;
    let running = AssertUnwindSafe(next.run(request)).catch_unwind();
    let finished = match limit {
        Some(limit) => tokio::time::timeout(limit, running).await,
        None => Ok(running.await),
    };
    match finished {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => Failure::from(PoolError::Panicked).into_response(),
        Err(_elapsed) => Failure::new(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout_error",
            "the request took too long; it may still be carried out",
        )
        .into_response(),
    }
}

/// Returns the answer, as bytes, to something that is not HTTP or has a head that is too long.
pub(super) fn unreadable(app: &App, status: u16) -> Vec<u8> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let message = match status {
        StatusCode::URI_TOO_LONG => "the path of the request is too long",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the headers of the request are too large",
        _ => "this is not a request of HTTP/1.1",
    };
    let request_id = new_request_id(app);
    app.0.metrics.observe(&Method::GET, "unknown", status, Duration::ZERO);
    let body = Failure::new(status, "invalid_request_error", message).body(&request_id).to_string();
    let reason = status.canonical_reason().unwrap_or_default();
    let (code, length) = (status.as_u16(), body.len());
    format!(
        "HTTP/1.1 {code} {reason}\r\ncontent-type: application/json\r\nrequest-id: {request_id}\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Answers for an unknown path.
pub(super) fn no_route(method: &Method, uri: &Uri) -> Failure {
    Failure::not_found(format!("{method} {} is not a route of this server", uri.path()))
}

/// Answers for a method that the path does not support.
pub(super) async fn no_method(method: Method, uri: Uri) -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request_error",
        format!("{method} is not possible on {}", uri.path()),
    )
}
