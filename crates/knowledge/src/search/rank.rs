//! Ranking: ordering the selected documents by relevance.
//!
//! The score is BM25 with weighted fields. Term frequency saturates, so that repeating a word does
//! not win; length normalization keeps long notes from winning by size; and the idf makes rare
//! words count more than common ones. It has two constants and needs neither training data nor a
//! model, so a score can be recomputed by hand, which the tests do. Field weights scale the term
//! frequency before it saturates, as in BM25F. Summing one BM25 score per field instead would let a
//! word that is repeated in the title, a heading and the body count almost three times.
//!
//! The spellings of a word are synonyms: their frequencies are summed before they saturate, and the
//! idf is that of all documents that have any of them. Scoring each spelling by itself would let a
//! rare one outweigh the word. In a store of short English messages, a few that were taken for Czech
//! lowered MRR by 0.02, because their stems looked like rare words.
//!
//! The statistics are those of exactly the searched stores and their live documents, so a score
//! does not depend on other stores, on the layout of segments, or on dead documents. Statistics per
//! segment would be cheaper to maintain, but the same note would rank differently after a merge.
//!
//! Every match is scored. Dynamic pruning such as WAND skips documents that cannot reach the page,
//! but it could not return the exact total, and its per-block bounds would depend on which stores
//! are searched together. Stopping early at the newest matches would be faster too, but would hide
//! the best answer whenever it is old.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use quipu_core::model::{MemoryId, StoreId, Timestamp};
use quipu_notes::DateSpan;

use super::clause::{Clause, Evaluator, Occurrences};
use super::context::{self, Bonuses};
use super::dates::Dated;
use super::freshness::Judging;
use super::neighbors::Document;
use super::occurrences::{Phrases, Weight};
use super::plan::Word;
use super::scoring::Scoring;
use super::sums::Sums;
use crate::index::{Bits, IndexError, Space, StoreView, Totals};

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
    /// The document; `None` if it was found by its name.
    pub(crate) document: Option<Document>,
    /// What its context adds to the score.
    pub(crate) bonuses: Bonuses,
}

/// Ranks the documents of one space in some stores.
pub(crate) struct Ranking<'v, 'c> {
    pub(super) space: Space,
    pub(super) scoring: Scoring,
    pub(super) totals: Totals,
    pub(super) segments: Vec<(StoreId, Evaluator<'v, 'c>)>,
    /// The memories of the days that the query asks about.
    pub(super) dated: Option<Dated>,
    /// Which notes count less; `None` if they are not judged.
    pub(super) judging: Option<Judging>,
    known_scores: RefCell<Option<(Vec<Word>, Rc<Scores>)>>,
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
    document: Document,
    score: f64,
}

/// The scores of all documents by their own words.
pub(super) struct Scores {
    /// Those of the documents of each segment.
    pub(super) sums: Vec<Sums>,
    /// The words of the query, in order.
    pub(super) words: Vec<WordStats>,
    all_idfs: f64,
}

/// How much a word of the query counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordStats {
    /// How many documents have it, in any spelling.
    pub(super) document_frequency: usize,
    /// Zero if no document has it: such a word distinguishes none.
    pub(super) idf: f64,
}

impl Scores {
    pub(super) fn of(&self, (number, doc): Document) -> f64 {
        self.sums.get(number).map_or(0.0, |sums| sums.of(doc))
    }

    /// Returns which share of all words some are, given the sum of their idf.
    pub(super) fn share(&self, idfs: f64) -> f64 {
        if self.all_idfs > 0.0 { idfs / self.all_idfs } else { 0.0 }
    }
}

impl<'v, 'c> Ranking<'v, 'c> {
    pub(crate) fn new(
        views: &[&'v StoreView<'c>],
        phrases: &'v Phrases,
    ) -> Result<Self, IndexError> {
        let (space, scoring) = (phrases.space(), phrases.scoring());
        let (totals, segments) = (Totals::default(), Vec::new());
        let (dated, judging, known_scores) = (None, None, RefCell::default());
        let mut ranking = Self { space, scoring, totals, segments, dated, judging, known_scores };
        for view in views {
            ranking.totals.add(&view.totals);
            for segment in view.segments.iter().filter(|segment| segment.count(space) > 0) {
                ranking.segments.push((view.store, Evaluator::new(segment, phrases)?));
            }
        }
        Ok(ranking)
    }

