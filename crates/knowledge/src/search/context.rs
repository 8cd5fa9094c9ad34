//! Context: what makes a memory more relevant than its words alone.
//!
//! A short note is often a part of something: a message of a session, an entry of a day. What it
//! means is said by the ones around it, as the question is that an answer follows. A long note is
//! about many things, and answers a question best if the words of the question are near each other.
//! Both need more than the scores of words, so they are looked at for the best hits only, and for
//! the memories beside these.
//!
//! Which hits these are does not depend on the page, and no bonus is negative. So a hit that is not
//! among them precedes another such hit exactly if its own words do, the best of all are found
//! however short the page is, and pages fit together.

use std::collections::{BTreeSet, HashMap};

use super::neighbors::{Directories, Document, Place};
use super::passages;
use super::plan::Word;
use super::rank::{Hit, Ranking, Scores, WordStats, number, sort};
use super::scoring::Scoring;
use super::sums::WordSet;
use crate::index::{Bits, IndexError, Numbers, Space};

/// How many of the best hits by their own words are looked at.
pub(super) const BEST_MAX: usize = 100;

/// What is added to the score of a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bonuses {
    /// For words that are near each other.
    pub(super) nearness: Bonus,
    /// From the memories beside it.
    pub(super) neighbors: f64,
    /// For words that are in its directory.
    pub(super) directory: Bonus,
}

/// A bonus for a share of the words of the query, weighted by their idf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bonus {
    pub(super) share: f64,
    pub(super) score: f64,
}

impl Bonuses {
    fn score(&self) -> f64 {
        self.nearness.score + self.neighbors + self.directory.score
    }
}

/// The context of the hits of a search.
struct Context<'r, 'v, 'c> {
    ranking: &'r Ranking<'v, 'c>,
    scores: &'r Scores,
    directories: Directories,
    lengths: Vec<Numbers>,
    /// The share of the words within one passage.
    nearness: HashMap<Document, f64>,
}

impl Ranking<'_, '_> {
    /// Adds their bonuses to the best hits and to those beside them, and sorts the hits again.
    pub(super) fn add_context(
        &self,
        hits: &mut Vec<Hit>,
        words: &[Word],
        scores: &Scores,
        selected: &[Bits],
    ) -> Result<(), IndexError> {
        let best: Vec<_> = hits.iter().take(BEST_MAX).filter_map(|hit| hit.document).collect();
        let directories = Directories::of(&self.segments, &best)?;
        let is_selected = |(number, doc): Document| {
            selected.get(number).is_some_and(|selected| selected.contains(doc))
        };
        let lengths = self.segments.iter().map(|(_, it)| it.segment().lengths(Space::Memories));
        let mut context = Context {
            ranking: self,
            scores,
            lengths: lengths.collect::<Result<_, _>>()?,
            nearness: HashMap::new(),
            directories,
        };
        let mut places: BTreeSet<(Place, Document)> = BTreeSet::new();
        for place in best.iter().filter_map(|document| context.directories.place(*document)) {
            places.extend(context.directories.at(place, 0));
            for (distance, _) in distances() {
                let beside = context.directories.at(place, distance);
                let Some(beside) = beside.filter(|(_, it)| is_selected(*it)) else { continue };
                // A long one gains nothing by being beside a good one.
                if context.neighbor_share(beside.1)? > 0.0 {
                    places.insert(beside);
                }
            }
        }
        let documents: Vec<_> = places.iter().map(|(_, document)| *document).collect();
        context.nearness = passages::nearness(&self.segments, words, scores, &documents)?;
        let known: HashMap<_, _> =
            hits.iter().zip(0..).filter_map(|(hit, at)| Some((hit.document?, at))).collect();
        let mut of_directories: HashMap<usize, DirectoryWords> = HashMap::new();
        for (place, document) in places {
            let words = of_directories
                .entry(place.directory)
                .or_insert_with(|| context.directory_words(place.directory));
            let bonuses = context.bonuses(document, place, words)?;
            let hit = match known.get(&document).and_then(|at: &usize| hits.get_mut(*at)) {
                Some(hit) => hit,
                None => {
                    hits.push(self.hit(document, scores.of(document))?);
                    let Some(hit) = hits.last_mut() else { continue };
                    hit
                }
            };
            hit.bonuses = bonuses;
            hit.score += bonuses.score();
        }
        sort(hits);
        Ok(())
    }
}

