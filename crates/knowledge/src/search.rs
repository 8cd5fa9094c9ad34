//! Search: ranked full text with filters.
//!
//! A query is parsed by [`quipu_notes::query`] and compiled by [`plan`] into [`clause`]s over index
//! terms. Clauses select documents, and [`rank`] orders them.

mod clause;
mod context;
mod dates;
mod explanation;
mod freshness;
mod fusion;
mod neighbors;
mod occurrences;
mod passages;
mod plan;
mod rank;
mod rarity;
mod scoring;
mod shown;
mod sums;
mod surroundings;

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{Actor, Directory, MemoryId, StoreId, Timestamp};
use quipu_notes::tokenizer::Language;
use quipu_notes::{DateSpan, FieldFilter, Glob, Observation, Passage, Snippet, Value, day_of};

use crate::Knowledge;
use crate::card::LinkRow;
use crate::index::{IndexError, Space, StoreView};
use crate::lookup::Lookup;
use crate::names::{Cards, NoteCard, store_cards};

pub(crate) use clause::Clause;
pub use explanation::{
    Explanation, FieldScore, ScorePart, ScoreReason, ScoredField, SimilarScore, WordScore,
};
pub use freshness::{Freshness, FreshnessField, FreshnessState};
pub(crate) use fusion::Similar;
pub use fusion::{Coverage, RankedBy};
pub(crate) use occurrences::Phrases;
pub(crate) use plan::Word;
pub(crate) use rank::{Hit, Ranking};
pub use scoring::Scoring;

use context::Bonuses;
use fusion::{Asked, Fused, Fusion};
use plan::{Plan, Selection};
use rank::Ranked;

/// A search request.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The stores to search.
    pub stores: Vec<StoreId>,
    /// The query as typed; see [`Query`](quipu_notes::query::Query). Without words, the most
    /// recently changed come first.
    pub text: String,
    /// Which fields the text is matched against.
    pub mode: SearchMode,
    /// What to search, and so what hits are; defaults to memories if empty.
    pub targets: Vec<SearchTarget>,
    /// Further conditions.
    pub filter: SearchFilter,
    /// How many hits to skip.
    pub offset: usize,
    /// The maximum number of hits.
    pub limit: usize,
    /// Whether each hit comes with an explanation of its score.
    pub explain: bool,
}

/// What the text of a search is matched against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// As [`Hybrid`](Self::Hybrid) if there is a model, else as [`Text`](Self::Text).
    #[default]
    Best,
    /// The words of titles, tags, headings and text.
    Text,
    /// The meaning of passages. Without a model, this is an error.
    Vector,
    /// Words and meaning.
    Hybrid,
    /// Titles only.
    Title,
    /// Permalinks and paths, where `*` matches anything.
    Permalink,
}

/// What to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchTarget {
    /// Whole memories.
    #[default]
    Memories,
    /// Individual observations.
    Observations,
    /// Individual relations and links.
    Relations,
}

impl SearchTarget {
    fn space(self) -> Space {
        match self {
            Self::Memories => Space::Memories,
            Self::Observations => Space::Observations,
            Self::Relations => Space::Relations,
        }
    }
}

/// The conditions that a hit must meet besides its words; all of them apply.
#[derive(Clone, Debug, Default)]
pub struct SearchFilter {
    /// It is in this directory.
    pub directory: Option<Directory>,
    /// Its note has one of these types, if any are given.
    pub kinds: Vec<String>,
    /// It has all of these tags. A memory also has the tags of its observations, and an observation
    /// those of the frontmatter.
    pub tags: Vec<String>,
    /// It is or contains an observation in one of these categories, if any are given.
    pub categories: Vec<String>,
    /// The fields of its frontmatter match.
    pub fields: Vec<FieldFilter>,
    /// It changed after this time.
    pub changed_after: Option<Timestamp>,
}

/// A page of search results.
#[derive(Clone, Debug, Default)]
pub struct SearchPage {
    /// The hits, best first.
    pub hits: Vec<SearchHit>,
    /// The total number of matches, of which the best 500 can be paged through.
    pub total: Total,
    /// Whether there is a next page.
    pub has_more: bool,
    /// Whether acknowledged changes may be missing, because the index can neither be written nor
    /// completed in memory.
    pub is_behind: bool,
    /// What the order is by.
    pub ranked_by: RankedBy,
    /// How many of the memories have vectors, if there is a model and the search could use it.
    pub coverage: Option<Coverage>,
    /// Why vectors were not used, although there is a model or they were asked for.
    pub notice: Option<String>,
}

