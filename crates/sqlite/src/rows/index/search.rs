//! Searching: which documents fit, and which of them fit best.
//!
//! FTS5 computes the rank of every match, and that takes longer than everything else. So if very
//! many documents fit, only those with the highest numbers are ranked, which came into the index
//! last, and of the others some with a word in their title.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use quipu_core::index::{
    Column, FactKind, FieldFilter, IndexHit, IndexMatches, IndexQuery, PathFilter, Total, What,
};
use quipu_core::model::{MemoryId, StoreId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, Result, Row, params, params_from_iter};

use super::expression::{Expression, titled};
use super::{RELATIONS_START, STORE_SPAN, Terms, facts_start, store_number};
use crate::rows::columns::{Columns as _, limit};

/// So many matches are ranked at most, in a store.
const RANKED_MAX: usize = 500;
/// So many of the others are ranked besides, because they have a word in their title.
const TITLED_MAX: usize = 200;
/// So many matches are counted at most, in a store.
const COUNTED_MAX: usize = 2000;

/// A document by its number, with its score.
struct Scored {
    num: i64,
    score: f64,
}

/// What is asked of one store.
struct Question<'q> {
    terms: Terms,
    range: Range<i64>,
    store_num: i64,
    expression: Expression,
    /// The notes that may be found; all if there is no set.
    allowed: Option<HashSet<i64>>,
    query: &'q IndexQuery,
}

pub(in crate::rows) fn search(connection: &Connection, query: &IndexQuery) -> Result<IndexMatches> {
    let mut matches = IndexMatches::default();
    let mut found: Vec<(Timestamp, IndexHit)> = Vec::new();
    for &store in &query.stores {
        let Some(question) = Question::new(connection, store, query)? else { continue };
        let (scored, total) = question.best(connection)?;
        matches.total.count += total.count;
        matches.total.is_lower_bound |= total.is_lower_bound;
        for document in scored {
            found.extend(question.hit(connection, store, &document)?);
        }
    }
    // Those of one store are in their order already, which is the same whatever the limit.
    let is_ranked = !query.terms.phrases().is_empty();
    found.sort_by(|(left_at, left), (right_at, right)| {
        let by_time = if is_ranked { Ordering::Equal } else { right_at.cmp(left_at) };
        right.score.total_cmp(&left.score).then(by_time)
    });
    matches.hits = found.into_iter().map(|(_, hit)| hit).take(query.limit).collect();
    Ok(matches)
}

pub(in crate::rows) fn count(connection: &Connection, query: &IndexQuery) -> Result<usize> {
    let mut count = 0;
    for &store in &query.stores {
        if let Some(question) = Question::new(connection, store, query)? {
            count += question.count(connection, query.limit - count)?;
        }
    }
    Ok(count)
}

impl<'q> Question<'q> {
    /// Returns `None` if nothing can fit.
    fn new(connection: &Connection, store: StoreId, query: &'q IndexQuery) -> Result<Option<Self>> {
        let Some(store_num) = store_number(connection, store)? else { return Ok(None) };
        let start = store_num * STORE_SPAN;
        let (terms, range) = match query.what {
            What::Memories => (Terms::Notes, start..start + STORE_SPAN),
            What::Observations => {
                let start = start + facts_start(FactKind::Observation);
                (Terms::Facts, start..start + RELATIONS_START)
            }
            What::Relations => {
                let start = start + facts_start(FactKind::Relation);
                (Terms::Facts, start..start + RELATIONS_START)
            }
        };
        let expression = Expression::of(&query.terms);
        if expression == Expression::Nothing {
            return Ok(None);
        }
        let allowed = allowed_by_fields(connection, store_num, &query.fields)?;
        let allowed = allowed_by_paths(connection, store_num, &query.paths, allowed)?;
        Ok(Some(Self { terms, range, store_num, expression, allowed, query }))
    }

    fn best(&self, connection: &Connection) -> Result<(Vec<Scored>, Total)> {
        let phrases = self.query.terms.phrases();
        let expression = match &self.expression {
            Expression::Some(expression) if !phrases.is_empty() => expression,
            Expression::Some(_) | Expression::All | Expression::Nothing => {
                let newest = self.newest(connection, self.query.limit.max(COUNTED_MAX + 1))?;
                return Ok((self.latest(&newest), total(newest.len())));
            }
        };
        let mut best = self.ranked(connection, expression, &self.range, RANKED_MAX + 1)?;
        if best.len() <= RANKED_MAX {
            let total = total(best.len());
            best.truncate(self.query.limit);
            return Ok((best, total));
        }
        let oldest = best.iter().map(|document| document.num).min().unwrap_or(self.range.end);
        best.retain(|document| document.num != oldest);
        // Of the others, those with a word in their title may be among the best.
        if let Some(titled) = titled(&phrases) {
            let others = self.range.start..oldest + 1;
            best.extend(self.ranked_titled(connection, (&titled, expression), &others)?);
            sort(&mut best);
        }
        best.truncate(self.query.limit);
        Ok((best, total(self.count(connection, COUNTED_MAX + 1)?)))
    }

