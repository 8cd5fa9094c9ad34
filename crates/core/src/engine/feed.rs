//! The change feed: reading it, and waiting for more.

use std::time::Duration;

use crate::Error;
use crate::backend::{Change, Event, Reader, Sequence};
use crate::model::{MemoryPath, Operation, Timestamp, Version, View, WorkspaceId};

use super::Engine;
use super::session_events::events_recorded;
use super::transaction::Ledger;
use super::versions::previous;

/// Counts revocations: of keys, and of session tokens when the session is archived or deleted or gets
/// another token. They are not in the feed, which only has changes of stores. A counter of its own is
/// enough, because followers check their own credential again and need not know which one was revoked.
const CREDENTIALS_CURSOR: &str = "credentials";

/// A change with the rows it refers to.
#[derive(Clone, Debug)]
pub struct FeedEntry {
    /// The change.
    pub change: Change,
    /// The workspace of the store, even if that has been deleted since; `None` if it is no longer known.
    pub workspace: Option<WorkspaceId>,
    /// The version that the change made, without its text; `None` if it made none, or if it has been
    /// removed since.
    pub version: Option<Version>,
    /// Where the memory was before, if the change moved it.
    pub moved_from: Option<MemoryPath>,
}

/// A place in the feed as a follower keeps it: a change, and its moment.
///
/// The sequence alone says little after the storage was replaced by an older copy of itself: the numbers of lost
/// changes are given out again. Moments never repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPlace {
    /// The last change that was followed; zero before the first.
    pub sequence: Sequence,
    /// When that was made; `None` if the follower does not know.
    pub at: Option<Timestamp>,
}

/// The next changes, with the rows that they refer to.
#[derive(Clone, Debug)]
pub struct FeedEntries {
    /// The changes, in order.
    pub items: Vec<FeedEntry>,
    /// Whether the follower has missed changes, as in [`Changes::has_gap`].
    pub has_gap: bool,
    /// The newest change, from which a follower that starts over goes on.
    pub newest: FeedPlace,
}

impl FeedEntries {
    /// Returns whether what the follower has seen is not what is there: then it has to start over, and
    /// the changes after its place say nothing.
    pub fn is_another_feed(&self) -> bool {
        let is_restart = |entry: &FeedEntry| entry.change.event == Event::Restarted;
        self.has_gap && (self.items.is_empty() || self.items.iter().any(is_restart))
    }
}

/// The next changes for a follower of the feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The changes, in order.
    pub items: Vec<Change>,
    /// Whether changes before them have left the feed, because they are older than the versions'
    /// retention, or the follower has seen changes that an older copy of the data does not have. It must
    /// start over.
    pub has_gap: bool,
}

/// Returns at most `limit` changes after a sequence, in order, in a snapshot.
pub fn changes_after(reader: &dyn Reader, after: Sequence, limit: usize) -> Result<Changes, Error> {
    let oldest = reader.oldest_change()?;
    let has_missed = oldest.is_some_and(|(oldest, _)| oldest.0 > after.0.saturating_add(1));
    // It has seen changes that are not there: the data was replaced by an older copy.
    let is_ahead = after > reader.newest_change()?.0;
    let items = reader.changes(after, limit)?;
    let has_restarted = items.iter().any(|change| change.event == Event::Restarted);
    Ok(Changes { items, has_gap: has_missed || is_ahead || has_restarted })
}

/// The state of a data directory that followers react to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The newest change.
    pub newest: Sequence,
    /// How many credentials have been revoked. When this changes, a stream must check the credential that
    /// opened it again.
    pub credentials_lost: Sequence,
    /// How many times events of sessions were recorded or removed.
    pub events_recorded: Sequence,
}

impl Engine {
    /// Returns at most `limit` changes after a sequence, in order.
    pub fn changes(&self, after: Sequence, limit: usize) -> Result<Changes, Error> {
        self.read(|reader| changes_after(reader, after, limit))
    }

