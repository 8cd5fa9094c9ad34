//! Picks: which memories are suggested, in which order.

use quipu_core::Error;
use quipu_core::model::{MemoryId, MemoryPath, StoreId};

use crate::card::Card;
use crate::names::{Meaning, called};
use crate::search::{Freshness, FreshnessField, FreshnessState, Hit, Ranking, SimilarScore};

use super::evidence::{SearchedWord, Weighed};
use super::semantic::SemanticMatches;
use super::{LeftOut, Readable, Suggesting};

/// A memory to suggest.
pub(super) struct Pick {
    pub(super) found: Readable,
    pub(super) score: f64,
    /// The words of the text that it has.
    pub(super) words: Vec<SearchedWord>,
    /// How similar it is, if it is alike.
    pub(super) similar: Option<SimilarScore>,
    /// The memories that match and that it replaces.
    pub(super) replaces: Vec<MemoryPath>,
}

/// How many of the best matches are considered, and a successor is looked for among.
const MATCHES_MAX: usize = 100;
/// The number of words up to which memories are ranked in their context. A question is short, and its answer
/// may be in the memory beside the one that has its words. A long text has words enough, and reading the
/// positions of all of them takes longer than everything else.
const CONTEXT_WORDS_MAX: usize = 12;
/// How many of them are compared by their titles. One that is named by its title has a good score too.
const NAMED_MAX: usize = 30;
/// How many of those that were picked may not fit into the budget, before no more are picked.
const SPARE_PICKS: usize = 5;
/// Which share of the evidence of a better match a memory must have: what follows a good match is often
/// about something else. Scores would not do, as that of a long note is low even if it has every word.
const EVIDENCE_SHARE_MIN: f64 = 0.4;
/// How many times a successor may have been replaced itself. Two notes may name each other.
const SUCCESSIONS_MAX: usize = 8;

impl Suggesting<'_> {
    /// Returns the memories to suggest, best first, and lists those that are left out.
    pub(super) fn picks(
        &self,
        ranking: &Ranking<'_, '_>,
        (subject, alike): (&Weighed, Option<&SemanticMatches>),
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Vec<Pick>, Error> {
        let failed = |error| self.lookup.failed(error);
        let (clause, words) = (subject.clause(), subject.words());
        let ranked = if words.len() > CONTEXT_WORDS_MAX {
            ranking.best(&clause, &words, MATCHES_MAX)
        } else {
            ranking.best_in_context(&clause, &words, MATCHES_MAX)
        };
        let mut hits = ranked.map_err(failed)?.hits;
        if let Some(alike) = alike {
            alike.extend(ranking, &words, &mut hits).map_err(failed)?;
        }
        let similar = |hit: &Hit| alike.and_then(|alike| alike.of(hit));
        let mut picks: Vec<Pick> = Vec::new();
        let mut best = 0.0_f64;
        for (place, hit) in hits.iter().enumerate() {
            if picks.len() >= self.request.limit.saturating_add(SPARE_PICKS) {
                break;
            }
            let words = subject.found(ranking, hit).map_err(failed)?;
            let alike = similar(hit);
            let is_relevant = alike.is_some()
                || subject.is_enough(&words)
                || (place < NAMED_MAX && self.is_named(subject, hit, &words)?);
            if self.request.exclude.contains(&hit.memory) || !is_relevant {
                continue;
            }
            let evidence = Weighed::evidence(&words);
            best = evidence.max(best);
            if alike.is_none() && evidence < best * EVIDENCE_SHARE_MIN {
                continue;
            }
            let Some(found) = self.readable(hit.store, hit.memory)? else { continue };
            let Some((freshness, path)) = self.expired(&found) else {
                let (score, similar, replaces) = (hit.score, alike, Vec::new());
                add(&mut picks, Pick { found, score, words, similar, replaces });
                continue;
            };
            if left_out.len() < self.request.limit {
                left_out.push(LeftOut { path: path.clone(), freshness });
            }
            let Some((store, successor)) = self.successor(found)? else { continue };
            let is_it = |hit: &&Hit| (hit.store, hit.memory) == (store, successor);
            let Some(hit) = hits.iter().find(is_it) else { continue };
            if self.request.exclude.contains(&hit.memory) {
                continue;
            }
            let words = subject.found(ranking, hit).map_err(failed)?;
            let Some(found) = self.readable(store, successor)? else { continue };
            let (score, similar, replaces) = (hit.score, similar(hit), vec![path]);
            add(&mut picks, Pick { found, score, words, similar, replaces });
        }
        // A text that is a memory bears on nothing more than on that one, whatever its length does to
        // its score.
        let text = self.request.text.trim();
        picks.sort_by_key(|pick| pick.found.text.trim() != text);
        Ok(picks)
    }

    /// Returns whether the text names a memory by its title.
    fn is_named(
        &self,
        subject: &Weighed,
        hit: &Hit,
        words: &[SearchedWord],
    ) -> Result<bool, Error> {
        if words.is_empty() {
            return Ok(false);
        }
        let card = self.lookup.note(hit.store, hit.memory)?;
        let card = card.ok_or_else(|| self.lookup.damaged())?;
        Ok(subject.is_named(&card.title, words, self.languages))
    }

    /// Returns why a memory is expired and where it is; `None` if it is not.
    fn expired(&self, found: &Readable) -> Option<(Freshness, MemoryPath)> {
        let freshness = Freshness::of(&found.note.metadata, self.knowledge.judged_at())?;
        let is_expired = freshness.state == FreshnessState::Expired;
        is_expired.then(|| (freshness, found.card.path.clone()))
    }

    /// Returns the memory that replaced another, if it holds.
    fn successor(&self, mut replaced: Readable) -> Result<Option<(StoreId, MemoryId)>, Error> {
        for _ in 0..SUCCESSIONS_MAX {
            let Some((freshness, _)) = self.expired(&replaced) else {
                return Ok(Some((replaced.card.store, replaced.card.memory)));
            };
            if freshness.field != FreshnessField::SupersededBy {
                return Ok(None);
            }
            let Some(next) = self.called(&replaced.card, &freshness.value)? else {
                return Ok(None);
            };
            let Some(next) = self.readable(next.store, next.memory)? else { return Ok(None) };
            replaced = next;
        }
        Ok(None)
    }

    /// Returns the memory that another one names as its successor.
    fn called(&self, from: &Card, name: &str) -> Result<Option<Card>, Error> {
        // `[[Target|text]]` and `[[Target#Section]]` name the target.
        let name = name.split(['|', '#']).next().unwrap_or(name).trim();
        Ok(match called(self.lookup, from.store, name, Some(&from.path.parent()))? {
            Meaning::One(card) => Some(*card),
            Meaning::Nothing | Meaning::Several(_) => None,
        })
    }
}

/// Adds a pick, or what it replaces to the one that is there.
fn add(picks: &mut Vec<Pick>, pick: Pick) {
    let is_same = |known: &&mut Pick| known.found.card.memory == pick.found.card.memory;
    match picks.iter_mut().find(is_same) {
        Some(known) => known.replaces.extend(pick.replaces),
        None => picks.push(pick),
    }
}
