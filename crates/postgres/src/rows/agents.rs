//! The rows of agents at work, as the backend's traits name them.

use quipu_core::Error;
use quipu_core::backend::{AgentReader, AgentWriter, DefinitionQuery, SessionEventQuery};
use quipu_core::model::{
    Definition, DefinitionId, DefinitionKind, EventUsage, Redaction, SessionEvent, SessionId,
    Timestamp, WorkspaceId,
};

use super::{Rows, definitions, events};

impl AgentReader for Rows<'_, '_> {
    fn definition(&self, id: DefinitionId) -> Result<Option<Definition>, Error> {
        definitions::definition(self.transaction()?, id)
    }

    fn definitions(&self, query: &DefinitionQuery) -> Result<Vec<Definition>, Error> {
        definitions::definitions(self.transaction()?, query)
    }

    fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Definition>, Error> {
        definitions::versions(self.transaction()?, id, before, limit)
    }

    fn definitions_count(
        &self,
        workspace: WorkspaceId,
        kind: DefinitionKind,
    ) -> Result<u64, Error> {
        definitions::count(self.transaction()?, workspace, kind)
    }

    fn definitions_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        definitions::size_bytes(self.transaction()?, workspace)
    }

    fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Vec<SessionEvent>, Error> {
        events::events(self.transaction()?, session, query)
    }

    fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error> {
        events::usage(self.transaction()?, session)
    }

    fn events_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        events::size_bytes(self.transaction()?, workspace)
    }
}

impl AgentWriter for Rows<'_, '_> {
    fn put_definition(&mut self, definition: &Definition) -> Result<(), Error> {
        definitions::put(self.transaction()?, definition)
    }

    fn remove_definition(&mut self, id: DefinitionId) -> Result<(), Error> {
        definitions::remove(self.transaction()?, id)
    }

    fn read_session_ahead(&mut self, session: SessionId) -> Result<(), Error> {
        self.transaction()?.announce_session(session)
    }

    fn add_session_event(&mut self, event: &SessionEvent) -> Result<(), Error> {
        events::add(self.transaction()?, event)
    }

    fn redact_session_event(
        &mut self,
        session: SessionId,
        number: u64,
        redaction: &Redaction,
    ) -> Result<(), Error> {
        events::redact(self.transaction()?, session, number, redaction)
    }

    fn prune_session_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        events::prune(self.transaction()?, before, limit)
    }
}