    /// Returns what [`changes`](Self::changes) returns, with the rows each change refers to.
    pub fn feed_entries(&self, after: Sequence, limit: usize) -> Result<FeedEntries, Error> {
        self.read(|reader| {
            let Changes { items, has_gap } = changes_after(reader, after, limit)?;
            let items = items.into_iter().map(|change| feed_entry(reader, change));
            let (sequence, at) = reader.newest_change()?;
            let newest = FeedPlace { sequence, at: Some(at) };
            Ok(FeedEntries { items: items.collect::<Result<_, _>>()?, has_gap, newest })
        })
    }

    /// Returns whether a place belongs to this feed: whether the change is there, made at that moment. One of
    /// which the moment is not known, or that was pruned, is taken for one; whether later changes are missing is
    /// for [`changes`](Self::changes) to say.
    pub fn is_place_of_feed(&self, place: FeedPlace) -> Result<bool, Error> {
        let (Some(at), Some(before)) = (place.at, place.sequence.0.checked_sub(1)) else {
            return Ok(true);
        };
        self.read(|reader| {
            let (newest, newest_at) = reader.newest_change()?;
            if place.sequence >= newest {
                return Ok((place.sequence, at) == (newest, newest_at));
            }
            let found = reader.changes(Sequence(before), 1)?;
            let found = found.first().filter(|change| change.sequence == place.sequence);
            Ok(found.is_none_or(|change| change.at == at))
        })
    }

    /// Returns the sequence of the newest change.
    pub fn newest_sequence(&self) -> Result<Sequence, Error> {
        self.read(|reader| Ok(reader.newest_change()?.0))
    }

    /// Returns how far a follower has read the feed, if it has ever stored that.
    pub fn cursor(&self, follower: &str) -> Result<Option<Sequence>, Error> {
        self.read(|reader| reader.cursor(follower))
    }

    /// Stores how far a follower has read the feed.
    pub fn keep_cursor(&self, follower: &str, reached: Sequence) -> Result<(), Error> {
        self.write(|ledger| ledger.writer.put_cursor(follower, reached))
    }

    /// Blocks until any process makes a change after `seen`, or until the timeout, and returns the newest
    /// sequence.
    pub fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        self.backend.wait(seen, timeout)
    }

    /// Blocks until any process moves the position away from `seen`, or until the timeout, and returns
    /// the position.
    pub fn wait_beyond(&self, seen: Position, timeout: Duration) -> Result<Position, Error> {
        let mut position = seen;
        self.backend.watch(timeout, &mut || {
            position = self.read(position_of)?;
            Ok(position != seen)
        })?;
        Ok(position)
    }
}

impl Ledger<'_> {
    /// Counts a revocation, so that holders of credentials check theirs again.
    pub(super) fn count_revocation(&mut self) -> Result<(), Error> {
        let lost = self.reader().cursor(CREDENTIALS_CURSOR)?.unwrap_or_default();
        self.writer.put_cursor(CREDENTIALS_CURSOR, Sequence(lost.0 + 1))
    }
}

fn position_of(reader: &dyn Reader) -> Result<Position, Error> {
    Ok(Position {
        newest: reader.newest_change()?.0,
        credentials_lost: reader.cursor(CREDENTIALS_CURSOR)?.unwrap_or_default(),
        events_recorded: events_recorded(reader)?,
    })
}

fn feed_entry(reader: &dyn Reader, change: Change) -> Result<FeedEntry, Error> {
    let workspace = match reader.store(change.store)? {
        Some(store) => Some(store.workspace),
        None => reader.removed_store(change.store)?,
    };
    let version = match change.event {
        // It may have been pruned, or deleted with its store, since.
        Event::Version(id) => reader.version(change.store, id, View::Basic)?,
        Event::Redacted(_)
        | Event::StoreCreated
        | Event::StoreUpdated
        | Event::StoreArchived
        | Event::StoreDeleted
        | Event::Restarted => None,
    };
    let before = match &version {
        Some(version) if version.operation == Operation::Modified => {
            previous(reader, version, View::Basic)?
        }
        Some(_) | None => None,
    };
    let is_now_at = version.as_ref().and_then(|version| version.path.as_ref());
    let was_at = before.and_then(|before| before.path);
    let moved_from = was_at.filter(|was_at| Some(was_at) != is_now_at);
    Ok(FeedEntry { change, workspace, version, moved_from })
}
