//! Passages: how near the words of a query are to each other in a document.

use std::collections::HashMap;

use quipu_core::model::StoreId;

use super::clause::Evaluator;
use super::neighbors::Document;
use super::plan::Word;
use super::rank::Scores;
use crate::index::{Doc, Field, IndexError, Place};

/// The length of a passage in words: about a sentence or two.
const PASSAGE_WORDS: u32 = 20;

/// Returns, for each of some documents, the largest share of the words of the query within one passage
/// of its body, weighted by their idf. One word alone is near nothing.
pub(super) fn nearness(
    segments: &[(StoreId, Evaluator<'_, '_>)],
    words: &[Word],
    scores: &Scores,
    documents: &[Document],
) -> Result<HashMap<Document, f64>, IndexError> {
    let mut nearness = HashMap::with_capacity(documents.len());
    for (number, (_, segment)) in segments.iter().enumerate() {
        let docs = documents.iter().filter(|(of, _)| *of == number).map(|(_, doc)| *doc);
        let mut docs: Vec<Doc> = docs.collect();
        docs.sort_unstable();
        if docs.is_empty() {
            continue;
        }
        // The positions in each document, with the numbers of the words.
        let mut found = vec![Vec::new(); docs.len()];
        let numbered = words.iter().enumerate();
        for (word, phrase) in numbered.flat_map(|(at, word)| word.iter().map(move |it| (at, *it))) {
            let visit = |number: usize, place: Place| {
                if place.field() == Field::Body
                    && let Some(found) = found.get_mut(number)
                {
                    found.push((place.position(), word));
                }
            };
            segment.phrases().each_place(phrase, (segment.segment(), &docs), visit)?;
        }
        for (doc, found) in docs.into_iter().zip(found) {
            nearness.insert((number, doc), scores.share(nearest(found, scores)));
        }
    }
    Ok(nearness)
}

/// Returns the largest sum of the idf of the words of a passage; zero without a passage that has two.
fn nearest(mut places: Vec<(u32, usize)>, scores: &Scores) -> f64 {
    places.sort_unstable();
    let mut counts = vec![0_usize; scores.words.len()];
    let (mut distinct, mut first, mut best) = (0_usize, 0, 0.0_f64);
    for (position, word) in &places {
        if let Some(count) = counts.get_mut(*word) {
            *count += 1;
            distinct += usize::from(*count == 1);
        }
        while let Some((earlier, word)) = places.get(first) {
            if position - earlier < PASSAGE_WORDS {
                break;
            }
            first += 1;
            if let Some(count) = counts.get_mut(*word) {
                *count -= 1;
                distinct -= usize::from(*count == 0);
            }
        }
        if distinct > 1 {
            // Summed again each time: adding and subtracting would not be exact, and scores of equal
            // documents must be equal.
            let present = scores.words.iter().zip(&counts).filter(|(_, count)| **count > 0);
            best = best.max(present.map(|(stats, _)| stats.idf).sum());
        }
    }
    best
}
