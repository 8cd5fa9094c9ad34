use proptest::prelude::*;
use quipu_core::model::Id as _;
use rusqlite::Connection;

use super::super::error::IndexError;
use super::super::file::SCHEMA;
use super::super::note_rows::{each_note, note, put_note, remove_note, remove_notes};
use super::super::segment::Totals;
use super::memory;

fn connection() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
}

fn totals(number: u64) -> Totals {
    Totals { counts: [1, number, 0], lengths: [number, 0, number] }
}

/// Returns the memories of a store, in the order of the listing.
fn listed(connection: &Connection, store: i64) -> Vec<u128> {
    let mut listed = Vec::new();
    let each = each_note(connection, store, |memory, _| {
        listed.push(memory.bits());
        Ok(true)
    });
    each.unwrap();
    listed
}

proptest! {
    #[test]
    fn a_card_comes_back_with_its_totals(
        card in prop::collection::vec(any::<u8>(), 0..300),
        number in any::<u64>(),
        store in any::<i64>(),
    ) {
        let connection = connection();
        put_note(&connection, store, memory(7), &totals(number), &card).unwrap();
        let found = note(&connection, store, memory(7)).unwrap().unwrap();
        prop_assert_eq!((found.card, found.totals), (card, totals(number)));
    }

    #[test]
    fn notes_are_listed_by_id(numbers in prop::collection::btree_set(any::<u32>(), 0..30)) {
        let connection = connection();
        for number in numbers.iter().rev() {
            put_note(&connection, 1, memory(*number), &totals(1), b"card").unwrap();
        }
        let expected: Vec<_> = numbers.iter().map(|number| u128::from(*number)).collect();
        prop_assert_eq!(listed(&connection, 1), expected);
    }
}

#[test]
fn a_note_belongs_to_its_store() {
    let connection = connection();
    put_note(&connection, 1, memory(1), &totals(1), b"one").unwrap();
    put_note(&connection, 2, memory(1), &totals(2), b"two").unwrap();
    put_note(&connection, 2, memory(2), &totals(3), b"three").unwrap();
    assert_eq!(note(&connection, 1, memory(1)).unwrap().unwrap().card, b"one");
    assert_eq!(note(&connection, 2, memory(1)).unwrap().unwrap().card, b"two");
    assert!(note(&connection, 1, memory(2)).unwrap().is_none());
    remove_note(&connection, 2, memory(1)).unwrap();
    assert_eq!((listed(&connection, 1), listed(&connection, 2)), (vec![1], vec![2]));
    remove_note(&connection, 2, memory(1)).unwrap();
}

#[test]
fn writing_a_note_again_replaces_it() {
    let connection = connection();
    put_note(&connection, 1, memory(1), &totals(1), b"old").unwrap();
    put_note(&connection, 1, memory(1), &totals(2), b"new").unwrap();
    let found = note(&connection, 1, memory(1)).unwrap().unwrap();
    assert_eq!((found.card.as_slice(), found.totals), (&b"new"[..], totals(2)));
    assert_eq!(listed(&connection, 1), [1]);
}

#[test]
fn notes_are_removed_in_steps() {
    let connection = connection();
    (0..5).for_each(|it| put_note(&connection, 1, memory(it), &totals(1), b"").unwrap());
    put_note(&connection, 2, memory(1), &totals(1), b"").unwrap();
    let mut left = Vec::new();
    while remove_notes(&connection, 1, 2).unwrap() {
        left.push(listed(&connection, 1).len());
    }
    assert_eq!(left, [3, 1, 0]);
    assert_eq!(listed(&connection, 2), [1]);
}

#[test]
fn changed_notes_are_damage_however_they_are_read() {
    for change in [
        "card = x''",
        "card = CAST(x'00' || card AS BLOB)",
        "card = CAST(card || x'00' AS BLOB)",
        "totals = x'010101010101'",
        "totals = x''",
        "store = 2",
        "memory = x'00000000000000000000000000000009'",
        "memory = x'01'",
    ] {
        let connection = connection();
        put_note(&connection, 1, memory(1), &totals(1), b"card").unwrap();
        connection.execute(&format!("UPDATE notes SET {change}"), []).unwrap();
        for (store, number) in [(1, 1), (2, 1), (1, 9)] {
            let read = note(&connection, store, memory(number));
            assert!(!matches!(read, Ok(Some(_))), "{change}");
        }
        let each = |store| each_note(&connection, store, |_, _| Ok(true));
        let is_damaged = |store| matches!(each(store), Err(IndexError::Damaged));
        assert!(is_damaged(1) || is_damaged(2), "{change}");
    }
}

#[test]
fn an_error_of_the_visitor_is_passed_on() {
    let connection = connection();
    (0..3).for_each(|it| put_note(&connection, 1, memory(it), &totals(1), b"").unwrap());
    let mut seen = 0;
    let each = each_note(&connection, 1, |_, _| {
        seen += 1;
        Err(IndexError::Outdated)
    });
    assert!(matches!(each, Err(IndexError::Outdated)));
    assert_eq!(seen, 1);
}
