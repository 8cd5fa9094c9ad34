//! Matching: what a search finds, page by page.
//!
//! Hits are explained after the page was cut: an explanation reads the posting lists of all words, and
//! nobody sees those of other pages.

use std::collections::HashSet;
use std::ops::Range;

use quipu_core::Error;
use quipu_core::model::{MemoryId, Timestamp};
use quipu_notes::tokenizer::Language;
use quipu_notes::{DateSpan, Glob, day_of};

use super::clause::Clause;
use super::context::Bonuses;
use super::dates::days_from_event;
use super::explanation::{Explanation, ScorePart, ScoreReason, SimilarScore};
use super::plan::{Plan, Selection, Word};
use super::rank::{Hit, Ranked, Ranking};
use super::scoring::Scoring;
use super::{HITS_MAX, SearchRequest, SearchTarget, Total};
use crate::index::{IndexError, Space, StoreView};
use crate::lookup::Lookup;
use crate::names::{NoteCard, store_cards};

/// The factor for hits that have the word only as a prefix or in pieces.
const FURTHER_SCORE: f64 = 0.5;

/// The matches over all targets.
#[derive(Default)]
pub(super) struct Matches {
    pub(super) hits: Vec<Match>,
    pub(super) total: Total,
    /// Whether there is a next page.
    pub(super) has_more: bool,
}

/// A match before it is shown.
pub(super) struct Match {
    pub(super) target: SearchTarget,
    pub(super) hit: Hit,
    pub(super) found_by: FoundBy,
    /// What was added to the score of its words.
    pub(super) added: Vec<ScorePart>,
    pub(super) explanation: Option<Explanation>,
    pub(super) similar: Option<SimilarScore>,
}

/// What a match was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// Words of the query.
    Words,
    /// Longer words that begin with the only word of the query, or parts of it.
    FurtherWords,
    /// Its meaning alone.
    Meaning,
    /// Its name.
    Name,
}

impl Match {
    pub(super) fn new(target: SearchTarget, hit: Hit, found_by: FoundBy) -> Self {
        let (added, explanation, similar) = (Vec::new(), None, None);
        Self { target, hit, found_by, added, explanation, similar }
    }

    /// Adds a part to the score.
    pub(super) fn add(&mut self, reason: ScoreReason, score: f64) {
        self.hit.score += score;
        self.added.push(ScorePart { reason, score });
    }
}

impl Matches {
    fn extend(&mut self, target: SearchTarget, ranked: Ranked, found_by: FoundBy) {
        self.total.count += ranked.total;
        let hits = ranked.hits.into_iter();
        self.hits.extend(hits.map(|hit| Match::new(target, hit, found_by)));
    }

    pub(super) fn sort(&mut self) {
        self.hits.sort_by(|Match { hit: left, .. }, Match { hit: right, .. }| {
            let by_score = right.score.total_cmp(&left.score);
            by_score.then_with(|| right.updated_at.cmp(&left.updated_at))
        });
    }

    /// Keeps the hits of a page.
    pub(super) fn cut(&mut self, page: &Range<usize>) {
        self.has_more = page.end < HITS_MAX && self.hits.len() > page.end;
        self.hits.truncate(page.end);
        self.hits.drain(..page.start.min(self.hits.len()));
    }
}

/// One search.
pub(super) struct Search<'s> {
    pub(super) lookup: &'s Lookup<'s>,
    pub(super) request: &'s SearchRequest,
    pub(super) languages: &'s [Language],
    pub(super) scoring: Scoring,
    /// The time by which notes are expired or stale.
    pub(super) now: Timestamp,
}

/// How the documents of one target are ranked.
pub(super) struct TargetRanking<'r, 's> {
    pub(super) target: SearchTarget,
    pub(super) plan: &'r Plan,
    pub(super) ranking: Ranking<'r, 's>,
    pub(super) selection: Selection,
    /// What follows the selection, if it was needed.
    further: Option<Selection>,
}

impl TargetRanking<'_, '_> {
    /// Returns the condition that is met by what a search by words finds.
    pub(super) fn has_words(&self) -> Clause {
        let further = self.further.as_ref().map(|it| it.clause.clone());
        Clause::Any([self.selection.clause.clone()].into_iter().chain(further).collect())
    }
}

impl<'s> Search<'s> {
    pub(super) fn views(&self) -> Vec<&'s StoreView<'s>> {
        let lookup = self.lookup;
        self.request.stores.iter().filter_map(|store| lookup.view(*store)).collect()
    }

    /// Returns the plan of each target.
    pub(super) fn plans(&self) -> Vec<(SearchTarget, Plan)> {
        let plan = |target: &SearchTarget| {
            (*target, Plan::new(self.request, target.space(), self.languages, self.scoring))
        };
        self.request.targets().iter().map(plan).collect()
    }

