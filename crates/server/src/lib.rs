//! The HTTP server: the Memory Stores REST API of the contract, and Quipu's own routes.
//!
//! Routes below `/v1` are the contract's, word for word; Quipu's own are below `/quipu` and a few
//! at the root (`/healthz`, `/readyz`, `/metrics`, `/openapi.json`). Where the contract is silent,
//! the choices are in [`choices`]. The server also carries the MCP endpoint, of which it knows no
//! more than the [`Endpoint`] that it is given.

mod admission;
mod agents;
mod answer;
mod attached;
mod body;
mod call;
mod caller;
mod choices;
mod compare;
mod cursor;
mod events;
mod figures;
mod frame;
mod guard;
mod host;
mod inspector;
mod knowledge;
mod listen;
mod mcp;
mod memories;
mod metrics;
mod oauth;
mod own;
mod pages;
mod past;
mod plans;
mod query;
mod rate;
mod ready;
mod recordings;
mod redactions;
mod routes;
mod session_stream;
mod sessions;
mod slots;
mod socket;
mod stores;
mod stream;
mod suggest;
mod threads;
mod upstream;
mod versions;
pub mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use quipu_service::Service;
use quipu_service::endpoint::Endpoint;
use quipu_service::feed::Feed;
use quipu_service::pool::{Pool, PoolSettings};
use quipu_service::tool::ToolSettings;

use admission::Admission;
pub use inspector::table as inspector_routes;
pub use listen::{Listener, Tls, TlsError};
use metrics::Metrics;
use rate::RateLimiter;
use ready::Readiness;
pub use routes::routes;
use upstream::Upstream;
pub use upstream::{BaseUrl, UpstreamError, UpstreamKey, UpstreamSettings, UpstreamTls};
use webhooks::Deliveries;

/// An address such as `https://memory.example.org`, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Returns the text as an address if it is one, without a slash at its end.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('/');
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        (!host.is_empty() && host.bytes().all(is_host)).then(|| Self(text.to_owned()))
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The settings of the server.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Whether the version and beta headers are required, and doubled ones refused.
    pub strict_headers: bool,
    /// The largest request body.
    pub body_size_bytes_max: usize,
    /// How long a client may take to send its body.
    pub body_timeout: Duration,
    /// How long a request may take altogether.
    pub request_timeout: Duration,
    /// How long a write may block because the client does not read.
    pub write_timeout: Duration,
    /// The server reports that it is not ready while another process holds the write lock for longer
    /// than this.
    pub lock_held_max: Duration,
    /// The server reports that it is not ready while the disk has less free space than this.
    pub disk_free_bytes_min: u64,
    /// How many requests of valid callers are processed concurrently.
    pub requests_max: usize,
    /// How many connections are open concurrently.
    pub connections_max: usize,
    /// How many requests may block on the disk or on other writers concurrently.
    pub pool: PoolSettings,
    /// The rate limit of each key, in requests per minute; `None` is no limit.
    pub requests_per_minute_max: Option<u32>,
    /// The directory of mounts, for the paths in the answers about sessions.
    pub mount_root: String,
    /// The settings of the memory tool.
    pub tool: ToolSettings,
    /// Whether the metrics can be read without a key.
    pub metrics_open: bool,
    /// The address under which clients reach the server, if it differs from the one that they name in
    /// their requests: a proxy terminates TLS, for example.
    pub public_url: Option<PublicUrl>,
    /// Whether the server itself terminates TLS.
    pub has_tls: bool,
    /// The directory that the inspector writes backups to; `None` if it cannot.
    pub backups: Option<PathBuf>,
    /// Where requests are forwarded that no route serves; `None` if nowhere.
    pub upstream: Option<UpstreamSettings>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            strict_headers: false,
            body_size_bytes_max: 32 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_mins(5),
            write_timeout: Duration::from_secs(30),
            lock_held_max: Duration::from_secs(10),
            disk_free_bytes_min: 16 * 1024 * 1024,
            requests_max: 512,
            connections_max: 1024,
            pool: PoolSettings::default(),
            requests_per_minute_max: None,
            mount_root: "/mnt/memory".to_owned(),
            tool: ToolSettings::default(),
            metrics_open: false,
            public_url: None,
            has_tls: false,
            backups: None,
            upstream: None,
        }
    }
}

