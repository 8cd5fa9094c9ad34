//! All routes in one table: the router is built from it, and `openapi.json` is tested against it.

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::answer::Answer;
use super::call::{self, Call, Kind};
use super::{
    App, agents, attached, compare, events, knowledge, memories, own, pages, past, plans, ready,
    recordings, redactions, session_stream, sessions, stores, suggest, threads, versions,
};

/// The path of the health check.
pub(super) const HEALTH: &str = "/healthz";

/// The handler of a method on a path.
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

/// Returns a route whose handler reads.
fn read(method: Method, path: &'static str, work: fn(&Call<'_>) -> Answer) -> Route {
    handled(method, path, Kind::Read, work)
}

/// Returns a route whose handler writes.
fn write(method: Method, path: &'static str, work: fn(&Call<'_>) -> Answer) -> Route {
    handled(method, path, Kind::Write, work)
}

fn handled(method: Method, path: &'static str, kind: Kind, work: fn(&Call<'_>) -> Answer) -> Route {
    let handler = move |State(app): State<App>, request: Request| async move {
        call::answer(app, request, kind, work).await
    };
    route(method, path, handler)
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
    let mut table = vendor();
    table.extend(vendor_agents());
    table.extend(own());
    table.extend(vec![
        route(Method::GET, "/quipu/docs", pages::docs),
        route(Method::GET, HEALTH, pages::health),
        route(Method::GET, "/readyz", ready::ready),
        route(Method::GET, "/metrics", pages::metrics),
        route(Method::GET, "/openapi.json", pages::openapi),
    ]);
    table
}

/// Returns the routes of the vendor's API, whose answers are exact.
fn vendor() -> Vec<Route> {
    vec![
        read(Method::GET, "/v1/memory_stores", stores::list),
        write(Method::POST, "/v1/memory_stores", stores::create),
        read(Method::GET, "/v1/memory_stores/{store}", stores::retrieve),
        write(Method::POST, "/v1/memory_stores/{store}", stores::update),
        write(Method::PATCH, "/v1/memory_stores/{store}", stores::update),
        write(Method::DELETE, "/v1/memory_stores/{store}", stores::delete),
        write(Method::POST, "/v1/memory_stores/{store}/archive", stores::archive),
        read(Method::GET, "/v1/memory_stores/{store}/memories", memories::list),
        write(Method::POST, "/v1/memory_stores/{store}/memories", memories::create),
        read(Method::GET, "/v1/memory_stores/{store}/memories/{memory}", memories::retrieve),
        write(Method::POST, "/v1/memory_stores/{store}/memories/{memory}", memories::update),
        write(Method::PATCH, "/v1/memory_stores/{store}/memories/{memory}", memories::update),
        write(Method::DELETE, "/v1/memory_stores/{store}/memories/{memory}", memories::delete),
        read(Method::GET, "/v1/memory_stores/{store}/memory_versions", versions::list),
        read(
            Method::GET,
            "/v1/memory_stores/{store}/memory_versions/{version}",
            versions::retrieve,
        ),
        write(
            Method::POST,
            "/v1/memory_stores/{store}/memory_versions/{version}/redact",
            versions::redact,
        ),
        read(Method::GET, "/v1/sessions", sessions::list),
        write(Method::POST, "/v1/sessions", sessions::create),
        read(Method::GET, "/v1/sessions/{session}", sessions::retrieve),
        write(Method::POST, "/v1/sessions/{session}", sessions::update),
        write(Method::PATCH, "/v1/sessions/{session}", sessions::update),
        write(Method::DELETE, "/v1/sessions/{session}", sessions::delete),
        write(Method::POST, "/v1/sessions/{session}/archive", sessions::archive),
    ]
}

