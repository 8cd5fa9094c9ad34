//! The terms of documents, as they come and go.

use std::borrow::Cow;

use quipu_core::index::Document;
use rusqlite::{Connection, Result, params};

/// The two tables of terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    Notes,
    Facts,
}

impl Terms {
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Notes => "note_terms",
            Self::Facts => "fact_terms",
        }
    }
}

/// What happens to the terms of a document; removing comes before adding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Remove,
    Add,
}

/// Documents whose terms come or go.
///
/// FTS5 collects terms in memory as long as the numbers of documents grow, and writes everything
/// when they do not. So all changes of a transaction are made in the order of numbers.
#[derive(Default)]
pub(super) struct TermChanges<'e>(Vec<(Terms, i64, Act, Cow<'e, Document>)>);

impl<'e> TermChanges<'e> {
    pub(super) fn add(&mut self, terms: Terms, num: i64, document: &'e Document) {
        self.0.push((terms, num, Act::Add, Cow::Borrowed(document)));
    }

    pub(super) fn remove(&mut self, terms: Terms, num: i64, document: Document) {
        self.0.push((terms, num, Act::Remove, Cow::Owned(document)));
    }

    pub(super) fn apply(mut self, connection: &Connection) -> Result<()> {
        self.0.sort_by_key(|(terms, num, act, _)| (*terms, *num, *act));
        for (terms, num, act, document) in &self.0 {
            let table = terms.table();
            let sql = match act {
                Act::Add => format!(
                    "INSERT INTO {table} (rowid, title, tags, headings, body, extra, marks)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                ),
                Act::Remove => format!(
                    "INSERT INTO {table}
                        ({table}, rowid, title, tags, headings, body, extra, marks)
                    VALUES ('delete', ?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                ),
            };
            let Document { title, tags, headings, body, extra, marks } = &**document;
            connection
                .prepare_cached(&sql)?
                .execute(params![num, title, tags, headings, body, extra, marks])?;
        }
        Ok(())
    }
}
