//! The tree without a kernel, over the in-memory backend.

#![cfg(target_os = "linux")]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "it/contention.rs"]
mod contention;
#[path = "it/expiry.rs"]
mod expiry;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/following.rs"]
mod following;
#[path = "it/forgetting.rs"]
mod forgetting;
#[path = "it/listing.rs"]
mod listing;
#[path = "it/past.rs"]
mod past;
#[path = "it/random.rs"]
mod random;
#[path = "it/remembering.rs"]
mod remembering;
#[path = "it/replacing.rs"]
mod replacing;
#[path = "it/saving.rs"]
mod saving;
#[path = "it/support.rs"]
mod support;
#[path = "it/waiting.rs"]
mod waiting;
#[path = "it/writing.rs"]
mod writing;
