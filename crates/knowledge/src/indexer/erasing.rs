//! Taking out of the index what was redacted.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::{Erasure, PendingErasure, ScannedFile};
use quipu_core::model::{MemoryId, StoreId};
use quipu_core::{Derived, Error, ErrorKind};
use quipu_pages::Remains;
use rusqlite::Connection;

use super::{Indexer, batch, read_memories};
use crate::index::{Applied, INDEX_FILE, IndexError, remove_store, scrub, store_row};

/// How long to wait for readers of the log and for other writers, and how long to pause between attempts.
/// After that the whole index is removed: it can be rebuilt, and a process that was stopped in the
/// middle of a search must not keep redacted text on the disk.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

impl Derived for Indexer {
    fn erase(&self, pending: &[PendingErasure]) -> Result<Erasure, Error> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.try_to_erase(pending) {
                Ok(scanned) => return Ok(Erasure { scanned: vec![scanned], ..Erasure::default() }),
                // Mostly another process that takes much in, and making everything again would take
                // longer than it does.
                Err(IndexError::NotWritable(error))
                    if *error.kind() == ErrorKind::StorageBusy && Instant::now() < deadline => {}
                // The index can be made again, but what is in it must go. Where nothing can be
                // written, a file can still be removed.
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
        }
        self.clear_unused()?;
        let size_bytes = self.file.size_bytes();
        Ok(ScannedFile { name: INDEX_FILE.to_owned(), size_bytes })
    }

    /// Takes all words of memories out of the index that are not in the store any more.
    ///
    /// The index may be behind, and hold a redacted version as what a memory is. Bringing it to the
    /// present would take long where much was written, so these memories alone are brought there.
    fn scrub(&self, store: StoreId, memories: &[MemoryId]) -> Result<(), IndexError> {
        let row = self.file.read(|snapshot| store_row(snapshot.connection, store))?;
        let is_left_over = row.is_some_and(|row| row.is_removed());
        if is_left_over || !self.engine.read(|reader| Ok(reader.store(store)?.is_some()))? {
            return remove_store(&self.file, store);
        }
        self.file.write(|connection| {
            let Some(row) = store_row(connection, store)? else { return Ok(()) };
            // Read while nobody else can write the index, so that nothing is outdated.
            let (newest, heads, gone) = self.engine.read(|reader| {
                let (heads, gone) = read_memories(reader, store, memories)?;
                Ok((reader.newest_change()?.0, heads, gone))
            })?;
            let places = (row.cursor, row.cursor);
            match batch(&heads, gone).apply(connection, store, places, newest)? {
                Applied::Done => {}
                Applied::Outdated => return Err(IndexError::Outdated),
            }
            match store_row(connection, store)? {
                Some(row) => scrub(connection, &row, memories, newest),
                None => Ok(()),
            }
        })
    }

    /// Clears every byte of the file that belongs to no row, and empties the log.
    fn clear_unused(&self) -> Result<(), IndexError> {
        self.file.write(|connection| match quipu_pages::scan(connection)? {
            Remains::InPages(pages) => {
                let pages: BTreeSet<_> = pages.into_iter().collect();
                Ok(quipu_pages::clear(connection, &pages)?)
            }
            // Nobody can tell what is left, so nothing may be.
            Remains::Elsewhere => Err(IndexError::Damaged),
        })?;
        // Only what is waited for counts, not the work before: that may take long on a slow disk.
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
            return Err(IndexError::NotWritable(Error::new(
                ErrorKind::StorageBusy,
                "a search still reads the old index",
            )));
        }
        thread::sleep(PAUSE);
    }
}
