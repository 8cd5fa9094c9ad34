//! MCP over streamable HTTP.
//!
//! The HTTP server authenticates callers and mounts a [`HttpEndpoint`]. Streams and messages are
//! the SDK's work; here is what it leaves open: whose a connection is, how many of them there may
//! be, and batches.

mod batch;

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full};
use quipu_core::engine::Principal;
use quipu_core::model::Actor;
use quipu_service::Service;
use quipu_service::endpoint::{Admitted, Answer, Endpoint, Refusal, ResponseBody, payer};
use quipu_service::pool::PoolError;
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::transport::common::http_header::{HEADER_MCP_PROTOCOL_VERSION, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use super::batch::messages;
use super::connections::{InUse, PER_CALLER_MAX, TOTAL_MAX};
use super::handler::{Door, Handler};
use super::{Mcp, McpSettings};
use batch::Answers;

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Names that always mean this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Methods of older revisions that the stateless ones do not have.
const REMOVED: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The names under which requests may address this server.
///
/// A web page that points a name of its own at this machine (DNS rebinding) must get nothing.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// The loopback names and these.
    Only(Vec<String>),
    /// Any, because the names of the server were not configured.
    Any,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

/// The SDK's side of the protocol.
type Protocol = StreamableHttpService<Handler, LocalSessionManager>;

/// The MCP server, to be mounted by an HTTP server.
#[derive(Clone)]
pub struct HttpEndpoint {
    mcp: Mcp,
    protocol: Protocol,
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEndpoint").field("mcp", &self.mcp).finish_non_exhaustive()
    }
}

impl HttpEndpoint {
    /// Creates the endpoint. `body_size_bytes_max` must not be less than the HTTP server's own limit.
    pub fn new(
        service: Service,
        settings: McpSettings,
        hosts: &Hosts,
        body_size_bytes_max: usize,
    ) -> Self {
        let mcp = Mcp::new(service, settings);
        let protocol = protocol(&mcp, hosts, body_size_bytes_max);
        Self { mcp, protocol }
    }

    /// Finds the connection that a request names, and makes room for one that it begins.
    async fn connected(&self, caller: Admitted, mut request: Request<Bytes>) -> Answer {
        let is_stateless = is_stateless(request.headers());
        if is_stateless {
            // A connection means nothing here, and must not be reached past the check below.
            request.headers_mut().remove(HEADER_SESSION_ID);
        }
        let connections = &self.mcp.0.connections;
        let owner = owner(&caller.principal);
        let in_use = match connection(request.headers()) {
            None => None,
            Some(id) => Some(connections.enter(id, &owner).ok_or_else(no_connection)?),
        };
        if in_use.is_some() || is_stateless {
            return self.answered(caller, request, in_use).await;
        }
        let payer = payer(&caller.principal);
        if !connections.has_room(&payer) {
            return Err(too_many());
        }
        // A separate task: a client that disconnects drops this future, and would leave behind a
        // connection that has begun and that belongs to nobody.
        let endpoint = self.clone();
        let running = tokio::spawn(async move {
            let answer = endpoint.answered(caller, request, None).await;
            if let Some(id) = answer.as_ref().ok().and_then(|begun| connection(begun.headers())) {
                endpoint.mcp.0.connections.begin(id, owner, payer).await;
            }
            answer
        });
        running.await.unwrap_or(Err(Refusal::Failed(PoolError::Panicked)))
    }

    /// Answers a request of a known caller, on a connection of theirs if they name one.
    async fn answered(
        &self,
        caller: Admitted,
        mut request: Request<Bytes>,
        in_use: Option<InUse>,
    ) -> Answer {
        let Admitted { principal, credential, permit: _permit } = caller;
        request.extensions_mut().insert(principal);
        request.extensions_mut().insert(credential);
        let is_end = request.method() == Method::DELETE;
        let response = match posted(request)? {
            Posted::One(request) => run(&self.protocol, request).await,
            Posted::Removed(answer) => return Ok(answer),
            Posted::Batch(..) if in_use.is_none() => {
                let message =
                    "a list of messages needs an MCP session; send `initialize` alone first";
                return Err(Refusal::Invalid(message.to_owned()));
            }
            Posted::Batch(parts, messages) => {
                Answers::new(self.protocol.clone(), parts, messages).response().await
            }
        };
        // The SDK answers that the connection will be closed, when it already is. Some clients log
        // that as an error.
        let is_closed = is_end && response.status() == StatusCode::ACCEPTED;
        let response = if is_closed { status(StatusCode::NO_CONTENT) } else { response };
        Ok(match in_use {
            Some(in_use) => held(response, in_use),
            None => response,
        })
    }
}

