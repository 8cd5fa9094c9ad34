//! Plans: requests compiled for the index.

use std::cell::RefCell;

use quipu_notes::query::{Expr, Field, Filter, Query, Term, significant};
use quipu_notes::tokenizer::Language;
use quipu_notes::{Glob, Phrase};

use super::clause::Clause;
use super::occurrences::{PhraseId, Phrases};
use super::scoring::Scoring;
use super::{SearchMode, SearchRequest};
use crate::index::{Fields, Mark, Space};

/// A request compiled for one space.
pub(super) struct Plan {
    /// What a document must match.
    pub(super) strict: Clause,
    /// What is sufficient if too few documents match `strict`.
    pub(super) relaxed: Option<Relaxed>,
    /// The conditions of the request's filter.
    conditions: Vec<Clause>,
    /// The phrases that the clauses refer to.
    pub(super) phrases: Phrases,
}

/// A query that documents need not match in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Relaxed {
    /// Each of these adds to the score. A document must match at least one, unless there are
    /// `required` clauses.
    pub(super) optional: Vec<Clause>,
    /// Required all the same, and part of what is searched for.
    pub(super) required: Vec<Clause>,
    /// Required if any document matches.
    pub(super) quoted: Vec<Clause>,
    /// Restricts the matches without being searched for.
    pub(super) constraints: Vec<Clause>,
}

/// The maximum number of pieces of words to look up in addition to the words.
const PIECES_MAX: usize = 128;

impl Plan {
    pub(super) fn new(
        request: &SearchRequest,
        space: Space,
        languages: &[Language],
        scoring: Scoring,
    ) -> Self {
        let fields = match request.mode {
            SearchMode::Text | SearchMode::Permalink => Fields::ALL,
            SearchMode::Title => Fields::TITLE,
        };
        let expr = match request.mode {
            SearchMode::Text | SearchMode::Title => Query::parse(&request.text).expr,
            SearchMode::Permalink => None,
        };
        let phrases = RefCell::new(Phrases::new(space, scoring));
        let compiler = Compiler { space, fields, languages, phrases: &phrases };
        let conditions = compiler.conditions(request);
        let wanted = expr.as_ref().and_then(|expr| compiler.clause(expr));
        let relaxed = expr.as_ref().map(|expr| compiler.relaxed(expr));
        let relaxed = relaxed.filter(|relaxed| !relaxed.optional.is_empty()).map(|mut relaxed| {
            relaxed.constraints.extend(conditions.iter().cloned());
            relaxed
        });
        let strict = Clause::All(wanted.into_iter().chain(conditions.iter().cloned()).collect());
        Self { strict, relaxed, conditions, phrases: phrases.into_inner() }
    }

    /// Returns the conditions of the request's filter, if there are any.
    pub(super) fn condition(&self) -> Option<Clause> {
        (!self.conditions.is_empty()).then(|| Clause::All(self.conditions.clone()))
    }

    /// Returns the phrases that documents are scored by.
    pub(super) fn scored(&self) -> Vec<PhraseId> {
        let mut phrases = Vec::new();
        self.strict.add_phrases(&mut phrases);
        phrases
    }

    /// Returns the distinct phrases to highlight in snippets.
    pub(super) fn shown(&self) -> Vec<&Phrase> {
        let mut phrases = self.scored();
        if let Some(relaxed) = &self.relaxed {
            relaxed.optional.iter().for_each(|clause| clause.add_phrases(&mut phrases));
        }
        let mut shown = Vec::new();
        for phrase in phrases.into_iter().filter_map(|id| self.phrases.get(id)) {
            if !shown.contains(&phrase) {
                shown.push(phrase);
            }
        }
        shown
    }
}

impl Relaxed {
    /// Returns what a document must match.
    pub(super) fn clause(&self) -> Clause {
        let mut all = self.constraints.clone();
        if self.required.is_empty() {
            all.push(Clause::Any(self.optional.clone()));
        }
        all.extend(self.required.iter().cloned());
        Clause::All(all)
    }

    /// Returns the phrases that documents are scored by.
    pub(super) fn scored(&self) -> Vec<PhraseId> {
        let mut phrases = Vec::new();
        let all = self.required.iter().chain(&self.optional);
        all.for_each(|clause| clause.add_phrases(&mut phrases));
        phrases
    }
}

/// Compiles queries and filters into clauses.
struct Compiler<'l> {
    space: Space,
    fields: Fields,
    languages: &'l [Language],
    phrases: &'l RefCell<Phrases>,
}

