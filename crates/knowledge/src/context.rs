//! Context: a memory with its observations and the memories linked with it, several hops away.

use std::collections::{HashSet, VecDeque};

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{MemoryId, Timestamp, View};
use quipu_notes::{Glob, Identifier, Note, Observation, alias_key};

use crate::Knowledge;
use crate::card::{Card, LinkRow};
use crate::graph::{links_towards, meant};
use crate::lookup::Lookup;
use crate::names::{Cards, Meaning, NoteCard, Scope, Wanted, called, matching, meaning, placed};

/// The maximum number of hops from a memory.
pub const DEPTH_MAX: usize = 5;

/// The maximum number of related memories.
const RELATED_MAX: usize = 200;
/// The maximum number of links of a memory to follow in each direction.
const LINKS_MAX: usize = 100;
/// The maximum number of memories that a pattern may match.
const PRIMARIES_MAX: usize = 1000;

/// A request for context.
#[derive(Clone, Debug)]
pub struct ContextRequest {
    /// The number of hops, at most [`DEPTH_MAX`]; 0 returns the memories alone.
    pub depth: usize,
    /// Only along relations of these kinds, if any are given.
    pub kinds: Vec<String>,
    /// Only to memories that changed after this time.
    pub changed_after: Option<Timestamp>,
    /// The maximum number of related memories per memory.
    pub related_max: usize,
    /// How many memories to skip, if the identifier matches several.
    pub offset: usize,
    /// The maximum number of memories, if the identifier matches several.
    pub limit: usize,
}

impl Default for ContextRequest {
    fn default() -> Self {
        let (kinds, changed_after) = (Vec::new(), None);
        Self { depth: 1, kinds, changed_after, related_max: 10, offset: 0, limit: 10 }
    }
}

/// A page of context.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The requested memories, by path.
    pub items: Vec<ContextItem>,
    /// The number of memories that the identifier matches, at most 1,000.
    pub total_count: usize,
    /// Whether there is a next page.
    pub has_more: bool,
}

/// A memory with its context.
#[derive(Clone, Debug)]
pub struct ContextItem {
    /// The memory.
    pub note: NoteCard,
    /// Its observations.
    pub observations: Vec<Observation>,
    /// The related memories, nearest first.
    pub related: Vec<Related>,
    /// Whether there are more related memories than were returned.
    pub is_cut: bool,
}

/// A memory that was reached by a link.
#[derive(Clone, Debug)]
pub struct Related {
    /// The memory; `None` if the link does not resolve.
    pub note: Option<NoteCard>,
    /// The memory that it was reached from.
    pub via: MemoryId,
    /// The link that was followed.
    pub link: LinkRow,
    /// The direction in which the link was followed.
    pub direction: Direction,
    /// The number of hops.
    pub depth: usize,
}

/// The direction in which a link is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the memory that contains the link to its target.
    Outgoing,
    /// From the target to the memory that contains the link.
    Incoming,
}

impl Knowledge {
    /// Returns memories with their observations and related memories.
    ///
    /// The identifier is anything that [`resolve`](Self::resolve) accepts, a directory, or a
    /// pattern with `*`. A name that several memories share matches all of them.
    pub fn context(
        &self,
        scope: &Scope,
        identifier: &str,
        request: &ContextRequest,
    ) -> Result<Context, Error> {
        let context = self.lookup(&scope.stores, |lookup| {
            existing_store(lookup.reader, scope.home)?;
            let primaries = primaries(lookup, scope, identifier)?;
            let end = request.offset.saturating_add(request.limit);
            let mut context = Context {
                total_count: primaries.len(),
                has_more: primaries.len() > end,
                items: Vec::new(),
            };
            let mut cards = Cards::new(lookup);
            for row in primaries.into_iter().take(end).skip(request.offset) {
                context.items.push(Walk::new(lookup, scope, request).from(row, &mut cards)?);
            }
            Ok(context)
        })?;
        if context.total_count == 0 {
            return Err(self.nothing_called(scope, identifier)?);
        }
        for item in &context.items {
            self.engine.note_reading(item.note.store, item.note.memory);
        }
        Ok(context)
    }
}

