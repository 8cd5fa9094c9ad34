//! Definitions and events are no part of the past: they are read as they are now.

use crate::Error;
use crate::backend::{AgentReader, DefinitionQuery, SessionEventQuery};
use crate::model::{
    Definition, DefinitionId, DefinitionKind, EventUsage, SessionEvent, SessionId, WorkspaceId,
};

use super::backend::PastReader;

impl AgentReader for PastReader<'_> {
    fn definition(&self, id: DefinitionId) -> Result<Option<Definition>, Error> {
        self.reader.definition(id)
    }

    fn definitions(&self, query: &DefinitionQuery) -> Result<Vec<Definition>, Error> {
        self.reader.definitions(query)
    }

    fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Definition>, Error> {
        self.reader.definition_versions(id, before, limit)
    }

    fn definitions_count(
        &self,
        workspace: WorkspaceId,
        kind: DefinitionKind,
    ) -> Result<u64, Error> {
        self.reader.definitions_count(workspace, kind)
    }

    fn definitions_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        self.reader.definitions_size_bytes(workspace)
    }

    fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Vec<SessionEvent>, Error> {
        self.reader.session_events(session, query)
    }

    fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error> {
        self.reader.event_usage(session)
    }

    fn events_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        self.reader.events_size_bytes(workspace)
    }
}
