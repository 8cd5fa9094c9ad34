//! Reading the index of stores as they are now.

use std::cell::Cell;
use std::collections::HashMap;

use quipu_core::backend::Reader;
use quipu_core::model::{StoreId, Timestamp};
use quipu_core::{Engine, Error};

use super::{ATTEMPTS_MAX, CaughtUp, Indexer};
use crate::index::{Cursor, IndexError, Overlay, Snapshot, StoreView, store_row};
use crate::lookup::Lookup;

/// What the file of the index lacks.
#[derive(Default)]
struct Missing {
    overlays: HashMap<StoreId, (Cursor, Overlay)>,
    /// Stores of which more is missing than can be searched in memory.
    behind: Vec<StoreId>,
}

/// How a reading of the file went.
enum Read<T> {
    Done(T),
    /// These stores must be brought to the present first.
    Outdated(Vec<StoreId>),
}

impl Indexer {
    /// Runs `work` with the indexes of stores, which hold everything that was acknowledged before
    /// this was called.
    pub(crate) fn read<T>(
        &self,
        engine: &Engine,
        stores: &[StoreId],
        work: impl Fn(&Lookup<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        engine.require_blocking()?;
        let goals = engine.read(|reader| goals(reader, stores))?;
        let mut missing = Missing::default();
        for _ in 0..ATTEMPTS_MAX {
            let read = self.file.read(|snapshot| {
                let mut views = HashMap::new();
                let mut outdated = Vec::new();
                for &(store, goal) in &goals {
                    match view(snapshot, store, goal, &missing)? {
                        Some(view) => drop(views.insert(store, view)),
                        None => outdated.push(store),
                    }
                }
                if !outdated.is_empty() {
                    return Ok(Read::Outdated(outdated));
                }
                // The canonical rows are read after the index was, so nothing in the index is newer.
                let is_behind = !missing.behind.is_empty();
                let is_damaged = Cell::new(false);
                let worked = engine.read(|reader| {
                    let mut lookup = Lookup::new(reader, &views);
                    lookup.is_behind = is_behind;
                    let worked = work(&lookup);
                    is_damaged.set(lookup.is_damaged());
                    worked
                });
                match worked {
                    Err(_) if is_damaged.get() => Err(IndexError::Damaged),
                    worked => Ok(Read::Done(worked?)),
                }
            });
            match read {
                Ok(Read::Done(worked)) => return Ok(worked),
                Ok(Read::Outdated(outdated)) => {
                    for store in outdated {
                        self.complete(store, &mut missing)?;
                    }
                }
                // The file is empty now.
                Err(IndexError::Damaged) => missing = Missing::default(),
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    fn complete(&self, store: StoreId, missing: &mut Missing) -> Result<(), Error> {
        match self.catch_up(store)? {
            CaughtUp::Stored => {}
            CaughtUp::InMemory(from, overlay) => {
                missing.overlays.insert(store, (from, *overlay));
            }
            CaughtUp::Behind => missing.behind.push(store),
        }
        Ok(())
    }
}

/// Returns when each of the stores last changed that exist.
fn goals(reader: &dyn Reader, stores: &[StoreId]) -> Result<Vec<(StoreId, Timestamp)>, Error> {
    let mut goals = Vec::with_capacity(stores.len());
    for &store in stores {
        if reader.store(store)?.is_some() {
            goals.push((store, reader.changed_at(store)?));
        }
    }
    Ok(goals)
}

/// Returns the index of a store as it was at a moment or later; `None` if it is not there.
fn view<'c>(
    snapshot: Snapshot<'c>,
    store: StoreId,
    goal: Timestamp,
    missing: &Missing,
) -> Result<Option<StoreView<'c>>, IndexError> {
    let row = store_row(snapshot.connection, store)?;
    let cursor = row.map_or(Cursor::START, |row| row.cursor);
    if cursor.at >= goal || missing.behind.contains(&store) {
        return StoreView::new(snapshot, store, row.as_ref(), None).map(Some);
    }
    match missing.overlays.get(&store) {
        Some((from, overlay)) if *from == cursor => {
            StoreView::new(snapshot, store, row.as_ref(), Some(overlay)).map(Some)
        }
        Some(_) | None => Ok(None),
    }
}