fn primaries(lookup: &Lookup<'_>, scope: &Scope, identifier: &str) -> Result<Vec<Card>, Error> {
    for reading in Identifier::parse(identifier).readings() {
        let found = primaries_of(lookup, scope, &reading)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn primaries_of(
    lookup: &Lookup<'_>,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Vec<Card>, Error> {
    let Some((store, reference)) = placed(lookup.reader, scope, identifier)? else {
        return Ok(Vec::new());
    };
    let found = match &reference {
        Wanted::Glob(glob) => called(lookup, store, glob.as_str(), None)?,
        Wanted::Id(_) | Wanted::Name(_) => meaning(lookup, scope, identifier)?,
    };
    match found {
        Meaning::One(row) => Ok(vec![*row]),
        Meaning::Several(mut rows) => {
            rows.sort_by(|left, right| left.path.cmp(&right.path));
            Ok(rows)
        }
        Meaning::Nothing => match reference {
            Wanted::Name(name) => {
                let below = Glob::new(&format!("{}/*", name.trim_matches('/')));
                matching(lookup, store, &below, PRIMARIES_MAX)
            }
            Wanted::Glob(glob) => matching(lookup, store, &glob, PRIMARIES_MAX),
            Wanted::Id(_) => Ok(Vec::new()),
        },
    }
}

/// A breadth-first traversal along links that visits each memory once. Every distinct link of the
/// starting memory is reported, even if several lead to the same memory.
struct Walk<'a> {
    lookup: &'a Lookup<'a>,
    scope: &'a Scope,
    request: &'a ContextRequest,
    seen: HashSet<MemoryId>,
    reported: HashSet<LinkKey>,
    related: Vec<Related>,
    is_cut: bool,
}

/// A link that can be followed from a memory.
struct Step {
    to: Option<Card>,
    link: LinkRow,
    direction: Direction,
}

/// Identifies equivalent links, of which only one is reported.
#[derive(PartialEq, Eq, Hash)]
struct LinkKey {
    at: MemoryId,
    /// The other memory, or the alias key of a target that does not exist.
    other: Result<MemoryId, String>,
    kind: String,
    direction: Direction,
}

impl<'a> Walk<'a> {
    fn new(lookup: &'a Lookup<'a>, scope: &'a Scope, request: &'a ContextRequest) -> Self {
        let (seen, reported, related) = (HashSet::new(), HashSet::new(), Vec::new());
        Self { lookup, scope, request, seen, reported, related, is_cut: false }
    }

    fn from(mut self, row: Card, cards: &mut Cards<'_>) -> Result<ContextItem, Error> {
        let observations = self.observations(&row)?;
        self.seen.insert(row.memory);
        let mut ahead = VecDeque::from([(row.clone(), 0)]);
        while let Some((at, depth)) = ahead.pop_front() {
            if depth >= self.request.depth.min(DEPTH_MAX) {
                break;
            }
            for step in self.steps(&at)? {
                if !self.is_unreported(&at, &step, depth + 1) {
                    continue;
                }
                if self.related.len() >= self.request.related_max.min(RELATED_MAX) {
                    self.is_cut = true;
                    ahead.clear();
                    break;
                }
                let next = self.take(&at, step, depth + 1, cards)?;
                ahead.extend(next.map(|next| (next, depth + 1)));
            }
        }
        let note = cards.card(row)?;
        Ok(ContextItem { note, observations, related: self.related, is_cut: self.is_cut })
    }

    /// Returns whether a step leads to something that was not reported yet, and records it.
    fn is_unreported(&mut self, at: &Card, step: &Step, depth: usize) -> bool {
        if let Some(to) = &step.to {
            let is_old = self.request.changed_after.is_some_and(|after| to.updated_at <= after);
            let is_known = self.seen.contains(&to.memory);
            if is_old || to.memory == at.memory || (is_known && depth > 1) {
                return false;
            }
        }
        let missing = || alias_key(&step.link.target.name);
        self.reported.insert(LinkKey {
            at: at.memory,
            other: step.to.as_ref().map(|to| to.memory).ok_or_else(missing),
            kind: step.link.kind.clone(),
            direction: step.direction,
        })
    }

    /// Adds the end of a step, and returns it if it is a memory that was not visited before.
    fn take(
        &mut self,
        at: &Card,
        step: Step,
        depth: usize,
        cards: &mut Cards<'_>,
    ) -> Result<Option<Card>, Error> {
        let Step { to, link, direction } = step;
        let note = to.clone().map(|row| cards.card(row)).transpose()?;
        self.related.push(Related { note, via: at.memory, link, direction, depth });
        Ok(to.filter(|to| self.seen.insert(to.memory)))
    }

    /// Returns the links from and to a memory, and last those that do not resolve.
    fn steps(&mut self, at: &Card) -> Result<Vec<Step>, Error> {
        let kinds = &self.request.kinds;
        let is_wanted = |link: &LinkRow| kinds.is_empty() || kinds.contains(&link.kind);
        let links = self.lookup.links_from(at.store, at.memory, LINKS_MAX + 1)?;
        self.is_cut |= links.len() > LINKS_MAX;
        let mut steps = Vec::new();
        for link in links.into_iter().take(LINKS_MAX).filter(is_wanted) {
            let to = meant(self.lookup, self.scope, at, &link.target)?;
            steps.push(Step { to, link, direction: Direction::Outgoing });
        }
        let towards = links_towards(self.lookup, self.scope, at, LINKS_MAX + 1)?;
        self.is_cut |= towards.len() > LINKS_MAX;
        for (from, link) in towards.into_iter().take(LINKS_MAX).filter(|(_, it)| is_wanted(it)) {
            steps.push(Step { to: Some(from), link, direction: Direction::Incoming });
        }
        steps.sort_by_key(|step| step.to.is_none());
        Ok(steps)
    }

    fn observations(&self, row: &Card) -> Result<Vec<Observation>, Error> {
        let version = self.lookup.reader.version(row.store, row.version, View::Full)?;
        let content = version.and_then(|version| version.content);
        let text = content.as_ref().map_or("", |content| content.as_str());
        Ok(Note::parse(row.path.as_str(), text).observations)
    }
}
