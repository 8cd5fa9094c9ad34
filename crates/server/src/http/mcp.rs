//! `/mcp`: the MCP server, for whoever has a key or the token of a session.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

use super::App;
use super::caller::Caller;
use crate::mcp;

/// Returns the route.
pub(super) fn routes(app: &App) -> Router<App> {
    let settings = app.settings();
    let service = mcp::service(&app.0.mcp, &settings.hosts, settings.body_size_bytes_max);
    let authenticated = from_fn_with_state(app.clone(), authenticated);
    Router::new().route_service("/mcp", service).route_layer(authenticated)
}

/// Lets requests pass with who makes them, and nobody else.
async fn authenticated(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let caller = Caller::authenticate(app.engine(), request.headers(), None)
        .and_then(|(caller, _)| app.0.rate.admit(&caller.actor).map(|()| caller));
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller.principal);
            next.run(request).await
        }
        Err(failure) => {
            failure.with_header("www-authenticate", "Bearer realm=\"quipu\"").into_response()
        }
    }
}
