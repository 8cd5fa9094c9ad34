//! What a search asks of the index.

use std::collections::HashSet;

use crate::Error;
use crate::backend::Reader;
use crate::index::{Column, IndexQuery, Mark, PathFilter, Phrase, TEXT, TITLE, TermQuery, What};
use crate::model::MemoryId;
use crate::query::{Expression, Field, Filter, Query, Term};

use super::fillers::{is_condition, telling};
use super::patterns::{Case, Cases};
use super::{SearchMode, SearchRequest, index_query, one_of};

/// A request in the terms of the index.
pub(super) struct Plan {
    /// What the query asks for of which memories; what is found is what fits one of them.
    asked: Vec<Asked>,
    /// Whether a part of the query was left out.
    is_cut: bool,
    /// What to settle for when few documents have all of it.
    loose: Loose,
    /// What must hold besides.
    conditions: Vec<TermQuery>,
}

/// What is asked for of the memories whose paths pass.
#[derive(Default)]
struct Asked {
    /// What they must have; `None` if nothing.
    wanted: Option<TermQuery>,
    paths: Vec<PathFilter>,
}

/// So many documents are ranked when not all words need to be there, unless the rarest word alone
/// has more.
const LOOSE_MAX: usize = 500;
/// So many documents of a word are counted. A word that so many have is left out, unless there is no
/// rarer one.
const LOOSE_COUNTED_MAX: usize = 2000;
/// So many words are looked for: the rarest of those that are there.
const LOOSE_WORDS_MAX: usize = 32;
/// So many pieces of words are counted, besides the words themselves.
const LOOSE_PIECES_MAX: usize = 128;

/// A query of which not everything must be there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Loose {
    /// What is looked for one by one.
    parts: Vec<TermQuery>,
    /// What must be there all the same.
    conditions: Vec<TermQuery>,
    /// What must be there too, and may be all that is there.
    fixed: Vec<TermQuery>,
    /// What is fixed if any document has it.
    quoted: Vec<TermQuery>,
}

/// A part that documents have.
struct Counted<'a> {
    part: &'a TermQuery,
    /// How many documents have it.
    count: usize,
    /// How often it was typed, which tells how much it counts.
    times: usize,
}

impl Plan {
    pub(super) fn new(request: &SearchRequest) -> Self {
        let (wanted, columns) = match request.mode {
            SearchMode::Permalink => (None, TEXT),
            SearchMode::Text => (Query::parse(&request.text).wanted, TEXT),
            SearchMode::Title => (Query::parse(&request.text).wanted, TITLE),
        };
        let Cases { cases, is_cut } = match &wanted {
            Some(wanted) => Cases::of(wanted),
            None => Cases { cases: vec![Case::default()], is_cut: false },
        };
        let loose = match cases.as_slice() {
            [Case { wanted: Some(wanted), .. }] => loose(wanted, columns),
            _ => Loose::default(),
        };
        let asked = cases.into_iter().map(|case| Asked::of(case, columns)).collect();
        Self { asked, is_cut, loose, conditions: request_marks(request) }
    }

    /// Returns the queries for what has everything that is looked for; no document fits two.
    pub(super) fn queries(
        &self,
        request: &SearchRequest,
        what: What,
        limit: usize,
    ) -> Vec<IndexQuery> {
        let query = |asked: &Asked| {
            let query = self.query_for(request, what, asked.wanted.clone(), limit);
            IndexQuery { paths: asked.paths.clone(), ..query }
        };
        self.asked.iter().map(query).collect()
    }

