//! The graph of links: what a memory points to, what points to it, and what is missing.
//!
//! What a link means is worked out when it is asked for, so a link to something that does not
//! exist yet means it as soon as it does, and nothing again when it goes.

use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::backend::Reader;
use crate::index::{LinkQuery, LinkRow, NoteRow};
use crate::model::{Directory, MemoryId, StoreId};
use crate::note::{Identifier, Reference, Target};

use super::naming::{Cards, Meaning, called, each_note, keys_of, placed};
use super::{Engine, NoteCard, Scope, existing_store};

/// A link between two memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteLink {
    /// The memory that it stands in.
    pub from: NoteCard,
    /// The link.
    pub link: LinkRow,
    /// The memory that it means; `None` if there is no such memory.
    pub to: Option<NoteCard>,
}

/// Memories that no link leads to or from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// The first of them, by path.
    pub notes: Vec<NoteCard>,
    /// How many there are in all.
    pub total_count: usize,
}

/// All memories of a store and the links between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The memories, by path.
    pub notes: Vec<NoteCard>,
    /// The links: the places of both memories in `notes`, and the kind.
    pub links: Vec<(usize, usize, String)>,
    /// Whether there were more memories than asked for.
    pub is_cut: bool,
}

/// So many links that may mean a memory are looked at.
const BACKLINKS_MAX: usize = 10_000;

impl Engine {
    /// Returns the links of a memory of the scope's home, in their order.
    pub fn links(
        &self,
        scope: &Scope,
        memory: MemoryId,
        limit: usize,
    ) -> Result<Vec<NoteLink>, Error> {
        self.read_indexed(|reader| {
            let from = existing_note(reader, scope.home, memory)?;
            let mut cards = Cards::new(reader);
            let from_card = cards.card(from.clone())?;
            let mut links = Vec::new();
            for link in reader.links(scope.home, &LinkQuery::From(memory), limit)? {
                let to = meant(reader, scope, &from, &link.target)?;
                let to = to.map(|row| cards.card(row)).transpose()?;
                links.push(NoteLink { from: from_card.clone(), link, to });
            }
            Ok(links)
        })
    }

    /// Returns the links of all memories in scope that mean a memory of its home, by memory.
    pub fn backlinks(
        &self,
        scope: &Scope,
        memory: MemoryId,
        limit: usize,
    ) -> Result<Vec<NoteLink>, Error> {
        self.read_indexed(|reader| {
            let to = existing_note(reader, scope.home, memory)?;
            let mut cards = Cards::new(reader);
            let to_card = cards.card(to.clone())?;
            let mut links = Vec::new();
            for (from, link) in links_towards(reader, scope, &to, limit)? {
                let from = cards.card(from)?;
                links.push(NoteLink { from, link, to: Some(to_card.clone()) });
            }
            Ok(links)
        })
    }

