//! Retention: pruning old versions, unused memories, deleted stores, old events, ended sessions and derived
//! keys.

use std::time::Duration;

use crate::backend::{Archived, Erasure, KeyPruneRule, PruneRule, Reader, Subject};
use crate::clock::ClockSkew;
use crate::model::{Actor, DeletedStore, Store, Timestamp};
use crate::{Error, ErrorKind};

use super::Engine;
use super::stores::all_stores;
use super::transaction::Transaction;

/// What pruning removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many old versions were removed.
    pub versions_count: usize,
    /// How many expired memories were deleted.
    pub memories_count: usize,
    /// How many deleted stores were erased.
    pub stores_count: usize,
    /// How many old events of sessions were removed.
    pub events_count: usize,
    /// How many ended sessions were removed.
    pub sessions_count: usize,
    /// How many ended derived keys were removed.
    pub keys_count: usize,
}

/// How many rows one transaction removes, so that other writers get their turn.
const BATCH: usize = 500;

/// How many changes one transaction removes from the feed.
const CHANGES_BATCH: usize = 5_000;

/// How long links, codes and tokens are kept after they have ended: long enough to notice that somebody
/// presents one again.
const ENDED_TOKENS_KEPT_FOR: Duration = Duration::from_hours(24);
/// How long the key of a browser is kept after it has ended. Anybody with a key can make as many as they like.
const ENDED_SIGN_INS_KEPT_FOR: Duration = Duration::from_hours(7 * 24);

/// A clock that is further ahead of the newest change may have jumped.
const CLOCK_GAP: Duration = Duration::from_hours(24);

impl Engine {
    /// Deletes expired memories, removes versions, sessions and derived keys that are past their retention,
    /// and erases stores that can no longer be restored; then completes any erasure that an earlier redaction could
    /// not complete.
    ///
    /// A server calls this periodically; it is also `quipu prune`.
    pub fn prune(&self) -> Result<Pruned, Error> {
        // What was read just now has not expired.
        self.write_uses()?;
        let mut pruned = Pruned::default();
        for store in self.expiring_stores()? {
            pruned.memories_count += self.expire(&store)?;
        }
        let rule = PruneRule {
            before: self.clock.now().minus(self.limits.versions_kept_for),
            // What a memory holds now is its newest version.
            keep_newest: self.limits.versions_kept_min.max(1),
        };
        pruned.versions_count = self.prune_versions(&rule)?;
        self.trim_changes(rule.before)?;
        pruned.stores_count = self.remove_deleted_stores()?;
        pruned.events_count = self.prune_events()?;
        pruned.sessions_count = self.prune_sessions()?;
        pruned.keys_count = self.prune_keys()?;
        self.erase()?;
        Ok(pruned)
    }

    /// Removes old versions. They are looked for on snapshots, so that writers wait for the removal of some of
    /// one store at a time, and not for the search through all.
    fn prune_versions(&self, rule: &PruneRule) -> Result<usize, Error> {
        let (mut pruned_count, mut place) = (0, None);
        loop {
            let page = self.read(|reader| reader.prunable(rule, place, BATCH))?;
            for of_store in page.versions.chunk_by(|one, other| one.0 == other.0) {
                let Some((store, _)) = of_store.first() else { continue };
                let ids: Vec<_> = of_store.iter().map(|(_, id)| *id).collect();
                pruned_count += self.remove(|ledger| {
                    ledger.writer.read_ahead(*store, Subject::Store)?;
                    ledger.writer.prune(rule, *store, &ids)
                })?;
            }
            place = page.next;
            if place.is_none() {
                return Ok(pruned_count);
            }
        }
    }

    /// Removes old changes from the feed.
    fn trim_changes(&self, before: Timestamp) -> Result<(), Error> {
        loop {
            let trimmed =
                self.remove(|ledger| ledger.writer.trim_changes(before, CHANGES_BATCH))?;
            if trimmed < CHANGES_BATCH {
                return Ok(());
            }
        }
    }

    fn remove_deleted_stores(&self) -> Result<usize, Error> {
        let before = self.clock.now().minus(self.limits.deleted_stores_kept_for);
        let is_due = |deleted: &DeletedStore| deleted.deleted_at <= before;
        let due = |reader: &dyn Reader| {
            let mut due = Vec::new();
            for workspace in reader.workspaces()? {
                due.extend(reader.deleted_stores(workspace.id)?.into_iter().filter(is_due));
            }
            Ok(due)
        };
        if self.read(due)?.is_empty() {
            return Ok(0);
        }
        self.remove(|ledger| {
            // Looked up again inside the transaction: one may have been restored meanwhile.
            let due = due(ledger.reader())?;
            for deleted in &due {
                ledger.writer.remove_store(deleted.store.id)?;
            }
            Ok(due.len())
        })
    }

