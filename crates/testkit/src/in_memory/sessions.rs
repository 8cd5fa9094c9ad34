//! Which sessions are selected, and which are pruned.

use quipu_core::backend::{Archived, Order, SessionQuery};
use quipu_core::model::{Actor, KeyId, Session, SessionId, Timestamp, WorkspaceId};

use super::State;

pub(super) fn selected(state: &State, query: &SessionQuery) -> Vec<Session> {
    let mut selected: Vec<_> = state.sessions.values().collect();
    if query.order == Order::NewestFirst {
        selected.reverse();
    }
    let is_later = |session: &Session, after: SessionId| match query.order {
        Order::NewestFirst => session.id < after,
        Order::OldestFirst => session.id > after,
    };
    let selected = selected.into_iter().filter(|session| {
        session.workspace == query.workspace
            && query.after.is_none_or(|after| is_later(session, after))
            && query.created.contains(session.created_at)
            && (query.archived == Archived::Show || session.archived_at.is_none())
            && query.store.is_none_or(|store| session.attachment(store).is_some())
            && query.viewer.as_ref().is_none_or(|key| key.sees(session))
    });
    selected.take(query.limit).cloned().collect()
}

fn over(state: &State, before: Timestamp, limit: usize) -> Vec<SessionId> {
    let is_before = |at: Option<Timestamp>| at.is_some_and(|at| at < before);
    let is_revoked = |session: &Session| {
        let key = session.key.and_then(|key| state.keys.get(&key));
        is_before(key.and_then(|key| key.revoked_at))
    };
    let is_over = |session: &Session| match session.archived_at {
        Some(at) => at < before,
        None => {
            session.token.is_none() || is_before(session.token_expires_at) || is_revoked(session)
        }
    };
    let is_named = |session: &Session| {
        let actor = Actor::Session(session.id);
        state.versions.values().any(|version| {
            version.actor == actor
                || version.redaction.as_ref().is_some_and(|redaction| redaction.by == actor)
        })
    };
    let over = state
        .sessions
        .values()
        .filter(|session| session.updated_at < before && is_over(session) && !is_named(session));
    over.take(limit).map(|session| session.id).collect()
}

/// Returns the sessions that a key owns or has ever owned.
pub(super) fn of_key(state: &State, key: KeyId) -> Vec<SessionId> {
    let owned = state.session_keys.iter().filter(|(owner, _)| *owner == key);
    owned.map(|(_, session)| *session).collect()
}

/// Returns how many sessions a workspace has.
pub(super) fn count(state: &State, workspace: WorkspaceId) -> u64 {
    let of_workspace = state.sessions.values().filter(|it| it.workspace == workspace);
    u64::try_from(of_workspace.count()).expect("a count fits")
}

/// Removes sessions that have ended, and returns how many.
pub(super) fn prune(state: &mut State, before: Timestamp, limit: usize) -> usize {
    let over = over(state, before, limit);
    for id in &over {
        remove(state, *id);
    }
    over.len()
}

/// Removes a session with its events.
pub(super) fn remove(state: &mut State, id: SessionId) {
    state.sessions.remove(&id);
    state.newest_events.remove(&id);
    state.events.retain(|(session, _), _| *session != id);
}
