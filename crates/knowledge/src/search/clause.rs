//! Clauses: which documents of a segment a query selects.
//!
//! A query is an expression over words as typed. A clause is the same expression over index terms,
//! compiled for one space, and evaluated on sets of documents.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;
use quipu_core::model::Timestamp;
use quipu_notes::{Comparison, FieldFilter, Glob, Predicate};

use super::occurrences::{PhraseId, Phrases, Weight};
use super::plan::Word;
use crate::index::{Bits, Doc, IndexError, Postings, SegmentView, Space, field_prefix};

/// A condition on a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// It contains a phrase.
    Words(PhraseId),
    /// It has a term without positions.
    Mark(Vec<u8>),
    /// A frontmatter field of its memory matches.
    Field(FieldFilter),
    /// The path of its memory matches.
    Path(Glob),
    /// Its memory changed after this time.
    ChangedAfter(Timestamp),
    /// All of these; an empty list matches every document.
    All(Vec<Self>),
    /// At least one of these; an empty list matches no document.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

impl Clause {
    /// Returns the words to score by, in order, without negated ones. Alternatives are one word.
    pub(crate) fn words(&self) -> Vec<Word> {
        match self {
            Self::Words(phrase) => vec![vec![*phrase]],
            Self::All(clauses) => clauses.iter().flat_map(Self::words).collect(),
            Self::Any(clauses) => {
                let mut word = Word::new();
                for phrase in clauses.iter().flat_map(Self::words).flatten() {
                    // Counting an alternative twice would double its frequency.
                    if !word.contains(&phrase) {
                        word.push(phrase);
                    }
                }
                if word.is_empty() { Vec::new() } else { vec![word] }
            }
            Self::Mark(_)
            | Self::Field(_)
            | Self::Path(_)
            | Self::ChangedAfter(_)
            | Self::Not(_) => Vec::new(),
        }
    }
}

/// Documents in ascending order, with the weighted frequency of a phrase or word in each.
pub(crate) type Occurrences = Rc<Vec<(Doc, Weight)>>;

/// Evaluates clauses on one segment.
pub(crate) struct Evaluator<'v, 'c> {
    segment: &'v SegmentView<'c>,
    phrases: &'v Phrases,
    space: Space,
    live: Bits,
    /// The lookups so far: selecting and ranking use the same phrases.
    known: RefCell<HashMap<PhraseId, Occurrences, RandomState>>,
}

impl<'v, 'c> Evaluator<'v, 'c> {
    pub(crate) fn new(
        segment: &'v SegmentView<'c>,
        phrases: &'v Phrases,
    ) -> Result<Self, IndexError> {
        let space = phrases.space();
        let live = segment.live(space)?;
        Ok(Self { segment, phrases, space, live, known: RefCell::default() })
    }

    pub(crate) fn segment(&self) -> &'v SegmentView<'c> {
        self.segment
    }

