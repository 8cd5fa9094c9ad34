//! Tombstones, receipts, and copies that were made.

use quipu_core::model::{CopyMade, Receipt, ReceiptId, StoreId, Timestamp, Tombstone, WorkspaceId};

use super::State;

impl State {
    pub(super) fn tombstones_of(&self, store: StoreId) -> Vec<Tombstone> {
        let is_visible = self.stores.contains_key(&store);
        let of_store = self.tombstones.iter().filter(|(it, _)| is_visible && *it == store);
        of_store.map(|(_, tombstone)| *tombstone).collect()
    }

    pub(super) fn bury(&mut self, store: StoreId, tombstone: &Tombstone) {
        let entry = (store, *tombstone);
        if self.stores.contains_key(&store) && !self.tombstones.contains(&entry) {
            self.tombstones.push(entry);
        }
    }

    pub(super) fn receipts_of(
        &self,
        workspace: WorkspaceId,
        before: Option<ReceiptId>,
        limit: usize,
    ) -> Vec<Receipt> {
        let selected = self.receipts.values().rev().filter(|receipt| {
            receipt.workspace == workspace && before.is_none_or(|before| receipt.id < before)
        });
        selected.take(limit).cloned().collect()
    }

    pub(super) fn copies_since(&self, workspace: WorkspaceId, since: Timestamp) -> Vec<CopyMade> {
        let is_selected = |copy: &&CopyMade| copy.workspace == workspace && copy.at >= since;
        self.copies_made.iter().filter(is_selected).cloned().collect()
    }

    pub(super) fn note_copy(&mut self, copy: &CopyMade, kept_count: usize) {
        self.copies_made.push(copy.clone());
        self.copies_made.sort_by_key(|copy| copy.at);
        let is_own = |other: &CopyMade| other.workspace == copy.workspace;
        let count = self.copies_made.iter().filter(|it| is_own(it)).count();
        let mut removed_count = count.saturating_sub(kept_count);
        self.copies_made.retain(|other| {
            let is_removed = is_own(other) && removed_count > 0;
            removed_count -= usize::from(is_removed);
            !is_removed
        });
    }
}
