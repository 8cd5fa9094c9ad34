//! `/mcp`: the MCP server, for whoever has a key or the token of a session.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

use super::App;
use super::answer::Failure;
use super::caller::{self, Caller};
use crate::mcp::{self, Secret};

/// Returns the route.
pub(super) fn routes(app: &App) -> Router<App> {
    let settings = app.settings();
    let service = mcp::service(&app.0.mcp, &settings.hosts, settings.body_size_bytes_max);
    let authenticated = from_fn_with_state(app.clone(), authenticated);
    Router::new().route_service("/mcp", service).route_layer(authenticated)
}

/// Lets requests pass with who makes them, and nobody else.
async fn authenticated(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match admitted(&app, request.headers()) {
        Ok((caller, secret)) => {
            request.extensions_mut().insert(caller.principal);
            request.extensions_mut().insert(secret);
            next.run(request).await
        }
        Err(failure) => {
            failure.with_header("www-authenticate", "Bearer realm=\"quipu\"").into_response()
        }
    }
}

fn admitted(app: &App, headers: &HeaderMap) -> Result<(Caller, Secret), Failure> {
    let secret = Secret::new(caller::credential(headers)?);
    let (caller, _) = Caller::authenticate(app.engine(), headers, None)?;
    app.0.rate.admit(&caller.actor)?;
    Ok((caller, secret))
}
