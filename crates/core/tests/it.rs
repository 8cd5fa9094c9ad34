//! The engine's tests over the in-memory backend, in one binary.

#[path = "it/conformance.rs"]
mod conformance;

#[path = "it/model.rs"]
mod model;
