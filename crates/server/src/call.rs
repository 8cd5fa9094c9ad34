//! Requests: admission, body, and the thread on which they are handled.
//!
//! Handlers are synchronous functions of a [`Call`]. A call exists only inside [`answer`], which
//! runs the handler through the [`Pool`](quipu_service::pool::Pool), so no handler can block a worker.

use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use quipu_core::ErrorKind;
use quipu_core::backend::Sequence;
use quipu_core::engine::{FeedPlace, Principal};
use quipu_core::model::{Store, StoreId, Timestamp};
use quipu_knowledge::Knowledge;
use quipu_service::caller::{Caller, Need};
use quipu_service::endpoint::payer;
use quipu_service::wire::Object;
use serde::de::DeserializeOwned;

use super::admission::Visitor;
use super::answer::Failure;
use super::body::Incoming;
use super::caller::{WorkspaceSlot, authenticate, check_headers, no_such, parse_id};
use super::query::Query;
use super::{App, HttpSettings};

/// What a request does to the engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It reads; it may still have to write, for example to bring the index up to date.
    Read,
    /// It writes.
    Write,
    /// It depends on the body.
    ByBody(fn(&[u8]) -> Self),
}

/// One request of an authenticated caller, with an engine to answer it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) engine: &'a Knowledge,
    pub(super) caller: &'a Caller,
    arrived: &'a Arrived,
    /// The store that the path names, if it exists.
    named: Option<&'a Store>,
    body: &'a [u8],
}

/// Admits a request and runs `work` for it.
pub(super) async fn answer<T: Send + 'static>(
    app: App,
    request: Request,
    kind: Kind,
    work: impl Fn(&Call<'_>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (parts, body) = request.into_parts();
    let visitor = Visitor::new(&parts.headers, &parts.extensions);
    let arrived = Arc::new(Arrived::new(app, parts).await);
    let app = arrived.app.clone();
    let asking = Arc::clone(&arrived);
    let admit = move |engine: &Knowledge| asking.admit(engine).map(drop);
    let mut body = Incoming::new(body);
    let is_complete = body.is_complete_soon(app.settings()).await;
    // Longer bodies are buffered for admitted callers only.
    if !app.admission().is_proven(&visitor) || !is_complete {
        if let Err(failure) = app.prove(&visitor, admit.clone()).await {
            body.discard().await;
            return Err(failure);
        }
        body.read_rest(app.settings()).await?;
    }
    let _permit = app.admission().permit()?;
    let body = body.into_bytes();
    let kind = match kind {
        Kind::ByBody(kind) => kind(&body),
        Kind::Read | Kind::Write => kind,
    };
    let run = move |engine: &Knowledge| work(&arrived.call(engine, &body)?);
    let result = match kind {
        Kind::Read => app.pool().read(run).await?,
        Kind::Write | Kind::ByBody(_) => app.pool().write_if(admit, run).await?,
    };
    app.admission().note(&visitor, &result);
    result
}

/// A request that may not be admitted yet.
#[derive(Debug)]
struct Arrived {
    app: App,
    /// Its path, if it is UTF-8.
    path: Option<String>,
    headers: HeaderMap,
    /// The variable parts of the path.
    parameters: Vec<(String, String)>,
    query: Query,
    workspace: Option<WorkspaceSlot>,
    /// Set once, although the work may run several times: each request is charged once.
    admitted: OnceLock<Admitted>,
}

#[derive(Debug)]
struct Admitted {
    caller: Caller,
    named: Option<Store>,
}

impl Arrived {
    async fn new(app: App, mut parts: Parts) -> Self {
        let parameters = RawPathParams::from_request_parts(&mut parts, &()).await.ok();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let is_text = parameters.is_some();
        let parameters = parameters.iter().flat_map(RawPathParams::iter).map(owned).collect();
        Self {
            app,
            parameters,
            path: is_text.then(|| parts.uri.path().to_owned()),
            query: Query::new(parts.uri.query().unwrap_or_default()),
            workspace: parts.extensions.remove(),
            headers: parts.headers,
            admitted: OnceLock::new(),
        }
    }

    fn parameter(&self, name: &str) -> &str {
        let named = self.parameters.iter().find(|(known, _)| known == name);
        named.map_or("", |(_, value)| value.as_str())
    }

    /// Authenticates the caller, applies the rate limit, and looks up the store in the path. Nothing
    /// else about the request is checked first: an error would reveal it to a caller without a key.
    fn admit(&self, engine: &Knowledge) -> Result<&Admitted, Failure> {
        if let Some(admitted) = self.admitted.get() {
            return Ok(admitted);
        }
        let named = self.parameter("store").parse().ok();
        let (caller, named) = authenticate(engine, &self.headers, named)?;
        if let Some(slot) = &self.workspace {
            slot.fill(caller.workspace);
        }
        self.app.0.rate.admit(&payer(&caller.principal))?;
        // A path that is not UTF-8 matches nothing.
        let path = self.path.as_deref().ok_or_else(|| no_such("thing", "…"))?;
        if self.app.settings().strict_headers && path.starts_with("/v1/") {
            check_headers(&self.headers, path)?;
        }
        Ok(self.admitted.get_or_init(|| Admitted { caller, named }))
    }

