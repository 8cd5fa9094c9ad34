//! What is not about memories: health, readiness, metrics, and the description of the API.

use std::net::SocketAddr;
use std::sync::LazyLock;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_core::Engine;
use quipu_core::engine::Principal;
use quipu_core::model::Role;
use sha2::{Digest as _, Sha256};

use super::App;
use super::answer::{Answer, Failure};
use super::caller::Caller;
use super::figures::{self, Figures};

const OPENAPI: &str = include_str!("../../openapi.json");
const DOCS: &str = include_str!("docs.html");

/// Says that the process lives.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// Returns the metrics to callers on this host, and to others with an admin key.
pub(super) async fn metrics(State(app): State<App>, request: Request) -> Answer {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let is_local = peer.is_some_and(|ConnectInfo(peer)| peer.ip().is_loopback());
    let headers = request.headers().clone();
    let look = move |engine: &Engine| {
        if !is_local {
            require_admin(engine, &headers)?;
        }
        Ok::<_, Failure>(Figures::read(engine)?)
    };
    let figures = app.pool().read(look).await??;
    Ok(with_type("text/plain; version=0.0.4", figures::render(&app, &figures)))
}

fn require_admin(engine: &Engine, headers: &HeaderMap) -> Result<(), Failure> {
    let (caller, _) = Caller::authenticate(engine, headers, None)?;
    match &caller.principal {
        Principal::Key(key) if key.role == Role::Admin => Ok(()),
        Principal::Key(_) | Principal::Session(_) => {
            Err(Failure::forbidden("metrics are for this host and for admin keys"))
        }
    }
}

/// Returns the description of the API.
pub(super) async fn openapi() -> Response {
    with_type("application/json", OPENAPI)
}

/// Returns a page to read that description.
pub(super) async fn docs() -> Response {
    let mut response = with_type("text/html; charset=utf-8", DOCS);
    if let Ok(policy) = HeaderValue::from_str(&DOCS_POLICY) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Lets the page run its own script, use its own style, ask this server, and nothing else.
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
