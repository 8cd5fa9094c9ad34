//! Flags of opens: those that a program passes, and those that the kernel gets back.

use std::sync::OnceLock;

use fuser::{FopenFlags, INodeNo, Notifier};
use rustix::fs::OFlags;

use crate::tree::{OpenMode, Opened, Position, Start, Writing};

/// Returns the flags of an opened file, and invalidates the attributes that the kernel may have cached.
pub(super) fn open_flags(
    notifier: &OnceLock<Notifier>,
    ino: u64,
    opened: Opened,
    mode: OpenMode,
) -> FopenFlags {
    if opened.is_apart
        && let Some(notifier) = notifier.get()
    {
        // Reads do not depend on the size that the kernel has cached, but programs that ask for it do. Only
        // attributes are dropped here: dropping pages could wait for a request that waits for this one.
        notifier.inval_inode(INodeNo(ino), -1, 0).unwrap_or_default();
    }
    let mut flags = FopenFlags::empty();
    flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.is_unchanged);
    flags.set(FopenFlags::FOPEN_DIRECT_IO, opened.is_apart);
    // The close of a reader stores nothing, so it needs no message.
    flags.set(FopenFlags::FOPEN_NOFLUSH, mode == OpenMode::Read);
    flags
}

pub(super) fn open_mode(flags: OFlags) -> OpenMode {
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) && !flags.contains(OFlags::TRUNC) {
        return OpenMode::Read;
    }
    let start = if flags.contains(OFlags::TRUNC) { Start::Emptied } else { Start::Kept };
    let position =
        if flags.contains(OFlags::APPEND) { Position::AtEnd } else { Position::Anywhere };
    OpenMode::Write(Writing { start, position })
}

pub(super) fn o_flags(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned())
}
