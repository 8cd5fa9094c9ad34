//! Waiting for the write lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_core::backend::{Backend, Purpose, ReadWork, WriteWork};
use quipu_core::model::StorePolicy;
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_mount::sync::MassDeletion;
use quipu_testkit::{InMemoryBackend, forward_to_inner};

use crate::support::fixture_over;

/// A backend of a process that was stopped while it waited: a write fails if it is the first, or the one
/// before has succeeded.
#[derive(Debug, Default)]
struct StoppedBackend {
    inner: InMemoryBackend,
    is_stopping: AtomicBool,
    has_waited: AtomicBool,
}

impl Backend for StoppedBackend {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(work)
    }

    fn read_now(&self, work: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        self.inner.read_now(work)
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let has_waited = self.has_waited.fetch_not(Ordering::Relaxed);
        if self.is_stopping.load(Ordering::Relaxed) && !has_waited {
            return Err(Error::new(ErrorKind::StorageBusy, "waited in vain"));
        }
        self.inner.write(purpose, work)
    }

    forward_to_inner!();
}

#[test]
fn a_sync_that_was_stopped_goes_on() {
    let backend = Arc::new(StoppedBackend::default());
    let fixture =
        fixture_over(Arc::clone(&backend) as _, StorePolicy::default(), Limits::default());
    let sync = || {
        backend.has_waited.store(false, Ordering::Relaxed);
        backend.is_stopping.store(true, Ordering::Relaxed);
        let report = fixture.sync_with(MassDeletion::Allow);
        backend.is_stopping.store(false, Ordering::Relaxed);
        assert_eq!(report.unwrap().failed, []);
    };
    fixture.write("/tea.md", "green");
    sync();
    assert_eq!(fixture.text("/tea.md").as_deref(), Some("green"));
    fixture.write("/tea.md", "black tea");
    sync();
    assert_eq!(fixture.text("/tea.md").as_deref(), Some("black tea"));
    std::fs::remove_file(fixture.file("/tea.md")).unwrap();
    sync();
    assert_eq!(fixture.text("/tea.md"), None);
    assert_eq!(fixture.versions().len(), 3);
}
