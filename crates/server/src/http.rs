//! Everything over HTTP: the Memory Stores REST API of the contract, and Quipu's own routes.
//!
//! Routes below `/v1` are the contract's, word for word; Quipu's own are below `/quipu` and a few
//! at the root (`/healthz`, `/readyz`, `/metrics`, `/openapi.json`). Where the contract is silent,
//! the choices are in [`choices`].

mod answer;
mod caller;
mod choices;
mod cursor;
mod events;
mod frame;
mod knowledge;
mod listen;
mod memories;
mod metrics;
mod own;
mod pages;
mod query;
mod rate;
mod sessions;
mod stores;
mod versions;
pub mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use quipu_core::Engine;
use quipu_core::backend::Sequence;
use tokio::sync::{Semaphore, watch};

use crate::tool::ToolSettings;
pub use listen::{Listener, Tls, TlsError};
use metrics::Metrics;
use rate::RateLimiter;

/// How the server behaves.
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
    /// How many requests are worked on at the same time.
    pub requests_max: usize,
    /// How many connections are open at the same time.
    pub connections_max: usize,
    /// How many requests each key may make in a minute; `None` means any number.
    pub requests_per_minute_max: Option<u32>,
    /// Where mounts are, for the paths that sessions show.
    pub mount_root: String,
    /// How the memory tool behaves.
    pub tool: ToolSettings,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            strict_headers: false,
            body_size_bytes_max: 32 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_mins(5),
            requests_max: 512,
            connections_max: 1024,
            requests_per_minute_max: None,
            mount_root: "/mnt/memory".to_owned(),
            tool: ToolSettings::default(),
        }
    }
}

/// What every request can use.
#[derive(Clone, Debug)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    engine: Engine,
    settings: HttpSettings,
    metrics: Metrics,
    rate: RateLimiter,
    permits: Semaphore,
    /// The newest sequence that [`App::follow`] has seen.
    newest: watch::Sender<Sequence>,
    /// Whether the server is about to end, so that streams end too.
    is_stopping: watch::Sender<bool>,
}

impl App {
    /// Makes the application over an engine.
    pub fn new(engine: Engine, settings: HttpSettings) -> Self {
        let permits = Semaphore::new(settings.requests_max);
        let rate = RateLimiter::new(settings.requests_per_minute_max);
        Self(Arc::new(Shared {
            engine,
            permits,
            rate,
            settings,
            metrics: Metrics::default(),
            newest: watch::Sender::new(Sequence(0)),
            is_stopping: watch::Sender::new(false),
        }))
    }

    /// Tells the event streams about changes, until `stop` says so. Blocks its thread.
    pub fn follow(&self, stop: impl Fn() -> bool) {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mut seen = Sequence(0);
        while !stop() {
            match self.engine().wait(seen, PATIENCE) {
                Ok(newest) if newest > seen => {
                    seen = newest;
                    self.0.newest.send_replace(newest);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "the change feed cannot be read");
                    std::thread::sleep(PATIENCE);
                }
            }
        }
    }

    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn settings(&self) -> &HttpSettings {
        &self.0.settings
    }

    /// Returns all routes.
    pub fn router(&self) -> Router {
        let v1 = Router::new()
            .route("/memory_stores", get(stores::list).post(stores::create))
            .route(
                "/memory_stores/{store}",
                get(stores::retrieve)
                    .post(stores::update)
                    .patch(stores::update)
                    .delete(stores::delete),
            )
            .route("/memory_stores/{store}/archive", post(stores::archive))
            .route("/memory_stores/{store}/memories", get(memories::list).post(memories::create))
            .route(
                "/memory_stores/{store}/memories/{memory}",
                get(memories::retrieve)
                    .post(memories::update)
                    .patch(memories::update)
                    .delete(memories::delete),
            )
            .route("/memory_stores/{store}/memory_versions", get(versions::list))
            .route("/memory_stores/{store}/memory_versions/{version}", get(versions::retrieve))
            .route(
                "/memory_stores/{store}/memory_versions/{version}/redact",
                post(versions::redact),
            )
            .route("/sessions", get(sessions::list).post(sessions::create))
            .route(
                "/sessions/{session}",
                get(sessions::retrieve)
                    .post(sessions::update)
                    .patch(sessions::update)
                    .delete(sessions::delete),
            )
            .route("/sessions/{session}/archive", post(sessions::archive));
        let own = Router::new()
            .route("/stores/{store}/tool", post(own::tool))
            .route("/stores/{store}/policy", get(own::policy).post(own::set_policy))
            .route("/stores/{store}/restore", post(own::restore))
            .route("/search", get(knowledge::search))
            .route("/stores/{store}/context", get(knowledge::context))
            .route("/stores/{store}/recent", get(knowledge::recent))
            .route("/stores/{store}/links", get(knowledge::links))
            .route("/sessions/{session}/prompt", get(own::prompt))
            .route("/sessions/{session}/token", post(own::new_token))
            .route("/events", get(events::stream))
            .route("/docs", get(pages::docs));
        Router::new()
            .nest("/v1", v1)
            .nest("/quipu", own)
            .route("/healthz", get(pages::health))
            .route("/readyz", get(pages::ready))
            .route("/metrics", get(pages::metrics))
            .route("/openapi.json", get(pages::openapi))
            .fallback(frame::no_route)
            .method_not_allowed_fallback(frame::no_method)
            .layer(from_fn_with_state(self.clone(), frame::frame))
            .with_state(self.clone())
    }
}
