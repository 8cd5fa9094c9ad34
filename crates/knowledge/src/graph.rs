//! The graph of links: outgoing links, backlinks, and broken ones.
//!
//! Links are resolved when they are read, so a link to a memory that does not exist resolves as
//! soon as it is created, and is broken again when it is deleted.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use quipu_core::Error;
use quipu_core::engine::existing_store;
use quipu_core::model::{Directory, MemoryId, StoreId};
use quipu_notes::{Identifier, LinkTarget};

use crate::Knowledge;
use crate::card::{Card, LinkRow};
use crate::lookup::Lookup;
use crate::names::{Cards, Meaning, NoteCard, Scope, Wanted, called, keys_of, placed};

/// A link between two memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteLink {
    /// The memory that contains it.
    pub from: NoteCard,
    /// The link.
    pub link: LinkRow,
    /// The memory that it resolves to; `None` if it is broken.
    pub to: Option<NoteCard>,
}

/// Memories without incoming and outgoing links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// The first of them, by path.
    pub notes: Vec<NoteCard>,
    /// The total number.
    pub total_count: usize,
}

/// All memories of a store and the links between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The memories, by path.
    pub notes: Vec<NoteCard>,
    /// The links: the indexes of both memories in `notes`, and the kind.
    pub links: Vec<(usize, usize, String)>,
    /// Whether there were more memories than requested.
    pub is_cut: bool,
}

/// The memories of a store with the most links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hubs {
    /// These memories, the most linked first.
    pub notes: Vec<NoteCard>,
    /// The links between them: the indexes of both in `notes`, and the kind.
    pub links: Vec<(usize, usize, String)>,
    /// Their broken links: the index in `notes`, and the link.
    pub broken: Vec<(usize, LinkRow)>,
    /// How many memories of the store have links within it.
    pub linked_count: usize,
}

/// The maximum number of links to examine as possible backlinks of a memory.
const BACKLINKS_MAX: usize = 10_000;

impl Knowledge {
    /// Returns the links of a memory of the scope's home, in order.
    pub fn links(
        &self,
        scope: &Scope,
        memory: MemoryId,
        limit: usize,
    ) -> Result<Vec<NoteLink>, Error> {
        self.lookup(&scope.stores, |lookup| {
            let from = existing_note(lookup, scope.home, memory)?;
            let mut cards = Cards::new(lookup);
            let from_card = cards.card(from.clone())?;
            let mut links = Vec::new();
            for link in lookup.links_from(scope.home, memory, limit)? {
                let to = meant(lookup, scope, &from, &link.target)?;
                let to = to.map(|row| cards.card(row)).transpose()?;
                links.push(NoteLink { from: from_card.clone(), link, to });
            }
            Ok(links)
        })
    }

    /// Returns the links of all memories in scope that resolve to a memory of its home, by memory.
    pub fn backlinks(
        &self,
        scope: &Scope,
        memory: MemoryId,
        limit: usize,
    ) -> Result<Vec<NoteLink>, Error> {
        self.lookup(&scope.stores, |lookup| {
            let to = existing_note(lookup, scope.home, memory)?;
            let mut cards = Cards::new(lookup);
            let to_card = cards.card(to.clone())?;
            let mut links = Vec::new();
            for (from, link) in links_towards(lookup, scope, &to, limit)? {
                let from = cards.card(from)?;
                links.push(NoteLink { from, link, to: Some(to_card.clone()) });
            }
            Ok(links)
        })
    }

    /// Returns the broken links of the scope's home, by path and position, without attachments.
    pub fn unresolved(&self, scope: &Scope, limit: usize) -> Result<Vec<NoteLink>, Error> {
        self.lookup(&scope.stores, |lookup| {
            existing_store(lookup.reader, scope.home)?;
            let mut links = Vec::new();
            let mut cards = Cards::new(lookup);
            each_link(lookup, scope, |from, link, to| {
                // An image or a document was never meant to be a memory.
                if to.is_none() && !link.target.is_attachment() {
                    let from = cards.card(from.clone())?;
                    links.push(NoteLink { from, link, to: None });
                }
                Ok(links.len() < limit)
            })?;
            Ok(links)
        })
    }

