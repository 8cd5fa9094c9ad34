//! The tests of the HTTP server, in one binary.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

#[path = "it/inspector.rs"]
mod inspector;
#[path = "it/openapi.rs"]
mod openapi;
#[path = "it/rest.rs"]
mod rest;
#[path = "it/upstream.rs"]
mod upstream;
#[path = "it/webhooks.rs"]
mod webhooks;
