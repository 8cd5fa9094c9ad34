//! What a search asks of the index.

use std::collections::HashSet;

use crate::Error;
use crate::backend::Reader;
use crate::index::{Column, IndexQuery, Mark, PathFilter, Phrase, TEXT, TITLE, TermQuery, What};
use crate::model::MemoryId;
use crate::note::Glob;
use crate::query::{Expression, Field, Filter, Query, Sense, Term};

use super::{SearchMode, SearchRequest, index_query, one_of};

/// A request in the terms of the index.
pub(super) struct Plan {
    /// What is looked for; `None` if there are only conditions.
    wanted: Option<TermQuery>,
    /// What is looked for, part by part, when few documents have all of it.
    parts: Vec<TermQuery>,
    /// What must hold besides.
    conditions: Vec<TermQuery>,
    paths: Vec<PathFilter>,
}

/// So many documents are ranked when not all words need to be there, unless the rarest word alone
/// has more.
const LOOSE_MAX: usize = 500;
/// So many documents of a word are counted. A word that so many have is left out, unless there is no
/// rarer one.
const LOOSE_COUNTED_MAX: usize = 2000;
/// So many words are counted.
const LOOSE_WORDS_MAX: usize = 24;

impl Plan {
    pub(super) fn new(request: &SearchRequest) -> Self {
        let query = match request.mode {
            SearchMode::Permalink => Query::default(),
            SearchMode::Text | SearchMode::Title => Query::parse(&request.text),
        };
        let columns = match request.mode {
            SearchMode::Title => TITLE,
            SearchMode::Text | SearchMode::Permalink => TEXT,
        };
        let mut conditions: Vec<_> = query
            .unwanted
            .iter()
            .filter_map(|unwanted| terms_of(unwanted, columns))
            .map(|unwanted| TermQuery::Not(Box::new(unwanted)))
            .collect();
        conditions.extend(request_marks(request));
        let mut paths = Vec::new();
        for filter in &query.filters {
            match filter_terms(filter) {
                Some(terms) => conditions.push(terms),
                None => paths.push(path_filter(filter)),
            }
        }
        Self {
            wanted: query.wanted.as_ref().and_then(|wanted| terms_of(wanted, columns)),
            parts: query.wanted.as_ref().map_or_else(Vec::new, |wanted| loose(wanted, columns)),
            conditions,
            paths,
        }
    }

    /// Returns the query for what has everything that is looked for.
    pub(super) fn query(&self, request: &SearchRequest, what: What, limit: usize) -> IndexQuery {
        self.query_for(request, what, self.wanted.clone(), limit)
    }

    fn query_for(
        &self,
        request: &SearchRequest,
        what: What,
        wanted: Option<TermQuery>,
        limit: usize,
    ) -> IndexQuery {
        let all = wanted.into_iter().chain(self.conditions.iter().cloned()).collect();
        let query = index_query(request, what, TermQuery::And(all), limit);
        IndexQuery { paths: self.paths.clone(), ..query }
    }

    /// Returns the query for what has some of the words. One of the rarest must be there, because a
    /// word that nearly everything has tells little and takes long to rank; the others count where
    /// they are.
    pub(super) fn loose_query(
        &self,
        reader: &dyn Reader,
        request: &SearchRequest,
        what: What,
        limit: usize,
    ) -> Result<Option<IndexQuery>, Error> {
        let mut counted = Vec::new();
        for part in self.parts.iter().take(LOOSE_WORDS_MAX) {
            let query = self.query_for(request, what, Some(part.clone()), LOOSE_COUNTED_MAX);
            let count = reader.count_index(&query)?;
            if count > 0 {
                counted.push((count, part));
            }
        }
        counted.sort_by_key(|(count, _)| *count);
        let mut sum = 0;
        let (mut rare, mut common) = (Vec::new(), Vec::new());
        for (count, part) in counted {
            sum += count;
            if rare.is_empty() || sum <= LOOSE_MAX {
                rare.push(part.clone());
            } else if count < LOOSE_COUNTED_MAX {
                common.push(part.clone());
            }
        }
        if rare.is_empty() {
            return Ok(None);
        }
        let mut wanted = vec![TermQuery::Or(rare)];
        if !common.is_empty() {
            common.push(TermQuery::mark(Mark::Any));
            wanted.push(TermQuery::Or(common));
        }
        Ok(Some(self.query_for(request, what, Some(TermQuery::And(wanted)), limit)))
    }