    /// Returns the memories of the scope's home without incoming and outgoing links.
    pub fn orphans(&self, scope: &Scope, limit: usize) -> Result<Orphans, Error> {
        self.lookup(&scope.stores, |lookup| {
            existing_store(lookup.reader, scope.home)?;
            let mut linked = HashSet::new();
            // A link from another store is an incoming one too, as for `backlinks`.
            for &home in &scope.stores {
                let scope = Scope { home, stores: scope.stores.clone() };
                each_link(lookup, &scope, |from, _, to| {
                    let ends = to.filter(|to| to.memory != from.memory);
                    linked.extend(ends.into_iter().flat_map(|to| [from.memory, to.memory]));
                    Ok(true)
                })?;
            }
            let mut alone = lookup.notes(scope.home)?;
            alone.retain(|card| !linked.contains(&card.memory));
            let total_count = alone.len();
            let mut cards = Cards::new(lookup);
            let notes = alone.into_iter().take(limit).map(|row| cards.card(row));
            Ok(Orphans { notes: notes.collect::<Result<_, _>>()?, total_count })
        })
    }

    /// Returns the memories of the scope's home with the most links within it.
    pub fn hubs(&self, scope: &Scope, limit: usize) -> Result<Hubs, Error> {
        self.lookup(&scope.stores, |lookup| {
            existing_store(lookup.reader, scope.home)?;
            let mut degrees: HashMap<MemoryId, usize> = HashMap::new();
            let (mut links, mut broken) = (Vec::new(), Vec::new());
            each_link(lookup, scope, |from, link, to| {
                match to {
                    Some(to) if to.store == from.store && to.memory != from.memory => {
                        *degrees.entry(from.memory).or_default() += 1;
                        *degrees.entry(to.memory).or_default() += 1;
                        links.push((from.memory, to.memory, link.kind));
                    }
                    None if !link.target.is_attachment() => broken.push((from.memory, link)),
                    Some(_) | None => {}
                }
                Ok(true)
            })?;
            let linked_count = degrees.len();
            let mut chosen: Vec<_> = degrees.into_iter().collect();
            chosen.sort_unstable_by_key(|(memory, degree)| (Reverse(*degree), *memory));
            chosen.truncate(limit);
            let mut hubs = Hubs { linked_count, ..Hubs::default() };
            let mut places = HashMap::new();
            let mut cards = Cards::new(lookup);
            for (memory, _) in chosen {
                let row = lookup.note(scope.home, memory)?.ok_or_else(|| lookup.damaged())?;
                places.insert(memory, hubs.notes.len());
                hubs.notes.push(cards.card(row)?);
            }
            for (from, to, kind) in links {
                if let (Some(&from), Some(&to)) = (places.get(&from), places.get(&to)) {
                    hubs.links.push((from, to, kind));
                }
            }
            let broken = broken.into_iter();
            hubs.broken = broken.filter_map(|(it, link)| Some((*places.get(&it)?, link))).collect();
            Ok(hubs)
        })
    }

    /// Returns the first memories of a store, by path, and the links between them.
    pub fn graph(&self, store: StoreId, limit: usize) -> Result<Graph, Error> {
        self.lookup(&[store], |lookup| {
            existing_store(lookup.reader, store)?;
            let mut rows = lookup.notes(store)?;
            let mut graph = Graph { is_cut: rows.len() > limit, ..Graph::default() };
            rows.truncate(limit);
            let places: HashMap<MemoryId, usize> =
                rows.iter().enumerate().map(|(place, row)| (row.memory, place)).collect();
            let mut cards = Cards::new(lookup);
            for row in rows {
                graph.notes.push(cards.card(row)?);
            }
            each_link(lookup, &Scope::only(store), |from, link, to| {
                let ends = (places.get(&from.memory), to.and_then(|to| places.get(&to.memory)));
                if let (Some(&from), Some(&to)) = ends {
                    graph.links.push((from, to, link.kind));
                }
                Ok(true)
            })?;
            Ok(graph)
        })
    }
}