    /// Ranks memories of some days higher.
    pub(crate) fn prefer(&mut self, span: &DateSpan) -> Result<(), IndexError> {
        if self.space == Space::Memories && self.scoring.date > 0.0 {
            let segments = self.segments.iter().map(|(_, segment)| segment);
            self.dated = Some(Dated::new(span.clone(), segments)?);
        }
        Ok(())
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

    /// Returns the best `limit` documents that match a clause, scored by the given words. Without
    /// words, the most recently changed come first.
    pub(crate) fn best(
        &self,
        clause: &Clause,
        words: &[Word],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let scores = self.scores(words)?;
        let (candidates, _) = self.candidates(clause, &scores)?;
        let total = candidates.len();
        Ok(Ranked { hits: self.first(candidates, limit)?, total })
    }

    /// Returns the best documents as [`best`](Self::best) does, where the best of all and those
    /// beside them are scored in their context.
    pub(crate) fn best_in_context(
        &self,
        clause: &Clause,
        words: &[Word],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let scores = self.scores(words)?;
        let (candidates, selected) = self.candidates(clause, &scores)?;
        let total = candidates.len();
        // With a single word, neighbors could only repeat it, and notes in a directory about it would
        // precede the one that it is the title of.
        if self.space != Space::Memories || words.len() < 2 {
            return Ok(Ranked { hits: self.first(candidates, limit)?, total });
        }
        let mut hits = self.first(candidates, limit.max(context::BEST_MAX))?;
        self.add_context(&mut hits, words, &scores, &selected)?;
        hits.truncate(limit);
        Ok(Ranked { hits, total })
    }

    /// Returns the documents that match a clause, in all and of each segment.
    fn candidates(
        &self,
        clause: &Clause,
        scores: &Scores,
    ) -> Result<(Vec<Candidate>, Vec<Bits>), IndexError> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut all = Vec::with_capacity(self.segments.len());
        for (number, (_, segment)) in self.segments.iter().enumerate() {
            let sums = scores.sums.get(number).ok_or(IndexError::Damaged)?;
            let selected = segment.select(clause)?;
            let candidate = |doc| Candidate { document: (number, doc), score: sums.of(doc) };
            candidates.extend(selected.iter().map(candidate));
            all.push(selected);
        }
        Ok((candidates, all))
    }

    /// Scores all documents by their own words. Those of the last call are kept: a search by words and
    /// meaning needs them several times.
    pub(super) fn scores(&self, words: &[Word]) -> Result<Rc<Scores>, IndexError> {
        let known = self.known_scores.borrow();
        if let Some((_, scores)) = known.as_ref().filter(|(of, _)| of == words) {
            return Ok(Rc::clone(scores));
        }
        drop(known);
        let scores = Rc::new(self.scored(words)?);
        *self.known_scores.borrow_mut() = Some((words.to_vec(), Rc::clone(&scores)));
        Ok(scores)
    }

    fn scored(&self, words: &[Word]) -> Result<Scores, IndexError> {
        let count = |segment: &Evaluator<'_, '_>| segment.segment().count(self.space);
        let mut sums: Vec<_> =
            self.segments.iter().map(|(_, segment)| Sums::new(count(segment))).collect();
        let lengths = self.segments.iter().map(|(_, it)| it.segment().lengths(self.space));
        let lengths = lengths.collect::<Result<Vec<_>, _>>()?;
        let saturation = self.saturation();
        let mut stats = Vec::with_capacity(words.len());
        for (number, word) in words.iter().enumerate() {
            let found = self.occurrences(word)?;
            let of_word = self.stats(&found);
            stats.push(of_word);
            for ((found, lengths), sums) in found.iter().zip(&lengths).zip(&mut sums) {
                for (doc, weight) in found.iter() {
                    let score = of_word.idf * saturation.of(*weight, lengths.get(*doc)?);
                    sums.add(*doc, (number, of_word.idf), score)?;
                }
            }
        }
        let all_idfs = stats.iter().map(|it| it.idf).sum();
        for (number, sums) in sums.iter_mut().enumerate() {
            sums.finish(self.scoring.coverage, all_idfs);
            if let Some(inside) = self.dated.as_ref().and_then(|dated| dated.inside.get(number)) {
                sums.prefer(inside, self.scoring.date)?;
            }
            self.lower(number, sums)?;
        }
        Ok(Scores { sums, words: stats, all_idfs })
    }

