//! Background work: following the feed, merging, checkpointing.

use std::sync::atomic::Ordering;

use quipu_core::Error;
use quipu_core::backend::{Archived, Sequence, Span, StoreQuery};
use quipu_core::model::StoreId;

use super::building::Lock;
use super::freshness::{Feed, Goal};
use super::{Attempt, CaughtUp, Indexer};
use crate::index::{self, IndexError};

/// How many stores are listed per page.
const PAGE: usize = 256;

/// How many changes are read per page.
const CHANGES: usize = 1_000;

impl Indexer {
    /// Brings the indexes of all stores that changed after `seen` up to date, and returns the
    /// sequence that they have reached. If the feed does not reach back, all stores are checked.
    pub(crate) fn follow(&self, seen: Option<Sequence>) -> Result<Sequence, Error> {
        let newest = self.engine.newest_sequence()?;
        let stores = match seen {
            Some(seen) => self.changed_since(seen)?,
            None => None,
        };
        let stores = match (stores, self.demanded()?) {
            (Some(mut stores), Some(demanded)) => {
                stores.retain(|store| demanded.contains(store));
                Some(stores)
            }
            (stores, _) => stores,
        };
        let stores = match stores {
            Some(stores) => stores,
            None => self.all_stores()?,
        };
        self.erase_removed()?;
        let attempt = Attempt::new(&|_| Ok(()));
        for store in stores {
            if self.is_reached(store)?
                || matches!(self.catch_up(store, &attempt)?, CaughtUp::Stored)
            {
                // Searches bring the index up to date too, but leave merging to the follower.
                self.tidy(store)?;
            }
        }
        self.shrink();
        self.checkpoint()?;
        self.followed.store(newest.0, Ordering::Relaxed);
        Ok(newest)
    }

    /// Returns whether the index of a store is up to date; that of a deleted store always is.
    pub(super) fn is_reached(&self, store: StoreId) -> Result<bool, Error> {
        let cursor = self.cursor(store)?;
        self.engine.read(|reader| {
            if reader.store(store)?.is_none() {
                return Ok(true);
            }
            let relation = Feed::read(reader)?.relation(reader, cursor)?;
            let goal = Goal { changed_at: reader.changed_at(store)? };
            Ok(goal.is_reached(cursor, relation))
        })
    }

    /// Returns how far this process has followed the feed.
    pub(crate) fn followed(&self) -> Sequence {
        Sequence(self.followed.load(Ordering::Relaxed))
    }

    /// Returns the stores that changed after a sequence; `None` if the feed does not reach back.
    fn changed_since(&self, seen: Sequence) -> Result<Option<Vec<StoreId>>, Error> {
        let mut stores = Vec::new();
        let mut after = seen;
        loop {
            let changes = self.engine.changes(after, CHANGES)?;
            if changes.has_gap {
                return Ok(None);
            }
            let Some(last) = changes.items.last() else { return Ok(Some(stores)) };
            after = last.sequence;
            stores.extend(changes.items.iter().map(|change| change.store));
            stores.sort_unstable();
            stores.dedup();
        }
    }

    /// Returns the stores that belong into the index.
    pub(crate) fn all_stores(&self) -> Result<Vec<StoreId>, Error> {
        if let Some(demanded) = self.demanded()? {
            return Ok(demanded);
        }
        self.engine.read(|reader| {
            let mut stores = Vec::new();
            for workspace in reader.workspaces()? {
                let mut query = StoreQuery {
                    workspace: workspace.id,
                    archived: Archived::Show,
                    created: Span::default(),
                    before: None,
                    limit: PAGE,
                };
                while let page = reader.stores(&query)?
                    && let Some(last) = page.last()
                {
                    query.before = Some(last.id);
                    stores.extend(page.iter().map(|store| store.id));
                }
            }
            Ok(stores)
        })
    }

    /// Runs the merges that are due in a store, unless another process holds the lock.
    pub(crate) fn tidy(&self, store: StoreId) -> Result<(), Error> {
        let Some(row) = self.row(store)?.filter(|row| !row.is_removed()) else { return Ok(()) };
        if !self.read_file(|connection| index::is_due(connection, row.num))? {
            return Ok(());
        }
        let Lock::Acquired(_lock) = self.try_lock() else { return Ok(()) };
        loop {
            match index::upkeep_step(&self.file, row.num) {
                Ok(true) => {}
                // The next access repairs the file, or there is nothing to do for now.
                Ok(false) | Err(IndexError::NotWritable(_) | IndexError::Damaged) => return Ok(()),
                Err(error) => return Err(error.into_error()),
            }
        }
    }

    /// Checkpoints the write-ahead log as far as readers permit.
    pub(super) fn checkpoint(&self) -> Result<(), Error> {
        let moved = self.file.with_writable(|connection| {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            Ok(())
        });
        match moved {
            Ok(()) | Err(IndexError::NotWritable(_) | IndexError::Damaged) => Ok(()),
            Err(error) => Err(error.into_error()),
        }
    }
}
