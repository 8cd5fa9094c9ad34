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

mod documents;

use std::cmp::Ordering;
use std::collections::HashSet;

use quipu_core::model::{MemoryId, StoreId, Timestamp};
use quipu_notes::Phrase;

use super::clause::{Clause, Evaluator};
use super::explanation::{Explanation, FieldScore, ScoreReason, WordScore};
use super::neighbors::{self, Directories, Document};
use super::occurrences::{PhraseId, Phrases, Weight};
use super::plan::Word;
use super::scoring::Scoring;
use crate::index::{Bits, Doc, IndexError, Numbers, Space, StoreView, Totals};

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
    /// What its neighbors add to the score.
    pub(crate) from_neighbors: f64,
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

    /// Returns the best `limit` documents that match a clause, scored by the given words. Without
    /// words, the most recently changed come first.
    pub(crate) fn best(
        &self,
        clause: &Clause,
        words: &[Word],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let sums = self.sums(words)?;
        let (candidates, _) = self.candidates(clause, &sums)?;
        let total = candidates.len();
        Ok(Ranked { hits: self.first(candidates, limit)?, total })
    }

    /// Returns the best documents as [`best`](Self::best) does, where the best of all and those
    /// beside them take in a share of the scores of their neighbors.
    pub(crate) fn best_in_context(
        &self,
        clause: &Clause,
        words: &[Word],
        limit: usize,
    ) -> Result<Ranked, IndexError> {
        let sums = self.sums(words)?;
        let (candidates, selected) = self.candidates(clause, &sums)?;
        let total = candidates.len();
        // With a single word, neighbors could only repeat it, and notes in a directory about it would
        // precede the one that it is the title of.
        let has_context = self.space == Space::Memories
            && self.scoring.neighbor > 0.0
            && words.len() > 1
            && self.totals.count(Space::Memories) <= neighbors::MEMORIES_MAX;
        if !has_context {
            return Ok(Ranked { hits: self.first(candidates, limit)?, total });
        }
        let mut hits = self.first(candidates, limit.max(neighbors::BEST_MAX))?;
        self.add_neighbors(&mut hits, &sums, &selected)?;
        hits.truncate(limit);
        Ok(Ranked { hits, total })
    }

    /// Adds a share of the scores of their neighbors to the first hits and to those beside them, and
    /// sorts the hits again.
    fn add_neighbors(
        &self,
        hits: &mut Vec<Hit>,
        sums: &[Sums],
        selected: &[Bits],
    ) -> Result<(), IndexError> {
        let lengths = self.segments.iter().map(|(_, it)| it.segment().lengths(self.space));
        let lengths = lengths.collect::<Result<Vec<_>, _>>()?;
        let mut best = Vec::new();
        for document in hits.iter().take(neighbors::BEST_MAX).filter_map(|hit| hit.document) {
            // Most notes are too long to depend on others, and then no directory is read.
            if self.neighbor_share(document, &lengths)? > 0.0 {
                best.push(document);
            }
        }
        if best.is_empty() {
            return Ok(());
        }
        let directories = Directories::of(&self.segments, &best)?;
        let is_selected = |(number, doc): &Document| {
            selected.get(*number).is_some_and(|selected| selected.contains(*doc))
        };
        let beside = best.iter().flat_map(|document| directories.beside(*document));
        let in_context: HashSet<_> = beside.filter(is_selected).chain(best.clone()).collect();
        let known: HashSet<_> = hits.iter().filter_map(|hit| hit.document).collect();
        let score = |(number, doc): Document| sums.get(number).map_or(0.0, |it| it.of(doc));
        for document @ (segment, doc) in in_context.difference(&known).copied() {
            hits.push(self.hit(&Candidate { segment, doc, score: score(document) })?);
        }
        for hit in hits.iter_mut() {
            let Some(document) = hit.document.filter(|it| in_context.contains(it)) else {
                continue;
            };
            let of_neighbors = directories.beside(document).map(score).sum::<f64>();
            hit.from_neighbors = self.neighbor_share(document, &lengths)? * of_neighbors;
            hit.score += hit.from_neighbors;
        }
        sort(hits);
        Ok(())
    }

    /// Returns which share of the scores of its neighbors a document takes in. The longer it is, the
    /// less it depends on them: a single message is about what was said before, a whole session is
    /// about itself.
    fn neighbor_share(
        &self,
        (number, doc): Document,
        lengths: &[Numbers],
    ) -> Result<f64, IndexError> {
        let length = f64::from(lengths.get(number).ok_or(IndexError::Damaged)?.get(doc)?);
        let Scoring { neighbor, neighbor_length, .. } = self.scoring;
        Ok(neighbor * (1.0 - length / neighbor_length).max(0.0))
    }

    /// Returns the documents that match a clause, in all and of each segment.
    fn candidates(
        &self,
        clause: &Clause,
        sums: &[Sums],
    ) -> Result<(Vec<Candidate>, Vec<Bits>), IndexError> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut all = Vec::with_capacity(self.segments.len());
        for (number, (_, segment)) in self.segments.iter().enumerate() {
            let sums = sums.get(number).ok_or(IndexError::Damaged)?;
            let selected = segment.select(clause)?;
            let candidate = |doc| Candidate { segment: number, doc, score: sums.of(doc) };
            candidates.extend(selected.iter().map(candidate));
            all.push(selected);
        }
        Ok((candidates, all))
    }

    /// Returns the scores of the documents of each segment.
    fn sums(&self, words: &[Word]) -> Result<Vec<Sums>, IndexError> {
        let count = |segment: &Evaluator<'_, '_>| segment.segment().count(self.space);
        let mut sums: Vec<_> =
            self.segments.iter().map(|(_, segment)| Sums::new(count(segment))).collect();
        let mut all_idfs = 0.0;
        for word in words {
            // A word that no document has distinguishes none.
            let Some(word_idf) = self.word_idf(word)? else { continue };
            all_idfs += word_idf;
            for ((_, segment), sums) in self.segments.iter().zip(&mut sums) {
                for phrase in word {
                    self.add(*phrase, segment, sums)?;
                }
                sums.cover(word, word_idf, segment)?;
            }
        }
        for sums in &mut sums {
            sums.finish(self.scoring.coverage, all_idfs);
        }
        Ok(sums)
    }

    /// Returns the idf of the most frequent spelling of a word; `None` if no document has any.
    fn word_idf(&self, word: &Word) -> Result<Option<f64>, IndexError> {
        let mut word_idf: Option<f64> = None;
        for phrase in word {
            let idf = self.idf(self.document_frequency(*phrase)?);
            word_idf = idf.into_iter().chain(word_idf).reduce(f64::min);
        }
        Ok(word_idf)
    }

    /// Returns how many documents have a phrase.
    fn document_frequency(&self, phrase: PhraseId) -> Result<usize, IndexError> {
        let mut count = 0;
        for (_, segment) in &self.segments {
            count += segment.occurrences(phrase)?.len();
        }
        Ok(count)
    }

    /// Adds the contribution of a phrase to the scores of the documents that have it.
    fn add(
        &self,
        phrase: PhraseId,
        segment: &Evaluator<'_, '_>,
        sums: &mut Sums,
    ) -> Result<(), IndexError> {
        let Some(idf) = self.idf(self.document_frequency(phrase)?) else { return Ok(()) };
        let found = segment.occurrences(phrase)?;
        if found.is_empty() {
            return Ok(());
        }
        let lengths = segment.segment().lengths(self.space)?;
        let saturation = self.saturation();
        for (doc, weight) in found.iter() {
            *sums.score_mut(*doc)? += idf * saturation.of(*weight, lengths.get(*doc)?);
        }
        Ok(())
    }

    /// Returns the inverse document frequency of a phrase; `None` if no document has it.
    ///
    /// The `1 +` inside of the logarithm keeps it above zero. The classic formula is negative for a
    /// word in more than half of the documents, and clamping it to almost zero, as FTS5 does, makes
    /// such a word count for next to nothing. In a small store many words are that frequent, and in
    /// a query with rarer words, a title with one of them would rank no higher than a mention in
    /// passing.
    fn idf(&self, document_frequency: usize) -> Option<f64> {
        if document_frequency == 0 {
            return None;
        }
        let all = number(self.totals.count(self.space));
        let document_frequency =
            number(u64::try_from(document_frequency).unwrap_or(u64::MAX)).min(all);
        Some((1.0 + (all - document_frequency + 0.5) / (document_frequency + 0.5)).ln())
    }

    fn saturation(&self) -> Saturation {
        let Scoring { k1, b, length_prior, .. } = self.scoring;
        let per_word = k1 * b / (self.average_length() + length_prior);
        Saturation { most: k1 + 1.0, base: k1 * (1.0 - b) + per_word * length_prior, per_word }
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
        sort(&mut hits);
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
            document: Some((candidate.segment, candidate.doc)),
            from_neighbors: 0.0,
        })
    }

    /// Returns what the score of a document that was found by these words is made of.
    pub(crate) fn explain(&self, words: &[Word], hit: &Hit) -> Result<Explanation, IndexError> {
        let (number, doc) = hit.document.ok_or(IndexError::Damaged)?;
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        let mut explanation = Explanation::default();
        let (mut covered, mut all_idfs) = (0.0, 0.0);
        for word in words {
            let Some(word_idf) = self.word_idf(word)? else { continue };
            all_idfs += word_idf;
            let before = explanation.parts.len();
            for phrase in word {
                self.explain_phrase(*phrase, (segment, doc), &mut explanation)?;
            }
            if explanation.parts.len() > before {
                covered += word_idf;
            }
        }
        if all_idfs > 0.0 {
            let share = covered / all_idfs;
            let bonus = explanation.score() * self.scoring.coverage * share;
            explanation.add(ScoreReason::Coverage(share), bonus);
        }
        if hit.from_neighbors > 0.0 {
            explanation.add(ScoreReason::Neighbors, hit.from_neighbors);
        }
        Ok(explanation)
    }

    fn explain_phrase(
        &self,
        phrase: PhraseId,
        (segment, doc): (&Evaluator<'_, '_>, Doc),
        explanation: &mut Explanation,
    ) -> Result<(), IndexError> {
        let document_frequency = self.document_frequency(phrase)?;
        let Some(idf) = self.idf(document_frequency) else { return Ok(()) };
        let found = segment.occurrences(phrase)?;
        let Some((_, weight)) = found.iter().find(|(at, _)| *at == doc) else { return Ok(()) };
        let phrases = segment.phrases();
        let mut fields: Vec<FieldScore> = Vec::new();
        for (field, frequency) in phrases.frequencies(phrase, segment.segment(), doc)? {
            let weight = self.scoring.weight(field);
            if weight > 0.0 {
                fields.push(FieldScore { field: Scoring::name(field), frequency, weight });
            }
        }
        let length = segment.segment().lengths(self.space)?.get(doc)?;
        let term = phrases.get(phrase).map(Phrase::to_string).unwrap_or_default();
        let word = WordScore { term, document_frequency, idf, fields, length };
        explanation.add(ScoreReason::Word(word), idf * self.saturation().of(*weight, length));
        Ok(())
    }
}

