//! What is in a directory of a store, sorted, a page at a time.

use std::cmp::Reverse;
use std::num::NonZero;

use quipu_core::Error;
use quipu_core::backend::Reader;
use quipu_core::engine::ListQuery;
use quipu_core::model::{
    Actor, Directory, Listing, MemoryId, MemoryPath, Store, Timestamp, VersionId, View,
};

use crate::form::address;
use crate::reply::Trouble;
use crate::visible::{self, Hidden};
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

/// A memory in a list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) memory: MemoryId,
    pub(super) path: MemoryPath,
    pub(super) size_bytes: u64,
    pub(super) changed_at: Timestamp,
    /// The author of the last change.
    pub(super) actor: Option<Actor>,
    /// Whether something in its text is not seen when it is rendered; `None` if nobody looked.
    pub(super) is_hiding: Option<bool>,
    version: VersionId,
}

/// The rows of a page.
#[derive(Debug)]
pub(super) struct Rows {
    /// Directories, by path. They come before the memories, whatever the order.
    pub(super) directories: Vec<Directory>,
    pub(super) memories: Vec<Row>,
    pub(super) page: usize,
    pub(super) has_next: bool,
    /// How many pages there are, if that is known.
    pub(super) pages_count: Option<usize>,
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.memories.is_empty()
    }
}

/// Reads the rows of a page.
///
/// Except for a list by path, an order needs all rows of the directory, which are one query: the
/// number of memories in a store is limited. Authors are looked up for the rows of the page alone, unless they
/// decide the order.
pub(super) fn read(visit: &Visit<'_>, store: &Store, wanted: &Wanted) -> Result<Rows, Trouble> {
    if (wanted.layout, wanted.sort) == (Layout::List, Sort::Path) {
        return first_rows(visit, store, wanted);
    }
    let (directories, mut memories) = match wanted.sort {
        Sort::Author => by_version(visit, store, wanted)?,
        Sort::Path | Sort::Time | Sort::Size => listed(visit, store, wanted, usize::MAX)?.0,
    };
    match wanted.sort {
        Sort::Path => {}
        Sort::Time => memories.sort_by_key(|row| Reverse(row.changed_at)),
        Sort::Size => memories.sort_by_key(|row| Reverse(row.size_bytes)),
        Sort::Author => {
            let authors = visit.authors();
            memories.sort_by_cached_key(|row| row.actor.as_ref().map(|it| authors.short(it)));
        }
    }
    let pages_count = (directories.len() + memories.len()).div_ceil(ROWS_MAX).max(1);
    let page = wanted.page.clamp(1, pages_count);
    let first = (page - 1) * ROWS_MAX;
    let skipped = first.saturating_sub(directories.len());
    let directories: Vec<_> = directories.into_iter().skip(first).take(ROWS_MAX).collect();
    let left = ROWS_MAX - directories.len();
    let memories: Vec<_> = memories.into_iter().skip(skipped).take(left).collect();
    let memories = with_details(visit, store, &memories)?;
    let has_next = page < pages_count;
    Ok(Rows { directories, memories, page, has_next, pages_count: Some(pages_count) })
}

/// Reads a page of the list by path, which is the order of the storage: nothing behind it is read.
fn first_rows(visit: &Visit<'_>, store: &Store, wanted: &Wanted) -> Result<Rows, Trouble> {
    let page = wanted.page.max(1);
    let limit = page.saturating_mul(ROWS_MAX);
    let ((_, memories), has_next) = listed(visit, store, wanted, limit)?;
    let memories = memories.get(limit - ROWS_MAX..).unwrap_or_default();
    let memories = with_details(visit, store, memories)?;
    let pages_count = if wanted.directory.is_root() {
        let count = visit.engine.usage(store.id)?.memories_count;
        usize::try_from(count).ok().map(|count| count.div_ceil(ROWS_MAX).max(1))
    } else {
        None
    };
    Ok(Rows { directories: Vec::new(), memories, page, has_next, pages_count })
}

/// Directories and memories, by path.
type Entries = (Vec<Directory>, Vec<Row>);

/// Returns the first entries, and whether there are more.
fn listed(
    visit: &Visit<'_>,
    store: &Store,
    wanted: &Wanted,
    limit: usize,
) -> Result<(Entries, bool), Error> {
    let depth = match wanted.layout {
        Layout::Tree => NonZero::new(1),
        Layout::List => None,
    };
    let directory = wanted.directory.clone();
    let query = ListQuery { directory, depth, after: None, limit, view: View::Basic };
    let listed = visit.engine.list(store.id, &query)?;
    let (mut directories, mut memories) = (Vec::new(), Vec::new());
    for item in listed.items {
        match item {
            Listing::Directory(directory) => directories.push(directory),
            Listing::Memory(memory) => memories.push(Row {
                memory: memory.id,
                path: memory.path,
                size_bytes: memory.size_bytes,
                changed_at: memory.updated_at,
                actor: None,
                is_hiding: None,
                version: memory.version,
            }),
        }
    }
    Ok(((directories, memories), listed.next.is_some()))
}

/// Returns all entries with their authors, from the newest version of each memory.
fn by_version(visit: &Visit<'_>, store: &Store, wanted: &Wanted) -> Result<Entries, Error> {
    let read = |reader: &dyn Reader| reader.versions_at(store.id, Timestamp::MAX, View::Basic);
    let (mut directories, mut memories) = (Vec::new(), Vec::new());
    for version in visit.engine.read(read)? {
        let Some(path) = version.path.filter(|path| wanted.directory.contains(path)) else {
            continue;
        };
        let above = match wanted.layout {
            Layout::Tree => wanted.directory.towards(&path, NonZero::<usize>::MIN),
            Layout::List => None,
        };
        match above {
            Some(directory) if directories.last() == Some(&directory) => {}
            Some(directory) => directories.push(directory),
            None => memories.push(Row {
                memory: version.memory,
                path,
                size_bytes: version.size_bytes.unwrap_or_default(),
                changed_at: version.created_at,
                actor: Some(version.actor),
                is_hiding: None,
                version: version.id,
            }),
        }
    }
    Ok((directories, memories))
}

/// The longest text that is looked at for a list. A page of longer ones would take too long; the page of
/// the memory looks at all of them.
const LOOKED_AT_SIZE_BYTES_MAX: u64 = 16 * 1024;

/// Looks up the authors that are not known yet, and whether texts hide something.
fn with_details(visit: &Visit<'_>, store: &Store, rows: &[Row]) -> Result<Vec<Row>, Error> {
    visit.engine.read(|reader| {
        let mut rows = rows.to_vec();
        for row in &mut rows {
            let is_short = row.size_bytes <= LOOKED_AT_SIZE_BYTES_MAX;
            let view = if is_short { View::Full } else { View::Basic };
            let Some(version) = reader.version(store.id, row.version, view)? else { continue };
            row.actor = Some(version.actor);
            row.is_hiding = version
                .content
                .map(|content| visible::hidden(content.as_str()) != Hidden::default());
        }
        Ok(rows)
    })
}
