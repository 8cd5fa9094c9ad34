//! Keeps the search index up to date in the background of a server.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::Sequence;
use quipu_knowledge::Knowledge;

/// How long one wait for changes lasts; `stop` is polled in between.
const WAIT: Duration = Duration::from_secs(10);
/// The longest pause after a step.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Brings the index up to date whenever something changes, until `stop` returns `true`. Blocks the
/// calling thread.
///
/// Searches are correct without it, since they index what is missing themselves; with it, they find
/// little to do. After each step it pauses for as long as the step took, so that it takes no more
/// than half a core from writers.
pub fn follow_index(knowledge: &Knowledge, stop: impl Fn() -> bool) {
    let mut reached = None;
    while !stop() {
        match step(knowledge, reached) {
            Ok(sequence) => reached = Some(sequence),
            Err(_) if stop() => return,
            Err(error) => {
                tracing::error!(%error, "the index could not be brought up to date");
                thread::sleep(WAIT);
            }
        }
    }
}

fn step(knowledge: &Knowledge, reached: Option<Sequence>) -> Result<Sequence, Error> {
    if let Some(reached) = reached
        && knowledge.wait(reached, WAIT)? == reached
    {
        return Ok(reached);
    }
    let start = Instant::now();
    let sequence = knowledge.follow(reached)?;
    thread::sleep(start.elapsed().min(PAUSE_MAX));
    Ok(sequence)
}
