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
mod matching;
mod neighbors;
mod occurrences;
mod passages;
mod plan;
mod rank;
mod rarity;
mod scoring;
mod shown;
mod similar;
mod sums;
mod surroundings;

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{Actor, Directory, StoreId, Timestamp};
use quipu_notes::{FieldFilter, Observation, Passage, Snippet, Value};

use crate::Knowledge;
use crate::card::LinkRow;
use crate::index::Space;
use crate::names::{Cards, NoteCard};

pub(crate) use clause::Clause;
pub use explanation::{
    DateScore, Explanation, FieldScore, ScorePart, ScoreReason, ScoredField, SimilarScore,
    WordScore,
};
pub use freshness::{Freshness, FreshnessField, FreshnessState};
pub use fusion::RankedBy;
pub(crate) use occurrences::Phrases;
pub(crate) use plan::Word;
pub(crate) use rank::{Hit, Ranking};
pub use scoring::Scoring;
pub use similar::Coverage;
pub(crate) use similar::Similar;

use fusion::{Fused, Fusion, Strategy};
use matching::{Matches, Search};
use plan::Plan;

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
    /// Who asks. The vectors of questions are remembered for each of them: how fast an answer comes must not
    /// tell what others have asked.
    pub asked_by: Option<Actor>,
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
    /// Why its note counts less, if it is expired or stale.
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
            asked_by: None,
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

impl Knowledge {
    /// Searches stores.
    ///
    /// Everything that was acknowledged before the call can be found. A document needs one of the
    /// words, and is ranked higher the more of them it has.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchPage, Error> {
        let request = &request.distinct();
        // Before anything is read: the encoder may take its time, and a redaction waits for readers.
        let strategy = Strategy::new(self, request)?;
        self.lookup(&request.stores, |lookup| {
            for &store in &request.stores {
                existing_store(lookup.reader, store)?;
            }
            let end = request.offset.saturating_add(request.limit).min(HITS_MAX);
            let languages = lookup.languages(&request.stores)?;
            let (scoring, now) = (self.scoring, self.judged_at());
            let search = Search { lookup, request, languages: &languages, scoring, now };
            let page = request.offset.min(end)..end;
            let Fused { matches, ranked_by, coverage, notice } =
                if request.mode == SearchMode::Permalink {
                    Fused::by_text(search.by_permalink(page)?)
                } else {
                    let fusion = Fusion { search: &search, knowledge: self };
                    fusion.page(&strategy, page).map_err(|error| lookup.failed(error))?
                };
            let plan = Plan::new(request, Space::Memories, &languages, self.scoring);
            let phrases = plan.shown();
            let mut hits = Vec::new();
            let mut cards = Cards::new(lookup);
            let Matches { hits: found, total, has_more } = matches;
            for found in found {
                hits.extend(shown::hit(lookup, &phrases, &mut cards, found, now)?);
            }
            let is_behind = lookup.is_behind;
            Ok(SearchPage { hits, total, has_more, is_behind, ranked_by, coverage, notice })
        })
    }
}
