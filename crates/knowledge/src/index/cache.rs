//! A per-connection cache of segments.
//!
//! Segments are immutable and their ids are never reused, so entries stay valid as long as the file
//! is the same. Only tombstones are read every time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::segment::Segment;

/// Cached columns and small segments.
#[derive(Debug, Default)]
pub(super) struct Cache(RefCell<Cached>);

#[derive(Debug, Default)]
struct Cached {
    size_bytes: usize,
    columns: HashMap<(i64, &'static str), Arc<[u8]>>,
    segments: HashMap<i64, Arc<Segment>>,
}

/// Reading a shorter column is as fast as a cache hit.
const COLUMN_SIZE_BYTES_MIN: usize = 4 * 1024;

/// Beyond this size the whole cache is dropped. LRU eviction would need bookkeeping on every hit,
/// and reading a segment again costs microseconds.
const SIZE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Cache {
    pub(super) fn column(&self, segment: i64, name: &'static str) -> Option<Arc<[u8]>> {
        self.0.borrow().columns.get(&(segment, name)).cloned()
    }

    pub(super) fn keep_column(&self, segment: i64, name: &'static str, column: &Arc<[u8]>) {
        if column.len() >= COLUMN_SIZE_BYTES_MIN && self.make_room(column.len()) {
            self.0.borrow_mut().columns.insert((segment, name), Arc::clone(column));
        }
    }

    pub(super) fn segment(&self, id: i64) -> Option<Arc<Segment>> {
        self.0.borrow().segments.get(&id).cloned()
    }

    pub(super) fn keep_segment(&self, id: i64, segment: &Arc<Segment>) {
        if self.make_room(segment.size_bytes()) {
            self.0.borrow_mut().segments.insert(id, Arc::clone(segment));
        }
    }

    /// Makes room for an entry; returns `false` if it is too large to be cached.
    fn make_room(&self, size_bytes: usize) -> bool {
        if size_bytes > SIZE_BYTES_MAX / 2 {
            return false;
        }
        let mut cached = self.0.borrow_mut();
        if cached.size_bytes + size_bytes > SIZE_BYTES_MAX {
            *cached = Cached::default();
        }
        cached.size_bytes += size_bytes;
        true
    }
}