    /// Returns the links of the scope's home that mean no memory, by path and place; attachments
    /// are left out.
    pub fn unresolved(&self, scope: &Scope, limit: usize) -> Result<Vec<NoteLink>, Error> {
        self.read_indexed(|reader| {
            existing_store(reader, scope.home)?;
            let mut links = Vec::new();
            let mut cards = Cards::new(reader);
            each_link(reader, scope, |from, link, to| {
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

    /// Returns the memories of the scope's home that no link leads to or from.
    pub fn orphans(&self, scope: &Scope, limit: usize) -> Result<Orphans, Error> {
        self.read_indexed(|reader| {
            existing_store(reader, scope.home)?;
            let mut linked = HashSet::new();
            each_link(reader, scope, |from, _, to| {
                if let Some(to) = to.filter(|to| to.memory != from.memory) {
                    linked.extend([from.memory, to.memory]);
                }
                Ok(true)
            })?;
            let mut alone = Vec::new();
            each_note(reader, scope.home, |row| {
                if !linked.contains(&row.memory) {
                    alone.push(row);
                }
                true
            })?;
            let total_count = alone.len();
            let mut cards = Cards::new(reader);
            let notes = alone.into_iter().take(limit).map(|row| cards.card(row));
            Ok(Orphans { notes: notes.collect::<Result<_, _>>()?, total_count })
        })
    }

    /// Returns the first memories of a store, by path, and the links between them.
    pub fn graph(&self, store: StoreId, limit: usize) -> Result<Graph, Error> {
        self.read_indexed(|reader| {
            existing_store(reader, store)?;
            let mut graph = Graph::default();
            let mut rows = Vec::new();
            each_note(reader, store, |row| {
                graph.is_cut = rows.len() >= limit;
                if !graph.is_cut {
                    rows.push(row);
                }
                !graph.is_cut
            })?;
            let places: HashMap<MemoryId, usize> =
                rows.iter().enumerate().map(|(place, row)| (row.memory, place)).collect();
            let mut cards = Cards::new(reader);
            for row in rows {
                graph.notes.push(cards.card(row)?);
            }
            each_link(reader, &Scope::only(store), |from, link, to| {
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

fn existing_note(reader: &dyn Reader, store: StoreId, memory: MemoryId) -> Result<NoteRow, Error> {
    existing_store(reader, store)?;
    reader.note(store, memory)?.ok_or_else(|| {
        Error::not_found(format!("no memory of the store has the id `{memory}`"))
            .with_hint("it may have been deleted; list the versions of this id to see")
    })
}

/// Returns the memory that the target of a link means, seen from the memory that it stands in.
pub(super) fn meant(
    reader: &dyn Reader,
    scope: &Scope,
    from: &NoteRow,
    target: &Target,
) -> Result<Option<NoteRow>, Error> {
    let here = Scope { home: from.store, stores: scope.stores.clone() };
    for reading in Identifier::of(target).readings() {
        let row = meant_by_reading(reader, &here, from, &reading)?;
        if row.is_some() {
            return Ok(row);
        }
    }
    Ok(None)
}

fn meant_by_reading(
    reader: &dyn Reader,
    scope: &Scope,
    from: &NoteRow,
    identifier: &Identifier,
) -> Result<Option<NoteRow>, Error> {
    let Some((store, reference)) = placed(reader, scope, identifier)? else {
        return Ok(None);
    };
    let root = Directory::root();
    let parent = from.path.parent();
    let seen_from = if store == from.store { &parent } else { &root };
    let meaning = match reference {
        Reference::Id(id) => return reader.note(store, id),
        Reference::Glob(glob) => called(reader, store, glob.as_str(), Some(seen_from))?,
        Reference::Name(name) => called(reader, store, &name, Some(seen_from))?,
    };
    Ok(match meaning {
        Meaning::One(row) => Some(*row),
        // A name that several have is nobody's.
        Meaning::Nothing | Meaning::Several(_) => None,
    })
}

/// Returns links of all memories in scope that mean a memory, with the memories they stand in.
pub(super) fn links_towards(
    reader: &dyn Reader,
    scope: &Scope,
    to: &NoteRow,
    limit: usize,
) -> Result<Vec<(NoteRow, LinkRow)>, Error> {
    let query = LinkQuery::Towards(keys_of(reader, to)?);
    let mut found = Vec::new();
    for &store in &scope.stores {
        for link in reader.links(store, &query, BACKLINKS_MAX)? {
            if found.len() >= limit {
                return Ok(found);
            }
            let Some(from) = reader.note(store, link.from)? else { continue };
            let is_meant = meant(reader, scope, &from, &link.target)?
                .is_some_and(|row| row.memory == to.memory);
            if is_meant {
                found.push((from, link));
            }
        }
    }
    Ok(found)
}

/// Calls `work` with each link of the scope's home and what it means, until it returns false.
fn each_link(
    reader: &dyn Reader,
    scope: &Scope,
    mut work: impl FnMut(&NoteRow, LinkRow, Option<&NoteRow>) -> Result<bool, Error>,
) -> Result<(), Error> {
    // Many links mean the same, seen from the same folder.
    let mut known: HashMap<(Directory, Target), Option<NoteRow>> = HashMap::new();
    let mut failure = None;
    let mut visit = |from: &NoteRow| -> Result<bool, Error> {
        for link in reader.links(scope.home, &LinkQuery::From(from.memory), usize::MAX)? {
            let key = (from.path.parent(), Target { alias: None, ..link.target.clone() });
            if !known.contains_key(&key) {
                let row = meant(reader, scope, from, &link.target)?;
                known.insert(key.clone(), row);
            }
            if !work(from, link, known.get(&key).and_then(Option::as_ref))? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    each_note(reader, scope.home, |from| match visit(&from) {
        Ok(goes_on) => goes_on,
        Err(error) => {
            failure = Some(error);
            false
        }
    })?;
    failure.map_or(Ok(()), Err)
}
