//! Calls that never block, or at least never block on writers.
//!
//! The engine is synchronous, and most of its calls may block on the disk or on other writers. A
//! server that answers many clients with a few threads must not block those threads. So it first
//! tries a call on an engine that cannot block; if that is not enough, on one that cannot write, on a
//! thread shared by readers only; and only if `work` has to write, on a thread that may block on
//! other writers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::{
    Backend, Condition, Erasure, PendingErasure, Purpose, ReadWork, Sequence, WatchWork, WriteWork,
};
use crate::model::Timestamp;
use crate::{Error, ErrorKind};

use super::Engine;

impl Engine {
    /// Runs `work` with an engine that never blocks; `None` if `work` needs one that may.
    ///
    /// Nothing was written then, so `work` can be run again.
    pub fn without_waiting<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.restricted(Reads::Recalled, work)
    }

    /// Runs `work` with an engine that reads and never writes, so it never blocks on a writer; `None` if
    /// `work` has to write.
    ///
    /// Nothing was written then, so `work` can be run again.
    pub fn without_writing<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.restricted(Reads::Any, work)
    }

    fn restricted<T>(
        &self,
        reads: Reads,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let restriction = Restriction { reads, has_refused: Arc::default() };
        let backend =
            Restricted { inner: Arc::clone(&self.backend), restriction: restriction.clone() };
        let worked = work(&Self {
            backend: Arc::new(backend),
            restriction: Some(restriction.clone()),
            ..self.clone()
        });
        // `work` may have swallowed the refusal, but its result still depends on it.
        (!restriction.has_refused()).then_some(worked)
    }

    /// Fails if this engine must not block. Code that does I/O of its own calls this first.
    pub fn require_blocking(&self) -> Result<(), Error> {
        match &self.restriction {
            Some(restriction) if restriction.reads == Reads::Recalled => Err(restriction.refusal()),
            Some(_) | None => Ok(()),
        }
    }
}

/// Records whether a restricted engine has refused a call.
#[derive(Clone, Debug)]
pub(super) struct Restriction {
    reads: Reads,
    has_refused: Arc<AtomicBool>,
}

impl Restriction {
    fn refusal(&self) -> Error {
        self.has_refused.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::StorageUnavailable, "this engine neither writes nor waits")
    }

    fn has_refused(&self) -> bool {
        self.has_refused.load(Ordering::Relaxed)
    }
}

/// What a restricted engine may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// What needs neither a lock nor the disk.
    Recalled,
    /// Everything.
    Any,
}

/// A backend that refuses all calls that might block, or that might block on writers.
#[derive(Debug)]
struct Restricted {
    inner: Arc<dyn Backend>,
    restriction: Restriction,
}

impl Restricted {
    fn refused<T>(&self) -> Result<T, Error> {
        Err(self.restriction.refusal())
    }
}

impl Backend for Restricted {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        match self.restriction.reads {
            Reads::Recalled => self.read_now(work).unwrap_or_else(|| self.refused()),
            Reads::Any => self.inner.read(work),
        }
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, _: Purpose, _: &mut WriteWork<'_>) -> Result<(), Error> {
        self.refused()
    }

    fn wait(&self, _: Sequence, _: Duration) -> Result<Sequence, Error> {
        self.refused()
    }

    fn watch(&self, _: Duration, _: &mut WatchWork<'_>) -> Result<(), Error> {
        self.refused()
    }

    fn erase(&self) -> Result<Erasure, Error> {
        self.refused()
    }

    fn unreachable(&self) -> Result<Vec<String>, Error> {
        self.refused()
    }

    fn note_erased(&self, _: &[PendingErasure]) -> Result<(), Error> {
        self.refused()
    }

    fn condition(&self) -> Result<Condition, Error> {
        match self.restriction.reads {
            Reads::Recalled => self.refused(),
            Reads::Any => self.inner.condition(),
        }
    }

    fn clock(&self) -> Result<Option<Timestamp>, Error> {
        self.refused()
    }

    fn lease(&self, _: &str, _: Duration) -> Result<bool, Error> {
        self.refused()
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.refused()
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.refused()
    }

    fn backup(&self, _: &Path) -> Result<(), Error> {
        self.refused()
    }

    fn compact(&self) -> Result<(), Error> {
        self.refused()
    }

    fn close(&self) -> Result<(), Error> {
        self.refused()
    }
}