impl HttpSettings {
    /// Returns whether browsers reach the server over TLS, directly or through a proxy.
    fn is_secure(&self) -> bool {
        let url = self.public_url.as_ref();
        url.map_or(self.has_tls, |url| url.as_str().starts_with("https:"))
    }

    /// Returns the limits for the pool of a server with these settings.
    ///
    /// Writers that are blocked must not use up the permits of all requests, so no more of them
    /// queue than half of the requests there may be.
    pub fn pool_limits(&self) -> PoolSettings {
        let half = (self.requests_max / 2).max(1);
        let writers_queued_max = self.pool.writers_queued_max.min(half);
        PoolSettings { writers_queued_max, ..self.pool }
    }
}

/// The state that all requests share.
#[derive(Clone, Debug)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    service: Service,
    settings: HttpSettings,
    metrics: Metrics,
    rate: RateLimiter,
    admission: Admission,
    deliveries: Arc<Deliveries>,
    readiness: Readiness,
    /// Added to the number of a request to make its id, so that the ids of several servers differ
    /// within the same moment.
    request_salt: u128,
    requests_count: AtomicU64,
    mcp: Arc<dyn Endpoint>,
    upstream: Option<Arc<Upstream>>,
    inspector: quipu_inspector::Settings,
}

impl App {
    /// Creates the application over an engine whose pool has [`HttpSettings::pool_limits`]; `mcp`
    /// answers at `/mcp`.
    pub fn new(service: Service, settings: HttpSettings, mcp: Arc<dyn Endpoint>) -> Self {
        Self(Arc::new(Shared {
            request_salt: service.pool().random(),
            requests_count: AtomicU64::new(0),
            service,
            admission: Admission::new(settings.requests_max),
            deliveries: Arc::default(),
            readiness: Readiness::default(),
            rate: RateLimiter::new(settings.requests_per_minute_max),
            inspector: quipu_inspector::Settings {
                mount_root: settings.mount_root.clone(),
                version: env!("CARGO_PKG_VERSION"),
            },
            upstream: settings.upstream.clone().map(|it| Arc::new(Upstream::new(it))),
            settings,
            metrics: Metrics::default(),
            mcp,
        }))
    }

    /// Broadcasts changes to all streams until `stop` returns `true`. Blocks the calling thread.
    pub fn follow(&self, stop: impl Fn() -> bool) {
        self.0.service.follow(stop);
    }

    /// Returns the counts of webhook deliveries, which `/metrics` and the inspector show.
    pub fn deliveries(&self) -> Arc<Deliveries> {
        Arc::clone(&self.0.deliveries)
    }

    /// Ends all streams, which a graceful shutdown would otherwise wait for.
    fn stop_streams(&self) {
        self.0.service.stop().cancel();
    }

    fn pool(&self) -> &Pool {
        self.0.service.pool()
    }

    fn feed(&self) -> &Feed {
        self.0.service.feed()
    }

    fn upstream(&self) -> Option<&Arc<Upstream>> {
        self.0.upstream.as_ref()
    }

    fn settings(&self) -> &HttpSettings {
        &self.0.settings
    }

    /// Returns the router of all routes.
    pub fn router(&self) -> Router {
        oauth::routes(inspector::routes(routes::router()))
            .route("/mcp", any(mcp::answer))
            .fallback(upstream::fallback)
            .method_not_allowed_fallback(frame::no_method)
            .layer(from_fn_with_state(self.clone(), frame::frame))
            .with_state(self.clone())
    }
}