    /// Returns the phrases that snippets show.
    pub(super) fn phrases(&self) -> Vec<&Phrase> {
        let wanted = self.wanted.iter().flat_map(TermQuery::phrases);
        let mut phrases: Vec<_> = wanted.collect();
        for phrase in self.parts.iter().flat_map(TermQuery::phrases) {
            if !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
        phrases
    }

    /// Returns the memories that fulfil the conditions; `None` if there are no conditions.
    pub(super) fn allowed(
        &self,
        reader: &dyn Reader,
        request: &SearchRequest,
    ) -> Result<Option<HashSet<MemoryId>>, Error> {
        let filter = &request.filter;
        if self.conditions.is_empty() && filter.fields.is_empty() && filter.changed_after.is_none()
        {
            return Ok(None);
        }
        let query = self.query_for(request, What::Memories, None, usize::MAX);
        Ok(Some(reader.search_index(&query)?.hits.into_iter().map(|hit| hit.memory).collect()))
    }
}

/// Returns what the filter of a request asks for.
fn request_marks(request: &SearchRequest) -> Vec<TermQuery> {
    let filter = &request.filter;
    let mut marks = Vec::new();
    if let Some(directory) = filter.directory.as_ref().filter(|directory| !directory.is_root()) {
        marks.push(TermQuery::mark(Mark::Place(directory.as_str().trim_end_matches('/'))));
    }
    if !filter.kinds.is_empty() {
        marks.push(one_of(filter.kinds.iter().map(|kind| TermQuery::mark(Mark::Kind(kind)))));
    }
    marks.extend(filter.tags.iter().map(|tag| TermQuery::mark(Mark::Tag(tag))));
    if !filter.categories.is_empty() {
        let categories = filter.categories.iter();
        marks.push(one_of(categories.map(|it| TermQuery::mark(Mark::Category(it)))));
    }
    marks
}

/// Returns what a filter of the query asks for; `None` if it has a pattern.
fn filter_terms(filter: &Filter) -> Option<TermQuery> {
    let values = || filter.values.iter().map(String::as_str);
    let terms = match filter.field {
        Field::Tag => one_of(values().map(|tag| TermQuery::mark(Mark::Tag(tag)))),
        Field::Type => one_of(values().map(|kind| TermQuery::mark(Mark::Kind(kind)))),
        Field::Path => {
            let places: Option<Vec<_>> = values().map(places).collect();
            one_of(places?.into_iter().flatten())
        }
    };
    Some(match filter.sense {
        Sense::Must => terms,
        Sense::MustNot => TermQuery::Not(Box::new(terms)),
    })
}

/// Returns the places that a path without a pattern means, or one that only ends with a star.
fn places(path: &str) -> Option<Vec<TermQuery>> {
    let path = path.strip_suffix("/*").unwrap_or(path).trim_matches('/');
    if path.contains(['*', '?']) {
        return None;
    }
    if path.is_empty() {
        return Some(vec![TermQuery::any()]);
    }
    let places = [format!("/{path}"), format!("/{path}.md")];
    Some(places.iter().map(|place| TermQuery::mark(Mark::Place(place))).collect())
}

fn path_filter(filter: &Filter) -> PathFilter {
    let globs = filter.values.iter().map(|value| Glob::new(value)).collect();
    PathFilter { globs, sense: filter.sense }
}

/// Returns what an expression asks for; `None` if no word is left of it.
fn terms_of(expression: &Expression, columns: &'static [Column]) -> Option<TermQuery> {
    let each = |parts: &[Expression]| -> Vec<TermQuery> {
        parts.iter().filter_map(|part| terms_of(part, columns)).collect()
    };
    match expression {
        Expression::Term(term) => term_of(term, columns),
        Expression::Together(parts) => {
            let telling: Vec<_> = parts.iter().filter(|part| !is_filler(part)).cloned().collect();
            let parts = each(if telling.is_empty() { parts } else { &telling });
            (!parts.is_empty()).then_some(TermQuery::And(parts))
        }
        Expression::All(parts) => {
            let parts = each(parts);
            (!parts.is_empty()).then_some(TermQuery::And(parts))
        }
        Expression::Any(parts) => {
            let parts = each(parts);
            (!parts.is_empty()).then_some(TermQuery::Or(parts))
        }
        Expression::Except(wanted, unwanted) => {
            let wanted = terms_of(wanted, columns);
            let unwanted =
                terms_of(unwanted, columns).map(|unwanted| TermQuery::Not(Box::new(unwanted)));
            let both: Vec<_> = wanted.into_iter().chain(unwanted).collect();
            (!both.is_empty()).then_some(TermQuery::And(both))
        }
    }
}

fn term_of(term: &Term, columns: &'static [Column]) -> Option<TermQuery> {
    match term {
        Term::Word(word) => TermQuery::word(word, columns),
        Term::Prefix(beginning) => TermQuery::prefix(beginning, columns),
        Term::Phrase(words) => TermQuery::phrase(words, columns),
    }
}

/// Returns what to look for one by one when few documents have all words of a query.
///
/// Only words that stand beside each other can be given up; `AND`, `OR` and quotes mean what they
/// say. A single word is also looked for as a beginning.
fn loose(expression: &Expression, columns: &'static [Column]) -> Vec<TermQuery> {
    match expression {
        Expression::Together(parts) => {
            let telling = || parts.iter().filter(|part| !is_filler(part));
            let only_filler = telling().next().is_none();
            let parts = parts.iter().filter(|part| only_filler || !is_filler(part));
            let parts: Vec<_> = parts.collect();
            let whole = parts.iter().filter_map(|part| terms_of(part, columns));
            whole.chain(parts.iter().flat_map(|part| pieces_of(part, columns))).collect()
        }
        Expression::Term(Term::Word(word)) => {
            let whole = TermQuery::prefix(word, columns).into_iter();
            whole.chain(TermQuery::pieces(word, columns)).collect()
        }
        Expression::Term(_)
        | Expression::All(_)
        | Expression::Any(_)
        | Expression::Except(_, _) => Vec::new(),
    }
}

/// Returns the pieces of a word that is several terms, as a question without spaces is.
fn pieces_of(part: &Expression, columns: &'static [Column]) -> Vec<TermQuery> {
    let Expression::Term(Term::Word(word)) = part else { return Vec::new() };
    TermQuery::pieces(word, columns)
}

/// Tells whether a part of a query is a word that says nothing about what is looked for.
fn is_filler(part: &Expression) -> bool {
    let Expression::Term(Term::Word(word)) = part else { return false };
    let word = word.trim_end_matches(['?', '!', '.', ',', ':', ';']).to_lowercase();
    let word = word.replace('’', "'");
    FILLERS.binary_search(&word.as_str()).is_ok()
}

/// The commonest English words, in their order.
const FILLERS: [&str; 113] = [
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "but", "by", "can", "could", "did", "didn't", "do", "does", "doesn't", "don't", "for",
    "from", "had", "has", "have", "he", "her", "him", "his", "how", "how's", "i", "i'd", "i'm",
    "i've", "if", "in", "into", "is", "isn't", "it", "it's", "its", "let", "let's", "may", "me",
    "might", "must", "my", "no", "nor", "of", "on", "or", "our", "ours", "out", "over", "please",
    "shall", "she", "should", "so", "some", "such", "than", "that", "that's", "the", "their",
    "theirs", "them", "then", "there", "there's", "these", "they", "this", "those", "to", "too",
    "up", "us", "was", "wasn't", "we", "we've", "were", "what", "what's", "when", "where",
    "where's", "which", "while", "who", "who's", "whom", "whose", "why", "will", "with", "won't",
    "would", "you", "you're", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Id as _, StoreId};

