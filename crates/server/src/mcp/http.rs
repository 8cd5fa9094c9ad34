//! MCP over streamable HTTP, at `/mcp` of the HTTP server.

use std::sync::Arc;

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
/// [`Principal`](quipu_core::engine::Principal) into the extensions of each request.
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
    let (mcp, connections) = (mcp.clone(), Arc::clone(&mcp.0.connections));
    let handler = move || Ok(Handler::new(mcp.clone(), Door::Http));
    StreamableHttpService::new(handler, connections, config)
}