fn existing_note(lookup: &Lookup<'_>, store: StoreId, memory: MemoryId) -> Result<Card, Error> {
    existing_store(lookup.reader, store)?;
    lookup.note(store, memory)?.ok_or_else(|| {
        Error::not_found(format!("no memory of the store has the id `{memory}`"))
            .with_hint("it may have been deleted; list the versions of this id to see")
    })
}

/// Resolves the target of a link, seen from the memory that contains it.
pub(crate) fn meant(
    lookup: &Lookup<'_>,
    scope: &Scope,
    from: &Card,
    target: &LinkTarget,
) -> Result<Option<Card>, Error> {
    let here = Scope { home: from.store, stores: scope.stores.clone() };
    for reading in Identifier::from(target).readings() {
        let row = meant_by_reading(lookup, &here, from, &reading)?;
        if row.is_some() {
            return Ok(row);
        }
    }
    Ok(None)
}

fn meant_by_reading(
    lookup: &Lookup<'_>,
    scope: &Scope,
    from: &Card,
    identifier: &Identifier,
) -> Result<Option<Card>, Error> {
    let Some((store, reference)) = placed(lookup.reader, scope, identifier)? else {
        return Ok(None);
    };
    let root = Directory::root();
    let parent = from.path.parent();
    let seen_from = if store == from.store { &parent } else { &root };
    let meaning = match reference {
        Wanted::Id(id) => return lookup.note(store, id),
        Wanted::Glob(glob) => called(lookup, store, glob.as_str(), Some(seen_from))?,
        Wanted::Name(name) => called(lookup, store, &name, Some(seen_from))?,
    };
    Ok(match meaning {
        Meaning::One(row) => Some(*row),
        // An ambiguous name resolves to nothing.
        Meaning::Nothing | Meaning::Several(_) => None,
    })
}

/// Returns the links of all memories in scope that resolve to a memory, with the memories that
/// contain them.
pub(crate) fn links_towards(
    lookup: &Lookup<'_>,
    scope: &Scope,
    to: &Card,
    limit: usize,
) -> Result<Vec<(Card, LinkRow)>, Error> {
    let keys = keys_of(lookup, to)?;
    let mut found = Vec::new();
    for &store in &scope.stores {
        for link in lookup.links_towards(store, &keys, BACKLINKS_MAX)? {
            if found.len() >= limit {
                return Ok(found);
            }
            let Some(from) = lookup.note(store, link.from)? else { continue };
            let is_meant = meant(lookup, scope, &from, &link.target)?
                .is_some_and(|row| row.memory == to.memory);
            if is_meant {
                found.push((from, link));
            }
        }
    }
    Ok(found)
}

/// Calls `work` with each link of the scope's home and its target, until it returns `false`.
fn each_link(
    lookup: &Lookup<'_>,
    scope: &Scope,
    mut work: impl FnMut(&Card, LinkRow, Option<&Card>) -> Result<bool, Error>,
) -> Result<(), Error> {
    // Many links from the same folder have the same target.
    let mut known: HashMap<(Directory, LinkTarget), Option<Card>> = HashMap::new();
    for mut from in lookup.full_notes(scope.home)? {
        for link in std::mem::take(&mut from.links) {
            let key = (from.path.parent(), LinkTarget { alias: None, ..link.target.clone() });
            if !known.contains_key(&key) {
                let card = meant(lookup, scope, &from, &link.target)?;
                known.insert(key.clone(), card);
            }
            if !work(&from, link, known.get(&key).and_then(Option::as_ref))? {
                return Ok(());
            }
        }
    }
    Ok(())
}
