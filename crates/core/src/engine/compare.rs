//! Comparing two trees: what was added, removed, changed and moved.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use crate::Error;
use crate::backend::{MemoryQuery, Reader};
use crate::model::{ContentHash, Directory, Memory, MemoryId, StoreId, View};

use super::{Engine, existing_store};

/// One memory that differs between two trees. Texts are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is only in the new tree.
    Added(Memory),
    /// It is only in the old tree.
    Removed(Memory),
    /// It has the same path and another text.
    Changed {
        /// As it was.
        old: Memory,
        /// As it is.
        new: Memory,
    },
    /// It has another path, and perhaps another text.
    Moved {
        /// As it was.
        old: Memory,
        /// As it is.
        new: Memory,
    },
}

impl Difference {
    /// Returns the memory in the old tree, if it was there.
    pub fn before(&self) -> Option<&Memory> {
        match self {
            Self::Added(_) => None,
            Self::Removed(old) | Self::Changed { old, .. } | Self::Moved { old, .. } => Some(old),
        }
    }

    /// Returns the memory in the new tree, if it is there.
    pub fn after(&self) -> Option<&Memory> {
        match self {
            Self::Removed(_) => None,
            Self::Added(new) | Self::Changed { new, .. } | Self::Moved { new, .. } => Some(new),
        }
    }

    /// Returns the path that differences are sorted by: the new one, else the old one.
    fn sort_key(&self) -> &str {
        let memory = self.after().or_else(|| self.before());
        memory.map_or("", |memory| memory.path.as_str())
    }
}

impl Engine {
    /// Returns all memories of a store in byte order of their paths, without their texts.
    pub fn tree(&self, store: StoreId) -> Result<Vec<Memory>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            all_memories(reader, store)
        })
    }
}

fn all_memories(reader: &dyn Reader, store: StoreId) -> Result<Vec<Memory>, Error> {
    let query = MemoryQuery {
        directory: Directory::root(),
        start: Bound::Unbounded,
        limit: usize::MAX,
        view: View::Basic,
    };
    reader.memories(store, &query)
}

/// Returns how two trees differ, in byte order of the new paths.
///
/// A memory of both trees is recognized by its id, whatever happened to it. What is left is compared by
/// path, as it must be between two stores, and last by text: one that disappeared and an equal one that
/// appeared are one that moved.
pub fn compare(old: &[Memory], new: &[Memory]) -> Vec<Difference> {
    let mut differences = Vec::new();
    let by_id: HashMap<MemoryId, &Memory> = new.iter().map(|memory| (memory.id, memory)).collect();
    let (mut removed, mut matched) = (BTreeMap::new(), HashSet::new());
    for memory in old {
        match by_id.get(&memory.id) {
            Some(now) => {
                matched.insert(now.id);
                differences.extend(difference(memory, now));
            }
            None => {
                removed.insert(memory.path.as_str(), memory);
            }
        }
    }
    let mut added = Vec::new();
    for memory in new.iter().filter(|memory| !matched.contains(&memory.id)) {
        match removed.remove(memory.path.as_str()) {
            Some(was) => differences.extend(difference(was, memory)),
            None => added.push(memory),
        }
    }
    let mut by_text: HashMap<ContentHash, Vec<&Memory>> = HashMap::new();
    for memory in removed.values().rev() {
        by_text.entry(memory.hash).or_default().push(memory);
    }
    for memory in added {
        match by_text.get_mut(&memory.hash).and_then(Vec::pop) {
            Some(was) => {
                removed.remove(was.path.as_str());
                differences.extend(difference(was, memory));
            }
            None => differences.push(Difference::Added(memory.clone())),
        }
    }
    let gone = removed.into_values().map(|memory| Difference::Removed(memory.clone()));
    differences.extend(gone);
    differences.sort_by(|a, b| a.sort_key().cmp(b.sort_key()));
    differences
}

/// Returns how a memory differs from what it was, if it does.
fn difference(old: &Memory, new: &Memory) -> Option<Difference> {
    let (old, new) = (old.clone(), new.clone());
    if old.path != new.path {
        Some(Difference::Moved { old, new })
    } else if old.hash != new.hash {
        Some(Difference::Changed { old, new })
    } else {
        None
    }
}
