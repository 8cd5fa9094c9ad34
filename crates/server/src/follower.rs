//! Keeps the search index up with what is written, in doors that run for long.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::Sequence;
use quipu_core::{Engine, Error};

/// How long one wait for changes lasts; in between it is asked whether to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest rest between two steps.
const REST_MAX: Duration = Duration::from_millis(500);
/// Whoever makes so many changes in this time is left alone.
const BUSY_CHANGES_COUNT: u64 = 50;
const BUSY_SPAN: Duration = Duration::from_millis(100);
/// But not for longer than so many spans.
const BUSY_SPANS_MAX: usize = 100;

/// Brings the index further whenever something changes, until `stop` says so. Blocks its thread.
///
/// Searches are right without it, since they bring the index up to date themselves; with it they
/// find little to do. It waits while many write, and rests as long as it works, so that writers keep
/// the better part of the time.
pub fn follow_index(engine: &Engine, stop: impl Fn() -> bool) {
    let mut seen = Sequence(0);
    while !stop() {
        match engine.wait(seen, PATIENCE).and_then(|newest| index(engine, &stop).map(|()| newest)) {
            Ok(newest) => seen = newest,
            Err(_) if stop() => return,
            Err(error) => {
                tracing::error!(%error, "the index cannot be brought up to date");
                thread::sleep(PATIENCE);
            }
        }
    }
}

fn index(engine: &Engine, stop: &impl Fn() -> bool) -> Result<(), Error> {
    while !stop() {
        wait_for_quiet(engine)?;
        let start = Instant::now();
        if engine.index_pending()? == 0 {
            break;
        }
        thread::sleep(start.elapsed().min(REST_MAX));
    }
    Ok(())
}

fn wait_for_quiet(engine: &Engine) -> Result<(), Error> {
    for _ in 0..BUSY_SPANS_MAX {
        let before = engine.newest_sequence()?;
        thread::sleep(BUSY_SPAN);
        if engine.newest_sequence()?.0.saturating_sub(before.0) < BUSY_CHANGES_COUNT {
            break;
        }
    }
    Ok(())
}
