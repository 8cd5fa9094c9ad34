//! The contract of a backend, kept by the in-memory one that the engine's tests use.

use std::sync::Arc;

use quipu_core::Backend;
use quipu_testkit::InMemoryBackend;
use quipu_testkit::conformance::Fixture;

fn open() -> Fixture {
    let backend = Arc::new(InMemoryBackend::default());
    let same = Arc::clone(&backend);
    let again = move || -> Arc<dyn Backend> { Arc::new(same.reopened()) };
    Fixture::new(backend, again, ())
}

quipu_testkit::conformance_tests!(open);
