//! The suite that the crate of every backend runs too.

use std::sync::Arc;

use quipu_core::Backend;
use quipu_testkit::InMemoryBackend;
use quipu_testkit::conformance::Fixture;

fn open() -> Fixture {
    let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let again = Arc::clone(&backend);
    Fixture::new(backend, move || Arc::clone(&again), ())
}

quipu_testkit::knowledge_tests!(open);
