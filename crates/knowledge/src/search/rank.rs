//! Ranking: which of the selected documents answer best.
//!
//! BM25 over fields. An occurrence of a phrase counts as its field weighs, more occurrences count less
//! and less, those in a long text count less than in a short one, and a phrase that few documents have
//! counts more than one that many have. Every selected document is scored, and the statistics are those
//! of exactly the stores that are searched, so a score depends on nothing else: not on other stores, not
//! on the segments that the documents happen to be in, and not on dead documents.
//!
//! Statistics per segment would be cheaper to keep, and wrong: the same note would rank differently
//! after a merge. Stopping early at the newest matches would be faster, and hides the best answer
//! whenever it is old.

use std::cmp::Ordering;

use quipu_core::model::{MemoryId, StoreId, Timestamp};

use super::clause::{Clause, Evaluator};
use super::occurrences::{PhraseId, Phrases};
use crate::index::{Doc, IndexError, Space, StoreView, Totals};

/// How soon more occurrences of a phrase count no more.
const K1: f64 = 1.2;

/// How much the length of a text counts: 0 not at all, 1 in proportion.
const B: f64 = 0.75;

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) store: StoreId,
    pub(crate) memory: MemoryId,
    /// The place of the observation or link among those of the memory, from 0; 0 for a memory.
    pub(crate) position: usize,
    /// How well it fits; more is better.
    pub(crate) score: f64,
    pub(crate) updated_at: Timestamp,
}

/// Looks for documents of one space in some stores.
pub(crate) struct Ranking<'v, 'c> {
    space: Space,
    totals: Totals,
    segments: Vec<(StoreId, Evaluator<'v, 'c>)>,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranked {
    /// The best, the best first.
    pub(crate) hits: Vec<Hit>,
    /// How many there are in all.
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
        let space = phrases.space();
        let mut ranking = Self { space, totals: Totals::default(), segments: Vec::new() };
        for view in views {
            ranking.totals.add(&view.totals);
            for segment in view.segments.iter().filter(|segment| segment.count(space) > 0) {
                ranking.segments.push((view.store, Evaluator::new(segment, phrases)?));
            }
        }
        Ok(ranking)
    }

    /// Returns whether any document fulfils a clause.
    pub(crate) fn has_any(&self, clause: &Clause) -> Result<bool, IndexError> {
        for (_, segment) in &self.segments {
            if !segment.select(clause)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns at most `limit` of the documents that a clause selects, those first that have the
    /// phrases. Without phrases, what changed last comes first.
    pub(crate) fn best(
        &self,
        clause: &Clause,
        phrases: &[PhraseId],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let mut candidates: Vec<Candidate> = Vec::new();
        // Where the candidates of each segment begin.
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
        let having: usize = lists.iter().map(|list| list.len()).sum();
        let idf = self.inverse_frequency(having);
        let mean = self.mean_length();
        for (number, list) in lists.iter().enumerate() {
            let start = starts.get(number).copied().unwrap_or_default();
            let end = starts.get(number + 1).copied().unwrap_or(candidates.len());
            let mine = candidates.get_mut(start..end).unwrap_or_default();
            if mine.is_empty() || list.is_empty() {
                continue;
            }
            let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
            let lengths = segment.segment().lengths(self.space)?;
            // Both are in the order of documents.
            let mut list = list.iter().copied().peekable();
            for candidate in mine {
                while list.next_if(|(doc, _)| *doc < candidate.doc).is_some() {}
                let Some((_, weight)) = list.next_if(|(doc, _)| *doc == candidate.doc) else {
                    continue;
                };
                let length = f64::from(lengths.get(candidate.doc)?);
                let weight = f64::from(weight);
                let norm = K1 * (1.0 - B + B * length / mean);
                candidate.score += idf * weight * (K1 + 1.0) / (weight + norm);
            }
        }
        Ok(())
    }

    /// Returns the inverse document frequency of a phrase that this many documents have.
    ///
    /// The `1 +` keeps it above zero. The classic formula is negative for a word of more than half of
    /// the documents, and clamping it to zero, as FTS5 does, makes such a word count for nothing: a
    /// word that most documents have still tells those that have it from those that do not.
    fn inverse_frequency(&self, having: usize) -> f64 {
        let all = number(self.totals.count(self.space));
        let having = number(u64::try_from(having).unwrap_or(u64::MAX)).min(all);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Returns how many words a document has on average.
    fn mean_length(&self) -> f64 {
        let all = number(self.totals.count(self.space)).max(1.0);
        (number(self.totals.length(self.space)) / all).max(1.0)
    }

    /// Returns the first of the candidates in the order of their scores, and among equal scores of
    /// their last change.
    fn first(&self, mut candidates: Vec<Candidate>, limit: usize) -> Result<Vec<Hit>, IndexError> {
        if limit == 0 || candidates.is_empty() {
            return Ok(Vec::new());
        }
        if candidates.len() > limit {
            // Only those are compared further that can be among the first: sorting all of a hundred
            // thousand matches would take longer than scoring them.
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

/// Returns a count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "no store has 2^53 documents")]
fn number(count: u64) -> f64 {
    count as f64
}
