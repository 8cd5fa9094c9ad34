//! The part of a store's graph that is drawn.

use std::collections::{HashMap, HashSet};

use quipu_core::model::{MemoryId, Store, StoreId};
use quipu_knowledge::{ContextRequest, Direction, NoteCard, Scope};
use quipu_notes::alias_key;

use crate::reply::Trouble;
use crate::text;
use crate::visit::Visit;

/// How many nodes are drawn.
pub(super) const NODES_MAX: usize = 300;
/// How many links to memories that do not exist are drawn.
const MISSING_MAX: usize = 60;
/// How many neighbors of a memory are drawn. Finding 100 takes about 15 ms.
const RELATED_MAX: usize = 100;
/// How many links of each drawn memory are looked at.
const LINKS_MAX: usize = 100;

/// A node of the drawn graph.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A memory.
    Note(NoteCard),
    /// A name that links lead to, and that no memory has.
    Missing(String),
}

/// The part of a graph that is drawn.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// The nodes; the first is the focus, if there is one.
    pub(super) nodes: Vec<Node>,
    /// How many links away from the focus each node is.
    pub(super) depths: Vec<usize>,
    /// The links: indexes of nodes, and the relation.
    pub(super) links: Vec<(usize, usize, String)>,
    /// What is not drawn, as sentences.
    pub(super) left_out: Vec<String>,
    notes: HashMap<MemoryId, usize>,
    missing: HashMap<String, usize>,
    known: HashSet<(usize, usize, String)>,
}

impl Network {
    /// Returns the memories of a store with the most links.
    pub(super) fn of_store(visit: &Visit<'_>, scope: &Scope) -> Result<Self, Trouble> {
        let hubs = visit.engine.hubs(scope, NODES_MAX - MISSING_MAX)?;
        let notes_count = visit.engine.usage(scope.home)?.memories_count;
        let mut network = Self::default();
        for (from, to, kind) in hubs.links {
            // Only the ends of links: one whose links all lead to what is not drawn would be a dot
            // without a meaning.
            if let (Some(one), Some(other)) = (hubs.notes.get(from), hubs.notes.get(to)) {
                let (from, to) = (network.note(one, 0), network.note(other, 0));
                network.link(from, to, kind);
            }
        }
        let drawn_count = network.nodes.len();
        if drawn_count < hubs.linked_count {
            network.left_out.push(format!(
                "These are {drawn_count} of the memories with the most links; {} are not drawn.",
                text::count((hubs.linked_count - drawn_count) as u64, "other", "others")
            ));
        }
        let alone_count = notes_count.saturating_sub(hubs.linked_count as u64);
        if alone_count > 0 {
            network.left_out.push(format!(
                "{} without links within the store are not drawn.",
                text::count(alone_count, "memory", "memories")
            ));
        }
        if hubs.broken.len() > MISSING_MAX {
            let sentence = "Not all links to memories that do not exist are drawn.";
            network.left_out.push(sentence.to_owned());
        }
        for (from, link) in hubs.broken.into_iter().take(MISSING_MAX) {
            let from = hubs.notes.get(from).and_then(|note| network.notes.get(&note.memory));
            let Some(&from) = from else { continue };
            let to = network.missing(&link.target.name, 1);
            network.link(from, to, link.kind);
        }
        Ok(network)
    }

    /// Returns the memories around one.
    pub(super) fn around(
        visit: &Visit<'_>,
        scope: &Scope,
        focus: MemoryId,
        depth: usize,
    ) -> Result<Self, Trouble> {
        let request =
            ContextRequest { depth, related_max: RELATED_MAX, ..ContextRequest::default() };
        let context = visit.engine.context(scope, &focus.to_string(), &request)?;
        let mut network = Self::default();
        for item in context.items {
            network.note(&item.note, 0);
            for related in item.related {
                let Some(&via) = network.notes.get(&related.via) else { continue };
                let other = match &related.note {
                    Some(note) => network.note(note, related.depth),
                    None => network.missing(&related.link.target.name, related.depth),
                };
                match related.direction {
                    Direction::Outgoing => network.link(via, other, related.link.kind),
                    Direction::Incoming => network.link(other, via, related.link.kind),
                }
            }
            if item.is_cut {
                network.left_out.push(format!(
                    "There are more memories around this one; the nearest {} are drawn.",
                    network.nodes.len()
                ));
            }
        }
        network.add_links_between(visit, scope)?;
        Ok(network)
    }

    /// Adds the links among the memories of the home store that the walk did not need.
    fn add_links_between(&mut self, visit: &Visit<'_>, scope: &Scope) -> Result<(), Trouble> {
        let home: Vec<(usize, MemoryId)> =
            self.nodes.iter().enumerate().filter_map(in_store(scope.home)).collect();
        for (from, memory) in home {
            for link in visit.engine.links(scope, memory, LINKS_MAX)? {
                let to = link.to.and_then(|to| self.notes.get(&to.memory).copied());
                if let Some(to) = to {
                    self.link(from, to, link.link.kind);
                }
            }
        }
        Ok(())
    }

    /// Returns how many links a node has.
    pub(super) fn degree(&self, node: usize) -> usize {
        self.links.iter().filter(|(from, to, _)| *from == node || *to == node).count()
    }

    fn note(&mut self, note: &NoteCard, depth: usize) -> usize {
        if let Some(&place) = self.notes.get(&note.memory) {
            return place;
        }
        let place = self.nodes.len();
        self.nodes.push(Node::Note(note.clone()));
        self.depths.push(depth);
        self.notes.insert(note.memory, place);
        place
    }

    fn missing(&mut self, name: &str, depth: usize) -> usize {
        let key = alias_key(name);
        if let Some(&place) = self.missing.get(&key) {
            return place;
        }
        let place = self.nodes.len();
        self.nodes.push(Node::Missing(name.to_owned()));
        self.depths.push(depth);
        self.missing.insert(key, place);
        place
    }

    /// Adds a link once, and no link from a memory to itself.
    fn link(&mut self, from: usize, to: usize, kind: String) {
        if from != to && self.known.insert((from, to, kind.clone())) {
            self.links.push((from, to, kind));
        }
    }
}

fn in_store(home: StoreId) -> impl Fn((usize, &Node)) -> Option<(usize, MemoryId)> {
    move |(place, node)| match node {
        Node::Note(note) if note.store == home => Some((place, note.memory)),
        Node::Note(_) | Node::Missing(_) => None,
    }
}

/// Returns where links of a store may lead. With very many stores it is the store alone: each further
/// one has an index that would have to be opened.
pub(super) fn scope(home: &Store, readable: &[Store]) -> Scope {
    const STORES_MAX: usize = 100;
    if readable.len() > STORES_MAX {
        return Scope::only(home.id);
    }
    Scope::new(home.id, readable.iter().map(|store| store.id))
}
