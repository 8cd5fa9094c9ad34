//! Erasing redacted text from the index.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::{Erasure, PendingErasure, ScannedFile};
use quipu_core::model::{MemoryId, StoreId};
use quipu_core::{Derived, Error, ErrorKind};
use quipu_pages::Remains;
use rusqlite::Connection;

use super::{Indexer, read_memories};
use crate::index::{Applied, INDEX_FILE, IndexError, remove_store, scrub, store_row};

/// How long to wait for readers of the write-ahead log and for other writers, and how often to
/// poll. After that the whole index is removed: it can be rebuilt, and a process that was stopped
/// in the middle of a search must not keep redacted text on the disk.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

impl Derived for Indexer {
    fn erase(&self, pending: &[PendingErasure]) -> Result<Erasure, Error> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.try_to_erase(pending) {
                Ok(scanned) => return Ok(Erasure { scanned: vec![scanned], ..Erasure::default() }),
                // Usually another process that indexes a large batch. Rebuilding everything would
                // take longer than waiting for it.
                Err(IndexError::NotWritable(error))
                    if *error.kind() == ErrorKind::StorageBusy && Instant::now() < deadline => {}
                // The index can be rebuilt, but the redacted text in it must go. A file that cannot
                // be written can still be removed.
                Err(IndexError::NotWritable(_) | IndexError::Damaged) => {
                    self.file.discard()?;
                    return Ok(Erasure::default());
                }
                Err(error) => return Err(error.into_error()),
            }
        }
    }
}

impl Indexer {
    fn try_to_erase(&self, pending: &[PendingErasure]) -> Result<ScannedFile, IndexError> {
        let mut stores: BTreeMap<StoreId, Vec<MemoryId>> = BTreeMap::new();
        for PendingErasure { store, memory, .. } in pending {
            stores.entry(*store).or_default().extend(memory);
        }
        for (store, memories) in stores {
            self.scrub(store, &memories)?;
            self.matrices.forget(store);
        }
        self.clear_unused()?;
        let size_bytes = self.file.size_bytes();
        Ok(ScannedFile { name: INDEX_FILE.to_owned(), size_bytes })
    }

    /// Removes all text of memories from the index that is no longer in the store.
    ///
    /// The index may be behind, and hold a redacted version as the current one of a memory.
    /// Catching up could take long, so only these memories are brought up to date.
    fn scrub(&self, store: StoreId, memories: &[MemoryId]) -> Result<(), IndexError> {
        let row = self.file.read(|snapshot| store_row(snapshot.connection, store))?;
        let is_left_over = row.is_some_and(|row| row.is_removed());
        if is_left_over || !self.engine.read(|reader| Ok(reader.store(store)?.is_some()))? {
            return remove_store(&self.file, store);
        }
        self.file.write(|connection| {
            let Some(row) = store_row(connection, store)? else { return Ok(()) };
            // Read under the write lock, so the batch cannot be outdated.
            let (newest, heads, gone) = self.engine.read(|reader| {
                let (heads, gone) = read_memories(reader, store, memories)?;
                Ok((reader.newest_change()?.0, heads, gone))
            })?;
            let cursors = (row.cursor, row.cursor);
            match self.batch(&heads, gone).apply(connection, store, cursors, newest)? {
                Applied::Done => {}
                Applied::Outdated => return Err(IndexError::Outdated),
            }
            match store_row(connection, store)? {
                Some(row) => scrub(connection, &row, memories, newest),
                None => Ok(()),
            }
        })
    }

    /// Overwrites every byte of the file that belongs to no row, and truncates the write-ahead log.
    fn clear_unused(&self) -> Result<(), IndexError> {
        self.file.write(|connection| match quipu_pages::scan(connection)? {
            Remains::InPages(pages) => {
                let pages: BTreeSet<_> = pages.into_iter().collect();
                Ok(quipu_pages::clear(connection, &pages)?)
            }
            // There is no telling what is left, so nothing may be left.
            Remains::Elsewhere => Err(IndexError::Damaged),
        })?;
        // Only the wait counts, not the work before it, which may take long on a slow disk.
        let deadline = Instant::now() + TIMEOUT;
        self.file.with_writable(|connection| {
            empty_log(connection, deadline)?;
            self.file.sync_log()
        })
    }
}

fn empty_log(connection: &Connection, deadline: Instant) -> Result<(), IndexError> {
    loop {
        let is_blocked: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !is_blocked {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(IndexError::NotWritable(
                Error::new(
                    ErrorKind::StorageBusy,
                    "a search that does not finish keeps redacted text in the log of the index",
                )
                .with_hint("stop the process that searches, then run `quipu prune`"),
            ));
        }
        thread::sleep(PAUSE);
    }
}