/// Sorts hits by score; ties are broken by the time of the last change.
fn sort(hits: &mut [Hit]) {
    hits.sort_unstable_by(|left, right| {
        let by_score = right.score.total_cmp(&left.score);
        let by_time = || right.updated_at.cmp(&left.updated_at);
        let by_place = || (left.memory, left.position).cmp(&(right.memory, right.position));
        by_score.then_with(by_time).then_with(by_place)
    });
}

/// What a weighted frequency in a document of some length is worth.
struct Saturation {
    most: f64,
    base: f64,
    per_word: f64,
}

impl Saturation {
    fn of(&self, weight: Weight, length: u32) -> f64 {
        let weight = f64::from(weight);
        weight * self.most / (weight + self.base + self.per_word * f64::from(length))
    }
}

/// The scores of the documents of a segment.
///
/// They are dense, because documents with any of the words match, and those are many. Looking up
/// each candidate in each list takes twice as long.
struct Sums {
    scores: Vec<f64>,
    /// The sum of the idf of the words that each document has.
    covered: Vec<f64>,
}

impl Sums {
    fn new(count: usize) -> Self {
        Self { scores: vec![0.0; count], covered: vec![0.0; count] }
    }

    fn of(&self, doc: Doc) -> f64 {
        let score = usize::try_from(doc).ok().and_then(|doc| self.scores.get(doc));
        score.copied().unwrap_or_default()
    }

