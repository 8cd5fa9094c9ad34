//! Similar: how near the meaning of each memory is to that of a question.
//!
//! What a cosine is worth depends on the encoder and on the question, and is seen in all the others: of one
//! encoder unrelated texts have a cosine of 0.1, of another 0.7. So cosines count by how many standard
//! deviations they are above the mean of all memories that were searched, which the scan yields for free.

use std::cmp::Ordering;
use std::sync::{PoisonError, RwLock};

use quipu_core::model::StoreId;
use quipu_vectors::quantized::Question;

use super::HITS_MAX;
use super::clause::Clause;
use super::explanation::SimilarScore;
use super::neighbors::Document;
use super::plan::Word;
use super::rank::{Hit, Ranking};
use super::scoring::Scoring;
use crate::Knowledge;
use crate::index::{IndexError, Space, StoreView, encoder};
use crate::vectors::{Available, Matrix, Meaning, Similarity};

/// How many of the best hits by words, and by meaning, are considered. One more than can be paged through
/// shows whether there is a next page.
pub(super) const CANDIDATES_MAX: usize = HITS_MAX + 1;

/// How many unrelated memories are assumed in addition to those that were searched, and which cosines they
/// have. A few memories say little about what is usual: of a single one, the cosine is the mean.
const PRIOR_COUNT: f64 = 5.0;
const PRIOR_MEAN: f64 = 0.1;
const PRIOR_DEVIATION: f64 = 0.1;

/// How far above the mean the cosine of a memory must be that is found by its meaning alone, within these
/// bounds in standard deviations. The nearest memory of a store is near to any question, so a question about
/// something that no memory is about would otherwise find a third of the store. A distance alone would not
/// do: some encoders place all texts near each other, others far apart.
const FOUND_ABOVE_MEAN: f64 = 0.15;
const FOUND_DEVIATIONS_MIN: f64 = 1.0;
const FOUND_DEVIATIONS_MAX: f64 = 3.0;

/// How many memories of the searched stores have vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// How many have vectors.
    pub embedded: usize,
    /// How many there are.
    pub memories: usize,
}

impl Coverage {
    /// Returns whether all memories have vectors.
    pub fn is_complete(self) -> bool {
        self.embedded >= self.memories
    }
}

/// How similar the memories of the searched stores are to a question.
pub(crate) struct Similar {
    /// That of each document of each segment; `None` without vectors.
    segments: Vec<Vec<Option<Similarity>>>,
    pub(crate) coverage: Coverage,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) scoring: Scoring,
    /// Why there are no vectors, if there are none.
    pub(super) unusable: &'static str,
}

/// A document, and what its meaning is worth.
pub(crate) struct SimilarDocument {
    pub(crate) document: Document,
    pub(crate) similarity: Similarity,
}

impl Similar {
    fn new(ranking: &Ranking<'_, '_>, scoring: Scoring) -> Self {
        let segments = ranking.segments.iter().map(|(_, segment)| segment.segment());
        let segments = segments.map(|segment| vec![None; segment.count(Space::Memories)]);
        Self {
            segments: segments.collect(),
            coverage: Coverage { embedded: 0, memories: 0 },
            mean: 0.0,
            deviation: 1.0,
            scoring,
            unusable: "nothing has been embedded yet",
        }
    }

