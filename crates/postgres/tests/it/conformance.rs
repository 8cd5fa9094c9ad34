//! The contract that every backend keeps.

use std::sync::Arc;

use quipu_core::Backend;
use quipu_postgres::PostgresBackend;
use quipu_testkit::conformance::Fixture;

use crate::cluster::Database;

fn open() -> Fixture {
    let database = Database::new();
    let settings = database.settings();
    let open = move || -> Arc<dyn Backend> {
        Arc::new(PostgresBackend::open(&settings).expect("it opens"))
    };
    Fixture::new(open(), open, database)
}

quipu_testkit::conformance_tests!(open);

mod knowledge {
    use super::open;

    quipu_testkit::knowledge_tests!(open);
}
