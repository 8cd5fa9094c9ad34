//! Random operations on the engine and on the naive reference.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::Backend;
use quipu_testkit::{InMemoryBackend, model};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_does_what_the_reference_says(operations in model::operations(60)) {
        let backend: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
        model::run(&|| Arc::clone(&backend), &operations);
    }
}
