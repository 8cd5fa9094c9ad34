//! Shared test support.
//!
//! - [`conformance`]: every sentence of the backend trait's docs as a test, run by each backend.
//! - [`InMemoryBackend`]: the simplest backend that passes it.
//! - [`FaultyBackend`]: a backend that fails at a chosen step.
//! - [`model`]: a naive reference, and random operations on it and on a real engine.
//! - [`knowledge`]: what the engine promises about search and links, run over each backend.
//! - [`encoders`]: an encoder that knows a few concepts, and misbehaves on request.
//! - [`moving`]: what a move from one backend to another promises.
//! - [`past`]: what a store was at random moments of a random history.
//! - [`ManualClock`]: a clock that moves only by hand.

#![expect(
    clippy::cloned_ref_to_slice_refs,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests compare with short literals and panic to fail"
)]

mod clock;
pub mod conformance;
pub mod encoders;
mod faulty;
mod forwarding;
mod in_memory;
pub mod knowledge;
pub mod model;
pub mod moving;
pub mod past;

use std::path::Path;
use std::sync::Arc;

use quipu_core::settings::Limits;
use quipu_core::{Backend, Clock, Engine};
use quipu_knowledge::Knowledge;

pub use clock::ManualClock;
pub use faulty::FaultyBackend;
pub use in_memory::InMemoryBackend;

/// Returns what doors use, over a backend. Its index has no directory, so each search scans everything in
/// memory.
pub fn knowledge_over(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>) -> Knowledge {
    knowledge_with(backend, clock, Limits::default())
}

/// Like [`knowledge_over`], with other limits.
pub fn knowledge_with(
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    limits: Limits,
) -> Knowledge {
    Knowledge::new(Engine::new(backend, clock, limits), Path::new("/nonexistent/quipu"))
}