    /// Compares a question with the vectors of all memories of the stores.
    pub(crate) fn compared(
        (knowledge, scoring): (&Knowledge, Scoring),
        views: &[&StoreView<'_>],
        ranking: &Ranking<'_, '_>,
        (meaning, question): (&Meaning, &Question),
    ) -> Result<Self, IndexError> {
        let mut similar = Self::new(ranking, scoring);
        let mut sums = Sums::default();
        let memories = views.iter().map(|view| view.totals.count(Space::Memories)).sum::<u64>();
        similar.coverage.memories = usize::try_from(memories).unwrap_or(usize::MAX);
        // All stores are in the same file.
        let stored = views.iter().find_map(|view| view.stored());
        let Some((connection, _)) = stored else { return Ok(similar) };
        let Some(encoder) = encoder(connection)? else { return Ok(similar) };
        // A server may have got another model by the same name.
        let of = (meaning.identity(), question.dimensions());
        if (encoder.identity.as_str(), encoder.dimensions) != of {
            similar.unusable = "the stored embeddings come from another model";
            return Ok(similar);
        }
        for view in views {
            match knowledge.indexer.matrices.of(view, &encoder)? {
                Available::Vectors(matrix) => {
                    similar.add_store(ranking, (view.store, &matrix), question, &mut sums)?;
                }
                Available::Nothing => {}
                Available::TooMany => {
                    similar.unusable = "there are too many embeddings to hold in memory";
                }
            }
        }
        similar.coverage.embedded = sums.count;
        (similar.mean, similar.deviation) = sums.mean_and_deviation();
        Ok(similar)
    }

    /// Adds the memories of a store.
    fn add_store(
        &mut self,
        ranking: &Ranking<'_, '_>,
        (store, matrix): (StoreId, &RwLock<Matrix>),
        question: &Question,
        sums: &mut Sums,
    ) -> Result<(), IndexError> {
        // Held for both: another search may reload the vectors, and then they have other slots.
        let matrix = matrix.read().unwrap_or_else(PoisonError::into_inner);
        let similarities = matrix.similarities(question);
        let segments = ranking.segments.iter().zip(&mut self.segments);
        for ((_, segment), found) in segments.filter(|((of, _), _)| *of == store) {
            let slots = matrix.slots_of(segment.segment())?;
            for doc in segment.segment().live(Space::Memories)?.iter() {
                let Some(one) = similarities.of(&slots, doc) else { continue };
                sums.add(f64::from(one.cosine));
                let place = usize::try_from(doc).ok().and_then(|doc| found.get_mut(doc));
                *place.ok_or(IndexError::Damaged)? = Some(one);
            }
        }
        Ok(())
    }

    /// Returns how similar a document is; `None` if it has no vectors.
    pub(crate) fn of(&self, (number, doc): Document) -> Option<Similarity> {
        *self.segments.get(number)?.get(usize::try_from(doc).ok()?)?
    }

    /// Returns how far a cosine is above the mean.
    pub(crate) fn above_mean(&self, similarity: Similarity) -> f64 {
        f64::from(similarity.cosine) - self.mean
    }

    /// Returns how many standard deviations a cosine is above the mean.
    pub(crate) fn deviations(&self, similarity: Similarity) -> f64 {
        self.above_mean(similarity) / self.deviation
    }

    /// Returns the cosine above which a memory without any word of the question is found.
    pub(super) fn found_above(&self) -> f64 {
        let [least, most] =
            [FOUND_DEVIATIONS_MIN, FOUND_DEVIATIONS_MAX].map(|it| it * self.deviation);
        self.mean + FOUND_ABOVE_MEAN.clamp(least, most)
    }

    /// Returns what a cosine is worth, as a share of the best score by words.
    pub(crate) fn worth(&self, similarity: Similarity) -> f64 {
        let Scoring { similar, similar_floor, similar_ceiling, .. } = self.scoring;
        let above = self.deviations(similarity) - similar_floor;
        similar * (above / (similar_ceiling - similar_floor)).clamp(0.0, 1.0)
    }

    pub(crate) fn shown(&self, similarity: Similarity) -> SimilarScore {
        let Similarity { cosine, lines } = similarity;
        let deviations = self.deviations(similarity);
        SimilarScore { cosine, deviations, first_line: lines.first, last_line: lines.last }
    }

    /// Returns the documents that meet the conditions of the request and are more similar than `least`, the
    /// best first, and how many there are.
    pub(crate) fn nearest(
        &self,
        ranking: &Ranking<'_, '_>,
        condition: &Clause,
        least: f64,
    ) -> Result<(Vec<SimilarDocument>, usize), IndexError> {
        let mut nearest = Vec::new();
        for (number, ((_, segment), found)) in
            ranking.segments.iter().zip(&self.segments).enumerate()
        {
            let selected = segment.select(condition)?;
            for (doc, similarity) in (0..).zip(found) {
                let Some(similarity) = *similarity else { continue };
                if f64::from(similarity.cosine) > least && selected.contains(doc) {
                    nearest.push(SimilarDocument { document: (number, doc), similarity });
                }
            }
        }
        let count = nearest.len();
        let by_cosine = |left: &SimilarDocument, right: &SimilarDocument| -> Ordering {
            let by_cosine = right.similarity.cosine.total_cmp(&left.similarity.cosine);
            by_cosine.then_with(|| left.document.cmp(&right.document))
        };
        if count > CANDIDATES_MAX {
            nearest.select_nth_unstable_by(CANDIDATES_MAX, by_cosine);
            nearest.truncate(CANDIDATES_MAX);
        }
        nearest.sort_unstable_by(by_cosine);
        Ok((nearest, count))
    }
}

impl Ranking<'_, '_> {
    /// Returns documents as hits, with the scores of their own words.
    pub(crate) fn hits_of(
        &self,
        words: &[Word],
        documents: &[Document],
    ) -> Result<Vec<Hit>, IndexError> {
        let scores = self.scores(words)?;
        documents.iter().map(|document| self.hit(*document, scores.of(*document))).collect()
    }
}

/// The sums that a mean and a standard deviation are computed from.
#[derive(Default)]
struct Sums {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean_and_deviation(&self) -> (f64, f64) {
        let count = f64::from(u32::try_from(self.count).unwrap_or(u32::MAX)) + PRIOR_COUNT;
        let prior_squares = PRIOR_MEAN * PRIOR_MEAN + PRIOR_DEVIATION * PRIOR_DEVIATION;
        let mean = (self.sum + PRIOR_COUNT * PRIOR_MEAN) / count;
        let variance = (self.squares + PRIOR_COUNT * prior_squares) / count - mean * mean;
        (mean, variance.max(f64::EPSILON).sqrt())
    }
}
