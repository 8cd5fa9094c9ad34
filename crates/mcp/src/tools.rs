//! The tools: each makes a call or two to the engine and describes the result.

mod context;
mod directory;
mod edit;
mod found;
mod history;
mod memory;
mod moving;
mod notes;
mod past;
mod recent;
mod search;
mod shown;
mod stores;
mod suggest;

use std::sync::Arc;

use quipu_core::Error;
use quipu_core::model::{Actor, Store, StoreId};
use quipu_knowledge::Knowledge;
use quipu_service::Author;
use quipu_service::past::Then;
use rmcp::model::{CallToolResult, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::access::{Client, Identity};
use super::answer::Answer;
use super::arguments::Arguments;
use super::{Mcp, catalog};

/// A request, before there is an engine to answer it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) identity: Identity,
    pub(super) mcp: Mcp,
    /// The author of changes, if the connection or the credential determines it.
    pub(super) author: Option<Author>,
    /// The client's name for itself.
    pub(super) title: String,
    pub(super) cancelled: CancellationToken,
    pub(super) progress: Progress,
}

impl Asked {
    /// Returns the call to be answered with an engine.
    pub(super) fn call(self: &Arc<Self>, engine: &Knowledge) -> Call {
        let client = Client { engine: engine.clone(), identity: self.identity.clone() };
        Call { client, asked: Arc::clone(self) }
    }
}

/// One call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) client: Client,
    asked: Arc<Asked>,
}

/// Reports the progress of a call to a client that asked for it.
#[derive(Debug, Default)]
pub(super) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self(token.map(|token| (context.peer.clone(), token)))
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Reports that `done` of `all` steps are done. Blocks, so it must not run on an async worker.
    fn step(&self, done: f64, all: f64, message: &str) {
        let Some((peer, token)) = &self.0 else { return };
        let param = ProgressNotificationParam::new(token.clone(), done)
            .with_total(all)
            .with_message(message);
        if let Err(error) = Handle::current().block_on(peer.notify_progress(param)) {
            tracing::debug!(%error, "progress could not be sent");
        }
    }
}

impl Call {
    /// Returns the same call, to be answered with a store as it was. It reaches no other store.
    fn at(&self, then: &Then) -> Self {
        let client = Client { engine: then.engine.clone(), identity: self.client.identity.clone() };
        Self { client, asked: Arc::clone(&self.asked) }
    }

    fn engine(&self) -> &Knowledge {
        &self.client.engine
    }

    /// Returns the author of this call's changes.
    fn actor(&self) -> Result<Actor, Error> {
        match &self.asked.author {
            Some(author) => author.actor(self.engine()),
            None => self.asked.mcp.0.sessions.of(&self.client, &self.asked.title),
        }
    }

    /// Returns the author of changes to this store, unless the client may not write to it or has
    /// cancelled the call.
    fn writer(&self, store: &Store) -> Result<Actor, Error> {
        self.client.require_writing(store)?;
        self.require_wanted()?;
        self.actor()
    }

    /// Brings the index of some stores up to date for a client that asked for progress.
    ///
    /// The search would do the same work by itself, but could neither report nor cancel it.
    fn catch_up(&self, stores: &[StoreId]) -> Result<(), Error> {
        if !self.asked.progress.is_wanted() {
            return Ok(());
        }
        let step = |done| self.asked.progress.step(done, 2.0, "bringing the index up to date");
        // An index that is current reports nothing, and its client still waits for a first sign.
        step(0.0);
        self.engine().catch_up(stores, &|done: f64| {
            // The protocol wants every value to be larger than the last.
            if done > 0.0 {
                step(done);
            }
            self.require_wanted()
        })
    }

    /// Fails if the client has cancelled the call.
    fn require_wanted(&self) -> Result<(), Error> {
        if self.asked.cancelled.is_cancelled() {
            return Err(Error::invalid("the call was cancelled; nothing was changed"));
        }
        Ok(())
    }
}

/// Returns whether a call is expected to write. A wrong answer costs only time: a read that turns
/// out to write is repeated by a writer.
pub(super) fn writes(name: &str, arguments: &Arguments) -> bool {
    if name == catalog::MEMORY { memory::writes(arguments) } else { catalog::writes(name) }
}

/// Carries out a call.
pub(super) fn run(call: &Call, name: &str, arguments: &Arguments) -> Result<CallToolResult, Error> {
    if name == catalog::MEMORY {
        return memory::run(call, arguments);
    }
    let format = arguments.format()?;
    Ok(answer(call, name, arguments)?.into_result(format))
}

/// Returns the answer of a tool other than `memory`.
pub(super) fn answer(call: &Call, name: &str, arguments: &Arguments) -> Result<Answer, Error> {
    match name {
        "write_note" => notes::write_note(call, arguments),
        "read_note" => notes::read_note(call, arguments),
        "edit_note" => edit::edit_note(call, arguments),
        "move_note" => moving::move_note(call, arguments),
        "delete_note" => moving::delete_note(call, arguments),
        "search_notes" => search::search_notes(call, arguments),
        "suggest_notes" => suggest::suggest_notes(call, arguments),
        "build_context" => context::build_context(call, arguments),
        "recent_activity" => recent::recent_activity(call, arguments),
        "list_directory" => directory::list(call, arguments),
        "list_memory_projects" => stores::list(call),
        "create_memory_project" => stores::create(call, arguments),
        "delete_project" => stores::delete(call, arguments),
        "note_history" => history::note_history(call, arguments),
        "restore_note" => history::restore_note(call, arguments),
        other => Err(Error::not_found(format!("there is no tool `{other}`"))),
    }
}