    /// Ranks those of the documents in a range that have a word in their title, as if the title had
    /// not been asked for.
    fn ranked_titled(
        &self,
        connection: &Connection,
        (titled, expression): (&str, &str),
        range: &Range<i64>,
    ) -> Result<Vec<Scored>> {
        let both = format!("{titled} AND {expression}");
        let mut found = self.ranked(connection, &both, range, TITLED_MAX)?;
        let Some(oldest) = found.iter().map(|document| document.num).min() else {
            return Ok(found);
        };
        // BM25 is a sum over all that is asked for, so one part of it can be taken off again.
        let added = self.ranked(connection, titled, &(oldest..range.end), usize::MAX)?;
        let added: HashMap<_, _> = added.iter().map(|it| (it.num, it.score)).collect();
        for document in &mut found {
            document.score -= added.get(&document.num).copied().unwrap_or_default();
        }
        Ok(found)
    }

    /// Counts the documents that fit, up to so many.
    fn count(&self, connection: &Connection, at_most: usize) -> Result<usize> {
        let Expression::Some(expression) = &self.expression else {
            return Ok(self.newest(connection, at_most)?.len());
        };
        let table = self.terms.table();
        let condition = self.condition();
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table}
                WHERE {table} MATCH ?1 AND rowid >= ?2 AND rowid < ?3 {condition} LIMIT ?4)"
        );
        let values = params_from_iter(self.values(expression, &self.range, at_most));
        connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))
    }

    /// Returns the first documents of a list, without a score.
    fn latest(&self, nums: &[i64]) -> Vec<Scored> {
        nums.iter().take(self.query.limit).map(|&num| Scored { num, score: 0.0 }).collect()
    }

    /// Returns up to so many of the documents that fit: those without words to rank them by the
    /// time of their last change, others by their numbers; the newest first.
    fn newest(&self, connection: &Connection, at_most: usize) -> Result<Vec<i64>> {
        let has_phrases = !self.query.terms.phrases().is_empty();
        match &self.expression {
            Expression::Some(expression) if has_phrases => {
                self.matching(connection, expression, at_most)
            }
            Expression::Some(expression) => {
                let matching = self.matching(connection, expression, usize::MAX)?;
                let matching: HashSet<i64> = matching.into_iter().collect();
                self.by_change(connection, at_most, |num| matching.contains(&num))
            }
            Expression::All => self.by_change(connection, at_most, |_| true),
            Expression::Nothing => Ok(Vec::new()),
        }
    }

    /// Returns the documents that an expression selects, those with the highest numbers first.
    fn matching(
        &self,
        connection: &Connection,
        expression: &str,
        at_most: usize,
    ) -> Result<Vec<i64>> {
        let table = self.terms.table();
        let condition = self.condition();
        let sql = format!(
            "SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid >= ?2 AND rowid < ?3
                {condition} ORDER BY rowid DESC LIMIT ?4"
        );
        let values = self.values(expression, &self.range, at_most);
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_map(params_from_iter(values), |row| row.get(0))?.collect()
    }

    /// Ranks up to so many of the documents in a range that an expression selects, those with the
    /// highest numbers.
    fn ranked(
        &self,
        connection: &Connection,
        expression: &str,
        range: &Range<i64>,
        at_most: usize,
    ) -> Result<Vec<Scored>> {
        let table = self.terms.table();
        let weights: Vec<_> =
            Column::ALL.iter().map(|column| column.weight().to_string()).collect();
        let condition = self.condition();
        let sql = format!(
            "SELECT rowid, bm25({table}, {}) FROM {table}
                WHERE {table} MATCH ?1 AND rowid >= ?2 AND rowid < ?3 {condition}
                ORDER BY rowid DESC LIMIT ?4",
            weights.join(", ")
        );
        // The best have the lowest values.
        let scored = |row: &Row<'_>| Ok(Scored { num: row.get(0)?, score: -row.get::<_, f64>(1)? });
        let values = self.values(expression, range, at_most);
        let mut statement = connection.prepare_cached(&sql)?;
        let found = statement.query_map(params_from_iter(values), scored)?;
        let mut found = found.collect::<Result<Vec<_>>>()?;
        sort(&mut found);
        Ok(found)
    }

    fn values(&self, expression: &str, range: &Range<i64>, at_most: usize) -> Vec<Value> {
        let Range { start, end } = *range;
        let values =
            [expression.to_owned().into(), start.into(), end.into(), limit(at_most).into()];
        values.into_iter().chain(self.condition_values()).collect()
    }

    /// Returns what else must hold for a document, as SQL.
    ///
    /// The plus keeps SQLite from asking the expression again for each note that is allowed.
    fn condition(&self) -> String {
        let note = match self.terms {
            Terms::Notes => "+rowid",
            Terms::Facts => "(SELECT note FROM facts WHERE num = fact_terms.rowid)",
        };
        let mut condition = String::new();
        if self.query.changed_after.is_some() {
            condition = format!(
                "AND {note} IN (SELECT num FROM notes WHERE store = {} AND at > ?5)",
                self.store_num
            );
        }
        if self.allowed.is_some() {
            let place = if self.query.changed_after.is_some() { 6 } else { 5 };
            condition.push_str(&format!("AND {note} IN (SELECT value FROM json_each(?{place}))"));
        }
        condition
    }

    fn condition_values(&self) -> Vec<Value> {
        let after = self.query.changed_after.map(|after| Value::from(after.as_micros()));
        let allowed = self.allowed.as_ref().map(|allowed| {
            let nums: Vec<_> = allowed.iter().map(i64::to_string).collect();
            Value::from(format!("[{}]", nums.join(",")))
        });
        after.into_iter().chain(allowed).collect()
    }

    /// Returns documents by the time of their memory's last change, the newest first.
    fn by_change(
        &self,
        connection: &Connection,
        at_most: usize,
        is_wanted: impl Fn(i64) -> bool,
    ) -> Result<Vec<i64>> {
        let sql = match self.terms {
            Terms::Notes => {
                "SELECT num, num FROM notes WHERE store = ?1 AND at > ?2 ORDER BY at DESC"
            }
            Terms::Facts => {
                "SELECT f.num, n.num FROM notes n CROSS JOIN facts f
                WHERE n.store = ?1 AND n.at > ?2 AND f.note = n.num ORDER BY n.at DESC, f.num"
            }
        };
        let after = self.query.changed_after.map_or(i64::MIN, Timestamp::as_micros);
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.store_num, after])?;
        let mut found = Vec::new();
        while found.len() < at_most
            && let Some(row) = rows.next()?
        {
            let (num, note): (i64, i64) = (row.get(0)?, row.get(1)?);
            let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&note));
            if is_allowed && self.range.contains(&num) && is_wanted(num) {
                found.push(num);
            }
        }
        Ok(found)
    }

    fn hit(
        &self,
        connection: &Connection,
        store: StoreId,
        document: &Scored,
    ) -> Result<Option<(Timestamp, IndexHit)>> {
        let sql = match self.terms {
            Terms::Notes => "SELECT memory, at, 0 FROM notes WHERE num = ?1",
            Terms::Facts => {
                "SELECT n.memory, n.at, f.position FROM facts f JOIN notes n ON n.num = f.note
                WHERE f.num = ?1"
            }
        };
        let from_row = |row: &Row<'_>| {
            let memory: MemoryId = row.id(0)?;
            let hit = IndexHit { store, memory, position: row.get(2)?, score: document.score };
            Ok((row.moment(1)?, hit))
        };
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query_map([document.num], from_row)?;
        rows.next().transpose()
    }
}

