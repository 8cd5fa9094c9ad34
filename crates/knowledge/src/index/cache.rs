//! A cache of segments that a connection has read.
//!
//! A segment never changes, and its number is never used again, so what is kept stays right for as long
//! as the file is the same. Only which of its memories are dead is read every time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::segment::Segment;

/// Columns and small segments.
#[derive(Debug, Default)]
pub(super) struct Cache(RefCell<Cached>);

#[derive(Debug, Default)]
struct Cached {
    size_bytes: usize,
    columns: HashMap<(i64, &'static str), Arc<[u8]>>,
    segments: HashMap<i64, Arc<Segment>>,
}

/// Shorter columns are read as fast as they are found here.
const COLUMN_SIZE_BYTES_MIN: usize = 4 * 1024;

/// Beyond this the whole cache is dropped. Evicting the least recently used entries would need an order of
/// all of them, and reading a segment again costs microseconds.
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

    /// Returns whether something of this size can be kept.
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
