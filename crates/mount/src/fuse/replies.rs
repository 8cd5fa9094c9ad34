//! Replies to the kernel.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, Generation, ReplyAttr, ReplyEmpty, ReplyEntry};
use quipu_core::model::Timestamp;

use crate::error::{TreeError, errno};
use crate::ownership::Ownership;
use crate::tree::{Attributes, Kind};

/// The kernel caches names and attributes until they are invalidated.
pub(super) const KEPT_FOR: Duration = Duration::from_hours(24 * 365);

pub(super) fn file_attributes(ownership: Ownership, attributes: &Attributes) -> FileAttr {
    let changed_at = system_time(attributes.changed_at);
    let shown = match attributes.kind {
        Kind::Directory => ownership.directory(attributes.ino, changed_at, attributes.access),
        Kind::File => FileAttr {
            size: attributes.size_bytes,
            blocks: attributes.size_bytes.div_ceil(512),
            ..ownership.file(attributes.ino, changed_at, attributes.access)
        },
    };
    FileAttr { nlink: if attributes.is_removed { 0 } else { shown.nlink }, ..shown }
}

pub(super) fn reply_entry(
    ownership: Ownership,
    found: Result<Attributes, TreeError>,
    reply: ReplyEntry,
) {
    match found {
        Ok(attributes) => {
            reply.entry(&KEPT_FOR, &file_attributes(ownership, &attributes), Generation(0));
        }
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_attributes(
    ownership: Ownership,
    found: Result<Attributes, TreeError>,
    reply: ReplyAttr,
) {
    match found {
        Ok(attributes) => {
            // A file that was replaced shows the one at its place, whose changes invalidate another inode.
            let kept_for = if attributes.is_removed { Duration::ZERO } else { KEPT_FOR };
            reply.attr(&kept_for, &file_attributes(ownership, &attributes));
        }
        Err(error) => reply.error(errno(error)),
    }
}

pub(super) fn reply_empty(done: Result<(), TreeError>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(0))
}
