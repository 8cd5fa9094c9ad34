//! Finds what a selection is about in the events of sessions, and in agents and environments.

use crate::Error;
use crate::backend::{Archived, DefinitionQuery, Reader, SessionEventQuery, Span};
use crate::model::{
    Actor, Content, Definition, DefinitionKind, Name, Session, SessionEvent, SessionId,
};

use super::{DefinitionHit, Pattern, Scope, Selection, cut, written};

/// How many rows are read at a time.
const PAGE: usize = 64;

/// The longest name of a definition.
const NAME_CHARS_MAX: usize = 255;

/// Returns whether a selection can contain events at all. They have no path, no memory and no version.
pub(super) fn may_have_events(selection: &Selection<'_>) -> bool {
    let has_condition = selection.pattern.is_some() || !selection.actors.is_empty();
    has_condition
        && selection.path.is_none()
        && selection.memory.is_none()
        && selection.versions.is_empty()
}

/// Returns the numbers of the events of a session after a number that are selected, and the newest that
/// there is.
pub(super) fn events(
    reader: &dyn Reader,
    session: &Session,
    selection: &Selection<'_>,
    after: u64,
) -> Result<(Vec<u64>, u64), Error> {
    let usage = reader.event_usage(session.id)?;
    let mut numbers = Vec::new();
    if usage.newest <= after || usage.events_count == 0 {
        return Ok((numbers, usage.newest));
    }
    let owner = Actor::Session(session.id);
    let mut after = after;
    loop {
        let view = selection.view();
        let query = SessionEventQuery { view, ..SessionEventQuery::after(after, PAGE) };
        let events = reader.session_events(session.id, &query)?;
        let Some(last) = events.last() else { return Ok((numbers, usage.newest)) };
        after = last.number;
        let selected = events.iter().filter(|event| is_selected(selection, &owner, event));
        numbers.extend(selected.map(|event| event.number));
    }
}

fn is_selected(selection: &Selection<'_>, owner: &Actor, event: &SessionEvent) -> bool {
    event.redaction.is_none()
        && selection.created.contains(event.at)
        && (selection.has_actor(owner) || selection.has_actor(&event.actor))
        && selection.pattern.as_ref().is_none_or(|pattern| {
            event.body.as_ref().is_some_and(|body| written::matches(pattern, body.as_str()))
        })
}

/// Returns the versions of agents and environments that the pattern matches. They belong to the workspace,
/// so a selection in some stores, or by an author, contains none.
pub(super) fn definitions(
    reader: &dyn Reader,
    scope: &Scope,
    selection: &Selection<'_>,
) -> Result<Vec<DefinitionHit>, Error> {
    let mut hits = Vec::new();
    let is_possible = selection.is_by_content_alone() && scope.stores.is_none();
    let (true, Some(pattern)) = (is_possible, &selection.pattern) else { return Ok(hits) };
    for kind in DefinitionKind::ALL.iter().copied() {
        let mut before = None;
        loop {
            let definitions = reader.definitions(&DefinitionQuery {
                workspace: scope.workspace,
                kind,
                archived: Archived::Show,
                created: Span::default(),
                before,
                limit: PAGE,
            })?;
            let Some(last) = definitions.last() else { break };
            before = Some(last.id);
            for definition in &definitions {
                hits.extend(versions(reader, definition, pattern)?);
            }
        }
    }
    Ok(hits)
}

fn versions(
    reader: &dyn Reader,
    definition: &Definition,
    pattern: &Pattern<'_>,
) -> Result<Vec<DefinitionHit>, Error> {
    let mut hits = Vec::new();
    let mut before = None;
    loop {
        let versions = reader.definition_versions(definition.id, before, PAGE)?;
        let Some(last) = versions.last() else { return Ok(hits) };
        before = Some(last.version);
        let matching = versions.iter().filter(|version| without(pattern, version) != **version);
        hits.extend(matching.map(|it| DefinitionHit { definition: it.id, version: it.version }));
    }
}

/// Returns a definition without matches. A body that cannot be kept becomes empty.
pub(super) fn without(pattern: &Pattern<'_>, before: &Definition) -> Definition {
    let mut after = before.clone();
    if pattern.matches(before.name.as_str()) {
        let name = Name::new(cut::short(pattern, before.name.as_str(), NAME_CHARS_MAX));
        after.name = name
            .or_else(|_| Name::new(before.id.kind().as_str()))
            .unwrap_or_else(|_| before.name.clone());
    }
    after.metadata = cut::metadata(pattern, &before.metadata);
    after.body = Content::new(cut::body(pattern, before.body.as_str())).unwrap_or_default();
    after
}

/// What an earlier plan found in the events of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanned {
    /// The newest event that it has seen.
    pub(super) newest: u64,
    /// The numbers of those that were selected.
    pub(super) selected: Vec<u64>,
}

/// What earlier plans found, by session.
pub(super) type ScannedSessions = std::collections::HashMap<SessionId, Scanned>;
