//! A little room on the disk, kept for when there is none.
//!
//! Removing needs room too: the log grows before anything gets smaller. So a file that holds nothing
//! keeps some of the disk, and is given up when a removal meets a full disk.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::open;

/// The name of the file.
const RESERVE_FILE: &str = "quipu.reserve";

/// Removes some hundred rows at a time, together with what they need in the log.
const SIZE_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Reserve(PathBuf);

impl Reserve {
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.join(RESERVE_FILE))
    }

    /// Keeps the room, if there is enough. That there is none is no failure.
    pub(crate) fn keep(&self) {
        let size = u64::try_from(SIZE_BYTES).unwrap_or(u64::MAX);
        if fs::metadata(&self.0).is_ok_and(|file| file.len() == size) {
            return;
        }
        if self.write().is_err() {
            self.give_up();
        }
    }

    fn write(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        open::owner_only(&mut options);
        let mut file = options.open(&self.0)?;
        // Zeros alone might take no room on file systems that leave out or compress them.
        let mut number: u64 = 0x9e37_79b9_7f4a_7c15;
        let noise = std::iter::repeat_with(|| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            number.to_le_bytes()
        });
        file.write_all(&noise.take(SIZE_BYTES / 8).flatten().collect::<Vec<_>>())
    }

    /// Gives up the room; returns whether there was any.
    pub(crate) fn give_up(&self) -> bool {
        let had_room = fs::metadata(&self.0).is_ok_and(|file| file.len() > 0);
        fs::remove_file(&self.0).is_ok() && had_room
    }
}
