//! The scores of documents by their own words.

use crate::index::{Bits, Doc, IndexError};

/// The scores of the documents of a segment.
///
/// They are dense, because documents with any of the words match, and those are many. Looking up
/// each candidate in each list takes twice as long.
pub(super) struct Sums {
    pub(super) scores: Vec<f64>,
    /// The sum of the idf of the words that each document has.
    covered: Vec<f64>,
    /// Which of the words each document has.
    words: Vec<WordSet>,
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
        let words = vec![WordSet::default(); count];
        Self { scores: vec![0.0; count], covered: vec![0.0; count], words }
    }

    pub(super) fn of(&self, doc: Doc) -> f64 {
        let score = usize::try_from(doc).ok().and_then(|doc| self.scores.get(doc));
        score.copied().unwrap_or_default()
    }

    /// Returns which of the words a document has.
    pub(super) fn words_of(&self, doc: Doc) -> WordSet {
        let words = usize::try_from(doc).ok().and_then(|doc| self.words.get(doc));
        words.copied().unwrap_or_default()
    }

    pub(super) fn score_mut(&mut self, doc: Doc) -> Result<&mut f64, IndexError> {
        let doc = usize::try_from(doc).ok();
        doc.and_then(|doc| self.scores.get_mut(doc)).ok_or(IndexError::Damaged)
    }

    /// Adds what a word of the query is worth to a document that has it.
    pub(super) fn add(
        &mut self,
        doc: Doc,
        (number, idf): (usize, f64),
        score: f64,
    ) -> Result<(), IndexError> {
        let doc = usize::try_from(doc).ok().ok_or(IndexError::Damaged)?;
        *self.scores.get_mut(doc).ok_or(IndexError::Damaged)? += score;
        *self.covered.get_mut(doc).ok_or(IndexError::Damaged)? += idf;
        self.words.get_mut(doc).ok_or(IndexError::Damaged)?.insert(number);
        Ok(())
    }

    /// Adds the bonus for having all words.
    pub(super) fn finish(&mut self, coverage: f64, all_idfs: f64) {
        if all_idfs > 0.0 {
            for (score, covered) in self.scores.iter_mut().zip(&self.covered) {
                *score *= 1.0 + coverage * covered / all_idfs;
            }
        }
    }

    /// Adds the bonus for being of the days that were asked for.
    pub(super) fn prefer(&mut self, docs: &Bits, bonus: f64) -> Result<(), IndexError> {
        docs.iter().try_for_each(|doc| {
            *self.score_mut(doc)? *= 1.0 + bonus;
            Ok(())
        })
    }
}
