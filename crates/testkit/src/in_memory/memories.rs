//! Which memories are selected.

use std::ops::Bound;

use quipu_core::backend::MemoryQuery;
use quipu_core::model::{Memory, MemoryId, MemoryPath, StoreId};

use super::{State, basic, viewed};

/// Returns the memory at a path, else the nearest above it, else the first below it.
pub(super) fn overlapping(
    state: &State,
    store: StoreId,
    path: &MemoryPath,
    except: Option<MemoryId>,
) -> Option<Memory> {
    let overlaps: Vec<_> = state
        .memories_of(store)
        .filter(|memory| memory.path.overlaps(path) && Some(memory.id) != except)
        .collect();
    let at_or_above = overlaps.iter().filter(|memory| memory.path <= *path);
    let nearest = at_or_above.max_by_key(|memory| memory.path.as_str().len());
    nearest.or(overlaps.first()).map(|memory| basic(memory))
}

pub(super) fn selected(state: &State, store: StoreId, query: &MemoryQuery) -> Vec<Memory> {
    let is_after_start = |path: &str| match &query.start {
        Bound::Included(start) => path >= start.as_str(),
        Bound::Excluded(start) => path > start.as_str(),
        Bound::Unbounded => true,
    };
    let selected = state.memories_of(store).filter(|memory| {
        query.directory.contains(&memory.path) && is_after_start(memory.path.as_str())
    });
    let mut selected: Vec<_> = selected.take(query.limit).cloned().collect();
    for memory in &mut selected {
        viewed(&mut memory.content, query.view);
    }
    selected
}
