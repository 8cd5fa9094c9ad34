//! Moves between two data directories.

use quipu_sqlite::{OpenMode, SqliteBackend};
use quipu_testkit::moving::{self, Side};
use tempfile::TempDir;

#[test]
fn everything_moves_from_one_directory_to_another() {
    let directories = std::cell::RefCell::new(Vec::<TempDir>::new());
    let side = || {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let backend = SqliteBackend::open(directory.path(), OpenMode::Create).expect("it opens");
        directories.borrow_mut().push(directory);
        Side::new(backend)
    };
    moving::check(&side, &side);
}