    fn plan(text: &str) -> Plan {
        Plan::new(&SearchRequest::new(vec![StoreId::from_bits(1)], text))
    }

    #[test]
    fn fillers_are_in_their_order() {
        assert!(FILLERS.is_sorted());
    }

    #[test]
    fn fillers_count_only_when_there_is_nothing_else() {
        assert_eq!(
            plan("what is the tea?").wanted,
            plan("tea").wanted.map(|tea| TermQuery::And(vec![tea]))
        );
        assert!(plan("to be or").wanted.is_some());
        assert_eq!(plan("what is green tea").parts.len(), 2);
    }

    #[test]
    fn only_words_beside_each_other_are_given_up() {
        assert_eq!(plan("green tea \"hot water\"").parts.len(), 3);
        for text in ["green AND tea", "green OR tea", "\"green tea\"", "(a NOT b) OR c"] {
            assert_eq!(plan(text).parts, [], "{text}");
        }
    }

    #[test]
    fn a_word_of_several_terms_is_also_looked_for_piece_by_piece() {
        assert_eq!(plan("ペットボトルは何曜日").parts.len(), 1 + 9);
        assert_eq!(plan("green tea-pot").parts.len(), 2 + 2);
        assert_eq!(plan("tea").parts.len(), 1);
    }

    #[test]
    fn signs_alone_ask_for_nothing() {
        let plan = plan("-- ?? \"\"");
        assert_eq!(plan.wanted, None);
        assert_eq!(plan.parts, []);
    }
}
