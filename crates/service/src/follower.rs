//! Keeps the search index up to date in the background of a server.
//!
//! Searches are correct without it, since they index what is missing themselves; with it, they find
//! little to do. So indexing can wait, and it should: on two cores, a follower that indexed each
//! change at once took a third of the speed of those who wrote. It waits until the feed is quiet,
//! which costs writers nothing and makes batches larger, and cheaper for each memory. While changes keep
//! coming, it indexes from time to time all the same, or else a search in the middle of a long import
//! would have to index everything before it.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::Sequence;
use quipu_knowledge::{EmbedStep, Embedded, Knowledge};

/// How long one wait for changes lasts; `stop` is polled in between.
const WAIT: Duration = Duration::from_secs(10);

/// The feed is quiet if nothing changes for this long.
const QUIET: Duration = Duration::from_millis(20);

/// How long to wait for a quiet moment: this many times as long as the last step took, but within
/// these limits. So under a constant load, indexing takes a fifth of a core.
const PATIENCE_FACTOR: u32 = 4;
const PATIENCE_MIN: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(10);

/// Brings the index up to date whenever something has changed, until `stop` returns `true`. Blocks the
/// calling thread.
pub fn follow_index(knowledge: &Knowledge, stop: impl Fn() -> bool) {
    let mut reached = None;
    let mut patience = PATIENCE_MIN;
    while !stop() {
        match step(knowledge, reached, (patience, &stop)) {
            Ok(Step::Nothing) => {}
            Ok(Step::Indexed { sequence, took }) => {
                reached = Some(sequence);
                patience = (took * PATIENCE_FACTOR).clamp(PATIENCE_MIN, PATIENCE_MAX);
            }
            Err(_) if stop() => return,
            Err(error) => {
                tracing::error!(%error, "the index could not be brought up to date");
                thread::sleep(WAIT);
            }
        }
    }
}

/// How long one step of embedding takes.
const EMBED: Duration = Duration::from_millis(500);

/// How long to wait after a failure of the encoder; twice as long after each further one.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(5);

/// How long to wait while another process embeds.
const BUSY: Duration = Duration::from_secs(2);

/// How often to look whether the vectors are of this model again. The other process may just have been a
/// command.
const SUPERSEDED: Duration = Duration::from_mins(1);

/// How often `stop` is polled during a wait.
const POLL: Duration = Duration::from_millis(100);

/// Makes the vectors of memories that have none, now and whenever something has changed, until `stop` returns
/// `true`. Blocks the calling thread; returns at once if there is no encoder.
///
/// It is a thread of its own, so that an encoder that hangs does not keep text from being indexed.
pub fn embed_index(knowledge: &Knowledge, stop: impl Fn() -> bool) {
    let Some(model) = knowledge.encoder_identity() else { return };
    let (mut failures, mut has_rejected, mut is_superseded) = (0, false, false);
    while !stop() {
        let reached = knowledge.newest_sequence();
        let begun = Instant::now();
        let step = reached.and_then(|reached| Ok((reached, knowledge.embed_step(EMBED)?)));
        let span = match step {
            Ok((reached, EmbedStep::Complete)) => {
                (failures, is_superseded) = (0, false);
                if let Err(error) = wait_for_changes(knowledge, reached, &stop) {
                    tracing::debug!(%error, "the feed cannot be read");
                    pause(BACKOFF_MIN, &stop);
                }
                continue;
            }
            Ok((_, EmbedStep::Embedded(Embedded { rejected, .. }))) => {
                (failures, is_superseded) = (0, false);
                if rejected > 0 && !has_rejected {
                    let message = "the model rejects some texts; these memories are found by words";
                    tracing::warn!(model, rejected, "{message}");
                    has_rejected = true;
                }
                // Half of a core at most: whoever writes and searches goes first.
                begun.elapsed()
            }
            Ok((_, EmbedStep::Busy)) => BUSY,
            Ok((_, EmbedStep::Superseded)) => {
                if !is_superseded {
                    let message = "a process that was started later embeds with another model; \
                                   searches go by keywords until the vectors are of this one again";
                    tracing::warn!(model, "{message}");
                    is_superseded = true;
                }
                SUPERSEDED
            }
            Ok((_, EmbedStep::Failed(reason))) => {
                if failures == 0 {
                    let message = "the model fails; searches go on without new vectors";
                    tracing::warn!(model, reason, "{message}");
                }
                failures += 1;
                backoff(failures)
            }
            Err(_) if stop() => return,
            Err(error) => {
                tracing::error!(%error, "memories could not be embedded");
                WAIT
            }
        };
        pause(span, &stop);
    }
}

/// Returns how long to wait after the nth failure in a row.
fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_MIN.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

/// Waits until something has changed and the feed is quiet again.
fn wait_for_changes(
    knowledge: &Knowledge,
    reached: Sequence,
    stop: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let mut changed = reached;
    while changed == reached && !stop() {
        changed = knowledge.wait(reached, WAIT)?;
        knowledge.forget_idle_vectors();
    }
    settle(knowledge, changed, (PATIENCE_MIN, stop))
}

/// Waits, unless `stop` returns `true`.
fn pause(span: Duration, stop: &dyn Fn() -> bool) {
    let end = Instant::now() + span;
    while Instant::now() < end && !stop() {
        thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
    }
}

enum Step {
    /// Nothing has changed.
    Nothing,
    Indexed {
        sequence: Sequence,
        took: Duration,
    },
}

fn step(
    knowledge: &Knowledge,
    reached: Option<Sequence>,
    (patience, stop): (Duration, &dyn Fn() -> bool),
) -> Result<Step, Error> {
    if let Some(reached) = reached {
        let changed = knowledge.wait(reached, WAIT)?;
        if changed == reached {
            return Ok(Step::Nothing);
        }
        settle(knowledge, changed, (patience, stop))?;
    }
    let start = Instant::now();
    let sequence = knowledge.follow(reached)?;
    Ok(Step::Indexed { sequence, took: start.elapsed() })
}

/// Waits until the feed is quiet, but not longer than `patience`.
fn settle(
    knowledge: &Knowledge,
    mut newest: Sequence,
    (patience, stop): (Duration, &dyn Fn() -> bool),
) -> Result<(), Error> {
    let start = Instant::now();
    while start.elapsed() < patience && !stop() {
        // Waiting for the next change instead would wake this thread for every one of them.
        thread::sleep(QUIET);
        let now = knowledge.newest_sequence()?;
        if now == newest {
            break;
        }
        newest = now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_after_a_failure_doubles_from_a_second_to_five_minutes() {
        let waits = (1..=5).map(|failures| backoff(failures).as_secs());
        assert_eq!(waits.collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
        assert_eq!([100, u32::MAX].map(backoff), [BACKOFF_MAX; 2]);
    }
}
