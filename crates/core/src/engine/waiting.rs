//! Calls that wait for nothing, or at least for no writer.
//!
//! The engine is synchronous, and most of its calls may wait for the disk or for other writers. A
//! server that answers many clients with a few threads must not let them wait there. So it first
//! tries a call on an engine that cannot wait; if that is not enough, on one that cannot write, in a
//! thread that only readers share; and only if `work` has to write, in a thread that may wait for
//! other writers for as long as it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::{Backend, LookWork, ReadWork, Sequence, WriteWork};
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
        self.restricted(Reads::Recalled, work)
    }

    /// Runs `work` with an engine that reads and never writes, so it waits for no writer; `None` if
    /// `work` has to write.
    ///
    /// Nothing is written meanwhile, so `work` can be run again.
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
        let restriction = Restriction::default();
        let backend = Restricted {
            inner: Arc::clone(&self.backend),
            reads,
            restriction: restriction.clone(),
        };
        let worked = work(&Self {
            backend: Arc::new(backend),
            // The indexer of another thread holds its turn while it waits for the write lock.
            index_turn: Arc::default(),
            restriction: Some(restriction.clone()),
            ..self.clone()
        });
        // Whatever became of the error inside `work`, its result rests on a refusal.
        (!restriction.has_refused()).then_some(worked)
    }

    /// Fails if this engine cannot write, before the work is done that a write would need.
    pub(super) fn require_writing(&self) -> Result<(), Error> {
        match &self.restriction {
            Some(restriction) => Err(restriction.refusal()),
            None => Ok(()),
        }
    }
}

/// Remembers whether a restricted engine was asked for more than it may do.
#[derive(Clone, Debug, Default)]
pub(super) struct Restriction(Arc<AtomicBool>);

impl Restriction {
    fn refusal(&self) -> Error {
        self.0.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::StorageUnavailable, "this engine neither writes nor waits")
    }

    fn has_refused(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a restricted engine may read.
#[derive(Clone, Copy, Debug)]
enum Reads {
    /// What needs neither a lock nor the disk.
    Recalled,
    /// Everything.
    Any,
}

/// A backend that refuses whatever might wait for a writer, or at all.
#[derive(Debug)]
struct Restricted {
    inner: Arc<dyn Backend>,
    reads: Reads,
    restriction: Restriction,
}

impl Restricted {
    fn refused<T>(&self) -> Result<T, Error> {
        Err(self.restriction.refusal())
    }
}

impl Backend for Restricted {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        match self.reads {
            Reads::Recalled => self.read_now(work).unwrap_or_else(|| self.refused()),
            Reads::Any => self.inner.read(work),
        }
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, _: &mut WriteWork<'_>) -> Result<(), Error> {
        self.refused()
    }

    fn write_derived(&self, _: &mut WriteWork<'_>) -> Result<(), Error> {
        self.refused()
    }

    fn wait(&self, _: Sequence, _: Duration) -> Result<Sequence, Error> {
        self.refused()
    }

    fn watch(&self, _: Duration, _: &mut LookWork<'_>) -> Result<(), Error> {
        self.refused()
    }

    fn erase(&self) -> Result<(), Error> {
        self.refused()
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.refused()
    }

    fn verify_index(&self) -> Result<Vec<String>, Error> {
        self.refused()
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.refused()
    }
}
