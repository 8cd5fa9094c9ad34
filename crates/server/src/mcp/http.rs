//! MCP over streamable HTTP, at `/mcp` of the HTTP server.

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Mcp;
use super::handler::{Door, Handler};

/// Names that always mean this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Which names requests may use for this server: a web page that points a name of its own at this
/// machine (DNS rebinding) must get nothing.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// The loopback names and these.
    Only(Vec<String>),
    /// Any, because nobody said under which names the server is reached.
    Any,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

/// Returns the service for `/mcp`. Whoever uses it must put a
/// [`Principal`](quipu_core::engine::Principal) and its
/// [`Credential`](crate::credential::Credential) into the extensions of each request, and let nobody into the connection of another.
pub(crate) fn service(
    mcp: &Mcp,
    hosts: &Hosts,
    body_size_bytes_max: usize,
) -> StreamableHttpService<Handler, LocalSessionManager> {
    let named = match hosts {
        Hosts::Only(names) => names.as_slice(),
        Hosts::Any => &[],
    };
    let names = || LOOPBACK.into_iter().chain(named.iter().map(String::as_str));
    let origins = names().flat_map(|name| ["http", "https"].map(|it| format!("{it}://{name}:*")));
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(body_size_bytes_max)
        .with_cancellation_token(mcp.0.stop.clone())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{Method, Request, Response};
    use quipu_core::engine::NewKey;
    use quipu_core::model::{Name, Role};
    use quipu_knowledge::Knowledge;
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    use super::super::McpSettings;
    use super::*;
    use crate::credential::Credential;
    use crate::feed::Feed;
    use crate::pool::{Pool, PoolSettings};

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
            let new = NewKey { name, role, stores: None, expires_at: None, secret: None };
            let secret = engine.create_key(workspace, &new).unwrap().1.reveal().to_owned();
            let (settings, stop) = (McpSettings::default(), CancellationToken::new());
            let pool = Pool::new(engine.clone(), PoolSettings::SMALL);
            let mcp = Mcp::new(pool, settings, Feed::new(), stop);
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
                .extension(Credential::new(self.mcp.pool(), &self.mcp.0.feed, &self.secret));
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            let request = request.body(Body::from(body.to_string())).unwrap();
            service(&self.mcp, &Hosts::default(), 1024 * 1024).handle(request).await
        }

        /// Shakes hands, and returns the connection.
        async fn greeted(&self) -> String {
            let about = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "web", "version": "3"},
            });
            let greeting =
                json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about});
            let greeted = self.send(Method::POST, None, &greeting).await;
            greeted.headers().get("mcp-session-id").unwrap().to_str().unwrap().to_owned()
        }

        async fn followed_by(&self, clients: usize) {
            let waiting = async {
                while self.mcp.0.feed.followers_count() != clients {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, waiting).await.expect("so many clients follow");
        }
    }

    fn ready() -> Value {
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    }

    #[tokio::test]
    async fn a_client_that_leaves_is_not_told_of_changes_any_more() {
        let server = Server::new();
        let session = server.greeted().await;
        server.send(Method::POST, Some(&session), &ready()).await;
        server.followed_by(1).await;
        server.send(Method::DELETE, Some(&session), &Value::Null).await;
        server.followed_by(0).await;
    }

    #[tokio::test]
    async fn a_client_that_says_again_that_it_is_ready_is_told_once() {
        let server = Server::new();
        let session = server.greeted().await;
        for _ in 0..20 {
            server.send(Method::POST, Some(&session), &ready()).await;
        }
        // What the first client said has been heard before another one is.
        let other = server.greeted().await;
        server.send(Method::POST, Some(&other), &ready()).await;
        server.followed_by(2).await;
    }

    #[tokio::test]
    async fn the_connection_of_a_revoked_key_is_closed() {
        let server = Server::new();
        let (feed, engine) = (server.mcp.0.feed.clone(), server.engine.clone());
        std::thread::spawn(move || feed.follow(&engine, || false));
        let session = server.greeted().await;
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
        tokio::time::timeout(PATIENCE, closing).await.expect("it is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_of_a_client_that_left_before_it_began_ends() {
        let server = Server::new();
        // Nobody says here whose it is.
        let session = server.greeted().await;
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
