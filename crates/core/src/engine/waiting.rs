//! Calls that never wait.
//!
//! The engine is synchronous, and most of its calls may wait for the disk or for other writers. A
//! server that answers many clients with a few threads must not let them wait there. So it first
//! tries a call on an engine that cannot wait, and only if that is not enough, hands it to a thread
//! that may.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::{Backend, Condition, Purpose, ReadWork, Sequence, WriteWork};
use crate::{Error, ErrorKind};

use super::Engine;

impl Engine {
    /// Runs `work` with an engine that never waits; `None` if `work` needs one that may.
    ///
    /// Nothing is written meanwhile, so `work` can be run again.
    pub fn without_waiting<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let backend = Arc::new(NeverWaiting {
            inner: Arc::clone(&self.backend),
            has_refused: AtomicBool::new(false),
        });
        let shared = Arc::clone(&backend);
        let worked = work(&Self { backend: shared, ..self.clone() });
        (!backend.has_refused.load(Ordering::Relaxed)).then_some(worked)
    }
}

/// A backend that refuses whatever might wait.
#[derive(Debug)]
struct NeverWaiting {
    inner: Arc<dyn Backend>,
    has_refused: AtomicBool,
}

impl NeverWaiting {
    fn refusal(&self) -> Error {
        self.has_refused.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::StorageUnavailable, "this cannot be answered without waiting")
    }
}

impl Backend for NeverWaiting {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.read_now(work).unwrap_or_else(|| Err(self.refusal()))
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, _: Purpose, _: &mut WriteWork<'_>) -> Result<(), Error> {
        Err(self.refusal())
    }

    fn wait(&self, _: Sequence, _: Duration) -> Result<Sequence, Error> {
        Err(self.refusal())
    }

    fn erase(&self) -> Result<(), Error> {
        Err(self.refusal())
    }

    fn is_erased(&self) -> Result<bool, Error> {
        Err(self.refusal())
    }

    fn condition(&self) -> Result<Condition, Error> {
        Err(self.refusal())
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        Err(self.refusal())
    }

    fn verify_index(&self) -> Result<Vec<String>, Error> {
        Err(self.refusal())
    }

    fn rebuild(&self) -> Result<(), Error> {
        Err(self.refusal())
    }
}
