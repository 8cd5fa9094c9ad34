//! Carries the inspector's pages: the cookie, the proof that a form is ours, and failures as pages.
//!
//! A page runs like a handler of REST. Its caller is authenticated by the same code, with the secret
//! of the cookie in place of a header.

use std::collections::HashSet;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{MethodFilter, any, get, on};
use quipu_core::engine::Principal;
use quipu_core::model::{Key, KeyId, KeyKind, Timestamp};
use quipu_inspector::{
    Asset, ENTER, Effect, Entered, Form, Guest, HOME, Page, Reply, SIGN_IN, Trouble, Visit,
    WRONG_KEY, arrival_page, extension, failure_page, form_token, front_text, policy,
};
use quipu_knowledge::Knowledge;
use quipu_service::caller::Caller;

use super::admission::Visitor;
use super::answer::Failure;
use super::body::Incoming;
use super::call::{self, Call, Kind};
use super::{App, events};

/// The longest form that somebody without a key may send.
const GUEST_FORM_SIZE_BYTES_MAX: usize = 16 * 1024;

/// How long a page waits for the extension of its sign-in.
const EXTENSION_TIMEOUT: Duration = Duration::from_millis(100);

/// Adds the routes of the inspector.
pub(super) fn routes(router: Router<App>) -> Router<App> {
    let router = router
        .route("/", get(front))
        .route(SIGN_IN, get(ask).post(sign_in))
        .route(ENTER, get(enter))
        .route("/ui/events", get(live))
        .route("/ui/assets/{file}", get(asset))
        .route("/ui/", get(async || see_other(HOME)))
        .route("/ui/{*rest}", any(unknown));
    let pages = quipu_inspector::pages();
    let shown: HashSet<_> =
        pages.iter().filter(|page| page.method == Method::GET).map(|page| page.path).collect();
    let only_forms = pages.iter().map(|page| page.path).filter(|path| !shown.contains(path));
    let only_forms: HashSet<_> = only_forms.collect();
    let router =
        only_forms.into_iter().fold(router, |router, path| router.route(path, get(only_form)));
    pages.into_iter().fold(router, |router, page| {
        let filter = MethodFilter::try_from(page.method.clone()).expect("pages are GET or POST");
        let path = page.path;
        let handler =
            move |State(app): State<App>, request: Request| visit(app, request, page.clone());
        router.route(path, on(filter, handler))
    })
}

/// Returns the method and the path of every route of the inspector.
pub fn table() -> Vec<(Method, &'static str)> {
    let fixed = [
        (Method::GET, "/"),
        (Method::GET, SIGN_IN),
        (Method::POST, SIGN_IN),
        (Method::GET, ENTER),
        (Method::GET, "/ui/events"),
        (Method::GET, "/ui/assets/{file}"),
    ];
    let pages = quipu_inspector::pages().into_iter().map(|page| (page.method, page.path));
    fixed.into_iter().chain(pages).collect()
}

/// Leads people to the inspector; programs get a short text.
async fn front(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return see_other(HOME);
    }
    let text = front_text(env!("CARGO_PKG_VERSION"));
    with_type(StatusCode::OK, "text/plain; charset=utf-8", text)
}

async fn unknown(uri: Uri) -> Response {
    failed(&Failure::not_found("there is no such page"), &Method::GET, &uri)
}

/// Answers whoever opens the address of a form, as browsers do after a failure.
async fn only_form(uri: Uri) -> Response {
    let message =
        "this address takes a form and shows nothing; go back to the form and send it again";
    let failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message);
    failed(&failure, &Method::GET, &uri)
}

/// Serves the style sheet, the script and the icon.
async fn asset(uri: Uri) -> Response {
    let Some(asset) = Asset::find(uri.path()) else {
        return with_type(StatusCode::NOT_FOUND, "text/plain", "There is no such file.\n");
    };
    let mut response = with_type(StatusCode::OK, asset.kind, asset.text);
    // The address changes with the content.
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    response
}

/// Streams changes to a page.
///
/// Failures are not pages here. Whoever is not signed in would be led to the form otherwise, and an
/// `EventSource` that is led to a document may ask again forever; a status that is not 200 ends it.
async fn live(State(app): State<App>, mut request: Request) -> Response {
    let refused = |failure: &Failure| {
        let text = format!("{}\n", failure.message());
        with_type(failure.status, "text/plain; charset=utf-8", text)
    };
    if authorize(&app, request.headers_mut()).is_none() {
        return refused(&signed_out());
    }
    events::stream(State(app), request).await.unwrap_or_else(|failure| refused(&failure))
}

/// Answers a request for a page.
async fn visit(app: App, mut request: Request, page: Page) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let secret = authorize(&app, request.headers_mut());
    let answered = match secret {
        Some(secret) => visited(app, request, page, secret).await,
        None if method == Method::GET && is_from_elsewhere(request.headers()) => {
            return html(StatusCode::OK, arrival_page(&uri).into_string());
        }
        None => Err(signed_out()),
    };
    answered.unwrap_or_else(|failure| failed(&failure, &method, &uri))
}