    /// Removes old events, also those of sessions that have not ended.
    fn prune_events(&self) -> Result<usize, Error> {
        let before = self.clock.now().minus(self.limits.events_kept_for);
        let mut pruned_count = 0;
        loop {
            let removed_count =
                self.remove(|ledger| ledger.writer.prune_session_events(before, BATCH))?;
            pruned_count += removed_count;
            if removed_count < BATCH {
                return Ok(pruned_count);
            }
        }
    }

    /// Removes ended sessions. Those that a version names stay as long as the version does, so that its
    /// author can be shown by name.
    fn prune_sessions(&self) -> Result<usize, Error> {
        let before = self.clock.now().minus(self.limits.sessions_kept_for);
        let mut pruned_count = 0;
        loop {
            let removed_count =
                self.remove(|ledger| ledger.writer.prune_sessions(before, BATCH))?;
            pruned_count += removed_count;
            if removed_count < BATCH {
                return Ok(pruned_count);
            }
        }
    }

    /// Removes ended derived keys. Sign-ins stay in the list of keys for a while, so that people can look
    /// who was there; the newest of each person stays for as long as a version names it.
    fn prune_keys(&self) -> Result<usize, Error> {
        let now = self.clock.now();
        let rule = KeyPruneRule {
            before: now.minus(ENDED_TOKENS_KEPT_FOR),
            browsers_before: now.minus(ENDED_SIGN_INS_KEPT_FOR),
        };
        let mut pruned_count = 0;
        loop {
            let removed_count = self.remove(|ledger| ledger.writer.prune_keys(&rule, BATCH))?;
            pruned_count += removed_count;
            if removed_count < BATCH {
                return Ok(pruned_count);
            }
        }
    }

    /// Completes the erasures that an earlier call could not complete, and reports what was erased.
    pub fn finish_erasing(&self) -> Result<Erasure, Error> {
        self.erase()
    }

    /// Returns how far the clock is ahead of the newest change, if that is more than a day: then the data
    /// was not used for a while, or the clock has jumped. Automatic pruning waits until something is
    /// written in that case, because with a wrong clock it would remove what is not old.
    pub fn clock_gap(&self) -> Result<Option<Duration>, Error> {
        let (sequence, newest) = self.read(|reader| reader.newest_change())?;
        let now = self.clock.now();
        let is_far = sequence.0 > 0 && now > newest.plus(CLOCK_GAP);
        let micros = u64::try_from(now.as_micros() - newest.as_micros()).unwrap_or_default();
        Ok(is_far.then(|| Duration::from_micros(micros)))
    }

    /// Returns how far the clock of this host is from that of the storage, if that is so far that what is old
    /// here may not be old there. Then nothing should be pruned by it.
    pub fn clock_skew(&self) -> Result<Option<ClockSkew>, Error> {
        let before = self.clock.now();
        let Some(storage) = self.backend.clock()? else { return Ok(None) };
        let after = self.clock.now();
        // The answer is of some moment in between.
        let middle = Timestamp::from_micros(i64::midpoint(before.as_micros(), after.as_micros()));
        Ok(ClockSkew::between(middle, storage))
    }

    /// Takes or renews a lease for this process, and returns whether it has it.
    pub fn lease(&self, name: &str, duration: Duration) -> Result<bool, Error> {
        self.backend.lease(name, duration)
    }

    fn expiring_stores(&self) -> Result<Vec<Store>, Error> {
        self.read(|reader| {
            let mut stores = Vec::new();
            for workspace in reader.workspaces()? {
                stores.extend(all_stores(reader, workspace.id, Archived::Show)?);
            }
            stores.retain(|store| store.policy.expire_after_days.is_some());
            Ok(stores)
        })
    }

    fn expire(&self, store: &Store) -> Result<usize, Error> {
        let Some(unused_for) = store.policy.expire_after() else {
            return Ok(0);
        };
        let since = self.clock.now().minus(unused_for);
        let mut expired_count = 0;
        loop {
            let batch = self.clear(&Actor::expiry(), (store.id, Subject::Store), |transaction| {
                expire_batch(transaction, since)
            });
            let batch_count = match batch {
                // Somebody deleted the store meanwhile.
                Err(error) if *error.kind() == ErrorKind::NotFound => 0,
                batch => batch?,
            };
            expired_count += batch_count;
            if batch_count < BATCH {
                return Ok(expired_count);
            }
        }
    }
}

fn expire_batch(transaction: &mut Transaction<'_, '_>, since: Timestamp) -> Result<usize, Error> {
    let unused = transaction.reader().unused_memories(transaction.store.id, since, BATCH)?;
    let batch_count = unused.len();
    for memory in unused {
        transaction.delete(memory)?;
    }
    Ok(batch_count)
}
