//! Moves between two databases.

use std::cell::RefCell;

use quipu_postgres::PostgresBackend;
use quipu_testkit::moving::{self, Side};

use crate::cluster::Database;

#[test]
fn everything_moves_from_one_database_to_another() {
    let databases = RefCell::new(Vec::new());
    let side = || {
        let database = Database::new();
        let backend = PostgresBackend::open(&database.settings()).expect("it opens");
        databases.borrow_mut().push(database);
        Side::new(backend)
    };
    moving::check(&side, &side);
}
