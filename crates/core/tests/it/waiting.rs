//! Engines that wait for nothing, or for no writer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::{
    Backend, Condition, Erasure, PendingErasure, Purpose, ReadWork, Sequence, WatchWork, WriteWork,
};
use quipu_core::model::View;
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_testkit::InMemoryBackend;

use crate::support::{actor, content, fixture, fixture_over, path};

/// A backend that answers nothing without its disk.
#[derive(Debug, Default)]
struct OnDisk {
    inner: InMemoryBackend,
}

impl Backend for OnDisk {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(work)
    }

    fn read_now(&self, _: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        None
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        self.inner.write(purpose, work)
    }

    fn wait(&self, seen: Sequence, patience: Duration) -> Result<Sequence, Error> {
        self.inner.wait(seen, patience)
    }

    fn watch(&self, patience: Duration, look: &mut WatchWork<'_>) -> Result<(), Error> {
        self.inner.watch(patience, look)
    }

    fn erase(&self) -> Result<Erasure, Error> {
        self.inner.erase()
    }

    fn note_erased(&self, erased: &[PendingErasure]) -> Result<(), Error> {
        self.inner.note_erased(erased)
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.inner.condition()
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.inner.verify()
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.inner.rebuild()
    }

    fn backup(&self, target: &Path) -> Result<(), Error> {
        self.inner.backup(target)
    }

    fn compact(&self) -> Result<(), Error> {
        self.inner.compact()
    }

    fn close(&self) -> Result<(), Error> {
        self.inner.close()
    }
}

#[test]
fn reads_that_need_the_disk_do_not_run_without_waiting() {
    let fixture = fixture_over(Arc::new(OnDisk::default()), Limits::default());
    fixture.put("/a", "green");
    let read = |engine: &Engine| engine.memory_at(fixture.store, &path("/a"), View::Full);
    assert!(fixture.engine.without_waiting(read).is_none());
    assert!(fixture.engine.without_writing(read).unwrap().is_ok());
}

#[test]
fn a_change_is_refused_by_an_engine_that_cannot_write() {
    let fixture = fixture();
    let create =
        |engine: &Engine| engine.create(&actor(), fixture.store, &path("/a"), &content("green"));
    assert!(fixture.engine.without_waiting(create).is_none());
    assert!(fixture.engine.without_writing(create).is_none());
    assert_eq!(fixture.text("/a"), None);
}

#[test]
fn a_refusal_counts_even_if_the_work_swallows_it() {
    let fixture = fixture();
    let swallow = |engine: &Engine| {
        drop(engine.create(&actor(), fixture.store, &path("/a"), &content("green")));
        Ok(())
    };
    assert!(fixture.engine.without_writing(swallow).is_none());
}
