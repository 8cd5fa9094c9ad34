//! Changes of the maps.

use quipu_core::Error;
use quipu_core::backend::{
    Change, Commit, Event, KeyPruneRule, PruneRule, Reader as _, Sequence, Stamp, Writer,
};
use quipu_core::model::{
    CopyMade, Id as _, Key, MemoryId, MemoryPath, Receipt, Redaction, Refusal, Session, SessionId,
    Store, StoreId, Timestamp, Tombstone, VersionId, View, Workspace,
};

use super::{State, keys, sessions};

impl Writer for State {
    fn next_stamp(&mut self, now: Timestamp) -> Result<Stamp, Error> {
        let newest = self.changes.values().next_back();
        Ok(Stamp::after(newest.map(|change| (change.sequence, change.at)), now))
    }

    fn put_workspace(&mut self, workspace: &Workspace) -> Result<(), Error> {
        self.workspaces.insert(workspace.id, workspace.clone());
        Ok(())
    }

    fn put_store(&mut self, store: &Store) -> Result<(), Error> {
        self.stores.insert(store.id, store.clone());
        Ok(())
    }

    fn delete_store(&mut self, id: StoreId, at: Timestamp) -> Result<(), Error> {
        self.hide(id, at);
        Ok(())
    }

    fn restore_store(&mut self, id: StoreId) -> Result<(), Error> {
        self.show(id);
        Ok(())
    }

    fn remove_store(&mut self, id: StoreId) -> Result<(), Error> {
        self.forget(id);
        self.memories.retain(|_, memory| memory.store != id);
        self.versions.retain(|_, version| version.store != id);
        self.horizons.remove(&id);
        self.tombstones.retain(|(store, _)| *store != id);
        self.set_pending(id, None);
        for key in self.keys.values_mut() {
            key.stores.iter_mut().for_each(|stores| stores.retain(|store| *store != id));
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let version = &commit.version;
        self.versions.insert(version.id, version.clone());
        if let Some(before) = &commit.before {
            self.memories.remove(&(before.store, before.path.clone()));
        }
        match &commit.after {
            Some(after) => {
                self.memories.insert((after.store, after.path.clone()), after.clone());
            }
            None => {
                self.touched.remove(&version.memory);
            }
        }
        self.record(&Change {
            sequence: commit.sequence,
            transaction: commit.transaction,
            at: version.created_at,
            store: version.store,
            event: Event::Version(version.id),
        })
    }

    fn redact(
        &mut self,
        store: StoreId,
        redactions: &[(VersionId, Redaction)],
    ) -> Result<(), Error> {
        for (id, redaction) in redactions {
            let version = self.versions.get_mut(id).filter(|version| version.store == store);
            let Some(version) = version else { continue };
            let path = version.path.as_ref().map(MemoryPath::as_str);
            self.refusals.retain(|it| it.store != store || Some(it.path.as_str()) != path);
            version.path = None;
            version.content = None;
            version.hash = None;
            version.size_bytes = None;
            version.reason = None;
            version.redaction = Some(redaction.clone());
            let memory = version.memory;
            self.set_pending(store, Some(memory));
        }
        Ok(())
    }

    fn touch(&mut self, store: StoreId, memory: MemoryId, at: Timestamp) -> Result<(), Error> {
        if self.memory(store, memory, View::Basic)?.is_some() {
            self.touched.insert(memory, at);
        }
        Ok(())
    }

    fn prune(
        &mut self,
        rule: &PruneRule,
        store: StoreId,
        versions: &[VersionId],
    ) -> Result<usize, Error> {
        let given_up = self.given_up(rule);
        let pruned = versions.iter().filter(|id| given_up.contains(&(store, **id)));
        let pruned: Vec<_> = pruned.copied().collect();
        for id in &pruned {
            self.remove_version(*id);
        }
        Ok(pruned.len())
    }

    fn trim_changes(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        let newest = self.newest_change()?.0;
        let old = self.changes.values();
        let old = old.filter(|change| change.sequence != newest && change.at < before);
        let trimmed: Vec<_> = old.map(|change| change.sequence).take(limit).collect();
        self.changes.retain(|sequence, _| !trimmed.contains(sequence));
        Ok(trimmed.len())
    }

    fn put_refusal(&mut self, refusal: &Refusal, kept_count: usize) -> Result<(), Error> {
        self.refuse(refusal, kept_count);
        Ok(())
    }

    fn remove_refusal(&mut self, refusal: &Refusal) -> Result<(), Error> {
        self.refusals.retain(|it| it != refusal);
        Ok(())
    }

    fn require_erasure(&mut self, store: StoreId) -> Result<(), Error> {
        self.set_pending(store, Some(MemoryId::from_bits(0)));
        Ok(())
    }

    fn put_tombstone(&mut self, store: StoreId, tombstone: &Tombstone) -> Result<(), Error> {
        self.bury(store, tombstone);
        Ok(())
    }

    fn put_receipt(&mut self, receipt: &Receipt) -> Result<(), Error> {
        self.receipts.insert(receipt.id, receipt.clone());
        Ok(())
    }

    fn put_copy_made(&mut self, copy: &CopyMade, kept_count: usize) -> Result<(), Error> {
        self.note_copy(copy, kept_count);
        Ok(())
    }

    fn remove_copy_made(&mut self, copy: &CopyMade) -> Result<(), Error> {
        self.copies_made.retain(|it| it != copy);
        Ok(())
    }

    fn put_session(&mut self, session: &Session) -> Result<(), Error> {
        let parent = session.key.and_then(|key| self.keys.get(&key)).and_then(|key| key.parent);
        let owners = session.key.into_iter().chain(parent);
        self.session_keys.extend(owners.map(|key| (key, session.id)));
        self.sessions.insert(session.id, session.clone());
        Ok(())
    }

    fn remove_session(&mut self, id: SessionId) -> Result<(), Error> {
        sessions::remove(self, id);
        Ok(())
    }

    fn prune_sessions(&mut self, before: Timestamp, limit: usize) -> Result<usize, Error> {
        Ok(sessions::prune(self, before, limit))
    }

    fn put_key(&mut self, key: &Key) -> Result<(), Error> {
        self.keys.insert(key.id, key.clone());
        Ok(())
    }

    fn prune_keys(&mut self, rule: &KeyPruneRule, limit: usize) -> Result<usize, Error> {
        Ok(keys::prune(self, rule, limit))
    }

    fn put_cursor(&mut self, name: &str, sequence: Sequence) -> Result<(), Error> {
        self.cursors.insert(name.to_owned(), sequence);
        Ok(())
    }

    fn record(&mut self, change: &Change) -> Result<(), Error> {
        self.changes.insert(change.sequence, change.clone());
        Ok(())
    }
}
