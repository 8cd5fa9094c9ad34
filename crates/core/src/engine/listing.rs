//! Lists of memories and directories.

use std::num::NonZero;
use std::ops::Bound;

use crate::Error;
use crate::backend::{MemoryQuery, Reader};
use crate::model::{Directory, Listing, Memory, MemoryPath, StoreId, View};

use super::intact::Intact as _;
use super::{Engine, Page, existing_store};

/// Selects memories and directories to list.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// The directory to list.
    pub directory: Directory,
    /// How many levels to descend; deeper memories are rolled up into directories. `None` lists every
    /// memory.
    pub depth: Option<NonZero<usize>>,
    /// The [`Listing::sort_key`] after which to continue.
    pub after: Option<String>,
    /// How many lines at most.
    pub limit: usize,
    /// Whether texts are read.
    pub view: View,
}

/// What is at a path.
#[derive(Clone, Debug)]
pub enum PathContents {
    /// A memory, with its text.
    Memory(Memory),
    /// A directory: the entries in it.
    Directory(Vec<Listing>),
}

/// How many memories are read at first. A directory may follow that is skipped as a whole, so a large
/// first chunk would be read in vain; as long as there are only memories, chunks double.
const CHUNK_MIN: usize = 4;
const CHUNK_MAX: usize = 1024;

impl Engine {
    /// Lists memories and directories in byte order of their paths.
    ///
    /// The cost depends on the number of entries listed, not on the size of the store or of its
    /// directories: a directory that is rolled up is skipped by a range query.
    pub fn list(&self, store: StoreId, query: &ListQuery) -> Result<Page<Listing, String>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            let mut items = listed(reader, store, query)?;
            let next = if items.len() > query.limit {
                items.truncate(query.limit);
                items.last().map(|last| last.sort_key().to_owned())
            } else {
                None
            };
            Ok(Page { items, next })
        })
    }
}

impl Engine {
    /// Returns what is at a path, from one snapshot: a memory, or a directory with its entries down to
    /// `depth`. `None` for the path means the root, which always exists. Listed memories have no text.
    pub fn contents_at(
        &self,
        store: StoreId,
        path: Option<&MemoryPath>,
        depth: NonZero<usize>,
    ) -> Result<Option<PathContents>, Error> {
        let (contents, noted) = self.read(|reader| {
            let memory = match path {
                Some(path) => reader.memory_at(store, path, View::Full)?,
                None => None,
            };
            if let Some(memory) = memory {
                let memory = memory.intact()?;
                let noted = reader.last_use(store, memory.id)?;
                return Ok((Some(PathContents::Memory(memory)), noted));
            }
            existing_store(reader, store)?;
            let query = ListQuery {
                directory: path.map_or_else(Directory::root, MemoryPath::as_directory),
                depth: Some(depth),
                after: None,
                limit: usize::MAX,
                view: View::Basic,
            };
            let items = listed(reader, store, &query)?;
            let is_there = path.is_none() || !items.is_empty();
            Ok((is_there.then_some(PathContents::Directory(items)), None))
        })?;
        if let Some(PathContents::Memory(memory)) = &contents {
            self.note_use(memory, noted);
        }
        Ok(contents)
    }
}

/// Returns one entry more than asked for, if there is one.
fn listed(reader: &dyn Reader, store: StoreId, query: &ListQuery) -> Result<Vec<Listing>, Error> {
    let wanted = query.limit.saturating_add(1);
    let mut items = Vec::new();
    let mut start = query.after.as_deref().map_or(Bound::Unbounded, after);
    let mut chunk = if query.depth.is_some() { CHUNK_MIN } else { CHUNK_MAX };
    loop {
        let limit = chunk.min(wanted - items.len());
        let directory = query.directory.clone();
        let found =
            reader.memories(store, &MemoryQuery { directory, start, limit, view: query.view })?;
        let is_last = found.len() < limit;
        start = Bound::Unbounded;
        chunk = (chunk * 2).min(CHUNK_MAX);
        for memory in found {
            let rolled_up =
                query.depth.and_then(|depth| query.directory.towards(&memory.path, depth));
            if let Some(directory) = rolled_up {
                start = after(directory.as_str());
                items.push(Listing::Directory(directory));
                chunk = CHUNK_MIN;
                break;
            }
            start = Bound::Excluded(memory.path.as_str().to_owned());
            items.push(Listing::Memory(memory.intact()?));
        }
        let skipped_a_directory = matches!(start, Bound::Included(_));
        if items.len() >= wanted || (is_last && !skipped_a_directory) {
            return Ok(items);
        }
    }
}

/// Returns where to continue after an entry: after a memory's path, or after everything in a directory.
fn after(sort_key: &str) -> Bound<String> {
    match sort_key.strip_suffix('/') {
        // `0` is the character after `/`, so this is the first path behind the directory.
        Some(directory) => Bound::Included(format!("{directory}0")),
        None => Bound::Excluded(sort_key.to_owned()),
    }
}
