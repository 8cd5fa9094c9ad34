//! Search: ranked full text with filters.

mod fillers;
mod patterns;
mod plan;

use std::cmp::Reverse;

use crate::Error;
use crate::backend::Reader;
use crate::index::{
    FieldFilter, IndexHit, IndexMatches, IndexQuery, LinkRow, Snippet, TermQuery, Total, What,
    snippet,
};
use crate::model::{Actor, Directory, StoreId, Timestamp, View};
use crate::note::{Glob, Note, Observation, Target, Value};

use super::naming::{Cards, store_cards};
use super::{Engine, NoteCard, existing_store};

use plan::Plan;

/// What to search for.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Where to search.
    pub stores: Vec<StoreId>,
    /// What was typed; see [`Query`](crate::query::Query). Without words, the newest come first.
    pub text: String,
    /// What the text is compared with.
    pub mode: SearchMode,
    /// What is searched, and so what hits are; none means memories.
    pub what: Vec<What>,
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

impl SearchRequest {
    /// Returns the request for the first ten memories of a store that fit a text.
    pub fn new(stores: Vec<StoreId>, text: impl Into<String>) -> Self {
        Self {
            stores,
            text: text.into(),
            mode: SearchMode::Text,
            what: Vec::new(),
            filter: SearchFilter::default(),
            offset: 0,
            limit: 10,
        }
    }
}

impl Engine {
    /// Searches stores.
    ///
    /// Everything that was acknowledged before the call is found. Words must all be there; if that
    /// leaves the page unfilled, it is filled with what holds some of them.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchPage, Error> {
        let plan = Plan::new(request);
        self.read_indexed(|reader| {
            for &store in &request.stores {
                existing_store(reader, store)?;
            }
            let end = request.offset.saturating_add(request.limit).min(HITS_MAX);
            let matches = match request.mode {
                SearchMode::Permalink => by_permalink(reader, request, &plan, end)?,
                SearchMode::Text | SearchMode::Title => by_terms(reader, request, &plan, end)?,
            };
            let has_more = end < HITS_MAX && matches.hits.len() > end;
            let page = matches.hits.into_iter().take(end).skip(request.offset);
            let mut hits = Vec::new();
            let mut cards = Cards::new(reader);
            for (what, hit) in page {
                hits.extend(shown(reader, &plan, &mut cards, (what, hit))?);
            }
            Ok(SearchPage { hits, total: matches.total, has_more })
        })
    }
}

/// What was found in all that is searched.
#[derive(Default)]
struct Matches {
    hits: Vec<(What, IndexHit)>,
    total: Total,
}

impl Matches {
    fn add(&mut self, what: What, found: IndexMatches) {
        self.total.count += found.total.count;
        self.total.is_lower_bound |= found.total.is_lower_bound;
        self.hits.extend(found.hits.into_iter().map(|hit| (what, hit)));
    }

    fn append(&mut self, mut found: Self) {
        self.total.count += found.total.count;
        self.total.is_lower_bound |= found.total.is_lower_bound;
        self.hits.append(&mut found.hits);
    }

    /// Puts what changed last first, as each query without words does by itself.
    fn sort_by_change(&mut self, reader: &dyn Reader) -> Result<(), Error> {
        let mut dated = Vec::with_capacity(self.hits.len());
        for (what, hit) in self.hits.drain(..) {
            let changed_at = reader.note(hit.store, hit.memory)?.map(|row| row.updated_at);
            dated.push((changed_at, (what, hit)));
        }
        dated.sort_by_key(|(changed_at, _)| Reverse(*changed_at));
        self.hits = dated.into_iter().map(|(_, hit)| hit).collect();
        Ok(())
    }

    fn sort(&mut self) {
        self.hits.sort_by(|(_, left), (_, right)| right.score.total_cmp(&left.score));
    }
}

fn by_terms(
    reader: &dyn Reader,
    request: &SearchRequest,
    plan: &Plan,
    end: usize,
) -> Result<Matches, Error> {
    // One more than wanted tells whether there is a next page.
    let limit = end.saturating_add(1);
    let mut strict = Matches::default();
    for what in whats(request) {
        let queries = plan.queries(request, what, limit);
        let mut found = Matches::default();
        for query in &queries {
            found.add(what, reader.search_index(query)?);
        }
        if queries.len() > 1 && queries.iter().all(|query| query.terms.phrases().is_empty()) {
            found.sort_by_change(reader)?;
        }
        strict.append(found);
    }
    strict.sort();
    strict.total.is_lower_bound |= plan.is_cut();
    if strict.total.count >= limit {
        // What has only some of the words was not counted.
        strict.total.is_lower_bound |= plan.can_settle_for_less();
        return Ok(strict);
    }
    let mut loose = Matches::default();
    for what in whats(request) {
        let Some(query) = plan.loose_query(reader, request, what, limit)? else { continue };
        loose.add(what, reader.search_index(&query)?);
    }
    loose.sort();
    let lowest = strict.hits.last().map_or(f64::INFINITY, |(_, hit)| hit.score);
    let is_known = |what: What, hit: &IndexHit| {
        strict.hits.iter().any(|(known_what, known)| {
            *known_what == what && known.memory == hit.memory && known.position == hit.position
        })
    };
    let mut further: Vec<_> =
        loose.hits.into_iter().filter(|(what, hit)| !is_known(*what, hit)).collect();
    for (_, hit) in &mut further {
        hit.score = (hit.score * LOOSE_SCORE).min(lowest);
    }
    strict.hits.extend(further);
    strict.total.count = strict.hits.len().max(strict.total.count).max(loose.total.count);
    strict.total.is_lower_bound |= loose.total.is_lower_bound;
    Ok(strict)
}