    fn score_mut(&mut self, doc: Doc) -> Result<&mut f64, IndexError> {
        let doc = usize::try_from(doc).ok();
        doc.and_then(|doc| self.scores.get_mut(doc)).ok_or(IndexError::Damaged)
    }

    /// Notes which documents have a word.
    fn cover(
        &mut self,
        word: &Word,
        idf: f64,
        segment: &Evaluator<'_, '_>,
    ) -> Result<(), IndexError> {
        let mut add = |doc: Doc| -> Result<(), IndexError> {
            let doc = usize::try_from(doc).ok();
            let covered = doc.and_then(|doc| self.covered.get_mut(doc));
            *covered.ok_or(IndexError::Damaged)? += idf;
            Ok(())
        };
        match word.as_slice() {
            [phrase] => segment.occurrences(*phrase)?.iter().try_for_each(|(doc, _)| add(*doc)),
            phrases => {
                // A document may have several spellings of a word, and has it once.
                let any = phrases.iter().copied().map(Clause::Words).collect();
                segment.select(&Clause::Any(any))?.iter().try_for_each(add)
            }
        }
    }

    /// Adds the bonus for having all words.
    fn finish(&mut self, coverage: f64, all_idfs: f64) {
        if all_idfs > 0.0 {
            for (score, covered) in self.scores.iter_mut().zip(&self.covered) {
                *score *= 1.0 + coverage * covered / all_idfs;
            }
        }
    }
}

/// Converts a count for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "no store has 2^53 documents")]
fn number(count: u64) -> f64 {
    count as f64
}