impl Endpoint for HttpEndpoint {
    fn requests_count(&self, body: &[u8]) -> u32 {
        // A batch is read again when it runs; other messages are not read here at all.
        let batch = is_batch(body).then(|| messages(body).ok()).flatten();
        batch.map_or(1, |messages| u32::try_from(messages.len()).unwrap_or(u32::MAX))
    }

    fn answer(&self, caller: Admitted, request: Request<Bytes>) -> BoxFuture<'_, Answer> {
        Box::pin(self.connected(caller, request))
    }

    fn connections_count(&self) -> usize {
        self.mcp.0.connections.count()
    }
}

/// Returns the SDK's service. Every request that it gets must carry a [`Principal`] and its
/// credential as extensions.
fn protocol(mcp: &Mcp, hosts: &Hosts, body_size_bytes_max: usize) -> Protocol {
    let named = match hosts {
        Hosts::Only(names) => names.as_slice(),
        Hosts::Any => &[],
    };
    let names = || LOOPBACK.into_iter().chain(named.iter().map(String::as_str));
    let origins = names().flat_map(|name| ["http", "https"].map(|it| format!("{it}://{name}:*")));
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(body_size_bytes_max)
        .with_cancellation_token(mcp.0.service.stop().clone())
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let config = match hosts {
        Hosts::Only(_) => config.with_allowed_hosts(names()),
        Hosts::Any => config.disable_allowed_hosts(),
    };
    let (mcp, connections) = (mcp.clone(), mcp.0.connections.manager());
    let handler = move || {
        mcp.0.connections.keep_swept();
        Ok(Handler::new(mcp.clone(), Door::Http))
    };
    StreamableHttpService::new(handler, connections, config)
}

/// Runs a request that holds at most one message.
async fn run(protocol: &Protocol, request: Request<Bytes>) -> Response<ResponseBody> {
    protocol.handle(request.map(Full::new)).await.map(http_body_util::BodyExt::boxed_unsync)
}

/// The messages of a request.
enum Posted {
    /// One message, or none.
    One(Request<Bytes>),
    /// A list of messages, which revision 2025-03-26 has.
    Batch(Parts, Vec<Value>),
    /// A method that the revision of the message no longer has; this is the answer.
    Removed(Response<ResponseBody>),
}

fn posted(request: Request<Bytes>) -> Result<Posted, Refusal> {
    if request.method() != Method::POST {
        return Ok(Posted::One(request));
    }
    if is_stateless(request.headers())
        && let Some(answer) = removed(request.body())
    {
        return Ok(Posted::Removed(answer));
    }
    if !is_batch(request.body()) {
        return Ok(Posted::One(request));
    }
    let (parts, body) = request.into_parts();
    match messages(&body) {
        Ok(messages) => Ok(Posted::Batch(parts, messages)),
        Err(reason) => Err(Refusal::Invalid(reason.to_string())),
    }
}

fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Returns the answer to a request of a method that was removed. The SDK would check its
/// parameters first, and complain about those.
fn removed(body: &[u8]) -> Option<Response<ResponseBody>> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let (id, method) = (message.get("id")?, message.get("method")?.as_str()?);
    if !REMOVED.contains(&method) {
        return None;
    }
    let error = json!({
        "code": ErrorCode::METHOD_NOT_FOUND,
        "message": format!("{method} is not a method of this revision"),
    });
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    let mut response = Response::new(Full::from(body).boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Some(response)
}

