//! What transactions begin with, and how long anything in them may take.

use std::time::Duration;

/// How much longer than the server the client waits for an answer.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// How long a read may pause. What it reads may be written to something slow, but it keeps the server from
/// cleaning up.
const READ_IDLE_MAX: Duration = Duration::from_mins(10);

/// The statements that begin transactions, and how long to wait for answers.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) begin_read: String,
    pub(crate) begin_write: String,
    pub(crate) commit: String,
    pub(crate) answer_timeout: Duration,
    /// What every transaction sets, but for how long it may be idle.
    settings: String,
}

impl Terms {
    pub(crate) fn new(
        schema: &str,
        (statement_timeout, lock_timeout): (Duration, Duration),
    ) -> Self {
        let statement_ms = statement_timeout.as_millis().max(1);
        let lock_ms = lock_timeout.as_millis().max(1);
        // The server does not notice when the way to a client breaks. The locks of such a transaction are
        // released before those who wait for them give up.
        let write_idle_ms = (lock_ms / 2).max(1);
        // Compiling a plan takes hundreds of milliseconds, and the server overestimates statements over
        // partitions so much that it would. Planning them again for each run takes 2 ms, ten times what they
        // run; the statements of writes are point lookups, for which one plan is as good as another.
        //
        // `LOCAL`, because a pooler may give the connection to somebody else after the transaction.
        let settings = format!(
            "SET LOCAL search_path = {schema}; SET LOCAL jit = off; \
             SET LOCAL statement_timeout = {statement_ms}; \
             SET LOCAL lock_timeout = {lock_ms}; \
             SET LOCAL idle_in_transaction_session_timeout ="
        );
        Self {
            begin_read: begin_read(&settings, READ_IDLE_MAX),
            begin_write: format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL plan_cache_mode = force_generic_plan; \
                 {settings} {write_idle_ms}"
            ),
            commit: format!("NOTIFY {schema}; COMMIT"),
            answer_timeout: statement_timeout + ANSWER_MARGIN,
            settings,
        }
    }

    /// Returns the same terms, by which reads may pause for so long.
    pub(crate) fn with_idle_reads(self, idle: Duration) -> Self {
        Self { begin_read: begin_read(&self.settings, idle), ..self }
    }
}

fn begin_read(settings: &str, idle: Duration) -> String {
    format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings} {}", idle.as_millis())
}
