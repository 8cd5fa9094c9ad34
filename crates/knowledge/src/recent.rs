//! Recent activity.

use std::collections::{HashMap, HashSet};

use quipu_core::Error;
use quipu_core::backend::{Span, VersionFilter, VersionQuery};
use quipu_core::engine::{Page, existing_store};
use quipu_core::model::{MemoryId, Operation, StoreId, Timestamp, Version, VersionId, View};
use quipu_notes::Note;

use crate::Knowledge;
use crate::lookup::Lookup;

/// A request for recent changes.
#[derive(Clone, Debug)]
pub struct RecentRequest {
    /// The stores to list.
    pub stores: Vec<StoreId>,
    /// Only changes since this time.
    pub since: Timestamp,
    /// Only changes of these kinds, if any are given.
    pub operations: Vec<Operation>,
    /// Only memories of these types, if any are given.
    pub kinds: Vec<String>,
    /// Only changes before this one, for the next page.
    pub before: Option<VersionId>,
    /// The maximum number of changes.
    pub limit: usize,
}

/// The last change of a memory.
#[derive(Clone, Debug)]
pub struct RecentChange {
    /// The version that it created, without its text: author, time, path and kind of change.
    pub version: Version,
    /// The memory's title, or the last known one; the last segment of its path if there is none.
    pub title: String,
    /// The memory's type, or the last known one.
    pub kind: Option<String>,
    /// How many changes of the memory were read, including this one.
    pub changes_count: usize,
}

/// How many versions are read per page.
const PAGE: usize = 256;
/// The maximum number of versions to read per store; older ones are not listed.
const VERSIONS_MAX: usize = 20_000;

impl Knowledge {
    /// Returns the last change of each memory that changed since a given time, newest first,
    /// including deleted memories. If only some kinds of changes are requested, it is the last of
    /// those.
    pub fn recent(&self, request: &RecentRequest) -> Result<Page<RecentChange, VersionId>, Error> {
        self.lookup(&request.stores, |lookup| {
            let mut changes = Vec::new();
            let mut seen = HashSet::new();
            for &store in request.stores.iter().filter(|store| seen.insert(**store)) {
                existing_store(lookup.reader, store)?;
                changes.extend(recent_of(lookup, store, request)?);
            }
            changes.sort_by_key(|change| std::cmp::Reverse(change.version.created_at));
            Ok(Page::cut(changes, request.limit, |change| change.version.id))
        })
    }
}

/// Returns one change more than requested, if there is one.
fn recent_of(
    lookup: &Lookup<'_>,
    store: StoreId,
    request: &RecentRequest,
) -> Result<Vec<RecentChange>, Error> {
    let created = Span { first: request.since, ..Span::default() };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    // The index of each memory's change in `changes`, if it is listed there.
    let mut seen: HashMap<MemoryId, Option<usize>> = HashMap::new();
    let mut changes: Vec<RecentChange> = Vec::new();
    let mut before = None;
    let mut versions_count = 0;
    while changes.len() <= request.limit && versions_count < VERSIONS_MAX {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view: View::Basic };
        let versions = lookup.reader.versions(store, &query)?;
        let Some(last) = versions.last() else { break };
        before = Some(last.id);
        versions_count += versions.len();
        let is_wanted = |version: &Version| {
            request.operations.is_empty() || request.operations.contains(&version.operation)
        };
        for version in versions.into_iter().filter(is_wanted) {
            if let Some(known) = seen.get(&version.memory) {
                if let Some(change) = known.and_then(|place| changes.get_mut(place)) {
                    change.changes_count += 1;
                }
                continue;
            }
            let memory = version.memory;
            // A memory belongs to the page with its newest change.
            let is_ahead = request.before.is_none_or(|before| version.id < before);
            let change = if is_ahead { described(lookup, version, request)? } else { None };
            seen.insert(memory, change.is_some().then_some(changes.len()));
            changes.extend(change);
        }
    }
    Ok(changes)
}

fn described(
    lookup: &Lookup<'_>,
    version: Version,
    request: &RecentRequest,
) -> Result<Option<RecentChange>, Error> {
    let note = lookup.note(version.store, version.memory)?.map(|note| (note.title, note.kind));
    let note = match note {
        Some(note) => Some(note),
        None => last_known(lookup, &version)?,
    };
    let (title, kind) = note.unzip();
    let is_kind = |wanted: &String| {
        kind.as_ref().is_some_and(|kind| kind.to_lowercase() == wanted.to_lowercase())
    };
    if !request.kinds.is_empty() && !request.kinds.iter().any(is_kind) {
        return Ok(None);
    }
    let file_name = version.path.as_ref().map(|path| path.file_name().to_owned());
    let title = title.or(file_name).unwrap_or_default();
    Ok(Some(RecentChange { version, title, kind, changes_count: 1 }))
}

/// Returns the last title and type of a memory before it was deleted.
fn last_known(lookup: &Lookup<'_>, version: &Version) -> Result<Option<(String, String)>, Error> {
    let filter = VersionFilter { memory: Some(version.memory), ..VersionFilter::default() };
    let query = VersionQuery { filter, before: None, limit: 2, view: View::Full };
    let versions = lookup.reader.versions(version.store, &query)?;
    let named = versions.iter().find_map(|version| {
        let note = Note::parse(version.path.as_ref()?.as_str(), version.content.as_ref()?.as_str());
        Some((note.title, note.kind))
    });
    Ok(named)
}
