//! The embedded backend's tests, in one binary.

#[path = "it/conformance.rs"]
mod conformance;

#[path = "it/model.rs"]
mod model;
