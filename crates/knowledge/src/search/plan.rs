//! Plans: requests compiled for the index.

use std::cell::RefCell;

use quipu_notes::query::{Expr, Field, Filter, Query, Term, significant};
use quipu_notes::tokenizer::Language;
use quipu_notes::{Glob, Phrase};

use super::clause::Clause;
use super::occurrences::{PhraseId, Phrases};
use super::rank::Ranking;
use super::scoring::Scoring;
use super::{SearchMode, SearchRequest};
use crate::index::{Fields, IndexError, Mark, Space};

/// A request compiled for one space.
pub(super) struct Plan {
    wanted: Wanted,
    /// The conditions of the request's filter.
    conditions: Vec<Clause>,
    /// The phrases that the clauses refer to.
    pub(super) phrases: Phrases,
}

/// The phrases that a word of the query may match.
pub(crate) type Word = Vec<PhraseId>;

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Each of these adds to the score. A document must match at least one, unless something else
    /// is required.
    optional: Vec<Clause>,
    /// Required, and part of what is searched for.
    required: Vec<Clause>,
    /// Required if any document matches; otherwise its words are optional.
    quoted: Vec<Quoted>,
    /// Restricts the matches without being searched for.
    constraints: Vec<Clause>,
    /// What follows if too few documents match: those with a single word as a prefix or in pieces.
    further: Vec<Clause>,
}

/// A quoted phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quoted {
    phrase: Clause,
    words: Vec<Clause>,
}