    fn call<'a>(&'a self, engine: &'a Knowledge, body: &'a [u8]) -> Result<Call<'a>, Failure> {
        let Admitted { caller, named } = self.admit(engine)?;
        Ok(Call { engine, caller, arrived: self, named: named.as_ref(), body })
    }
}

impl<'a> Call<'a> {
    pub(super) fn settings(&self) -> &'a HttpSettings {
        self.arrived.app.settings()
    }

    pub(super) fn query(&self) -> &'a Query {
        &self.arrived.query
    }

    pub(super) fn headers(&self) -> &'a HeaderMap {
        &self.arrived.headers
    }

    /// Returns the number after which a stream resumes: that of a parameter, or of `Last-Event-ID`.
    pub(super) fn last_event_id(&self, parameter: &str) -> Result<Option<u64>, Failure> {
        let header = self.headers().get("last-event-id").and_then(|value| value.to_str().ok());
        let number = self.query().get(parameter)?.or(header).map(str::parse).transpose();
        number.map_err(|_error| Failure::invalid(format!("{parameter}: must be a sequence number")))
    }

    /// Returns the place in the feed to resume after: the id of an event, or the number of a change.
    pub(super) fn feed_place(&self, parameter: &str) -> Result<Option<FeedPlace>, Failure> {
        let header = self.headers().get("last-event-id").and_then(|value| value.to_str().ok());
        let Some(text) = self.query().get(parameter)?.or(header) else { return Ok(None) };
        let invalid = |_error| Failure::invalid(format!("{parameter}: must be the id of an event"));
        let (sequence, at) = text.split_once('-').map_or((text, None), |(a, b)| (a, Some(b)));
        let sequence = Sequence(sequence.parse().map_err(invalid)?);
        let at = at.map(str::parse).transpose().map_err(invalid)?.map(Timestamp::from_micros);
        Ok(Some(FeedPlace { sequence, at }))
    }

    /// Returns all path parameters.
    pub(super) fn parameters(&self) -> &'a [(String, String)] {
        &self.arrived.parameters
    }

    /// Returns what the pages of the inspector know of the server.
    pub(super) fn inspector(&self) -> &'a quipu_inspector::Settings {
        &self.arrived.app.0.inspector
    }

    /// Returns what the inspector asks of the server.
    pub(super) fn host(&self) -> &'a dyn quipu_inspector::Host {
        &self.arrived.app
    }

    /// Returns the body.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.body
    }

    /// Returns a path parameter; empty if the route has none of this name.
    pub(super) fn parameter(&self, name: &str) -> &'a str {
        self.arrived.parameter(name)
    }

    /// Returns the store in the path, if the caller has this permission on it.
    pub(super) fn named_store(&self, need: Need) -> Result<Store, Failure> {
        self.store(self.parameter("store"), need)
    }

    /// Returns a store of the caller's workspace, if the caller has this permission on it.
    pub(super) fn store(&self, id: &str, need: Need) -> Result<Store, Failure> {
        let id: StoreId = parse_id(id, "memory store")?;
        let store = match self.named {
            Some(store) if store.id == id => store.clone(),
            _ => self.engine.store(id)?,
        };
        if store.workspace != self.caller.workspace {
            return Err(no_such("memory store", &id.to_string()));
        }
        if !self.caller.may_in(store.id, need) {
            return Err(self.caller.denied(need).into());
        }
        Ok(store)
    }

    /// Returns the store that the path names by name, slug or id, if the caller may read it. A session
    /// knows its stores by the names that they were attached with.
    pub(super) fn readable_store(&self) -> Result<Store, Failure> {
        let name = self.parameter("store");
        if let Principal::Session(session) = &self.caller.principal {
            let attached = session.attachments.iter().find(|attachment| {
                attachment.slug == name
                    || attachment.name.as_str() == name
                    || attachment.store.to_string() == name
            });
            let attached = attached.ok_or_else(|| self.caller.denied(Need::Read))?;
            return Ok(self.engine.store(attached.store)?);
        }
        let store = self.find_store(name)?;
        if self.caller.may_in(store.id, Need::Read) {
            Ok(store)
        } else {
            Err(self.caller.denied(Need::Read).into())
        }
    }

    /// Returns the store of the caller's workspace with this name, slug or id.
    pub(super) fn find_store(&self, name: &str) -> Result<Store, Failure> {
        find_store(self.engine, self.caller, name)
    }

    /// Reads the body as a JSON object of this shape.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.json().map(|Object(body)| body)
    }

    /// Reads the body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(self.body)
            .map_err(|error| Failure::invalid(format!("request body: {error}")))
    }
}

/// Returns the store of the caller's workspace with this name, slug or id. To a caller that is limited to
/// some stores, one that does not exist looks like one that it may not use.
pub(super) fn find_store(
    engine: &Knowledge,
    caller: &Caller,
    name: &str,
) -> Result<Store, Failure> {
    match engine.find_store(caller.workspace, name) {
        Err(error) if *error.kind() == ErrorKind::NotFound && !caller.is_unlimited() => {
            Err(caller.denied(Need::Read).into())
        }
        found => Ok(found?),
    }
}