/// What it says about its members that a directory has words of the query.
struct DirectoryWords {
    /// How much each word counts for a member that lacks it.
    weights: Vec<f64>,
}

/// Returns the distances of neighbors, and how much each counts.
fn distances() -> impl Iterator<Item = (isize, f64)> {
    // One, two thirds, and one third.
    (1_isize..=3)
        .zip([1.0, 2.0 / 3.0, 1.0 / 3.0])
        .flat_map(|(distance, weight)| [(-distance, weight), (distance, weight)])
}

impl Context<'_, '_, '_> {
    fn bonuses(
        &self,
        document: Document,
        place: Place,
        of_directory: &DirectoryWords,
    ) -> Result<Bonuses, IndexError> {
        let Scoring { nearness, directory, .. } = self.ranking.scoring;
        let own = self.scores.of(document);
        let near = self.nearness.get(&document).copied().unwrap_or_default();
        let mut bonuses = Bonuses {
            nearness: Bonus { share: near, score: own * nearness * near },
            neighbors: self.of_neighbors(document, place)?
                * self.ranking.freshness_factor(document)?,
            directory: Bonus::default(),
        };
        let share = self.directory_share(document, of_directory);
        let score = (own + bonuses.score()) * directory * share;
        bonuses.directory = Bonus { share, score };
        Ok(bonuses)
    }

    /// Returns which share of the scores of its neighbors a document takes in. The longer it is, the
    /// less it depends on them: a single message is about what was said before, a whole session is
    /// about itself.
    fn neighbor_share(&self, (number, doc): Document) -> Result<f64, IndexError> {
        let length = f64::from(self.lengths.get(number).ok_or(IndexError::Damaged)?.get(doc)?);
        let Scoring { neighbor, neighbor_length, .. } = self.ranking.scoring;
        Ok(neighbor * (1.0 - length / neighbor_length).max(0.0))
    }

    /// Returns what a document takes in of the scores of its neighbors.
    fn of_neighbors(&self, document: Document, place: Place) -> Result<f64, IndexError> {
        let share = self.neighbor_share(document)?;
        if share <= 0.0 {
            return Ok(0.0);
        }
        let score = |(distance, weight)| {
            let (_, document) = self.directories.at(place, distance)?;
            Some(weight * self.scores.of(document))
        };
        Ok(share * distances().filter_map(score).sum::<f64>())
    }

    /// Returns what the words of a directory say about its members.
    ///
    /// A large directory has most words by chance. So a word counts by the chance that a directory of
    /// its size, filled at random, would lack it. Without that, notes in large directories would
    /// precede others for no reason.
    fn directory_words(&self, directory: usize) -> DirectoryWords {
        let members = self.directories.members(directory);
        let mut words = WordSet::default();
        for (number, doc) in members {
            if let Some(sums) = self.scores.sums.get(*number) {
                words.unite(sums.words_of(*doc));
            }
        }
        let size = number(u64::try_from(members.len()).unwrap_or(u64::MAX));
        let weight = |(at, stats): (usize, &WordStats)| {
            if words.contains(at) { (1.0 - stats.frequency).powf(size) } else { 0.0 }
        };
        DirectoryWords { weights: self.scores.words.iter().enumerate().map(weight).collect() }
    }

    /// Returns the share of the words that a document or its directory has.
    fn directory_share(&self, (number, doc): Document, directory: &DirectoryWords) -> f64 {
        let own = self.scores.sums.get(number).map(|sums| sums.words_of(doc)).unwrap_or_default();
        let mut sum = 0.0;
        for (at, (stats, weight)) in self.scores.words.iter().zip(&directory.weights).enumerate() {
            sum += stats.idf * if own.contains(at) { 1.0 } else { *weight };
        }
        self.scores.share(sum)
    }
}
