//! Transactions and waiting.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::{
    Backend, Condition, Erasure, PendingErasure, Purpose, ReadWork, Reader as _, Sequence,
    WatchWork, WriteWork,
};

use super::{InMemoryBackend, State};

impl Backend for InMemoryBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        let snapshot = self.lock()?.clone();
        work(&snapshot)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        Some(self.read(work))
    }

    fn write(&self, _: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let mut state = self.lock()?;
        let mut changed = state.clone();
        work(&mut changed)?;
        changed.commits += 1;
        *state = changed;
        self.shared.changed.notify_all();
        Ok(())
    }

    fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let mut newest = seen;
        self.watch(timeout, &mut || {
            newest = self.lock()?.newest_change()?.0;
            Ok(newest > seen)
        })?;
        Ok(newest)
    }

    fn watch(&self, timeout: Duration, is_done: &mut WatchWork<'_>) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let commits = self.lock()?.commits;
            let remaining = deadline.saturating_duration_since(Instant::now());
            if is_done()? || remaining.is_zero() {
                return Ok(());
            }
            let is_unchanged = |state: &mut State| {
                state.commits == commits && !self.is_closed.load(Ordering::SeqCst)
            };
            drop(self.shared.changed.wait_timeout_while(self.lock()?, remaining, is_unchanged));
        }
    }

    fn erase(&self) -> Result<Erasure, Error> {
        self.lock().map(|_| Erasure::default())
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.lock()?.pending_erasures.retain(|pending| !erased.contains(pending));
        Ok(())
    }

    fn condition(&self) -> Result<Condition, Error> {
        Ok(self.lock()?.condition())
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.lock().map(|_| Vec::new())
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.lock().map(drop)
    }

    fn backup(&self, _: &Path) -> Result<(), Error> {
        Err(Error::invalid("there is no file to copy"))
    }

    fn compact(&self) -> Result<(), Error> {
        self.lock().map(drop)
    }

    fn close(&self) -> Result<(), Error> {
        // Under the lock: a waiter that has just seen the backend open must not miss the wake-up.
        let _state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl State {
    /// Counts everything; a byte of text is a byte of storage.
    fn condition(&self) -> Condition {
        let count = |count: usize| u64::try_from(count).expect("a count fits");
        Condition {
            stores_count: count(self.stores.len()),
            memories_count: count(self.memories.len()),
            versions_count: count(self.versions.len()),
            database_size_bytes: self.versions.values().filter_map(|it| it.size_bytes).sum(),
            writes_count: self.commits,
            groups_count: self.commits,
            ..Condition::default()
        }
    }
}
