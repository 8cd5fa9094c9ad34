//! Passages: how near the words of a query are to each other in a document.

use std::collections::HashMap;

use quipu_core::model::StoreId;

use super::clause::Evaluator;
use super::neighbors::Document;
use super::plan::Word;
use super::rank::Scores;
use super::sums::WordSet;
use crate::index::{Doc, Field, IndexError, Place};

/// The length of a passage in words: about a sentence or two.
pub(super) const PASSAGE_WORDS: u32 = 20;

/// Which shares of the words of a query are where in a document, weighted by their idf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Nearness {
    /// The largest share in any passage of the body. One word alone is near nothing.
    pub(super) nearest: f64,
    /// The share in the title.
    pub(super) title: f64,
}

/// The words in one document.
#[derive(Clone, Debug, Default)]
struct Found {
    /// The positions in the body, with the numbers of the words.
    body: Vec<(u32, usize)>,
    title: WordSet,
}

impl Found {
    fn add(&mut self, word: usize, place: Place) {
        match place.field() {
            Field::Title => self.title.insert(word),
            Field::Body => self.body.push((place.position(), word)),
            Field::Tags | Field::Headings | Field::TitleForms | Field::Forms => {}
        }
    }

    fn nearness(self, scores: &Scores) -> Nearness {
        let in_title = scores.words.iter().enumerate().filter(|(at, _)| self.title.contains(*at));
        let title = scores.share(in_title.map(|(_, stats)| stats.idf).sum());
        Nearness { nearest: scores.share(nearest(self.body, scores)), title }
    }
}

/// Returns how near the words are in each of some documents.
pub(super) fn nearness(
    segments: &[(StoreId, Evaluator<'_, '_>)],
    words: &[Word],
    scores: &Scores,
    documents: &[Document],
) -> Result<HashMap<Document, Nearness>, IndexError> {
    let mut nearness = HashMap::with_capacity(documents.len());
    for (number, (_, segment)) in segments.iter().enumerate() {
        let docs = documents.iter().filter(|(of, _)| *of == number).map(|(_, doc)| *doc);
        let mut docs: Vec<Doc> = docs.collect();
        docs.sort_unstable();
        if docs.is_empty() {
            continue;
        }
        let mut found = vec![Found::default(); docs.len()];
        let numbered = words.iter().enumerate();
        for (word, phrase) in numbered.flat_map(|(at, word)| word.iter().map(move |it| (at, *it))) {
            let visit = |number: usize, place: Place| {
                if let Some(found) = found.get_mut(number) {
                    found.add(word, place);
                }
            };
            segment.phrases().each_place(phrase, (segment.segment(), &docs), visit)?;
        }
        let of_doc = |(doc, found): (Doc, Found)| ((number, doc), found.nearness(scores));
        nearness.extend(docs.into_iter().zip(found).map(of_doc));
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
