//! Surroundings: which words of a query occur around a memory.
//!
//! A message says little by itself, and its session says what it is about. So the memories around a
//! hit are scored as if they were one text, and so are all memories of its directory. Each of their
//! words counts as in BM25, by how many of the memories have it: how often these repeat it says
//! little more, and which words a memory has is known from scoring.
//!
//! The scores are relative to the best of all hits, because only the order among these matters. A
//! text of eleven messages has most of the common words, so an absolute score would be high for all.

use std::collections::{BTreeSet, HashMap};

use super::neighbors::{Directories, Document, Place};
use super::rank::{Scores, number};

/// How far away a memory may be to be around another one. The weight falls linearly to zero beyond it.
const DISTANCE_MAX: isize = 5;

/// Saturation and length normalization, as in BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What is around some documents, relative to the best of them.
pub(super) struct Surroundings {
    around: HashMap<Place, f64>,
    directories: HashMap<usize, f64>,
}

/// Returns the weighted sum of some values of each document and those around it, relative to the highest.
pub(super) fn sums_around(
    directories: &Directories,
    places: &BTreeSet<(Place, Document)>,
    value: impl Fn(Document) -> f64,
) -> HashMap<Place, f64> {
    let sum = |place: Place| -> f64 {
        let around = (-DISTANCE_MAX..=DISTANCE_MAX).filter_map(|distance| {
            let (_, document) = directories.at(place, distance)?;
            Some(weight(distance) * value(document))
        });
        around.sum()
    };
    relative(places.iter().map(|(place, _)| (*place, sum(*place))).collect())
}

impl Surroundings {
    pub(super) fn of(
        directories: &Directories,
        scores: &Scores,
        places: &BTreeSet<(Place, Document)>,
    ) -> Self {
        let of = Relevance { directories, scores };
        let around = places.iter().map(|(place, _)| (*place, of.around(*place))).collect();
        let numbers: BTreeSet<_> = places.iter().map(|(place, _)| place.directory).collect();
        // If all are in one directory, it says nothing about any of them.
        let of_directories =
            if numbers.len() > 1 { of.directories(&numbers) } else { HashMap::new() };
        Self { around: relative(around), directories: relative(of_directories) }
    }

    /// Returns what is around a document, between 0 and 1.
    pub(super) fn share_around(&self, place: Place) -> f64 {
        self.around.get(&place).copied().unwrap_or_default()
    }

    /// Returns what is in the directory of a document, between 0 and 1.
    pub(super) fn share_of_directory(&self, place: Place) -> f64 {
        self.directories.get(&place.directory).copied().unwrap_or_default()
    }
}

/// Divides scores by the highest.
fn relative<K>(mut scores: HashMap<K, f64>) -> HashMap<K, f64> {
    let best = scores.values().copied().fold(0.0, f64::max);
    if best > 0.0 {
        for score in scores.values_mut() {
            *score /= best;
        }
    }
    scores
}

/// Scores several memories as one text.
struct Relevance<'s> {
    directories: &'s Directories,
    scores: &'s Scores,
}

impl Relevance<'_> {
    fn around(&self, place: Place) -> f64 {
        let mut counts = self.no_counts();
        for distance in -DISTANCE_MAX..=DISTANCE_MAX {
            let Some((_, document)) = self.directories.at(place, distance) else { continue };
            self.count(document, weight(distance), &mut counts);
        }
        self.score(&counts, 1.0)
    }

    fn directories(&self, numbers: &BTreeSet<usize>) -> HashMap<usize, f64> {
        let size = |directory: usize| count(self.directories.members(directory).len());
        let mean = numbers.iter().map(|it| size(*it)).sum::<f64>() / count(numbers.len());
        let score = |directory: usize| {
            let mut counts = self.no_counts();
            for document in self.directories.members(directory) {
                self.count(*document, 1.0, &mut counts);
            }
            self.score(&counts, 1.0 - B + B * size(directory) / mean)
        };
        numbers.iter().map(|it| (*it, score(*it))).collect()
    }

    fn no_counts(&self) -> Vec<f64> {
        vec![0.0; self.scores.words.len()]
    }

    /// Counts the words of a document.
    fn count(&self, (segment, doc): Document, weight: f64, counts: &mut [f64]) {
        let Some(sums) = self.scores.sums.get(segment) else { return };
        for word in sums.words_of(doc).iter() {
            if let Some(count) = counts.get_mut(word) {
                *count += weight;
            }
        }
    }

    /// Returns the score of a text, given how many memories have each word and its relative length.
    fn score(&self, counts: &[f64], length: f64) -> f64 {
        let (mut sum, mut covered) = (0.0, 0.0);
        for (stats, count) in self.scores.words.iter().zip(counts) {
            sum += stats.idf * count * (K1 + 1.0) / (count + K1 * length);
            covered += stats.idf * count.min(1.0);
        }
        sum * (1.0 + self.scores.share(covered))
    }
}

/// Returns how much a memory counts at some distance.
fn weight(distance: isize) -> f64 {
    1.0 - count(distance.unsigned_abs()) / count(DISTANCE_MAX.unsigned_abs() + 1)
}

fn count(of: usize) -> f64 {
    number(u64::try_from(of).unwrap_or(u64::MAX))
}