    /// Prepares the ranking of each target.
    pub(super) fn rankings<'r>(
        &self,
        views: &[&'r StoreView<'s>],
        plans: &'r [(SearchTarget, Plan)],
    ) -> Result<Vec<TargetRanking<'r, 's>>, IndexError> {
        let span = self.span(views)?;
        let mut rankings = Vec::with_capacity(plans.len());
        for (target, plan) in plans {
            let mut ranking = Ranking::new(views, &plan.phrases)?.judged_at(self.now);
            if let Some(span) = &span {
                ranking.prefer(span)?;
            }
            let (target, selection) = (*target, plan.selection(&ranking)?);
            rankings.push(TargetRanking { target, plan, ranking, selection, further: None });
        }
        Ok(rankings)
    }

    /// Returns the days that the query asks about.
    fn span(&self, views: &[&StoreView<'_>]) -> Result<Option<DateSpan>, IndexError> {
        let text = &self.request.text;
        let written = day_of(self.now.as_micros()).and_then(|today| DateSpan::find(text, today));
        match written {
            Some(span) => Ok(Some(span)),
            None => days_from_event(text, views, (self.languages, self.scoring)),
        }
    }

    /// Returns the best `limit` matches by words.
    pub(super) fn by_words(
        rankings: &mut [TargetRanking<'_, 's>],
        limit: usize,
    ) -> Result<Matches, IndexError> {
        let mut selected = Matches::default();
        for TargetRanking { target, ranking, selection, .. } in rankings.iter() {
            let Selection { clause, words } = selection;
            let ranked = ranking.best_in_context(clause, words, limit)?;
            selected.extend(*target, ranked, FoundBy::Words);
        }
        selected.sort();
        if selected.total.count >= limit {
            // Longer words that begin with the one that was typed were not counted.
            selected.total.is_lower_bound = rankings.iter().any(|it| it.plan.has_further());
            return Ok(selected);
        }
        let mut further = Matches::default();
        for TargetRanking { target, plan, ranking, selection, further: more } in rankings {
            if plan.has_further() {
                let Selection { clause, words } = more.insert(plan.further(selection));
                let ranked = ranking.best_in_context(clause, words, limit)?;
                further.extend(*target, ranked, FoundBy::FurtherWords);
            }
        }
        further.sort();
        Ok(appended(selected, further))
    }

    /// Explains the scores of the matches, if that was asked for.
    pub(super) fn explain(
        &self,
        matches: &mut Matches,
        rankings: &[TargetRanking<'_, '_>],
    ) -> Result<(), IndexError> {
        if !self.request.explain {
            return Ok(());
        }
        let by = [FoundBy::Words, FoundBy::FurtherWords, FoundBy::Meaning];
        for (TargetRanking { target, ranking, selection, further, .. }, found_by) in
            rankings.iter().flat_map(|ranking| by.map(|found_by| (ranking, found_by)))
        {
            let words: &[Word] = match found_by {
                FoundBy::Words => &selection.words,
                FoundBy::FurtherWords => further.as_ref().map_or(&[], |it| &it.words),
                FoundBy::Meaning | FoundBy::Name => &[],
            };
            let is_one = |it: &&mut Match| (it.target, it.found_by) == (*target, found_by);
            let mut found: Vec<_> = matches.hits.iter_mut().filter(is_one).collect();
            let hits: Vec<_> = found.iter().map(|it| &it.hit).collect();
            let explanations = ranking.explain(words, &hits)?;
            for (found, mut explanation) in found.iter_mut().zip(explanations) {
                explanation.extend(&found.added);
                found.explanation = Some(explanation);
            }
        }
        Ok(())
    }

    /// Returns a page of the memories whose permalink or path contains the text or matches the pattern.
    pub(super) fn by_permalink(&self, page: Range<usize>) -> Result<Matches, Error> {
        let text = self.request.text.trim().trim_start_matches("memory://").to_lowercase();
        let pattern = if text.contains('*') { text } else { format!("*{text}*") };
        let glob = Glob::new(&pattern);
        let allowed = self.allowed().map_err(|error| self.lookup.failed(error))?;
        let mut matches = Matches::default();
        for &store in &self.request.stores {
            for card in store_cards(self.lookup, store)? {
                let NoteCard { path, permalink, memory, updated_at, .. } = card;
                let is_allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(&memory));
                let names = [permalink.to_lowercase(), path.as_str().to_lowercase()];
                if !is_allowed || !names.iter().any(|name| glob.matches(name)) {
                    continue;
                }
                matches.total.count += 1;
                // The shorter the name, the larger the part of it that was asked for.
                let surplus = permalink.len().saturating_sub(pattern.len());
                let score = 1.0 / f64::from(u32::try_from(surplus + 1).unwrap_or(u32::MAX));
                let hit = Hit {
                    store,
                    memory,
                    position: 0,
                    score,
                    updated_at,
                    document: None,
                    bonuses: Bonuses::default(),
                };
                matches.hits.push(Match::new(SearchTarget::Memories, hit, FoundBy::Name));
            }
        }
        matches.sort();
        matches.cut(&page);
        for found in matches.hits.iter_mut().filter(|_| self.request.explain) {
            found.explanation = Some(Explanation::of(ScoreReason::Name, found.hit.score));
        }
        Ok(matches)
    }

    /// Returns the memories that meet the conditions of the request; `None` if it has none.
    fn allowed(&self) -> Result<Option<HashSet<MemoryId>>, IndexError> {
        let plan = Plan::new(self.request, Space::Memories, self.languages, self.scoring);
        let Some(condition) = plan.condition() else { return Ok(None) };
        let views = self.views();
        let ranked = Ranking::new(&views, &plan.phrases)?;
        let ranked = ranked.best(&condition, &[], usize::MAX)?;
        Ok(Some(ranked.hits.into_iter().map(|hit| hit.memory).collect()))
    }
}

/// Appends documents with longer words to those with the word itself.
fn appended(mut selected: Matches, further: Matches) -> Matches {
    let lowest = selected.hits.last().map_or(f64::INFINITY, |found| found.hit.score);
    for mut found in further.hits {
        let score = (found.hit.score * FURTHER_SCORE).min(lowest);
        found.add(ScoreReason::Partial, score - found.hit.score);
        // Exactly this score, and not one that was rounded twice.
        found.hit.score = score;
        selected.hits.push(found);
    }
    selected.total.count += further.total.count;
    selected
}
