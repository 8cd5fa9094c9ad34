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
use super::rank::{Hit, Ranking, Scores, sort};
use super::scoring::Scoring;
use super::surroundings::Surroundings;
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
    /// For words that it and the memories around it have.
    pub(super) surroundings: Bonus,
    /// For words that its directory has.
    pub(super) directory: Bonus,
}

/// A bonus, and the share between 0 and 1 that it is in proportion to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bonus {
    pub(super) share: f64,
    pub(super) score: f64,
}

impl Bonuses {
    fn score(&self) -> f64 {
        self.nearness.score + self.neighbors + self.of_surroundings()
    }

    /// Returns what is added for what surrounds the hit.
    pub(super) fn of_surroundings(&self) -> f64 {
        self.surroundings.score + self.directory.score
    }
}

/// The context of the hits of a search.
struct Context<'r, 'v, 'c> {
    ranking: &'r Ranking<'v, 'c>,
    scores: &'r Scores,
    directories: Directories,
    lengths: Vec<Numbers>,
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
        let lengths = self.segments.iter().map(|(_, it)| it.segment().lengths(Space::Memories));
        let lengths = lengths.collect::<Result<_, _>>()?;
        let context = Context { ranking: self, scores, lengths, directories };
        let places = context.places(&best, selected)?;
        let documents: Vec<_> = places.iter().map(|(_, document)| *document).collect();
        let nearness = passages::nearness(&self.segments, words, scores, &documents)?;
        let surroundings = Surroundings::of(&context.directories, scores, &places);
        let known: HashMap<_, _> =
            hits.iter().zip(0..).filter_map(|(hit, at)| Some((hit.document?, at))).collect();
        for (place, document) in places {
            let near = nearness.get(&document).copied().unwrap_or_default();
            let bonuses = context.bonuses((place, document), near, &surroundings)?;
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

/// Returns the distances of neighbors, and how much each counts.
fn distances() -> impl Iterator<Item = (isize, f64)> {
    // One, two thirds, and one third.
    (1_isize..=3)
        .zip([1.0, 2.0 / 3.0, 1.0 / 3.0])
        .flat_map(|(distance, weight)| [(-distance, weight), (distance, weight)])
}

impl Context<'_, '_, '_> {
    /// Returns the best documents and the selected ones beside them, with their places.
    fn places(
        &self,
        best: &[Document],
        selected: &[Bits],
    ) -> Result<BTreeSet<(Place, Document)>, IndexError> {
        let is_selected = |(number, doc): Document| {
            selected.get(number).is_some_and(|selected| selected.contains(doc))
        };
        let mut places = BTreeSet::new();
        for place in best.iter().filter_map(|document| self.directories.place(*document)) {
            places.extend(self.directories.at(place, 0));
            for (distance, _) in distances() {
                let beside = self.directories.at(place, distance);
                let Some(beside) = beside.filter(|(_, it)| is_selected(*it)) else { continue };
                // A long one gains nothing by being beside a good one.
                if self.neighbor_share(beside.1)? > 0.0 {
                    places.insert(beside);
                }
            }
        }
        Ok(places)
    }

    fn bonuses(
        &self,
        (place, document): (Place, Document),
        near: f64,
        around: &Surroundings,
    ) -> Result<Bonuses, IndexError> {
        let Scoring { nearness, surroundings, directory, .. } = self.ranking.scoring;
        let own = self.scores.of(document);
        let neighbors =
            self.of_neighbors(document, place)? * self.ranking.freshness_factor(document)?;
        let nearness = Bonus { share: near, score: own * nearness * near };
        let score = own + nearness.score + neighbors;
        let share = around.share_around(place);
        let surroundings = Bonus { share, score: score * surroundings * share };
        let score = score + surroundings.score;
        let share = around.share_of_directory(place);
        let directory = Bonus { share, score: score * directory * share };
        Ok(Bonuses { nearness, neighbors, surroundings, directory })
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
}