    /// Tells whether a part of the query was left out.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn query_for(
        &self,
        request: &SearchRequest,
        what: What,
        wanted: Option<TermQuery>,
        limit: usize,
    ) -> IndexQuery {
        let all = wanted.into_iter().chain(self.conditions.iter().cloned()).collect();
        let paths = match self.asked.as_slice() {
            [only] => only.paths.clone(),
            _ => Vec::new(),
        };
        IndexQuery { paths, ..index_query(request, what, TermQuery::And(all), limit) }
    }

    /// Returns the query for what has some of the words; `None` if nothing can have them.
    pub(super) fn loose_query(
        &self,
        reader: &dyn Reader,
        request: &SearchRequest,
        what: What,
        limit: usize,
    ) -> Result<Option<IndexQuery>, Error> {
        let count = |wanted: TermQuery, at_most: usize| {
            reader.count_index(&self.query_for(request, what, Some(wanted), at_most))
        };
        let Loose { parts, conditions, fixed, quoted } = &self.loose;
        let mut fixed = fixed.clone();
        // Each alone, or it would depend on their order which of two is given up.
        for quoted in quoted {
            if count(with_conditions(vec![quoted.clone()], conditions), 1)? > 0 {
                fixed.push(quoted.clone());
            }
        }
        let conditions = [fixed.as_slice(), conditions].concat();
        let anchored = if fixed.is_empty() {
            None
        } else {
            Some(count(TermQuery::And(conditions.clone()), LOOSE_MAX + 1)?)
        };
        let wanted = match anchored {
            Some(0) => None,
            Some(..=LOOSE_MAX) => {
                Some(preferring(parts.iter().take(LOOSE_WORDS_MAX).cloned().collect()))
            }
            Some(_) | None => {
                let counted = counted(parts, |part| {
                    count(with_conditions(vec![part.clone()], &conditions), LOOSE_COUNTED_MAX)
                })?;
                rarest(counted).or(anchored.map(|_| TermQuery::any()))
            }
        };
        let query = |wanted| {
            let wanted = Some(with_conditions(vec![wanted], &conditions));
            self.query_for(request, what, wanted, limit)
        };
        Ok(wanted.map(query))
    }

    /// Tells whether documents that lack some of the words can be found too.
    pub(super) fn can_settle_for_less(&self) -> bool {
        !self.loose.parts.is_empty()
    }

    /// Returns the phrases that snippets show.
    pub(super) fn phrases(&self) -> Vec<&Phrase> {
        let asked = self.asked.iter().filter_map(|asked| asked.wanted.as_ref());
        let mut phrases = Vec::new();
        for phrase in asked.chain(&self.loose.parts).flat_map(TermQuery::phrases) {
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

impl Asked {
    fn of(case: Case, columns: &'static [Column]) -> Self {
        let Case { wanted, preferred, paths } = case;
        let wanted = wanted.and_then(|wanted| terms_of(&wanted, columns));
        let preferred: Vec<_> =
            preferred.iter().filter_map(|part| terms_of(part, columns)).collect();
        if preferred.is_empty() {
            return Self { wanted, paths };
        }
        let wanted = with_conditions(vec![preferring(preferred)], wanted.as_slice());
        Self { wanted: Some(wanted), paths }
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

/// Returns what a filter of the query asks for.
fn filter_terms(filter: &Filter) -> TermQuery {
    let value = filter.value.as_str();
    match filter.field {
        Field::Tag => TermQuery::mark(Mark::Tag(value)),
        Field::Type => TermQuery::mark(Mark::Kind(value)),
        Field::Path => {
            let path = value.strip_suffix("/*").unwrap_or(value).trim_matches('/');
            if path.is_empty() {
                return TermQuery::any();
            }
            let places = [format!("/{path}"), format!("/{path}.md")];
            one_of(places.iter().map(|place| TermQuery::mark(Mark::Place(place))))
        }
    }
}

/// Returns what an expression asks for; `None` if no word is left of it.
fn terms_of(expression: &Expression, columns: &'static [Column]) -> Option<TermQuery> {
    let each = |parts: &mut dyn Iterator<Item = &Expression>| -> Vec<TermQuery> {
        parts.filter_map(|part| terms_of(part, columns)).collect()
    };
    let all = |parts: Vec<TermQuery>| (!parts.is_empty()).then_some(TermQuery::And(parts));
    match expression {
        Expression::Term(term) => term_of(term, columns),
        Expression::Filter(filter) => Some(filter_terms(filter)),
        Expression::Together(parts) => all(each(&mut telling(parts).into_iter())),
        Expression::All(parts) => all(each(&mut parts.iter())),
        Expression::Any(parts) if parts.is_empty() => Some(TermQuery::none()),
        Expression::Any(parts) => {
            let parts = each(&mut parts.iter());
            (!parts.is_empty()).then_some(TermQuery::Or(parts))
        }
        Expression::Not(unwanted) => {
            terms_of(unwanted, columns).map(|unwanted| TermQuery::Not(Box::new(unwanted)))
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
/// Only words that stand beside each other can be given up; `AND`, `OR`, `NOT`, filters and quotes
/// mean what they say. A single word is also looked for as a beginning.
fn loose(expression: &Expression, columns: &'static [Column]) -> Loose {
    let terms = |parts: &[&Expression]| -> Vec<TermQuery> {
        parts.iter().filter_map(|part| terms_of(part, columns)).collect()
    };
    match expression {
        Expression::Together(parts) => {
            let (conditions, parts): (Vec<_>, Vec<_>) =
                telling(parts).into_iter().partition(|part| is_condition(part));
            let mut loose = match parts.as_slice() {
                [only] => loose(only, columns),
                parts => several(parts, columns),
            };
            loose.conditions.extend(terms(&conditions));
            loose
        }
        Expression::All(parts) => {
            let (conditions, parts): (Vec<_>, Vec<_>) =
                parts.iter().partition(|part| is_condition(part));
            let [only] = parts.as_slice() else { return Loose::default() };
            let mut loose = loose(only, columns);
            loose.conditions.extend(terms(&conditions));
            loose
        }
        Expression::Term(Term::Word(word)) => {
            let whole = TermQuery::prefix(word, columns).into_iter();
            let pieces = TermQuery::pieces(word, columns).into_iter().take(LOOSE_PIECES_MAX);
            Loose { parts: whole.chain(pieces).collect(), ..Loose::default() }
        }
        Expression::Term(_) | Expression::Filter(_) | Expression::Any(_) | Expression::Not(_) => {
            Loose::default()
        }
    }
}

/// Counts the parts that documents have, and returns the rarest, in their order.
fn counted(
    parts: &[TermQuery],
    count: impl Fn(&TermQuery) -> Result<usize, Error>,
) -> Result<Vec<Counted<'_>>, Error> {
    let mut counted: Vec<Counted<'_>> = Vec::new();
    for part in parts {
        match counted.iter_mut().find(|known| known.part == part) {
            Some(known) => known.times += 1,
            None => counted.push(Counted { part, count: count(part)?, times: 1 }),
        }
    }
    counted.retain(|counted| counted.count > 0);
    counted.sort_by_key(|counted| counted.count);
    counted.truncate(LOOSE_WORDS_MAX);
    Ok(counted)
}

/// Returns the query for documents with one of the rarest parts, because a word that nearly
/// everything has tells little and takes long to rank; the others count where they are.
fn rarest(counted: Vec<Counted<'_>>) -> Option<TermQuery> {
    let mut sum = 0;
    let (mut rare, mut common) = (Vec::new(), Vec::new());
    for Counted { part, count, times } in counted {
        sum += count;
        let repeated = std::iter::repeat_n(part.clone(), times);
        if rare.is_empty() || sum <= LOOSE_MAX {
            rare.extend(repeated);
        } else if count < LOOSE_COUNTED_MAX {
            common.extend(repeated);
        }
    }
    let rare = (!rare.is_empty()).then_some(TermQuery::Or(rare))?;
    let has_common = !common.is_empty();
    Some(if has_common { TermQuery::And(vec![rare, preferring(common)]) } else { rare })
}

/// Returns the query that every document fits, those with one of the parts better.
fn preferring(mut parts: Vec<TermQuery>) -> TermQuery {
    parts.push(TermQuery::mark(Mark::Any));
    TermQuery::Or(parts)
}

fn with_conditions(mut wanted: Vec<TermQuery>, conditions: &[TermQuery]) -> TermQuery {
    wanted.extend(conditions.iter().cloned());
    TermQuery::And(wanted)
}

/// Returns what to settle for of several parts: any of the words, with everything else.
fn several(parts: &[&Expression], columns: &'static [Column]) -> Loose {
    let mut loose = Loose::default();
    let mut pieces = Vec::new();
    let mut has_words = false;
    for part in parts {
        let terms = terms_of(part, columns);
        match part {
            Expression::Term(Term::Word(word)) => {
                has_words = true;
                loose.parts.extend(terms);
                pieces.extend(TermQuery::pieces(word, columns));
            }
            Expression::Term(Term::Prefix(_)) => {
                has_words = true;
                loose.parts.extend(terms);
            }
            Expression::Term(Term::Phrase(_)) => loose.quoted.extend(terms),
            Expression::Together(_) | Expression::All(_) | Expression::Any(_) => {
                loose.fixed.extend(terms);
            }
            Expression::Filter(_) | Expression::Not(_) => loose.conditions.extend(terms),
        }
    }
    loose.parts.extend(pieces.into_iter().take(LOOSE_PIECES_MAX));
    if has_words { loose } else { Loose::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Id as _, StoreId};

    fn plan(text: &str) -> Plan {
        Plan::new(&SearchRequest::new(vec![StoreId::from_bits(1)], text))
    }

    fn wanted(text: &str) -> Option<TermQuery> {
        plan(text).asked.remove(0).wanted
    }

    #[test]
    fn fillers_count_only_when_there_is_nothing_else() {
        assert_eq!(wanted("what is the tea?"), wanted("tea").map(|tea| TermQuery::And(vec![tea])));
        assert!(wanted("to be or").is_some());
        assert_eq!(plan("what is green tea").loose.parts.len(), 2);
    }

    #[test]
    fn only_words_beside_each_other_are_given_up() {
        let mixed = plan("green tea \"hot water\"").loose;
        assert_eq!(mixed.parts.len(), 2);
        assert_eq!(mixed.quoted, [TermQuery::phrase("hot water", TEXT).unwrap()]);
        let mixed = plan("(green OR black) tea tag:x NOT y").loose;
        assert_eq!((mixed.fixed.len(), mixed.conditions.len()), (1, 2));
        assert_eq!(plan("green tea AND tag:x").loose.parts.len(), 2);
        assert_eq!(plan("\"green tea\" \"hot water\"").loose, Loose::default());
        for text in ["green AND tea", "green OR tea", "\"green tea\"", "(a NOT b) OR c"] {
            assert_eq!(plan(text).loose.parts, [], "{text}");
        }
    }

    #[test]
    fn a_word_of_several_terms_is_also_looked_for_piece_by_piece() {
        assert_eq!(plan("ペットボトルは何曜日").loose.parts.len(), 1 + 9);
        assert_eq!(plan("green tea-pot").loose.parts.len(), 2 + 2);
        assert_eq!(plan("tea").loose.parts.len(), 1);
    }

    #[test]
    fn signs_alone_ask_for_nothing() {
        assert_eq!(wanted("-- ?? \"\""), None);
        assert_eq!(plan("-- ?? \"\"").loose.parts, []);
    }
}