/// Returns the routes of the vendor's API that are about agents at work, as far as a recorder serves them.
fn vendor_agents() -> Vec<Route> {
    vec![
        read(Method::GET, "/v1/agents", agents::list_agents),
        write(Method::POST, "/v1/agents", agents::create_agent),
        read(Method::GET, "/v1/agents/{agent}", agents::retrieve_agent),
        write(Method::POST, "/v1/agents/{agent}", agents::update_agent),
        write(Method::POST, "/v1/agents/{agent}/archive", agents::archive_agent),
        read(Method::GET, "/v1/agents/{agent}/versions", agents::versions),
        read(Method::GET, "/v1/environments", agents::list_environments),
        write(Method::POST, "/v1/environments", agents::create_environment),
        read(Method::GET, "/v1/environments/{environment}", agents::retrieve_environment),
        write(Method::POST, "/v1/environments/{environment}", agents::update_environment),
        write(Method::DELETE, "/v1/environments/{environment}", agents::delete_environment),
        write(Method::POST, "/v1/environments/{environment}/archive", agents::archive_environment),
        read(Method::GET, "/v1/sessions/{session}/resources", attached::list),
        write(Method::POST, "/v1/sessions/{session}/resources", attached::add),
        read(Method::GET, "/v1/sessions/{session}/resources/{resource}", attached::retrieve),
        write(Method::POST, "/v1/sessions/{session}/resources/{resource}", attached::update),
        write(Method::DELETE, "/v1/sessions/{session}/resources/{resource}", attached::delete),
        read(Method::GET, "/v1/sessions/{session}/events", recordings::list),
        write(Method::POST, "/v1/sessions/{session}/events", recordings::send),
        route(Method::GET, "/v1/sessions/{session}/events/stream", session_stream::stream),
        read(Method::GET, "/v1/sessions/{session}/threads", threads::list),
        read(Method::GET, "/v1/sessions/{session}/threads/{thread}", threads::retrieve),
        read(Method::GET, "/v1/sessions/{session}/threads/{thread}/events", threads::events),
        route(
            Method::GET,
            "/v1/sessions/{session}/threads/{thread}/stream",
            session_stream::stream_of_thread,
        ),
    ]
}

/// Returns the routes that are Quipu's own.
fn own() -> Vec<Route> {
    vec![
        handled(
            Method::POST,
            "/quipu/stores/{store}/tool",
            Kind::ByBody(own::tool_kind),
            own::tool,
        ),
        write(Method::POST, "/quipu/stores/{store}/tool/session", own::start_tool_session),
        read(Method::GET, "/quipu/stores/{store}/policy", own::policy),
        write(Method::POST, "/quipu/stores/{store}/policy", own::set_policy),
        handled(
            Method::POST,
            "/quipu/stores/{store}/restore",
            Kind::ByBody(plans::plan_kind),
            plans::restore,
        ),
        handled(
            Method::POST,
            "/quipu/stores/{store}/revert",
            Kind::ByBody(plans::plan_kind),
            plans::revert,
        ),
        write(Method::POST, "/quipu/stores/{store}/redact", own::redact),
        read(Method::GET, "/quipu/stores/{store}/at/{moment}", past::summary),
        read(Method::GET, "/quipu/stores/{store}/at/{moment}/memories", past::list),
        read(Method::GET, "/quipu/stores/{store}/at/{moment}/memory", past::memory),
        read(Method::GET, "/quipu/stores/{store}/at/{moment}/search", past::search),
        read(Method::GET, "/quipu/stores/{store}/diff", compare::diff),
        read(Method::GET, "/quipu/stores/{store}/blame", compare::blame),
        write(Method::POST, "/quipu/stores/{store}/copy", past::copy),
        handled(
            Method::POST,
            "/quipu/stores/{store}/redactions",
            Kind::ByBody(redactions::kind),
            redactions::redact,
        ),
        read(Method::GET, "/quipu/receipts", redactions::receipts),
        read(Method::GET, "/quipu/search", knowledge::search),
        read(Method::GET, "/quipu/stores/{store}/suggest", suggest::for_query),
        read(Method::POST, "/quipu/stores/{store}/suggest", suggest::for_body),
        read(Method::GET, "/quipu/stores/{store}/context", knowledge::context),
        read(Method::GET, "/quipu/stores/{store}/recent", knowledge::recent),
        read(Method::GET, "/quipu/stores/{store}/links", knowledge::links),
        read(Method::GET, "/quipu/sessions/{session}/changes", plans::changes),
        read(Method::GET, "/quipu/sessions/{session}/prompt", own::prompt),
        write(Method::POST, "/quipu/sessions/{session}/token", own::new_token),
        read(Method::GET, "/quipu/sessions/{session}/events", recordings::recorded),
        write(Method::POST, "/quipu/sessions/{session}/events", recordings::report),
        route(Method::GET, "/quipu/events", events::stream),
    ]
}
