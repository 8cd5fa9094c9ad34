//! Room on the disk that only removals may use.
//!
//! Removing needs room too: the log grows before anything gets smaller, and moving the log into the
//! database may make the database longer first. So a file that holds nothing keeps some of the disk,
//! and is given up when a removal meets a full disk.
//!
//! The room is worth something only if no other writer takes it. Three rules see to that, and all of
//! them are followed inside the gate: a change needs the whole reserve to be there, so nothing but a
//! removal writes while it is gone ([`require`](Reserve::require)); a change is committed only if the
//! database can grow to its new size within half of the reserve, or within what the disk has left
//! ([`require_room`](Reserve::require_room)); and a removal keeps the gate from giving up the reserve until
//! it has moved the log into the database and taken the room back. Other programs on the same disk
//! follow no rules; `docs/storage.md` says so.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::Error;

use crate::error;
use crate::open;

/// The name of the file.
const RESERVE_FILE: &str = "quipu.reserve";

/// Half of it lets the database take up the log, half lets the log take up a removal.
const SIZE_BYTES: usize = 1024 * 1024;
const SIZE: u64 = SIZE_BYTES as u64;

#[derive(Debug)]
pub(crate) struct Reserve {
    database: PathBuf,
    file: PathBuf,
}

impl Reserve {
    /// Returns the reserve beside a database.
    pub(crate) fn new(database: &Path) -> Self {
        Self { database: database.to_owned(), file: database.with_file_name(RESERVE_FILE) }
    }

    /// Keeps the room, if there is enough; returns whether it is kept.
    pub(crate) fn keep(&self) -> bool {
        let is_kept = fs::metadata(&self.file).is_ok_and(|file| file.len() == SIZE);
        if !is_kept && self.write().is_err() {
            self.give_up();
            return false;
        }
        true
    }

    /// Fails unless the room is kept, for those that may not use it.
    pub(crate) fn require(&self) -> Result<(), Error> {
        if self.keep() { Ok(()) } else { Err(error::only_removals()) }
    }

    /// Returns how much longer the database file must become to hold all that is committed.
    pub(crate) fn growth_bytes(&self, database_size_bytes: u64) -> u64 {
        let file = fs::metadata(&self.database);
        database_size_bytes.saturating_sub(file.map_or(0, |file| file.len()))
    }

    /// Returns whether the log should be moved into the database before it takes another change,
    /// because later there may be no room for that.
    pub(crate) fn is_log_due(&self, database_size_bytes: u64) -> bool {
        let growth = self.growth_bytes(database_size_bytes);
        growth > SIZE / 4 && !self.has_free(growth.saturating_mul(4).saturating_add(16 * SIZE))
    }

    /// Fails if a change would leave more in the log than the database can take up on a full disk.
    pub(crate) fn require_room(&self, database_size_bytes: u64) -> Result<(), Error> {
        let growth = self.growth_bytes(database_size_bytes);
        // The log is about to grow by as much, before the database does.
        if growth <= SIZE / 2 || self.has_free(growth.saturating_mul(2).saturating_add(SIZE)) {
            return Ok(());
        }
        Err(error::only_removals())
    }

    fn has_free(&self, bytes: u64) -> bool {
        crate::disk_free_bytes(&self.database).is_none_or(|free| free >= bytes)
    }

    fn write(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        open::owner_only(&mut options);
        let mut file = options.open(&self.file)?;
        // Zeros alone might take no room on file systems that leave out or compress them.
        let mut number: u64 = 0x9e37_79b9_7f4a_7c15;
        let noise = std::iter::repeat_with(|| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            number.to_le_bytes()
        });
        file.write_all(&noise.take(SIZE_BYTES / 8).flatten().collect::<Vec<_>>())
    }

    /// Gives up the room, if there is any.
    pub(crate) fn give_up(&self) {
        // A file that cannot be removed keeps the room, and the removal that needed it fails.
        fs::remove_file(&self.file).unwrap_or_default();
    }
}
