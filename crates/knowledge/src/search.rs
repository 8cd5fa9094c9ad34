//! Search: ranked full text with filters.
//!
//! What is typed is parsed by [`quipu_notes::query`] and compiled by [`plan`] into [`clause`]s in terms of
//! the index. Clauses select documents, and [`rank`] puts them in order.

mod clause;
mod occurrences;
mod plan;
mod rank;

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{Actor, Directory, MemoryId, StoreId, Timestamp, View};
use quipu_notes::tokenizer::Language;
use quipu_notes::{
    FieldFilter, Glob, LinkTarget, Note, Observation, Phrase, Snippet, Value, snippet,
};

use crate::Knowledge;
use crate::card::LinkRow;
use crate::index::{IndexError, Space, StoreView};
use crate::lookup::Lookup;
use crate::names::{Cards, NoteCard, store_cards};

pub(crate) use clause::Clause;
pub(crate) use occurrences::Phrases;
pub(crate) use rank::{Hit, Ranking};

use plan::{Plan, Relaxed};
use rank::Ranked;

/// What to search for.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Where to search.
    pub stores: Vec<StoreId>,
    /// What was typed; see [`Query`](quipu_notes::query::Query). Without words, the newest come first.
    pub text: String,
    /// What the text is compared with.
    pub mode: SearchMode,
    /// What is searched, and so what hits are; none means memories.
    pub targets: Vec<SearchTarget>,
    /// What else must hold.
    pub filter: SearchFilter,
    /// How many hits to leave out at the beginning.
    pub offset: usize,
    /// How many hits at most.
    pub limit: usize,
}

/// What the text of a search is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// Titles, tags, headings and texts.
    #[default]
    Text,
    /// Titles only.
    Title,
    /// Permalinks and paths, in which `*` stands for anything.
    Permalink,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchTarget {
    /// Whole memories.
    #[default]
    Memories,
    /// Single observations.
    Observations,
    /// Single relations and links.
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

/// What must hold for a hit besides its words; everything must.
#[derive(Clone, Debug, Default)]
pub struct SearchFilter {
    /// It lies in this directory.
    pub directory: Option<Directory>,
    /// Its note has one of these types, if there are any.
    pub kinds: Vec<String>,
    /// It has all of these tags: a memory those of its observations too, and an observation those
    /// of the frontmatter.
    pub tags: Vec<String>,
    /// It has or is an observation of one of these categories, if there are any.
    pub categories: Vec<String>,
    /// The fields of its frontmatter fit.
    pub fields: Vec<FieldFilter>,
    /// It changed after this moment.
    pub changed_after: Option<Timestamp>,
}

/// A part of what a search found.
#[derive(Clone, Debug, Default)]
pub struct SearchPage {
    /// The hits, the best first.
    pub hits: Vec<SearchHit>,
    /// How many there are in all; the best 500 can be had.
    pub total: Total,
    /// Whether the next page holds more.
    pub has_more: bool,
    /// Whether something that was written before may be missing, because the index can neither be
    /// written nor completed in memory.
    pub is_behind: bool,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The number, or a lower bound.
    pub count: usize,
    /// Whether there may be more than were counted.
    pub is_lower_bound: bool,
}

/// Something that was found.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The memory that it is or is in.
    pub note: NoteCard,
    /// What was found of it.
    pub found: Found,
    /// How well it fits; more is better.
    pub score: f64,
    /// The part that shows why it was found.
    pub snippet: Snippet,
    /// Who made the version that was found.
    pub actor: Actor,
    /// The tags of the memory.
    pub tags: Vec<String>,
    /// The other fields of its frontmatter.
    pub metadata: Vec<(String, Value)>,
}

/// What a hit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The memory itself.
    Memory,
    /// An observation in it.
    Observation(Observation),
    /// A relation or link in it.
    Relation(LinkRow),
}

/// How deep into the results a page can lie.
const HITS_MAX: usize = 500;

/// How much a hit that lacks some of the words counts.
const RELAXED_SCORE: f64 = 0.5;

impl SearchRequest {
    /// Returns the request for the first ten memories of some stores that fit a text.
    pub fn new(stores: Vec<StoreId>, text: impl Into<String>) -> Self {
        Self {
            stores,
            text: text.into(),
            mode: SearchMode::Text,
            targets: Vec::new(),
            filter: SearchFilter::default(),
            offset: 0,
            limit: 10,
        }
    }

