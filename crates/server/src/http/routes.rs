//! Every route, in one table: the router is made from it, and `openapi.json` is held against it.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::{App, events, knowledge, memories, own, pages, sessions, stores, versions};

/// What a method does on a path.
struct Route {
    method: Method,
    path: &'static str,
    handler: MethodRouter<App>,
}

fn route<H, T>(method: Method, path: &'static str, handler: H) -> Route
where
    H: Handler<T, App>,
    T: 'static,
{
    let filter = MethodFilter::try_from(method.clone()).expect("every method here has a filter");
    Route { method, path, handler: on(filter, handler) }
}

/// Returns the method and the path of every route.
pub fn routes() -> Vec<(Method, &'static str)> {
    table().into_iter().map(|route| (route.method, route.path)).collect()
}

/// Returns the router of all routes.
pub(super) fn router() -> Router<App> {
    let add = |router: Router<App>, route: Route| router.route(route.path, route.handler);
    table().into_iter().fold(Router::new(), add)
}

fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/memory_stores", stores::list),
        route(Method::POST, "/v1/memory_stores", stores::create),
        route(Method::GET, "/v1/memory_stores/{store}", stores::retrieve),
        route(Method::POST, "/v1/memory_stores/{store}", stores::update),
        route(Method::PATCH, "/v1/memory_stores/{store}", stores::update),
        route(Method::DELETE, "/v1/memory_stores/{store}", stores::delete),
        route(Method::POST, "/v1/memory_stores/{store}/archive", stores::archive),
        route(Method::GET, "/v1/memory_stores/{store}/memories", memories::list),
        route(Method::POST, "/v1/memory_stores/{store}/memories", memories::create),
        route(Method::GET, "/v1/memory_stores/{store}/memories/{memory}", memories::retrieve),
        route(Method::POST, "/v1/memory_stores/{store}/memories/{memory}", memories::update),
        route(Method::PATCH, "/v1/memory_stores/{store}/memories/{memory}", memories::update),
        route(Method::DELETE, "/v1/memory_stores/{store}/memories/{memory}", memories::delete),
        route(Method::GET, "/v1/memory_stores/{store}/memory_versions", versions::list),
        route(
            Method::GET,
            "/v1/memory_stores/{store}/memory_versions/{version}",
            versions::retrieve,
        ),
        route(
            Method::POST,
            "/v1/memory_stores/{store}/memory_versions/{version}/redact",
            versions::redact,
        ),
        route(Method::GET, "/v1/sessions", sessions::list),
        route(Method::POST, "/v1/sessions", sessions::create),
        route(Method::GET, "/v1/sessions/{session}", sessions::retrieve),
        route(Method::POST, "/v1/sessions/{session}", sessions::update),
        route(Method::PATCH, "/v1/sessions/{session}", sessions::update),
        route(Method::DELETE, "/v1/sessions/{session}", sessions::delete),
        route(Method::POST, "/v1/sessions/{session}/archive", sessions::archive),
        route(Method::POST, "/quipu/stores/{store}/tool", own::tool),
        route(Method::POST, "/quipu/stores/{store}/tool/session", own::start_tool_session),
        route(Method::GET, "/quipu/stores/{store}/policy", own::policy),
        route(Method::POST, "/quipu/stores/{store}/policy", own::set_policy),
        route(Method::POST, "/quipu/stores/{store}/restore", own::restore),
        route(Method::GET, "/quipu/search", knowledge::search),
        route(Method::GET, "/quipu/stores/{store}/context", knowledge::context),
        route(Method::GET, "/quipu/stores/{store}/recent", knowledge::recent),
        route(Method::GET, "/quipu/stores/{store}/links", knowledge::links),
        route(Method::GET, "/quipu/sessions/{session}/prompt", own::prompt),
        route(Method::POST, "/quipu/sessions/{session}/token", own::new_token),
        route(Method::GET, "/quipu/events", events::stream),
        route(Method::GET, "/quipu/docs", pages::docs),
        route(Method::GET, "/healthz", pages::health),
        route(Method::GET, "/readyz", pages::ready),
        route(Method::GET, "/metrics", pages::metrics),
        route(Method::GET, "/openapi.json", pages::openapi),
    ]
}
