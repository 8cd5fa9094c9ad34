//! The authorization server, for MCP hosts that only do OAuth: what programs ask of it.
//!
//! People decide on a page of the inspector. These routes need no key; nothing that they are sent is
//! kept, and what is presented as a code or a token counts like any other credential.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use quipu_inspector::Form;
use quipu_inspector::oauth::{self, Code, REGISTER, REVOKE, Refusal, TOKEN};
use quipu_knowledge::Knowledge;
use serde_json::{Value, json};

use super::App;
use super::admission::Visitor;
use super::answer::Failure;
use super::body::Incoming;

/// The largest body; registrations of real hosts have a few hundred bytes.
const BODY_SIZE_BYTES_MAX: usize = 16 * 1024;

/// Where hosts look for a description of `/mcp`: below its path first, then for the whole server.
const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const PROTECTED_RESOURCES: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// Adds the routes.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    table()
        .into_iter()
        .fold(router, |router, (_, path, handler)| router.route(path, handler.options(preflight)))
}

/// Returns the method and the path of every route, with its handler.
pub(super) fn table() -> Vec<(Method, &'static str, MethodRouter<App>)> {
    vec![
        (Method::GET, PROTECTED_RESOURCE, get(protected_resource)),
        (Method::GET, PROTECTED_RESOURCES, get(protected_resource)),
        (Method::GET, AUTHORIZATION_SERVER, get(authorization_server)),
        (Method::POST, REGISTER, post(register)),
        (Method::POST, TOKEN, post(token)),
        (Method::POST, REVOKE, post(revoke)),
    ]
}

impl App {
    /// Returns the address under which a client reaches the server: the configured one, or else the one
    /// that its request names.
    pub(super) fn base_url(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.settings().public_url {
            return url.as_str().to_owned();
        }
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let scheme = if self.settings().is_secure() { "https" } else { "http" };
        format!("{scheme}://{}", host.unwrap_or("localhost"))
    }

    /// Returns what tells a client without a valid credential how to get one.
    pub(super) fn challenge(&self, headers: &HeaderMap) -> String {
        let base = self.base_url(headers);
        let safe =
            base.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
        let base = if safe { base.as_str() } else { "" };
        format!("Bearer realm=\"quipu\", resource_metadata=\"{base}{PROTECTED_RESOURCE}\"")
    }
}

async fn protected_resource(State(app): State<App>, headers: HeaderMap) -> Response {
    answer(StatusCode::OK, &oauth::protected_resource(&app.base_url(&headers)))
}

async fn authorization_server(State(app): State<App>, headers: HeaderMap) -> Response {
    answer(StatusCode::OK, &oauth::authorization_server(&app.base_url(&headers)))
}

/// Lets scripts of any site ask: nothing here depends on cookies.
async fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let allowed = HeaderValue::from_static("content-type, authorization, mcp-protocol-version");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

async fn register(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    let body = small_body(&app, request).await?;
    Ok(match oauth::register(&body) {
        Ok(registration) => answer(StatusCode::CREATED, &registration),
        Err(refusal) => refused(refusal)?,
    })
}

async fn token(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    let base = app.base_url(request.headers());
    let exchange = move |engine: &Knowledge, form: &Form| oauth::exchange(engine, form, &base);
    Ok(match presented(&app, request, exchange).await? {
        Ok(tokens) => answer(StatusCode::OK, &tokens),
        Err(refusal) => refused(refusal)?,
    })
}

async fn revoke(State(app): State<App>, request: Request) -> Result<Response, Failure> {
    Ok(match presented(&app, request, oauth::revoke).await? {
        Ok(()) => answer(StatusCode::OK, &json!({})),
        Err(refusal) => refused(refusal)?,
    })
}

/// Runs what depends on a code or a token in the form, in the lane of credentials that may be wrong.
async fn presented<T: Send + 'static>(
    app: &App,
    request: Request,
    work: impl Fn(&Knowledge, &Form) -> Result<T, Refusal> + Send + 'static,
) -> Result<Result<T, Refusal>, Failure> {
    let extensions = request.extensions().clone();
    let form = Form::parse(&small_body(app, request).await?);
    let secret = ["code", "refresh_token", "token"].into_iter().find_map(|name| form.get(name));
    let visitor = Visitor::with_secret(secret, &extensions);
    let asked = move |engine: &Knowledge| match work(engine, &form) {
        // Counted and delayed as a wrong key is.
        Err(Refusal::Host(Code::InvalidGrant, words)) => Err(Failure::unauthenticated(words)),
        other => Ok(other),
    };
    match app.prove(&visitor, asked).await {
        Err(failure) if failure.status == StatusCode::UNAUTHORIZED => {
            let words = failure.message().to_owned();
            Ok(Err(Refusal::Host(Code::InvalidGrant, words)))
        }
        other => other,
    }
}

async fn small_body(app: &App, request: Request) -> Result<axum::body::Bytes, Failure> {
    let mut body = Incoming::new(request.into_body());
    body.read_up_to(BODY_SIZE_BYTES_MAX, app.settings()).await?;
    Ok(body.into_bytes())
}

fn refused(refusal: Refusal) -> Result<Response, Failure> {
    match refusal {
        Refusal::Engine(error) => Err(error.into()),
        Refusal::Host(code, words) => {
            let body = json!({"error": code.as_str(), "error_description": words});
            let status = match code {
                Code::InvalidClient => StatusCode::UNAUTHORIZED,
                Code::InvalidRequest
                | Code::InvalidClientMetadata
                | Code::InvalidRedirectUri
                | Code::InvalidGrant
                | Code::InvalidTarget
                | Code::UnsupportedGrantType
                | Code::UnsupportedResponseType => StatusCode::BAD_REQUEST,
            };
            Ok(answer(status, &body))
        }
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}