    fn targets(&self) -> &[SearchTarget] {
        if self.targets.is_empty() { &[SearchTarget::Memories] } else { &self.targets }
    }
}

/// What was found in all that is searched.
#[derive(Default)]
struct Matches {
    hits: Vec<(SearchTarget, Hit)>,
    total: Total,
}

impl Matches {
    fn add(&mut self, target: SearchTarget, ranked: Ranked) {
        self.total.count += ranked.total;
        self.hits.extend(ranked.hits.into_iter().map(|hit| (target, hit)));
    }

    fn sort(&mut self) {
        self.hits.sort_by(|(_, left), (_, right)| {
            let by_score = right.score.total_cmp(&left.score);
            by_score.then_with(|| right.updated_at.cmp(&left.updated_at))
        });
    }
}

impl Knowledge {
    /// Searches stores.
    ///
    /// Everything that was acknowledged before the call is found. Words must all be there; if that
    /// leaves the page unfilled, it is filled with what holds some of them.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchPage, Error> {
        self.lookup(&request.stores, |lookup| {
            for &store in &request.stores {
                existing_store(lookup.reader, store)?;
            }
            let end = request.offset.saturating_add(request.limit).min(HITS_MAX);
            let languages = lookup.languages(&request.stores)?;
            let search = Search { lookup, request, languages: &languages };
            // One more than wanted tells whether there is a next page.
            let matches = match request.mode {
                SearchMode::Permalink => search.by_permalink(end + 1)?,
                SearchMode::Text | SearchMode::Title => {
                    search.by_words(end + 1).map_err(|error| lookup.failed(error))?
                }
            };
            let has_more = end < HITS_MAX && matches.hits.len() > end;
            let plan = Plan::new(request, Space::Memories, &languages);
            let phrases = plan.shown();
            let mut hits = Vec::new();
            let mut cards = Cards::new(lookup);
            for (target, hit) in matches.hits.into_iter().take(end).skip(request.offset) {
                hits.extend(shown(lookup, &phrases, &mut cards, (target, hit))?);
            }
            Ok(SearchPage { hits, total: matches.total, has_more, is_behind: lookup.is_behind })
        })
    }
}

/// One search.
struct Search<'s> {
    lookup: &'s Lookup<'s>,
    request: &'s SearchRequest,
    languages: &'s [Language],
}

impl<'s> Search<'s> {
    fn views(&self) -> Vec<&'s StoreView<'s>> {
        let lookup = self.lookup;
        self.request.stores.iter().filter_map(|store| lookup.view(*store)).collect()
    }

    fn by_words(&self, limit: usize) -> Result<Matches, IndexError> {
        let targets = self.request.targets().iter();
        let plan = |target: &SearchTarget| {
            (*target, Plan::new(self.request, target.space(), self.languages))
        };
        let plans: Vec<_> = targets.map(plan).collect();
        let mut rankings = Vec::new();
        let mut strict = Matches::default();
        let views = self.views();
        for (target, plan) in &plans {
            let ranking = Ranking::new(&views, &plan.phrases)?;
            strict.add(*target, ranking.best(&plan.strict, &plan.scored(), limit)?);
            rankings.push(ranking);
        }
        strict.sort();
        if strict.total.count >= limit {
            // What has only some of the words was not counted.
            strict.total.is_lower_bound = plans.iter().any(|(_, plan)| plan.relaxed.is_some());
            return Ok(strict);
        }
        let mut relaxed = Matches::default();
        for ((target, plan), ranking) in plans.iter().zip(&rankings) {
            let Some(less) = &plan.relaxed else { continue };
            let less = with_quoted(less, ranking)?;
            relaxed.add(*target, ranking.best(&less.clause(), &less.scored(), limit)?);
        }
        relaxed.sort();
        Ok(appended(strict, relaxed))
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
                // The shorter a name is, the more of it is what was asked for.
                let surplus = permalink.len().saturating_sub(pattern.len());
                let score = 1.0 / f64::from(u32::try_from(surplus + 1).unwrap_or(u32::MAX));
                let hit = Hit { store, memory, position: 0, score, updated_at };
                matches.hits.push((SearchTarget::Memories, hit));
            }
        }
        matches.sort();
        matches.hits.truncate(limit);
        Ok(matches)
    }

    /// Returns the memories that pass the filter of the request; `None` if it has none.
    fn allowed(&self) -> Result<Option<HashSet<MemoryId>>, IndexError> {
        let plan = Plan::new(self.request, Space::Memories, self.languages);
        let Some(condition) = plan.condition() else { return Ok(None) };
        let views = self.views();
        let ranked = Ranking::new(&views, &plan.phrases)?;
        let ranked = ranked.best(&condition, &[], usize::MAX)?;
        Ok(Some(ranked.hits.into_iter().map(|hit| hit.memory).collect()))
    }
}

