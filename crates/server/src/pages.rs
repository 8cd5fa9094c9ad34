//! Routes that are not about memories: health, metrics, and the description of the API.

use std::sync::LazyLock;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_knowledge::Knowledge;
use sha2::{Digest as _, Sha256};

use super::App;
use super::admission::Visitor;
use super::answer::{Answer, Failure};
use super::caller::authenticate;
use super::figures::{self, Figures};

const OPENAPI: &str = include_str!("../openapi.json");
const DOCS: &str = include_str!("docs.html");

/// Reports that the process is alive.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// Returns the metrics to keys that are not limited to some stores.
///
/// A loopback address is no authorization: behind a proxy every caller has one, and so have the
/// other users of this host.
pub(super) async fn metrics(State(app): State<App>, request: Request) -> Answer {
    if !app.settings().metrics_open {
        let visitor = Visitor::new(request.headers(), request.extensions());
        let headers = request.headers().clone();
        app.prove(&visitor, move |engine: &Knowledge| require_unlimited_key(engine, &headers))
            .await?;
    }
    let figures = app.pool().read(Figures::read).await??;
    Ok(with_type("text/plain; version=0.0.4", figures::render(&app, &figures)))
}

fn require_unlimited_key(engine: &Knowledge, headers: &HeaderMap) -> Result<(), Failure> {
    let (caller, _) = authenticate(engine, headers, None)?;
    if caller.is_unlimited() {
        return Ok(());
    }
    Err(Failure::forbidden("metrics are for keys that are not limited to some stores"))
}

/// Returns the description of the API.
pub(super) async fn openapi() -> Response {
    with_type("application/json", OPENAPI)
}

/// Returns a page that renders the description.
pub(super) async fn docs() -> Response {
    let mut response = with_type("text/html; charset=utf-8", DOCS);
    if let Ok(policy) = HeaderValue::from_str(&DOCS_POLICY) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The content security policy of the page: its own script, its own style, requests to this server,
/// and nothing else.
static DOCS_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |tag: &str| {
        let inside = DOCS.split_once(&format!("<{tag}>")).map(|(_, rest)| rest);
        let inside = inside.and_then(|rest| rest.split_once(&format!("</{tag}>")));
        STANDARD.encode(Sha256::digest(inside.map_or("", |(inside, _)| inside)))
    };
    let (script, style) = (hash("script"), hash("style"));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

fn with_type(content_type: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
