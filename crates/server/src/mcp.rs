//! `/mcp`: admits the caller of a request and passes both on to the MCP endpoint.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{self, HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use quipu_core::engine::Principal;
use quipu_knowledge::Knowledge;
use quipu_service::credential::Credential;
use quipu_service::endpoint::{Admitted, Refusal, payer};

use super::App;
use super::admission::Visitor;
use super::answer::{Answer, Failure};
use super::body::Incoming;
use super::caller::{self, authenticate};
use super::guard::guarded;

/// Answers a request that carries a key or the token of a session.
pub(super) async fn answer(State(app): State<App>, request: Request) -> Answer {
    let visitor = Visitor::new(request.headers(), request.extensions());
    let admitted = admitted(&app, request.headers(), &visitor).await;
    let (principal, credential) = match admitted {
        Ok(admitted) => admitted,
        Err(failure) => {
            let challenge = app.challenge(request.headers());
            // A host goes on with discovery on the same connection, which an unread body would end.
            Incoming::new(request.into_body()).discard().await;
            return Err(failure.with_header("www-authenticate", &challenge));
        }
    };
    let request = arrived(&app, request).await?;
    let endpoint = &app.0.mcp;
    // The first request was counted when its caller was admitted.
    let requests_count = endpoint.requests_count(request.body());
    if requests_count > 1 {
        app.0.rate.admit_rest(&payer(&principal), requests_count)?;
    }
    let permit = app.admission().permit()?;
    let caller = Admitted { principal, credential: credential.clone(), permit };
    let response = endpoint.answer(caller, request).await?.map(Body::new);
    if is_stream(&response) {
        return Ok(response.map(|body| guarded(body, credential)));
    }
    Ok(response)
}

/// Returns the caller of a request whose credential is valid, after charging its rate limit.
pub(super) async fn admitted(
    app: &App,
    headers: &HeaderMap,
    visitor: &Visitor,
) -> Result<(Principal, Credential), Failure> {
    let secret = caller::credential(headers)?;
    let mut credential = Credential::new(app.pool(), app.feed(), secret);
    let headers = headers.clone();
    let authenticate = move |engine: &Knowledge| authenticate(engine, &headers, None);
    let (caller, _) = if app.admission().is_proven(visitor) {
        let result = app.pool().read(authenticate).await?;
        app.admission().note(visitor, &result);
        result?
    } else {
        app.prove(visitor, authenticate).await?
    };
    credential.expires_with(&caller.principal);
    app.0.rate.admit(&payer(&caller.principal))?;
    Ok((caller.principal, credential))
}

/// Reads the body of a request within the limits; only a POST has one.
async fn arrived(app: &App, request: Request) -> Result<http::Request<Bytes>, Failure> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return Ok(http::Request::from_parts(parts, Bytes::new()));
    }
    let mut body = Incoming::new(body);
    body.read_rest(app.settings()).await?;
    Ok(http::Request::from_parts(parts, body.into_bytes()))
}

/// Returns whether a response is a stream of events.
fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(message) => Self::invalid(message),
            Refusal::NotFound(message) => Self::not_found(message),
            Refusal::TooMany(message) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            }
            Refusal::Failed(error) => error.into(),
        }
    }
}