impl Compiler<'_> {
    fn mark(&self, mark: Mark<'_>) -> Clause {
        Clause::Mark(mark.term(self.space))
    }

    /// Returns the conditions of a request's filter.
    fn conditions(&self, request: &SearchRequest) -> Vec<Clause> {
        let filter = &request.filter;
        let mut all = Vec::new();
        if let Some(directory) = filter.directory.as_ref().filter(|directory| !directory.is_root())
        {
            all.push(self.mark(Mark::Place(directory.as_str().trim_end_matches('/'))));
        }
        if !filter.kinds.is_empty() {
            all.push(Clause::Any(
                filter.kinds.iter().map(|it| self.mark(Mark::Type(it))).collect(),
            ));
        }
        all.extend(filter.tags.iter().map(|tag| self.mark(Mark::Tag(tag))));
        if !filter.categories.is_empty() {
            let categories = filter.categories.iter();
            all.push(Clause::Any(categories.map(|it| self.mark(Mark::Category(it))).collect()));
        }
        all.extend(filter.fields.iter().cloned().map(Clause::Field));
        all.extend(filter.changed_after.map(Clause::ChangedAfter));
        all
    }

    /// Compiles an expression; `None` if it has no words.
    fn clause(&self, expr: &Expr) -> Option<Clause> {
        let each = |parts: &mut dyn Iterator<Item = &Expr>| -> Vec<Clause> {
            parts.filter_map(|part| self.clause(part)).collect()
        };
        let all = |parts: Vec<Clause>| (!parts.is_empty()).then_some(Clause::All(parts));
        match expr {
            Expr::Term(term) => self.term(term),
            Expr::Filter(filter) => Some(self.filter(filter)),
            Expr::Juxtaposed(parts) => {
                all(each(&mut significant(parts, self.languages).into_iter()))
            }
            Expr::And(parts) => all(each(&mut parts.iter())),
            Expr::Or(parts) => {
                let parts = each(&mut parts.iter());
                (!parts.is_empty()).then_some(Clause::Any(parts))
            }
            Expr::Not(unwanted) => {
                self.clause(unwanted).map(|unwanted| Clause::Not(Box::new(unwanted)))
            }
        }
    }

    fn term(&self, term: &Term) -> Option<Clause> {
        let phrases = match term {
            Term::Word(word) => Phrase::spellings(word, self.languages),
            Term::Prefix(start) => Phrase::prefix(start, self.languages),
            Term::Phrase(words) => Phrase::quoted(words, self.languages),
        };
        let mut words: Vec<_> = phrases.into_iter().map(|phrase| self.words(phrase)).collect();
        if words.len() > 1 { Some(Clause::Any(words)) } else { words.pop() }
    }

    fn words(&self, phrase: Phrase) -> Clause {
        Clause::Words(self.phrases.borrow_mut().add(phrase, self.fields))
    }

    /// Compiles a filter of the query.
    fn filter(&self, filter: &Filter) -> Clause {
        let value = filter.value.as_str();
        match filter.field {
            Field::Tag => self.mark(Mark::Tag(value)),
            Field::Type => self.mark(Mark::Type(value)),
            Field::Path => {
                let place = value.strip_suffix("/*").unwrap_or(value);
                if place.contains(['*', '?']) {
                    return Clause::Path(Glob::new(value));
                }
                let path = place.trim_matches('/');
                if path.is_empty() {
                    return Clause::All(Vec::new());
                }
                let places = [format!("/{path}"), format!("/{path}.md")];
                Clause::Any(places.iter().map(|place| self.mark(Mark::Place(place))).collect())
            }
        }
    }

    /// Returns the relaxed form of an expression, for when too few documents match it.
    ///
    /// Only juxtaposed words are optional; `AND`, `OR`, `NOT`, filters and quotes are taken
    /// literally. A single word is also looked up as a prefix.
    fn relaxed(&self, expr: &Expr) -> Relaxed {
        match expr {
            Expr::Juxtaposed(parts) => {
                let (constraints, parts): (Vec<_>, Vec<_>) = significant(parts, self.languages)
                    .into_iter()
                    .partition(|part| part.is_constraint());
                let relaxed = match parts.as_slice() {
                    [only] => self.relaxed(only),
                    parts => self.several(parts),
                };
                self.constrained(relaxed, &constraints)
            }
            Expr::And(parts) => {
                let (constraints, parts): (Vec<_>, Vec<_>) =
                    parts.iter().partition(|part| part.is_constraint());
                let [only] = parts.as_slice() else { return Relaxed::default() };
                self.constrained(self.relaxed(only), &constraints)
            }
            Expr::Term(Term::Word(word)) => {
                let prefixes = Phrase::prefix(word, self.languages).into_iter();
                let pieces = self.pieces(word).into_iter();
                let optional = prefixes.map(|phrase| self.words(phrase)).chain(pieces).collect();
                Relaxed { optional, ..Relaxed::default() }
            }
            Expr::Term(_) | Expr::Filter(_) | Expr::Or(_) | Expr::Not(_) => Relaxed::default(),
        }
    }

    fn constrained(&self, mut relaxed: Relaxed, constraints: &[&Expr]) -> Relaxed {
        let clauses = constraints.iter().filter_map(|constraint| self.clause(constraint));
        relaxed.constraints.extend(clauses);
        relaxed
    }

    /// Returns the relaxed form of several parts: any of the words, and everything else.
    fn several(&self, parts: &[&Expr]) -> Relaxed {
        let mut relaxed = Relaxed::default();
        let mut pieces = Vec::new();
        for part in parts {
            let clause = self.clause(part);
            match part {
                Expr::Term(Term::Word(word)) => {
                    relaxed.optional.extend(clause);
                    pieces.extend(self.pieces(word));
                }
                Expr::Term(Term::Prefix(_)) => relaxed.optional.extend(clause),
                Expr::Term(Term::Phrase(_)) => relaxed.quoted.extend(clause),
                Expr::Juxtaposed(_) | Expr::And(_) | Expr::Or(_) => {
                    relaxed.required.extend(clause);
                }
                Expr::Filter(_) | Expr::Not(_) => relaxed.constraints.extend(clause),
            }
        }
        if relaxed.optional.is_empty() {
            return Relaxed::default();
        }
        pieces.truncate(PIECES_MAX);
        relaxed.optional.append(&mut pieces);
        relaxed
    }

    /// Returns the individual terms of a word that has several, such as `foo-bar` or `日本語`.
    fn pieces(&self, word: &str) -> Vec<Clause> {
        let pieces = Phrase::pieces(word, self.languages).into_iter().take(PIECES_MAX);
        pieces.map(|phrase| self.words(phrase)).collect()
    }
}
