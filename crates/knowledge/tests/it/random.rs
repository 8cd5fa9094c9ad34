//! Random operations, compared with an index that was built at once.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::{compare, steps};

#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn cases() -> u32 {
    let wanted = std::env::var("QUIPU_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_index_that_followed_answers_like_a_new_one(steps in steps(60)) {
        compare(Arc::new(InMemoryBackend::default()), &steps);
    }
}
