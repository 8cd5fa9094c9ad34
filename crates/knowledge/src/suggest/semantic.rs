//! Semantic matches: memories that say what a text says, in other words.
//!
//! The nearest memory of a store is near to any text, so being the nearest is no evidence. A memory is
//! alike if its cosine stands out from those of all others by a distance and by deviations: with an
//! encoder whose cosines are all close to each other nothing is, and words decide as without vectors.

use std::sync::Arc;

use quipu_core::Error;
use quipu_notes::{SubjectKind, subject_words};
use quipu_vectors::quantized::Question;

use super::SuggestRequest;
use crate::Knowledge;
use crate::index::{IndexError, StoreView};
use crate::search::{Clause, Hit, Ranking, Similar, SimilarScore, Word};
use crate::vectors::Meaning;

/// How much of a text is encoded. A transformer takes longer for a longer text, and a text says at its
/// beginning what it is about.
const TEXT_SIZE_BYTES_MAX: usize = 1000;
/// How many of its words are looked at. Those that may be its subject come first.
const SUBJECT_WORDS_MAX: usize = 8;
/// How far above the mean the cosine of a memory must be that does not have enough words.
const ABOVE_MEAN_MIN: f64 = 0.35;
/// How many standard deviations above the mean it must be.
const DEVIATIONS_MIN: f64 = 1.5;
/// How many memories are added to those that have words.
const ADDED_MAX: usize = 20;

/// A text as a vector.
pub(super) struct EmbeddedText {
    meaning: Arc<Meaning>,
    question: Arc<Question>,
}

impl EmbeddedText {
    /// Returns the vector of a text; `None` if the text is about nothing, as a greeting is, and without an
    /// encoder that answers in time.
    pub(super) fn new(
        knowledge: &Knowledge,
        request: &SuggestRequest,
    ) -> Result<Option<Self>, Error> {
        let text = request.text.trim();
        let text = text.get(..text.floor_char_boundary(TEXT_SIZE_BYTES_MAX)).unwrap_or(text);
        let Some(meaning) = &knowledge.meaning else { return Ok(None) };
        if knowledge.indexer.is_of_past() || !has_subject(text) {
            return Ok(None);
        }
        knowledge.engine.require_blocking()?;
        // Words alone are an answer too, and a host waits for it.
        let question = meaning.question(text, request.asked_by.as_ref()).ok();
        Ok(question.map(|question| Self { meaning: Arc::clone(meaning), question }))
    }
}

/// Returns whether a text has words that may say what it is about.
fn has_subject(text: &str) -> bool {
    let words = subject_words(text, SUBJECT_WORDS_MAX);
    words.iter().any(|word| word.kind != SubjectKind::Request)
}

/// How similar the memories are to the text.
pub(super) struct SemanticMatches(Similar);

impl SemanticMatches {
    /// Compares a text with all memories; `None` if none has vectors.
    pub(super) fn new(
        knowledge: &Knowledge,
        asked: &EmbeddedText,
        views: &[&StoreView<'_>],
        ranking: &Ranking<'_, '_>,
    ) -> Result<Option<Self>, IndexError> {
        let of = (knowledge, knowledge.scoring);
        let similar = Similar::compared(of, views, ranking, (&asked.meaning, &asked.question))?;
        Ok((similar.coverage.embedded > 0).then_some(Self(similar)))
    }

    /// Adds the memories that are alike, and what their meaning is worth to the scores of all.
    pub(super) fn extend(
        &self,
        ranking: &Ranking<'_, '_>,
        words: &[Word],
        hits: &mut Vec<Hit>,
    ) -> Result<(), IndexError> {
        let (nearest, _) = self.0.nearest(ranking, &Clause::All(Vec::new()), 0.0)?;
        let is_known = |document| hits.iter().any(|hit| hit.document == Some(document));
        let added = nearest.into_iter().take(ADDED_MAX).map(|near| near.document);
        let added: Vec<_> = added.filter(|document| !is_known(*document)).collect();
        let added = ranking.hits_of(words, &added)?;
        hits.extend(added.into_iter().filter(|hit| self.of(hit).is_some()));
        let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
        let scale = if best > 0.0 { best } else { 1.0 };
        for hit in hits.iter_mut() {
            let Some(document) = hit.document else { continue };
            let Some(similarity) = self.0.of(document) else { continue };
            hit.score += scale * self.0.worth(similarity) * ranking.freshness_factor(document)?;
        }
        // Equal scores stay in the order of their words.
        hits.sort_by(|left, right| right.score.total_cmp(&left.score));
        Ok(())
    }

    /// Returns how similar a memory is, if it is alike.
    pub(super) fn of(&self, hit: &Hit) -> Option<SimilarScore> {
        let similarity = self.0.of(hit.document?)?;
        let is_alike = self.0.above_mean(similarity) >= ABOVE_MEAN_MIN
            && self.0.deviations(similarity) >= DEVIATIONS_MIN;
        is_alike.then(|| self.0.shown(similarity))
    }
}
