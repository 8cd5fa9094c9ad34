//! The rows of agents at work: definitions, and the events of sessions.
//!
//! They belong to [`Reader`](super::Reader) and [`Writer`](super::Writer), and are here because none of the
//! rules about memories concerns them: they make no versions, and no change in the feed.

use crate::Error;
use crate::model::{
    Definition, DefinitionId, DefinitionKind, EventType, EventUsage, Redaction, SessionEvent,
    SessionId, Timestamp, View, WorkspaceId,
};

use super::{Archived, Order, Span};

/// Reads definitions and events in a snapshot.
///
/// A session that does not exist has no events, and its usage is zero.
pub trait AgentReader {
    /// Returns the newest version of a definition.
    fn definition(&self, id: DefinitionId) -> Result<Option<Definition>, Error>;

    /// Returns the newest version of each definition that the query selects, the newest definition first.
    fn definitions(&self, query: &DefinitionQuery) -> Result<Vec<Definition>, Error>;

    /// Returns at most `limit` versions of a definition, the newest first; only those with a smaller number
    /// than `before`, to continue after a page.
    fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Definition>, Error>;

    /// Returns how many definitions of a kind a workspace has, archived ones among them.
    fn definitions_count(&self, workspace: WorkspaceId, kind: DefinitionKind)
    -> Result<u64, Error>;

    /// Returns the sum of the sizes of the bodies of all definitions of a workspace, in all of their versions.
    fn definitions_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error>;

    /// Returns the events of a session that the query selects, in its order.
    fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Vec<SessionEvent>, Error>;

    /// Returns how much is kept of the events of a session. The newest number and its moment stay when the
    /// event is pruned.
    fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error>;

    /// Returns the sum of the sizes of the events that are kept of all sessions of a workspace.
    fn events_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error>;
}

/// Changes definitions and events, inside one transaction.
pub trait AgentWriter: AgentReader {
    /// Adds a version of a definition, or replaces the one with the same number.
    fn put_definition(&mut self, definition: &Definition) -> Result<(), Error>;

    /// Removes a definition with all of its versions.
    fn remove_definition(&mut self, id: DefinitionId) -> Result<(), Error>;

    /// Announces that the transaction is about to record events of a session, so that a backend over a
    /// network can lock the session.
    ///
    /// It changes no answer: an embedded backend does nothing here.
    fn read_session_ahead(&mut self, _: SessionId) -> Result<(), Error> {
        Ok(())
    }

    /// Adds an event to its session, which exists. Its number is the one after the newest, and the usage
    /// of the session and of its workspace follows.
    fn add_session_event(&mut self, event: &SessionEvent) -> Result<(), Error>;

    /// Takes the body out of an event, sets its size to 0 and records who did it. The usage follows.
    fn redact_session_event(
        &mut self,
        session: SessionId,
        number: u64,
        redaction: &Redaction,
    ) -> Result<(), Error>;

    /// Removes at most `limit` events of any session that were recorded before a moment, and returns how
    /// many it removed. Of each session the oldest are removed first, and its usage follows.
    fn prune_session_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error>;
}

/// Selects definitions of a workspace.
#[derive(Clone, Debug)]
pub struct DefinitionQuery {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What they define.
    pub kind: DefinitionKind,
    /// Whether archived ones are selected.
    pub archived: Archived,
    /// Only those created in this span.
    pub created: Span,
    /// Only those with a smaller id, to continue after a page.
    pub before: Option<DefinitionId>,
    /// How many at most.
    pub limit: usize,
}

/// Selects events of a session.
#[derive(Clone, Debug)]
pub struct SessionEventQuery {
    /// Only those of one of these types; none selects all.
    pub kinds: Vec<EventType>,
    /// Only those recorded in this span.
    pub recorded: Span,
    /// The order.
    pub order: Order,
    /// Only those after this number in the order, to continue after a page.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: usize,
    /// Whether their bodies are read.
    pub view: View,
}

impl SessionEventQuery {
    /// Selects at most `limit` events after a number, with their bodies, the oldest first.
    pub fn after(number: u64, limit: usize) -> Self {
        Self {
            kinds: Vec::new(),
            recorded: Span::default(),
            order: Order::OldestFirst,
            after: Some(number),
            limit,
            view: View::Full,
        }
    }

    /// Returns whether an event is selected, apart from the limit.
    pub fn accepts(&self, event: &SessionEvent) -> bool {
        let is_after = |after: u64| match self.order {
            Order::NewestFirst => event.number < after,
            Order::OldestFirst => event.number > after,
        };
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.recorded.contains(event.at)
            && self.after.is_none_or(is_after)
    }
}