async fn visited(
    app: App,
    request: Request,
    page: Page,
    secret: String,
) -> Result<Response, Failure> {
    let kind = match page.effect {
        Effect::Reads => Kind::Read,
        Effect::Writes => Kind::Write,
    };
    // A form that only reads is proven too: another site must not make the server search for minutes.
    let has_form = page.method == Method::POST;
    if has_form {
        require_own_origin(request.headers())?;
    }
    let uri = request.uri().clone();
    let base = app.base_url(request.headers());
    let token = form_token(&secret);
    let work = move |call: &Call<'_>| {
        let key = sign_in_of(call.caller).ok_or_else(signed_out)?;
        let form = Form::parse(call.bytes());
        if has_form && form.get("token") != Some(token.as_str()) {
            return Err(Failure::forbidden(
                "this form is from an earlier sign-in; go back, copy what you wrote, reload the page and \
                 send it again",
            ));
        }
        let visit = Visit {
            engine: call.engine,
            caller: call.caller,
            settings: call.inspector(),
            host: call.host(),
            uri: &uri,
            base: &base,
            parameters: call.parameters(),
            query: Form::parse(uri.query().unwrap_or_default().as_bytes()),
            form,
            form_token: token.clone(),
        };
        let extension = extension(key, call.engine.now()).map(|until| (key.id, until));
        Ok(((page.work)(&visit)?, extension))
    };
    let headers = request.headers().clone();
    let (reply, extension) = call::answer(app.clone(), request, kind, work).await?;
    if let Some(extension) = extension {
        extend(&app, extension).await;
    }
    Ok(replied(&app, &headers, reply))
}

/// Extends a sign-in. A page that was only read does not wait for writers, and is not lost with them: the
/// write goes on without it, and the next page tries again if it has failed.
async fn extend(app: &App, (key, until): (KeyId, Timestamp)) {
    let write = app.pool().write(move |engine| engine.extend_key(key, until));
    match tokio::time::timeout(EXTENSION_TIMEOUT, write).await {
        Ok(Ok(Ok(_))) | Err(_) => {}
        Ok(Ok(Err(error))) => tracing::warn!(%error, "a sign-in cannot be extended"),
        Ok(Err(error)) => tracing::warn!(%error, "a sign-in cannot be extended"),
    }
}

/// Shows the form that takes a key.
async fn ask(uri: Uri) -> Response {
    html(StatusCode::OK, guest(&uri, Form::default()).ask().into_string())
}

/// Exchanges a key for a cookie.
async fn sign_in(State(app): State<App>, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    signed_in(&app, request).await.unwrap_or_else(|failure| failed(&failure, &method, &uri))
}

async fn signed_in(app: &App, request: Request) -> Result<Response, Failure> {
    require_own_origin(request.headers())?;
    let (parts, body) = request.into_parts();
    let mut body = Incoming::new(body);
    body.read_up_to(GUEST_FORM_SIZE_BYTES_MAX, app.settings()).await?;
    let guest = guest(&parts.uri, Form::parse(&body.into_bytes()));
    let visitor = Visitor::with_secret(guest.key(), &parts.extensions);
    let asked = guest.clone();
    let ask_again = |status: StatusCode, trouble: &str| {
        Ok(html(status, guest.ask_again(trouble).into_string()))
    };
    match admitted(app, &visitor, move |engine| asked.sign_in(engine)).await {
        Ok(Some(entered)) => Ok(with_cookie(app, &parts.headers, &entered)),
        Ok(None) => ask_again(StatusCode::UNAUTHORIZED, WRONG_KEY),
        Err(failure) if failure.status == StatusCode::BAD_REQUEST => {
            ask_again(failure.status, failure.message())
        }
        Err(failure) => Err(failure),
    }
}

/// Exchanges a one-time link for a cookie.
async fn enter(State(app): State<App>, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let guest = guest(&uri, Form::default());
    // A program that only looks at what a link leads to must not use it up.
    if method == Method::HEAD {
        return html(StatusCode::OK, String::new());
    }
    let visitor = Visitor::with_secret(guest.link(), request.extensions());
    let asked = guest.clone();
    match admitted(&app, &visitor, move |engine| asked.enter(engine)).await {
        Ok(Some(entered)) => with_cookie(&app, request.headers(), &entered),
        Ok(None) => html(StatusCode::UNAUTHORIZED, guest.too_late().into_string()),
        Err(failure) => failed(&failure, &method, &uri),
    }
}

fn guest(uri: &Uri, form: Form) -> Guest {
    Guest { query: Form::parse(uri.query().unwrap_or_default().as_bytes()), form }
}

