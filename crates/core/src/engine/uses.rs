//! When memories were last read, for stores that delete unused ones, and when keys were last used.
//!
//! That a memory was read matters weeks later, when it would expire. So a read only queues a hint in
//! memory, and long-running processes write the queue from time to time. Writing on every read would
//! make readers wait for the write lock, and fail on a full disk. Hints that a crash loses make a memory
//! expire earlier by at most the interval between two writes, and a key look less used than it is.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::backend::Reader;
use crate::model::{Key, KeyId, Memory, MemoryId, StoreId, Timestamp};

use super::Engine;

/// A read is recorded at most this often per memory, and only in stores that delete unused memories.
const TOUCH_PERIOD: Duration = Duration::from_hours(1);

/// The use of a key is recorded at most this often.
const KEY_USE_PERIOD: Duration = Duration::from_mins(1);

/// How many hints are queued; further ones are dropped. Whoever reads this many memories within seconds
/// reads them all, and will do so again.
const USES_MAX: usize = 20_000;

/// How many hints one transaction writes, so that other writers get their turn.
const BATCH: usize = 500;

/// Reads and uses of keys that have not been recorded yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    memories: Mutex<HashMap<(StoreId, MemoryId), Timestamp>>,
    keys: Mutex<HashMap<KeyId, Timestamp>>,
}

impl Uses {
    fn add(&self, store: StoreId, memory: MemoryId, at: Timestamp) {
        add(&self.memories, (store, memory), at);
    }

    fn add_key(&self, key: KeyId, at: Timestamp) {
        add(&self.keys, key, at);
    }

    fn is_empty(&self) -> bool {
        lock(&self.memories).is_empty() && lock(&self.keys).is_empty()
    }
}

fn lock<K>(uses: &Mutex<HashMap<K, Timestamp>>) -> MutexGuard<'_, HashMap<K, Timestamp>> {
    uses.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add<K: Eq + Hash>(uses: &Mutex<HashMap<K, Timestamp>>, used: K, at: Timestamp) {
    let mut uses = lock(uses);
    if uses.len() < USES_MAX {
        uses.insert(used, at);
    }
}

fn take<K>(uses: &Mutex<HashMap<K, Timestamp>>) -> Vec<(K, Timestamp)> {
    std::mem::take(&mut *lock(uses)).into_iter().collect()
}

impl Engine {
    /// Reads a memory and records the use. Every door reads texts through this.
    pub(super) fn reading(
        &self,
        find: impl Fn(&dyn Reader) -> Result<Memory, Error>,
    ) -> Result<Memory, Error> {
        let (memory, noted) = self.read(|reader| {
            let memory = find(reader)?;
            let noted = reader.last_use(memory.store, memory.id)?;
            Ok((memory, noted))
        })?;
        self.note_use(&memory, noted);
        Ok(memory)
    }

    /// Queues the use of a memory, if its store deletes unused memories (`noted` is `Some`) and the last
    /// recorded use is old enough.
    pub(super) fn note_use(&self, memory: &Memory, noted: Option<Timestamp>) {
        let now = self.clock.now();
        if noted.is_some_and(|noted| is_due(noted, TOUCH_PERIOD, now)) {
            self.uses.add(memory.store, memory.id, now);
        }
    }

    /// Records that a door has served the text of a memory from a copy of its own. Whether its store
    /// deletes unused memories is looked up when the queue is written.
    pub fn note_reading(&self, store: StoreId, memory: MemoryId) {
        self.uses.add(store, memory, self.clock.now());
    }

    /// Records that a key was used. [`admit`](Self::admit) does that for keys that are presented.
    pub fn note_key_use(&self, key: KeyId) {
        self.uses.add_key(key, self.clock.now());
    }

    /// Queues the use of a key, unless it was recorded a moment ago.
    pub(super) fn note_admission(&self, key: &Key, now: Timestamp) {
        if is_use_due(key, now) {
            self.uses.add_key(key.id, now);
        }
    }

    /// Returns whether there is anything that [`write_uses`](Self::write_uses) would write.
    pub fn has_unwritten_uses(&self) -> bool {
        !self.uses.is_empty()
    }

    /// Writes the queued uses and returns how many there were. A long-running door calls it every few
    /// seconds and when it ends; if it fails, the queue is lost.
    pub fn write_uses(&self) -> Result<usize, Error> {
        let (memories, keys) = (take(&self.uses.memories), take(&self.uses.keys));
        Ok(self.write_memory_uses(&memories)? + self.write_key_uses(&keys)?)
    }

    fn write_memory_uses(&self, uses: &[((StoreId, MemoryId), Timestamp)]) -> Result<usize, Error> {
        if uses.is_empty() {
            return Ok(0);
        }
        let due = self.read(|reader| {
            let mut due = Vec::new();
            for &((store, memory), at) in uses {
                let noted = reader.last_use(store, memory)?;
                if noted.is_some_and(|noted| is_due(noted, TOUCH_PERIOD, at)) {
                    due.push((store, memory, at));
                }
            }
            Ok(due)
        })?;
        let mut due = due;
        due.sort_unstable_by_key(|(store, ..)| *store);
        for batch in due.chunks(BATCH) {
            let mut stores: Vec<_> = batch.iter().map(|(store, ..)| *store).collect();
            stores.dedup();
            self.write(|ledger| {
                ledger.writer.lock_stores(&stores)?;
                for &(store, memory, at) in batch {
                    ledger.writer.touch(store, memory, at)?;
                }
                Ok(())
            })?;
        }
        Ok(due.len())
    }

    fn write_key_uses(&self, uses: &[(KeyId, Timestamp)]) -> Result<usize, Error> {
        if uses.is_empty() {
            return Ok(0);
        }
        let due = self.read(|reader| {
            let mut due = Vec::new();
            for &(id, at) in uses {
                if used_key(reader, id, at)?.is_some() {
                    due.push((id, at));
                }
            }
            Ok(due)
        })?;
        for batch in due.chunks(BATCH) {
            self.write(|ledger| {
                batch.iter().try_for_each(|&(id, at)| {
                    // Looked up again: it must not bring back a key that was revoked meanwhile.
                    let key = used_key(ledger.reader(), id, at)?;
                    key.map_or(Ok(()), |key| ledger.writer.put_key(&key))
                })
            })?;
        }
        Ok(due.len())
    }
}

/// Returns a key as it is after its use, if that is worth recording.
fn used_key(reader: &dyn Reader, id: KeyId, at: Timestamp) -> Result<Option<Key>, Error> {
    let key = reader.key(id)?.filter(|key| is_use_due(key, at));
    Ok(key.map(|key| Key { used_at: Some(at), ..key }))
}

fn is_due(noted: Timestamp, period: Duration, now: Timestamp) -> bool {
    noted.plus(period) <= now
}

/// Returns whether a use of a key is worth recording. One far in the future is not final: the clock was
/// wrong then.
fn is_use_due(key: &Key, at: Timestamp) -> bool {
    key.used_at.is_none_or(|used_at| {
        is_due(used_at, KEY_USE_PERIOD, at) || is_due(at, KEY_USE_PERIOD, used_at)
    })
}
