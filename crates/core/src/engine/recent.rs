//! Recent activity: what changed since.

use std::collections::HashSet;

use crate::Error;
use crate::backend::{Reader, Span, VersionFilter, VersionQuery};
use crate::model::{MemoryId, StoreId, Timestamp, Version, VersionId, View};

use super::{Engine, Page, existing_store};

/// Which changes to list.
#[derive(Clone, Debug)]
pub struct RecentRequest {
    /// The stores to look at.
    pub stores: Vec<StoreId>,
    /// Only changes from this moment on.
    pub since: Timestamp,
    /// Only memories of these types, if there are any.
    pub kinds: Vec<String>,
    /// Only changes before this one, to go on after a page.
    pub before: Option<VersionId>,
    /// How many changes at most.
    pub limit: usize,
}

/// The last change of a memory.
#[derive(Clone, Debug)]
pub struct RecentChange {
    /// The version that it made, without its text: who, when, where and what kind of change.
    pub version: Version,
    /// The memory's title, or the last one known; its path's last segment if there is none.
    pub title: String,
    /// The memory's type, if it still exists.
    pub kind: Option<String>,
    /// How many changes of the memory fall into the time, this one among them.
    pub changes_count: usize,
}

/// How many versions are read at once.
const PAGE: usize = 256;
/// How many versions of each store are looked at; older ones are not listed.
const VERSIONS_MAX: usize = 20_000;

impl Engine {
    /// Returns the last change of each memory that changed since a moment, the newest first;
    /// deleted memories too.
    pub fn recent(&self, request: &RecentRequest) -> Result<Page<RecentChange, VersionId>, Error> {
        self.read_indexed(|reader| {
            let mut changes = Vec::new();
            for &store in &request.stores {
                existing_store(reader, store)?;
                changes.extend(recent_of(reader, store, request)?);
            }
            changes.sort_by_key(|change| std::cmp::Reverse(change.version.created_at));
            Ok(Page::cut(changes, request.limit, |change| change.version.id))
        })
    }
}

/// Returns one change more than wanted, if there is one.
fn recent_of(
    reader: &dyn Reader,
    store: StoreId,
    request: &RecentRequest,
) -> Result<Vec<RecentChange>, Error> {
    let created = Span { first: request.since, ..Span::default() };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    let mut seen: HashSet<MemoryId> = HashSet::new();
    let mut changes: Vec<RecentChange> = Vec::new();
    let mut before = None;
    let mut versions_count = 0;
    while changes.len() <= request.limit && versions_count < VERSIONS_MAX {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view: View::Basic };
        let versions = reader.versions(store, &query)?;
        let Some(last) = versions.last() else { break };
        before = Some(last.id);
        versions_count += versions.len();
        for version in versions {
            if !seen.insert(version.memory) {
                let known =
                    changes.iter_mut().find(|change| change.version.memory == version.memory);
                if let Some(change) = known {
                    change.changes_count += 1;
                }
                continue;
            }
            // A memory belongs to the page that its newest change is on.
            if request.before.is_none_or(|before| version.id < before) {
                changes.extend(described(reader, version, request)?);
            }
        }
    }
    Ok(changes)
}

fn described(
    reader: &dyn Reader,
    version: Version,
    request: &RecentRequest,
) -> Result<Option<RecentChange>, Error> {
    let note = reader.note(version.store, version.memory)?;
    let kind = note.as_ref().map(|note| note.kind.clone());
    let is_wanted =
        request.kinds.is_empty() || kind.as_ref().is_some_and(|kind| request.kinds.contains(kind));
    if !is_wanted {
        return Ok(None);
    }
    let file_name = version.path.as_ref().map(|path| path.file_name().to_owned());
    let title = note.map(|note| note.title).or(file_name).unwrap_or_default();
    Ok(Some(RecentChange { version, title, kind, changes_count: 1 }))
}
