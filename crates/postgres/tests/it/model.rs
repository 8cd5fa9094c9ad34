//! Random operations on the engine over PostgreSQL and on the naive reference.

use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::Backend;
use quipu_postgres::PostgresBackend;
use quipu_testkit::{knowledge, model, past};

use crate::cluster::Database;

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_engine_over_postgresql_does_what_the_reference_says(
        operations in model::operations(40),
    ) {
        let database = Database::new();
        let open = || -> Arc<dyn Backend> {
            Arc::new(PostgresBackend::open(&database.settings()).expect("it opens"))
        };
        model::run(&open, &operations);
    }

    #[test]
    fn searches_over_postgresql_find_what_the_naive_index_finds(steps in knowledge::steps(30)) {
        let database = Database::new();
        let backend = PostgresBackend::open(&database.settings()).expect("it opens");
        knowledge::compare(Arc::new(backend), &steps);
    }
}

/// `QUIPU_CASES=100000` runs as many operations, and compares 1,000 moments.
#[test]
fn the_past_over_postgresql_is_what_a_replayed_log_says() {
    let operations_count = usize::try_from(cases()).expect("it is small").max(1_500);
    let size = past::Size { operations_count, moments_count: operations_count.min(100_000) / 100 };
    let database = Database::new();
    let backend = PostgresBackend::open(&database.settings()).expect("it opens");
    assert!(past::run(Arc::new(backend), 1, size) > 0, "no moment is above the horizon");
}

/// Returns how many lists of operations to try; `QUIPU_CASES` asks for more.
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by the environment")]
fn cases() -> u32 {
    std::env::var("QUIPU_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12)
}
