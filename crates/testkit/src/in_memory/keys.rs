//! Derived keys, and which of them are pruned.

use quipu_core::backend::KeyPruneRule;
use quipu_core::model::{Key, KeyId, KeyKind, WorkspaceId};

use super::State;

pub(super) fn derived(state: &State, workspace: WorkspaceId, parent: Option<KeyId>) -> Vec<Key> {
    let derived = state
        .keys
        .values()
        .filter(|key| key.workspace == workspace && key.parent == parent && key.is_derived());
    derived.cloned().collect()
}

fn has_ended(key: &Key, rule: &KeyPruneRule) -> bool {
    let before = match key.kind {
        KeyKind::Browser => rule.browsers_before,
        KeyKind::Key | KeyKind::Link | KeyKind::Code | KeyKind::Refresh => rule.before,
    };
    [key.revoked_at, key.expires_at].into_iter().flatten().any(|ended_at| ended_at < before)
}

fn is_needed(state: &State, key: &Key) -> bool {
    let actor = key.actor();
    let is_named = state.versions.values().any(|version| {
        version.actor == actor
            || version.redaction.as_ref().is_some_and(|redaction| redaction.by == actor)
    });
    let is_superseded = key.kind == KeyKind::Browser
        && derived(state, key.workspace, key.parent)
            .iter()
            .any(|newer| newer.kind == key.kind && newer.name == key.name && newer.id > key.id);
    is_named && !is_superseded
}

/// Removes derived keys that have ended, and returns how many.
pub(super) fn prune(state: &mut State, rule: &KeyPruneRule, limit: usize) -> usize {
    let ended = state
        .keys
        .values()
        .filter(|key| key.is_derived() && has_ended(key, rule) && !is_needed(state, key));
    let pruned: Vec<_> = ended.take(limit).map(|key| key.id).collect();
    state.keys.retain(|id, _| !pruned.contains(id));
    pruned.len()
}
