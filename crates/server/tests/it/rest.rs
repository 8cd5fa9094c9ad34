//! The REST API, through the router in this process. Each file follows a part of the contract.

#[path = "rest/access.rs"]
mod access;
#[path = "rest/endpoint.rs"]
mod endpoint;
#[path = "rest/errors.rs"]
mod errors;
#[path = "rest/events.rs"]
pub(crate) mod events;
#[path = "rest/expiry.rs"]
mod expiry;
#[path = "rest/knowledge.rs"]
mod knowledge;
#[path = "rest/matrix.rs"]
pub(crate) mod matrix;
#[path = "rest/mcp.rs"]
mod mcp;
#[path = "rest/mcp_limits.rs"]
mod mcp_limits;
#[path = "rest/memories.rs"]
mod memories;
#[path = "rest/own.rs"]
mod own;
#[path = "rest/past.rs"]
mod past;
#[path = "rest/plans.rs"]
mod plans;
#[path = "rest/recording.rs"]
mod recording;
#[path = "rest/redactions.rs"]
mod redactions;
#[path = "rest/reserved.rs"]
mod reserved;
#[path = "rest/rights.rs"]
mod rights;
#[path = "rest/sessions.rs"]
mod sessions;
#[path = "rest/stores.rs"]
mod stores;
#[path = "rest/streams.rs"]
mod streams;
#[path = "rest/versions.rs"]
mod versions;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use quipu_core::Clock;
use quipu_core::engine::NewKey;
use quipu_core::model::{Forwarding, Name, Role, StoreId, WorkspaceId};
use quipu_core::settings::Limits;
use quipu_knowledge::Knowledge;
use quipu_mcp::{Hosts, HttpEndpoint, McpSettings};
use quipu_server::{App, HttpSettings};
use quipu_service::Service;
use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_with};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A server without a socket, and the secret of an admin key.
pub(crate) struct Server {
    pub(crate) engine: Knowledge,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) app: App,
    pub(crate) key: String,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

pub(crate) fn server() -> Server {
    server_with(HttpSettings::default(), Limits::default())
}

pub(crate) fn server_with(settings: HttpSettings, limits: Limits) -> Server {
    server_at(&Hosts::default(), settings, limits)
}

/// Makes a server that MCP clients may address by these names.
pub(crate) fn server_at(hosts: &Hosts, settings: HttpSettings, limits: Limits) -> Server {
    let clock = Arc::new(ManualClock::default());
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
    let engine = knowledge_with(Arc::new(InMemoryBackend::default()), shared, limits);
    let workspace = engine.default_workspace().expect("a workspace").id;
    let app = app(&engine, hosts, settings);
    let mut server = Server { engine, clock, workspace, app, key: String::new() };
    server.key = server.new_key(Role::Admin, None);
    server
}

/// Puts the parts together as the CLI does.
pub(crate) fn app(engine: &Knowledge, hosts: &Hosts, settings: HttpSettings) -> App {
    let service = Service::new(engine.clone(), settings.pool_limits());
    let (mcp, size_max) = (McpSettings::default(), settings.body_size_bytes_max);
    let endpoint = HttpEndpoint::new(service.clone(), mcp, hosts, size_max);
    App::new(service, settings, Arc::new(endpoint))
}

impl Server {
    pub(crate) fn new_key(&self, role: Role, stores: Option<Vec<StoreId>>) -> String {
        self.new_key_in(self.workspace, role, stores)
    }

