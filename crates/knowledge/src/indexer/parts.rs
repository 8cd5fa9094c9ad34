//! Which changes are indexed together when there are many.

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::backend::{Reader, Span, VersionFilter, VersionQuery};
use quipu_core::engine::newest_change_by;
use quipu_core::model::{MemoryId, StoreId, Timestamp, View};

use super::{FEW_MAX, PAGE, newest};
use crate::index::Cursor;

/// The maximum size of the texts of one part. With [`FEW_MAX`] memories per part, everything that is
/// indexed in parts takes fewer of them than a call makes attempts.
const PART_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Returns the memories that changed after a cursor and not later than the returned one, at most as many
/// as are indexed at once.
///
/// A memory counts where its newest change is. An earlier part may leave out a memory that changed in it
/// and again later, since that later change is still to come. Counting changes of the feed instead would
/// make parts without a single memory where other stores are busy.
pub(super) fn first(
    reader: &dyn Reader,
    store: StoreId,
    from: Cursor,
) -> Result<(Vec<MemoryId>, Cursor), Error> {
    let to = newest(reader)?;
    let changed = newest_changes(reader, store, (from, to))?;
    let (mut ids, mut size_bytes, mut last) = (Vec::new(), 0, from.at);
    for &(at, memory, memory_bytes) in changed.iter().rev().take(FEW_MAX) {
        if !ids.is_empty() && size_bytes + memory_bytes > PART_SIZE_BYTES_MAX {
            break;
        }
        size_bytes += memory_bytes;
        ids.push(memory);
        last = at;
    }
    if ids.len() == changed.len() {
        return Ok((ids, to));
    }
    Ok((ids, Cursor { sequence: newest_change_by(reader, last)?, at: last }))
}

/// Returns the newest change of each memory that changed between two cursors, the newest first, with the
/// size of its text.
fn newest_changes(
    reader: &dyn Reader,
    store: StoreId,
    (from, to): (Cursor, Cursor),
) -> Result<Vec<(Timestamp, MemoryId, u64)>, Error> {
    let created = Span { first: from.at.next(), last: to.at };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    let (mut changes, mut seen, mut before) = (Vec::new(), HashSet::new(), None);
    loop {
        let query = VersionQuery { filter: filter.clone(), before, limit: PAGE, view: View::Basic };
        let versions = reader.versions(store, &query)?;
        for version in &versions {
            if seen.insert(version.memory) {
                let size_bytes = version.size_bytes.unwrap_or_default();
                changes.push((version.created_at, version.memory, size_bytes));
            }
        }
        match versions.last() {
            Some(last) if versions.len() == PAGE => before = Some(last.id),
            Some(_) | None => return Ok(changes),
        }
    }
}
