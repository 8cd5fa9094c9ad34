//! Long random runs on a real mount: `./test exercise`.
//!
//! They are short unless the environment asks for more; see the top of `./test`.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests fail by panicking, say what they have done, and read how long they should run"
)]

#[path = "exercise/across_doors.rs"]
mod across_doors;
#[path = "exercise/bytes.rs"]
mod bytes;
#[path = "exercise/freshness.rs"]
mod freshness;
#[path = "mount/host.rs"]
mod host;
#[path = "exercise/killing.rs"]
mod killing;
#[path = "exercise/listing.rs"]
mod listing;
#[path = "exercise/read_only.rs"]
mod read_only;
#[path = "exercise/side_by_side.rs"]
mod side_by_side;
#[path = "exercise/support.rs"]
mod support;
