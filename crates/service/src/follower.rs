//! Keeps the search index up with what is written, in doors that run for long.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::Sequence;
use quipu_knowledge::Knowledge;

/// How long one wait for changes lasts; in between it is asked whether to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest rest after a step.
const REST_MAX: Duration = Duration::from_millis(500);

/// Brings the index further whenever something changes, until `stop` returns `true`. Blocks its thread.
///
/// Searches are right without it, since they take in what is missing themselves; with it they find
/// little to do. After each step it rests as long as the step took, so that it never takes more than
/// half of a processor from those who write.
pub fn follow_index(knowledge: &Knowledge, stop: impl Fn() -> bool) {
    let mut reached = None;
    while !stop() {
        match step(knowledge, reached) {
            Ok(sequence) => reached = Some(sequence),
            Err(_) if stop() => return,
            Err(error) => {
                tracing::error!(%error, "the index cannot be brought up to date");
                thread::sleep(PATIENCE);
            }
        }
    }
}

fn step(knowledge: &Knowledge, reached: Option<Sequence>) -> Result<Sequence, Error> {
    if let Some(reached) = reached
        && knowledge.wait(reached, PATIENCE)? == reached
    {
        return Ok(reached);
    }
    let start = Instant::now();
    let sequence = knowledge.follow(reached)?;
    thread::sleep(start.elapsed().min(REST_MAX));
    Ok(sequence)
}