/// Returns those of the notes of a store whose paths pass all filters too.
fn allowed_by_paths(
    connection: &Connection,
    store_num: i64,
    filters: &[PathFilter],
    allowed: Option<HashSet<i64>>,
) -> Result<Option<HashSet<i64>>> {
    if filters.is_empty() {
        return Ok(allowed);
    }
    let mut passing = HashSet::new();
    let mut statement =
        connection.prepare_cached("SELECT num, path FROM notes WHERE store = ?1")?;
    let mut rows = statement.query([store_num])?;
    while let Some(row) = rows.next()? {
        let num: i64 = row.get(0)?;
        let path = row.path(1)?;
        let is_allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(&num));
        if is_allowed && filters.iter().all(|filter| filter.accepts(&path)) {
            passing.insert(num);
        }
    }
    Ok(Some(passing))
}

/// Puts the best first, and of equal ones that which came into the index last.
fn sort(documents: &mut [Scored]) {
    documents
        .sort_by(|left, right| right.score.total_cmp(&left.score).then(right.num.cmp(&left.num)));
}

fn total(count: usize) -> Total {
    Total { count: count.min(COUNTED_MAX), is_lower_bound: count > COUNTED_MAX }
}

/// Returns the notes of a store whose fields fit all filters; `None` if there is no filter.
fn allowed_by_fields(
    connection: &Connection,
    store_num: i64,
    filters: &[FieldFilter],
) -> Result<Option<HashSet<i64>>> {
    let mut allowed: Option<HashSet<i64>> = None;
    for filter in filters {
        let mut values: HashMap<i64, Vec<String>> = HashMap::new();
        if filter.accepts_absence() {
            let sql = "SELECT num FROM notes WHERE store = ?1";
            for num in connection.prepare_cached(sql)?.query_map([store_num], |row| row.get(0))? {
                values.insert(num?, Vec::new());
            }
        }
        let sql = "SELECT note, value FROM note_fields WHERE store = ?1 AND key = ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![store_num, filter.key], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })?;
        for row in rows {
            let (note, value) = row?;
            values.entry(note).or_default().push(value);
        }
        let fits = |values: &Vec<String>| filter.accepts(values.iter().map(String::as_str));
        let fitting = values.iter().filter(|(_, values)| fits(values)).map(|(note, _)| *note);
        allowed = Some(match allowed {
            Some(before) => fitting.filter(|note| before.contains(note)).collect(),
            None => fitting.collect(),
        });
    }
    Ok(allowed)
}
