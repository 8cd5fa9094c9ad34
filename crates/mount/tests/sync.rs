//! The tests of folder sync over the in-memory backend, in one binary.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and read how long they should run"
)]

#[path = "sync/both_ways.rs"]
mod both_ways;
#[path = "sync/meanwhile.rs"]
mod meanwhile;
#[path = "sync/model.rs"]
mod model;
#[path = "sync/protection.rs"]
mod protection;
#[path = "sync/support.rs"]
mod support;
#[path = "sync/waiting.rs"]
mod waiting;
#[path = "sync/watching.rs"]
mod watching;
