//! What previous imports of the same source have written.

use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_core::backend::{Archived, Order, SessionQuery, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Actor, MemoryId, MemoryPath, SessionId, StoreId, VersionId, View};

use crate::context::Data;
use crate::failure::Failure;

use super::is_same_source;

/// How many versions are listed per page.
const PAGE: usize = 1000;

/// The paths and memories of previous imports, as far as the store's history reaches.
#[derive(Default)]
pub(super) struct PreviousImports {
    places: HashMap<String, Written>,
    /// The same paths with their characters reversed, so that a range finds those with a common
    /// ending.
    endings: BTreeMap<String, String>,
}

/// The newest version that was imported to a path.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub(super) memory: MemoryId,
    pub(super) version: VersionId,
    /// How many paths were imported since.
    age: usize,
}

impl PreviousImports {
    /// Collects the versions of sessions with these details.
    pub(super) fn find(data: &Data, store: StoreId, details: &str) -> Result<Self, Failure> {
        let query = SessionQuery {
            workspace: data.workspace,
            store: Some(store),
            archived: Archived::Show,
            created: Span::default(),
            viewer: None,
            order: Order::default(),
            after: None,
            limit: usize::MAX,
        };
        let sessions = data.engine.sessions(&query)?.items.into_iter();
        let sessions: HashSet<SessionId> = sessions
            .filter(|session| is_same_source(&session.details, details))
            .map(|session| session.id)
            .collect();
        let mut previous = Self::default();
        let mut before = None;
        while !sessions.is_empty() {
            let filter = VersionFilter::default();
            let query = VersionQuery { filter, before, limit: PAGE, view: View::Basic };
            let page = data.engine.versions(store, &query)?;
            for version in page.items {
                let is_ours = matches!(version.actor, Actor::Session(id) if sessions.contains(&id));
                if let Some(path) = version.path.filter(|_| is_ours) {
                    previous.add_older(path.as_str(), version.memory, version.id);
                }
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(previous)
    }

    /// Adds a version that is older than all added before, which take precedence.
    fn add_older(&mut self, path: &str, memory: MemoryId, version: VersionId) {
        let age = self.places.len();
        self.places.entry(path.to_owned()).or_insert(Written { memory, version, age });
        self.endings.insert(reversed(path), path.to_owned());
    }

    /// Returns whether nothing was imported before.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns what was imported to a path.
    pub(super) fn at(&self, path: &MemoryPath) -> Option<Written> {
        self.places.get(path.as_str()).copied()
    }

    /// Returns what was imported to names in a directory with this ending, and its path; the newest
    /// first.
    pub(super) fn ending(&self, directory: &str, ending: &str) -> Vec<(Written, &str)> {
        let start = reversed(ending);
        let from_start = self.endings.range(start.clone()..);
        let ending_so = from_start.take_while(|(name, _)| name.starts_with(&start));
        let inside = ending_so.filter(|(_, path)| {
            let name = path.strip_prefix(directory).and_then(|name| name.strip_suffix(ending));
            name.is_some_and(|name| !name.contains('/'))
        });
        let mut found: Vec<_> =
            inside.filter_map(|(_, path)| Some((*self.places.get(path)?, path.as_str()))).collect();
        found.sort_by_key(|(written, _)| written.age);
        found
    }
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}
