//! Whether the index of a store is up to date.
//!
//! Comparing the cursor with the time of the store's last change is not enough. Versions are
//! pruned, so the last change may be one of which no version is left. Databases are replaced by
//! backups, so the index may have followed changes that this one never had. Therefore an index is
//! trusted only if the feed still has the change at its cursor, with the same timestamp.

use quipu_core::Error;
use quipu_core::backend::{Reader, Sequence};
use quipu_core::model::Timestamp;

use crate::index::Cursor;

/// The state of the feed in one snapshot.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    newest: Cursor,
    /// The oldest change that has not been pruned.
    oldest: Sequence,
}

/// How a cursor relates to the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// Every later change can be read from the feed.
    Known,
    /// Later changes may have been pruned, or the cursor belongs to another database.
    Unknown,
}

impl Feed {
    pub(super) fn read(reader: &dyn Reader) -> Result<Self, Error> {
        let (sequence, at) = reader.newest_change()?;
        let oldest = reader.oldest_change()?.map_or(Sequence(1), |(oldest, _)| oldest);
        Ok(Self { newest: Cursor { sequence, at }, oldest })
    }

    /// Returns the cursor of the newest change.
    pub(super) fn newest(&self) -> Cursor {
        self.newest
    }

    /// Returns whether a cursor belongs to this feed and no later change has been pruned.
    ///
    /// The sequence alone is not enough: after a backup is restored, the same sequences are
    /// assigned to other changes. Timestamps never repeat.
    pub(super) fn relation(&self, reader: &dyn Reader, place: Cursor) -> Result<Relation, Error> {
        let Cursor { sequence, at } = place;
        if place == self.newest {
            return Ok(Relation::Known);
        }
        if sequence == Cursor::START.sequence {
            let is_all_there = self.oldest <= Sequence(1);
            return Ok(if is_all_there { Relation::Known } else { Relation::Unknown });
        }
        if sequence < self.oldest || sequence > self.newest.sequence {
            return Ok(Relation::Unknown);
        }
        let found = reader.changes(Sequence(sequence.0 - 1), 1)?;
        let is_same = found.first().is_some_and(|it| it.sequence == sequence && it.at == at);
        Ok(if is_same { Relation::Known } else { Relation::Unknown })
    }
}

/// How fresh the index of a store must be for a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// When the store last changed, according to its versions.
    pub(super) changed_at: Timestamp,
}

impl Goal {
    /// Returns whether an index at this cursor is up to date.
    pub(super) fn is_reached(self, place: Cursor, relation: Relation) -> bool {
        relation == Relation::Known && place.at >= self.changed_at
    }
}
