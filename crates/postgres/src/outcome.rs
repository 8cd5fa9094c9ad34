//! Finding out whether a transaction was committed whose answer was lost.
//!
//! Each commit notes, in the row of its connection in `commits`, a marker that nobody else uses. Looking for the
//! marker is not enough: the server may still be committing, or have the statements in a buffer. So the
//! look-up *closes* the row in the same statement: that waits for a transaction that has changed it, and one that
//! comes later fails. What the row then says is final, whatever happens to the look-up itself, which can be
//! repeated.
//!
//! The look-up is a write, and that matters with a synchronous standby: whoever is disconnected while it waits
//! for the standby has committed already, on this server alone. The commit of the look-up comes after that
//! one in the log, so its answer says that the standby has both.

use std::thread;
use std::time::Instant;

use quipu_core::Error;

use crate::PostgresBackend;
use crate::error::{self, Failure};
use crate::group::Refused;
use crate::retry::{Backoff, random_bits};
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, Parameter, params};

/// What a commit is recognized by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    connection: Bits,
    bits: Bits,
}

/// The division fails if the row was closed, and the transaction with it.
const NOTE: &str = "WITH noted AS (
        INSERT INTO commits (connection, marker) VALUES ($1, $2)
        ON CONFLICT (connection) DO UPDATE SET marker = excluded.marker, at = now()
            WHERE NOT commits.is_closed
        RETURNING 1)
    SELECT 1 / count(*) FROM noted";

const CLOSE: &str = "INSERT INTO commits (connection, is_closed) VALUES ($1, TRUE)
    ON CONFLICT (connection) DO UPDATE SET is_closed = TRUE, at = now()
    RETURNING marker";

/// Rows of connections that are gone. A look-up ends long before that.
const PRUNE: &str = "DELETE FROM commits WHERE connection IN
    (SELECT connection FROM commits WHERE at < now() - interval '1 day' LIMIT 10000
        FOR UPDATE SKIP LOCKED)";

impl Marker {
    /// Returns a new marker for the commit of a transaction.
    pub(crate) fn new(transaction: &Transaction) -> Self {
        Self { connection: transaction.connection(), bits: Bits(random_bits()) }
    }

    /// Returns the statement that notes the commit.
    pub(crate) fn note(self) -> (&'static str, Vec<Box<dyn Parameter + Send>>) {
        (NOTE, vec![Box::new(self.connection), Box::new(self.bits)])
    }
}

impl PostgresBackend {
    /// Finds out whether a transaction was committed whose answer was lost; fails if that takes too long.
    pub(crate) fn look_up(
        &self,
        marker: Marker,
        failure: Failure,
    ) -> Result<Result<(), Refused>, Error> {
        tracing::warn!(%failure, "the connection was lost during a commit; looking up its outcome");
        let deadline = self.deadline() + self.settings.statement_timeout;
        let mut backoff = Backoff::new(super::REPEAT_PAUSE_MAX);
        self.pool.drop_idle();
        while Instant::now() < deadline {
            match self.try_to_look_up(marker, deadline) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => return Ok(Err(Refused::of(failure))),
                Err(cause) => {
                    tracing::debug!(%cause, "the outcome of a commit is still unknown");
                    self.pool.drop_idle();
                }
            }
            thread::sleep(backoff.pause());
        }
        Err(error::outcome_unknown())
    }

    fn try_to_look_up(&self, marker: Marker, deadline: Instant) -> Result<bool, Failure> {
        let client = self.pool.get_by(deadline)?;
        let deadline = deadline.min(Instant::now() + self.shared.terms.answer_timeout);
        let committed = client
            .query(
                deadline,
                Some(&self.shared.terms.begin_write),
                CLOSE,
                params![marker.connection],
            )
            .and_then(|rows| {
                client.heard().take();
                client.batch(deadline, "COMMIT")?;
                match client.heard().take_warning() {
                    Some(warning) => Err(Failure::Warned(Box::new(warning))),
                    None => Ok(rows),
                }
            });
        if committed.is_err() {
            client.discard();
        }
        let rows = committed?;
        let noted = rows.first().and_then(|row| row.value::<Option<Bits>>(0).ok().flatten());
        Ok(noted == Some(marker.bits))
    }
}

/// Removes what is known of connections that are gone.
pub(crate) fn prune(transaction: &Transaction) -> Result<(), Error> {
    transaction.execute(PRUNE, &[]).map(drop)
}