    pub(crate) fn new_key_in(
        &self,
        workspace: WorkspaceId,
        role: Role,
        stores: Option<Vec<StoreId>>,
    ) -> String {
        let name = Name::new("test").expect("a name");
        let new = NewKey {
            name,
            role,
            stores,
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        let (_, secret) = self.engine.create_key(workspace, &new).expect("a key");
        secret.reveal().to_owned()
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.app.router().oneshot(request).await.expect("the router answers");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a request with a key and a body.
    pub(crate) async fn call_as(&self, key: &str, method: Method, uri: &str, body: Value) -> Reply {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("authorization", format!("Bearer {key}"))
            .body(body)
            .expect("a request");
        self.send(request).await
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        self.call_as(&self.key, Method::GET, uri, Value::Null).await
    }

    pub(crate) async fn post(&self, uri: &str, body: Value) -> Reply {
        self.call_as(&self.key, Method::POST, uri, body).await
    }

    pub(crate) async fn delete(&self, uri: &str) -> Reply {
        self.call_as(&self.key, Method::DELETE, uri, Value::Null).await
    }

    /// Makes a store and returns its address.
    pub(crate) async fn store(&self, name: &str) -> String {
        let reply = self.post("/v1/memory_stores", json!({ "name": name })).await;
        format!("/v1/memory_stores/{}", reply.ok()["id"].as_str().expect("an id"))
    }

    /// Makes a memory and returns it.
    pub(crate) async fn memory(&self, store: &str, path: &str, content: &str) -> Value {
        let body = json!({"path": path, "content": content});
        self.post(&format!("{store}/memories"), body).await.ok()
    }

    /// Lists everything, page by page, and returns the items.
    pub(crate) async fn all(&self, uri: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut page = uri.to_owned();
        loop {
            let separator = if uri.contains('?') { '&' } else { '?' };
            let body = self.get(&page).await.ok();
            let fields = body.as_object().expect("an object");
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["data", "next_page"]);
            let data = body["data"].as_array().expect("a list").clone();
            items.extend(data.clone());
            match body["next_page"].as_str() {
                Some(next) => {
                    assert!(!data.is_empty(), "an empty page has a next page");
                    page = format!("{uri}{separator}page={next}");
                }
                None => return items,
            }
        }
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// Checks the envelope of an error and returns its message.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, error_type: &str) -> String {
        assert_eq!(
            (self.status, &self.body["error"]["type"]),
            (status, &error_type.into()),
            "{}",
            self.body
        );
        assert_eq!(self.body["type"], "error");
        let id = self.body["request_id"].as_str().expect("a request id");
        assert_eq!(self.headers["request-id"], id);
        assert!(id.starts_with("req_01"), "{id}");
        self.body["error"]["message"].as_str().expect("a message").to_owned()
    }

    #[track_caller]
    pub(crate) fn invalid(&self) -> String {
        self.error(400, "invalid_request_error")
    }
}

/// Returns a field of each item.
pub(crate) fn texts(items: &[Value], field: &str) -> Vec<String> {
    items.iter().map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn every_answer_has_a_request_id_of_its_own() {
    let server = server();
    let mut seen = std::collections::HashSet::new();
    for uri in ["/healthz", "/v1/memory_stores", "/nowhere", "/openapi.json"] {
        let reply = server.get(uri).await;
        let id = reply.headers["request-id"].to_str().expect("a text").to_owned();
        assert!(id.starts_with("req_01") && seen.insert(id));
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_errors_of_the_contract() {
    let server = server();
    server.get("/v1/nothing").await.error(404, "not_found_error");
    server.delete("/v1/memory_stores").await.error(405, "invalid_request_error");
    for uri in ["/v1/memory_stores/%ff", "/v1/memory_stores/x/memories/%ff", "/v1/sessions/%80"] {
        server.get(uri).await.error(404, "not_found_error");
    }
    assert_eq!(server.get("/healthz").await.status, StatusCode::OK);
    assert_eq!(server.get("/readyz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_object_is_not_a_list_of_its_fields() {
    let server = server();
    let store = server.store("s").await;
    let id = store.rsplit('/').next();
    let memory = server.memory(&store, "/a", "x").await;
    let memory = format!("{store}/memories/{}", memory["id"].as_str().unwrap());
    let resource = json!(["memory_store", id, null, null]);
    for (uri, body) in [
        ("/v1/memory_stores", json!(["s", null, null])),
        (&store, json!(["s", null, null])),
        (&memory, json!(["y", null, null])),
        (&memory, json!({"content": "y", "precondition": ["content_sha256", "0".repeat(64)]})),
        ("/v1/sessions", json!({"agent": ["a", 1, null], "environment_id": "e"})),
        ("/v1/sessions", json!({"agent": "a", "environment_id": "e", "resources": [resource]})),
    ] {
        server.post(uri, body).await.invalid();
    }
    assert_eq!(server.all("/v1/memory_stores").await.len(), 1);
    assert_eq!(server.get(&memory).await.ok()["content"], "x");
}
