//! A backend that does what the contract allows and the in-memory one never does.

use std::fmt;
use std::sync::{Arc, Mutex};

use quipu_core::backend::{Backend, Purpose, ReadWork, WriteWork};
use quipu_core::{Error, ErrorKind};

/// Something that happens in the middle of somebody else's call.
type Interruption = Box<dyn FnOnce() + Send>;

/// What a [`QuirkyBackend`] does differently.
pub(crate) enum Quirk {
    /// Nothing can be read without I/O.
    NeedsDisk,
    /// All work runs twice, as in a transaction that is retried.
    RunsTwice,
    /// Before a chosen write begins, somebody else acts.
    Interrupts(Mutex<Option<(usize, Interruption)>>),
}

/// A backend with a [`Quirk`].
pub(crate) struct QuirkyBackend {
    inner: Arc<dyn Backend>,
    quirk: Quirk,
}

impl QuirkyBackend {
    pub(crate) fn new(inner: Arc<dyn Backend>, quirk: Quirk) -> Arc<Self> {
        Arc::new(Self { inner, quirk })
    }

    /// Lets somebody else act before the `number`-th write from now.
    pub(crate) fn interrupt(&self, number: usize, interruption: impl FnOnce() + Send + 'static) {
        if let Quirk::Interrupts(next) = &self.quirk {
            *next.lock().unwrap() = Some((number, Box::new(interruption)));
        }
    }

    /// Returns the interruption, if its write has come.
    fn interruption(next: &Mutex<Option<(usize, Interruption)>>) -> Option<Interruption> {
        let mut next = next.lock().unwrap();
        let (number, interruption) = next.take()?;
        if number == 1 {
            return Some(interruption);
        }
        *next = Some((number - 1, interruption));
        None
    }
}

impl fmt::Debug for QuirkyBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

impl Backend for QuirkyBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        if matches!(self.quirk, Quirk::RunsTwice) {
            drop(self.inner.read(work));
        }
        self.inner.read(work)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        if matches!(self.quirk, Quirk::NeedsDisk) { None } else { self.inner.read_now(work) }
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        match &self.quirk {
            Quirk::NeedsDisk => {}
            Quirk::RunsTwice => {
                let rolled_back = self.inner.write(purpose, &mut |writer| {
                    work(writer)?;
                    Err(Error::new(ErrorKind::StorageBusy, "the transaction is retried"))
                });
                assert!(rolled_back.is_err());
            }
            Quirk::Interrupts(next) => {
                if let Some(interrupt) = Self::interruption(next) {
                    interrupt();
                }
            }
        }
        self.inner.write(purpose, work)
    }

    quipu_testkit::forward_to_inner!();
}