    /// Returns the documents of each segment that have a word, and its weighted frequency in each.
    pub(super) fn occurrences(&self, word: &Word) -> Result<Vec<Occurrences>, IndexError> {
        self.segments.iter().map(|(_, segment)| segment.occurrences_of_word(word)).collect()
    }

    /// Returns how much a word counts, given its occurrences in each segment.
    pub(super) fn stats(&self, found: &[Occurrences]) -> WordStats {
        let document_frequency = found.iter().map(|found| found.len()).sum();
        WordStats { document_frequency, idf: self.idf(document_frequency).unwrap_or_default() }
    }

    /// Returns the inverse document frequency of a word; `None` if no document has it.
    ///
    /// The `1 +` inside of the logarithm keeps it above zero. The classic formula is negative for a
    /// word in more than half of the documents, and clamping it to almost zero, as FTS5 does, makes
    /// such a word count for next to nothing. In a small store many words are that frequent, and in
    /// a query with rarer words, a title with one of them would rank no higher than a mention in
    /// passing.
    pub(super) fn idf(&self, document_frequency: usize) -> Option<f64> {
        if document_frequency == 0 {
            return None;
        }
        let all = number(self.totals.count(self.space));
        let document_frequency =
            number(u64::try_from(document_frequency).unwrap_or(u64::MAX)).min(all);
        Some((1.0 + (all - document_frequency + 0.5) / (document_frequency + 0.5)).ln())
    }

    pub(super) fn saturation(&self) -> Saturation {
        let Scoring { k1, b, length_prior, long, .. } = self.scoring;
        let per_word = k1 * b / (counted_length(self.average_length(), long) + length_prior);
        let base = k1 * (1.0 - b) + per_word * length_prior;
        Saturation { most: k1 + 1.0, base, per_word, long }
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
        for Candidate { document, score } in candidates {
            hits.push(self.hit(document, score)?);
        }
        sort(&mut hits);
        hits.truncate(limit);
        Ok(hits)
    }

    pub(super) fn hit(&self, document: Document, score: f64) -> Result<Hit, IndexError> {
        let (number, doc) = document;
        let (store, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        let segment = segment.segment();
        let place = segment.fact(self.space, doc)?;
        Ok(Hit {
            store: *store,
            memory: segment.memory(place.memory)?,
            position: usize::try_from(place.position).unwrap_or(usize::MAX),
            score,
            updated_at: segment.updated_at(place.memory)?,
            document: Some(document),
            bonuses: Bonuses::default(),
        })
    }
}

/// Sorts hits by score; ties are broken by the time of the last change.
pub(super) fn sort(hits: &mut [Hit]) {
    hits.sort_unstable_by(|left, right| {
        let by_score = right.score.total_cmp(&left.score);
        let by_time = || right.updated_at.cmp(&left.updated_at);
        let by_place = || (left.memory, left.position).cmp(&(right.memory, right.position));
        by_score.then_with(by_time).then_with(by_place)
    });
}

/// What a weighted frequency in a document of some length is worth.
pub(super) struct Saturation {
    most: f64,
    base: f64,
    per_word: f64,
    long: f64,
}

impl Saturation {
    pub(super) fn of(&self, weight: Weight, length: u32) -> f64 {
        let weight = f64::from(weight);
        let length = counted_length(f64::from(length), self.long);
        weight * self.most / (weight + self.base + self.per_word * length)
    }
}

/// Returns the length that a document is normalized by.
///
/// A text of three hundred words is about one thing, and one of three thousand is not ten times as
/// diffuse: it is a session, or a day. Normalized by its full length it would never be found among
/// short notes, which make the mean short.
fn counted_length(length: f64, long: f64) -> f64 {
    if length <= long { length } else { (long * length).sqrt() }
}

/// Converts a count for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "no store has 2^53 documents")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}
