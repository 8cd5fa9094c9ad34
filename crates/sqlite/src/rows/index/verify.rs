//! Comparing the index with the texts that it was made of.
//!
//! Every row of a note adds a number to the note's sum, whatever their order. If the sum of what is
//! there and the sum of what should be there are equal, so are the rows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use quipu_core::index::{Column, Document, Entry, FactKind, LinkRow};
use rusqlite::{Connection, Result, Row};

use super::{Indexed, RELATIONS_START, STORE_SPAN, entry_again};

/// Returns a sentence for each note that is not as it should be.
pub(crate) fn verify(connection: &Connection) -> Result<Vec<String>> {
    let snapshot = connection.unchecked_transaction()?;
    let mut there = Sums::default();
    add_rows(&snapshot, &mut there)?;
    let mut problems = Vec::new();
    let sql = "SELECT n.num, s.id, n.path FROM notes n JOIN stores s ON s.num = n.store";
    let mut statement = snapshot.prepare(sql)?;
    let notes =
        statement.query_map([], |row| Ok((Indexed::from_row(row)?, row.get::<_, String>(2)?)))?;
    for note in notes {
        let (indexed, path) = note?;
        let found = there.0.remove(&indexed.num);
        let expected = entry_again(&snapshot, &indexed)?.map(|entry| sum_of(&entry));
        if found != expected {
            problems.push(format!("the index of the memory at `{path}` differs from its text"));
        }
    }
    if !there.0.is_empty() {
        problems.push(format!("the index holds rows of {} unknown memories", there.0.len()));
    }
    Ok(problems)
}

/// The sums of notes by their numbers.
#[derive(Default)]
struct Sums(HashMap<i64, u64>);

impl Sums {
    fn add(&mut self, note: i64, row: &impl Hash) {
        let sum = self.0.entry(note).or_default();
        *sum = sum.wrapping_add(hash(row));
    }
}

fn hash(row: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

/// Adds every row of the index.
fn add_rows(connection: &Connection, sums: &mut Sums) -> Result<()> {
    each(connection, "SELECT num, path, title, kind, permalink FROM notes", |row| {
        let texts: [String; 4] = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        sums.add(row.get(0)?, &("note", texts));
        Ok(())
    })?;
    each(connection, "SELECT note, key FROM note_names", |row| {
        sums.add(row.get(0)?, &("name", row.get::<_, String>(1)?));
        Ok(())
    })?;
    each(connection, "SELECT note, key, position, value FROM note_fields", |row| {
        let field: (String, usize, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        sums.add(row.get(0)?, &("field", field));
        Ok(())
    })?;
    let links = "SELECT note, position, kind, target_store, target, section, alias, context, line
        FROM links";
    each(connection, links, |row| {
        let texts: [Option<String>; 6] =
            [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?];
        sums.add(row.get(0)?, &("link", row.get::<_, usize>(1)?, texts, row.get::<_, usize>(8)?));
        Ok(())
    })?;
    each(connection, "SELECT note, key, position FROM link_keys", |row| {
        sums.add(row.get(0)?, &("key", row.get::<_, String>(1)?, row.get::<_, usize>(2)?));
        Ok(())
    })?;
    add_terms(connection, sums)
}

/// Adds the terms of notes and facts, which stand under the numbers of their documents.
fn add_terms(connection: &Connection, sums: &mut Sums) -> Result<()> {
    let mut notes_of_facts = HashMap::new();
    each(connection, "SELECT num, note, position FROM facts", |row| {
        let (num, note, position): (i64, i64, usize) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let is_relation = num % STORE_SPAN >= RELATIONS_START;
        sums.add(note, &("fact", is_relation, position));
        notes_of_facts.insert(num, (note, is_relation, position));
        Ok(())
    })?;
    each(connection, "SELECT doc, col, offset, term FROM note_instances", |row| {
        let (column, offset, term): (String, usize, String) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        sums.add(row.get(0)?, &("term", column.as_str(), offset, term.as_str()));
        Ok(())
    })?;
    each(connection, "SELECT doc, col, offset, term FROM fact_instances", |row| {
        let num: i64 = row.get(0)?;
        let (column, offset, term): (String, usize, String) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        let (note, is_relation, position) =
            notes_of_facts.get(&num).copied().unwrap_or((num, false, 0));
        sums.add(
            note,
            &("fact term", is_relation, position, column.as_str(), offset, term.as_str()),
        );
        Ok(())
    })
}

fn each(
    connection: &Connection,
    sql: &str,
    mut work: impl FnMut(&Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        work(row)?;
    }
    Ok(())
}

/// Returns the sum that the rows of an entry should have.
fn sum_of(entry: &Entry) -> u64 {
    let mut sums = Sums::default();
    let row = &entry.row;
    let texts =
        [row.path.as_str().to_owned(), row.title.clone(), row.kind.clone(), row.permalink.clone()];
    sums.add(0, &("note", texts));
    for key in &entry.names {
        sums.add(0, &("name", key.clone()));
    }
    for (position, (key, value)) in entry.fields.iter().enumerate() {
        sums.add(0, &("field", (key.clone(), position, value.clone())));
    }
    for link in &entry.links {
        let LinkRow { position, kind, target, context, line, .. } = &link.row;
        let texts = [
            Some(kind.clone()),
            target.store.clone(),
            Some(target.name.clone()),
            target.section.clone(),
            target.alias.clone(),
            context.clone(),
        ];
        sums.add(0, &("link", *position, texts, *line));
        for key in &link.keys {
            sums.add(0, &("key", key.clone(), *position));
        }
    }
    each_term(&entry.document, |column, offset, term| sums.add(0, &("term", column, offset, term)));
    for fact in &entry.facts {
        let (is_relation, position) = (fact.kind == FactKind::Relation, fact.position);
        sums.add(0, &("fact", is_relation, position));
        each_term(&fact.document, |column, offset, term| {
            sums.add(0, &("fact term", is_relation, position, column, offset, term));
        });
    }
    sums.0.get(&0).copied().unwrap_or_default()
}

fn each_term(document: &Document, mut work: impl FnMut(&str, usize, &str)) {
    for column in Column::ALL {
        let terms = document.column(column).split(' ').filter(|term| !term.is_empty());
        for (offset, term) in terms.enumerate() {
            work(column.as_str(), offset, term);
        }
    }
}
