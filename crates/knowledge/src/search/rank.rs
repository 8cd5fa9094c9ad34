//! Ranking: ordering the selected documents by relevance.
//!
//! The score is BM25 with weighted fields. Term frequency saturates, so that repeating a word does
//! not win; length normalization keeps long notes from winning by size; and the idf makes rare
//! words count more than common ones. It has two constants and needs neither training data nor a
//! model, so a score can be recomputed by hand, which the tests do. Field weights scale the term
//! frequency before it saturates, as in BM25F. Summing one BM25 score per field instead would let a
//! word that is repeated in the title, a heading and the body count almost three times.
//!
//! The statistics are those of exactly the searched stores and their live documents, so a score
//! does not depend on other stores, on the layout of segments, or on dead documents. Statistics per
//! segment would be cheaper to maintain, but the same note would rank differently after a merge.
//!
//! Every match is scored. Dynamic pruning such as WAND skips documents that cannot reach the page,
//! but it could not return the exact total, and its per-block bounds would depend on which stores
//! are searched together. Stopping early at the newest matches would be faster too, but would hide
//! the best answer whenever it is old.

use std::cmp::Ordering;

use quipu_core::model::{MemoryId, StoreId, Timestamp};

use super::clause::{Clause, Evaluator};
use super::occurrences::{PhraseId, Phrases};
use super::scoring::Scoring;
use crate::index::{Doc, IndexError, Space, StoreView, Totals};

/// A matching document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) store: StoreId,
    pub(crate) memory: MemoryId,
    /// The index of the observation or link in its memory, 0-based; 0 for a memory.
    pub(crate) position: usize,
    /// The relevance; higher is better.
    pub(crate) score: f64,
    pub(crate) updated_at: Timestamp,
}

/// Ranks the documents of one space in some stores.
pub(crate) struct Ranking<'v, 'c> {
    space: Space,
    scoring: Scoring,
    totals: Totals,
    segments: Vec<(StoreId, Evaluator<'v, 'c>)>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranked {
    /// The best hits, in order.
    pub(crate) hits: Vec<Hit>,
    /// The total number of matches.
    pub(crate) total: usize,
}

/// A selected document.
struct Candidate {
    segment: usize,
    doc: Doc,
    score: f64,
}

impl<'v, 'c> Ranking<'v, 'c> {
    pub(crate) fn new(
        views: &[&'v StoreView<'c>],
        phrases: &'v Phrases,
    ) -> Result<Self, IndexError> {
        let (space, scoring) = (phrases.space(), phrases.scoring());
        let mut ranking = Self { space, scoring, totals: Totals::default(), segments: Vec::new() };
        for view in views {
            ranking.totals.add(&view.totals);
            for segment in view.segments.iter().filter(|segment| segment.count(space) > 0) {
                ranking.segments.push((view.store, Evaluator::new(segment, phrases)?));
            }
        }
        Ok(ranking)
    }

