//! Keeps the search index up with what is written, in doors that run for long.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::Sequence;
use quipu_core::{Engine, Error};

/// How long one wait for changes lasts; in between it is asked whether to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much longer than a step the rest after it is, and how long at most.
const REST_SHARE: u32 = 9;
const REST_MAX: Duration = Duration::from_secs(1);

/// Brings the index further whenever something changes, until `stop` says so. Blocks its thread.
///
/// Searches are right without it, since they bring the index up to date themselves; with it they
/// find little to do. It rests much longer than it works, so that writers keep the better part of
/// the time.
pub fn follow_index(engine: &Engine, stop: impl Fn() -> bool) {
    let mut seen = Sequence(0);
    while !stop() {
        match engine.wait(seen, PATIENCE).and_then(|newest| index(engine, &stop).map(|()| newest)) {
            Ok(newest) => seen = newest,
            Err(error) => {
                tracing::error!(%error, "the index cannot be brought up to date");
                thread::sleep(PATIENCE);
            }
        }
    }
}

fn index(engine: &Engine, stop: &impl Fn() -> bool) -> Result<(), Error> {
    while !stop() {
        let start = Instant::now();
        if engine.index_pending()? == 0 {
            break;
        }
        thread::sleep((start.elapsed() * REST_SHARE).min(REST_MAX));
    }
    Ok(())
}
