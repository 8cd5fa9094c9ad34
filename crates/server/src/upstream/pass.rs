//! One forwarded request: who may, what is sent, what comes back.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{self, HeaderMap, Method, header};
use axum::response::Response;
use quipu_core::model::KeyId;
use quipu_service::caller::Caller;
use quipu_service::credential::Credential;

use super::client::Unanswered;
use super::download::{Download, Passing, Shape, bad_gateway, passed_on};
use super::streams::StreamPermit;
use super::tally::Outcome;
use super::target::target;
use super::upload::{Broken, Upload};
use super::watch::{Ended, Watch};
use super::{Forwarded, Upstream, headers, links, memory};
use crate::admission::Visitor;
use crate::answer::{Answer, Failure};
use crate::body::Incoming;
use crate::caller::{WorkspaceSlot, credential};
use crate::frame::RequestId;
use crate::socket::Socket;
use crate::{App, frame, mcp};

/// The longest answer in which links are replaced. A page of a thousand batches has a tenth of it.
const LINKED_SIZE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Answers what no route serves: forwards it, or says how it could be.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Answer {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if !uri.path().starts_with("/v1/") {
        return Err(frame::no_route(&method, &uri));
    }
    let Some(upstream) = app.upstream().cloned() else {
        let failure = frame::no_route(&method, &uri);
        return Err(Failure::not_found(format!(
            "{}; to forward such requests to a Messages API, set `[upstream] base_url` in the \
             settings (docs/upstream.md)",
            failure.message()
        )));
    };
    let mut response = forwarded(app, upstream, request).await.unwrap_or_else(|failure| {
        use axum::response::IntoResponse as _;
        failure.into_response()
    });
    response.extensions_mut().insert(Forwarded);
    Ok(response)
}

/// A request whose sender may forward it.
pub(super) struct Forwarding {
    pub(super) app: App,
    pub(super) upstream: Arc<Upstream>,
    pub(super) caller: Caller,
    pub(super) key: KeyId,
    pub(super) credential: Credential,
    pub(super) watch: Watch,
    pub(super) permit: StreamPermit,
    pub(super) parts: Parts,
    /// The headers that the upstream gets to see.
    pub(super) headers: HeaderMap,
    pub(super) request_id: String,
}

async fn forwarded(app: App, upstream: Arc<Upstream>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    match Forwarding::begin(app, upstream, parts).await {
        Ok(forwarding) if memory::is_wanted(&forwarding.parts) => {
            memory::answer(forwarding, body).await
        }
        Ok(forwarding) => forwarding.pass(body).await,
        Err(failure) => {
            Incoming::new(body).discard().await;
            Err(failure)
        }
    }
}

impl Forwarding {
    async fn begin(app: App, upstream: Arc<Upstream>, parts: Parts) -> Result<Self, Failure> {
        let visitor = Visitor::new(&parts.headers, &parts.extensions);
        let (principal, credential) = mcp::admitted(&app, &parts.headers, &visitor).await?;
        let caller = Caller::new(principal);
        if let Some(slot) = parts.extensions.get::<WorkspaceSlot>() {
            slot.fill(caller.workspace);
        }
        let key = caller.forwarding_key()?;
        target(&upstream.settings.base_url, &parts.method, &parts.uri)?;
        let permit = upstream.streams.begin(key)?;
        let socket = parts.extensions.get::<Arc<Socket>>().cloned();
        let request_id = parts.extensions.get::<RequestId>();
        Ok(Self {
            watch: Watch::new(credential.clone(), socket),
            headers: headers::of_request(&parts.headers, self::credential(&parts.headers)?),
            request_id: request_id.map_or_else(String::new, |id| id.0.clone()),
            app,
            upstream,
            caller,
            key,
            credential,
            permit,
            parts,
        })
    }

