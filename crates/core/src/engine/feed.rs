//! The change feed: what happened since, and waiting for more.

use std::time::Duration;

use crate::Error;
use crate::backend::{Change, Event, Reader, Sequence};
use crate::model::{MemoryPath, Operation, Version, View, WorkspaceId};

use super::Engine;
use super::transaction::Ledger;
use super::versions::previous;

/// Counts revocations: of keys, and of session tokens by archiving or deleting the session or by
/// issuing another token. They are not in the feed, whose changes are those of stores.
const CREDENTIALS_CURSOR: &str = "credentials";

/// A change with the rows it refers to.
#[derive(Clone, Debug)]
pub struct News {
    /// The change.
    pub change: Change,
    /// The workspace of the store; `None` if the store has been deleted since.
    pub workspace: Option<WorkspaceId>,
    /// The version that the change made, without its text; `None` if it made none, or if that has
    /// been removed since.
    pub version: Option<Version>,
    /// Where the memory was before, if the change moved it.
    pub moved_from: Option<MemoryPath>,
}

/// The state of a data directory that followers react to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The newest change.
    pub newest: Sequence,
    /// How many credentials have been revoked. When this changes, whoever holds a credential must
    /// check it again.
    pub credentials_lost: Sequence,
}

impl Engine {
    /// Returns up to `limit` changes after a sequence, in their order.
    ///
    /// Changes older than the versions' retention leave the feed, so a reader that was away for
    /// longer finds that the first change does not follow its sequence, and must look at
    /// everything again.
    pub fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        self.read(|reader| reader.changes(after, limit))
    }

    /// Returns what [`changes`](Self::changes) returns, with the rows each change refers to.
    pub fn news(&self, after: Sequence, limit: usize) -> Result<Vec<News>, Error> {
        self.read(|reader| {
            let changes = reader.changes(after, limit)?;
            changes.into_iter().map(|change| news(reader, change)).collect()
        })
    }

    /// Returns the sequence of the newest change.
    pub fn newest_sequence(&self) -> Result<Sequence, Error> {
        self.read(|reader| Ok(reader.newest_change()?.0))
    }

    /// Returns how far a follower of the feed has come, if it has ever said so.
    pub fn cursor(&self, follower: &str) -> Result<Option<Sequence>, Error> {
        self.read(|reader| reader.cursor(follower))
    }

    /// Keeps how far a follower of the feed has come.
    pub fn keep_cursor(&self, follower: &str, reached: Sequence) -> Result<(), Error> {
        self.write(|ledger| ledger.writer.put_cursor(follower, reached))
    }

    /// Waits for a change after `seen` by any process, at most for `patience`, and returns the
    /// newest sequence.
    pub fn wait(&self, seen: Sequence, patience: Duration) -> Result<Sequence, Error> {
        self.backend.wait(seen, patience)
    }

    /// Waits until any process moves the position away from `seen`, at most for `patience`, and
    /// returns the position.
    pub fn wait_beyond(&self, seen: Position, patience: Duration) -> Result<Position, Error> {
        let mut position = seen;
        self.backend.watch(patience, &mut || {
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
    })
}

fn news(reader: &dyn Reader, change: Change) -> Result<News, Error> {
    let workspace = reader.store(change.store)?.map(|store| store.workspace);
    let version = match change.event {
        // It may have been pruned, or deleted with its store, since.
        Event::Version(id) => reader.version(change.store, id, View::Basic)?,
        Event::Redacted(_)
        | Event::StoreCreated
        | Event::StoreUpdated
        | Event::StoreArchived
        | Event::StoreDeleted => None,
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
    Ok(News { change, workspace, version, moved_from })
}
