//! The documents behind a ranking, for those that are found by other means than words.

use quipu_core::model::StoreId;

use super::{Candidate, Hit, Ranking};
use crate::index::IndexError;
use crate::search::clause::Evaluator;
use crate::search::neighbors::Document;
use crate::search::plan::Word;

impl<'v, 'c> Ranking<'v, 'c> {
    /// Returns the segments with their stores. A [`Document`] has the number of its segment here.
    pub(in crate::search) fn segments(&self) -> &[(StoreId, Evaluator<'v, 'c>)] {
        &self.segments
    }

    /// Returns these documents as hits, with the scores of their own words.
    pub(in crate::search) fn hits_of(
        &self,
        words: &[Word],
        documents: &[Document],
    ) -> Result<Vec<Hit>, IndexError> {
        let sums = if words.is_empty() { Vec::new() } else { self.sums(words)? };
        let hit = |&(segment, doc): &Document| {
            let score = sums.get(segment).map_or(0.0, |sums| sums.of(doc));
            self.hit(&Candidate { segment, doc, score })
        };
        documents.iter().map(hit).collect()
    }
}