    /// Sends the request with a body, and returns the answer with its body unread.
    pub(super) async fn send(
        &mut self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<http::Response<hyper::body::Incoming>, Unsent> {
        let settings = &self.upstream.settings;
        let Parts { method, uri, .. } = &self.parts;
        let uri = target(&settings.base_url, method, uri).map_err(Unsent::Refused)?;
        let mut request = http::Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers.clone();
        request.headers_mut().extend(settings.key.as_ref().map(super::UpstreamKey::header));
        match self.watch.run(self.upstream.client.send(request)).await {
            Ok(Ok(response)) => {
                self.upstream.tally.count(Outcome::of(response.status()));
                // It is about the key of this server: the caller's never gets there. To the caller, this
                // would be an answer about its own key, and it may quote the one that is refused.
                if response.status() == http::StatusCode::UNAUTHORIZED {
                    return Err(Unsent::Rejected);
                }
                Ok(response)
            }
            Ok(Err(unanswered)) => Err(Unsent::Unanswered(unanswered)),
            Err(ended) => Err(Unsent::Ended(ended)),
        }
    }

    /// Passes the request on as it is, and the answer back as it is.
    async fn pass(mut self, body: Body) -> Answer {
        let settings = &self.upstream.settings;
        let size_bytes_max = settings.body_size_bytes_max;
        let declared = hyper::body::Body::size_hint(&body).lower();
        if usize::try_from(declared).is_ok_and(|size| size > size_bytes_max) {
            Incoming::new(body).discard().await;
            return Err(Broken::TooLarge { size_bytes_max }.into());
        }
        let upload = Upload::new(body, size_bytes_max, settings.upload_timeout);
        let broken = upload.broken();
        let mut headers = self.headers.clone();
        let has_links = links::has_links(self.parts.uri.path());
        if has_links {
            headers.remove(header::ACCEPT_ENCODING);
        }
        match self.send(&headers, Body::new(upload)).await {
            Ok(response) if has_links => self.relinked(response).await,
            Ok(response) => self.respond(response),
            Err(unsent) => match broken.get() {
                Some(broken) => Err((*broken).into()),
                None => Err(self.failure(unsent)),
            },
        }
    }

    /// Counts that a request was not answered, and returns what the caller is told.
    pub(super) fn failure(&self, unsent: Unsent) -> Failure {
        let outcome = match &unsent {
            Unsent::Refused(_) => Some(Outcome::ClientError),
            Unsent::Ended(_) => Some(Outcome::Abandoned),
            Unsent::Unanswered(Unanswered::TimedOut) => Some(Outcome::TimedOut),
            Unsent::Unanswered(Unanswered::Failed(_)) => Some(Outcome::Unreachable),
            // It was answered, and counted.
            Unsent::Rejected => None,
        };
        if let Some(outcome) = outcome {
            self.upstream.tally.count(outcome);
        }
        unsent.into()
    }

    /// Returns the answer of the upstream with its body as a stream.
    pub(super) fn respond(self, response: http::Response<hyper::body::Incoming>) -> Answer {
        let (parts, body) = response.into_parts();
        let mut passed = head(&parts)?;
        let shape = if is_events(&parts.headers) { Shape::Events } else { Shape::Other };
        let download = Download::new(body, self.upstream.settings.idle_timeout);
        if self.parts.method == Method::HEAD {
            return Ok(passed);
        }
        let passing = Passing {
            upstream: self.upstream,
            watch: self.watch,
            _permit: self.permit,
            request_id: self.request_id,
        };
        *passed.body_mut() = passed_on(download, passing, shape);
        Ok(passed)
    }

    /// Returns the answer of the upstream with links that lead here.
    async fn relinked(mut self, response: http::Response<hyper::body::Incoming>) -> Answer {
        let (parts, body) = response.into_parts();
        let mut passed = head(&parts)?;
        let download = Download::new(body, self.upstream.settings.idle_timeout);
        let bytes = download.collected(&mut self.watch, LINKED_SIZE_BYTES_MAX).await?;
        let own = self.app.base_url(&self.parts.headers);
        let text = String::from_utf8(bytes)
            .map_err(|_binary| bad_gateway("the answer of the upstream is not text"))?;
        passed.headers_mut().remove(header::CONTENT_LENGTH);
        *passed.body_mut() = Body::from(links::relinked(&text, &own));
        Ok(passed)
    }
}

/// Returns an answer without a body that has the status and the headers of the upstream's.
pub(super) fn head(parts: &http::response::Parts) -> Answer {
    if parts.status.is_redirection() && parts.status != http::StatusCode::NOT_MODIFIED {
        return Err(bad_gateway("the upstream redirects; `upstream.base_url` is not its address"));
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::of_response(&parts.headers);
    Ok(response)
}

/// Returns whether a body consists of events that are not compressed.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Why a request was not answered by the upstream.
#[derive(Debug)]
pub(super) enum Unsent {
    Refused(Failure),
    Ended(Ended),
    Unanswered(Unanswered),
    /// The upstream does not accept the key of this server.
    Rejected,
}

impl From<Unsent> for Failure {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Refused(failure) => failure,
            Unsent::Ended(ended) => ended.into(),
            // Nobody but the operator can change that, so clients need not try again.
            Unsent::Rejected => bad_gateway(
                "the upstream does not accept the key of this server; its operator has to check \
                 `api_key_file` or `api_key_variable` in `[upstream]`",
            )
            .with_header("x-should-retry", "false"),
            Unsent::Unanswered(Unanswered::TimedOut) => Self::new(
                http::StatusCode::GATEWAY_TIMEOUT,
                "timeout_error",
                "the upstream did not answer in time",
            ),
            Unsent::Unanswered(Unanswered::Failed(error)) => {
                let message = if error.is_connect() {
                    "the upstream cannot be reached"
                } else {
                    "the upstream sent an invalid HTTP response"
                };
                let mut failure = bad_gateway(message);
                // Neither names the key: it is no part of an address.
                let source = std::error::Error::source(&error).map(ToString::to_string);
                failure.cause = Some(source.unwrap_or_else(|| error.to_string()));
                failure
            }
        }
    }
}
