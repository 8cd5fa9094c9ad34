//! One request: who makes it, what it brings, and where it is worked on.
//!
//! Handlers are plain functions of a [`Call`]. A call exists only inside of [`answer`], which runs the
//! handler where its kind of work may wait, so no handler can wait on a worker of the runtime.

use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use quipu_core::Engine;
use quipu_core::model::{Store, StoreId};
use serde::de::DeserializeOwned;

use super::answer::Failure;
use super::body::Incoming;
use super::caller::{Caller, Need, WorkspaceSlot, no_such, parse_id};
use super::query::Query;
use super::{App, HttpSettings};
use crate::wire::Object;

/// What a request does to the engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It reads, unless something that it needs has to be made first.
    Read,
    /// It writes.
    Write,
    /// Its body says.
    Told(fn(&[u8]) -> Self),
}

/// One request of an authenticated caller, with an engine to answer it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    arrived: &'a Arrived,
    /// The store that the path names, if it exists.
    named: Option<&'a Store>,
    body: &'a [u8],
}

/// Runs `work` for a request, if it may be made.
pub(super) async fn answer<T: Send + 'static>(
    app: App,
    request: Request,
    kind: Kind,
    work: impl Fn(&Call<'_>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (parts, body) = request.into_parts();
    let arrived = Arc::new(Arrived::new(app, parts).await?);
    let app = arrived.app.clone();
    let asking = Arc::clone(&arrived);
    let admit = move |engine: &Engine| asking.admit(engine).map(drop);
    let mut body = Incoming::new(body);
    if !body.is_whole_soon(app.settings()).await {
        // Whoever may not come in gets no room for more.
        if let Err(failure) = app.pool().read(admit.clone()).await? {
            body.discard().await;
            return Err(failure);
        }
        body.read_rest(app.settings()).await?;
    }
    let body = body.into_bytes();
    let kind = match kind {
        Kind::Told(kind) => kind(&body),
        Kind::Read | Kind::Write => kind,
    };
    let run = move |engine: &Engine| work(&arrived.call(engine, &body)?);
    match kind {
        Kind::Read => app.pool().read(run).await?,
        Kind::Write | Kind::Told(_) => app.pool().write_if(admit, run).await?,
    }
}

/// A request before it is known whether it may be made.
#[derive(Debug)]
struct Arrived {
    app: App,
    headers: HeaderMap,
    /// The variable parts of the path.
    parameters: Vec<(String, String)>,
    query: Query,
    workspace: Option<WorkspaceSlot>,
    /// Filled once, although the work may be run more than once: a request counts as one.
    admitted: OnceLock<Admitted>,
}

#[derive(Debug)]
struct Admitted {
    caller: Caller,
    named: Option<Store>,
}

impl Arrived {
    async fn new(app: App, mut parts: Parts) -> Result<Self, Failure> {
        // A path that is not UTF-8 is a path to nothing.
        let parameters = RawPathParams::from_request_parts(&mut parts, &()).await;
        let parameters = parameters.map_err(|_not_utf8| no_such("thing", parts.uri.path()))?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(Self {
            app,
            parameters: parameters.iter().map(owned).collect(),
            query: Query::new(parts.uri.query().unwrap_or_default()),
            workspace: parts.extensions.remove(),
            headers: parts.headers,
            admitted: OnceLock::new(),
        })
    }

    fn parameter(&self, name: &str) -> &str {
        let named = self.parameters.iter().find(|(known, _)| known == name);
        named.map_or("", |(_, value)| value.as_str())
    }

    /// Finds out who calls, and whether they may do so now; looks for the store that they name.
    fn admit(&self, engine: &Engine) -> Result<&Admitted, Failure> {
        if let Some(admitted) = self.admitted.get() {
            return Ok(admitted);
        }
        let named = self.parameter("store").parse().ok();
        let (caller, named) = Caller::authenticate(engine, &self.headers, named)?;
        if let Some(slot) = &self.workspace {
            slot.fill(caller.workspace);
        }
        self.app.0.rate.admit(&caller.actor)?;
        Ok(self.admitted.get_or_init(|| Admitted { caller, named }))
    }

    fn call<'a>(&'a self, engine: &'a Engine, body: &'a [u8]) -> Result<Call<'a>, Failure> {
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

    /// Returns a variable part of the path.
    pub(super) fn parameter(&self, name: &str) -> &'a str {
        self.arrived.parameter(name)
    }

    /// Returns the store that the path names, if the caller may do there what it needs to.
    pub(super) fn named_store(&self, need: Need) -> Result<Store, Failure> {
        self.store(self.parameter("store"), need)
    }

    /// Returns a store of the caller's workspace in which it may do what it needs to.
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
            return Err(self.caller.denied(need));
        }
        Ok(store)
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
