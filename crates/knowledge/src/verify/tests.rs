use quipu_core::engine::Remedy;
use rusqlite::Connection;

use super::*;
use crate::fixture::Fixture;
use crate::index::{BatchBuilder, IndexError, store_row};

/// Corrupts the index, as a bug would.
fn put_wrong(fixture: &Fixture, change: impl Fn(&mut Entry)) {
    let path = quipu_core::model::MemoryPath::parse("/a.md").unwrap();
    let memory = fixture.knowledge.memory_at(fixture.store, &path, View::Full).unwrap();
    let mut entry = Entry::read(&memory, &mut Lexicon::default());
    change(&mut entry);
    let mut batch = BatchBuilder::default();
    batch.add(entry.documents, entry.card.to_bytes());
    let batch = batch.finish();
    let written = fixture.knowledge.indexer.write_file(|connection: &Connection| {
        let row = store_row(connection, fixture.store)?.ok_or(IndexError::Damaged)?;
        batch.apply(connection, fixture.store, (row.cursor, row.cursor), row.cursor.sequence)
    });
    written.unwrap();
}

fn problems(fixture: &Fixture) -> Vec<String> {
    let problems = fixture.knowledge.check().unwrap().problems;
    assert!(problems.iter().all(|problem| problem.remedy == Remedy::Rebuild), "{problems:?}");
    problems.into_iter().map(|problem| problem.message).collect()
}

/// An index of `/a.md` and `/b.md` in which the entry of the first is wrong.
fn assert_detected(change: impl Fn(&mut Entry)) {
    let fixture = Fixture::new();
    fixture.put("/a.md", "# Tea\n\ngreen\n- [fact] hot #tag\n- part_of [[Drinks]]");
    fixture.put("/b.md", "# Cups");
    assert_eq!(fixture.find("green"), ["/a.md"]);
    put_wrong(&fixture, |_| ());
    assert_eq!(problems(&fixture), Vec::<String>::new());
    put_wrong(&fixture, change);
    let problems = problems(&fixture);
    assert!(!problems.is_empty());
    fixture.knowledge.rebuild().unwrap();
    fixture.assert_sound();
}

#[test]
fn a_wrong_card_is_detected() {
    assert_detected(|entry| entry.card.title.push('s'));
    assert_detected(|entry| entry.card.names.push("sencha".to_owned()));
    assert_detected(|entry| entry.card.links.clear());
}

#[test]
fn an_extra_or_missing_word_is_detected() {
    assert_detected(|entry| drop(entry.documents.memory.words.pop()));
    assert_detected(|entry| {
        let (_, field, _) = entry.documents.memory.words[0];
        entry.documents.memory.words.push((b"mwsencha".to_vec(), field, 99));
    });
}

#[test]
fn a_moved_word_is_detected() {
    assert_detected(|entry| entry.documents.memory.words[0].2 += 50);
}

#[test]
fn a_wrong_length_or_mark_is_detected() {
    assert_detected(|entry| entry.documents.memory.length += 1);
    assert_detected(|entry| drop(entry.documents.memory.marks.pop()));
}

#[test]
fn an_extra_or_missing_observation_or_relation_is_detected() {
    assert_detected(|entry| entry.documents.observations.clear());
    assert_detected(|entry| entry.documents.relations.clear());
    assert_detected(|entry| {
        let copy = entry.documents.observations[0].clone();
        entry.documents.observations.push(copy);
    });
}

#[test]
fn wrong_totals_are_detected() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    fixture.find("tea");
    let written = fixture.knowledge.indexer.write_file(|connection| {
        let mut row = store_row(connection, fixture.store)?.ok_or(IndexError::Damaged)?;
        row.totals.lengths[0] += 1;
        crate::index::put_store(connection, &row)
    });
    written.unwrap();
    assert_eq!(problems(&fixture).len(), 1);
}

/// A memory that is gone, of which the index still has documents.
#[test]
fn an_entry_of_a_deleted_memory_is_detected() {
    let fixture = Fixture::new();
    let memory = fixture.put("/a.md", "# Tea\n\n- [fact] hot");
    let memory = fixture.knowledge.memory(fixture.store, memory.id, View::Full).unwrap();
    fixture.put("/b.md", "cups");
    let path = quipu_core::model::MemoryPath::parse("/a.md").unwrap();
    fixture.knowledge.delete_at(&crate::fixture::actor(), fixture.store, &path).unwrap();
    assert_eq!(fixture.find("cup"), ["/b.md"]);
    let Entry { card, documents } = Entry::read(&memory, &mut Lexicon::default());
    let mut batch = BatchBuilder::default();
    batch.add(documents, card.to_bytes());
    let batch = batch.finish();
    let written = fixture.knowledge.indexer.write_file(|connection: &Connection| {
        let row = store_row(connection, fixture.store)?.ok_or(IndexError::Damaged)?;
        batch.apply(connection, fixture.store, (row.cursor, row.cursor), row.cursor.sequence)
    });
    written.unwrap();
    let problems = problems(&fixture);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains(&format!("more of the memory `{}`", memory.id)), "{problems:?}");
    assert!(problems[1].contains("counts [2, 1, 0] documents"), "{problems:?}");
    fixture.knowledge.rebuild().unwrap();
    fixture.assert_sound();
}

/// Checking brings the index up to date first, so that being behind is no problem.
#[test]
fn an_index_that_is_behind_is_no_problem() {
    let fixture = Fixture::new();
    fixture.put("/a.md", "tea");
    fixture.assert_sound();
    fixture.put("/a.md", "coffee");
    fixture.put("/b.md", "tea");
    fixture.assert_sound();
    fixture.knowledge.discard_index().unwrap();
    fixture.assert_sound();
}

/// Every store is checked, and a problem names the memory and its path.
#[test]
fn a_problem_says_which_memory_it_is() {
    let fixture = Fixture::new();
    let other = crate::fixture::new_store(&fixture.knowledge, "other");
    crate::fixture::put(&fixture.knowledge, other, "/x.md", "tea");
    let memory = fixture.put("/a.md", "tea");
    fixture.assert_sound();
    put_wrong(&fixture, |entry| entry.documents.memory.length += 1);
    let problems = problems(&fixture);
    let expected =
        format!("the index does not hold the memory `{}` at `/a.md` as it is", memory.id);
    assert!(problems.contains(&expected), "{problems:?}");
}