/// A total number of matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The number, or a lower bound.
    pub count: usize,
    /// Whether `count` is a lower bound.
    pub is_lower_bound: bool,
}

/// A search hit.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The memory that was found, or that contains what was found.
    pub note: NoteCard,
    /// What was found.
    pub found: Found,
    /// The relevance; higher is better.
    pub score: f64,
    /// What the score is made of, if the request asks for it.
    pub explanation: Option<Explanation>,
    /// The passage that is most similar to the question, if the search was by meaning.
    pub similar: Option<SimilarScore>,
    /// Why its note counts less, if it is over or stale.
    pub freshness: Option<Freshness>,
    /// The excerpt that shows why it was found.
    pub snippet: Snippet,
    /// The part of the memory that the excerpt is from; `None` if it is all of it, or if nothing in
    /// the body matches.
    pub passage: Option<Passage>,
    /// The author of the version that was found.
    pub actor: Actor,
    /// The tags of the memory.
    pub tags: Vec<String>,
    /// The other frontmatter fields of the memory.
    pub metadata: Vec<(String, Value)>,
}

/// The kind of a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The memory itself.
    Memory,
    /// An observation in it.
    Observation(Observation),
    /// A relation or link in it.
    Relation(LinkRow),
}

/// The maximum depth of a page.
const HITS_MAX: usize = 500;

/// The factor for hits that have the word only as a prefix or in pieces.
const FURTHER_SCORE: f64 = 0.5;

impl SearchRequest {
    /// Returns a request for the first ten memories of some stores that match a text.
    pub fn new(stores: Vec<StoreId>, text: impl Into<String>) -> Self {
        Self {
            stores,
            text: text.into(),
            mode: SearchMode::Best,
            targets: Vec::new(),
            filter: SearchFilter::default(),
            offset: 0,
            limit: 10,
            explain: false,
        }
    }

    fn targets(&self) -> &[SearchTarget] {
        if self.targets.is_empty() { &[SearchTarget::Memories] } else { &self.targets }
    }

    /// Returns the request with each store and target once. Named twice, as in `--store a --store a`,
    /// a store would be found and counted twice.
    fn distinct(&self) -> Self {
        let mut request = self.clone();
        let mut seen = HashSet::new();
        request.stores.retain(|store| seen.insert(*store));
        let mut seen = HashSet::new();
        request.targets.retain(|target| seen.insert(*target));
        request
    }
}

/// The matches over all targets.
#[derive(Default)]
struct Matches {
    hits: Vec<Match>,
    total: Total,
}

/// A match before it is shown.
struct Match {
    target: SearchTarget,
    hit: Hit,
    explanation: Option<Explanation>,
    similar: Option<SimilarScore>,
    /// Whether it has any word of the query.
    has_words: bool,
}

impl Match {
    fn new(target: SearchTarget, hit: Hit) -> Self {
        Self { target, hit, explanation: None, similar: None, has_words: true }
    }

    fn memory(hit: Hit) -> Self {
        Self::new(SearchTarget::Memories, hit)
    }
}

impl Matches {
    fn add(&mut self, target: SearchTarget, ranked: Ranked) {
        self.total.count += ranked.total;
        let hits = ranked.hits.into_iter();
        self.hits.extend(hits.map(|hit| Match::new(target, hit)));
    }

    fn sort(&mut self) {
        self.hits.sort_by(|Match { hit: left, .. }, Match { hit: right, .. }| {
            let by_score = right.score.total_cmp(&left.score);
            by_score.then_with(|| right.updated_at.cmp(&left.updated_at))
        });
    }
}

impl Knowledge {
    /// Searches stores.
    ///
    /// Everything that was acknowledged before the call can be found. A document needs one of the
    /// words, and is ranked higher the more of them it has.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchPage, Error> {
        let request = &request.distinct();
        // Before anything is read: the encoder may take its time, and a redaction waits for readers.
        let asked = Asked::new(self, request)?;
        self.lookup(&request.stores, |lookup| {
            for &store in &request.stores {
                existing_store(lookup.reader, store)?;
            }
            let end = request.offset.saturating_add(request.limit).min(HITS_MAX);
            let languages = lookup.languages(&request.stores)?;
            let (scoring, now) = (self.scoring, self.judged_at());
            let span =
                day_of(now.as_micros()).and_then(|today| DateSpan::find(&request.text, today));
            let search = Search { lookup, request, languages: &languages, scoring, span, now };
            // One more than requested shows whether there is a next page.
            let Fused { matches, ranked_by, coverage, notice } =
                if request.mode == SearchMode::Permalink {
                    Fused::by_text(search.by_permalink(end + 1)?)
                } else {
                    let fusion = Fusion { search: &search, knowledge: self };
                    fusion.matches(&asked, end + 1).map_err(|error| lookup.failed(error))?
                };
            let has_more = end < HITS_MAX && matches.hits.len() > end;
            let plan = Plan::new(request, Space::Memories, &languages, self.scoring);
            let phrases = plan.shown();
            let mut hits = Vec::new();
            let mut cards = Cards::new(lookup);
            for found in matches.hits.into_iter().take(end).skip(request.offset) {
                hits.extend(shown::hit(lookup, &phrases, &mut cards, found, now)?);
            }
            let (total, is_behind) = (matches.total, lookup.is_behind);
            Ok(SearchPage { hits, total, has_more, is_behind, ranked_by, coverage, notice })
        })
    }
}

