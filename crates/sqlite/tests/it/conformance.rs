//! The contract that every backend keeps.

use std::sync::Arc;

use quipu_core::Backend;
use quipu_sqlite::{OpenMode, SqliteBackend};
use quipu_testkit::conformance::Fixture;

fn open() -> Fixture {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let path = directory.path().to_owned();
    let open = move || -> Arc<dyn Backend> {
        Arc::new(SqliteBackend::open(&path, OpenMode::Create).expect("it opens"))
    };
    Fixture::new(open(), open, directory)
}

quipu_testkit::conformance_tests!(open);

mod knowledge {
    use super::open;

    quipu_testkit::knowledge_tests!(open);
}
