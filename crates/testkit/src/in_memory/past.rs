//! What a store held at a moment, and how far back that is known.

use std::collections::BTreeMap;

use quipu_core::backend::PruneRule;
use quipu_core::model::{MemoryId, Operation, StoreId, Timestamp, Version, VersionId, View};

use super::{State, viewed};

impl State {
    pub(super) fn held_at(&self, store: StoreId, at: Timestamp, view: View) -> Vec<Version> {
        let mut newest: BTreeMap<MemoryId, &Version> = BTreeMap::new();
        let of_store = self.versions.values().filter(|version| version.store == store);
        for version in of_store.filter(|version| version.created_at <= at) {
            newest.insert(version.memory, version);
        }
        let held = newest.into_values().filter(|it| it.operation != Operation::Deleted);
        let mut held: Vec<_> = held.cloned().collect();
        for version in &mut held {
            viewed(&mut version.content, view);
        }
        held.sort_by(|a, b| a.path.cmp(&b.path).then(a.id.cmp(&b.id)));
        held
    }

    /// Returns at most `limit` versions that the rule gives up.
    /// Returns all versions that a rule gives up.
    pub(super) fn given_up(&self, rule: &PruneRule) -> Vec<(StoreId, VersionId)> {
        let is_pruned = |version: &Version| {
            let is_alive = self.memories.values().any(|memory| memory.id == version.memory);
            let of_memory =
                || self.versions.values().filter(|other| other.memory == version.memory);
            let newer_count = of_memory().filter(|other| other.id > version.id).count();
            let newer_count = u64::try_from(newer_count).expect("a count fits");
            let is_long_gone = !is_alive && of_memory().all(|other| other.created_at < rule.before);
            version.created_at < rule.before && (is_long_gone || newer_count >= rule.keep_newest)
        };
        self.versions
            .values()
            .filter(|version| is_pruned(version))
            .map(|version| (version.store, version.id))
            .collect()
    }

    /// Removes a version, and raises the horizon of its store.
    pub(super) fn remove_version(&mut self, id: VersionId) {
        let Some(version) = self.versions.remove(&id) else { return };
        let of_memory = self.versions.values().filter(|it| it.memory == version.memory);
        let next = of_memory.map(|it| it.created_at).find(|at| *at > version.created_at);
        let horizon = self.horizons.entry(version.store).or_insert(Timestamp::MIN);
        *horizon = next.unwrap_or(version.created_at).max(*horizon);
    }
}
