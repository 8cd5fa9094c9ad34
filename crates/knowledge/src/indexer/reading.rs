//! Reading indexes that are up to date.
//!
//! A read takes two snapshots, in this order: first of the index, then of the canonical rows. So
//! the rows are at least as new as the index, and every hit resolves to a memory that is the same,
//! newer, or gone. In the opposite order the index could be newer than the rows: a hit could refer
//! to a memory that the rows do not have yet, and a cursor ahead of the feed would look like one of
//! another database and cause a full build.
//!
//! Both are snapshots rather than separate reads, because a search reads many lists, columns and
//! cards. If a merge or a batch were committed between two of them, documents would be missing or
//! counted twice, and the statistics would not match the lists.

use std::cell::Cell;
use std::collections::HashMap;

use quipu_core::backend::Reader;
use quipu_core::model::StoreId;
use quipu_core::{Engine, Error};

use super::freshness::{Feed, Goal, Relation};
use super::{ATTEMPTS_MAX, Attempt, CaughtUp, Indexer};
use crate::index::{Cursor, IndexError, Overlay, Snapshot, StoreRow, StoreView, store_row};
use crate::lookup::Lookup;

/// What the index file lacks.
#[derive(Default)]
struct Missing {
    overlays: HashMap<StoreId, (Cursor, Overlay)>,
    /// Stores that lack more than can be searched in memory.
    behind: Vec<StoreId>,
}

/// A store to search, how fresh its index must be, and its row in the index.
type Wanted = (StoreId, Goal, Option<StoreRow>);

/// The outcome of reading the file.
enum Read<T> {
    Done(T),
    /// These stores must be brought up to date first.
    Outdated(Vec<StoreId>),
}

impl Indexer {
    /// Runs `work` on the indexes of stores, which hold everything that was acknowledged before the
    /// call.
    pub(crate) fn read<T>(
        &self,
        engine: &Engine,
        stores: &[StoreId],
        work: impl Fn(&Lookup<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        engine.require_blocking()?;
        let used = self.note_search(stores);
        // If this fails, the search finds what is there all the same, and the next one tries again.
        self.erase_removed().unwrap_or_default();
        let _scan = self.begin()?;
        let goals = engine.read(|reader| goals(reader, stores))?;
        let mut missing = Missing::default();
        let attempt = Attempt::new(&|_| Ok(()));
        for _ in 0..ATTEMPTS_MAX {
            let read =
                self.file.read(|snapshot| read_once(engine, snapshot, (&goals, &missing), &work));
            match read {
                Ok(Read::Done(worked)) => {
                    drop(used);
                    self.shrink();
                    return Ok(worked);
                }
                Ok(Read::Outdated(outdated)) => {
                    for store in outdated {
                        self.complete(store, &attempt, &mut missing)?;
                    }
                }
                // The file is empty now.
                Err(IndexError::Damaged) => missing = Missing::default(),
                Err(error) => return Err(error.into_error()),
            }
        }
        Err(IndexError::Outdated.into_error())
    }

    fn complete(
        &self,
        store: StoreId,
        attempt: &Attempt<'_>,
        missing: &mut Missing,
    ) -> Result<(), Error> {
        match self.lead_or_follow(store, attempt)? {
            // Whether the other thread came far enough is seen when the index is read again.
            CaughtUp::Stored | CaughtUp::Followed => {}
            CaughtUp::InMemory(from, overlay) => {
                missing.overlays.insert(store, (from, *overlay));
            }
            CaughtUp::PartlyInMemory(from, overlay) => {
                missing.overlays.insert(store, (from, *overlay));
                missing.behind.push(store);
            }
            CaughtUp::Behind => missing.behind.push(store),
        }
        Ok(())
    }
}

/// Runs `work` on one snapshot of the index, if that snapshot is up to date.
fn read_once<T>(
    engine: &Engine,
    snapshot: Snapshot<'_>,
    (goals, missing): (&[(StoreId, Goal)], &Missing),
    work: impl Fn(&Lookup<'_>) -> Result<T, Error>,
) -> Result<Read<T>, IndexError> {
    let mut wanted = Vec::with_capacity(goals.len());
    for &(store, goal) in goals {
        let row = store_row(snapshot.connection, store)?;
        // A store that is being removed may have rows left, which are not part of any index.
        wanted.push((store, goal, row.filter(|row| !row.is_removed())));
    }
    let is_damaged = Cell::new(false);
    // Index first, canonical rows second: nothing in the index is newer than the rows.
    let worked = engine.read(|reader| {
        let outdated = outdated(reader, &wanted, missing)?;
        if !outdated.is_empty() {
            return Ok(Read::Outdated(outdated));
        }
        let views = views(snapshot, &wanted, missing).map_err(|error| {
            is_damaged.set(matches!(error, IndexError::Damaged));
            error.into_error()
        })?;
        let mut lookup = Lookup::new(reader, &views);
        lookup.is_behind = !missing.behind.is_empty();
        let worked = work(&lookup);
        is_damaged.set(lookup.is_damaged());
        worked.map(Read::Done)
    });
    match worked {
        Err(_) if is_damaged.get() => Err(IndexError::Damaged),
        worked => Ok(worked?),
    }
}

/// Returns how fresh the indexes of the existing stores must be.
fn goals(reader: &dyn Reader, stores: &[StoreId]) -> Result<Vec<(StoreId, Goal)>, Error> {
    let mut goals = Vec::with_capacity(stores.len());
    for &store in stores {
        if reader.store(store)?.is_some() {
            goals.push((store, Goal { changed_at: reader.changed_at(store)? }));
        }
    }
    Ok(goals)
}

fn cursor(row: Option<&StoreRow>) -> Cursor {
    row.map_or(Cursor::START, |row| row.cursor)
}

/// Returns the overlay of a store, if it was built on top of this cursor.
fn overlay(missing: &Missing, store: StoreId, cursor: Cursor) -> Option<&Overlay> {
    let (from, overlay) = missing.overlays.get(&store)?;
    (*from == cursor).then_some(overlay)
}

/// Returns the stores whose index is not up to date.
fn outdated(
    reader: &dyn Reader,
    wanted: &[Wanted],
    missing: &Missing,
) -> Result<Vec<StoreId>, Error> {
    let feed = Feed::read(reader)?;
    // Stores that were brought up to date together share a cursor.
    let mut relations: HashMap<Cursor, Relation> = HashMap::new();
    let mut outdated = Vec::new();
    for (store, goal, row) in wanted {
        let cursor = cursor(row.as_ref());
        if missing.behind.contains(store) || overlay(missing, *store, cursor).is_some() {
            continue;
        }
        let relation = match relations.get(&cursor) {
            Some(known) => *known,
            None => feed.relation(reader, cursor)?,
        };
        relations.insert(cursor, relation);
        if !goal.is_reached(cursor, relation) {
            outdated.push(*store);
        }
    }
    Ok(outdated)
}

fn views<'c>(
    snapshot: Snapshot<'c>,
    wanted: &[Wanted],
    missing: &Missing,
) -> Result<HashMap<StoreId, StoreView<'c>>, IndexError> {
    let mut views = HashMap::with_capacity(wanted.len());
    for (store, _, row) in wanted {
        let overlay = overlay(missing, *store, cursor(row.as_ref()));
        views.insert(*store, StoreView::new(snapshot, *store, row.as_ref(), overlay)?);
    }
    Ok(views)
}
