//! The concurrent parts of `crates/sqlite`, `crates/postgres` and `crates/knowledge`, built with the lock types of
//! [`shuttle`], which runs them under thousands of random schedules.
//!
//! The files are those of the crates themselves: they name lock types only through `crate::sync`, which is
//! another module here. Run by `./test schedules`; `QUIPU_TEST_SCHEDULES=100000` for more of them.

#![cfg(test)]
#![allow(dead_code, reason = "the tests do not need all of the files")]

#[path = "../../../crates/sqlite/src/group.rs"]
mod group;
#[path = "../../../crates/postgres/src/queue.rs"]
mod queue;
#[path = "../../../crates/sqlite/src/seqlock.rs"]
mod seqlock;
mod sync;
#[path = "../../../crates/sqlite/src/timed_call.rs"]
mod timed_call;
#[path = "../../../crates/knowledge/src/indexer/turn.rs"]
mod turn;

mod caching;
mod calling;
mod grouping;
mod leading;
mod queueing;

/// Runs a scenario under many schedules, with timeouts that never fire and with timeouts that fire at any
/// moment. The former finds lost wake-ups, the latter whatever a timeout leaves behind.
fn check(scenario: fn()) {
    let schedules = std::env::var("QUIPU_TEST_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let schedules = schedules.unwrap_or(2000);
    for timeouts in [sync::Timeouts::Never, sync::Timeouts::Random] {
        let run = move || {
            sync::start(timeouts);
            scenario();
        };
        shuttle::check_random(run, schedules);
        shuttle::check_pct(run, schedules, 3);
    }
}
