//! The change feed: what happened since, and waiting for more.

use std::time::Duration;

use crate::Error;
use crate::backend::{Change, Sequence};

use super::Engine;

impl Engine {
    /// Returns up to `limit` changes after a sequence, in their order.
    ///
    /// Changes older than the versions' retention leave the feed, so a reader that was away for
    /// longer finds that the first change does not follow its sequence, and must look at
    /// everything again.
    pub fn changes(&self, after: Sequence, limit: usize) -> Result<Vec<Change>, Error> {
        self.read(|reader| reader.changes(after, limit))
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
}
