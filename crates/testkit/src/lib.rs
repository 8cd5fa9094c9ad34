//! What several crates need for their tests.
//!
//! - [`conformance`]: every sentence of the backend trait's docs as a test, run by each backend.
//! - [`InMemoryBackend`]: the simplest backend that passes it.
//! - [`FaultyBackend`]: a backend that fails at a chosen step.
//! - [`model`]: a naive reference, and random operations on it and on a real engine.
//! - [`knowledge`]: what the engine promises about search and links, run over each backend.
//! - [`ManualClock`]: a clock that stands still until it is told otherwise.

#![expect(
    clippy::cloned_ref_to_slice_refs,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests compare with short literals and panic to fail"
)]

mod clock;
pub mod conformance;
mod faulty;
mod in_memory;
pub mod knowledge;
pub mod model;

pub use clock::ManualClock;
pub use faulty::FaultyBackend;
pub use in_memory::InMemoryBackend;