/// Which documents are found, and what they are scored by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) clause: Clause,
    pub(super) words: Vec<Word>,
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
            SearchMode::Title => Fields::TITLE,
            SearchMode::Best
            | SearchMode::Text
            | SearchMode::Vector
            | SearchMode::Hybrid
            | SearchMode::Permalink => Fields::ALL,
        };
        let expr = match request.mode {
            SearchMode::Permalink => None,
            SearchMode::Best
            | SearchMode::Text
            | SearchMode::Vector
            | SearchMode::Hybrid
            | SearchMode::Title => Query::parse(&request.text).expr,
        };
        let phrases = RefCell::new(Phrases::new(space, scoring));
        let compiler = Compiler { space, fields, languages, phrases: &phrases };
        let conditions = compiler.conditions(request);
        let mut wanted = expr.as_ref().map(|expr| compiler.wanted(expr)).unwrap_or_default();
        wanted.constraints.extend(conditions.iter().cloned());
        Self { wanted, conditions, phrases: phrases.into_inner() }
    }

    /// Returns the conditions of the request's filter, if there are any.
    pub(super) fn condition(&self) -> Option<Clause> {
        (!self.conditions.is_empty()).then(|| Clause::All(self.conditions.clone()))
    }

    /// Returns the conditions of the request and of the query, which whatever is found must meet.
    pub(super) fn constraints(&self) -> Clause {
        Clause::All(self.wanted.constraints.clone())
    }

    /// Returns what to find, given what the searched stores contain.
    ///
    /// A quoted phrase in a question is often quoted from memory. If no document has it, requiring it
    /// would find nothing, and dropping it would lose its words, so these are looked for. Each phrase
    /// is tested alone: otherwise the order of two phrases would decide which one is given up. A
    /// phrase without other words is taken literally.
    pub(super) fn selection(&self, ranking: &Ranking<'_, '_>) -> Result<Selection, IndexError> {
        let Wanted { optional, required, quoted, constraints, .. } = &self.wanted;
        let (mut optional, mut required) = (optional.clone(), required.clone());
        for Quoted { phrase, words } in quoted {
            let mut all = constraints.clone();
            all.push(phrase.clone());
            if ranking.has_any(&Clause::All(all))? {
                required.push(phrase.clone());
            } else {
                optional.extend(words.iter().cloned());
            }
        }
        let words = required.iter().chain(&optional).flat_map(Clause::words).collect();
        let mut all = constraints.clone();
        if required.is_empty() && !optional.is_empty() {
            all.push(Clause::Any(optional));
        }
        all.extend(required);
        Ok(Selection { clause: Clause::All(all), words })
    }

    /// Returns whether more can be found if too little is selected.
    pub(super) fn has_further(&self) -> bool {
        !self.wanted.further.is_empty()
    }

    /// Returns what follows the selected documents.
    pub(super) fn further(&self, selection: &Selection) -> Selection {
        let further = &self.wanted.further;
        let mut all = self.wanted.constraints.clone();
        all.push(Clause::Any(further.clone()));
        // Not every document that was selected is among these: `went` finds `go`, of which it is no
        // prefix. So the two are counted apart.
        all.push(Clause::Not(Box::new(selection.clause.clone())));
        Selection {
            clause: Clause::All(all),
            words: further.iter().flat_map(Clause::words).collect(),
        }
    }

    /// Returns the distinct phrases to highlight in snippets.
    pub(super) fn shown(&self) -> Vec<&Phrase> {
        let Wanted { optional, required, quoted, further, .. } = &self.wanted;
        let quoted = quoted.iter().flat_map(|it| std::iter::once(&it.phrase).chain(&it.words));
        let clauses = required.iter().chain(quoted).chain(optional).chain(further);
        let mut shown = Vec::new();
        for id in clauses.flat_map(Clause::words).flatten() {
            if let Some(phrase) = self.phrases.get(id)
                && !shown.contains(&phrase)
            {
                shown.push(phrase);
            }
        }
        shown
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

    /// Compiles the expression of a query.
    ///
    /// Juxtaposed words are optional: one that has all of them is ranked higher, but a question
    /// rarely consists of the words of its answer. `AND`, `OR`, `NOT`, filters and quotes are taken
    /// literally.
    fn wanted(&self, expr: &Expr) -> Wanted {
        match expr {
            Expr::Juxtaposed(parts) => {
                let (constraints, parts): (Vec<_>, Vec<_>) = significant(parts, self.languages)
                    .into_iter()
                    .partition(|part| part.is_constraint());
                let wanted = match parts.as_slice() {
                    [only] => self.wanted(only),
                    parts => self.several(parts),
                };
                self.constrained(wanted, &constraints)
            }
            Expr::And(parts) => {
                let (constraints, rest): (Vec<_>, Vec<_>) =
                    parts.iter().partition(|part| part.is_constraint());
                match rest.as_slice() {
                    [only] => self.constrained(self.wanted(only), &constraints),
                    _ => Wanted { required: self.clauses([expr]), ..Wanted::default() },
                }
            }
            Expr::Term(Term::Word(word)) => {
                let prefixes = Phrase::prefix(word, self.languages).into_iter();
                let pieces = self.pieces(word).into_iter();
                let further = prefixes.map(|phrase| self.words(phrase)).chain(pieces).collect();
                Wanted { required: self.clauses([expr]), further, ..Wanted::default() }
            }
            Expr::Term(Term::Prefix(_) | Term::Phrase(_)) | Expr::Or(_) => {
                Wanted { required: self.clauses([expr]), ..Wanted::default() }
            }
            Expr::Filter(_) | Expr::Not(_) => {
                Wanted { constraints: self.clauses([expr]), ..Wanted::default() }
            }
        }
    }

    fn clauses<'e>(&self, parts: impl IntoIterator<Item = &'e Expr>) -> Vec<Clause> {
        parts.into_iter().filter_map(|part| self.clause(part)).collect()
    }

    fn constrained(&self, mut wanted: Wanted, constraints: &[&Expr]) -> Wanted {
        wanted.constraints.extend(self.clauses(constraints.iter().copied()));
        wanted
    }

    /// Compiles several juxtaposed parts.
    fn several(&self, parts: &[&Expr]) -> Wanted {
        let mut wanted = Wanted::default();
        let mut pieces = Vec::new();
        for part in parts {
            match part {
                Expr::Term(Term::Word(word)) => {
                    wanted.optional.extend(self.clause(part));
                    pieces.extend(self.pieces(word));
                }
                Expr::Term(Term::Prefix(_)) => wanted.optional.extend(self.clause(part)),
                Expr::Term(Term::Phrase(text)) => wanted.quoted.extend(self.quoted(text)),
                Expr::Juxtaposed(_) | Expr::And(_) | Expr::Or(_) => {
                    wanted.required.extend(self.clause(part));
                }
                Expr::Filter(_) | Expr::Not(_) => wanted.constraints.extend(self.clause(part)),
            }
        }
        pieces.truncate(PIECES_MAX);
        wanted.optional.append(&mut pieces);
        wanted
    }

    /// Compiles a quoted phrase; `None` if it has no words.
    fn quoted(&self, text: &str) -> Option<Quoted> {
        let phrase = self.clause(&Expr::Term(Term::Phrase(text.to_owned())))?;
        let words = text.split_whitespace().map(|word| Expr::Term(Term::Word(word.to_owned())));
        let words: Vec<_> = words.collect();
        Some(Quoted { phrase, words: self.clauses(significant(&words, self.languages)) })
    }

    /// Returns the individual terms of a word that has several, such as `foo-bar` or `日本語`.
    fn pieces(&self, word: &str) -> Vec<Clause> {
        let pieces = Phrase::pieces(word, self.languages).into_iter().take(PIECES_MAX);
        pieces.map(|phrase| self.words(phrase)).collect()
    }
}
