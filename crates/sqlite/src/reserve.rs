//! Disk space that is reserved for removals.
//!
//! On a full disk, deleting is the way out, but it needs space too: the write-ahead log grows before
//! anything shrinks, and the checkpoint may grow the database first. So a ballast file holds some of the
//! disk, and is removed when a removal meets a full disk.
//!
//! The space is worth something only if no other writer takes it. Three rules see to that, and all of
//! them apply inside the gate, where nobody else writes:
//!
//! 1. A change requires the whole reserve to be in place, so nothing but a removal writes while it is
//!    released ([`require`](Reserve::require)).
//! 2. A change is committed only if the database can grow to its new size within half of the reserve, or
//!    within the free space ([`require_room`](Reserve::require_room)). Without this rule, changes would
//!    fit into the log while the checkpoint that must follow does not fit into the database, and then
//!    even the reserve is too small for a removal.
//! 3. A removal holds the gate from releasing the reserve until it has run a checkpoint and taken the
//!    space back. Releasing the gate earlier would let a waiting change use it up.
//!
//! Other programs on the same disk follow no rules; `docs/storage.md` says so.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::Error;

use crate::error;
use crate::open;

/// The name of the file.
const RESERVE_FILE: &str = "quipu.reserve";

/// Half of it is for the checkpoint of what is in the log, half for the log of a removal.
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

    /// Takes the space, if there is enough; returns whether it is reserved.
    pub(crate) fn acquire(&self) -> bool {
        let is_reserved = fs::metadata(&self.file).is_ok_and(|file| file.len() == SIZE);
        if !is_reserved && self.write().is_err() {
            self.release();
            return false;
        }
        true
    }

    /// Fails unless the space is reserved, for writers that may not use it.
    pub(crate) fn require(&self) -> Result<(), Error> {
        if self.acquire() { Ok(()) } else { Err(error::only_removals()) }
    }

    /// Returns by how much the database file must grow to hold everything that is committed.
    pub(crate) fn growth_bytes(&self, database_size_bytes: u64) -> u64 {
        let file = fs::metadata(&self.database);
        database_size_bytes.saturating_sub(file.map_or(0, |file| file.len()))
    }

    /// Returns whether a checkpoint should come before the next change, because later there may be no
    /// space for one.
    pub(crate) fn is_checkpoint_due(&self, database_size_bytes: u64) -> bool {
        let growth = self.growth_bytes(database_size_bytes);
        growth > SIZE / 4 && !self.has_free(growth.saturating_mul(4).saturating_add(16 * SIZE))
    }

    /// Fails if a change would leave more in the log than a checkpoint could move on a full disk.
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
        // Zeros might take no space on a file system that compresses or stores sparse files, so the file
        // is filled with noise.
        let mut number: u64 = 0x9e37_79b9_7f4a_7c15;
        let noise = std::iter::repeat_with(|| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            number.to_le_bytes()
        });
        file.write_all(&noise.take(SIZE_BYTES / 8).flatten().collect::<Vec<_>>())
    }

    /// Releases the space, if any is reserved.
    pub(crate) fn release(&self) {
        // If the file cannot be removed, the removal that needed the space fails for lack of it.
        fs::remove_file(&self.file).unwrap_or_default();
    }
}
