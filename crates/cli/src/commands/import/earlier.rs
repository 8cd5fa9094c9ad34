//! What earlier imports of the same source have written.

use std::collections::{HashMap, HashSet};

use quipu_core::backend::{Archived, Order, SessionQuery, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Actor, Directory, MemoryId, MemoryPath, SessionId, StoreId, View};

use crate::context::Data;
use crate::failure::Failure;

/// How many versions are listed at once.
const PAGE: usize = 1000;

/// Where earlier imports have put what, as far as the history of the store is kept.
#[derive(Default)]
pub(super) struct Earlier {
    places: HashMap<String, MemoryId>,
}

impl Earlier {
    /// Looks for the work of sessions with these details.
    pub(super) fn find(data: &Data, store: StoreId, details: &str) -> Result<Self, Failure> {
        let query = SessionQuery {
            workspace: data.workspace,
            store: Some(store),
            archived: Archived::Show,
            created: Span::default(),
            order: Order::default(),
            after: None,
            limit: usize::MAX,
        };
        let sessions = data.engine.sessions(&query)?.items.into_iter();
        let sessions: HashSet<SessionId> = sessions
            .filter(|session| session.details == details)
            .map(|session| session.id)
            .collect();
        let mut earlier = Self::default();
        let mut before = None;
        while !sessions.is_empty() {
            let filter = VersionFilter::default();
            let query = VersionQuery { filter, before, limit: PAGE, view: View::Basic };
            let page = data.engine.versions(store, &query)?;
            for version in page.items {
                let is_ours = matches!(version.actor, Actor::Session(id) if sessions.contains(&id));
                if let Some(path) = version.path.filter(|_| is_ours) {
                    // The newest come first.
                    earlier.places.entry(path.to_string()).or_insert(version.memory);
                }
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(earlier)
    }

    /// Returns the memory that was imported to a path.
    pub(super) fn at(&self, path: &MemoryPath) -> Option<MemoryId> {
        self.places.get(path.as_str()).copied()
    }

    /// Returns the memory that was imported to a name of a directory that ends so.
    pub(super) fn ending(&self, directory: &Directory, ending: &str) -> Option<MemoryId> {
        let fits = |path: &str| {
            let name = path.strip_prefix(directory.as_str());
            name.is_some_and(|name| !name.contains('/') && name.ends_with(ending))
        };
        let mut found: Vec<_> = self.places.iter().filter(|(path, _)| fits(path)).collect();
        found.sort();
        found.first().map(|(_, memory)| **memory)
    }
}
