//! The scores of documents by their own words.

use crate::index::{Bits, Doc, IndexError};

/// The scores of the documents of a segment.
///
/// They are dense, because documents with any of the words match, and those are many. Looking up
/// each candidate in each list takes twice as long.
pub(super) struct Sums {
    documents: Vec<Sum>,
}

/// The score of a document.
#[derive(Clone, Copy, Default)]
struct Sum {
    score: f64,
    /// The sum of the idf of the words that the document has.
    covered: f64,
    /// Which of the words it has.
    words: WordSet,
}

/// A set of words of a query. Those after the 64th are never in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WordSet(u64);

impl WordSet {
    pub(super) fn insert(&mut self, number: usize) {
        self.0 |= bit(number);
    }

    /// Returns the numbers of the words, in ascending order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let number = usize::try_from(rest.trailing_zeros()).ok().filter(|_| rest != 0)?;
            rest &= rest - 1;
            Some(number)
        })
    }
}

fn bit(number: usize) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0)
}

impl Sums {
    pub(super) fn new(count: usize) -> Self {
        Self { documents: vec![Sum::default(); count] }
    }

    pub(super) fn of(&self, doc: Doc) -> f64 {
        self.get(doc).score
    }

    /// Returns which of the words a document has.
    pub(super) fn words_of(&self, doc: Doc) -> WordSet {
        self.get(doc).words
    }

    fn get(&self, doc: Doc) -> Sum {
        let sum = usize::try_from(doc).ok().and_then(|doc| self.documents.get(doc));
        sum.copied().unwrap_or_default()
    }

    fn get_mut(&mut self, doc: Doc) -> Result<&mut Sum, IndexError> {
        let doc = usize::try_from(doc).ok();
        doc.and_then(|doc| self.documents.get_mut(doc)).ok_or(IndexError::Damaged)
    }

    /// Adds what a word of the query is worth to a document that has it.
    pub(super) fn add(
        &mut self,
        doc: Doc,
        (number, idf): (usize, f64),
        score: f64,
    ) -> Result<(), IndexError> {
        let sum = self.get_mut(doc)?;
        sum.score += score;
        sum.covered += idf;
        sum.words.insert(number);
        Ok(())
    }

    /// Adds the bonus for having all words.
    pub(super) fn finish(&mut self, coverage: f64, all_idfs: f64) {
        if all_idfs > 0.0 {
            for sum in &mut self.documents {
                sum.score *= 1.0 + coverage * sum.covered / all_idfs;
            }
        }
    }

    /// Adds the bonus for being of the days that were asked for.
    pub(super) fn prefer(&mut self, docs: &Bits, bonus: f64) -> Result<(), IndexError> {
        docs.iter().try_for_each(|doc| {
            self.get_mut(doc)?.score *= 1.0 + bonus;
            Ok(())
        })
    }

    /// Returns the documents with a score, and the scores.
    pub(super) fn found_mut(&mut self) -> impl Iterator<Item = (Doc, &mut f64)> {
        let scores = (0..).zip(self.documents.iter_mut().map(|sum| &mut sum.score));
        scores.filter(|(_, score)| **score > 0.0)
    }
}
