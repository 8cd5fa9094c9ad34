//! Definitions, and the events of sessions.

use quipu_core::Error;
use quipu_core::backend::{
    AgentReader, AgentWriter, Archived, DefinitionQuery, Order, SessionEventQuery,
};
use quipu_core::model::{
    Definition, DefinitionId, DefinitionKind, EventUsage, Redaction, SessionEvent, SessionId,
    Timestamp, WorkspaceId,
};

use super::{State, viewed};

impl State {
    fn versions_of(&self, id: DefinitionId) -> impl DoubleEndedIterator<Item = &Definition> {
        self.definitions.range((id, 0)..=(id, u64::MAX)).map(|(_, definition)| definition)
    }

    /// Returns the newest version of each definition of a kind, the newest definition first.
    fn newest_definitions(&self, kind: DefinitionKind) -> impl Iterator<Item = &Definition> {
        let is_newest = |it: &&Definition| self.versions_of(it.id).next_back() == Some(*it);
        self.definitions.values().rev().filter(move |it| it.id.kind() == kind).filter(is_newest)
    }

    fn events_of(&self, session: SessionId) -> impl DoubleEndedIterator<Item = &SessionEvent> {
        self.events.range((session, 0)..=(session, u64::MAX)).map(|(_, event)| event)
    }
}

impl AgentReader for State {
    fn definition(&self, id: DefinitionId) -> Result<Option<Definition>, Error> {
        Ok(self.versions_of(id).next_back().cloned())
    }

    fn definitions(&self, query: &DefinitionQuery) -> Result<Vec<Definition>, Error> {
        let selected = self.newest_definitions(query.kind).filter(|definition| {
            definition.workspace == query.workspace
                && query.before.is_none_or(|before| definition.id < before)
                && query.created.contains(definition.created_at)
                && (query.archived == Archived::Show || definition.archived_at.is_none())
        });
        Ok(selected.take(query.limit).cloned().collect())
    }

    fn definition_versions(
        &self,
        id: DefinitionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Definition>, Error> {
        let is_selected = |it: &&Definition| before.is_none_or(|before| it.version < before);
        Ok(self.versions_of(id).rev().filter(is_selected).take(limit).cloned().collect())
    }

    fn definitions_count(
        &self,
        workspace: WorkspaceId,
        kind: DefinitionKind,
    ) -> Result<u64, Error> {
        let count = self.newest_definitions(kind).filter(|it| it.workspace == workspace).count();
        Ok(u64::try_from(count).expect("a count fits"))
    }

    fn definitions_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        let versions = self.definitions.values().filter(|it| it.workspace == workspace);
        Ok(versions.map(|version| version.body.size_bytes()).sum())
    }

    fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Vec<SessionEvent>, Error> {
        let mut selected: Vec<_> =
            self.events_of(session).filter(|event| query.accepts(event)).cloned().collect();
        if query.order == Order::NewestFirst {
            selected.reverse();
        }
        selected.truncate(query.limit);
        for event in &mut selected {
            viewed(&mut event.body, query.view);
        }
        Ok(selected)
    }

    fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error> {
        let newest = self.newest_events.get(&session);
        Ok(EventUsage {
            newest: newest.map_or(0, |(number, _)| *number),
            newest_at: newest.map(|(_, at)| *at),
            events_count: u64::try_from(self.events_of(session).count()).expect("a count fits"),
            size_bytes: self.events_of(session).map(|event| event.size_bytes).sum(),
        })
    }

    fn events_size_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        let of_workspace = self.sessions.values().filter(|it| it.workspace == workspace);
        let events = of_workspace.flat_map(|session| self.events_of(session.id));
        Ok(events.map(|event| event.size_bytes).sum())
    }
}

impl AgentWriter for State {
    fn put_definition(&mut self, definition: &Definition) -> Result<(), Error> {
        self.definitions.insert((definition.id, definition.version), definition.clone());
        Ok(())
    }

    fn remove_definition(&mut self, id: DefinitionId) -> Result<(), Error> {
        self.definitions.retain(|(it, _), _| *it != id);
        Ok(())
    }

    fn add_session_event(&mut self, event: &SessionEvent) -> Result<(), Error> {
        self.newest_events.insert(event.session, (event.number, event.at));
        self.events.insert((event.session, event.number), event.clone());
        Ok(())
    }

    fn redact_session_event(
        &mut self,
        session: SessionId,
        number: u64,
        redaction: &Redaction,
    ) -> Result<(), Error> {
        if let Some(event) = self.events.get_mut(&(session, number)) {
            event.body = None;
            event.size_bytes = 0;
            event.redaction = Some(redaction.clone());
        }
        Ok(())
    }

    fn prune_session_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        let mut old: Vec<_> = self.events.values().filter(|event| event.at < before).collect();
        old.sort_by_key(|event| (event.at, event.number));
        let old: Vec<_> =
            old.into_iter().take(limit).map(|event| (event.session, event.number)).collect();
        self.events.retain(|place, _| !old.contains(place));
        Ok(old.len())
    }
}