    pub(crate) fn phrases(&self) -> &'v Phrases {
        self.phrases
    }

    /// Returns the documents that match a clause.
    pub(crate) fn select(&self, clause: &Clause) -> Result<Bits, IndexError> {
        let count = self.segment.count(self.space);
        let mut selected = match clause {
            Clause::Words(phrase) => {
                let mut selected = Bits::none(count);
                for (doc, _) in self.occurrences(*phrase)?.iter() {
                    selected.insert(*doc)?;
                }
                return Ok(selected);
            }
            Clause::All(clauses) => {
                let mut selected = self.live.clone();
                for clause in clauses {
                    // The result is empty already, and can only shrink.
                    if selected.is_empty() {
                        break;
                    }
                    selected.intersect(&self.select(clause)?);
                }
                return Ok(selected);
            }
            Clause::Any(clauses) => {
                let mut selected = Bits::none(count);
                for clause in clauses {
                    selected.unite(&self.select(clause)?);
                }
                return Ok(selected);
            }
            Clause::Not(clause) => {
                let mut selected = self.live.clone();
                selected.subtract(&self.select(clause)?);
                return Ok(selected);
            }
            Clause::Mark(term) => self.marked(term)?,
            Clause::Field(filter) => self.of_memories(self.with_field(filter)?)?,
            Clause::Path(glob) => {
                let mut memories = Vec::new();
                self.segment.each_path(|doc, path| {
                    if glob.matches(path) {
                        memories.push(doc);
                    }
                })?;
                self.of_memories(self.set(memories)?)?
            }
            Clause::ChangedAfter(moment) => {
                let mut memories = Vec::new();
                for doc in self.segment.live(Space::Memories)?.iter() {
                    if self.segment.updated_at(doc)? > *moment {
                        memories.push(doc);
                    }
                }
                self.of_memories(self.set(memories)?)?
            }
        };
        selected.intersect(&self.live);
        Ok(selected)
    }

    /// Returns the documents with a phrase, in ascending order.
    pub(crate) fn occurrences(&self, phrase: PhraseId) -> Result<Occurrences, IndexError> {
        if let Some(known) = self.known.borrow().get(&phrase) {
            return Ok(Rc::clone(known));
        }
        let found = Rc::new(self.phrases.look_up(phrase, self.segment, &self.live)?);
        self.known.borrow_mut().insert(phrase, Rc::clone(&found));
        Ok(found)
    }

    /// Returns the documents with any of the phrases of a word, in ascending order. Their frequencies
    /// are summed.
    pub(crate) fn occurrences_of_word(&self, word: &Word) -> Result<Occurrences, IndexError> {
        let mut phrases = word.iter().map(|phrase| self.occurrences(*phrase));
        let Some(mut all) = phrases.next().transpose()? else { return Ok(Rc::default()) };
        for found in phrases {
            let found = found?;
            if all.is_empty() {
                all = found;
            } else if !found.is_empty() {
                all = Rc::new(merged(&all, &found));
            }
        }
        Ok(all)
    }

    fn marked(&self, term: &[u8]) -> Result<Bits, IndexError> {
        let mut docs = Bits::none(self.segment.count(self.space));
        self.segment.with_postings(term, |postings| {
            for posting in Postings::new(postings) {
                docs.insert(posting?.doc)?;
            }
            Ok(())
        })?;
        Ok(docs)
    }

    fn set(&self, memories: Vec<Doc>) -> Result<Bits, IndexError> {
        let mut set = Bits::none(self.segment.count(Space::Memories));
        memories.into_iter().try_for_each(|doc| set.insert(doc))?;
        Ok(set)
    }

    /// Returns the documents that are one of these memories, or part of one.
    fn of_memories(&self, memories: Bits) -> Result<Bits, IndexError> {
        if self.space == Space::Memories {
            return Ok(memories);
        }
        let mut selected = Bits::none(self.segment.count(self.space));
        for doc in self.live.iter() {
            if memories.contains(self.segment.fact(self.space, doc)?.memory) {
                selected.insert(doc)?;
            }
        }
        Ok(selected)
    }

    /// Returns the memories whose frontmatter matches a filter.
    fn with_field(&self, filter: &FieldFilter) -> Result<Bits, IndexError> {
        let with = |predicate: Predicate| -> Result<Bits, IndexError> {
            self.with_value(&FieldFilter { key: filter.key.clone(), predicate })
        };
        let all = || Bits::all(self.segment.count(Space::Memories));
        let without = |predicate: Predicate| -> Result<Bits, IndexError> {
            let mut memories = all();
            memories.subtract(&with(predicate)?);
            Ok(memories)
        };
        match &filter.predicate {
            Predicate::Absent => without(Predicate::Exists),
            Predicate::Is(Comparison::NotEqual, wanted) => {
                without(Predicate::Is(Comparison::Equal, wanted.clone()))
            }
            // Each wanted value may be found in a different value of the field.
            Predicate::Contains(wanted) => {
                let mut memories = all();
                for one in wanted {
                    memories.intersect(&with(Predicate::Contains(vec![one.clone()]))?);
                }
                Ok(memories)
            }
            Predicate::Exists | Predicate::Is(..) | Predicate::In(_) | Predicate::Between(..) => {
                self.with_value(filter)
            }
        }
    }

    /// Returns the memories with a value of a field that matches a filter.
    ///
    /// The values of a field are the terms with its prefix, so each distinct value is tested once,
    /// however many memories have it.
    fn with_value(&self, filter: &FieldFilter) -> Result<Bits, IndexError> {
        let mut memories = Bits::none(self.segment.count(Space::Memories));
        let prefix = field_prefix(&filter.key);
        self.segment.each_with_prefix(&prefix, |term, postings| {
            let value = str::from_utf8(term.get(prefix.len()..).unwrap_or_default());
            if filter.accepts(std::iter::once(value.ok().ok_or(IndexError::Damaged)?)) {
                for posting in Postings::new(postings) {
                    memories.insert(posting?.doc)?;
                }
            }
            Ok(())
        })?;
        Ok(memories)
    }
}

/// Merges two lists of documents; of those in both, the frequencies are summed.
fn merged(left: &[(Doc, Weight)], right: &[(Doc, Weight)]) -> Vec<(Doc, Weight)> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let mut right = right.iter().copied().peekable();
    for &(doc, weight) in left {
        while let Some(before) = right.next_if(|(other, _)| *other < doc) {
            all.push(before);
        }
        let same = right.next_if(|(other, _)| *other == doc);
        all.push((doc, weight + same.map_or(0.0, |(_, weight)| weight)));
    }
    all.extend(right);
    all
}
