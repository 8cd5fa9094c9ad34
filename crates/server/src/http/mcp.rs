//! `/mcp`: the MCP server, for whoever has a key or the token of a session.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;

use super::App;
use super::answer::Failure;
use super::caller::{self, Caller};
use crate::mcp::{self, InUse, Secret};

/// Returns the route.
pub(super) fn routes(app: &App) -> Router<App> {
    let settings = app.settings();
    let service = mcp::service(&app.0.mcp, &settings.hosts, settings.body_size_bytes_max);
    let authenticated = from_fn_with_state(app.clone(), authenticated);
    Router::new().route_service("/mcp", service).route_layer(authenticated)
}

/// Lets requests pass with who makes them, and nobody else.
async fn authenticated(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (caller, secret) = match admitted(&app, request.headers()) {
        Ok(admitted) => admitted,
        Err(failure) => {
            let realm = "Bearer realm=\"quipu\"";
            return failure.with_header("www-authenticate", realm).into_response();
        }
    };
    let connections = app.0.mcp.connections();
    let in_use = match connection(request.headers()) {
        None => None,
        Some(id) => match connections.enter(id, &caller.actor) {
            Some(in_use) => Some(in_use),
            None => return no_connection().into_response(),
        },
    };
    request.extensions_mut().insert(caller.principal);
    request.extensions_mut().insert(secret);
    let response = next.run(request).await;
    match (in_use, connection(response.headers())) {
        (Some(in_use), _) => held(response, in_use),
        (None, Some(id)) => {
            connections.begin(id, caller.actor).await;
            response
        }
        (None, None) => response,
    }
}

fn admitted(app: &App, headers: &HeaderMap) -> Result<(Caller, Secret), Failure> {
    let secret = Secret::new(caller::credential(headers)?);
    let (caller, _) = Caller::authenticate(app.engine(), headers, None)?;
    app.0.rate.admit(&caller.actor)?;
    Ok((caller, secret))
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
