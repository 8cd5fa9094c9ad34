//! Whether the index of a store holds everything that was written.
//!
//! The moment of the last change of a store would do if nothing else ever happened. But versions are
//! pruned, so the last change may be one that no version tells of any more. And databases are replaced
//! by backups, so the index may have followed changes that were never made in this one. Therefore an
//! index is trusted only if the feed still knows the change that it has reached, and by the same moment.

use quipu_core::Error;
use quipu_core::backend::{Reader, Sequence};
use quipu_core::model::Timestamp;

use crate::index::Cursor;

/// What the feed held when it was looked at.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    newest: Cursor,
    /// The oldest change that is still there.
    oldest: Sequence,
}

/// How a place relates to the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// Everything since can be read from the feed.
    Known,
    /// Changes since may have left the feed, or the place is one of another database.
    Unknown,
}

impl Feed {
    pub(super) fn read(reader: &dyn Reader) -> Result<Self, Error> {
        let (sequence, at) = reader.newest_change()?;
        let oldest = reader.oldest_change()?.map_or(Sequence(1), |(oldest, _)| oldest);
        Ok(Self { newest: Cursor { sequence, at }, oldest })
    }

    /// Returns the place of the newest change.
    pub(super) fn newest(&self) -> Cursor {
        self.newest
    }

    /// Returns whether a place is one of this feed and nothing since has left it.
    ///
    /// A sequence alone is not enough: after a backup was restored, the same numbers are given to other
    /// changes. Moments never repeat.
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

/// What a search needs of the index of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// When the store last changed, as far as its versions tell.
    pub(super) changed_at: Timestamp,
}

impl Goal {
    /// Returns whether an index that has reached a place holds everything.
    pub(super) fn is_reached(self, place: Cursor, relation: Relation) -> bool {
        relation == Relation::Known && place.at >= self.changed_at
    }
}
