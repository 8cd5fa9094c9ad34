//! Replies to the kernel.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, Generation, ReplyAttr, ReplyEmpty, ReplyEntry};
use quipu_core::model::Timestamp;

use crate::error::{TreeError, errno};
use crate::ownership::Ownership;
use crate::tree::{Attributes, Kind};

/// The kernel caches names and attributes until they are invalidated.
const KEPT_FOR: Duration = Duration::from_hours(24 * 365);

/// How long the kernel keeps the way to the past. `2h ago` moves on, and a memory may come to be where
/// `.quipu` is. Not to keep it at all would cost a program that walks a past a lookup for every file.
const KEPT_BRIEFLY_FOR: Duration = Duration::from_secs(1);

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

/// Returns how long the kernel may cache a name and its attributes.
///
/// What others are changing is not cached: a size that one program has asked for would be told to another
/// one, whose reads return the next text.
pub(super) fn kept_for(attributes: &Attributes) -> Duration {
    if attributes.is_volatile { Duration::ZERO } else { KEPT_FOR }
}

pub(super) fn reply_entry(
    ownership: Ownership,
    found: Result<Attributes, TreeError>,
    reply: ReplyEntry,
) {
    match found {
        Ok(attributes) => {
            let shown = file_attributes(ownership, &attributes);
            reply.entry(&kept_for(&attributes), &shown, Generation(0));
        }
        Err(error) => reply.error(errno(error)),
    }
}

/// Replies with an entry whose name may soon mean something else.
pub(super) fn reply_entry_briefly(
    ownership: Ownership,
    found: Result<Attributes, TreeError>,
    reply: ReplyEntry,
) {
    match found {
        Ok(attributes) => {
            let shown = file_attributes(ownership, &attributes);
            reply.entry(&KEPT_BRIEFLY_FOR, &shown, Generation(0));
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
            reply.attr(&kept_for(&attributes), &file_attributes(ownership, &attributes));
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
