//! The rows of agents at work, as the backend's traits name them.

use quipu_core::Error;
use quipu_core::backend::{AgentReader, AgentWriter, DefinitionQuery, SessionEventQuery};
use quipu_core::model::{
    Definition, DefinitionId, DefinitionKind, EventUsage, Redaction, SessionEvent, SessionId,
    Timestamp, WorkspaceId,
};

use super::{Rows, definitions, events};
use crate::error::StorageResult as _;

impl AgentReader for Rows<'_> {
    fn definition(&self, id: DefinitionId) -> Result<Option<Definition>, Error> {
        definitions::definition(self.connection()?, id).or_storage_error()
    }

    fn definitions(&self, query: &DefinitionQuery) -> Result<Vec<Definition>, Error> {
        definitions::definitions(self.connection()?, query).or_storage_error()
    }

    fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Definition>, Error> {
        definitions::versions(self.connection()?, id, before, limit).or_storage_error()
    }

    fn definitions_count(
        &self,
        workspace: WorkspaceId,
        kind: DefinitionKind,
    ) -> Result<u64, Error> {
        definitions::count(self.connection()?, workspace, kind).or_storage_error()
    }

    fn definitions_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        definitions::size_bytes(self.connection()?, workspace).or_storage_error()
    }

    fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Vec<SessionEvent>, Error> {
        events::events(self.connection()?, session, query).or_storage_error()
    }

    fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error> {
        events::usage(self.connection()?, session).or_storage_error()
    }

    fn events_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        events::size_bytes(self.connection()?, workspace).or_storage_error()
    }
}

impl AgentWriter for Rows<'_> {
    fn put_definition(&mut self, definition: &Definition) -> Result<(), Error> {
        definitions::put(self.connection()?, definition).or_storage_error()
    }

    fn remove_definition(&mut self, id: DefinitionId) -> Result<(), Error> {
        definitions::remove(self.connection()?, id).or_storage_error()
    }

    fn add_session_event(&mut self, event: &SessionEvent) -> Result<(), Error> {
        events::add(self.connection()?, event).or_storage_error()
    }

    fn redact_session_event(
        &mut self,
        session: SessionId,
        number: u64,
        redaction: &Redaction,
    ) -> Result<(), Error> {
        events::redact(self.connection()?, session, number, redaction).or_storage_error()
    }

    fn prune_session_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        events::prune(self.connection()?, before, limit).or_storage_error()
    }
}