/// Lets somebody in, within the limits on wrong secrets; `None` if the secret is not valid.
async fn admitted(
    app: &App,
    visitor: &Visitor,
    enter: impl Fn(&Knowledge) -> Result<Option<Entered>, Trouble> + Send + 'static,
) -> Result<Option<Entered>, Failure> {
    let work = move |engine: &Knowledge| enter(engine)?.ok_or_else(signed_out);
    match app.prove(visitor, work).await {
        Ok(entered) => Ok(Some(entered)),
        Err(failure) if failure.status == StatusCode::UNAUTHORIZED => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Puts the secret of the cookie where credentials are read from, and returns it.
///
/// Credentials in headers do not count here: a page that works with them would make scripts that carry
/// a key depend on our markup.
fn authorize(app: &App, headers: &mut HeaderMap) -> Option<String> {
    let secret = cookie(headers, &app.cookie_name(headers))?.to_owned();
    headers.remove("x-api-key");
    headers.remove("anthropic-workspace-id");
    let value = HeaderValue::from_str(&format!("Bearer {secret}")).ok()?;
    headers.insert(header::AUTHORIZATION, value);
    Some(secret)
}

/// Returns the value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

fn with_cookie(app: &App, headers: &HeaderMap, entered: &Entered) -> Response {
    let mut response = see_other(&entered.next);
    app.set_cookie(&mut response, headers, (entered.secret.reveal(), ""));
    response
}

/// Fails unless the browser says that a page of ours sent the request.
fn require_own_origin(headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_own = match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text("host")
        }
        (None, None) => false,
    };
    if is_own {
        return Ok(());
    }
    Err(Failure::forbidden(
        "this form was sent by another site, so nothing was changed; open the inspector and do it there",
    ))
}

/// Returns the sign-in that the credential of a cookie is. A key or a session's token that somebody puts
/// there is none: it has neither a person's name nor an end.
fn sign_in_of(caller: &Caller) -> Option<&Key> {
    match &caller.principal {
        Principal::Key(key) if key.kind == KeyKind::Browser => Some(key),
        Principal::Key(_) | Principal::Session(_) => None,
    }
}

/// Returns whether a browser follows a link from another site. It does not send the cookie then.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(b"cross-site" | b"same-site"))
}

fn signed_out() -> Failure {
    Failure::unauthenticated("you are not signed in, or your sign-in has ended")
}

/// Returns a failure as a page. Whoever is not signed in is led to the form.
fn failed(failure: &Failure, method: &Method, uri: &Uri) -> Response {
    if failure.status == StatusCode::UNAUTHORIZED && method == Method::GET {
        let next = uri.path_and_query().map_or(HOME, |it| it.as_str());
        let next = form_urlencoded::byte_serialize(next.as_bytes()).collect::<String>();
        return see_other(&format!("{SIGN_IN}?next={next}"));
    }
    if let Some(cause) = &failure.cause {
        tracing::error!(cause, "a page failed");
    }
    html(failure.status, failure_page(failure.status, failure.message()).into_string())
}

fn replied(app: &App, headers: &HeaderMap, reply: Reply) -> Response {
    match reply {
        Reply::Page(page) => html(StatusCode::OK, page.into_string()),
        Reply::Conflict(page) => html(StatusCode::CONFLICT, page.into_string()),
        Reply::SignedOut => {
            let mut response = see_other(SIGN_IN);
            app.set_cookie(&mut response, headers, ("", "; Max-Age=0"));
            response
        }
        Reply::SeeOther(to) => see_other(&to),
        Reply::Form { page, target } => {
            let mut response = html(StatusCode::OK, page.into_string());
            if let Ok(policy) = HeaderValue::from_str(&policy::content_with(&target)) {
                response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
            }
            response
        }
        Reply::Download { name, kind, bytes } => {
            let mut response = with_type(StatusCode::OK, kind, bytes);
            let safe =
                |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
            let name: String = name.chars().map(|it| if safe(it) { it } else { '_' }).collect();
            if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
                response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
            }
            response
        }
    }
}

fn html(status: StatusCode, text: String) -> Response {
    with_type(status, "text/html; charset=utf-8", text)
}

fn see_other(to: &str) -> Response {
    let mut response = with_type(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static(HOME));
    response.headers_mut().insert(header::LOCATION, to);
    response
}

fn with_type(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in policy::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Engine(error) => error.into(),
            Trouble::Denied(denied) => denied.into(),
            Trouble::Invalid(message) => Self::invalid(message),
            Trouble::NotFound(message) => Self::not_found(message),
        }
    }
}

impl App {
    /// Returns the name of the cookie. With its prefix, browsers accept it over TLS only, and from no
    /// other host of the domain.
    ///
    /// Browsers keep the cookies of all ports of a host together, so without TLS the name has the port:
    /// two servers on one machine would otherwise sign each other's people out.
    fn cookie_name(&self, headers: &HeaderMap) -> String {
        if self.settings().is_secure() {
            return "__Host-quipu".to_owned();
        }
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let port = host.and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
        match port.filter(|port| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit())) {
            Some(port) => format!("quipu-{port}"),
            None => "quipu".to_owned(),
        }
    }

    /// Sets the cookie to a value, with the attributes that end it, if any. Scripts cannot read it, and
    /// browsers send it from our own pages only.
    fn set_cookie(&self, response: &mut Response, headers: &HeaderMap, (value, end): (&str, &str)) {
        let secure = if self.settings().is_secure() { "; Secure" } else { "" };
        let name = self.cookie_name(headers);
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{end}");
        if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
            cookie.set_sensitive(true);
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
}