/// Requires what was quoted, as far as any document has it: each alone, or it would depend on their
/// order which of two is given up.
fn with_quoted(relaxed: &Relaxed, ranking: &Ranking<'_, '_>) -> Result<Relaxed, IndexError> {
    let mut with = relaxed.clone();
    for quoted in &relaxed.quoted {
        let mut all = relaxed.constraints.clone();
        all.push(quoted.clone());
        if ranking.has_any(&Clause::All(all))? {
            with.required.push(quoted.clone());
        }
    }
    Ok(with)
}

/// Appends what has only some of the words to what has all of them.
fn appended(mut strict: Matches, relaxed: Matches) -> Matches {
    let lowest = strict.hits.last().map_or(f64::INFINITY, |(_, hit)| hit.score);
    let place = |(target, hit): &(SearchTarget, Hit)| (*target, hit.memory, hit.position);
    let known: HashSet<_> = strict.hits.iter().map(place).collect();
    let further = relaxed.hits.into_iter().filter(|found| !known.contains(&place(found)));
    let further = further.map(|(target, hit)| {
        (target, Hit { score: (hit.score * RELAXED_SCORE).min(lowest), ..hit })
    });
    strict.hits.extend(further.collect::<Vec<_>>());
    strict.total.count = strict.hits.len().max(strict.total.count).max(relaxed.total.count);
    strict
}

/// Returns a hit as it is shown; `None` if its text was redacted since the index was read.
fn shown(
    lookup: &Lookup<'_>,
    phrases: &[&Phrase],
    cards: &mut Cards<'_>,
    (target, hit): (SearchTarget, Hit),
) -> Result<Option<SearchHit>, Error> {
    let card = lookup.note(hit.store, hit.memory)?.ok_or_else(|| lookup.damaged())?;
    let Some(version) = lookup.reader.version(hit.store, card.version, View::Full)? else {
        return Ok(None);
    };
    // The title, the path and the tags were redacted with the text.
    let Some(content) = &version.content else { return Ok(None) };
    let text = content.as_str();
    let note = match target {
        SearchTarget::Memories => Note::parse_header(text),
        SearchTarget::Observations | SearchTarget::Relations => {
            Note::parse(card.path.as_str(), text)
        }
    };
    let part = |text: &str| snippet(text, note.language, phrases);
    let (found, snippet) = match target {
        SearchTarget::Memories => {
            (Found::Memory, part(text.get(note.body.clone()).unwrap_or_default()))
        }
        SearchTarget::Observations => {
            let Some(observation) = note.observations.get(hit.position) else { return Ok(None) };
            let mut texts = observation.written_times();
            texts.push(&observation.text);
            (Found::Observation(observation.clone()), part(&texts.join(" ")))
        }
        SearchTarget::Relations => {
            let mut links = lookup.links_from(hit.store, hit.memory, usize::MAX)?.into_iter();
            let Some(link) = links.nth(hit.position) else { return Ok(None) };
            let shown = part(&link_text(&link));
            (Found::Relation(link), shown)
        }
    };
    Ok(Some(SearchHit {
        note: cards.card(card)?,
        found,
        score: hit.score,
        snippet,
        actor: version.actor,
        tags: [note.tags, note.inline_tags].concat(),
        metadata: note.metadata,
    }))
}

/// Returns a link as it would be written.
fn link_text(link: &LinkRow) -> String {
    let LinkTarget { name, .. } = &link.target;
    let context = link.context.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
    format!("{} [[{name}]]{context}", link.kind)
}