/// One search.
struct Search<'s> {
    lookup: &'s Lookup<'s>,
    request: &'s SearchRequest,
    languages: &'s [Language],
    scoring: Scoring,
    /// The days that the query asks about.
    span: Option<DateSpan>,
    /// The time by which notes are over or stale.
    now: Timestamp,
}

impl<'s> Search<'s> {
    fn views(&self) -> Vec<&'s StoreView<'s>> {
        let lookup = self.lookup;
        self.request.stores.iter().filter_map(|store| lookup.view(*store)).collect()
    }

    fn ranking<'r>(
        &self,
        views: &[&'r StoreView<'s>],
        plan: &'r Plan,
    ) -> Result<Ranking<'r, 's>, IndexError> {
        let mut ranking = Ranking::new(views, &plan.phrases)?.judged_at(self.now);
        if let Some(span) = &self.span {
            ranking.prefer(span)?;
        }
        Ok(ranking)
    }

    fn by_words(&self, limit: usize) -> Result<Matches, IndexError> {
        let targets = self.request.targets().iter();
        let plan = |target: &SearchTarget| {
            (*target, Plan::new(self.request, target.space(), self.languages, self.scoring))
        };
        let plans: Vec<_> = targets.map(plan).collect();
        let mut rankings = Vec::new();
        let mut selected = Matches::default();
        let views = self.views();
        for (target, plan) in &plans {
            let ranking = self.ranking(&views, plan)?;
            let selection = plan.selection(&ranking)?;
            let Selection { clause, words } = &selection;
            selected.add(*target, ranking.best_in_context(clause, words, limit)?);
            rankings.push((*target, ranking, selection));
        }
        selected.sort();
        self.explain(&mut selected, &rankings)?;
        if selected.total.count >= limit {
            // Longer words that begin with the one that was typed were not counted.
            selected.total.is_lower_bound = plans.iter().any(|(_, plan)| plan.has_further());
            return Ok(selected);
        }
        let mut further = Matches::default();
        for ((_, plan), (target, ranking, selection)) in plans.iter().zip(&mut rankings) {
            if plan.has_further() {
                *selection = plan.further(selection);
                let Selection { clause, words } = &selection;
                further.add(*target, ranking.best_in_context(clause, words, limit)?);
            }
        }
        further.sort();
        self.explain(&mut further, &rankings)?;
        Ok(appended(selected, further))
    }

    /// Explains the scores of the matches, if that was asked for.
    fn explain(
        &self,
        matches: &mut Matches,
        rankings: &[(SearchTarget, Ranking<'_, '_>, Selection)],
    ) -> Result<(), IndexError> {
        for Match { target, hit, explanation, .. } in &mut matches.hits {
            let ranking = rankings.iter().find(|(of, ..)| of == target);
            if let Some((_, ranking, selection)) = ranking.filter(|_| self.request.explain) {
                *explanation = Some(ranking.explain(&selection.words, hit)?);
            }
        }
        Ok(())
    }

    fn by_permalink(&self, limit: usize) -> Result<Matches, Error> {
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
                let explanation = self.request.explain.then(|| {
                    let mut explanation = Explanation::default();
                    explanation.add(ScoreReason::Name, score);
                    explanation
                });
                matches.hits.push(Match { explanation, ..Match::memory(hit) });
            }
        }
        matches.sort();
        matches.hits.truncate(limit);
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
        if let Some(explanation) = &mut found.explanation {
            explanation.add(ScoreReason::Partial, score - found.hit.score);
        }
        found.hit.score = score;
        selected.hits.push(found);
    }
    selected.total.count += further.total.count;
    selected
}