/// Returns whose connections a principal may use. They stay those of a client that renews its token.
fn owner(principal: &Principal) -> Actor {
    match principal {
        Principal::Key(key) => Actor::ApiKey(key.grant()),
        Principal::Session(session) => Actor::Session(session.id),
    }
}

/// Returns whether a message is of a revision that has no connections.
fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(HEADER_MCP_PROTOCOL_VERSION);
    version.is_some_and(|version| {
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.any(|known| !known.has_initialize() && version == known.as_str())
    })
}

/// Returns the connection that a message names.
fn connection(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER_SESSION_ID).map(|id| id.to_str().unwrap_or_default())
}

/// Returns whether a response is a stream of events.
fn is_stream<B>(response: &Response<B>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(EVENTS.as_bytes()))
}

/// Keeps a connection in use until the response is sent or the client is gone.
fn held(response: Response<ResponseBody>, in_use: InUse) -> Response<ResponseBody> {
    response.map(|body| {
        let body = body.map_frame(move |frame| {
            let _in_use = &in_use;
            frame
        });
        body.boxed_unsync()
    })
}

fn status(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// The same answer for a connection that does not exist and for one of another caller: a caller must
/// not be able to probe for the connections of others.
fn no_connection() -> Refusal {
    Refusal::NotFound("there is no such MCP session; begin one with `initialize`".to_owned())
}

/// The answer to a caller all of whose connections are in use.
fn too_many() -> Refusal {
    Refusal::TooMany(format!(
        "too many MCP sessions are in use: a key may have {PER_CALLER_MAX} and the server \
         {TOTAL_MAX}; end one first"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use quipu_core::engine::{Derivation, NewDerivedKey, NewKey};
    use quipu_core::model::{Forwarding, KeyKind, KeySecret, Name, Role};
    use quipu_knowledge::Knowledge;
    use quipu_service::credential::Credential;
    use quipu_service::pool::PoolSettings;
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};
    use serde_json::{Value, json};

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    struct Server {
        mcp: Mcp,
        engine: Knowledge,
        clock: Arc<ManualClock>,
        secret: String,
    }

    impl Server {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::default());
            let backend = Arc::new(InMemoryBackend::default());
            let engine = knowledge_over(backend, Arc::clone(&clock) as _);
            let workspace = engine.default_workspace().unwrap().id;
            let (name, role) = (Name::new("test").unwrap(), Role::Admin);
            let new = NewKey {
                name,
                role,
                stores: None,
                expires_at: None,
                secret: None,
                forwarding: Forwarding::Denied,
            };
            let secret = engine.create_key(workspace, &new).unwrap().1.reveal().to_owned();
            let service = Service::new(engine.clone(), PoolSettings::SMALL);
            let mcp = Mcp::new(service, McpSettings::default());
            Self { mcp, engine, clock, secret }
        }

        async fn send(
            &self,
            method: Method,
            session: Option<&str>,
            body: &Value,
        ) -> Response<impl Sized> {
            let mut request = Request::builder()
                .method(method)
                .uri("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .extension(self.engine.principal(&self.secret).unwrap().unwrap())
                .extension(self.credential());
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            let request = request.body(Bytes::from(body.to_string())).unwrap();
            run(&protocol(&self.mcp, &Hosts::default(), 1024 * 1024), request).await
        }

        fn credential(&self) -> Credential {
            let service = &self.mcp.0.service;
            Credential::new(service.pool(), service.feed(), &self.secret)
        }

        /// Performs the handshake, and returns the id of the connection.
        async fn connect(&self) -> String {
            let about = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "web", "version": "3"},
            });
            let initialize =
                json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
            let reply = self.send(Method::POST, None, &initialize).await;
            reply.headers().get("mcp-session-id").unwrap().to_str().unwrap().to_owned()
        }

        async fn followed_by(&self, clients: usize) {
            let waiting = async {
                while self.mcp.0.service.feed().followers_count() != clients {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, waiting)
                .await
                .expect("the number of followers is reached");
        }
    }

    fn ready() -> Value {
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    }

    #[tokio::test]
    async fn a_batch_counts_each_of_its_messages() {
        let (server, hosts) = (Server::new(), Hosts::default());
        let service = server.mcp.0.service.clone();
        let endpoint = HttpEndpoint::new(service, McpSettings::default(), &hosts, 1024);
        for (body, count) in [(" [1, 2, 3]", 3), ("{}", 1), ("", 1), ("[]", 1), ("[1, 2", 1)] {
            assert_eq!(endpoint.requests_count(body.as_bytes()), count, "{body}");
        }
    }

    #[tokio::test]
    async fn a_client_that_renews_its_token_keeps_its_connections() {
        let server = Server::new();
        let admitted = |secret: &str| server.engine.principal(secret).unwrap().unwrap();
        let Principal::Key(root) = admitted(&server.secret) else { panic!("it is a key") };
        let new = |kind| NewDerivedKey {
            kind,
            name: root.name.clone(),
            role: root.role,
            stores: None,
            expires_at: server.engine.now().plus(PATIENCE),
            payload: None,
        };
        let code = || {
            let derived = server.engine.derive_key(Derivation::Key(root.id), &new(KeyKind::Code));
            derived.unwrap().1
        };
        // Returns the owner of the connections, and the next refresh token.
        let exchange = |secret: &KeySecret, kind| {
            let issue = |_: &_| Ok(vec![new(KeyKind::Key), new(KeyKind::Refresh)]);
            let exchange = server.engine.exchange_key(secret.reveal(), kind, issue);
            let [(_, access), (_, refresh)] = exchange.unwrap().unwrap().issued.try_into().unwrap();
            (owner(&admitted(access.reveal())), refresh)
        };
        let (first, refresh) = exchange(&code(), KeyKind::Code);
        let (renewed, _) = exchange(&refresh, KeyKind::Refresh);
        let (other, _) = exchange(&code(), KeyKind::Code);
        assert_eq!(first, renewed);
        assert_ne!(first, other);
        assert_ne!(first, owner(&admitted(&server.secret)));
    }

    #[tokio::test]
    async fn a_client_that_disconnects_is_no_longer_notified() {
        let server = Server::new();
        let session = server.connect().await;
        server.send(Method::POST, Some(&session), &ready()).await;
        server.followed_by(1).await;
        server.send(Method::DELETE, Some(&session), &Value::Null).await;
        server.followed_by(0).await;
    }

    #[tokio::test]
    async fn repeated_initialized_notifications_start_one_follower() {
        let server = Server::new();
        let session = server.connect().await;
        for _ in 0..20 {
            server.send(Method::POST, Some(&session), &ready()).await;
        }
        // By the time the other client follows, the messages of the first one have been handled.
        let other = server.connect().await;
        server.send(Method::POST, Some(&other), &ready()).await;
        server.followed_by(2).await;
    }

    #[tokio::test]
    async fn the_connection_of_a_revoked_key_is_closed() {
        let server = Server::new();
        let service = server.mcp.0.service.clone();
        std::thread::spawn(move || service.follow(|| false));
        let session = server.connect().await;
        server.send(Method::POST, Some(&session), &ready()).await;
        server.followed_by(1).await;
        let key = server.engine.keys(server.engine.default_workspace().unwrap().id).unwrap();
        server.engine.revoke_key(key.first().unwrap().id).unwrap();
        server.followed_by(0).await;
        let manager = server.mcp.0.connections.manager();
        let closing = async {
            while !manager.sessions.read().await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, closing).await.expect("the connection is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_an_owner_expires() {
        let server = Server::new();
        // It is not recorded with `begin`, as if the client had disconnected before.
        let session = server.connect().await;
        let manager = server.mcp.0.connections.manager();
        tokio::time::sleep(Duration::from_hours(1)).await;
        server.clock.advance(Duration::from_hours(3));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(manager.sessions.read().await.contains_key(session.as_str()));
        server.clock.advance(Duration::from_hours(2));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(manager.sessions.read().await.is_empty());
    }
}
