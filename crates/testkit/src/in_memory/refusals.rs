//! Refusals: texts that were not stored.

use quipu_core::model::{Refusal, StoreId};

use super::State;

impl State {
    pub(super) fn refused(&self, store: StoreId, limit: usize) -> Vec<Refusal> {
        let refusals = self.refusals.iter().rev().filter(|refusal| refusal.store == store);
        refusals.take(limit).cloned().collect()
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal, kept_count: usize) {
        if !self.stores.contains_key(&refusal.store) {
            return;
        }
        self.refusals.push(refusal.clone());
        let is_own = |other: &Refusal| other.store == refusal.store;
        let count = self.refusals.iter().filter(|other| is_own(other)).count();
        let mut removed_count = count.saturating_sub(kept_count);
        self.refusals.retain(|other| {
            let is_removed = is_own(other) && removed_count > 0;
            removed_count -= usize::from(is_removed);
            !is_removed
        });
    }
}
