//! What changed in a store since its index was written.

use quipu_core::Error;
use quipu_core::backend::{Reader, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Memory, MemoryId, StoreId, View};

use super::freshness::{Feed, Relation};
use super::{FEW_MAX, FEW_SIZE_BYTES_MAX, PAGE};
use crate::index::Cursor;

/// What changed in a store since a cursor.
pub(super) enum Changed {
    /// These memories, all read in the snapshot at `to`.
    Few { memories: Vec<Memory>, removed: Vec<MemoryId>, to: Cursor },
    /// The ids of the memories that changed up to this cursor; too many to read at once.
    Many(Vec<MemoryId>, Cursor),
    /// The feed no longer reaches back to the cursor.
    Unknown,
    /// The store was deleted.
    Gone,
}

pub(super) fn changed(reader: &dyn Reader, store: StoreId, from: Cursor) -> Result<Changed, Error> {
    if reader.store(store)?.is_none() {
        return Ok(Changed::Gone);
    }
    let feed = Feed::read(reader)?;
    let to = feed.newest();
    // A change that has been pruned from the feed may have deleted a memory of which no version is
    // kept.
    if feed.relation(reader, from)? == Relation::Unknown {
        return Ok(Changed::Unknown);
    }
    let ids = ids_between(reader, store, (from, to))?;
    if ids.len() > FEW_MAX {
        return Ok(Changed::Many(ids, to));
    }
    let (mut memories, mut removed) = (Vec::new(), Vec::new());
    let mut size_bytes = 0;
    for &id in &ids {
        match reader.memory(store, id, View::Full)? {
            Some(memory) => {
                size_bytes += memory.size_bytes;
                memories.push(memory);
            }
            None => removed.push(id),
        }
        if size_bytes > FEW_SIZE_BYTES_MAX {
            return Ok(Changed::Many(ids, to));
        }
    }
    Ok(Changed::Few { memories, removed, to })
}

/// Returns the memories of a store with versions after one cursor and up to another, in order.
pub(super) fn ids_between(
    reader: &dyn Reader,
    store: StoreId,
    (from, to): (Cursor, Cursor),
) -> Result<Vec<MemoryId>, Error> {
    let created = Span { first: from.at.next(), last: to.at };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    let mut ids = Vec::new();
    let mut before = None;
    loop {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view: View::Basic };
        let versions = reader.versions(store, &query)?;
        ids.extend(versions.iter().map(|version| version.memory));
        match versions.last() {
            Some(last) if versions.len() == PAGE => before = Some(last.id),
            Some(_) | None => break,
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
