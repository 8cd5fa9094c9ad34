//! Transactions and waiting.

use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::{
    Backend, Condition, Erasure, LookWork, PendingErasure, Purpose, ReadWork, Sequence, WriteWork,
};

use super::{InMemoryBackend, State};

impl Backend for InMemoryBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        let snapshot = self.lock().clone();
        work(&snapshot)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        Some(self.read(work))
    }

    fn write(&self, _: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let mut state = self.lock();
        let mut changed = state.clone();
        work(&mut changed)?;
        changed.commits += 1;
        *state = changed;
        self.changed.notify_all();
        Ok(())
    }

    fn wait(&self, seen: Sequence, patience: Duration) -> Result<Sequence, Error> {
        let newest = |state: &State| state.changes.keys().next_back().copied().unwrap_or_default();
        let nothing_new = |state: &mut State| newest(state) <= seen;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, nothing_new);
        Ok(newest(&waited.unwrap_or_else(PoisonError::into_inner).0))
    }

    fn watch(&self, patience: Duration, look: &mut LookWork<'_>) -> Result<(), Error> {
        let deadline = Instant::now() + patience;
        loop {
            let commits = self.lock().commits;
            let left = deadline.saturating_duration_since(Instant::now());
            if look()? || left.is_zero() {
                return Ok(());
            }
            let nothing_new = |state: &mut State| state.commits == commits;
            drop(self.changed.wait_timeout_while(self.lock(), left, nothing_new));
        }
    }

    fn erase(&self) -> Result<Erasure, Error> {
        Ok(Erasure::default())
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.lock().pending_erasures.retain(|pending| !erased.contains(pending));
        Ok(())
    }

    fn condition(&self) -> Result<Condition, Error> {
        Ok(Condition::default())
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn rebuild(&self) -> Result<(), Error> {
        Ok(())
    }

    fn backup(&self, _: &Path) -> Result<(), Error> {
        Err(Error::invalid("there is no file to copy"))
    }

    fn compact(&self) -> Result<(), Error> {
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        self.changed.notify_all();
        Ok(())
    }
}
