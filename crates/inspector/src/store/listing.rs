//! What is in a directory of a store, sorted, a page at a time.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZero;

use quipu_core::Error;
use quipu_core::engine::ListQuery;
use quipu_core::model::{Actor, Directory, Listing, Memory, MemoryId, Store, Timestamp, View};

use crate::form::address;
use crate::reply::Trouble;
use crate::visit::Visit;

/// How many rows are on a page: what stays below 60 kB.
const ROWS_MAX: usize = 80;

/// How rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Path,
    Time,
    Size,
    Author,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Self::Path => "",
            Self::Time => "time",
            Self::Size => "size",
            Self::Author => "author",
        }
    }

    fn named(name: Option<&str>) -> Self {
        let known = [Self::Time, Self::Size, Self::Author];
        known.into_iter().find(|sort| Some(sort.name()) == name).unwrap_or(Self::Path)
    }

    /// Returns whether the smallest comes first: the newest and the largest do otherwise.
    pub(super) fn is_ascending(self) -> bool {
        matches!(self, Self::Path | Self::Author)
    }
}

/// What rows there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// What is directly in the directory, and the directories in it.
    Tree,
    /// All memories below it.
    List,
}

/// What a visitor wants to see of a store.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) directory: Directory,
    pub(super) sort: Sort,
    pub(super) layout: Layout,
    pub(super) page: usize,
}

impl Wanted {
    /// Reads the query of the address.
    pub(super) fn read(visit: &Visit<'_>) -> Result<Self, Trouble> {
        let query = &visit.query;
        let directory = query.get("dir").unwrap_or("/");
        let directory = Directory::parse(directory).map_err(|error| {
            Trouble::Invalid(format!("`{directory}` is not a folder: {error}."))
        })?;
        let is_list = query.get("view") == Some("list");
        Ok(Self {
            directory,
            sort: Sort::named(query.get("sort")),
            layout: if is_list { Layout::List } else { Layout::Tree },
            page: query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1),
        })
    }

    /// Returns the address that shows it.
    pub(super) fn address(&self, own: &str) -> String {
        let directory = if self.directory.is_root() { "" } else { self.directory.as_str() };
        let view = if self.layout == Layout::List { "list" } else { "" };
        let page = if self.page > 1 { self.page.to_string() } else { String::new() };
        let pairs =
            [("dir", directory), ("sort", self.sort.name()), ("view", view), ("page", &page)];
        address(own, &pairs)
    }
}

/// The rows of a page.
#[derive(Debug)]
pub(super) struct Rows {
    /// Directories, by path. They come before the memories, whatever the order.
    pub(super) directories: Vec<Directory>,
    /// Memories, each with the author of its last change.
    pub(super) memories: Vec<(Memory, Option<Actor>)>,
    /// How many rows there are on all pages.
    pub(super) total_count: usize,
    pub(super) page: usize,
    pub(super) pages_count: usize,
}

/// Reads the rows of a page.
///
/// Except by path, an order needs all rows of the directory, which are one query: a store holds at most
/// so many memories. Their authors are looked up for the rows of the page alone, unless they decide the
/// order.
pub(super) fn read(visit: &Visit<'_>, store: &Store, wanted: &Wanted) -> Result<Rows, Trouble> {
    let query = ListQuery {
        directory: wanted.directory.clone(),
        depth: match wanted.layout {
            Layout::Tree => NonZero::new(1),
            Layout::List => None,
        },
        after: None,
        limit: usize::MAX,
        view: View::Basic,
    };
    let (mut directories, mut memories) = (Vec::new(), Vec::new());
    for item in visit.engine.list(store.id, &query)?.items {
        match item {
            Listing::Directory(directory) => directories.push(directory),
            Listing::Memory(memory) => memories.push(memory),
        }
    }
    let known = sort(visit, store, wanted.sort, &mut memories)?;
    let total_count = directories.len() + memories.len();
    let pages_count = total_count.div_ceil(ROWS_MAX).max(1);
    let page = wanted.page.clamp(1, pages_count);
    let first = (page - 1) * ROWS_MAX;
    let skipped = first.saturating_sub(directories.len());
    let directories: Vec<_> = directories.into_iter().skip(first).take(ROWS_MAX).collect();
    let left = ROWS_MAX - directories.len();
    let shown: Vec<_> = memories.into_iter().skip(skipped).take(left).collect();
    let memories = with_authors(visit, store, &shown, &known)?;
    Ok(Rows { directories, memories, total_count, page, pages_count })
}

/// Sorts memories that are sorted by path. Returns the authors if they decide the order.
fn sort(
    visit: &Visit<'_>,
    store: &Store,
    sort: Sort,
    memories: &mut [Memory],
) -> Result<HashMap<MemoryId, Actor>, Trouble> {
    match sort {
        Sort::Path => {}
        Sort::Time => memories.sort_by_key(|memory| Reverse(memory.updated_at)),
        Sort::Size => memories.sort_by_key(|memory| Reverse(memory.size_bytes)),
        Sort::Author => {
            let authors = visit.authors();
            let known = all_authors(visit, store)?;
            let name = |memory: &Memory| known.get(&memory.id).map(|actor| authors.short(actor));
            memories.sort_by_cached_key(name);
            return Ok(known);
        }
    }
    Ok(HashMap::new())
}

/// Returns the author of the last change of every memory, in one query.
fn all_authors(visit: &Visit<'_>, store: &Store) -> Result<HashMap<MemoryId, Actor>, Error> {
    let heads =
        visit.engine.read(|reader| reader.versions_at(store.id, Timestamp::MAX, View::Basic))?;
    Ok(heads.into_iter().map(|version| (version.memory, version.actor)).collect())
}

fn with_authors(
    visit: &Visit<'_>,
    store: &Store,
    memories: &[Memory],
    known: &HashMap<MemoryId, Actor>,
) -> Result<Vec<(Memory, Option<Actor>)>, Error> {
    visit.engine.read(|reader| {
        let mut rows = Vec::with_capacity(memories.len());
        for memory in memories {
            let actor = match known.get(&memory.id) {
                Some(actor) => Some(actor.clone()),
                None => {
                    let version = reader.version(store.id, memory.version, View::Basic)?;
                    version.map(|version| version.actor)
                }
            };
            rows.push((memory.clone(), actor));
        }
        Ok(rows)
    })
}
