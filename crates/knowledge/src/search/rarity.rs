//! How rare words are, and which of them a document has, for those who choose the words themselves.

use super::plan::Word;
use super::rank::{Hit, Ranking, number};
use crate::index::IndexError;

/// How rare a word is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rarity {
    /// How many documents have it, in any spelling.
    pub(crate) document_frequency: usize,
    /// How many documents there are.
    pub(crate) documents: usize,
    /// The inverse document frequency.
    pub(crate) idf: f64,
}

impl Ranking<'_, '_> {
    /// Returns how rare a word is. One that no document has is as rare as one of half a document.
    pub(crate) fn rarity(&self, word: &Word) -> Result<Rarity, IndexError> {
        let documents = number(self.totals.count(self.space));
        let document_frequency = self.stats(&self.occurrences(word)?).document_frequency;
        let unknown = || (1.0 + (documents + 0.5) / 0.5).ln();
        let idf = self.idf(document_frequency).unwrap_or_else(unknown);
        let documents = usize::try_from(self.totals.count(self.space)).unwrap_or(usize::MAX);
        Ok(Rarity { document_frequency, documents, idf })
    }

    /// Returns whether a document has a word.
    pub(crate) fn has(&self, hit: &Hit, word: &Word) -> Result<bool, IndexError> {
        let (number, doc) = hit.document.ok_or(IndexError::Damaged)?;
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        for phrase in word {
            let found = segment.occurrences(*phrase)?;
            if found.binary_search_by_key(&doc, |(doc, _)| *doc).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
