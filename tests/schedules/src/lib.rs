//! What threads share in `crates/sqlite`, built with the lock types of [`shuttle`], which runs it under
//! thousands of random schedules.
//!
//! The files are the very ones of the crate: they name lock types only through `crate::sync`, which is
//! another module here. Run by `./test schedules`; `QUIPU_TEST_SCHEDULES=100000` for more of them.

#![cfg(test)]
#![allow(dead_code, reason = "the tests do not need all of the files")]

#[path = "../../../crates/sqlite/src/group.rs"]
mod group;
#[path = "../../../crates/sqlite/src/kept.rs"]
mod kept;
#[path = "../../../crates/sqlite/src/patience.rs"]
mod patience;
mod sync;

mod grouping;
mod keeping;
mod waiting;

/// Runs a scenario under many schedules, with timeouts that never fire and with ones that fire at any
/// moment. The former finds wake-ups that are lost, the latter whatever a timeout leaves behind.
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
