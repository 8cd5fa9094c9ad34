//! The promises of `docs/mount.md`, each with a test of its name on a real mount.

#![cfg(target_os = "linux")]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[path = "mount/host.rs"]
mod host;
#[path = "mount/limits.rs"]
mod limits;
#[path = "mount/moving.rs"]
mod moving;
#[path = "mount/others.rs"]
mod others;
#[path = "mount/promises.rs"]
mod promises;
#[path = "mount/running.rs"]
mod running;
#[path = "mount/saving.rs"]
mod saving;
#[path = "mount/support.rs"]
mod support;
#[path = "mount/tools.rs"]
mod tools;
#[path = "mount/waiting.rs"]
mod waiting;
#[path = "mount/writing.rs"]
mod writing;
