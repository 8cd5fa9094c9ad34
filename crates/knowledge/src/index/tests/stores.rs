use proptest::prelude::*;
use quipu_core::backend::Sequence;
use quipu_core::model::Timestamp;
use rusqlite::Connection;

use super::super::error::IndexError;
use super::super::file::SCHEMA;
use super::super::segment::Totals;
use super::super::store_rows::{
    Cursor, StoreRow, add_store, purged, put_store, remove_store, store, totals_from_bytes,
    totals_to_bytes,
};
use super::store_id;

fn connection() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
}

fn totals() -> impl Strategy<Value = Totals> {
    let number = || prop_oneof![0_u64..200, any::<u64>()];
    ([number(), number(), number()], [number(), number(), number()])
        .prop_map(|(counts, lengths)| Totals { counts, lengths })
}

proptest! {
    #[test]
    fn totals_come_back(totals in totals()) {
        let bytes = totals_to_bytes(&totals);
        prop_assert_eq!(totals_from_bytes(&bytes), Ok(totals));
        for end in 0..bytes.len() {
            prop_assert!(totals_from_bytes(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn a_row_comes_back(
        sequence in 0..i64::MAX as u64,
        at in any::<i64>(),
        forgotten in 0..i64::MAX as u64,
        totals in totals(),
    ) {
        let connection = connection();
        let row = StoreRow {
            cursor: Cursor { sequence: Sequence(sequence), at: Timestamp::from_micros(at) },
            purged: Sequence(forgotten),
            totals,
            ..add_store(&connection, store_id(5), Sequence(1)).unwrap()
        };
        put_store(&connection, &row).unwrap();
        prop_assert_eq!(store(&connection, store_id(5)).unwrap(), Some(row));
        prop_assert_eq!(purged(&connection, row.num).unwrap(), Sequence(forgotten));
    }
}

#[test]
fn a_new_store_is_empty_and_refuses_what_was_read_before() {
    let connection = connection();
    let row = add_store(&connection, store_id(1), Sequence(42)).unwrap();
    assert_eq!(store(&connection, store_id(1)).unwrap(), Some(row));
    assert_eq!(
        (row.cursor, row.purged, row.totals),
        (Cursor::START, Sequence(42), Totals::default())
    );
    assert!(!row.is_removed());
    assert_eq!(store(&connection, store_id(2)).unwrap(), None);
}

#[test]
fn a_removed_store_takes_nothing_and_has_no_place_in_the_feed() {
    let connection = connection();
    let row = add_store(&connection, store_id(1), Sequence(42)).unwrap();
    let removed = row.removed();
    assert!(removed.is_removed());
    put_store(&connection, &removed).unwrap();
    let found = store(&connection, store_id(1)).unwrap().unwrap();
    assert!(found.is_removed(), "the mark survives the file, where numbers are signed");
    assert_eq!((found.cursor, found.num), (Cursor::START, row.num));
    assert_eq!(purged(&connection, row.num).unwrap(), StoreRow::REMOVED);
    remove_store(&connection, row.num).unwrap();
    assert_eq!(store(&connection, store_id(1)).unwrap(), None);
    assert!(matches!(purged(&connection, row.num), Err(IndexError::Outdated)));
}

/// The same id under two numbers would be two indexes of one store.
#[test]
fn a_store_has_one_row() {
    let connection = connection();
    let first = add_store(&connection, store_id(1), Sequence(1)).unwrap();
    assert!(matches!(add_store(&connection, store_id(1), Sequence(1)), Err(IndexError::Damaged)));
    assert_eq!(store(&connection, store_id(1)).unwrap(), Some(first));
}

#[test]
fn every_number_of_a_store_is_sealed() {
    for change in [
        "sequence = sequence + 1",
        "at = at + 1",
        "purged = purged + 1",
        "num = num + 1",
        "sequence = -1",
        "purged = -1",
        "totals = x''",
        "totals = x'000000000000'",
        "totals = substr(totals, 1, length(totals) - 1)",
    ] {
        let connection = connection();
        add_store(&connection, store_id(1), Sequence(1)).unwrap();
        connection.execute(&format!("UPDATE stores SET {change}"), []).unwrap();
        let read = store(&connection, store_id(1));
        assert!(matches!(read, Err(IndexError::Damaged)), "{change}: {read:?}");
    }
}

#[test]
fn rows_of_two_stores_in_each_others_place_are_damage() {
    let connection = connection();
    add_store(&connection, store_id(1), Sequence(1)).unwrap();
    add_store(&connection, store_id(2), Sequence(1)).unwrap();
    let swapped = connection.execute_batch(
        "CREATE TEMP TABLE swap AS SELECT num, totals FROM stores;
        UPDATE stores SET totals = (SELECT totals FROM swap WHERE swap.num <> stores.num);",
    );
    swapped.unwrap();
    for number in [1, 2] {
        assert!(matches!(store(&connection, store_id(number)), Err(IndexError::Damaged)));
    }
}