/// How much a hit that lacks some of the words counts.
const LOOSE_SCORE: f64 = 0.5;

fn whats(request: &SearchRequest) -> Vec<What> {
    if request.what.is_empty() { vec![What::Memories] } else { request.what.clone() }
}

fn by_permalink(
    reader: &dyn Reader,
    request: &SearchRequest,
    plan: &Plan,
    end: usize,
) -> Result<Matches, Error> {
    let text = request.text.trim().trim_start_matches("memory://").to_lowercase();
    let pattern = if text.contains('*') { text } else { format!("*{text}*") };
    let glob = Glob::new(&pattern);
    let allowed = plan.allowed(reader, request)?;
    let mut matches = Matches::default();
    for &store in &request.stores {
        for NoteCard { path, permalink, memory, .. } in store_cards(reader, store)? {
            let is_allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(&memory));
            let names = [permalink.to_lowercase(), path.as_str().to_lowercase()];
            if !is_allowed || !names.iter().any(|name| glob.matches(name)) {
                continue;
            }
            matches.total.count += 1;
            // The shorter a name is, the more of it is what was asked for.
            let surplus = permalink.len().saturating_sub(pattern.len());
            let score = 1.0 / f64::from(u32::try_from(surplus + 1).unwrap_or(u32::MAX));
            let hit = IndexHit { store, memory, position: 0, score };
            matches.hits.push((What::Memories, hit));
        }
    }
    matches.sort();
    matches.hits.truncate(end.saturating_add(1));
    Ok(matches)
}

/// Returns a hit as it is shown; `None` if it is gone, which it cannot be in one snapshot.
fn shown(
    reader: &dyn Reader,
    plan: &Plan,
    cards: &mut Cards<'_>,
    (what, hit): (What, IndexHit),
) -> Result<Option<SearchHit>, Error> {
    let Some(row) = reader.note(hit.store, hit.memory)? else { return Ok(None) };
    let Some(version) = reader.version(hit.store, row.version, View::Full)? else {
        return Ok(None);
    };
    let text = version.content.as_ref().map_or("", |content| content.as_str());
    let note = match what {
        What::Memories => Note::parse_header(text),
        What::Observations | What::Relations => Note::parse(&row.path, text),
    };
    let phrases = plan.phrases();
    let (found, snippet) = match what {
        What::Memories => {
            let body = text.get(note.body.clone()).unwrap_or_default();
            (Found::Memory, snippet(body, &phrases))
        }
        What::Observations => {
            let Some(observation) = note.observations.get(hit.position) else { return Ok(None) };
            let mut texts = observation.written_times();
            texts.push(&observation.text);
            let shown = snippet(&texts.join(" "), &phrases);
            (Found::Observation(observation.clone()), shown)
        }
        What::Relations => {
            let Some(edge) = note.edges().nth(hit.position) else { return Ok(None) };
            let link = LinkRow {
                from: hit.memory,
                position: hit.position,
                kind: edge.kind.to_owned(),
                target: edge.target.clone(),
                context: edge.context.map(str::to_owned),
                line: edge.line,
            };
            let shown = snippet(&link_text(&link), &phrases);
            (Found::Relation(link), shown)
        }
    };
    Ok(Some(SearchHit {
        note: cards.card(row)?,
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
    let Target { name, .. } = &link.target;
    let context = link.context.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
    format!("{} [[{name}]]{context}", link.kind)
}

/// Returns a query for a list of alternatives; every document fits if there is none.
fn one_of(alternatives: impl Iterator<Item = TermQuery>) -> TermQuery {
    let alternatives: Vec<_> = alternatives.collect();
    if alternatives.is_empty() { TermQuery::any() } else { TermQuery::Or(alternatives) }
}

fn index_query(request: &SearchRequest, what: What, terms: TermQuery, limit: usize) -> IndexQuery {
    IndexQuery {
        stores: request.stores.clone(),
        what,
        terms,
        fields: request.filter.fields.clone(),
        paths: Vec::new(),
        changed_after: request.filter.changed_after,
        limit,
    }
}
