//! The part of a store's graph that is drawn.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use quipu_core::model::{MemoryId, Store, StoreId};
use quipu_knowledge::{ContextRequest, Direction, NoteCard, Scope};
use quipu_notes::alias_key;

use crate::reply::Trouble;
use crate::text;
use crate::visit::Visit;

/// How many nodes are drawn.
pub(super) const NODES_MAX: usize = 300;
/// How many memories of a store are looked at to choose those that are drawn: all that it may hold.
const NOTES_MAX: usize = 10_000;
/// How many links to memories that do not exist are drawn.
const MISSING_MAX: usize = 60;
/// How many such links are looked at.
const BROKEN_MAX: usize = 1_000;
/// How many neighbors of a memory are looked for; the engine returns at most 200.
const RELATED_MAX: usize = 200;
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
        let graph = visit.engine.graph(scope.home, NOTES_MAX)?;
        let mut degrees = vec![0_usize; graph.notes.len()];
        for (from, to, _) in graph.links.iter().filter(|(from, to, _)| from != to) {
            for end in [from, to] {
                if let Some(degree) = degrees.get_mut(*end) {
                    *degree += 1;
                }
            }
        }
        let linked_count = degrees.iter().filter(|degree| **degree > 0).count();
        let alone_count = graph.notes.len() - linked_count;
        let mut chosen: Vec<_> = graph.notes.iter().zip(&degrees).enumerate().collect();
        chosen.retain(|(_, (_, degree))| **degree > 0);
        // Notes come by path, and the sort is stable.
        chosen.sort_by_key(|(_, (_, degree))| Reverse(**degree));
        chosen.truncate(NODES_MAX - MISSING_MAX);
        let chosen: HashSet<usize> = chosen.into_iter().map(|(place, _)| place).collect();
        let mut network = Self::default();
        for (from, to, kind) in graph.links {
            // One whose links all lead to what is not drawn would be a dot without a meaning.
            if from == to || !chosen.contains(&from) || !chosen.contains(&to) {
                continue;
            }
            let (Some(one), Some(other)) = (graph.notes.get(from), graph.notes.get(to)) else {
                continue;
            };
            let (from, to) = (network.note(one, 0), network.note(other, 0));
            network.link(from, to, kind);
        }
        let (drawn, linked) = (network.nodes.len(), linked_count);
        if drawn < linked {
            network.left_out.push(format!(
                "These are {drawn} of the memories with the most links; {} are not drawn.",
                text::count((linked - drawn) as u64, "other", "others")
            ));
        }
        if alone_count > 0 {
            network.left_out.push(format!(
                "{} without links within the store are not drawn.",
                text::count(alone_count as u64, "memory", "memories")
            ));
        }
        if graph.is_cut {
            network.left_out.push("Only the first 10,000 memories were looked at.".to_owned());
        }
        network.add_missing(visit, scope)?;
        Ok(network)
    }

    fn add_missing(&mut self, visit: &Visit<'_>, scope: &Scope) -> Result<(), Trouble> {
        let mut broken = visit.engine.unresolved(scope, BROKEN_MAX)?;
        let is_cut = broken.len() == BROKEN_MAX;
        broken.retain(|link| self.notes.contains_key(&link.from.memory));
        if is_cut || broken.len() > MISSING_MAX {
            let sentence = "Not all links to memories that do not exist are drawn.";
            self.left_out.push(sentence.to_owned());
        }
        for link in broken.into_iter().take(MISSING_MAX) {
            let Some(&from) = self.notes.get(&link.from.memory) else { continue };
            let to = self.missing(&link.link.target.name, 1);
            self.link(from, to, link.link.kind);
        }
        Ok(())
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