    /// Returns whether any document matches a clause.
    pub(crate) fn has_any(&self, clause: &Clause) -> Result<bool, IndexError> {
        for (_, segment) in &self.segments {
            if !segment.select(clause)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the best `limit` documents that match a clause, scored by the given phrases. Without
    /// phrases, the most recently changed come first.
    pub(crate) fn best(
        &self,
        clause: &Clause,
        phrases: &[PhraseId],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let mut candidates: Vec<Candidate> = Vec::new();
        // The index of the first candidate of each segment.
        let mut starts = Vec::with_capacity(self.segments.len());
        for (number, (_, segment)) in self.segments.iter().enumerate() {
            starts.push(candidates.len());
            let selected = segment.select(clause)?;
            let candidate = |doc| Candidate { segment: number, doc, score: 0.0 };
            candidates.extend(selected.iter().map(candidate));
        }
        let total = candidates.len();
        if total > 0 {
            for phrase in phrases {
                self.score(*phrase, (&mut candidates, &starts))?;
            }
        }
        let hits = self.first(candidates, limit)?;
        Ok(Ranked { hits, total })
    }

    /// Adds the contribution of a phrase to the scores of the candidates that have it.
    fn score(
        &self,
        phrase: PhraseId,
        (candidates, starts): (&mut [Candidate], &[usize]),
    ) -> Result<(), IndexError> {
        let mut lists = Vec::with_capacity(self.segments.len());
        for (_, segment) in &self.segments {
            lists.push(segment.occurrences(phrase)?);
        }
        let document_frequency: usize = lists.iter().map(|list| list.len()).sum();
        let idf = self.idf(document_frequency);
        let average_length = self.average_length();
        let Scoring { k1, b, .. } = self.scoring;
        for (number, list) in lists.iter().enumerate() {
            let start = starts.get(number).copied().unwrap_or_default();
            let end = starts.get(number + 1).copied().unwrap_or(candidates.len());
            let matching = candidates.get_mut(start..end).unwrap_or_default();
            if matching.is_empty() || list.is_empty() {
                continue;
            }
            let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
            let lengths = segment.segment().lengths(self.space)?;
            // Both are sorted by document, so this is a merge join.
            let mut list = list.iter().copied().peekable();
            for candidate in matching {
                while list.next_if(|(doc, _)| *doc < candidate.doc).is_some() {}
                let Some((_, weight)) = list.next_if(|(doc, _)| *doc == candidate.doc) else {
                    continue;
                };
                let length = f64::from(lengths.get(candidate.doc)?);
                let weight = f64::from(weight);
                let norm = k1 * (1.0 - b + b * length / average_length);
                candidate.score += idf * weight * (k1 + 1.0) / (weight + norm);
            }
        }
        Ok(())
    }

    /// Returns the inverse document frequency of a phrase.
    ///
    /// The `1 +` inside of the logarithm keeps it above zero. The classic formula is negative for a
    /// word in more than half of the documents, and clamping it to almost zero, as FTS5 does, makes
    /// such a word count for next to nothing. In a small store many words are that frequent, and in
    /// a query with rarer words, a title with one of them would rank no higher than a mention in
    /// passing.
    fn idf(&self, document_frequency: usize) -> f64 {
        let all = number(self.totals.count(self.space));
        let document_frequency =
            number(u64::try_from(document_frequency).unwrap_or(u64::MAX)).min(all);
        (1.0 + (all - document_frequency + 0.5) / (document_frequency + 0.5)).ln()
    }

    /// Returns the average document length in words.
    fn average_length(&self) -> f64 {
        let all = number(self.totals.count(self.space)).max(1.0);
        (number(self.totals.length(self.space)) / all).max(1.0)
    }

    /// Returns the best candidates by score; ties are broken by the time of the last change.
    fn first(&self, mut candidates: Vec<Candidate>, limit: usize) -> Result<Vec<Hit>, IndexError> {
        if limit == 0 || candidates.is_empty() {
            return Ok(Vec::new());
        }
        if candidates.len() > limit {
            // Finds the lowest score of the page in linear time: sorting a hundred thousand matches
            // would take longer than scoring them. All candidates with that score are kept, because
            // ties are broken by columns that are read only for those that remain.
            let mut scores: Vec<f64> = candidates.iter().map(|it| it.score).collect();
            let (_, least, _) =
                scores.select_nth_unstable_by(limit - 1, |left, right| right.total_cmp(left));
            let least = *least;
            candidates.retain(|it| it.score.total_cmp(&least) != Ordering::Less);
        }
        let mut hits = Vec::with_capacity(candidates.len());
        for candidate in &candidates {
            hits.push(self.hit(candidate)?);
        }
        hits.sort_unstable_by(|left, right| {
            let by_score = right.score.total_cmp(&left.score);
            let by_time = || right.updated_at.cmp(&left.updated_at);
            let by_place = || (left.memory, left.position).cmp(&(right.memory, right.position));
            by_score.then_with(by_time).then_with(by_place)
        });
        hits.truncate(limit);
        Ok(hits)
    }

    fn hit(&self, candidate: &Candidate) -> Result<Hit, IndexError> {
        let (store, segment) = self.segments.get(candidate.segment).ok_or(IndexError::Damaged)?;
        let segment = segment.segment();
        let place = segment.fact(self.space, candidate.doc)?;
        Ok(Hit {
            store: *store,
            memory: segment.memory(place.memory)?,
            position: usize::try_from(place.position).unwrap_or(usize::MAX),
            score: candidate.score,
            updated_at: segment.updated_at(place.memory)?,
        })
    }
}

/// Converts a count for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "no store has 2^53 documents")]
fn number(count: u64) -> f64 {
    count as f64
}
